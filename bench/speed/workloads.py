"""The work that compare.py times, in a process for each build.

The process prints the names of its problems on one line, separated by tabs.  Then it reads lines
with one name each, and prints the CPU seconds that the problem took.  It also works with older
commits of the package.  Problems that a commit does not support are left out, with a message of
compare.py.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import annealvi
from annealvi import TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, make_shape_mixture, make_topic_corpus
from bench.parameters import NAMES, mean_field

#: A function that prepares a problem, and returns the function that is timed.
Problem = Callable[[], Callable[[], Any]]


def estimator(n_topics: int) -> TemperedLDA:
    """Make an estimator for online mean-field steps at T = 1, which all commits support."""
    return TemperedLDA(
        n_topics,
        total_samples=3000,
        batch_size=256,
        random_state=0,
        learning_method="online",
        **mean_field(n_topics),
    )


def passes(X: Any, n_topics: int) -> Callable[[], Any]:
    """Return one online pass; one minibatch was fitted before."""
    lda = estimator(n_topics).partial_fit(X[:256])
    return lambda: lda.partial_fit(X)


def transform(X: Any, n_topics: int) -> Callable[[], Any]:
    lda = estimator(n_topics).partial_fit(X[:256])
    return lambda: lda.transform(X)


def small_steps(X: Any, n_topics: int) -> Callable[[], Any]:
    """Return steps with four documents each."""
    lda = estimator(n_topics).partial_fit(X[:256])
    return lambda: [lda.partial_fit(X[i : i + 4]) for i in range(0, 100, 4)]


def stream(X: Any, n_topics: int) -> Callable[[], Any]:
    """Return the fit of a whole stream with the present defaults, in portions of 256."""

    def run() -> None:
        lda = TemperedLDA(n_topics, random_state=0, total_samples=X.shape[0])
        for start in range(0, X.shape[0], 256):
            lda.partial_fit(X[start : start + 256])

    return run


def factors(X: Any) -> Callable[[], Any]:
    fmm = annealvi.TemperedFMM(8, noise_variance=0.1, max_iter=50, random_state=0)
    return lambda: fmm.fit(X)


def problems() -> dict[str, Problem]:
    """The problems that this commit supports."""
    long = load_arxiv_abstracts().data[:1500]
    short = make_topic_corpus(4000, 4000, 20, document_length=25, random_state=0).data
    supported: dict[str, Problem] = {
        "abstracts, K=20": lambda: passes(long, 20),
        "abstracts, K=100": lambda: passes(long, 100),
        "abstracts, K=100, float32": lambda: passes(long.astype(np.float32), 100),
        "abstracts, K=500": lambda: passes(long, 500),
        "short documents, K=100": lambda: passes(short, 100),
        "transform of abstracts, K=100": lambda: transform(long, 100),
        "small minibatches, K=100": lambda: small_steps(long, 100),
    }
    if "preset" in NAMES:
        supported["default fit of abstracts, K=20"] = lambda: (
            lambda: TemperedLDA(20, random_state=0).fit(long[:500])
        )
        supported["default stream of abstracts, K=50"] = lambda: stream(long, 50)
    if hasattr(annealvi, "TemperedFMM"):
        supported["factorial mixture, K=8"] = lambda: factors(
            make_shape_mixture(1000, random_state=0).data
        )
    return supported


def main() -> None:
    known = problems()
    print(*known, sep="\t", flush=True)
    warnings.simplefilter("ignore")  # warnings that a short fit has not converged
    with threadpool_limits(1):
        for line in sys.stdin:
            run = known[line.rstrip("\n")]()
            began = time.process_time()
            run()
            print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    main()
