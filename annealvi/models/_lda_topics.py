"""q(beta) = Dir(lambda) of LDA: where it starts, how it steps, what follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import gammaln, psi

from annealvi._kernels import lda as kernels
from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models._lda_blocks import Rows, Statistics, TopicWeights

#: Documents a topic, and their weight, where topics start from documents.
SEED_DOCUMENTS, SEED_WEIGHT = 5, 5.0
#: Share of the vocabulary from which on a step moves all rows: nearly all would be wanted
#: again by the next minibatch, and the sums over words are then exact.
DENSE_SHARE = 0.7
#: A row that has gone this far back to the prior has forgotten where it was.
FORGOTTEN = 1e-200
#: Bytes of lambda that the bound takes at a time.
BOUND_BYTES = 1 << 23


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
        lambda.  Reading it brings all rows up to date, see :meth:`_step`.  After writing to
        it call :meth:`topics_changed`.
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
        self._lam = aligned_empty((n_features, self.width), self.dtype)
        self._decay = np.ones(n_features)
        self._now = 1.0
        self._eta_kept: NDArray | None = None
        self.rng: RandomState | None = None
        self.exposed = False
        self._sums: NDArray[np.float64] | None = None
        self._sums_then = np.empty(0)

    @property
    def lam(self) -> NDArray:
        if self._now != 1:
            self._move(np.arange(self.n_features), self._now, self._rows().eta, whole=True)
        return self._lam

    def _rows(self) -> Rows:
        """lambda as it is stored."""
        if self._eta_kept is None:
            self._eta_kept = self._eta_rows(self.dtype)
        return Rows(self._lam, self._eta_kept, self._decay, self._now)

    def _changed(self, rho: float) -> None:
        """The topics have made a step of size rho, or have been written to."""

    def notice_writes(self) -> None:
        """Forget what was derived from lambda if it was written to since the last fit."""
        if self.exposed:
            self._sums = None
            if not np.array_equal(self.topic_sums, self._sums_then):
                self.topics_changed()

    def _mind_exposure(self) -> None:
        if self.exposed:
            self._sums = None
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
        self._lam[:, : self.n_topics] = np.asarray(topics).T
        self._lam[:, self.n_topics :] = 0
        self._decay[:] = self._now = 1.0
        self.topics_changed()

    @property
    def topics(self) -> NDArray:
        """lambda as a (K, V) view."""
        return self.lam[:, : self.n_topics].T

    def topics_changed(self) -> None:
        """Forget what was derived from lambda."""
        self._sums = None
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
        weights.refresh(words, self._rows(), self.topic_sums, 1.0, True, self.n_threads)
        return weights.values[:, : self.n_topics].T

    def topic_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """-KL(q(beta) || p(beta)), the topics' part of the ELBO."""
        self._mind_exposure()
        eta = self._eta_rows(np.float64, tempering)
        sums = self.topic_sums
        psi_sums = psi(sums)
        eta_sums = np.zeros(self.n_topics)
        total = np.zeros(self.n_topics)
        step = max(1, BOUND_BYTES // (8 * self.n_topics))
        for start in range(0, self.n_features, step):
            words = slice(start, start + step)
            lam = self.lam[words, : self.n_topics].astype(np.float64)
            total += np.sum((eta[words] - lam) * (psi(lam) - psi_sums), axis=0)
            total += np.sum(gammaln(lam) - gammaln(eta[words]), axis=0)
            eta_sums += np.sum(eta[words], axis=0)
        return float(np.sum(total + gammaln(eta_sums) - gammaln(sums)))

    def _step(
        self, rho: float, scale: float, floor: float, eta: NDArray, statistics: Statistics
    ) -> None:
        """lambda <- (1 - rho) lambda + rho (eta + scale * statistics).

        Only words in the statistics have to move: the others return to the prior,
        lambda - eta <- (1 - rho) (lambda - eta), and make up for all such steps at once when
        they are wanted.  The sums over words follow from those of the statistics.  All rows
        move where that is nearly as cheap, where somebody may be looking at lambda, and where
        the step is another (a full one; one towards another prior).
        """
        words = np.flatnonzero(statistics.seen)
        now, amount = self._now * (1.0 - rho), rho * scale
        lazily = len(words) < DENSE_SHARE * self.n_features and not self.exposed
        if lazily and eta is self._eta_kept and floor == 0 and rho < 1:
            before = self.topic_sums
            sums = self._move(words, now, eta, statistics, amount)
            eta_sums = self._eta_sums()
            self._sums = eta_sums + (1.0 - rho) * (before - eta_sums) + amount * sums
            if now < FORGOTTEN:
                self._move(np.arange(self.n_features), now, eta, whole=True)
        else:
            every = np.arange(self.n_features)
            self._move(every, now, eta, statistics, amount, floor=floor, whole=True)

    def _move(
        self,
        words: NDArray[np.int64],
        now: float,
        eta: NDArray,
        statistics: Statistics | None = None,
        amount: float = 0.0,
        *,
        floor: float = 0.0,
        whole: bool = False,
    ) -> NDArray[np.float64]:
        """Bring the rows of some words to where they are now; return the sums of the statistics.

        With `whole` all rows are, and the sums over words are taken of them.
        """
        if not self._lam.flags.writeable:  # loaded from a memory map
            self._lam = self._lam.copy()
        sums = np.empty(self.n_topics)
        kernels.step_topics(
            words,
            self._lam,
            eta,
            self._decay,
            now,
            self._lam if statistics is None else statistics.values,
            np.zeros(self.n_features, np.uint8) if statistics is None else statistics.seen,
            amount,
            floor,
            whole,
            self.n_threads,
            np.empty((kernels.n_blocks(len(words)), self.n_topics)),
            sums,
        )
        self._now = now
        if whole:
            self._decay[:] = self._now = 1.0
            self._sums = sums
        return sums

    def _partial_sums(self) -> NDArray[np.float64]:
        return np.empty((kernels.n_blocks(self.n_features), self.n_topics))

    def _eta_sums(self) -> NDArray[np.float64] | float:
        """sum_v eta_kv."""
        if self.eta.ndim == 0:
            return self.n_features * float(self.eta)
        return float(self.eta.sum()) if self.eta.ndim == 1 else self.eta.sum(axis=1)

    def _eta_rows(self, dtype: Any, tempering: Tempering = UNTEMPERED) -> NDArray:
        """eta as a (V, K) array with contiguous rows; a scalar is one row seen V times."""
        b = float(np.mean(tempering.inverse)) if tempering.form == "posterior" else 1.0
        shape = (self.n_features, self.n_topics)
        if self.eta.ndim == 0:
            return np.broadcast_to(np.full(self.n_topics, b * self.eta, dtype=dtype), shape)
        rows = (self.eta[:, None] if self.eta.ndim == 1 else self.eta.T) * b
        return np.ascontiguousarray(np.broadcast_to(rows, shape), dtype=dtype)
