"""q(beta) = Dir(lambda) of LDA: where it starts, how it steps, what follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, DTypeLike, NDArray

from annealvi._kernels import bounds, special
from annealvi._kernels import lda as kernels
from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models._lda_blocks import Statistics, TopicWeights

#: Documents a topic, and their weight, where topics start from documents.
SEED_DOCUMENTS, SEED_WEIGHT = 5, 5.0


class Topics:
    """lambda, word-major, and its prior; a part of :class:`annealvi.models.lda.LDA`.

    Parameters
    ----------
    n_topics, n_features : int
        K and V.
    eta : float or array-like of shape (V,) or (K, V)
    dtype : dtype
    n_threads : int

    Attributes
    ----------
    lam : ndarray of shape (V, K padded)
        lambda.  After writing to it call :meth:`topics_changed`.
    exposed : bool
        Whether somebody may hold a view of lambda and write to it unseen: then nothing
        that follows from lambda is kept between calls.
    """

    def __init__(
        self, n_topics: int, n_features: int, eta: ArrayLike, dtype: DTypeLike, n_threads: int
    ) -> None:
        self.n_topics = n_topics
        self.n_features = n_features
        self.eta = np.asarray(eta, dtype=np.float64)
        self.dtype = np.dtype(dtype)
        self.n_threads = n_threads
        self.width = padded_length(n_topics, self.dtype)
        self.lam = aligned_empty((n_features, self.width), self.dtype)
        self.rng: RandomState | None = None
        self.exposed = False
        self._sums: NDArray[np.float64] | None = None
        self._sums_then = np.empty(0)

    def _changed(self, rho: float) -> None:
        """The topics have made a step of size rho."""
        self._sums = None

    def notice_writes(self) -> None:
        """Forget what was derived from lambda if it was written to since the last fit."""
        if self.exposed:
            self._sums = None
            if not np.array_equal(self.topic_sums, self._sums_then):
                self.topics_changed()

    def _mind_exposure(self) -> None:
        if self.exposed:
            self._changed(0.0)

    def initialize(self, rng: RandomState) -> None:
        """lambda ~ Gamma(100, 0.01), as scikit-learn draws it."""
        self.rng = rng
        self.set_topics(rng.gamma(100.0, 0.01, (self.n_topics, self.n_features)))

    def initialize_from_documents(self, X: Any, rng: RandomState) -> None:
        """lambda_k = eta_k + 5 x the counts of 5 random documents."""
        self.rng = rng
        n_samples = X.shape[0]
        size = min(SEED_DOCUMENTS, n_samples)
        topics = np.broadcast_to(self._eta_rows(np.float64).T, (self.n_topics, self.n_features))
        topics = topics.copy()
        for topic in topics:
            chosen = rng.choice(n_samples, size, replace=False)
            topic += SEED_WEIGHT * np.asarray(X[chosen].sum(axis=0)).ravel()
        self.set_topics(topics)

    def set_topics(self, topics: ArrayLike) -> None:
        """Take lambda as a (K, V) array."""
        self.lam[:, : self.n_topics] = np.asarray(topics).T
        self.lam[:, self.n_topics :] = 0
        self.topics_changed()

    @property
    def topics(self) -> NDArray:
        """lambda as a (K, V) view."""
        return self.lam[:, : self.n_topics].T

    def topics_changed(self) -> None:
        """Forget what was derived from lambda."""
        self._changed(1.0)

    @property
    def topic_sums(self) -> NDArray[np.float64]:
        """sum_v lambda_kv, of shape (K,)."""
        if self._sums is None:
            sums = np.empty(self.n_topics)
            kernels.sum_topics(self.lam, self.n_threads, self._partial_sums(), sums)
            self._sums = sums
        return self._sums

    def exp_e_log_topics(self) -> NDArray:
        """exp(E log beta) as a (K, V) array."""
        weights = TopicWeights(self.n_features, self.width, self.dtype)
        words = np.arange(self.n_features)
        weights.refresh(words, self.lam, self.topic_sums, 1.0, True, self.n_threads)
        return weights.values[:, : self.n_topics].T

    def topic_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """-KL(q(beta) || p(beta)), the topics' part of the ELBO."""
        self._mind_exposure()
        K, V = self.n_topics, self.n_features
        b = float(np.mean(tempering.inverse)) if tempering.form == "posterior" else 1.0
        # (1, 1), (V, 1) or (V, K): what is the same for all words or topics is summed once
        rows = self.eta.reshape(-1, 1) if self.eta.ndim < 2 else self.eta.T
        eta = np.ascontiguousarray(rows * b)
        of_words, of_topics = V // eta.shape[0], K // eta.shape[1]
        sums, total = self.topic_sums, np.empty(K)
        bounds.column_terms(
            self.lam,
            eta,
            special.digamma(sums),
            self.n_threads,
            np.empty((self.n_threads, K)),
            np.empty((bounds.n_vocabulary_blocks(V), K)),
            total,
        )
        of_prior = special.lgamma(of_words * eta.sum(axis=0)) - of_words * np.sum(
            special.lgamma(eta), axis=0
        )
        return float(np.sum(total - special.lgamma(sums)) + of_topics * np.sum(of_prior))

    def _step(
        self,
        keep: float,
        gain: float,
        scale: float,
        floor: float,
        eta: NDArray,
        statistics: Statistics,
    ) -> None:
        sums = np.empty(self.n_topics)
        kernels.step_topics(
            self.lam,
            eta,
            statistics.values,
            statistics.seen,
            keep,
            gain,
            scale,
            floor,
            self.n_threads,
            self._partial_sums(),
            sums,
        )
        self._sums = sums

    def _partial_sums(self) -> NDArray[np.float64]:
        return np.empty((kernels.n_vocabulary_blocks(self.n_features), self.n_topics))

    def _eta_rows(self, dtype: Any, tempering: Tempering = UNTEMPERED) -> NDArray:
        """eta as a (V, K) array with contiguous rows; a scalar is one row seen V times."""
        b = float(np.mean(tempering.inverse)) if tempering.form == "posterior" else 1.0
        shape = (self.n_features, self.n_topics)
        if self.eta.ndim == 0:
            return np.broadcast_to(np.full(self.n_topics, b * self.eta, dtype=dtype), shape)
        rows = (self.eta[:, None] if self.eta.ndim == 1 else self.eta.T) * b
        return np.ascontiguousarray(np.broadcast_to(rows, shape), dtype=dtype)
