"""Where the corpora are, and a table of ratios at the end of the run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
    """Each group's medians against its baseline, which was timed in the same run."""
    session = getattr(terminalreporter.config, "_benchmarksession", None)
    if session is None:
        return
    groups: dict[str, dict[str, object]] = {}
    for bench in session.benchmarks:
        if bench.extra_info.get("role") and bench.stats.rounds:
            groups.setdefault(bench.group, {})[bench.extra_info["role"]] = bench.stats
    if not groups:
        return
    terminalreporter.section("ratios of medians")
    terminalreporter.line(f"{'':<52}{'ratio':>8}{'median':>12}{'min to max':>22}")
    for group, roles in groups.items():
        baseline = roles.get("baseline")
        for role, stats in roles.items():
            ratio = f"{baseline.median / stats.median:.2f}" if baseline else ""
            terminalreporter.line(
                f"{group + ', ' + role:<52}{ratio:>8}{stats.median:>10.4f} s"
                f"{stats.min:>12.4f} to {stats.max:.4f}"
            )
