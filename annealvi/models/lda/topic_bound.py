"""The topics' part of LDA's objective, for either estimate of the topics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import bounds, special
from annealvi._kernels.layout import separate_rows

#: Number of words whose logarithms are computed at a time.
TOPIC_ROWS = 512


def negative_kl_of_topics(
    lam: NDArray,
    eta: NDArray[np.float64],
    sums: NDArray[np.float64],
    n_topics: int,
    n_threads: int,
) -> float:
    """-KL(Dir(lambda) || Dir(eta)), summed over topics."""
    K, V = n_topics, len(lam)
    # (1, 1), (V, 1) or (V, K): terms that are equal for all words or topics are summed once
    eta = np.ascontiguousarray(eta.reshape(-1, 1) if eta.ndim < 2 else eta.T)
    of_words, of_topics = V // eta.shape[0], K // eta.shape[1]
    total = np.empty(K)
    bounds.column_terms(
        lam,
        eta,
        special.digamma(sums),
        n_threads,
        separate_rows(n_threads, K),
        separate_rows(bounds.n_vocabulary_blocks(V), K),
        total,
    )
    of_prior = special.lgamma(of_words * eta.sum(axis=0)) - of_words * np.sum(
        special.lgamma(eta), axis=0
    )
    return float(np.sum(total - special.lgamma(sums)) + of_topics * np.sum(of_prior))


def log_density_of_mean(
    logs: Callable[[slice], NDArray[np.float64]], eta: NDArray[np.float64], symmetric: bool
) -> float:
    """sum_k log Dir(E beta_k; eta_k + 1) - log Dir(E beta_k; 1)."""
    V, K = eta.shape
    total = np.zeros(K)
    for start in range(0, V, TOPIC_ROWS):  # in this order for any number of threads
        some = slice(start, start + TOPIC_ROWS)
        total += np.einsum("vk,vk->k", eta[some], logs(some))
    copies = V if symmetric else 1
    eta = eta[: V // copies]
    of_prior = special.lgamma(copies * eta.sum(axis=0) + V) - special.lgamma([float(V)])
    of_prior -= copies * np.sum(special.lgamma(eta + 1.0), axis=0)
    return float(np.sum(total + of_prior))
