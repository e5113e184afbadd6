"""The statistics of the local step, from which lambda follows."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annealvi._kernels.layout import aligned_empty


class Statistics:
    """sum_d b_d n_dv phi_dvk of the words that were seen, word-major.

    Words have rows in the order in which they were first seen; see :class:`TopicWeights`.

    Parameters
    ----------
    n_features, width : int
        V, and K with its padding.
    dtype : dtype

    Attributes
    ----------
    row_of : ndarray of shape (V,)
        The row of each word, or -1.
    values : ndarray of shape (V, K padded)
    """

    def __init__(self, n_features: int, width: int, dtype: DTypeLike) -> None:
        self.values = aligned_empty((n_features, width), dtype)
        self.row_of = np.full(n_features, -1, dtype=np.int32)
        self.n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts

    def clear(self) -> None:
        """Forget all words."""
        self.row_of[:] = -1
        self.n_rows[0] = 0

    def words(self) -> NDArray[np.int64]:
        """The words that were seen, ascending."""
        return np.flatnonzero(self.row_of >= 0)

    def rows(self, words: NDArray[np.int64], n_topics: int) -> NDArray:
        """A copy of the rows of some words that were seen, without their padding.

        Parameters
        ----------
        words : ndarray of int64
        n_topics : int
        """
        return self.values[self.row_of[words], :n_topics]

    def dense(self, n_topics: int) -> NDArray:
        """The statistics of all words, of shape (V, K); those not seen are 0.

        Parameters
        ----------
        n_topics : int
        """
        out = np.zeros((len(self.row_of), n_topics), self.values.dtype)
        words = self.words()
        out[words] = self.rows(words, n_topics)
        return out

    def put(self, words: NDArray[np.int64], rows: NDArray) -> None:
        """Set the rows of words, of which none was seen before.

        Parameters
        ----------
        words : ndarray of int64
        rows : ndarray of shape (n_words, K or K padded)
        """
        own = self.n_rows[0] + np.arange(len(words))
        self.row_of[words] = own
        self.values[own] = 0
        self.values[own, : rows.shape[1]] = rows
        self.n_rows[0] += len(words)
