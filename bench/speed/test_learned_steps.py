"""The time that learning a temperature takes: passes with learned and with fixed temperatures.

    make bench

Times are CPU seconds of one thread, with minibatches of 256, K = 100 and tau = 64.  All passes have
T = 2.  The learned temperatures (VT for all documents, LVT for each document) are damped so
strongly that they stay at 2, but all the work of learning is done.  Passes are timed alternately.
The ratio is that of a pass with a fixed temperature (AVI) to a pass with a learned temperature.
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
#: The smaller problems with K = 100.
SOME = [p for p in PROBLEMS if p.n_topics == 100 and p.corpus != "arxiv_100k"]


def start(problem, X, temperature):
    """Return one pass of `partial_fit`; one minibatch was fitted before."""
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
    """Compare a learned temperature with a fixed one."""
    X = load(problem)
    run(
        benchmark,
        f"{problem}: {kind} against AVI",
        time.thread_time,
        lambda: start(problem, X, 2.0),
        lambda: start(problem, X, KINDS[kind]),
    )
