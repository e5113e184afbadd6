"""Checks of sparse input: the structure of a matrix is checked before any other code reads it.

Any code can change the arrays of a sparse matrix of SciPy.  SciPy, scikit-learn and our C code do
not check these arrays, and access other memory if an index is out of range.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import check_non_negative, validate_data

from annealvi.checks import FLOATS
from annealvi.exceptions import BadParameter

#: How many entries are compared or hashed at a time.
CHUNK = 1 << 20
#: How many documents' words are summed at a time.
SUMMED = 1024
#: Errors that a damaged matrix can cause in SciPy, NumPy and Python.
DAMAGE = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
#: The dtypes of the indices of sparse matrices.
INDEX_DTYPES = (np.dtype(np.int32), np.dtype(np.int64))


def check_matrix(
    X: Any,
    *,
    estimator: Any = None,
    reset: bool = True,
    dtype: Any = FLOATS,
    order: str | None = None,
    accept_sparse: bool = True,
    name: str = "X",
) -> Any:
    """Check a matrix by scikit-learn's rules, and a sparse matrix also by SciPy's rules.

    Every function of the library that takes a matrix calls this first.  Until the calling function
    has returned, no other thread and no callback may change the arrays of a sparse matrix.
    """
    if _are_pairs(X):
        raise ValueError(
            f"{name} must be a matrix of counts. Got lists of (word, count) pairs, the format of "
            f"gensim. Pass annealvi.corpus.from_gensim({name}).data instead."
        )
    if issparse(X):
        if not accept_sparse:  # scikit-learn's own error may print, and so read, the arrays
            raise TypeError(
                f"Sparse data was passed for {name}, but dense data is required. "
                "Use '.toarray()' to convert to a dense numpy array."
            )
        X = sound_csr(X, name)
    elif hasattr(X, "dtypes") and 0 in getattr(X, "shape", ()):
        X = np.asarray(X)  # scikit-learn before 1.7 fails on a DataFrame without columns
    # what a conversion makes infinite is an error of scikit-learn, not one of NumPy
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            if estimator is None:
                X = check_array(X, accept_sparse="csr", dtype=dtype, order=order, input_name=name)
            else:
                X = validate_data(
                    estimator,
                    X,
                    reset=reset,
                    accept_sparse="csr",
                    dtype=dtype,
                    order=order,
                )
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"{name} must be a matrix of numbers. Got a str ({error!s:.100}). Of a table of "
                "texts, pass one column."
            ) from error
    if not X.dtype.isnative:  # scikit-learn converts all but the columns of a DataFrame
        X = X.astype(X.dtype.newbyteorder("="))
    if issparse(X) and not _is_canonical(X):
        X = csr_of(X.data, X.indices, X.indptr, X.shape).copy()
        X.sum_duplicates()
        assert_all_finite(X.data, input_name=name)
    return X


def check_csr(X: Any, **options: Any) -> csr_matrix:
    X = check_matrix(X, **options)
    return X if issparse(X) else csr_matrix(X)


def check_words(estimator: Any, X: Any, method: str, *, reset: bool = False) -> csr_matrix:
    """Check word counts, and return them as a canonical CSR matrix of float32 or float64.

    The caller must check that the dtype can represent the sum of all counts.
    """
    if _are_texts(X):
        raise TypeError(
            f"The 'X' parameter of {type(estimator).__name__}.{method} must be a matrix of word "
            "counts. Got texts instead. To fit texts, use annealvi.TopicModel."
        )
    if not reset and are_plain_counts(X, estimator):
        return X
    X = check_csr(X, estimator=estimator, reset=reset)
    check_non_negative(X, f"{type(estimator).__name__}.{method}")
    return X


def check_whole(X: Any, method: str) -> csr_matrix:
    """Check counts of whole words and return them as a canonical CSR matrix."""
    if _are_texts(X):
        raise TypeError(
            f"The 'X' parameter of {method} must be a matrix of word counts. Got texts instead. "
            "Fit a TopicModel to the texts: its method `counts` returns the counts of texts, and "
            "its attribute `lda_` is the model that was fitted to counts."
        )
    X = check_csr(X)
    check_non_negative(X, method)
    check_integers(X, "X", "integer counts")
    return X


def check_integers(X: csr_matrix, name: str, must_be: str) -> None:
    """Raise BadParameter about the parameter `name` if counts are no integers."""
    for first in range(0, X.nnz, CHUNK):  # the matrix may be larger than memory
        block = X.data[first : first + CHUNK]
        for broken in block[block != np.floor(block)]:
            raise BadParameter(
                name,
                must_be,
                broken,
                "Logarithms and weights such as tf-idf are not counts. For texts, use a vectorizer "
                "that counts words. If X is from an AnnData, a layer may have counts.",
            )


def _are_texts(X: Any) -> bool:
    """Whether X is a list, a Series or an array of str, or of lists of str."""
    if isinstance(X, str) or issparse(X):  # a sparse array is not read before its checks
        return False
    one_dimensional = isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1
    first = next(iter(X), None) if one_dimensional else None
    if isinstance(first, list | tuple):
        first = next(iter(first), None)
    return isinstance(first, str)


def _are_pairs(X: Any) -> bool:
    """Whether X is a list of documents as lists of (word, count)."""
    documents = X if type(X) in (list, tuple) else ()
    row: Any = next((row for row in documents if type(row) in (list, tuple) and row), None)
    return row is not None and all(type(pair) in (list, tuple) and len(pair) == 2 for pair in row)


def sound_csr(X: Any, name: str = "X") -> csr_matrix:
    """Return a sparse matrix as a CSR matrix that is safe to read, even if X may be damaged.

    The result may have unsorted and duplicate entries.
    """
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise ValueError(f"Expected 2D input, got input with shape {shape}.")
    if not all(isinstance(side, Integral) for side in shape or ()):
        raise ValueError(f"The sparse matrix {name} is damaged: non-integer shape {shape}.")
    try:
        return _checked(X)
    except DAMAGE as error:
        # Python's messages about objects that are not arrays do not help the user
        is_clear = isinstance(error, ValueError)
        reason = error if is_clear else "its shape or its arrays are unusable"
        raise ValueError(f"The sparse matrix {name} is damaged: {reason}") from error


def csr_of(data: NDArray, indices: NDArray, indptr: NDArray, shape: Any) -> csr_matrix:
    """Make a CSR matrix from checked arrays, without SciPy's search for a smaller index dtype."""
    X = csr_matrix(shape, dtype=data.dtype)
    X.data = data
    X.indices = indices
    X.indptr = indptr.astype(indices.dtype, copy=False)
    return X


