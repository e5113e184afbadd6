"""Write the tables of docs/record/benchmarks.md from the measurements of `make bench`.

    python -m bench.speed.report build/bench.json [--docs docs/record/benchmarks.md]

The script replaces the text between the markers of that document.  Groups that were not measured
are left out.  Libraries and corpora that were missing are listed with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import CHECKOUT, parser
from bench.adapters import RIVALS, SCIKIT_LEARN
from bench.markdown import between_markers, table
from bench.speed.pairs import ratio

DOCS = CHECKOUT / "docs" / "record" / "benchmarks.md"
LIBRARIES = [library.name for library in (SCIKIT_LEARN, *RIVALS)]
#: The library and the priors whose final score is the score to reach.
TARGET = "tomotopy"
TARGET_PRIOR = (0.1, 0.01)


def ratios(bench: dict[str, Any], *names: str) -> str:
    """The medians of how many times as fast as the baseline some methods are."""
    baseline = bench["baseline"]
    methods = bench["methods"]
    return " / ".join(f"{ratio(baseline, methods[name]):.3g}" for name in names)


def seconds(times: Sequence[float]) -> str:
    return f"{median(times):.3g}"


def rows_of(benches: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(bench["row"] for bench in benches))


def passes(benches: list[dict[str, Any]]) -> str:
    """The table of CPU seconds, and of how many times as fast as each library annealvi is."""
    by_row_and_library = {(bench["row"], bench["library"]): bench for bench in benches}
    rows = rows_of(benches)
    libraries = [
        name for name in LIBRARIES if any((row, name) in by_row_and_library for row in rows)
    ]
    body = []
    for row in rows:
        here = [
            by_row_and_library[row, name] for name in libraries if (row, name) in by_row_and_library
        ]
        cells = [row, seconds([t for bench in here for t in bench["methods"]["float64"]])]
        for name in libraries:
            bench = by_row_and_library.get((row, name))
            if name == "scikit-learn":
                cells.append("–" if bench is None else ratios(bench, "same trajectory"))
            cells.append("–" if bench is None else ratios(bench, "float64", "float32"))
        body.append(cells)
    first = ["scikit-learn, same trajectory"] if "scikit-learn" in libraries else []
    return (
        "The table contains the CPU seconds of annealvi in float64, and how many times as fast as "
        'each library annealvi is, in float64 / float32 (for "same trajectory" only float64):\n\n'
        + table(["corpus, K", "CPU s", *first, *libraries], body)
    )


def pairs_table(benches: list[dict[str, Any]]) -> str:
    """Make a table with the ratios and seconds of each benchmark."""
    body = []
    for bench in benches:
        methods = list(bench["methods"])
        body.append(
            [
                bench.get("row", bench["role"]),
                ratios(bench, *methods),
                seconds(bench["methods"][methods[0]]),
                seconds(bench["baseline"]),
            ]
        )
    return table(["", "times as fast", "seconds", "baseline, seconds"], body)


def memory(benches: list[dict[str, Any]]) -> str:
    smallest = benches[0]["megabytes"]
    body = [
        [bench["row"], f"{bench['megabytes']:.0f}", f"{bench['megabytes'] / smallest:.2f}"]
        for bench in benches
    ]
    return f"{benches[0]['problem']}:\n\n" + table(
        ["", "MB", "relative to annealvi, float64"], body
    )


def quality(benches: list[dict[str, Any]]) -> str:
    """The table of final scores and times to the target, for each library's better priors."""
    tables = []
    for corpus in dict.fromkeys(bench["corpus"] for bench in benches):
        here = [bench for bench in benches if bench["corpus"] == corpus]
        goal = next(
            (
                bench["curve"][-1]
                for bench in here
                if bench["library"] == TARGET and (bench["alpha"], bench["eta"]) == TARGET_PRIOR
            ),
            None,
        )
        body = []
        shown = set()
        for bench in sorted(here, key=lambda bench: -bench["curve"][-1][2]):
            if bench["library"] in shown:
                continue
            shown.add(bench["library"])
            last = bench["curve"][-1]
            priors = (bench["alpha"], bench["eta"])
            plain = None in priors or bench["library"].endswith("PLSA")
            reached = next((t for t, _, s in bench["curve"] if goal and s >= goal[2]), None)
            body.append(
                [
                    bench["library"],
                    "none" if plain else f"{priors[0]:g}, {priors[1]:g}",
                    f"{last[2]:.3f}",
                    f"{last[0]:.2f}",
                    "not reached" if reached is None else f"{reached:.2f}",
                    "–" if reached is None or goal is None else f"{goal[0] / reached:.1f}",
                ]
            )
        train, validation, test = here[0]["documents"]
        header = (
            f"`{corpus}`, K = {here[0]['n_topics']}: {train:,} documents are fitted, "
            f"{validation:,} are used to tune the scoring, and {test:,} are scored."
        )
        if goal is not None:
            header += f" The score to reach is {goal[2]:.3f}."
        columns = ["library", "α, η", "final score", "CPU s", "CPU s to reach", "times sooner"]
        tables.append(f"{header}\n\n" + table(columns, body))
    return "\n\n".join(tables)


