"""Values of parameters: for each kind of parameter good ones, and odd ones for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from annealvi import Annealed, Fixed, LocalVariational, Proximity, Variational
from tests.fuzz.judge import UserError
from tests.fuzz.trial import Trial

#: Numbers at the edges of what dtypes can hold.
EXTREMES = (0.0, -0.0, 5e-324, 1e-300, 1e-160, 1e-45, 1e-30, 1e30, 1e38, 1e154, 1e200, 1e305)
NOT_FINITE = (math.nan, math.inf, -math.inf)


def _odd_numbers(t: Trial) -> Any:
    return t.one_of(
        *(0, 1, -1, 2, 0.5, -0.5, 1.5, 2**31, 2**53, 2**63, -(2**63), 10**30, 10**400),
        *EXTREMES,
        *NOT_FINITE,
        *(np.float32(0.1), np.float64(2), np.int8(3), np.uint64(2**63), np.float16(0.5)),
        *(True, False, np.bool_(True), Fraction(1, 3), Decimal("0.5"), 1 + 0j, np.complex64(1)),
        np.longdouble(0.5),
        np.datetime64("2020-01-01"),
    )


def _odd_things(t: Trial) -> Any:
    return t.one_of(
        *(None, "", "auto", "nan", "0.5", "learn", "kmeans", b"auto", "é\udc80", [], (), {}, set()),
        *([1], [0.5, 0.5], [[1.0, 2.0], [3.0]], ["a"], [None], {"a": 1}, range(3), slice(2)),
        *(object(), int, len, lambda *args: None, Exception("no")),
        np.ma.masked,
    )


def _odd_arrays(t: Trial) -> Any:
    shape = t.one_of((), (0,), (1,), (3,), (7,), (3, 1), (3, 7), (0, 3), (2, 3, 4), (1, 1, 1, 1))
    dtype = t.one_of("f8", "f4", "f2", "i8", "u1", "?", "c16", "O", "U3", "M8[s]", ">f8", "g")
    array = np.ones(shape, dtype="f8")
    if array.size and t.chance(0.5):
        array.flat[t.whole(0, array.size - 1)] = t.one_of(*EXTREMES, *NOT_FINITE, -1.0)
    with np.errstate(all="ignore"):
        try:
            return array.astype(dtype)
        except (ValueError, TypeError, OverflowError):
            return array


def odd(t: Trial) -> Any:
    """A value that few parameters can take."""
    return t.one_of(_odd_numbers, _odd_numbers, _odd_things, _odd_arrays)(t)


@dataclass(frozen=True)
class Kind:
    """A kind of parameter.

    Parameters
    ----------
    good : callable
        Draws a value that should be accepted.
    most : float
        A larger number would be accepted too, but the call would take long: it is not drawn.
    calls : bool
        Whether a function would be accepted, and called: its errors are the user's.
    """

    good: Callable[[Trial], Any]
    most: float = math.inf
    calls: bool = False

    def odd(self, t: Trial) -> Any:
        """An odd value, not so large that it takes long, and no function where one is called."""
        while True:
            value = odd(t)
            if isinstance(value, Real | Decimal) and self.most < value < math.inf:
                continue
            if self.calls and callable(value):
                continue
            return value


def whole(low: int, high: int, *, endless: bool = False) -> Kind:
    """A whole number; `endless` if a huge one costs no time."""
    return Kind(lambda t: t.whole(low, high), math.inf if endless else 10 * high)


def real(low: float, high: float, *, most: float = math.inf) -> Kind:
    """A number whose logarithm is uniform, sometimes of another type."""

    def good(t: Trial) -> Any:
        value = t.log_uniform(low, high)
        return t.one_of(float, float, float, np.float32, np.float64)(value)

    return Kind(good, most)


def choice(*values: Any) -> Kind:
    """One of a few values."""
    return Kind(lambda t: t.one_of(*values))


def mostly(usual: Kind, *others: Any) -> Kind:
    """A value of another kind, or one of some further ones."""
    return Kind(lambda t: usual.good(t) if t.chance(0.6) else t.one_of(*others), usual.most)


def array(
    *shapes: tuple[int, ...], low: float = 0.01, high: float = 3.0, positive: bool = True
) -> Kind:
    """An array of numbers of one of some shapes, sometimes a list, sometimes spoilt."""

    def good(t: Trial) -> Any:
        shape = t.one_of(*shapes)
        if t.chance(0.05):
            shape = tuple(max(0, n + t.whole(-1, 1)) for n in shape)
        values = t.rng.uniform(low, high, shape) if positive else t.rng.normal(0, high, shape)
        values = np.asarray(values)
        if values.size and t.chance(0.1):
            values.flat[t.whole(0, values.size - 1)] = t.one_of(*EXTREMES, *NOT_FINITE, -1.0)
        if t.chance(0.3):
            with np.errstate(over="ignore"):
                values = values.astype(t.one_of("f4", "f2", ">f8", "i4", "O", "g"))
        if t.chance(0.1):
            values = np.asfortranarray(values)
        if t.chance(0.1):
            values.flags.writeable = False
        return values.tolist() if t.chance(0.3) else values

    return Kind(good)


flag = choice(True, False)
seed = Kind(
    lambda t: (
        t.whole(0, 99)
        if t.chance(0.8)
        else t.one_of(None, np.random.RandomState(1), np.int64(5), 2**32 - 1)
    )
)
threads = Kind(lambda t: t.one_of(None, 1, 1, 2, 3, -1, -2, -100), 8)


def parameters(t: Trial, table: Mapping[str, Kind]) -> dict[str, Any]:
    """Values for some of the parameters, seldom more than one of them odd.

    Parameters
    ----------
    t : Trial
    table : dict of str to Kind
        The kind of each parameter.
    """
    names = list(table)
    given = t.random.sample(names, min(len(names), t.one_of(0, 1, 2, 2, 3, 5)))
    values = {name: table[name].good(t) for name in given}
    for _ in range(t.one_of(0, 0, 0, 0, 0, 1, 1, 1, 2, 4)):
        name = t.one_of(*names)
        values[name] = table[name].odd(t)
    return values


# ----------------------------------------------------------------------- temperatures

form = choice("likelihood", "posterior")
TEMPERATURES: dict[type, dict[str, Kind]] = {
    Fixed: dict(value=real(1.0, 20.0), form=form),
    Annealed: dict(
        start=mostly(real(1.0, 20.0), "auto", 1, 1e305),
        length=mostly(real(0.01, 1.0), None, 1, 1e-300),
        passes=mostly(real(0.1, 3.0), None),
        shape=choice("relax", "exponential", "linear"),
        form=form,
    ),
    Variational: dict(
        t_max=mostly(real(1.1, 50.0), 1e300, 1.0000001),
        grid=mostly(whole(2, 20), [1.0, 0.5, 0.1], np.linspace(1, 0.01, 7)),
        prior=mostly(array((100,), (3,), (7,)), None),
        partition=choice("posterior", "posterior", "prior", [0.0, 1.0, 2.0]),
        damping=mostly(real(0.01, 1.0), None),
        start=mostly(real(1.0, 10.0), None),
        monotone=choice(None, True, False),
        energy_average=mostly(real(0.01, 1.0), 0.0, 1),
        final_fraction=mostly(real(0.01, 0.9), 0.0, 0.999),
    ),
    LocalVariational: dict(
        grid=whole(2, 20),
        prior=mostly(array((100,), (7,)), None),
        continuous=flag,
        normaliser=choice("document", "corpus"),
        undamped=flag,
        damping=mostly(real(0.01, 1.0), None),
        start=real(1.0, 10.0),
        rounds=whole(1, 3),
        energy_average=mostly(real(0.01, 1.0), 0.0, 1),
        final_fraction=mostly(real(0.01, 0.9), 0.0, 0.999),
    ),
    Proximity: dict(
        statistic=choice("entropy", "kl"),
        magnitude=mostly(real(1e-3, 1e3), None, 0.0, 1e300),
        gamma=mostly(real(1e-10, 1.0), 1e-300, 1),
        shape=choice("exponential", "linear"),
        decay=mostly(real(0.5, 0.9999), 1.0, 1e-300),
        length=mostly(real(0.01, 1.0), 0.0),
    ),
}


def temperature_object(t: Trial, *kinds: type) -> Any:
    """A temperature object, perhaps of odd parameters; an error is the caller's to judge."""
    kind = t.one_of(*(kinds or tuple(TEMPERATURES)))
    return kind(**parameters(t, TEMPERATURES[kind]))


