"""Temperatures and schedules on their own: parameters, plans and the steps of a plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from annealvi import schedules
from annealvi import temperature as package
from annealvi.models.lda import LDA
from tests.fuzz.judge import anything, check_finite
from tests.fuzz.target import Target
from tests.fuzz.targets.calls import copied
from tests.fuzz.trial import Trial
from tests.fuzz.values import EXTREMES, TEMPERATURES, Kind, mostly, odd, parameters, real

STEPS = mostly(real(1.0, 50.0), None, 1, 0, 2, 10**12)


def _lda() -> LDA:
    model = LDA(3, 7, alpha=0.1, eta=0.1)
    model.initialize(np.random.RandomState(0))
    model.set_corpus(np.ones((4, 7)))
    return model


def _steps(t: Trial, temperature: Any) -> None:
    """Plan, and ask for the temperature of some steps."""
    n_steps = t.one_of(None, 1, 2, 10, 10**12)
    answered, plan = t.call(
        "plan",
        temperature.plan,
        n_steps,
        t.one_of(1, 2.5, 1e-3, 1e6),
        model=None,
        check=anything,
    )
    if not answered:
        return
    for step in (0, 1, 5, 10**12):
        answered, inverse = t.call("inverse", plan.inverse, step)
        t.call("settled", plan.settled, step)
        if answered:
            t.call("within (0, 1]", _within, inverse)


def _within(inverse: Any) -> None:
    if not np.all((np.asarray(inverse) > 0) & (np.asarray(inverse) <= 1)):
        raise ValueError(f"The inverse temperature must lie in (0, 1]. Got {inverse}.")


def _temperature(cls: type) -> Any:
    def run(t: Trial) -> None:
        answered, temperature = t.call(
            cls.__name__, cls, check=anything, **parameters(t, TEMPERATURES[cls])
        )
        if not answered:
            return
        t.call("check", temperature.check)
        t.call("==", lambda: temperature == t.one_of(copied(t, temperature), odd(t)))
        t.call("hash", hash, temperature)
        if cls in (package.Fixed, package.Annealed):
            _steps(t, temperature)
        if t.chance(0.2):
            t.call("set_params", temperature.set_params, **parameters(t, TEMPERATURES[cls]))
        if hasattr(cls, "as_printed"):
            t.call("as_printed", cls.as_printed, check=anything)

    return run


def _as_temperature(t: Trial) -> None:
    value = t.one_of(1.0, 3, "annealed", odd(t), odd(t))
    t.call("as_temperature", package.as_temperature, value, "Fuzz", check=anything)


SCHEDULES = {
    schedules.Linear: ("first", "last"),
    schedules.Exponential: ("first", "decay"),
    schedules.Relaxing: ("first",),
}


def is_number(value: Any) -> bool:
    """Whether an argument is a number that NumPy knows."""
    return isinstance(value, int | float | np.number) and not isinstance(value, complex)


def _schedule(t: Trial) -> None:
    cls = t.one_of(*SCHEDULES)
    number: Kind = mostly(real(1e-3, 1e3), *EXTREMES)
    given = {name: number.good(t) for name in SCHEDULES[cls]}
    if t.chance(0.3):
        given[t.one_of(*given)] = odd(t)
    answered, schedule = t.call(cls.__name__, cls, check=anything, **given)
    if answered:
        small = all(abs(np.log(abs(v) + 1e-99)) < 10 for v in given.values() if is_number(v))
        for done in (0.0, 0.5, 1.0):
            t.call("at", schedule, done, check=check_finite if small else anything)


_METHODS = ("plan", "inverse", "settled", "check")
TARGETS = (
    *(
        Target(
            cls.__name__,
            _temperature(cls),
            frozenset(
                [
                    cls.__name__,
                    *(f"{cls.__name__}.{m}" for m in (*_METHODS, "as_printed") if hasattr(cls, m)),
                ]
            ),
        )
        for cls in TEMPERATURES
    ),
    Target("as_temperature", _as_temperature, frozenset(["as_temperature"])),
    Target("schedules", _schedule, frozenset(cls.__name__ for cls in SCHEDULES)),
)
