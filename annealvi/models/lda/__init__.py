"""The model of latent Dirichlet allocation that TemperedLDA fits."""

from annealvi.models.lda.model import LDA
from annealvi.models.lda.workspace import LocalOptions

__all__ = ["LDA", "LocalOptions"]
