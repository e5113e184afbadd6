"""Compare default fits of two commits, and of other libraries: CPU seconds and peak memory.

    python -m bench.speed.default_rivals BASE [HEAD] [--rounds 3] [--rivals scikit-learn tomotopy]
        [--corpora bbc_news debian_desc 20ng_etm arxiv_100k] [--topics 20 100 500] [--json FILE]

BASE and HEAD are commits, or folders that contain a checkout.  By default HEAD is the commit that
is checked out here.  Both are built with this interpreter's packages into temporary folders.  The
training documents of bench/studies/splits.py are fitted by base, head, head, base, and so on.  In
a round both have the same seed.  Each fit has a new process with one thread (one_fit.py).  X is
float64, as the corpora are read.  The script prints medians over the rounds, and the median of the
rounds' ratios.  A ratio above 1 means that head is faster.  Peak memory is measured without the
memory of imports and documents.

The column "held out" is the log-likelihood per word of the test documents, after one more fit of
each build with the first seed, which is not timed.  All fits are scored by bench/studies/fold_in.py
of this checkout, whose settings are chosen for each fit on validation documents.

Other libraries are fitted once from the first seed: scikit-learn's LatentDirichletAllocation with
its defaults and 10 batch passes, and tomotopy with 200 sweeps and its own priors.  They are scored
after each pass, or every 25 sweeps, until they reach the final score of head.  The script prints
the seconds until then, or "not reached".  Libraries that are not installed are skipped.  At K = 500
they take much longer than annealvi, so they are included there only with --slow-rivals.

Each row is printed to stderr when it is measured, and the tables at the end.  With --json all
measurements are written to FILE after each row.  The exit status is 1 if a fit has failed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any

import numpy as np

from annealvi import datasets
from bench import parser
from bench.adapters import RIVALS, SCIKIT_LEARN
from bench.markdown import table
from bench.speed import machine
from bench.speed.builds import install, output, run_module
from bench.speed.pairs import ratio
from bench.studies import fold_in, splits

CORPORA = ("bbc_news", "debian_desc", "20ng_etm", "arxiv_100k")
SIZES = (20, 100, 500)
OURS = "annealvi"
LIBRARIES = {library.name: library for library in (SCIKIT_LEARN, *RIVALS)}
COMPARED = ("scikit-learn", "tomotopy")
#: With at least this many topics, other libraries are fitted only with --slow-rivals.
SLOW = 500
#: Number of validation documents on which the fold-in is chosen.
CHOOSERS = 500
BUILDS = ("base", "head")


@dataclass
class Rival:
    """The fit of another library: its seconds, and the seconds until its score reaches ours."""

    seconds: float
    held_out: float
    reached: float | None


@dataclass
class Row:
    """The measurements for one corpus and K; lists have one value for each round."""

    corpus: str
    n_topics: int
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"base": [], "head": []})
    megabytes: dict[str, list[float]] = field(default_factory=lambda: {"base": [], "head": []})
    held_out: dict[str, float] = field(default_factory=dict)
    rivals: dict[str, Rival] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.corpus}, {self.n_topics}"

    def ratio(self) -> float:
        return ratio(self.seconds["base"], self.seconds["head"])

    def save(self) -> dict[str, Any]:
        return asdict(self)


def fit(site: Path, library: str, row: Row, seed: int, folder: Path | None = None) -> dict:
    """Make one fit in a new process; with `folder`, write its topics there."""
    words = [library, row.corpus, str(row.n_topics), str(seed)]
    if folder is not None:
        folder.mkdir()
        words += ["--topics", str(folder)]
    printed = output(run_module(site, "bench.speed.one_fit", *words))
    return json.loads(printed.splitlines()[-1])


def topics(folder: Path, look: int) -> np.ndarray:
    return np.load(folder / f"{look}.npy").astype(np.float64)


def held_out(folder: Path, looks: int, documents: splits.Split) -> tuple[fold_in.FoldIn, float]:
    """Choose the fold-in with the best score of the last topics; return it and the score."""
    last = topics(folder, looks - 1)
    chosen = fold_in.choose(last, documents.validation[:CHOOSERS])
    return chosen, float(chosen.score(last, documents.test))


def time_ours(sites: dict[str, Path], row: Row, rounds: int) -> None:
    """Fit with both builds in each round; base and head take turns in being first."""
    for seed in range(rounds):
        for build in BUILDS if seed % 2 == 0 else BUILDS[::-1]:
            measured = fit(sites[build], OURS, row, seed)
            row.seconds[build].append(measured["seconds"])
            row.megabytes[build].append(measured["megabytes"])


def score_ours(sites: dict[str, Path], row: Row, documents: splits.Split) -> None:
    for build, site in sites.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "topics")
            fit(site, OURS, row, 0, folder)
            row.held_out[build] = held_out(folder, 1, documents)[1]


def measure_rival(site: Path, name: str, row: Row, documents: splits.Split) -> Rival:
    """Fit once, and score the topics during the fit until the score of head is reached."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "topics")
        measured = fit(site, name, row, 0, folder)
        looks = measured["looks"]
        chosen, final = held_out(folder, len(looks), documents)
        scores = (chosen.score(topics(folder, look), documents.test) for look in range(len(looks)))
        reached = first(looks, scores, row.held_out["head"])
    return Rival(measured["seconds"], final, reached)


