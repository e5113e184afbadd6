"""Algorithm 1, which is tempered stochastic variational inference: steps, runs and callbacks."""

from annealvi.inference.algorithm import (
    LinearDecay,
    Monitor,
    OverRelaxed,
    Position,
    RobbinsMonro,
    full_step,
    optimise,
)
from annealvi.inference.callbacks import Callbacks, Run
from annealvi.inference.runs import Fingerprint, FitOfRun, Runs

__all__ = [
    "Callbacks",
    "Fingerprint",
    "FitOfRun",
    "LinearDecay",
    "Monitor",
    "OverRelaxed",
    "Position",
    "RobbinsMonro",
    "Run",
    "Runs",
    "full_step",
    "optimise",
]
