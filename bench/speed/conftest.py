"""Where the corpora are, a table of ratios at the end of the run, and what the report needs."""

from __future__ import annotations

from statistics import median

import pytest
from threadpoolctl import threadpool_limits

from bench.speed import machine
from bench.speed.pairs import ratio

_skipped: dict[str, str] = {}


@pytest.fixture(autouse=True)
def single_threaded_blas():
    """Threads are compared where they are asked for; BLAS must not bring its own."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def load():
    """Read the documents of a problem, or skip with the reason."""

    def read(problem):
        try:
            return problem.load()
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return read


@pytest.fixture
def adapter():
    """Import the adapter of a library, or skip with the reason."""

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
    """Versions and what was skipped, and nothing that names the machine's owner."""
    output_json["machine_info"] = machine.describe()
    output_json["versions"] = machine.versions()
    output_json["skipped"] = sorted(set(_skipped.values()))


def pytest_terminal_summary(terminalreporter):
    """The median over rounds of baseline over method, which took turns."""
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
