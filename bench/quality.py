"""The quality study: methods x corpora x K x seeds, by one evaluator.

    make quality

or, step by step,

    python bench/quality.py fit [--methods tomotopy BigARTM ...] [--topics 100] [--corpora ...]
    python bench/quality.py score
    python bench/quality.py report

Documents are those of splits.py.  Each rival has the configuration that validates best at
seed 0 in that corpus and K, and is fitted with it from the other seeds.  What has been
fitted or scored already is not done again.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from annealvi import datasets  # noqa: E402

os.environ.setdefault(datasets.DATA_VARIABLE, str(HERE.parent / datasets.DEFAULT_DATA))

import splits  # noqa: E402
from study import fits, summary  # noqa: E402
from study.methods import FAMILIES, OURS  # noqa: E402
from study.store import Cell, Store  # noqa: E402

SIZES = (20, 100, 500)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", choices=["fit", "score", "report"])
    parser.add_argument("--folder", type=Path, default=HERE.parent / "build" / "quality")
    parser.add_argument("--corpora", nargs="+", choices=list(splits.CORPORA))
    parser.add_argument("--topics", nargs="+", type=int, default=SIZES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=[*FAMILIES, *OURS])
    parser.add_argument("--again", action="store_true", help="score: coherence and so on anew")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    store = Store(options.folder)
    cells = [Cell(c, k) for k in options.topics for c in options.corpora or splits.CORPORA]
    if options.stage == "fit":
        for cell in cells:
            for name in options.methods or [*FAMILIES, *OURS]:
                done = fits.fit(store, cell, name, options.seeds)
                summary.append(store, cell, done)
    elif options.stage == "score":
        summary.score(store, cells, options.again)


if __name__ == "__main__":
    main()
