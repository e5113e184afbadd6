"""Annealed and tempered variational inference for topic and latent factor models."""

from annealvi._version import __version__
from annealvi.lda import TemperedLDA
from annealvi.mixtures import TemperedFMM, TemperedGaussianMixture, TemperedMultinomialMixture
from annealvi.storage import load, save
from annealvi.temperature import Annealed, Fixed, LocalVariational, Proximity, Variational
from annealvi.topics import TopicModel, describe
from annealvi.versions import show_versions

__all__ = [
    "Annealed",
    "Fixed",
    "LocalVariational",
    "Proximity",
    "TemperedFMM",
    "TemperedGaussianMixture",
    "TemperedLDA",
    "TemperedMultinomialMixture",
    "TopicModel",
    "Variational",
    "__version__",
    "describe",
    "load",
    "save",
    "show_versions",
]
