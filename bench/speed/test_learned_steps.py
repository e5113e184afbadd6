"""What learning a temperature costs: a pass of VT and of LVT against one of AVI.

    make bench

CPU seconds of one thread, minibatches of 256, K = 100, tau = 64.  All run at T = 2: the
learned ones are damped so much that they stay there, and do all that learning takes.  They
take turns; the ratio is that of the planned pass to the other.
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
#: Of the problems, those of K = 100 that are quick.
SOME = [p for p in PROBLEMS if p.n_topics == 100 and p.corpus != "arxiv_100k"]


def start(problem, X, temperature):
    """A pass of `partial_fit`, from a model that has seen one minibatch."""
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
    """Against a temperature that is given."""
    X = load(problem)
    run(
        benchmark,
        f"{problem}: {kind} against AVI",
        time.thread_time,
        lambda: start(problem, X, 2.0),
        lambda: start(problem, X, KINDS[kind]),
    )
