"""A stream in small portions (see portions.py), and a long stream in a new process (stream.py).

make bench
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from annealvi.datasets import DATA_VARIABLE
from bench.adapters import SCIKIT_LEARN, annealvi_lda
from bench.problems import PROBLEMS, STREAM_PROBLEM
from bench.speed.pairs import run
from bench.speed.portions import CORPORA, SIZES, cut

PORTIONS_PROBLEMS = [p for p in PROBLEMS if p.corpus in CORPORA and p.n_topics in SIZES]


@pytest.mark.parametrize("problem", PORTIONS_PROBLEMS, ids=str)
@pytest.mark.benchmark(timer=time.process_time, group="portions")
def test_small_portions(benchmark, load, adapter, problem):
    """Time one call of partial_fit for each minibatch, with the same steps as scikit-learn."""
    X = load(problem)
    theirs = adapter(SCIKIT_LEARN)
    portions = cut(X, problem.batch_size)

    def start(library, **options):
        call = library.start_portions(problem, X, **options)
        return lambda: [call(portion) for portion in portions]

    run(
        benchmark,
        f"{problem}: scikit-learn, small portions",
        time.process_time,
        lambda: start(theirs),
        lambda: start(annealvi_lda, same_trajectory=True),
        rounds=problem.rounds,
        warmup_rounds=0,
        row=f"{problem.corpus}, {problem.n_topics}",
    )


@pytest.mark.benchmark(timer=time.perf_counter, group="stream")
def test_stream(benchmark):
    home = Path(os.environ[DATA_VARIABLE])
    if not (home / f"{STREAM_PROBLEM.corpus}.npz").is_file():
        pytest.skip(f"there is no corpus {STREAM_PROBLEM.corpus!r} in {home}")
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from /proc/self, which this system does not have")
    command = [sys.executable, "-m", "bench.speed.stream"]

    def measured():
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    benchmark.extra_info["records"] = benchmark.pedantic(measured, rounds=1)
