"""The quality study: all methods, corpora, numbers of topics and seeds, scored in the same way.

    make quality

or one step after another:

    python -m bench.studies.quality fit [--methods tomotopy ...] [--topics 100] [--corpora ...]
    python -m bench.studies.quality score
    python -m bench.studies.quality report

`fit` fits and scores, `score` prints the scores, and `report` writes the tables and the figure of
docs/record/quality.md.  The documents are those of splits.py.  For each corpus and K, several
configurations of another library are fitted with seed 0.  The one with the best score on validation
documents is also fitted with the other seeds.  Fits and scores are kept in --folder and are not
repeated.  If results of other libraries are not in the folder, `report` reads them from
rivals.json, which it also writes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import CHECKOUT, parser
from bench.markdown import between_markers
from bench.speed import machine
from bench.studies import splits
from bench.studies.study import figure, fits, kept, summary, tables
from bench.studies.study.methods import FAMILIES, OURS
from bench.studies.study.store import Cell, Store

SIZES = (20, 100, 500)
DOCS = CHECKOUT / "docs" / "record" / "quality.md"
#: The results of other libraries, for machines that do not have their fits.
RIVALS = CHECKOUT / "bench" / "studies" / "rivals.json"
EVERYTHING = [*OURS, *FAMILIES]


def arguments() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("stage", choices=["fit", "score", "report"])
    options.add_argument("--folder", type=Path, default=CHECKOUT / "build" / "quality")
    options.add_argument("--corpora", nargs="+", choices=list(splits.CORPORA))
    options.add_argument("--topics", nargs="+", type=int, default=SIZES)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--methods", nargs="+", choices=[*FAMILIES, *OURS])
    options.add_argument(
        "--again", action="store_true", help="score: compute coherence, diversity, stability anew"
    )
    options.add_argument("--docs", type=Path, default=DOCS, help="report: the document to write")
    return options.parse_args()


def fit(store: Store, cells: list[Cell], names: list[str], seeds: list[int]) -> None:
    """Fit and score; print a line for each method.  Missing libraries are skipped."""
    for cell in cells:
        for name in names:
            if name in FAMILIES and FAMILIES[name].rival.version() is None:
                print(f"{name} is not installed, so it is skipped.")
                continue
            summary.append(store, cell, fits.fit(store, cell, name, seeds))


def report(store: Store, results: tables.Results, docs: Path) -> None:
    """Write the tables into the document, and the figure into the same folder."""
    about = machine.describe()
    versions = ", ".join(f"{name} {value}" for name, value in machine.versions().items())
    paragraphs = [
        f"{about['processor']}, {about['cores']} cores, {about['system']}. {versions}.",
        f"![Held-out log-likelihood against CPU seconds]({docs.stem}.png)",
    ]
    for heading, text, table in tables.sections(results):
        paragraphs += [f"### {heading}", text, table]
    between_markers(docs, "\n\n".join(paragraphs))
    figure.draw(results, docs.with_suffix(".png"))


def main() -> None:
    options = arguments()
    store = Store(options.folder)
    cells = [Cell(c, k) for c in options.corpora or splits.CORPORA for k in options.topics]
    if options.stage == "fit":
        fit(store, cells, options.methods or EVERYTHING, options.seeds)
        return
    results = {cell: summary.score(store, cell, options.again) for cell in cells}
    results = {cell: of_cell for cell, of_cell in results.items() if of_cell}
    if options.stage == "report":
        for cell, of_cell in kept.read(RIVALS).items():
            results[cell] = of_cell | results.get(cell, {})
        kept.write(RIVALS, results)
        report(store, results, options.docs)
    else:
        for of_cell in results.values():
            print(*of_cell.values(), sep="\n")


if __name__ == "__main__":
    main()
