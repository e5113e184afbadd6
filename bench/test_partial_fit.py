"""Speed of one online pass: against scikit-learn, and of two threads against one.

    make bench

One thread is timed in CPU seconds, two threads against one in wall seconds.  The
ratios at the end of the output are baseline over method: larger is faster.
"""

from __future__ import annotations

import time

import pytest
from adapters import annealvi_lda, scikit_learn
from problems import PROBLEMS

ROUNDS = 7


def load(problem):
    try:
        return problem.load()
    except FileNotFoundError as error:
        pytest.skip(str(error))


def run(benchmark, group, role, make):
    """Time passes from fresh starts, so that each round does the same work."""
    benchmark.group = group
    benchmark.extra_info["role"] = role

    def setup():
        return (make(),), {}

    benchmark.pedantic(lambda one_pass: one_pass(), setup=setup, rounds=ROUNDS, warmup_rounds=1)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("library", ["baseline", "same trajectory", "constant start"])
@pytest.mark.benchmark(timer=time.thread_time)
def test_one_thread(benchmark, problem, library):
    """The baseline is scikit-learn."""
    X = load(problem)
    makers = {
        "baseline": lambda: scikit_learn.start(problem, X),
        "same trajectory": lambda: annealvi_lda.start(problem, X),
        "constant start": lambda: annealvi_lda.start(problem, X, same_trajectory=False),
    }
    run(benchmark, f"{problem}, CPU, scikit-learn", library, makers[library])


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("same_trajectory", [True, False], ids=["same", "constant"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_two_threads(benchmark, problem, same_trajectory, n_threads):
    """The baseline is one thread."""
    X = load(problem)
    run(
        benchmark,
        f"{problem}, wall, {'same' if same_trajectory else 'constant'}",
        "baseline" if n_threads == 1 else "two threads",
        lambda: annealvi_lda.start(
            problem, X, n_threads=n_threads, same_trajectory=same_trajectory
        ),
    )
