"""The default against Gibbs sampling on documents on which nothing was chosen.

    python -m bench.studies.confirmation [--topics 20 100 500] [--seeds 3]

The documents are rows 300,000 to 320,000 of ``arxiv_big`` and rows 60,000 to 80,000 of
``imdb_100k``: a tenth for validation and a tenth for the test, as in splits.py.  Validation
documents choose how topics are evaluated (fold_in.py) and, for tomotopy, one of three values of
eta; nothing else.  Printed is one row for each method: held-out log-likelihood per word of the
test documents, coherence (NPMI), diversity, stability between seeds, and CPU seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from bench import parser
from bench.adapters import RIVALS, mean_topics
from bench.markdown import spread
from bench.studies import fold_in, splits
from bench.studies.ablation import qualities
from bench.studies.study import methods
from bench.studies.study.scores import CHOOSERS
from bench.studies.study.store import Cell

ROWS = {"arxiv_big": (300_000, 320_000), "imdb_100k": (60_000, 80_000)}


class Fits(NamedTuple):
    """The topics of a method from each seed, and the CPU seconds of each fit."""

    topics: list[NDArray[np.float64]]
    seconds: list[float]


def load(corpus: str) -> splits.Split:
    """Split the rows of a corpus as the quality study does."""
    X = sparse.csr_matrix(load_corpus(corpus).data)[slice(*ROWS[corpus])]
    return splits.split(X[:, X.getnnz(axis=0) > 0])


def ours(X: sparse.csr_matrix, n_topics: int, seeds: int) -> Fits:
    found = Fits([], [])
    for seed in range(seeds):
        began = time.process_time()
        lda = TemperedLDA(n_topics, random_state=seed).fit(X)
        found.seconds.append(time.process_time() - began)
        found.topics.append(mean_topics(lda.components_))
    return found


def tomotopy(
    adapter: Any, cell: Cell, X: sparse.csr_matrix, configuration: methods.Configuration, seeds: int
) -> tuple[Fits, Fits]:
    """The last sample, and the mean of every tenth of the last hundred."""
    found = Fits([], []), Fits([], [])
    for seed in range(seeds):
        task = methods.Task(adapter, configuration, cell, X, seed)
        for fits, fitted in zip(found, methods.tomotopy(task), strict=True):
            fits.topics.append(fitted.topics)
            fits.seconds.append(fitted.seconds)
    return found


def row(name: str, fits: Fits, split: splits.Split) -> tuple[float, str]:
    """The validation score at seed 0, and a line of the table."""
    chosen = fold_in.choose(fits.topics[0], split.validation[:CHOOSERS])
    validation = chosen.score(fits.topics[0], split.validation)
    test = [chosen.score(topics, split.test) for topics in fits.topics]
    coherence, diversity, stability = qualities(fits.topics, split.train)
    return validation, (
        f"| {name} | {spread(test)} | {coherence:.3f} | {diversity:.2f} | {stability:.2f} "
        f"| {np.mean(fits.seconds):.2f} |"
    )


def rows(split: splits.Split, cell: Cell, seeds: int) -> Iterator[str]:
    """A line for ours and, if tomotopy is installed, two for its best eta."""
    yield row("annealvi", ours(split.train, cell.n_topics, seeds), split)[1]
    try:
        adapter = next(library for library in RIVALS if library.name == "tomotopy").adapter()
    except ImportError:
        return
    found = [
        tomotopy(adapter, cell, split.train, configuration, seeds)
        for configuration in methods.GIBBS
    ]
    for number, name in enumerate(["tomotopy, last sample", "tomotopy, averaged"]):
        lines = [
            row(f"{name}, {configuration.name}", fits[number], split)
            for configuration, fits in zip(methods.GIBBS, found, strict=True)
        ]
        yield max(lines)[1]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    arguments = options.parse_args()
    for corpus in ROWS:
        split = load(corpus)
        for n_topics in arguments.topics:
            print(f"\n**{corpus}, K = {n_topics}** ({split.train.shape[0]} documents)\n")
            print("| | held out | NPMI | diversity | stability | seconds |")
            print("|---|---|---|---|---|---|", flush=True)
            for line in rows(split, Cell(corpus, n_topics), arguments.seeds):
                print(line, flush=True)


if __name__ == "__main__":
    main()
