"""Proximity variational inference, in which q may change only slowly on the way to the optimum.

This package has the gradient algorithms of Altosaar, Ranganath, Blei (2018) for a model of
binary factors.  The coordinate-wise form for :class:`annealvi.TemperedFMM` is a temperature,
:class:`annealvi.temperature.Proximity`.
"""

from annealvi.proximity.ascent import Adam, Ascent, ProximityAscent
from annealvi.proximity.factor_model import BernoulliFactorModel
from annealvi.proximity.penalty import (
    DISTANCES,
    Distance,
    MovingAverage,
    check_distance,
    check_statistic,
    inverse_huber,
    inverse_huber_derivative,
)
from annealvi.proximity.statistics import STATISTICS, Bernoulli

__all__ = [
    "DISTANCES",
    "STATISTICS",
    "Adam",
    "Ascent",
    "Bernoulli",
    "BernoulliFactorModel",
    "Distance",
    "MovingAverage",
    "ProximityAscent",
    "check_distance",
    "check_statistic",
    "inverse_huber",
    "inverse_huber_derivative",
]
