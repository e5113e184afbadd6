"""Speed of one online pass: against every library, and of two threads against one.

    make bench

One thread is timed in CPU seconds of the process, two threads against one in wall seconds.
Baseline and methods take turns, because machines drift; the table at the end of the output has
the medians of the ratios over rounds.  Two threads are timed first, before another library has
filled the process's heap.  Their figures mean nothing on a machine that is busy with other work,
because the threads then wait for each other.
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
#: Calls that are timed together where one would be too short.
MANY_CALLS = 50


def row(problem):
    return f"{problem.corpus}, {problem.n_topics}"


@pytest.mark.parametrize("problem", SMALL_PROBLEMS, ids=str)
@pytest.mark.parametrize("call", ["partial_fit", "transform"])
@pytest.mark.benchmark(timer=time.perf_counter, group="two threads, small")
def test_two_threads_with_little_to_do(benchmark, load, problem, call):
    """Two threads must not be slower than one."""
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
    """Against one thread."""
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
    """On scikit-learn's trajectory, and from constant gamma in both dtypes."""
    X, theirs = load(problem), adapter(SCIKIT_LEARN)
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
    """From constant gamma, in both dtypes."""
    X, theirs = load(problem), adapter(library)
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
