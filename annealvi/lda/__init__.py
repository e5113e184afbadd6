"""TemperedLDA: latent Dirichlet allocation by annealed variational inference."""

from annealvi.lda.estimator import TemperedLDA

__all__ = ["TemperedLDA"]
