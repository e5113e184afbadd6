"""The Gaussian mixture, tempered: the mathematics under TemperedGaussianMixture."""

from annealvi.models.gmm.model import GMM, PERTURBATION
from annealvi.models.gmm.natural import Natural

__all__ = ["GMM", "PERTURBATION", "Natural"]
