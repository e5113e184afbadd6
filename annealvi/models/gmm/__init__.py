"""The Gaussian mixture, tempered: the mathematics under TemperedGaussianMixture."""

from annealvi.models.gmm.model import (
    GMM,
    PERTURBATION,
    Natural,
    initial_responsibilities,
    model_tree,
    restored_model,
)

__all__ = [
    "GMM",
    "PERTURBATION",
    "Natural",
    "initial_responsibilities",
    "model_tree",
    "restored_model",
]
