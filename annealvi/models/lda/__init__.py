"""The model of latent Dirichlet allocation that TemperedLDA fits, and its engines."""

from annealvi.models.lda.cpu import CPUEngine
from annealvi.models.lda.model import LDA, LocalOptions

__all__ = ["LDA", "CPUEngine", "LocalOptions"]
