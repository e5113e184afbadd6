r"""How a number falls or rises over a fit: temperatures, penalties, weights of objectives.

A schedule maps the fraction of the way that is done to a value.  Temperatures fall along
one (:class:`annealvi.temperature.Annealed`), so do the magnitudes of proximity penalties
(:mod:`annealvi.proximity`), and the weight beta of deep annealed objectives rises along one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Protocol


class Schedule(Protocol):
    """A value for each fraction of the way, from 0 (nothing done) to 1 (all of it)."""

    def __call__(self, done: float) -> float:
        """The value when this fraction of the way is done."""


@dataclass(frozen=True)
class Linear:
    r""":math:`v = v_0 + (v_1 - v_0) s` when the fraction s is done.

    Parameters
    ----------
    first, last : float
        :math:`v_0` and :math:`v_1`.
    """

    first: float
    last: float

    def __call__(self, done: float) -> float:
        return self.first + (self.last - self.first) * done


@dataclass(frozen=True)
class Exponential:
    r""":math:`v = v_0 \gamma^s` when the fraction s is done.

    Parameters
    ----------
    first : float
        :math:`v_0`.
    decay : float
        :math:`\gamma > 0`, what is left of it in the end.

    Raises
    ------
    ValueError
        If `decay` is not positive: powers of it would not be real.
    """

    first: float
    decay: float

    def __post_init__(self) -> None:
        _check_positive(self, "decay", self.decay)

    def __call__(self, done: float) -> float:
        return self.first * self.decay**done


@dataclass(frozen=True)
class Relaxing:
    r""":math:`v = v_0^{\exp(-4 s)}`: the logarithm decays with time constant 1/4.

    Parameters
    ----------
    first : float
        :math:`v_0 > 0`; the end is :math:`v_0^{.018}`, not quite 1.

    Raises
    ------
    ValueError
        If `first` is not positive: powers of it would not be real.
    """

    first: float

    def __post_init__(self) -> None:
        _check_positive(self, "first", self.first)

    def __call__(self, done: float) -> float:
        return self.first ** math.exp(-4.0 * done)


def _check_positive(schedule: object, name: str, value: float) -> None:
    if not isinstance(value, float | Real) or not 0.0 < value < math.inf:
        raise ValueError(
            f"The {name!r} parameter of {type(schedule).__name__} must be a float in the range "
            f"(0.0, inf). Got {value!r} instead."
        )
