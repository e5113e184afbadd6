"""Algorithm 1: tempered stochastic variational inference, its step sizes and its monitor."""

from annealvi.inference.algorithm import (
    LinearDecay,
    Monitor,
    OverRelaxed,
    Position,
    RobbinsMonro,
    full_step,
    optimise,
)
from annealvi.inference.callbacks import Callbacks, Start, during_fit
from annealvi.inference.restarts import Progress, fit_starts

__all__ = [
    "Callbacks",
    "LinearDecay",
    "Monitor",
    "OverRelaxed",
    "Position",
    "Progress",
    "RobbinsMonro",
    "Start",
    "during_fit",
    "fit_starts",
    "full_step",
    "optimise",
]
