"""Time methods and their baseline alternately, because the speed of a machine changes over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

ROUNDS = 7
Start = Callable[[], Callable[[], Any]]


def run(
    benchmark: Any,
    role: str,
    timer: Callable[[], float],
    start_baseline: Start,
    start: Start | Mapping[str, Start],
    *,
    rounds: int = ROUNDS,
    warmup_rounds: int = 1,
    **where: str,
) -> None:
    """In each round, time each method directly after the baseline; both are prepared again."""
    # All methods have the same baseline.  The columns of pytest-benchmark show the first method.
    methods = dict(start) if isinstance(start, Mapping) else {"": start}
    baseline: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in methods}
    first, *others = methods

    def timed(prepare: Start) -> float:
        one_pass = prepare()
        began = timer()
        one_pass()
        return timer() - began

    def setup():
        baseline.append(timed(start_baseline))
        for name in others:
            times[name].append(timed(methods[name]))
        return (methods[first](),), {}

    benchmark.pedantic(
        lambda one_pass: one_pass(), setup=setup, rounds=rounds, warmup_rounds=warmup_rounds
    )
    times[first] = list(benchmark.stats.stats.data)
    benchmark.extra_info |= {
        "role": role,
        "baseline": baseline[-rounds:],  # without the round before the timing
        "methods": {name: values[-rounds:] for name, values in times.items()},
        **where,
    }


def ratio(baseline: list[float], times: list[float]) -> float:
    """How many times as fast as the baseline a method is: the median of the rounds' ratios."""
    return median(b / t for b, t in zip(baseline, times, strict=True))
