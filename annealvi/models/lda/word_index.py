"""The entries of a block of documents in the order of their words, which statistics need."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import lda as kernels

#: Bytes of the blocks that are kept from pass to pass.
MOST_BYTES = 1 << 26


class WordIndex(NamedTuple):
    """A block of documents, transposed.

    Parameters
    ----------
    words : ndarray of shape (n_words,)
        The words of the block, ascending.
    first : ndarray of shape (n_words + 1,) or longer
        Where the entries of each word begin, and the end.
    document, position : ndarray of shape (n_entries,) or longer
        The document of each entry, and its place among all entries; both from 0 in the block.
    """

    words: NDArray[np.int64]
    first: NDArray[np.int64]
    document: NDArray[np.int64]
    position: NDArray[np.int64]


class WordIndices:
    """Transposes blocks of documents, and keeps the blocks of passes over the same documents.

    A block is kept when it is seen for the second time, as long as all take at most MOST_BYTES.  So
    a stream, whose documents are seen once, keeps none.  All are forgotten when passes over other
    blocks begin, as in a finish.  A kept block is used as long as its documents have the same
    words: kernels read what was prepared for these words, and a callback may have changed them.

    Parameters
    ----------
    n_features : int
        V.
    """

    def __init__(self, n_features: int) -> None:
        self._counter = np.empty(n_features, dtype=np.int64)
        self._room = WordIndex(
            np.empty(n_features, dtype=np.int64),
            np.empty(n_features + 1, dtype=np.int64),
            np.empty(0, dtype=np.int64),
            np.empty(0, dtype=np.int64),
        )
        self._corpus: weakref.ref[Any] | None = None
        self._kept: dict[tuple[int, int], tuple[int, WordIndex | None]] = {}
        self._bytes = 0

    def forget(self) -> None:
        """Forget the blocks that were kept: the documents may change in place from now on."""
        self._corpus, self._kept, self._bytes = None, {}, 0

    def of_block(self, X: Any, rows: slice) -> WordIndex:
        """The index of a block, valid until the next call.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, V)
        rows : slice
        """
        key = rows.start, rows.stop
        begins = rows.start == 0 and key not in self._kept
        if begins or self._corpus is None or self._corpus() is not X:
            self.forget()
            self._corpus = weakref.ref(X)
        digest = kernels.digest_of_block(X.indices, X.indptr, *key)
        before, kept = self._kept.get(key, (None, None))
        if kept is not None and before == digest:
            return kept
        index = self._transposed(X, rows)
        if before != digest:  # seen for the first time, as it is now
            self._kept[key] = digest, None
            self._bytes -= _n_bytes(kept)
        elif self._bytes + _n_bytes(index) <= MOST_BYTES:
            index = WordIndex(*(array.copy() for array in index))
            self._kept[key] = digest, index
            self._bytes += _n_bytes(index)
        return index

    def _transposed(self, X: Any, rows: slice) -> WordIndex:
        n_entries = int(X.indptr[rows.stop] - X.indptr[rows.start])
        room = self._room
        if len(room.document) < n_entries:
            document, position = (np.empty(n_entries, dtype=np.int64) for _ in range(2))
            room = self._room = room._replace(document=document, position=position)
        n_words = kernels.index_words(
            X.indices, X.indptr, rows.start, rows.stop, self._counter, *room
        )
        words, first, document, position = room
        return WordIndex(
            words[:n_words], first[: n_words + 1], document[:n_entries], position[:n_entries]
        )


def _n_bytes(index: WordIndex | None) -> int:
    return 0 if index is None else sum(array.nbytes for array in index)
