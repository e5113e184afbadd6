"""Fixtures of the timings, a table of ratios after the tests, and the data for the report."""

from __future__ import annotations

from statistics import median

import pytest
from threadpoolctl import threadpool_limits

from bench.speed import machine
from bench.speed.pairs import ratio

_skipped: dict[str, str] = {}


@pytest.fixture(autouse=True)
def single_threaded_blas():
    """Limit BLAS to one thread, so that only the threads of the kernels are compared."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def load():
    """Read the documents of a problem, or skip the test with the reason."""

    def read(problem):
        try:
            return problem.load()
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return read


@pytest.fixture
def adapter():
    """Import the adapter of a library, or skip the test with the reason."""

    def imported(library):
        try:
            return library.adapter()
        except ImportError as error:
            pytest.skip(f"{library.name}: {error}")

    return imported


def pytest_runtest_logreport(report):
    if report.skipped:
        _skipped[report.nodeid] = str(report.longrepr[2]).removeprefix("Skipped: ")


def pytest_benchmark_update_json(config, benchmarks, output_json):
    """Write versions and skipped tests, but nothing that identifies the owner of the machine."""
    output_json["machine_info"] = machine.describe()
    output_json["versions"] = machine.versions()
    output_json["skipped"] = sorted(set(_skipped.values()))


def pytest_terminal_summary(terminalreporter):
    """Print for each pair the median, over rounds, of the ratio of baseline to method."""
    session = getattr(terminalreporter.config, "_benchmarksession", None)
    rows = [b for b in session.benchmarks if "baseline" in b.extra_info] if session else []
    if not rows:
        return
    terminalreporter.section("how many times as fast as the baseline: medians over pairs")
    terminalreporter.line(f"{'':<64}{'ratio':>8}{'method':>12}{'baseline':>12}")
    for bench in rows:
        baseline = bench.extra_info["baseline"]
        for name, times in bench.extra_info["methods"].items():
            role = f"{bench.extra_info['role']}{', ' if name else ''}{name}"
            terminalreporter.line(
                f"{role:<64}{ratio(baseline, times):>8.2f}{median(times):>10.4f} s"
                f"{median(baseline):>10.4f} s"
            )
