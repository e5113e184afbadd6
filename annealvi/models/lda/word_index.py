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
    """A block of documents, transposed."""

    #: The words of the block, ascending.
    words: NDArray[np.int64]
    #: Where the entries of each word begin, and the end.
    first: NDArray[np.int64]
    #: The document of each entry, and its place among all entries; both from 0 in the block.
    document: NDArray[np.int64]
    position: NDArray[np.int64]
    #: The order in which threads fit the documents: the longest first.
    order: NDArray[np.int64]
    #: Number of entries of the longest document.
    longest: int


class WordIndices:
    """Transposes blocks of documents, and keeps the blocks of passes over the same documents.

    A block is kept when it is seen for the second time, or at once if passes are `repeated`, as
    long as all take at most MOST_BYTES.  So a stream, whose documents are seen once, keeps none.
    All are forgotten when passes over other blocks begin, as in a finish.  A kept block is used as
    long as its documents have the same words: kernels read what was prepared for these words, and
    a callback may have changed them.
    """

    def __init__(self, n_features: int, n_threads: int = 1) -> None:
        self._n_threads, self.repeated = n_threads, False
        self._counter = np.empty(n_features, dtype=np.int64)
        self._room = tuple(np.empty(n, dtype=np.int64) for n in (n_features, n_features + 1, 0, 0))
        self._corpus: weakref.ref[Any] | None = None
        self._kept: dict[tuple[int, int], tuple[int, WordIndex | None]] = {}
        self._bytes = 0

    def forget(self) -> None:
        """Forget the blocks that were kept: the documents may change in place from now on."""
        self._corpus, self._kept, self._bytes = None, {}, 0

    def of_block(self, X: Any, rows: slice) -> WordIndex:
        """The index of a block, valid until the next call."""
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
            if not self.repeated:
                return index
        if self._bytes + _n_bytes(index) <= MOST_BYTES:
            index = index._replace(
                words=index.words.copy(),
                first=index.first.copy(),
                document=index.document.copy(),
                position=index.position.copy(),
            )
            self._kept[key] = digest, index
            self._bytes += _n_bytes(index)
        return index

    def _transposed(self, X: Any, rows: slice) -> WordIndex:
        ends = X.indptr[rows.start : rows.stop + 1]
        lengths, n_entries = np.diff(ends), int(ends[-1] - ends[0])
        words, first, document, position = self._room
        if len(document) < n_entries:
            document, position = (np.empty(n_entries, dtype=np.int64) for _ in range(2))
            self._room = words, first, document, position
        n_words = kernels.index_words(
            X.indices, X.indptr, rows.start, rows.stop, self._counter, *self._room
        )
        order = np.arange(len(lengths))
        if self._n_threads > 1:
            order = np.argsort(-lengths, kind="stable")
        return WordIndex(
            words[:n_words],
            first[: n_words + 1],
            document[:n_entries],
            position[:n_entries],
            order,
            int(lengths.max(initial=0)),
        )


def _n_bytes(index: WordIndex | None) -> int:
    return 0 if index is None else sum(array.nbytes for array in index[:-1])
