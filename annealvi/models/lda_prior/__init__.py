"""The normaliser log C(T) of latent Dirichlet allocation, averaged over its prior."""

from annealvi.models.lda_prior.prior import LDAPrior

__all__ = ["LDAPrior"]
