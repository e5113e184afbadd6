"""Speed of the multinomial mixture: five iterations, compared with five batch passes of LDA.

    make bench

Both start from the same topics, at T = 1.  LDA computes in float32, and the mixture in float64.
Two threads are compared with one.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from annealvi import TemperedLDA, TemperedMultinomialMixture
from annealvi.datasets import load_corpus
from bench.speed.pairs import run

PASSES = 5
CORPORA = pytest.mark.parametrize("name", ["bbc_news", "debian_desc", "labelled_20ng"])
SIZES = pytest.mark.parametrize("K", [20, 100])


def starts(name, K):
    X = load_corpus(name).data
    topics = np.random.RandomState(0).gamma(1.0, 1.0, (K, X.shape[1])) + 0.01
    options = dict(init=topics, temperature=1, max_iter=PASSES)

    def lda(n_jobs=1):
        one = TemperedLDA(K, learning_method="batch", n_jobs=n_jobs, **options)
        return lambda: one.fit(X)

    def mixture(n_jobs=1):
        one = TemperedMultinomialMixture(K, tol=0, n_jobs=n_jobs, **options)
        return lambda: one.fit(X)

    return lda, mixture


@CORPORA
@SIZES
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.benchmark(timer=time.perf_counter, group="multinomial mixture")
def test_against_a_pass_of_lda(benchmark, name, K, n_threads):
    lda, mixture = starts(name, K)
    role = f"mixture, {PASSES} iterations, {name}, K={K}, {n_threads} thread(s): LDA in batch"
    run(
        benchmark,
        role,
        time.perf_counter,
        lambda: lda(n_threads),
        lambda: mixture(n_threads),
        rounds=3,
    )


@CORPORA
@SIZES
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.benchmark(timer=time.perf_counter, group="multinomial mixture, two threads")
def test_two_threads(benchmark, name, K):
    _, mixture = starts(name, K)
    role = f"mixture, {name}, K={K}: two threads over one"
    run(benchmark, role, time.perf_counter, mixture, lambda: mixture(2), rounds=3)
