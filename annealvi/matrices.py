"""The one door for sparse input: its structure is checked before anything reads it.

A sparse matrix of SciPy is a few arrays that anyone can change.  SciPy, scikit-learn and the
kernels trust them: with an index out of range they read or write outside of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import validate_data

from annealvi._kernels import counts as kernels
from annealvi.checks import FLOATS, as_array

#: Entries that are compared at a time.
CHUNK = 1 << 20
_LARGEST = np.iinfo(np.int64).max
_INDICES = (np.dtype(np.int32), np.dtype(np.int64))


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
    """Check a dense or sparse matrix by scikit-learn's rules, a sparse one by SciPy's as well.

    Every function of the library that takes a matrix begins with this.  The arrays of a sparse
    matrix must not change, from another thread or a callback, until that function has returned.
    """
    dtype = list(dtype) if isinstance(dtype, tuple) else dtype
    if sparse.issparse(X):
        if not accept_sparse:  # scikit-learn may print the matrix, and so read its arrays
            raise TypeError(
                f"Sparse data was passed for {name}, but dense data is required. "
                "Use '.toarray()' to convert to a dense numpy array."
            )
        X = sound_csr(X, name)
    elif hasattr(X, "dtypes") and 0 in getattr(X, "shape", ()):
        X = np.asarray(X)  # scikit-learn before 1.7 looks for the common dtype of no columns
    if estimator is None:
        X = check_array(X, accept_sparse="csr", dtype=dtype, order=order, input_name=name)
    else:
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=dtype, order=order)
    if not X.dtype.isnative:  # scikit-learn converts all but those of a DataFrame
        X = X.astype(X.dtype.newbyteorder("="))
    if sparse.issparse(X) and not _in_order(X):
        X = X.copy()
        X.has_canonical_format = X.has_sorted_indices = False
        X.sum_duplicates()
        assert_all_finite(X.data, input_name=name)
    return X


def check_csr(X: Any, **options: Any) -> sparse.csr_matrix:
    """Check a dense or sparse matrix, see :func:`check_matrix`, and return it as a CSR matrix."""
    X = check_matrix(X, **options)
    return X if sparse.issparse(X) else sparse.csr_matrix(X)


def sound_csr(X: Any, name: str = "X") -> sparse.csr_matrix:
    """Return a sparse matrix as a CSR matrix that SciPy may read, whatever was done to X.

    Its entries may come in any order and more than once.
    """
    shape = _attribute(X, "shape")
    if not isinstance(shape, tuple) or not all(
        isinstance(n, Integral) and not isinstance(n, bool) and 0 <= int(n) <= _LARGEST
        for n in shape
    ):
        raise ValueError(
            f"The shape of the sparse matrix {name} must be a tuple of non-negative integers "
            f"below 2**63. Got {shape!r}."
        )
    if len(shape) != 2:
        raise ValueError(f"Expected 2D input, got input with shape {shape}.")
    if X.format not in _READERS:
        raise ValueError(
            f"The sparse matrix {name} must have one of SciPy's formats, {', '.join(_READERS)}. "
            f"Got {X.format!r}."
        )
    return _READERS[X.format](X, (int(shape[0]), int(shape[1])), name)


def are_plain_counts(X: Any, estimator: Any) -> bool:
    """Whether a matrix of counts needs no check and no conversion.

    One look at the arrays of a CSR matrix tells what :func:`check_matrix` and the check for
    negative numbers find out in a dozen, which takes as long as a step with a few documents.  What
    they may convert, refuse or warn of is left to them.
    """
    if type(X) is not sparse.csr_matrix or getattr(estimator, "feature_names_in_", X) is not X:
        return False
    data, indices, indptr = (vars(X).get(name) for name in ("data", "indices", "indptr"))
    if not (_is_plain(data) and _is_plain(indices) and _is_plain(indptr)):
        return False
    if data.dtype not in FLOATS or indices.dtype not in _INDICES or indices.dtype != indptr.dtype:
        return False
    shape = len(indptr) - 1, getattr(estimator, "n_features_in_", None)
    if _attribute(X, "shape") != shape or 0 in shape:
        return False
    return kernels.are_plain(data, indices, indptr, shape[1])


def _is_plain(array: Any) -> bool:
    """Whether a kernel can read an array as it is."""
    return (
        type(array) is np.ndarray
        and array.ndim == 1
        and array.flags.c_contiguous
        and array.flags.aligned
        and array.dtype.isnative
    )


def _in_order(X: sparse.csr_matrix) -> bool:
    """Whether the columns of each row rise; SciPy only notes whether they did."""
    n_entries = len(X.indices)
    for first in range(0, n_entries, CHUNK):  # the matrix may be larger than memory
        stop = min(first + CHUNK, n_entries - 1)
        ascending = X.indices[first + 1 : stop + 1] > X.indices[first:stop]
        # of its own dtype: NumPy would copy indptr to compare
        begin, end = np.searchsorted(X.indptr, X.indptr.dtype.type([first + 1, stop + 1]))
        ends = X.indptr[begin:end]  # of rows, whose next entry need not be larger
        ascending[ends - 1 - first] = True
        if not ascending.all():
            return False
    return True


# ------------------------------------------------------------------------------- formats


def _from_csr(X: Any, shape: tuple[int, int], name: str) -> sparse.csr_matrix:
    data, indices, indptr = _compressed(X, shape, name)
    unchanged = data is X.data and indices is X.indices and indptr is X.indptr
    if unchanged and type(X) is sparse.csr_matrix:
        return X
    # not from the three arrays: SciPy would look through int64 indices for whether int32 will do
    result = sparse.csr_matrix(shape)
    result.data, result.indices, result.indptr = data, indices, indptr
    return result


def _from_csc(X: Any, shape: tuple[int, int], name: str) -> sparse.csr_matrix:
    data, indices, indptr = _compressed(X, shape[::-1], name)
    return sparse.csc_matrix((_convertible(data), indices, indptr), shape=shape).tocsr()


def _from_bsr(X: Any, shape: tuple[int, int], name: str) -> sparse.csr_matrix:
    block = _array(X, "data", name, ndim=3).shape[1:]
    if 0 in block or shape[0] % block[0] or shape[1] % block[1]:
        raise ValueError(
            f"The data array of the sparse matrix {name} must hold blocks that divide its shape "
            f"{shape}. Got blocks of shape {block}."
        )
    blocks = (shape[0] // block[0], shape[1] // block[1])
    data, indices, indptr = _compressed(X, blocks, name, ndim=3)
    return sparse.bsr_matrix((_convertible(data), indices, indptr), shape=shape).tocsr()


def _from_coo(X: Any, shape: tuple[int, int], name: str) -> sparse.csr_matrix:
    row, col = _indices(X, "row", name), _indices(X, "col", name)
    return _from_triples(_values(X, name), row, col, shape, name)


def _from_dia(X: Any, shape: tuple[int, int], name: str) -> sparse.csr_matrix:
    offsets, data = _indices(X, "offsets", name), _values(X, name, ndim=2)
    if len(offsets) != len(data) or len(np.unique(offsets)) != len(offsets):
        raise ValueError(
            f"The offsets array of the sparse matrix {name} must have one entry, different from "
            f"all others, for each of {len(data)} rows of its data array. Got {offsets}."
        )
    inside = (offsets > -shape[0]) & (offsets < shape[1])
    if not inside.any():
        return sparse.csr_matrix(shape, dtype=_convertible(data).dtype)
    diagonals = (_convertible(data)[inside], offsets[inside])
    return sparse.dia_matrix(diagonals, shape=shape).tocsr()


def _from_lil(X: Any, shape: tuple[int, int], name: str) -> sparse.csr_matrix:
    columns, values = _lists(X, "rows", shape[0], name), _lists(X, "data", shape[0], name)
    lengths = [len(row) for row in columns]
    if lengths != [len(row) for row in values]:
        raise ValueError(
            f"The lists in the rows and data arrays of the sparse matrix {name} must have the "
            "same lengths."
        )
    return _from_triples(
        _listed_values(X, chain.from_iterable(values), name),
        np.repeat(np.arange(shape[0]), lengths),
        _listed_indices(chain.from_iterable(columns), "column indices", name),
        shape,
        name,
    )


def _from_dok(X: Any, shape: tuple[int, int], name: str) -> sparse.csr_matrix:
    keys = list(X.keys())
    if not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        raise ValueError(f"The keys of the sparse matrix {name} must be pairs of integers.")
    row = _listed_indices((key[0] for key in keys), "row indices", name)
    col = _listed_indices((key[1] for key in keys), "column indices", name)
    return _from_triples(_listed_values(X, X.values(), name), row, col, shape, name)


_READERS: dict[str, Callable[[Any, tuple[int, int], str], sparse.csr_matrix]] = {
    "csr": _from_csr,
    "csc": _from_csc,
    "coo": _from_coo,
    "lil": _from_lil,
    "dok": _from_dok,
    "dia": _from_dia,
    "bsr": _from_bsr,
}


def _from_triples(
    data: NDArray, row: NDArray, col: NDArray, shape: tuple[int, int], name: str
) -> sparse.csr_matrix:
    if not data.shape == row.shape == col.shape:  # of lists in lists there are two dimensions
        raise ValueError(
            f"The row, col and data arrays of the sparse matrix {name} must have the same "
            f"shape. Got {row.shape}, {col.shape} and {data.shape}."
        )
    _check_range(row, "row indices", shape[0], name)
    _check_range(col, "column indices", shape[1], name)
    return sparse.coo_matrix((_convertible(data), (row, col)), shape=shape).tocsr()


def _compressed(
    X: Any, shape: tuple[int, int], name: str, ndim: int = 1
) -> tuple[NDArray, NDArray, NDArray]:
    """The arrays of rows (CSR), columns (CSC) or rows of blocks (BSR), without unused entries."""
    indptr, indices = _indices(X, "indptr", name), _indices(X, "indices", name)
    data = _values(X, name, ndim)
    n_rows, limit = shape
    if len(indptr) != n_rows + 1:
        raise ValueError(
            f"The indptr array of the sparse matrix {name} must have {n_rows + 1} entries, one "
            f"more than its rows (CSC: columns). Got {len(indptr)}."
        )
    falls = indptr[1:] < indptr[:-1]  # compared, because differences wrap
    if indptr[0] != 0 or falls.any():
        found = f"{indptr[0]} at its beginning"
        if indptr[0] == 0:
            place = int(np.argmax(falls))
            found = f"{indptr[place]} and then {indptr[place + 1]}, entries {place} and {place + 1}"
        raise ValueError(
            f"The indptr array of the sparse matrix {name} must begin at 0 and never fall. "
            f"Got {found}."
        )
    n_entries = int(indptr[-1])
    if not n_entries <= len(indices) == len(data):
        raise ValueError(
            f"The indices and data arrays of the sparse matrix {name} must have the same length, "
            f"at least {n_entries}, where its indptr array ends. "
            f"Got {len(indices)} and {len(data)}."
        )
    if len(indices) > n_entries:
        data, indices = data[:n_entries], indices[:n_entries]
    _check_range(indices, "indices array", limit, name)
    common = np.int64 if max(indices.itemsize, indptr.itemsize) > 4 else np.int32
    return data, indices.astype(common, copy=False), indptr.astype(common, copy=False)


# --------------------------------------------------------------------------- their arrays


def _attribute(X: Any, attribute: str) -> Any:
    """An attribute, or None where it is missing or cannot be computed from what is there."""
    try:
        return getattr(X, attribute)
    except (AttributeError, IndexError, TypeError, ValueError):
        return None


def _array(X: Any, attribute: str, name: str, ndim: int = 1) -> NDArray:
    """One of the arrays of X as one that NumPy, SciPy and the kernels read in the same way."""
    array = _attribute(X, attribute)
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise ValueError(
            f"The {attribute} array of the sparse matrix {name} must be a NumPy array. "
            f"Got {type(array).__name__}."
        )
    if array.ndim != ndim:
        raise ValueError(
            f"The {attribute} array of the sparse matrix {name} must have {ndim} dimension(s). "
            f"Got shape {array.shape}."
        )
    return array


def _indices(X: Any, attribute: str, name: str) -> NDArray:
    return _signed(_array(X, attribute, name), f"{attribute} array", name)


def _signed(array: NDArray, what: str, name: str) -> NDArray:
    if array.dtype.kind != "i":
        raise ValueError(
            f"The {what} of the sparse matrix {name} must be of a signed integer type. "
            f"Got {array.dtype}."
        )
    return _plain(array)


def _values(X: Any, name: str, ndim: int = 1) -> NDArray:
    return _numbers(_array(X, "data", name, ndim), "data array", name)


def _numbers(array: NDArray, what: str, name: str) -> NDArray:
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"The {what} of the sparse matrix {name} must hold real numbers. "
            f"Got dtype {array.dtype}."
        )
    return _plain(array)


def _plain(array: NDArray) -> NDArray:
    """The array itself, or a copy that is contiguous, aligned and in native byte order."""
    if type(array) is np.ndarray and array.flags.carray and array.dtype.isnative:
        return array
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A", "E"])


def _lists(X: Any, attribute: str, n_rows: int, name: str) -> NDArray:
    """One of the two arrays of a LIL matrix."""
    array = _array(X, attribute, name)
    if len(array) != n_rows or not all(isinstance(row, list) for row in array):
        raise ValueError(
            f"The {attribute} array of the sparse matrix {name} must hold {n_rows} lists. "
            f"Got {len(array)} entries of dtype {array.dtype}."
        )
    return array


def _listed_indices(numbers: Iterable[Any], what: str, name: str) -> NDArray:
    array = as_array(list(numbers))
    return _signed(array if array.size else np.empty(0, np.int64), what, name)


def _listed_values(X: Any, numbers: Iterable[Any], name: str) -> NDArray:
    array = as_array(list(numbers))
    array = _numbers(array if array.size else np.empty(0), "data", name)
    return array.astype(np.float32) if _attribute(X, "dtype") == np.float32 else array


def _check_range(indices: NDArray, what: str, limit: int, name: str) -> None:
    if len(indices) and not (indices.min() >= 0 and int(indices.max()) < limit):
        raise ValueError(
            f"The {what} of the sparse matrix {name} must lie in [0, {limit}). "
            f"Got values from {indices.min()} to {indices.max()}."
        )


def _convertible(data: NDArray) -> NDArray:
    """The data in a dtype in which SciPy converts formats, and in which sums do not overflow."""
    wide = data.dtype.kind == "f" and data.dtype.itemsize >= 4
    return data if wide else data.astype(np.float64)
