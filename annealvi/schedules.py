r"""Schedules: how a number falls or rises over a fit.

A schedule maps the fraction of the fit that is done to a value.  Schedules are used for
temperatures (:class:`annealvi.temperature.Annealed`), for the magnitudes of proximity
penalties (:mod:`annealvi.proximity`), both of which fall, and for the weight beta of deep
annealed objectives, which rises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

from annealvi.checks import as_float, checked
from annealvi.exceptions import BadParameter


class Schedule(Protocol):
    """A value for each fraction done, from 0 (the start) to 1 (the end)."""

    def __call__(self, done: float) -> float:
        """Return the value when this fraction is done."""


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

    @checked
    def __post_init__(self) -> None:
        _check("first", self.first)
        _check("last", self.last)

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
        :math:`\gamma > 0`, the fraction of :math:`v_0` that is left at the end.

    Raises
    ------
    ValueError
        If `decay` is not positive: powers of it would not be real.
    """

    first: float
    decay: float

    @checked
    def __post_init__(self) -> None:
        _check("first", self.first)
        _check("decay", self.decay, 0.0)

    def __call__(self, done: float) -> float:
        return self.first * self.decay**done


@dataclass(frozen=True)
class Relaxing:
    r""":math:`v = v_0^{\exp(-4 s)}`: the logarithm decays with time constant 1/4.

    Parameters
    ----------
    first : float
        :math:`v_0 > 0`.  The value at the end is :math:`v_0^{0.018}`, close to 1.

    Raises
    ------
    ValueError
        If `first` is not positive: powers of it would not be real.
    """

    first: float

    @checked
    def __post_init__(self) -> None:
        _check("first", self.first, 0.0)

    def __call__(self, done: float) -> float:
        return self.first ** math.exp(-4.0 * done)


def _check(name: str, value: float, above: float = -math.inf) -> None:
    if not isinstance(value, Real) or not above < as_float(value) < math.inf:
        raise BadParameter(name, f"a float in the range ({above}, inf)", value)
