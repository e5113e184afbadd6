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
from annealvi.inference.callbacks import Callbacks, Start
from annealvi.inference.starts import Fingerprint, Fit, Starts

__all__ = [
    "Callbacks",
    "Fingerprint",
    "Fit",
    "LinearDecay",
    "Monitor",
    "OverRelaxed",
    "Position",
    "RobbinsMonro",
    "Start",
    "Starts",
    "full_step",
    "optimise",
]
