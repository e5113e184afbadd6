"""Algorithm 1, which is tempered stochastic variational inference: steps, runs and callbacks."""

from annealvi.inference.algorithm import (
    LinearDecay,
    Monitor,
    OverRelaxed,
    RobbinsMonro,
    full_step,
    optimise,
)
from annealvi.inference.callbacks import Callbacks, Run

__all__ = [
    "Callbacks",
    "LinearDecay",
    "Monitor",
    "OverRelaxed",
    "RobbinsMonro",
    "Run",
    "full_step",
    "optimise",
]
