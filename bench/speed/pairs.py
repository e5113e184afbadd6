"""Time methods and their baseline in turns: machines drift."""

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
    """Time passes, prepared anew, each after a pass of the baseline.

    Parameters
    ----------
    benchmark : pytest-benchmark's fixture
    role : str
        What the table of ratios calls the pair.
    timer : callable
        Of the baseline; the benchmark has its own, which should be the same.
    start_baseline : callable
        Prepares, and returns what is timed.
    start : callable or mapping of str to callable
        The same of the method, or of several by their names, which all take turns with the
        one baseline; pytest-benchmark's own columns are of the first.
    rounds, warmup_rounds : int
    **where : str
        Where the documents' table has the ratios: its ``row`` and, for the baseline,
        ``library``.
    """
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
    """How many times as fast as the baseline: the median over rounds."""
    return median(b / t for b, t in zip(baseline, times, strict=True))
