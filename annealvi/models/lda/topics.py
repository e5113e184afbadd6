"""q(beta) = Dir(lambda) of LDA: where it starts, how it steps, what follows from it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from annealvi._kernels import bounds, special
from annealvi._kernels import lda as kernels
from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.block import (
    Rows,
    Statistics,
    TopicEstimate,
    TopicWeights,
    log_of,
)
from annealvi.models.lda.seeds import spread_documents

#: Documents a topic, and their weight, where topics start from documents.
SEED_DOCUMENTS, SEED_WEIGHT = 5, 5.0
#: Share of the vocabulary from which on a step moves all rows: nearly all would be wanted
#: again by the next minibatch.
DENSE_SHARE = 0.7
#: Words whose logarithms are worked out at a time.
TOPIC_ROWS = 512
#: A row that has gone this far back to the prior has forgotten where it was.
FORGOTTEN = 1e-200


class Topics:
    """lambda, word-major, and its prior; a part of :class:`annealvi.models.lda.LDA`.

    Parameters
    ----------
    n_topics, n_features : int
        K and V.
    eta : float or array-like of shape (V,) or (K, V)
    dtype : dtype
    n_threads : int
    topic_estimate : {"variational", "map"}

    Attributes
    ----------
    lam : ndarray of shape (V, K padded)
        lambda: the model's own array or, where rows have steps to make up for (see
        :meth:`_step`), a copy with these made.
    """

    def __init__(
        self,
        n_topics: int,
        n_features: int,
        eta: ArrayLike,
        dtype: DTypeLike,
        n_threads: int,
        topic_estimate: TopicEstimate,
    ) -> None:
        self._lock = threading.RLock()  # several threads may transform
        self.n_topics = n_topics
        self.n_features = n_features
        self.eta = np.array(eta, dtype=np.float64)
        self.dtype = np.dtype(dtype)
        self.n_threads = n_threads
        self.width = padded_length(n_topics, self.dtype)
        self._lam = aligned_empty((n_features, self.width), self.dtype)
        #: See :class:`Rows`; one attribute, so that an interrupt finds both or neither changed.
        self._steps = (np.ones(n_features), 1.0)
        self._eta_kept: NDArray | None = None
        self._eta_sums = np.empty(0)  # over words, of shape (K,) or (1,)
        self._estimate: TopicEstimate = topic_estimate
        self.rng: RandomState | None = None
        self._sums: NDArray[np.float64] | None = None
        #: What a user holds a view of and may write to unseen, and its sums when last seen.
        self._shown: NDArray | None = None
        self._shown_sums = np.empty(0)

    def _changed(self, rho: float) -> None:
        """The topics have made a step of size rho, or have been written to."""

    def topics_changed(self) -> None:
        """Forget what was derived from lambda."""
        self._sums = None
        self._changed(1.0)

    @property
    def topic_estimate(self) -> TopicEstimate:
        return self._estimate

    @topic_estimate.setter
    def topic_estimate(self, value: TopicEstimate) -> None:
        if value != self._estimate:
            self._estimate = value
            self._changed(1.0)

    # ------------------------------------------------------------------- lambda

    @property
    def lam(self) -> NDArray:
        decay, now = self._steps
        if now == 1:
            return self._lam
        lam = aligned_empty(self._lam.shape, self.dtype)
        lam[:] = self._lam
        self._move_rows(lam, decay.copy(), now, np.arange(self.n_features))
        return lam

    @property
    def topics(self) -> NDArray:
        """lambda as a (K, V) view."""
        self.notice_writes()
        return self.lam[:, : self.n_topics].T

    def _rows(self) -> Rows:
        """lambda as it is stored."""
        if self._eta_kept is None:
            self._eta_kept = self._eta_rows(self.dtype)
            topics = self.eta if self.eta.ndim == 2 else self.eta.reshape(1, -1)
            of_words = self.n_features if self.eta.ndim == 0 else 1
            self._eta_sums = of_words * topics.sum(axis=1)
        return Rows(self._lam, self._eta_kept, *self._steps)

    def settle(self) -> None:
        """Let all rows make up for the steps that they have missed."""
        with self._lock:
            if self._steps[1] != 1:
                self._own_arrays()
                words = np.arange(self.n_features)
                self._sums = self._move_rows(self._lam, *self._steps, words, whole=True)
                self._all_current()
                self._changed(0.0)  # by rounding

    def show(self) -> NDArray:
        """`topics` for somebody who may keep them and write to them.

        What is written is honoured until the topics' next step, which may leave the array
        behind as they were.
        """
        if self._shown is None:
            self._shown = self.lam
            self._shown_sums = self._fingerprint(self._shown)
        return self._shown[:, : self.n_topics].T

    def notice_writes(self) -> None:
        """Take over what was written to the topics that were shown."""
        if self._shown is None:
            return
        with self._lock:
            sums = self._fingerprint(self._shown)
            if not np.array_equal(sums, self._shown_sums):
                self._lam = self._shown
                self._all_current()
                self.topics_changed()
                self._shown_sums = sums

    def set_topics(self, topics: ArrayLike) -> None:
        """Take lambda as a (K, V) array."""
        if not self._lam.flags.writeable:  # loaded from a memory map
            self._lam, self._shown = aligned_empty(self._lam.shape, self.dtype), None
        self._lam[:, : self.n_topics] = np.asarray(topics).T
        self._lam[:, self.n_topics :] = 0
        self._all_current()
        self._was_moved()
        self.topics_changed()

    def _all_current(self) -> None:
        """No row has steps to make up for."""
        self._steps = (np.ones(self.n_features), 1.0)

    def _was_moved(self) -> None:
        """All rows are new."""
        if self._shown is self._lam:
            self._shown_sums = self._fingerprint(self._lam)
        else:
            self._shown = None

    def _fingerprint(self, lam: NDArray) -> NDArray[np.float64]:
        """What is unlikely to stay when topics are written to: sums over words, and topics."""
        return np.concatenate([self._sum(lam), lam.sum(axis=1, dtype=np.float64)])

    def _sum(self, lam: NDArray) -> NDArray[np.float64]:
        sums = np.empty(self.n_topics)
        partial = np.empty((kernels.n_blocks(self.n_features), self.n_topics))
        kernels.sum_topics(lam, self.n_threads, partial, sums)
        return sums

    @property
    def topic_sums(self) -> NDArray[np.float64]:
        """sum_v lambda_kv, of shape (K,)."""
        with self._lock:
            if self._sums is None:
                self.settle()
                self._sums = self._sum(self._lam)
            return self._sums

    # -------------------------------------------------------------------- start

    def initialize(self, rng: RandomState) -> None:
        """lambda ~ Gamma(100, 0.01), as scikit-learn draws it."""
        self.rng = rng
        self.set_topics(rng.gamma(100.0, 0.01, (self.n_topics, self.n_features)))

    def initialize_from_documents(self, X: Any, rng: RandomState) -> None:
        """lambda_k = eta_k + 5 x the counts of 5 random documents."""
        n_samples = X.shape[0]
        size = min(SEED_DOCUMENTS, n_samples)
        groups = [rng.choice(n_samples, size, replace=False) for _ in range(self.n_topics)]
        start = np.broadcast_to(self._eta_rows(np.float64).T, (self.n_topics, self.n_features))
        self._start_from(X, np.array(groups), start, rng)

    def initialize_from_spread_documents(self, X: Any, rng: RandomState) -> None:
        """lambda_k = 1 + 5 x the counts of 5 similar documents, far from the other topics'.

        Topics for which there are no different documents left start at random, as in
        :meth:`initialize`.
        """
        groups = spread_documents(X, self.n_topics, SEED_DOCUMENTS, rng)
        start = np.ones((self.n_topics, self.n_features))
        missing = self.n_topics - len(groups)
        start[len(groups) :] = rng.gamma(100.0, 0.01, (missing, self.n_features))
        self._start_from(X, groups, start, rng)

    def _start_from(
        self, X: Any, groups: NDArray[np.int64], start: NDArray, rng: RandomState
    ) -> None:
        """Add the counts of groups of documents, one a topic, to what topics start with."""
        self.rng = rng
        topics = start.copy()
        ends = np.arange(len(groups) + 1) * groups.shape[1]
        weights = np.full(groups.size, SEED_WEIGHT)
        chosen = sparse.csr_matrix((weights, groups.ravel(), ends), (len(groups), X.shape[0]))
        topics[: len(groups)] += (chosen @ X).toarray()
        self.set_topics(topics)

    # ------------------------------------------------------ what follows from lambda

    def exp_e_log_topics(self) -> NDArray:
        """exp(E log beta) as a (K, V) array."""
        self.notice_writes()
        weights = TopicWeights(self.n_features, self.width, self.dtype)
        words = np.arange(self.n_features)
        weights.refresh(
            words, self._rows(), self.topic_sums, "variational", 1.0, True, self.n_threads
        )
        return weights.values[:, : self.n_topics].T

    def log_topics(self, lam: NDArray, out: NDArray | None = None) -> NDArray[np.float64]:
        """E log beta or, under the map estimate, log E beta.

        Parameters
        ----------
        lam : ndarray of shape (n, K or more)
            Rows of lambda; padding comes out as -infinity.
        out : ndarray of the same shape, optional
        """
        log = log_of(self.topic_estimate)
        logs = log(np.asarray(lam, dtype=np.float64), out=out)
        logs[:, : self.n_topics] -= log(self.topic_sums)
        return logs

    def topic_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """The topics' part of the objective.

        -KL(q(beta) || p(beta)) or, under the map estimate, where no q(beta) has a density to
        compare with, the prior Dir(eta + 1) of a point against uniform topics:
        log Dir(E beta; eta + 1) - log Dir(E beta; 1).
        """
        if self.topic_estimate == "map":
            return self._topic_density(tempering)
        self.notice_writes()
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

    def _topic_density(self, tempering: Tempering) -> float:
        """sum_k log Dir(E beta_k; eta_k + 1) - log Dir(E beta_k; 1)."""
        self.notice_writes()
        K, V = self.n_topics, self.n_features
        eta = self._eta_rows(np.float64, tempering)
        lam, total = self.lam, np.zeros(K)
        for start in range(0, V, TOPIC_ROWS):  # in this order, whatever the threads
            some = slice(start, start + TOPIC_ROWS)
            total += np.einsum("vk,vk->k", eta[some], self.log_topics(lam[some, :K]))
        copies = V if self.eta.ndim == 0 else 1
        eta = eta[: V // copies]
        of_prior = special.lgamma(copies * eta.sum(axis=0) + V) - special.lgamma([float(V)])
        of_prior -= copies * np.sum(special.lgamma(eta + 1.0), axis=0)
        return float(np.sum(total + of_prior))

    # --------------------------------------------------------------------- steps

    def _step(
        self, rho: float, scale: float, floor: float, eta: NDArray, statistics: Statistics
    ) -> None:
        """lambda <- (1 - rho) lambda + rho (eta + scale * statistics).

        Only words in the statistics have to move: the others return to the prior,
        lambda - eta <- (1 - rho) (lambda - eta), and make up for all such steps at once when
        they are wanted.  The sums over words follow from those of the statistics.  All rows
        move where that is nearly as cheap, and in a step that goes all the way or towards
        another prior.
        """
        words = np.flatnonzero(statistics.seen)
        amount = rho * scale
        lazily = len(words) < DENSE_SHARE * self.n_features and rho < 1
        if lazily and eta is self._eta_kept and floor == 0:
            if self._shown is self._lam:  # it is to stay as it is
                self._lam = aligned_empty(self._shown.shape, self.dtype)
                self._lam[:] = self._shown
            self._shown = None
            before, eta_sums = self.topic_sums, self._eta_sums
            self._own_arrays()
            steps = (self._steps[0], self._steps[1] * (1.0 - rho))
            # interrupted, it is a step without statistics
            self._sums, self._steps = None, steps
            sums = self._move_rows(self._lam, *steps, words, statistics, amount)
            self._sums = eta_sums + (1.0 - rho) * (before - eta_sums) + amount * sums
            if steps[1] < FORGOTTEN:
                self.settle()
        else:
            self.settle()  # under the prior that rows have had
            self._own_arrays()
            if self._shown is not self._lam:
                self._shown = None
            self._sums = None
            self._sums = self._move_rows(
                self._lam,
                np.ones(self.n_features),  # `_steps` stay, so an interrupt does no harm
                1.0 - rho,
                np.arange(self.n_features),
                statistics,
                amount,
                eta=eta,
                floor=floor,
                whole=True,
            )
            self._was_moved()

    def _own_arrays(self) -> None:
        """Copy what was loaded from a memory map that one may not write to."""
        if not self._lam.flags.writeable:
            self._lam = self._lam.copy()
        if not self._steps[0].flags.writeable:
            self._steps = (self._steps[0].copy(), self._steps[1])

    def _move_rows(
        self,
        lam: NDArray,
        decay: NDArray[np.float64],
        now: float,
        words: NDArray[np.int64],
        statistics: Statistics | None = None,
        amount: float = 0.0,
        *,
        eta: NDArray | None = None,
        floor: float = 0.0,
        whole: bool = False,
    ) -> NDArray[np.float64]:
        """Bring the rows of some words to where they are at `now`.

        Returns
        -------
        ndarray of shape (K,)
            Sums over these words of their statistics or, with `whole`, of their rows.
        """
        none = np.zeros(0 if statistics else self.n_features, dtype=np.uint8)
        sums = np.empty(self.n_topics)
        kernels.step_topics(
            words,
            lam,
            self._rows().eta if eta is None else eta,
            decay,
            now,
            statistics.values if statistics else lam,
            statistics.seen if statistics else none,
            amount,
            floor,
            whole,
            self.n_threads,
            np.empty((kernels.n_blocks(len(words)), self.n_topics)),
            sums,
        )
        return sums

    def _eta_rows(self, dtype: Any, tempering: Tempering = UNTEMPERED) -> NDArray:
        """eta as a (V, K) array with contiguous rows; a scalar is one row seen V times."""
        b = float(np.mean(tempering.inverse)) if tempering.form == "posterior" else 1.0
        shape = (self.n_features, self.n_topics)
        if self.eta.ndim == 0:
            return np.broadcast_to(np.full(self.n_topics, b * self.eta, dtype=dtype), shape)
        rows = (self.eta[:, None] if self.eta.ndim == 1 else self.eta.T) * b
        return np.ascontiguousarray(np.broadcast_to(rows, shape), dtype=dtype)
