"""Algorithm 1: tempered stochastic variational inference, its step sizes and its monitor."""

from annealvi.inference.algorithm import (
    LinearDecay,
    Monitor,
    RobbinsMonro,
    full_step,
    optimise,
)
from annealvi.inference.restarts import fit_starts

__all__ = ["LinearDecay", "Monitor", "RobbinsMonro", "fit_starts", "full_step", "optimise"]
