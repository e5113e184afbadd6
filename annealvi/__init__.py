"""Annealed and tempered variational inference for topic and latent factor models."""

from annealvi._version import __version__
from annealvi.lda import TemperedLDA
from annealvi.temperature import Annealed, Fixed

__all__ = ["Annealed", "Fixed", "TemperedLDA", "__version__"]
