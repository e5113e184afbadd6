"""Speed of one online pass: against scikit-learn, and of two threads against one.

    make bench

One thread is timed in CPU seconds of that thread, two threads against one in wall
seconds.  Baseline and method take turns, and the ratio that the table at the end of
the output gives is the median over the pairs: machines drift.  Two threads come first,
before another library has filled the process's heap.
"""

from __future__ import annotations

import time

import pytest
from adapters import annealvi_lda, scikit_learn
from pairs import run
from problems import PROBLEMS


def load(problem):
    try:
        return problem.load()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("start", ["random", "constant"])
@pytest.mark.benchmark(timer=time.perf_counter, group="two threads, wall")
def test_two_threads(benchmark, problem, start):
    """Against one thread."""
    X = load(problem)
    same = start == "random"
    run(
        benchmark,
        f"{problem}: two threads, {'same trajectory' if same else 'constant start'}",
        time.perf_counter,
        lambda: annealvi_lda.start(problem, X, same_trajectory=same),
        lambda: annealvi_lda.start(problem, X, n_threads=2, same_trajectory=same),
    )


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("start", ["random", "constant"])
@pytest.mark.benchmark(timer=time.thread_time, group="one thread, CPU")
def test_one_thread(benchmark, problem, start):
    """Against scikit-learn: on its trajectory, or with gamma started from ones."""
    X = load(problem)
    run(
        benchmark,
        f"{problem}: {'same trajectory' if start == 'random' else 'constant start'}",
        time.thread_time,
        lambda: scikit_learn.start(problem, X),
        lambda: annealvi_lda.start(problem, X, same_trajectory=start == "random"),
    )
