"""Latent Dirichlet allocation, tempered: the mathematics under TemperedLDA."""

from annealvi.models.lda.model import LDA
from annealvi.models.lda.workspace import LocalOptions

__all__ = ["LDA", "LocalOptions"]
