"""What workers do with partitions of a corpus: check them, and cut them into shards."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_non_negative

from annealvi.checks import least_positive
from annealvi.corpus.mapped import open as open_corpus
from annealvi.matrices import check_csr


class Facts(NamedTuple):
    """What a fit must know of a partition."""

    n_documents: int
    n_features: int
    dtype: np.dtype
    #: See :class:`annealvi.scale.elsewhere.Elsewhere`.
    n_words: float
    least: float
    #: A bit for each word, see :func:`numpy.packbits`.
    used: NDArray[np.uint8]
    digest: str


class Piece(NamedTuple):
    """Consecutive documents of a partition."""

    partition: int
    start: int
    stop: int


def load(source: Any, name: str, owner: str) -> sparse.csr_matrix:
    """A partition as a canonical CSR matrix; a path is that of a corpus on disk."""
    if isinstance(source, str | os.PathLike):
        source = open_corpus(source)
    if not sparse.issparse(source):
        raise TypeError(
            f"{name} must be a sparse matrix, or the path of a corpus on disk. Got "
            f"{type(source).__name__}: convert it with scipy.sparse.csr_matrix."
        )
    if not source.shape[0]:
        raise ValueError(f"{name} must have at least one document. Got shape {source.shape}.")
    X = check_csr(source, name=name)
    check_non_negative(X, f"{owner}, {name}")
    return X


def facts_of(X: sparse.csr_matrix) -> Facts:
    """Look through a partition."""
    used = np.zeros(X.shape[1], dtype=bool)
    used[X.indices] = True
    total = hashlib.sha256(str(X.dtype).encode())
    for array, dtype in ((X.indptr, np.int64), (X.indices, np.int64), (X.data, X.dtype)):
        for start in range(0, len(array), _CHUNK):
            some = np.ascontiguousarray(array[start : start + _CHUNK], dtype)
            total.update(some.view(np.uint8).data)
    least = least_positive(X.data)
    n_words = float(X.data.sum(dtype=np.float64))
    n_documents, n_features = X.shape
    bits = np.packbits(used)
    return Facts(n_documents, n_features, X.dtype, n_words, least, bits, total.hexdigest())


#: Entries that are converted at a time.
_CHUNK = 1 << 20


def take(dtype: np.dtype, pieces: Sequence[Piece], *partitions: sparse.csr_matrix) -> Any:
    """A shard: the documents of some pieces, in a dtype.

    One piece of the same dtype is a view of its partition.
    """
    parts = [view(X, piece.start, piece.stop) for piece, X in zip(pieces, partitions, strict=True)]
    shard = parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")
    if shard.dtype != dtype:
        shard = _csr(shard.data.astype(dtype), shard.indices, shard.indptr, shard.shape)
    shard.has_canonical_format = True
    return shard


def view(X: sparse.csr_matrix, start: int, stop: int) -> sparse.csr_matrix:
    """Consecutive rows of a CSR matrix, without a copy of their entries."""
    ends = X.indptr[start : stop + 1]
    entries = slice(int(ends[0]), int(ends[-1]))
    shape = stop - start, X.shape[1]
    return _csr(X.data[entries], X.indices[entries], ends - ends[0], shape)


def _csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: Any) -> sparse.csr_matrix:
    """A CSR matrix of these arrays, which SciPy would look through."""
    X = sparse.csr_matrix(shape, dtype=data.dtype)
    X.data, X.indices, X.indptr = data, indices, indptr.astype(indices.dtype, copy=False)
    return X


def rows_of(shard: sparse.csr_matrix, rows: NDArray[np.int64]) -> sparse.csr_matrix:
    """Some documents of a shard."""
    return shard[rows]
