"""Data: counts and real numbers, dense and sparse, sound and damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tests.fuzz.trial import Trial
from tests.fuzz.values import EXTREMES, NOT_FINITE

SPARSE = (sparse.csr_matrix, sparse.csr_array)
OTHER_FORMATS = ("csc", "coo", "lil", "dok", "bsr", "dia")


# ------------------------------------------------------------------------- damaged CSR


def _scribble(t: Trial, X: Any, name: str) -> np.ndarray:
    """Write odd numbers into one of the arrays."""
    array = getattr(X, name).copy()
    if array.size:
        for _ in range(t.one_of(1, 1, 2, 5)):
            place = t.whole(0, array.size - 1) if t.chance(0.4) else t.one_of(0, array.size - 1)
            if array.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    array.flat[place] = t.one_of(*EXTREMES, *NOT_FINITE, -1.0)
            elif array.dtype.kind == "b":
                array.flat[place] ^= True
            else:
                limits = np.iinfo(array.dtype)
                number = t.one_of(-1, 0, 1, X.shape[1], array.size + 1, 250, limits.min, limits.max)
                array.flat[place] = min(max(number, int(limits.min)), int(limits.max))
    return array


def _resize(t: Trial, X: Any, name: str) -> np.ndarray:
    """Another length or another number of dimensions."""
    array = np.atleast_1d(getattr(X, name))  # it may have been damaged before
    return t.one_of(
        array[:-1].copy(),
        array[:0].copy(),
        np.resize(array, array.size + t.one_of(1, 3, 100)),
        array.reshape(-1, 1).copy(),
        array[:1].reshape(()) if array.size == 1 else array[None],
    )


def _retype(t: Trial, X: Any, name: str) -> np.ndarray:
    """Another dtype, of other limits."""
    dtypes = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "f2", "?", "O", "c16")
    with np.errstate(all="ignore"):
        return getattr(X, name).astype(t.one_of(*dtypes, ">i4", ">f8", "g", "S3", "m8[s]"))


def _wrap(t: Trial, X: Any, name: str) -> np.ndarray:
    """Row pointers whose differences wrap around in their dtype."""
    n = max(0, X.shape[0])  # the shape may be damaged too
    if t.chance(0.5):
        array = np.zeros(n + 1, dtype=t.one_of("u1", "u2", "u4", "u8"))
        array[t.whole(0, n)] = t.one_of(250, 2, np.iinfo(array.dtype).max)
    else:
        dtype = t.one_of(np.int32, np.int64)
        most = np.iinfo(dtype).max
        array = np.resize(np.array([0, most, -most, -1, -most - 1], dtype), n + 1)
    array[0] = 0
    array[-1] = min(len(X.data), 100) if isinstance(X.data, np.ndarray) and X.data.ndim else 0
    return array


def _strange(t: Trial, X: Any, name: str) -> Any:
    """No array at all, or one with unusual memory."""
    array = getattr(X, name)
    doubled = np.repeat(array, 2)[::2]
    frozen = array.copy()
    frozen.flags.writeable = False
    return t.one_of(None, array.tolist(), doubled, array[::-1], frozen, np.ma.array(array))


def damage(t: Trial, X: Any) -> Any:
    """Damage the arrays of a copy of a CSR matrix; SciPy does not look when they are assigned.

    Parameters
    ----------
    t : Trial
    X : CSR matrix
    """
    X = X.copy()
    for _ in range(t.one_of(1, 1, 1, 2)):
        name = t.one_of("indptr", "indices", "data")
        array = getattr(X, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            break
        how = t.one_of(_scribble, _scribble, _resize, _retype, _strange)
        if name == "indptr" and t.chance(0.3):
            how = _wrap
        setattr(X, name, how(t, X, name))
        if t.chance(0.1):
            X._shape = (X.shape[0] + t.whole(-1, 1), max(1, X.shape[1] + t.whole(-2, 1)))
        if t.chance(0.3):
            X.has_sorted_indices = X.has_canonical_format = True
    return X


# ------------------------------------------------------------------------------ counts


def _counts(t: Trial, n_samples: int, n_features: int) -> np.ndarray:
    """Word counts, mostly small whole numbers."""
    X = t.rng.poisson(t.one_of(0.3, 1.0, 5.0), (n_samples, n_features)).astype(np.float64)
    if t.chance(0.3) and X.size:
        X[t.whole(0, n_samples - 1)] = 0
    style = t.one_of(*["counts"] * 6, "real", "extreme", "scaled", "zero")
    if style == "real":
        X *= t.rng.random_sample(X.shape)
    elif style == "scaled":
        X *= t.one_of(*EXTREMES, 1e3, 1e-3)
    elif style == "zero":
        X[:] = 0
    elif style == "extreme" and X.size:
        for _ in range(t.whole(1, 3)):
            X.flat[t.whole(0, X.size - 1)] = t.one_of(*EXTREMES, *NOT_FINITE, -1.0, 0.5, 1e9, 2e9)
    return X


def _retyped(t: Trial, X: np.ndarray) -> np.ndarray:
    dtype = t.one_of(*["f8"] * 6, *["f4"] * 3, "i4", "i8", "u1", "i1", "f2", "?", ">f4", "g")
    if t.chance(0.03):
        dtype = t.one_of("O", "c16", "U5", "m8[s]")
    with np.errstate(all="ignore"):
        return np.nan_to_num(X).astype(dtype) if np.dtype(dtype).kind in "iu" else X.astype(dtype)


def _framed(t: Trial, X: np.ndarray) -> pd.DataFrame:
    names = [f"word {v}" for v in range(X.shape[1])]
    if t.chance(0.1):
        names = t.one_of(names[::-1], list(range(X.shape[1])), ["same"] * X.shape[1])
    return pd.DataFrame(X, columns=names)


def _dense(t: Trial, X: np.ndarray) -> Any:
    how = t.one_of(*["plain"] * 5, "fortran", "strided", "frozen", "list", "frame", "flat", "deep")
    if how == "fortran":
        return np.asfortranarray(X)
    if how == "strided":
        return np.repeat(X, 2, axis=1)[:, ::2]
    if how == "frozen":
        X.flags.writeable = False
    elif how == "list":
        return X.tolist()
    elif how == "frame":
        return _framed(t, X)
    elif how == "flat" and t.chance(0.2):
        return X.ravel()
    elif how == "deep" and t.chance(0.2):
        return X[None]
    return X


def _sparse(t: Trial, X: np.ndarray, damaged: float) -> Any:
    if X.dtype.kind in "OUm" or X.dtype in (np.float16, np.longdouble):
        X = np.nan_to_num(X.astype(np.float64)) if X.dtype.kind in "fm" else np.ones(X.shape)
    made = t.one_of(*SPARSE)(X.astype(X.dtype.newbyteorder("=")))
    if t.chance(0.3):
        made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    if t.chance(0.1) and X.size:
        return made.asformat(t.one_of(*OTHER_FORMATS))
    if made.nnz and t.chance(0.2):  # a duplicate, in no order
        made.indices[t.whole(0, made.nnz - 1)] = t.whole(0, X.shape[1] - 1)
    if made.nnz and t.chance(0.1):  # room that is not used
        made.data = np.resize(made.data, made.data.size + 3)
        made.indices = np.resize(made.indices, made.indices.size + 3)
    if t.chance(damaged):
        return damage(t, made)
    return made


def sizes(t: Trial) -> tuple[int, int]:
    """Numbers of rows and columns: mostly few, around the widths of vectors."""
    if t.chance(0.03):
        return t.one_of((0, 5), (5, 0), (0, 0), (1, 1))
    if t.chance(0.15):
        return t.whole(30, 130), t.whole(1, 300)
    return t.whole(1, 12), t.whole(1, 40)


def corpus(
    t: Trial, n_features: int | None = None, n_samples: int | None = None, damaged: float = 0.3
) -> Any:
    """Word counts in some format.

    Parameters
    ----------
    t : Trial
    n_features, n_samples : int, optional
    damaged : float
        Share of the CSR matrices that are damaged.
    """
    D, V = sizes(t)
    D = D if n_samples is None else n_samples
    V = V if n_features is None or t.chance(0.03) else n_features
    X = _retyped(t, _counts(t, D, V)) if D and V else np.zeros((D, V))
    return _sparse(t, X, damaged) if t.chance(0.6) else _dense(t, X)


def good_corpus(t: Trial, n_samples: int, n_features: int) -> Any:
    """Word counts that every estimator takes."""
    X = t.rng.poisson(1.0, (n_samples, n_features)).astype(t.one_of(np.float64, np.float32))
    X[0, 0] += 1
    return sparse.csr_matrix(X) if t.chance(0.7) else X


# ------------------------------------------------------------------------------- reals


def points(t: Trial, n_features: int | None = None, n_samples: int | None = None) -> Any:
    """Real numbers, for the mixtures.

    Parameters
    ----------
    t : Trial
    n_features, n_samples : int, optional
    """
    N, D = sizes(t)
    N = N if n_samples is None else n_samples
    D = D if n_features is None or t.chance(0.03) else n_features
    X = t.rng.standard_normal((N, D))
    style = t.one_of(*["plain"] * 6, "scaled", "shifted", "constant", "extreme", "copies", "binary")
    with np.errstate(over="ignore"):
        if style == "scaled":
            X *= t.one_of(*EXTREMES, 1e3, 1e-3)
        elif style == "shifted":
            X += t.one_of(1e3, 1e8, 1e16, 1e100, 1e150, -1e160)
        elif style == "constant" and X.size:
            X[:, t.whole(0, D - 1)] = t.one_of(0.0, 1.0, 1e-300, 1e100)
        elif style == "copies" and X.size:
            X[:] = X[0]
        elif style == "binary":
            X = (X > 0).astype(np.float64)
        elif style == "extreme" and X.size:
            for _ in range(t.whole(1, 3)):
                X.flat[t.whole(0, X.size - 1)] = t.one_of(*EXTREMES, *NOT_FINITE)
    if t.chance(0.04):
        return _sparse(t, X, 0.5)
    return _dense(t, _retyped(t, X) if t.chance(0.5) else X)


def good_points(t: Trial, n_samples: int, n_features: int) -> np.ndarray:
    """Data that every mixture takes."""
    X = t.rng.standard_normal((n_samples, n_features))
    return X.astype(t.one_of(np.float64, np.float64, np.float32))
