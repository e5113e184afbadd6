"""What learning a temperature costs: a pass of VT and of LVT against one of AVI.

    make bench

CPU seconds of one thread, minibatches of 256, K = 100, tau = 64.  All passes run at T = 2.  The
learned temperatures are damped so strongly that they stay there, but all the work of learning
them is done.  The passes take turns; the ratio is the planned pass (AVI) to the learned one.
"""

from __future__ import annotations

import time

import pytest

from annealvi import LocalVariational, TemperedLDA, Variational
from bench.problems import PROBLEMS
from bench.speed.pairs import run

KINDS = {
    "VT": Variational(start=2.0, damping=1e-9),
    "LVT": LocalVariational(start=2.0, damping=1e-9),
}
#: The quick problems among those with K = 100.
SOME = [p for p in PROBLEMS if p.n_topics == 100 and p.corpus != "arxiv_100k"]


def start(problem, X, temperature):
    """One pass of `partial_fit`, from a model that has seen one minibatch."""
    lda = TemperedLDA(
        problem.n_topics,
        total_samples=X.shape[0],
        batch_size=problem.batch_size,
        learning_offset=64,
        random_state=0,
        n_jobs=1,
        temperature=temperature,
        preset="sklearn",
    )
    lda.partial_fit(X[: problem.batch_size])
    return lambda: lda.partial_fit(X)


@pytest.mark.parametrize("problem", SOME, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.benchmark(timer=time.thread_time, group="learned temperatures, CPU")
def test_learned_temperature(benchmark, load, problem, kind):
    """A learned temperature against a fixed one."""
    X = load(problem)
    run(
        benchmark,
        f"{problem}: {kind} against AVI",
        time.thread_time,
        lambda: start(problem, X, 2.0),
        lambda: start(problem, X, KINDS[kind]),
    )
