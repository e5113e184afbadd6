"""Where the corpora are, and a table of ratios at the end of the run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median

import pytest
from threadpoolctl import threadpool_limits

from annealvi import datasets

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ.setdefault(datasets.DATA_VARIABLE, str(HERE.parent / datasets.DEFAULT_DATA))


@pytest.fixture(autouse=True)
def single_threaded_blas():
    """Threads are compared where they are asked for; BLAS must not bring its own."""
    with threadpool_limits(1, user_api="blas"):
        yield


def pytest_terminal_summary(terminalreporter):
    """The median over rounds of baseline over method, which took turns."""
    session = getattr(terminalreporter.config, "_benchmarksession", None)
    rows = [b for b in session.benchmarks if "baseline" in b.extra_info] if session else []
    if not rows:
        return
    terminalreporter.section("how many times as fast as the baseline: medians over pairs")
    terminalreporter.line(f"{'':<56}{'ratio':>8}{'method':>12}{'baseline':>12}")
    for bench in rows:
        baseline, own = bench.extra_info["baseline"], bench.stats.data
        ratio = median(b / t for b, t in zip(baseline, own, strict=True))
        terminalreporter.line(
            f"{bench.extra_info['role']:<56}{ratio:>8.2f}{median(own):>10.4f} s"
            f"{median(baseline):>10.4f} s"
        )
