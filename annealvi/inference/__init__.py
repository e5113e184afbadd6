"""Algorithm 1: tempered stochastic variational inference, its step sizes and its monitor."""

from annealvi.inference.algorithm import (
    POSITION,
    LinearDecay,
    Monitor,
    OverRelaxed,
    Position,
    RobbinsMonro,
    full_step,
    optimise,
)
from annealvi.inference.callbacks import Callbacks, Start, during_fit
from annealvi.inference.checkpoints import Fingerprint
from annealvi.inference.restarts import Progress, fit_starts
from annealvi.inference.starts import Fit, Starts

__all__ = [
    "POSITION",
    "Callbacks",
    "Fingerprint",
    "Fit",
    "LinearDecay",
    "Monitor",
    "OverRelaxed",
    "Position",
    "Progress",
    "RobbinsMonro",
    "Start",
    "Starts",
    "during_fit",
    "fit_starts",
    "full_step",
    "optimise",
]
