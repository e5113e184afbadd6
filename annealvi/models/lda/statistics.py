"""The statistics of the local step, from which lambda follows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annealvi._kernels import lda_topics as kernels
from annealvi._kernels.layout import aligned_empty, separate_rows
from annealvi.models.lda.weights import Rows, TopicWeights
from annealvi.models.lda.word_index import WordIndex


class FittedBlock(NamedTuple):
    """What the statistics of a block of documents follow from, once these are fitted."""

    entries: WordIndex
    #: The documents' results, see ``fit_documents`` of the kernels.
    ratio: NDArray
    t: NDArray
    active: NDArray[np.int32]
    n_active: NDArray[np.int32]
    #: b of each document.
    inverse: NDArray
    #: The power of the weights.
    b0: float
    weights: TopicWeights
    #: Whether to compute scikit-learn's numbers.
    exact: bool
    n_threads: int
    #: Buffers, of shape (n_threads, K padded) and (n_threads, 2 K padded or more).
    sums: NDArray[np.float64]
    scratch: NDArray


class Statistics:
    """sum_d b_d n_dv phi_dvk of the words that were seen, word-major.

    Words have rows in the order in which they were first seen; see :class:`TopicWeights`.

    If all documents of a step are in one block, their statistics are summed only when they are
    needed: row by row by :meth:`step_rows`, or all by :attr:`values`.
    """

    def __init__(self, n_features: int, width: int, dtype: DTypeLike) -> None:
        self._values = aligned_empty((n_features, width), dtype)
        self._deferred: FittedBlock | None = None
        self.row_of = np.full(n_features, -1, dtype=np.int32)
        self.n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts

    @property
    def values(self) -> NDArray:
        """The rows, of shape (V, K padded)."""
        if self._deferred is not None:
            block, self._deferred = self._deferred, None
            self.row_of[block.entries.words], self.n_rows[0] = -1, 0
            self.add(block)
        return self._values

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take, if all words are seen."""
        return self._values.nbytes

    def clear(self) -> None:
        """Forget all words."""
        self._deferred = None
        self.row_of[:] = -1
        self.n_rows[0] = 0

    def defer(self, block: FittedBlock) -> None:
        """Add a block that is the first of a step, and perhaps the only one."""
        self.row_of[block.entries.words] = np.arange(len(block.entries.words), dtype=np.int32)
        self.n_rows[0], self._deferred = len(block.entries.words), block

    def add(self, block: FittedBlock, word_energy: NDArray[np.float64] | None = None) -> None:
        """Add the statistics of a block of documents."""
        values, weights = self.values, block.weights
        kernels.accumulate_statistics(
            block.entries.words,
            block.entries.first,
            block.entries.document,
            block.entries.position,
            len(block.entries.words),
            block.ratio,
            block.t,
            block.active,
            block.n_active,
            block.inverse,
            block.b0,
            weights.place,
            weights.values,
            weights.logs,
            not block.exact,
            block.n_threads,
            weights.log_scale,
            self.row_of,
            self.n_rows,
            values,
            np.empty(0) if word_energy is None else word_energy,
            block.sums,
            block.scratch,
        )

    def step_rows(
        self,
        words: NDArray[np.int64],
        topics: Rows,
        amount: float,
        floor: float,
        whole: bool,
        n_threads: int,
    ) -> NDArray[np.float64]:
        """Move rows of lambda towards the prior, and add `amount` times their statistics."""
        lam, eta, decay, now = topics
        n_topics, block = eta.shape[1], self._deferred
        sums, partial = np.empty(n_topics), separate_rows(kernels.n_blocks(len(words)), n_topics)
        step = (amount, floor, whole)
        if block is None:
            kernels.step_topics(
                words,
                lam,
                eta,
                decay,
                now,
                self._values,
                self.row_of,
                *step,
                n_threads,
                partial,
                sums,
            )
            return sums
        kernels.accumulate_and_step(
            words,
            lam,
            eta,
            decay,
            now,
            block.entries.first,
            block.entries.document,
            block.entries.position,
            block.ratio,
            block.t,
            block.active,
            block.n_active,
            block.inverse,
            block.b0,
            block.weights.place,
            block.weights.values,
            block.weights.logs,
            not block.exact,
            self.row_of,
            *step,
            block.n_threads,  # which its buffers are for
            block.sums,
            block.scratch,
            partial,
            sums,
        )
        return sums

    def words(self) -> NDArray[np.int64]:
        """The words that were seen, ascending."""
        if self._deferred is not None:
            return self._deferred.entries.words
        return np.flatnonzero(self.row_of >= 0)

    def rows(self, words: NDArray[np.int64], n_topics: int) -> NDArray:
        """A copy of the rows of some words that were seen, without their padding."""
        return self.values[self.row_of[words], :n_topics]

    def seen(self, dense_share: float) -> tuple[NDArray[np.bool_], NDArray]:
        """Which words were seen, and a copy of their rows, with padding, in the order of words.

        If they are at least a share of the vocabulary, there are rows for all words.
        """
        values = self.values  # these settle the rows' places
        seen = self.row_of >= 0
        if np.count_nonzero(seen) < dense_share * len(seen):
            return seen, values[self.row_of[seen]]
        rows = values.take(self.row_of, axis=0, mode="clip")
        rows[~seen] = 0
        return seen, rows

    def put_seen(self, seen: NDArray[np.bool_], rows: NDArray) -> None:
        """Set the rows of words, of which none was seen before, as :meth:`seen` returns them."""
        words = np.flatnonzero(seen)
        own = self.n_rows[0] + np.arange(len(words))
        self.row_of[words] = own
        if len(rows) == len(seen):
            rows = rows[seen]
        self.values[self.n_rows[0] : self.n_rows[0] + len(words)] = rows
        self.n_rows[0] += len(words)

    def dense(self, n_topics: int) -> NDArray:
        """The statistics of all words, of shape (V, K); those not seen are 0."""
        out = np.zeros((len(self.row_of), n_topics), self.values.dtype)
        words = self.words()
        out[words] = self.rows(words, n_topics)
        return out

    def put(self, words: NDArray[np.int64], rows: NDArray) -> None:
        """Set the rows of words, of which none was seen before."""
        own = self.n_rows[0] + np.arange(len(words))
        self.row_of[words] = own
        self.values[own] = 0
        self.values[own, : rows.shape[1]] = rows
        self.n_rows[0] += len(words)