def _temperature(t: Trial) -> Any:
    if t.chance(0.5):
        return temperature_object(t)
    return t.one_of(1, 1.0, 2, 3.7, "auto", "annealed", "variational", "local", "proximity")


temperature = Kind(_temperature)


# -------------------------------------------------------------------------- callbacks


class StopAfter:
    """A callback that ends the fit after some steps."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps = n_steps

    def __call__(self, estimator: Any, monitor: Any) -> None:
        if monitor.step >= self.n_steps:
            raise StopIteration


class Raise:
    """A callback with an error in it."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, estimator: Any, monitor: Any) -> None:
        if monitor.step == self.step:
            raise UserError("the callback's own")


class Record:
    """A callback that records a value under a name."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, estimator: Any, monitor: Any) -> None:
        monitor.record(mine=self.value)


class Assign:
    """A callback that assigns an attribute of the estimator."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def __call__(self, estimator: Any, monitor: Any) -> None:
        setattr(estimator, self.name, self.value)


callback = Kind(
    lambda t: t.one_of(
        *(None, StopAfter(1), StopAfter(3), Raise(1), Raise(2), Record(0.5), Record(math.nan)),
        *([Record(0.5), StopAfter(2)], [], [Record(1.0), None]),
    ),
    calls=True,
)