def digest(X: Any) -> str:
    """Return the SHA-256 of an array or a CSR matrix; the dtype of indices has no influence."""
    total = hashlib.sha256(str(X.dtype).encode())
    for array in (X.indptr, X.indices, X.data) if issparse(X) else (X,):
        dtype = array.dtype if array is X or array is X.data else np.int64
        flat = np.ascontiguousarray(array).reshape(-1)
        for start in range(0, flat.size, CHUNK):
            block = flat[start : start + CHUNK].astype(dtype, copy=False)
            total.update(block.view(np.uint8).data)
    return total.hexdigest()


def are_plain_counts(X: Any, estimator: Any) -> bool:
    """Whether a matrix of counts needs no check and no conversion.

    This reads the arrays of a CSR matrix once.  :func:`check_matrix` and the check for negative
    numbers read them a dozen times, which takes as long as a training step with a few documents.
    The result is False if these checks might convert or reject the matrix, or warn about it.
    """
    if type(X) is not csr_matrix or hasattr(estimator, "feature_names_in_"):
        return False
    data, indices, indptr = (vars(X).get(name) for name in ("data", "indices", "indptr"))
    if not (_is_plain(data) and _is_plain(indices) and _is_plain(indptr)):
        return False
    if (
        data.dtype not in FLOATS
        or indices.dtype not in INDEX_DTYPES
        or indices.dtype != indptr.dtype
    ):
        return False
    shape: Any = len(indptr) - 1, getattr(estimator, "n_features_in_", None)
    if X.shape != shape or 0 in shape or not all(isinstance(side, Integral) for side in X.shape):
        return False
    if indptr[0] != 0 or not indptr[-1] == len(indices) == len(data):
        return False
    if np.any(indptr[1:] < indptr[:-1]) or not _is_canonical(X):
        return False
    inside = indices.min(initial=0) >= 0 and indices.max(initial=0) < shape[1]
    # no comparison with NaN is true
    return bool(inside and data.min(initial=0) >= 0 and data.max(initial=0) < np.inf)


