"""Speed of one online pass, compared with every library, and of two threads compared with one.

    make bench

One thread is timed in CPU seconds of the process.  Two threads are compared with one in elapsed
seconds.  Baseline and methods are timed alternately, because the speed of a machine changes.  The
table at the end of the output contains the medians of the rounds' ratios.  Two threads are timed
first, before other libraries fill the heap of the process.  On a machine that has other work, the
figures of two threads are meaningless, because the threads then wait for each other.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from bench.adapters import RIVALS, SCIKIT_LEARN, annealvi_lda
from bench.problems import PROBLEMS, SMALL_PROBLEMS
from bench.speed.pairs import run

problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)
#: The number of calls that are timed together if one call would be too short.
MANY_CALLS = 50


def row(problem):
    return f"{problem.corpus}, {problem.n_topics}"


@pytest.mark.parametrize("problem", SMALL_PROBLEMS, ids=str)
@pytest.mark.parametrize("call", ["partial_fit", "transform"])
@pytest.mark.benchmark(timer=time.perf_counter, group="two threads, small")
def test_two_threads_with_little_to_do(benchmark, load, problem, call):
    """Compare two threads with one for little work, where they should not be slower."""
    X = load(problem)
    repeats = MANY_CALLS if X.shape[0] < 100 else 2
    if call == "partial_fit":
        start = partial(annealvi_lda.start, problem, X, repeats=repeats)
    else:
        start = partial(annealvi_lda.start_transform, problem, X, X, repeats=repeats)
    size = f"{X.shape[0]:,} document{'s' if X.shape[0] > 1 else ''}"
    run(
        benchmark,
        f"{call}, {size}, K={problem.n_topics}: two threads",
        time.perf_counter,
        start,
        partial(start, n_threads=2),
        rounds=9,
        row=f"`{call}`, {size}, K = {problem.n_topics}",
    )


@problems
@pytest.mark.benchmark(timer=time.perf_counter, group="two threads")
def test_two_threads(benchmark, load, problem):
    """Compare two threads with one thread."""
    X = load(problem)
    run(
        benchmark,
        f"{problem}: two threads",
        time.perf_counter,
        lambda: annealvi_lda.start(problem, X),
        {
            "float64": lambda: annealvi_lda.start(problem, X, n_threads=2),
        },
        rounds=problem.rounds,
        row=row(problem),
        library="one thread",
    )


@problems
@pytest.mark.benchmark(timer=time.process_time, group="pass")
def test_scikit_learn(benchmark, load, adapter, problem):
    """Compare with scikit-learn: with the same steps, and with constant gamma in both dtypes."""
    X = load(problem)
    theirs = adapter(SCIKIT_LEARN)
    run(
        benchmark,
        f"{problem}: scikit-learn",
        time.process_time,
        lambda: theirs.start(problem, X),
        {
            "same trajectory": lambda: annealvi_lda.start(problem, X, same_trajectory=True),
            "float64": lambda: annealvi_lda.start(problem, X),
            "float32": lambda: annealvi_lda.start(problem, X, dtype=np.float32),
        },
        rounds=problem.rounds,
        warmup_rounds=0,
        row=row(problem),
        library="scikit-learn",
    )


@problems
@pytest.mark.parametrize("library", RIVALS, ids=lambda library: library.name)
@pytest.mark.benchmark(timer=time.process_time, group="pass")
def test_rival(benchmark, load, adapter, problem, library):
    """Compare passes with constant gamma, in both dtypes, with another library."""
    X = load(problem)
    theirs = adapter(library)
    run(
        benchmark,
        f"{problem}: {library.name}",
        time.process_time,
        lambda: theirs.start(problem, X),
        {
            "float64": lambda: annealvi_lda.start(problem, X),
            "float32": lambda: annealvi_lda.start(problem, X, dtype=np.float32),
        },
        rounds=problem.rounds,
        warmup_rounds=0,
        row=row(problem),
        library=library.name,
    )
