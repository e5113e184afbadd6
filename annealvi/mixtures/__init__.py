"""Mixtures for images and signals, fitted by annealed variational inference."""

from annealvi.mixtures.fmm import TemperedFMM
from annealvi.mixtures.gmm import TemperedGaussianMixture

__all__ = ["TemperedFMM", "TemperedGaussianMixture"]
