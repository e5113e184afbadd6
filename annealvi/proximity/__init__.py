"""Proximity variational inference, which keeps q from changing quickly during the fit.

This package contains the gradient algorithms of Altosaar, Ranganath, Blei (2018) for a model with
binary factors.  To use coordinate updates instead of gradients, fit an
:class:`annealvi.TemperedFMM` with the temperature :class:`annealvi.temperature.Proximity`.
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
