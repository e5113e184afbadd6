"""What follows from the topics of LDA: exp E log beta, and the topics' part of the objective."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import bounds, special
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.topics import Topics
from annealvi.models.lda.weights import TopicWeights

#: Number of words whose logarithms are computed at a time.
TOPIC_ROWS = 512


def exp_e_log(topics: Topics) -> NDArray:
    """exp(E log beta) as a (K, V) array."""
    topics.notice_writes()
    weights = TopicWeights(topics.n_features, topics.width, topics.dtype)
    words = np.arange(topics.n_features)
    weights.refresh(words, topics.rows(), topics.sums, "variational", 1.0, True, topics.n_threads)
    return weights.values[:, : topics.n_topics].T


def topics_bound(topics: Topics, tempering: Tempering = UNTEMPERED) -> float:
    """The topics' part of the objective.

    This is -KL(q(beta) || p(beta)).  In the map estimate beta is a point, so there is no KL.
    The prior Dir(eta + 1) of the point is then compared with the uniform prior:
    log Dir(E beta; eta + 1) - log Dir(E beta; 1).
    """
    if topics.estimate == "map":
        return _density(topics, tempering)
    topics.notice_writes()
    K, V = topics.n_topics, topics.n_features
    b = float(np.mean(tempering.inverse)) if tempering.form == "posterior" else 1.0
    # (1, 1), (V, 1) or (V, K): terms that are equal for all words or topics are summed once
    rows = topics.eta.reshape(-1, 1) if topics.eta.ndim < 2 else topics.eta.T
    eta = np.ascontiguousarray(rows * b)
    of_words, of_topics = V // eta.shape[0], K // eta.shape[1]
    sums, total = topics.sums, np.empty(K)
    bounds.column_terms(
        topics.lam,
        eta,
        special.digamma(sums),
        topics.n_threads,
        np.empty((topics.n_threads, K)),
        np.empty((bounds.n_vocabulary_blocks(V), K)),
        total,
    )
    of_prior = special.lgamma(of_words * eta.sum(axis=0)) - of_words * np.sum(
        special.lgamma(eta), axis=0
    )
    return float(np.sum(total - special.lgamma(sums)) + of_topics * np.sum(of_prior))


def _density(topics: Topics, tempering: Tempering) -> float:
    """sum_k log Dir(E beta_k; eta_k + 1) - log Dir(E beta_k; 1)."""
    topics.notice_writes()
    K, V = topics.n_topics, topics.n_features
    eta = topics.eta_rows(np.float64, tempering)
    lam, total = topics.lam, np.zeros(K)
    for start in range(0, V, TOPIC_ROWS):  # in this order for any number of threads
        some = slice(start, start + TOPIC_ROWS)
        total += np.einsum("vk,vk->k", eta[some], topics.logs(lam[some, :K]))
    copies = V if topics.eta.ndim == 0 else 1
    eta = eta[: V // copies]
    of_prior = special.lgamma(copies * eta.sum(axis=0) + V) - special.lgamma([float(V)])
    of_prior -= copies * np.sum(special.lgamma(eta + 1.0), axis=0)
    return float(np.sum(total + of_prior))
