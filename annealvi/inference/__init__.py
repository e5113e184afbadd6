"""Algorithm 1: tempered stochastic variational inference, its step sizes and its monitor."""

from annealvi.inference.algorithm import (
    LinearDecay,
    Monitor,
    RobbinsMonro,
    full_step,
    optimise,
)

__all__ = ["LinearDecay", "Monitor", "RobbinsMonro", "full_step", "optimise"]