def stream(benches: list[dict[str, Any]]) -> str:
    records = benches[0]["records"]
    body = [
        [
            f"{record['documents']:,}",
            f"{record['documents_per_second']:,.0f}",
            f"{record['documents_per_cpu_second']:,.0f}",
            f"{record['held_out']:.3f}",
            f"{record['peak_megabytes']:,.0f}",
        ]
        for record in records
    ]
    header = ["documents", "per second", "per CPU second", "held out per word", "peak MB"]
    return table(header, body)


def roofline(benches: list[dict[str, Any]]) -> str:
    limits = benches[0]["limits"]
    body = []
    for bench in benches:
        cells = [bench["row"]]
        for dtype, rate in bench["rates"].items():
            bound = bench["bounds"][dtype]
            cells += [f"{rate:.0f}", f"{bound:.0f}", f"{100 * rate / bound:.0f}%"]
        body.append(cells)
    columns = ["float64", "bound", "reached", "float32", "bound", "reached"]
    return (
        "The columns contain GFLOP/s. "
        f"One core with vectors of {limits['vector_bytes']:.0f} bytes computes "
        f"{limits['peak_float64']:.0f} GFLOP/s of fused multiply-adds in float64 and "
        f"{limits['peak_float32']:.0f} in float32. The core reads {limits['l1']:.0f} GB/s "
        f"from the level-1 cache and {limits['l2']:.0f} from level 2.\n\n"
        + table(["corpus, K", *columns], body)
    )


#: The groups in order: heading, a sentence about the figures, and the function for the table.
GROUPS: dict[str, tuple[str, str, Callable[[list[dict[str, Any]]], str]]] = {
    "pass": ("One pass of `partial_fit`, one thread", "", passes),
    "two threads": (
        "Two threads against one",
        "The table contains wall seconds of the same pass with two threads. The baseline is one "
        "thread.",
        pairs_table,
    ),
    "parts": (
        "M-step and `transform` against scikit-learn's",
        "The table contains CPU seconds on one thread, in float64, of annealvi and of scikit-learn "
        "(the baseline). Ratios are float64 / float32. The rows of M-steps contain ten M-steps.",
        pairs_table,
    ),
    "memory": (
        "Peak memory of one pass",
        "The table contains the memory that a pass adds to that of the imports and the data, in a "
        "new process.",
        memory,
    ),
    "quality": ("Time to quality", "", quality),
    "portions": (
        "A stream in small portions against scikit-learn's",
        "The table contains CPU seconds on one thread, in float64, of calls of `partial_fit` with "
        "256 documents each, which compute the same numbers as scikit-learn (the baseline).",
        pairs_table,
    ),
    "stream": ("A stream of half a million documents", "", stream),
    "roofline": ("The local step beside the machine's limits", "", roofline),
    "learned temperatures, CPU": (
        "Learned temperatures against a planned one",
        "The table contains CPU seconds of a pass with one learned temperature (VT), and with one "
        "for each document (LVT). The baseline is a planned temperature (AVI). A ratio below 1 "
        "means that learning is slower.",
        pairs_table,
    ),
}


def write(measured: dict[str, Any]) -> str:
    """Return the text between the markers."""
    about = measured["machine_info"]
    versions = ", ".join(f"{name} {value}" for name, value in measured["versions"].items())
    paragraphs = [
        f"Measured on {measured['datetime'][:10]}: {about['processor']}, {about['cores']} cores, "
        f"kernels of instruction set `{about['instruction_set']}`, {about['system']}. {versions}."
    ]
    if measured["skipped"]:
        paragraphs.append("Skipped: " + "; ".join(measured["skipped"]) + ".")
    benches: dict[str, list[dict[str, Any]]] = {}
    for bench in measured["benchmarks"]:
        benches.setdefault(bench["group"], []).append(bench["extra_info"])
    for group, (heading, text, make) in GROUPS.items():
        if group in benches:
            paragraphs += [f"### {heading}", *([text] if text else []), make(benches[group])]
    return "\n\n".join(paragraphs)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("measured", type=Path, help="the file that --benchmark-json wrote")
    options.add_argument("--docs", type=Path, default=DOCS)
    arguments = options.parse_args()
    measured = json.loads(arguments.measured.read_text(encoding="utf-8"))
    between_markers(arguments.docs, write(measured))


if __name__ == "__main__":
    main()
