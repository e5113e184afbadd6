"""Time methods and their baseline in turns, because the speed of a machine drifts."""

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
    """Time each method right after the baseline, in each round, both prepared anew."""
    # Several methods take turns with one baseline; pytest-benchmark's own columns show the first.
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
        "baseline": baseline[-rounds:],  # without the warm-up's
        "methods": {name: values[-rounds:] for name, values in times.items()},
        **where,
    }


def ratio(baseline: list[float], times: list[float]) -> float:
    """How many times as fast as the baseline: the median of the ratios of each round."""
    return median(b / t for b, t in zip(baseline, times, strict=True))
