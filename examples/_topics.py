"""Functions for the examples of topic models: documents, a fit with its learning curve, options."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from _shared import at_least_one, or_exit
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import train_test_split

from annealvi import TemperedLDA
from annealvi.callbacks import HeldOut
from annealvi.datasets import load_arxiv_abstracts, load_corpus
from annealvi.temperature import Temperature

CORPUS = "arxiv_100k"
N_HELD_OUT = 2000  # of the large corpus


class Problem(NamedTuple):
    """Documents and how they are fitted."""

    train: sparse.csr_matrix
    held_out: sparse.csr_matrix
    settings: dict[str, Any]


def parser(description: str, output: str) -> argparse.ArgumentParser:
    """Return a parser with the options that both scripts have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--seeds", type=int, default=2, help="fits of each method")
    options.add_argument("--full", action="store_true", help="fit a large corpus")
    options.add_argument("--corpus", default=CORPUS, help="the large corpus")
    options.add_argument("--documents", type=int, default=30_000, help="of the large corpus")
    options.add_argument("--topics", type=int, help="by default 30, with --full 100")
    options.add_argument("--passes", type=int, help="by default 10, with --full 4")
    options.add_argument("--jobs", type=int, default=2, help="threads of a fit")
    options.add_argument("--output", default=output, help="file of the figure")
    return options


def load(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Problem:
    """Return the bundled abstracts, or with --full the first documents of the large corpus."""
    at_least_one(parser, arguments, ("seeds", "documents", "topics", "passes"))
    if arguments.full:
        X = or_exit(load_corpus, arguments.corpus).data.astype(np.float32)
        n = arguments.documents
        train = X[:n]
        held_out = X[n:][:N_HELD_OUT]
        settings = dict(n_components=100, batch_size=100, max_iter=4)
    else:
        abstracts = load_arxiv_abstracts().data
        train, held_out = train_test_split(abstracts, test_size=300, random_state=0)
        settings = dict(n_components=30, batch_size=32, max_iter=10)
    if held_out.shape[0] == 0:
        parser.error("--documents leaves none of the corpus to hold out")
    for name, value in (("n_components", arguments.topics), ("max_iter", arguments.passes)):
        if value is not None:
            settings[name] = value
    return Problem(train, held_out, settings)


def fit(problem: Problem, temperature: Temperature, points: int, **options: Any) -> TemperedLDA:
    """Fit once, with a learning curve of `points` points in ``history_``."""
    n_passes = problem.settings["max_iter"]
    return TemperedLDA(
        **problem.settings,
        learning_method="online",
        learning_decay=0.7,
        preset="sklearn",  # plain mean-field inference, from random topics
        temperature=temperature,
        callback=HeldOut(problem.held_out, every=n_passes / points),
        **options,
    ).fit(problem.train)


def held_out_limits(fits: Iterable[TemperedLDA], below: float, above: float) -> tuple[float, float]:
    """Return limits for held-out curves that leave out the low beginnings, to tell ends apart.

    The room below the worst end and above the best value is given in parts of the distance
    between these two.
    """
    curves: list[NDArray] = [lda.history_["held_out_log_likelihood"] for lda in fits]
    best = max(curve.max() for curve in curves)
    worst = min(curve[-1] for curve in curves)
    return worst - below * (best - worst), best + above * (best - worst)
