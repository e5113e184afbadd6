"""Single parts of a pass, and the memory of a pass.

    make bench

The M-step updates lambda and computes exp(E log beta) from it.  `transform` receives documents that
were not fitted.  Times are CPU seconds of the process on one thread.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from bench.adapters import RIVALS, SCIKIT_LEARN, annealvi_lda
from bench.problems import TRANSFORM_PROBLEM, WIDE_PROBLEM
from bench.speed import memory
from bench.speed.pairs import run

LAZY_WORDS = 1_000
M_STEPS = 10


def many(m_step):
    """Several M-steps, because one is too short to time."""
    return lambda: [m_step() for _ in range(M_STEPS)]


@pytest.mark.parametrize("n_words", [None, LAZY_WORDS], ids=["dense", "lazy"])
@pytest.mark.benchmark(timer=time.process_time, group="parts")
def test_m_step(benchmark, load, adapter, n_words):
    """Time the M-step for a minibatch in which all words, or only some words, occur."""
    X = load(WIDE_PROBLEM)
    theirs = adapter(SCIKIT_LEARN)
    K = WIDE_PROBLEM.n_topics
    V = X.shape[1]
    n_words = V if n_words is None else n_words
    methods = {
        dtype: lambda dtype=dtype: many(annealvi_lda.start_m_step(K, V, n_words, dtype=dtype))
        for dtype in ("float64", "float32")
    }
    run(
        benchmark,
        f"{M_STEPS} M-steps, {n_words:,} of V={V:,} words, K={K}: scikit-learn",
        time.process_time,
        lambda: many(theirs.start_m_step(WIDE_PROBLEM, X)),
        methods,
        rounds=5,
        row=f"M-step, V = {V:,}, K = {K}, minibatch of {n_words:,} words",
    )


@pytest.mark.benchmark(timer=time.process_time, group="parts")
def test_transform(benchmark, load, adapter):
    """Compare `transform` with scikit-learn's, for topics learned from the same documents."""
    X = load(TRANSFORM_PROBLEM)
    theirs = adapter(SCIKIT_LEARN)
    problem = TRANSFORM_PROBLEM
    fitted = X[:1_000]
    methods = {
        dtype: lambda dtype=dtype: annealvi_lda.start_transform(problem, fitted, X, dtype=dtype)
        for dtype in (np.float64, np.float32)
    }
    run(
        benchmark,
        f"transform of {X.shape[0]:,} documents, K={problem.n_topics}: scikit-learn",
        time.process_time,
        lambda: theirs.start_transform(problem, fitted, X),
        {np.dtype(dtype).name: start for dtype, start in methods.items()},
        rounds=3,
        warmup_rounds=0,
        row=f"`transform` of {X.shape[0]:,} documents, K = {problem.n_topics}",
    )


@pytest.mark.parametrize("name", [*memory.OWN, SCIKIT_LEARN.name, *(r.name for r in RIVALS)])
@pytest.mark.benchmark(timer=time.perf_counter, group="memory")
def test_peak_memory(benchmark, load, adapter, name):
    """Measure the peak memory of one pass in a new process."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is read from /proc/self, which this system does not have")
    for library in (SCIKIT_LEARN, *RIVALS):
        if library.name == name:
            adapter(library)
    X = load(WIDE_PROBLEM)
    peak = benchmark.pedantic(memory.measured, args=(name,), rounds=1)
    benchmark.extra_info |= {
        "row": name,
        "megabytes": peak,
        "problem": f"{X.shape[0]:,} documents, V = {X.shape[1]:,}, K = {WIDE_PROBLEM.n_topics}",
    }
