"""Proximity variational inference, in which q may change only slowly during the fit.

This package contains the gradient algorithms of Altosaar, Ranganath, Blei (2018) for a model with
binary factors.  :class:`annealvi.TemperedFMM` uses coordinate updates instead of gradients.  With
:class:`annealvi.temperature.Proximity` as its temperature, it also slows down changes of q.
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
