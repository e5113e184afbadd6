"""Latent Dirichlet allocation, tempered: the mathematics under TemperedLDA."""

from annealvi.models.lda.block import LocalOptions
from annealvi.models.lda.model import LDA

__all__ = ["LDA", "LocalOptions"]
