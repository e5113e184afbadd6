"""What learning a temperature costs: a pass of VT and of LVT against one of AVI.

    make bench

CPU seconds of one thread, minibatches of 256, K = 100, tau = 64.  The three cool alike, from 3.9
with a time constant of about a quarter of the pass, and take turns; the ratio is that of
the annealed pass to the other.
"""

from __future__ import annotations

import time

import pytest
from pairs import run
from problems import BATCH_SIZE, PROBLEMS

from annealvi import Annealed, LocalVariational, TemperedLDA, Variational

KINDS = {
    "VT": Variational(start=3.9, damping=0.1),
    "LVT": LocalVariational(damping=0.1),
}


def start(problem, X, temperature):
    """A pass of `partial_fit`, from a model that has seen one minibatch."""
    lda = TemperedLDA(
        problem.n_topics,
        total_samples=X.shape[0],
        batch_size=BATCH_SIZE,
        learning_offset=64,
        random_state=0,
        n_jobs=1,
        temperature=temperature,
    )
    lda.partial_fit(X[:BATCH_SIZE])
    return lambda: lda.partial_fit(X)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.n_topics == 100], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.benchmark(timer=time.thread_time, group="learned temperatures, CPU")
def test_learned_temperature(benchmark, problem, kind):
    """Against a temperature that is planned."""
    try:
        X = problem.load()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    run(
        benchmark,
        f"{problem}: {kind} against AVI",
        time.thread_time,
        lambda: start(problem, X, Annealed(passes=1)),
        lambda: start(problem, X, KINDS[kind]),
    )
