"""Time a method and its baseline in turns: machines drift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ROUNDS = 7


def run(
    benchmark: Any,
    role: str,
    timer: Callable[[], float],
    start_baseline: Callable[[], Callable[[], Any]],
    start: Callable[[], Callable[[], Any]],
) -> None:
    """Time passes, prepared anew, each after a pass of the baseline.

    Parameters
    ----------
    benchmark : pytest-benchmark's fixture
    role : str
        What the table of ratios calls the pair.
    timer : callable
        Of the baseline; the benchmark has its own, which should be the same.
    start_baseline, start : callable
        Prepare, and return what is timed.
    """
    baseline = []

    def setup():
        one_pass = start_baseline()
        began = timer()
        one_pass()
        baseline.append(timer() - began)
        return (start(),), {}

    benchmark.pedantic(lambda one_pass: one_pass(), setup=setup, rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["role"] = role
    benchmark.extra_info["baseline"] = baseline[-ROUNDS:]  # without the warm-up's
