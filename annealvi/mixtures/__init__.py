"""Mixture models for images, signals and groups of documents, fitted by annealed inference."""

from annealvi.mixtures.fmm import TemperedFMM
from annealvi.mixtures.gmm import TemperedGaussianMixture
from annealvi.mixtures.mmm import TemperedMultinomialMixture

__all__ = ["TemperedFMM", "TemperedGaussianMixture", "TemperedMultinomialMixture"]