def first(seconds: list[float], scores: Any, least_score: float) -> float | None:
    """The seconds at the first score of at least `wanted`; later scores are not computed."""
    return next(
        (at for at, score in zip(seconds, scores, strict=False) if score >= least_score), None
    )


def usable(names: list[str]) -> list[str]:
    """The libraries that are installed and work; print why other libraries are skipped."""
    installed = []
    for name in names:
        try:
            LIBRARIES[name].adapter()
        except ImportError as error:
            print(f"{name} is skipped: {error}", file=sys.stderr)
        else:
            installed.append(name)
    return installed


def report(rows: list[Row]) -> str:
    """The tables."""
    ours = [
        [
            str(row),
            *(f"{median(row.seconds[build]):.2f}" for build in BUILDS),
            f"{row.ratio():.2f}",
            *(f"{median(row.megabytes[build]):.1f}" for build in BUILDS),
            *(f"{row.held_out[build]:.4f}" for build in BUILDS),
        ]
        for row in rows
    ]
    header = ["corpus, K", "CPU s, base", "head", "times as fast"]
    header += ["peak MB, base", "head", "held out, base", "head"]
    paragraphs = [table(header, ours), average(rows)]
    theirs = [
        [
            str(row),
            name,
            f"{rival.seconds:.1f}",
            f"{rival.seconds / median(row.seconds['head']):.1f}",
            f"{rival.held_out:.4f}",
            f"{row.held_out['head']:.4f}",
            *(
                ("not reached", "–")
                if rival.reached is None
                else (f"{rival.reached:.1f}", f"{rival.reached / median(row.seconds['head']):.1f}")
            ),
        ]
        for row in rows
        for name, rival in row.rivals.items()
    ]
    if theirs:
        header = ["corpus, K", "library", "CPU s", "times ours", "held out", "ours"]
        header += ["CPU s to ours", "times ours"]
        paragraphs.append(table(header, theirs))
    return "\n\n".join(paragraphs)


def average(rows: list[Row]) -> str:
    """Summarise all rows in one line."""
    ratios = [row.ratio() for row in rows]
    slowest = min(rows, key=Row.ratio)
    return (
        f"On average head is {geometric_mean(ratios):.2f} times as fast (geometric mean) and takes "
        f"{mean(1 / each for each in ratios):.3f} of base's seconds (mean). "
        f"Least: {slowest}, {slowest.ratio():.2f}."
    )


def measure(row: Row, sites: dict[str, Path], rounds: int, rivals: list[str]) -> bool:
    """Measure a row; return whether the fits of all other libraries have worked."""
    documents = splits.load(row.corpus)
    time_ours(sites, row, rounds)
    score_ours(sites, row, documents)
    worked = True
    for name in rivals:
        try:
            row.rivals[name] = measure_rival(sites["head"], name, row, documents)
        except RuntimeError as error:
            print(f"{row}, {name}: {error}", file=sys.stderr)
            worked = False
    return worked


def main() -> None:
    options = parser(__doc__)
    options.add_argument("base")
    options.add_argument("head", nargs="?", default="HEAD")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--corpora", nargs="+", default=CORPORA, choices=list(splits.CORPORA))
    options.add_argument("--topics", nargs="+", type=int, default=SIZES)
    options.add_argument("--rivals", nargs="*", default=COMPARED, choices=COMPARED)
    options.add_argument("--slow-rivals", action="store_true", help=f"also at K >= {SLOW}")
    options.add_argument("--json", type=Path)
    arguments = options.parse_args()
    if arguments.rounds < 1:
        options.error("--rounds must be at least 1")
    # the processes run in other folders
    place = Path(os.environ[datasets.DATA_VARIABLE]).resolve()
    os.environ[datasets.DATA_VARIABLE] = str(place)
    # the evaluator fits a model to one document, which causes this warning
    warnings.filterwarnings("ignore", "The perplexity of X", RuntimeWarning)
    rivals = usable(arguments.rivals)
    rows = []
    worked = True
    with tempfile.TemporaryDirectory() as folder:
        sites = {name: install(getattr(arguments, name), Path(folder, name)) for name in BUILDS}
        for row in (Row(corpus, size) for corpus in arguments.corpora for size in arguments.topics):
            compared = rivals if arguments.slow_rivals or row.n_topics < SLOW else []
            try:
                worked &= measure(row, sites, arguments.rounds, compared)
            except (FileNotFoundError, RuntimeError) as error:
                print(f"{row} is left out: {error}", file=sys.stderr)
                worked = False
                continue
            rows.append(row)
            print(json.dumps(row.save()), file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(
                    json.dumps([row.save() for row in rows], indent=1), "utf-8"
                )
    if rows:
        about = machine.describe()
        print(f"{about['processor']}, {about['cores']} cores, kernels {about['instruction_set']}\n")
        print(report(rows))
    raise SystemExit(0 if worked else 1)


if __name__ == "__main__":
    main()
