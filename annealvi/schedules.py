r"""Schedules, which define how a number decreases or increases during a fit.

A schedule maps the completed fraction of the fit to a value.  Temperatures decrease
(:class:`annealvi.temperature.Annealed`), and so does the weight of the penalty that keeps q from
changing fast (:mod:`annealvi.proximity`).  The weight beta in ``annealvi.deep`` increases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

from annealvi.checks import as_float, checked
from annealvi.exceptions import BadParameter


class Schedule(Protocol):
    """A function of the completed fraction of the fit, from 0 (the start) to 1 (the end)."""

    def __call__(self, done: float) -> float:
        """Return the value when the fraction `done` of the fit is done."""


@dataclass(frozen=True)
class Linear:
    r"""The value is :math:`v = v_0 + (v_1 - v_0) s` when the fraction s of the fit is done.

    Parameters
    ----------
    first, last : float
        :math:`v_0` and :math:`v_1`, the values at the start and at the end.
    """

    first: float
    last: float

    @checked
    def __post_init__(self) -> None:
        """Check that the values are finite numbers."""
        _check("first", self.first)
        _check("last", self.last)

    def __call__(self, done: float) -> float:
        """Return the value when the fraction `done` of the fit is done."""
        first = float(self.first)  # a number of NumPy may be of a smaller dtype
        return first + (float(self.last) - first) * done


@dataclass(frozen=True)
class Exponential:
    r"""The value is :math:`v = v_0 \gamma^s` when the fraction s of the fit is done.

    Parameters
    ----------
    first : float
        :math:`v_0`, the value at the start.
    decay : float
        :math:`\gamma > 0`, the value at the end divided by the value at the start.

    Raises
    ------
    ValueError
        If `decay` is not positive.
    """

    first: float
    decay: float

    @checked
    def __post_init__(self) -> None:
        """Check that the values are finite numbers, and `decay` positive."""
        _check("first", self.first)
        _check("decay", self.decay, above=0.0)

    def __call__(self, done: float) -> float:
        """Return the value when the fraction `done` of the fit is done."""
        return float(self.first) * float(self.decay) ** done


@dataclass(frozen=True)
class Relaxing:
    r"""The value is :math:`v = v_0^{\exp(-4 s)}` when the fraction s of the fit is done.

    The logarithm of the value decays exponentially with the time constant 1/4.

    Parameters
    ----------
    first : float
        :math:`v_0 > 0`, the value at the start.  At the end it is :math:`v_0^{0.018}`, close to 1.

    Raises
    ------
    ValueError
        If `first` is not positive.
    """

    first: float

    @checked
    def __post_init__(self) -> None:
        """Check that the first value is a finite positive number."""
        _check("first", self.first, above=0.0)

    def __call__(self, done: float) -> float:
        """Return the value when the fraction `done` of the fit is done."""
        return self.first ** math.exp(-4.0 * done)


def _check(name: str, value: float, above: float = -math.inf) -> None:
    """Raise ValueError if `value` is not a finite number greater than `above`."""
    if not isinstance(value, Real) or not above < as_float(value) < math.inf:
        raise BadParameter(name, f"a float in the range ({above}, inf)", value)
