"""The Gaussian mixture, tempered: the mathematics under TemperedGaussianMixture."""

from annealvi.models.gmm.files import model_tree, restored_model
from annealvi.models.gmm.model import GMM, PERTURBATION
from annealvi.models.gmm.natural import Natural
from annealvi.models.gmm.starts import initial_responsibilities

__all__ = [
    "GMM",
    "PERTURBATION",
    "Natural",
    "initial_responsibilities",
    "model_tree",
    "restored_model",
]
