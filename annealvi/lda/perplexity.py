"""Perplexity from an ELBO."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse


def perplexity_of(elbo: float, X: sparse.csr_matrix, population: float | None = None) -> float:
    """exp(-ELBO per word); 1 for documents without words, in which nothing is to be predicted."""
    n_words = X.sum(dtype=np.float64)
    if n_words == 0:
        return 1.0
    if population is not None:
        n_words *= population / X.shape[0]
    with np.errstate(over="ignore"):
        perplexity = float(np.exp(-np.float64(elbo) / n_words))
    if perplexity == np.inf:
        warnings.warn(
            f"The perplexity of X, exp(-ELBO per word), exceeds the largest float: the ELBO is "
            f"{elbo:.4g} nats, of {n_words:.4g} words.",
            RuntimeWarning,
            stacklevel=2,
        )
    return perplexity
