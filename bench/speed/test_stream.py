"""A long stream in a fresh process; see stream.py.

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
from bench.problems import STREAM_PROBLEM


@pytest.mark.benchmark(timer=time.perf_counter, group="stream")
def test_stream(benchmark):
    home = Path(os.environ[DATA_VARIABLE])
    if not (home / f"{STREAM_PROBLEM.corpus}.npz").is_file():
        pytest.skip(f"there is no corpus {STREAM_PROBLEM.corpus!r} in {home}")
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from /proc/self, which this system does not have")
    command = [sys.executable, "-m", "bench.speed.stream"]

    def run():
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    benchmark.extra_info["records"] = benchmark.pedantic(run, rounds=1)