def _is_plain(array: Any) -> bool:
    """Whether a kernel can read an array without conversion."""
    return (
        type(array) is np.ndarray
        and array.ndim == 1
        and array.flags.c_contiguous
        and array.flags.aligned
        and array.dtype.isnative
    )


def _is_canonical(X: csr_matrix) -> bool:
    """Whether the column indices of each row increase.  X's own flag may be out of date."""
    return csr_of(X.data, X.indices, X.indptr, X.shape).has_canonical_format


def _checked(X: Any) -> csr_matrix:
    """Convert a matrix to CSR format; no index is used before it has been checked."""
    if X.format == "lil":
        lengths = [len(row) for row in X.rows]
        if len(lengths) != X.shape[0] or lengths != [len(row) for row in X.data]:
            raise ValueError("each row must have as many column indices as values")
        X = X.tocsr()  # it relies only on the lengths of the lists
    elif X.format == "dok":
        X = X.tocoo()
    data = _plain(X.data, "biuf")
    if X.format == "csr":
        return _compressed(X, csr_matrix(X.shape), data)
    if data.dtype.kind != "f" or data.itemsize < 4:
        data = data.astype(float)  # sums of entries do not overflow in float64
    if X.format == "csc":
        return _compressed(X, sparse.csc_matrix(X.shape), data).tocsr()
    if X.format == "bsr":
        matrix = sparse.bsr_matrix(X.shape, blocksize=data.shape[1:])
        return _compressed(X, matrix, data).tocsr()
    if X.format == "dia":
        offsets = _plain(X.offsets, "i")
        inside = (offsets > -X.shape[0]) & (offsets < X.shape[1])
        if not inside.any():
            return csr_matrix(X.shape, dtype=data.dtype)
        return sparse.dia_matrix((data[inside], offsets[inside]), shape=X.shape).tocsr()
    row = _plain(X.row, "i")
    col = _plain(X.col, "i")
    return sparse.coo_matrix((data, (row, col)), shape=X.shape).tocsr()  # SciPy checks them


def _compressed(X: Any, empty: Any, data: NDArray) -> Any:
    """Check the arrays of X, and assign them to an empty matrix of the same format and shape.

    SciPy's constructor is not used, because it reads all int64 indices to find out whether int32 is
    large enough.
    """
    empty.data = data
    empty.indices = _plain(X.indices, "i")
    empty.indptr = _plain(X.indptr, "i")
    # compared, because differences can overflow; SciPy skips this check if the last entry is 0
    if np.any(empty.indptr[1:] < empty.indptr[:-1]):
        raise ValueError("indptr must be a non-decreasing sequence")
    empty.check_format(full_check=True)
    return empty


def _plain(array: Any, kinds: str) -> NDArray:
    """Return the array or, if need be, a contiguous, aligned copy in native byte order."""
    if array.dtype.kind not in kinds:
        raise ValueError(
            f"its arrays must be {'of a signed integer type' if kinds == 'i' else 'real numbers'}. "
            f"Got an array of dtype {array.dtype}"
        )
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A", "E"])


def summed(X: csr_matrix, axis: int, dtype: Any = None) -> NDArray:
    """Return the sums along an axis as an array of one dimension."""
    if axis == 0 and dtype is not None:  # SciPy would sum in the dtype of X, and convert the sums
        X = X.astype(dtype, copy=False)
    return np.asarray(X.sum(axis=axis, dtype=dtype)).ravel()


def lengths(X: Any, rows: slice) -> NDArray[np.float64]:
    sums = np.zeros(rows.stop - rows.start)
    for first in range(0, len(sums), SUMMED):  # in parts: NumPy copies counts to sum in float64
        start = rows.start + first
        ends = X.indptr[start : min(start + SUMMED, rows.stop) + 1]
        written = ends[1:] > ends[:-1]
        if written.any():  # empty documents are left out: reduceat does not return 0 for them
            counts = X.data[ends[0] : ends[-1]]
            begins = ends[:-1][written] - ends[0]
            row_sums = np.add.reduceat(counts, begins, dtype=float)
            sums[first : first + SUMMED][written] = row_sums
    return sums
