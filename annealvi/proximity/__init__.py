"""Proximity variational inference: the path to the optimum may change q only slowly.

The gradient algorithms of Altosaar, Ranganath, Blei (2018) on a model of binary factors.
The coordinate-wise form for :class:`annealvi.TemperedFMM` is a temperature,
:class:`annealvi.temperature.Proximity`.
"""

from annealvi.proximity.ascent import Adam, Ascent, ProximityAscent
from annealvi.proximity.factor_model import BernoulliFactorModel
from annealvi.proximity.penalty import MovingAverage, inverse_huber, inverse_huber_derivative
from annealvi.proximity.statistics import STATISTICS, Bernoulli

__all__ = [
    "STATISTICS",
    "Adam",
    "Ascent",
    "Bernoulli",
    "BernoulliFactorModel",
    "MovingAverage",
    "ProximityAscent",
    "inverse_huber",
    "inverse_huber_derivative",
]
