"""Checks that scikit-learn does not offer: of priors, arrays and CSR structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

#: The dtypes that the kernels compute in.
FLOATS = (np.float64, np.float32)
#: At most this many threads are started, or as many as there are processors if that is more.
MAX_THREADS = 64
#: Sums of counts, of priors and of topics stay below the largest number of their dtype by this
#: factor.  It leaves room for what they are multiplied by: logarithms and step sizes.
HEADROOM = 1e8
#: The same for sums of squares, which are only added up and divided by variances.
SQUARES_HEADROOM = 1e3


def n_threads(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs`; None means 1 unless in a joblib context.

    Only None is passed on to joblib.  Its answers for numbers depend on whether processes
    could be started here, which does not matter for threads.
    """
    if n_jobs is None:
        n_jobs = joblib.effective_n_jobs(None)
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 in Parallel has no meaning")
    processors = joblib.cpu_count()
    if n_jobs < 0:
        n_jobs = max(1, processors + 1 + n_jobs)
    return min(n_jobs, max(processors, MAX_THREADS))


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[Callable[[], None]]:
    """Restore the attributes of an estimator after an error.

    Parameters
    ----------
    estimator : object

    Yields
    ------
    callable
        Call it to commit changes: later errors no longer roll them back.
    """
    before: dict[str, Any] | None = dict(vars(estimator))

    def commit() -> None:
        nonlocal before
        before = None

    try:
        yield commit
    except BaseException:
        if before is not None:
            for name in vars(estimator).keys() - before.keys():
                delattr(estimator, name)
            for name, value in before.items():
                if vars(estimator).get(name) is not value:
                    setattr(estimator, name, value)
        raise


def as_array(value: Any) -> NDArray:
    """A parameter as an array.

    If rows have different lengths it is an array of dtype object, which all checks reject.
    """
    try:
        return np.asarray(value)
    except ValueError:
        return np.asarray(None)


def check_numbers(
    value: Any,
    name: str,
    owner: str,
    shapes: tuple[tuple[int, ...], ...],
    *,
    positive: bool = False,
) -> NDArray[np.float64]:
    """Check that a parameter is a finite array of one of some shapes, and return it.

    Parameters
    ----------
    value : float or array-like
    name, owner : str
        The parameter and the estimator, for the message.
    shapes : tuple of tuples
        Allowed shapes; ``()`` is a number.
    positive : bool
        Whether elements must be positive.
    """
    array = as_array(value)
    if array.dtype.kind not in "fiu" or array.shape not in shapes:
        allowed = " or ".join(
            f"an array of numbers of shape {s}" if s else "a float" for s in shapes
        )
        raise ValueError(
            f"The {name!r} parameter of {owner} must be {allowed}. "
            f"Got shape {array.shape} and dtype {array.dtype} instead."
        )
    least = np.finfo(np.float64).tiny if positive else -np.inf
    wrong = array[~(np.isfinite(array) & (array >= least))]
    if wrong.size:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be {'positive and ' * positive}finite. "
            f"Got {wrong.flat[0]} instead."
        )
    return array.astype(np.float64)


def check_squares(X: NDArray, name: str = "X") -> float:
    """The sum of squares of an array; ValueError if its dtype could not hold their products."""
    with np.errstate(over="ignore"):
        square = float(np.einsum("nd,nd->", X, X, dtype=np.float64))
    most = float(np.finfo(X.dtype).max) / SQUARES_HEADROOM
    if not square <= most:
        raise ValueError(
            f"The squares of {name} must be finite in {X.dtype}, and sum to at most {most:.3g}: "
            f"scale it. Got values up to {np.max(np.abs(X)):.3g}."
        )
    return square


def check_counts(X: Any, population: float = 1.0, method: str = "") -> float:
    """Check that sums of word counts stay in the range of their dtype; return the sum of all.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, V)
        Word counts, not negative.
    population : float
        Number of documents that a single one of these may stand for.
    method : str
        Where that number comes from, for the message.

    Raises
    ------
    ValueError
        If the sum, times the population, is above the largest number of the dtype divided by
        :data:`HEADROOM`.
    """
    with np.errstate(over="ignore"):
        total = float(X.data.sum(dtype=np.float64))
    most = float(np.finfo(X.dtype).max) / HEADROOM
    if not total <= most:
        raise ValueError(
            f"The counts in X must sum to at most {most:.3g} in {X.dtype}. Got {total:.3g}."
        )
    if max(total, 1.0) > most / max(population, 1.0):
        raise ValueError(
            f"The sum of the counts in X times {method} must be at most {most:.3g} in {X.dtype}. "
            f"Got {total:.3g} times {population:.3g}."
        )
    return total


def check_prior(
    value: ArrayLike | None,
    name: str,
    owner: str,
    shapes: tuple[tuple[int, ...], ...],
    dtype: np.dtype,
    *,
    default: float | None = None,
    summed: bool = False,
) -> float | NDArray[np.float64]:
    """Check a Dirichlet prior: a positive finite number, or an array of one of some shapes.

    Parameters
    ----------
    value : None, float or array-like
    name, owner : str
        The parameter and the estimator, for the message.
    shapes : tuple of tuples
        Shapes that an array may have.
    dtype : dtype
        The dtype that the model computes in; the prior must not underflow in it.
    default : float, optional
        The value that None means.
    summed : bool
        Whether sums of the prior, with :data:`HEADROOM`, must not overflow either.
    """
    if value is None and default is not None:
        return default
    array = as_array(value)
    if array.dtype.kind not in "fiu":
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a float or an array of floats. "
            f"Got {value!r} instead."
        )
    if array.ndim and array.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a float or an array of shape {allowed}. "
            f"Got an array of shape {array.shape} instead."
        )
    _check_positive(array, f"{name!r} parameter of {owner}", dtype, shapes[-1][-1] * summed)
    return float(array) if array.ndim == 0 else array.astype(np.float64)


def check_priors(
    alpha: ArrayLike | None,
    eta: ArrayLike | None,
    owner: str,
    shape: tuple[int, int],
    dtype: np.dtype,
    *,
    suffix: str = "",
    default: float | None = None,
    summed: bool = False,
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """The two priors of LDA, `doc_topic_prior` and `topic_word_prior`; see `check_prior`.

    Parameters
    ----------
    alpha, eta : None, float or array-like
    owner : str
    shape : tuple of int
        Topics K and words V.
    dtype : dtype
    suffix : str
        Follows the names in the message: ``"_"`` for fitted attributes.
    default : float, optional
    summed : bool
    """
    K, V = shape
    first, second = (f"{name}{suffix}" for name in ("doc_topic_prior", "topic_word_prior"))
    return (
        check_prior(alpha, first, owner, ((K,),), dtype, default=default, summed=summed),
        check_prior(eta, second, owner, ((V,), (K, V)), dtype, default=default, summed=summed),
    )


def check_topics(
    value: ArrayLike, name: str, owner: str, shape: tuple[int, int], dtype: np.dtype
) -> NDArray:
    """Check topics given as an array: lambda, positive and finite, of a given shape."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape != shape or not array.size:
        raise ValueError(
            f"The {name!r} of {owner} must be an array of numbers of shape {shape}, "
            f"(n_components, n_features). Got shape {array.shape} and dtype {array.dtype} instead."
        )
    _check_positive(array, f"{name!r} parameter of {owner}", dtype, shape[1])
    return array


def check_written(array: NDArray, name: str) -> None:
    """Check what a user has written to an array of topics: positive and finite, as in `assign`.

    Parameters
    ----------
    array : ndarray of shape (n_components, n_features)
    name : str
        Of the array, for the message.
    """
    _check_positive(array, f"values written to {name!r}", array.dtype, array.shape[1])


def _check_positive(array: NDArray, what: str, dtype: np.dtype, n_summed: int) -> None:
    """Raise ValueError unless all are positive and in the range of the model's dtype.

    Unless `n_summed` is 0, a sum of so many of them must be in the range too, with
    :data:`HEADROOM`.
    """
    least, most = array.min(), array.max()  # NaN if there is one; no array of their size
    if not (least > 0 and most < np.inf):
        wrong = array[~(np.isfinite(array) & (array > 0))]
        raise ValueError(f"The {what} must be positive and finite. Got {wrong.flat[0]} instead.")
    # scalars of float64, to which NumPy casts numbers of float32 that they are compared with
    tiny = np.float64(np.finfo(dtype).tiny)
    huge = np.float64(np.finfo(dtype).max) / (HEADROOM * n_summed if n_summed else 1.0)
    if least < tiny or most > huge:
        of = f" of sums of {n_summed} numbers" if n_summed else ""
        raise ValueError(
            f"The {what} must lie in [{tiny:.3g}, {huge:.3g}], the range{of} of {dtype}, the dtype "
            f"of X. Got {least if least < tiny else most} instead."
        )


def canonical_csr(X: Any) -> Any:
    """Return a CSR matrix whose indices are in range, sorted and without duplicates.

    The kernels rely on this, and a matrix whose arrays were edited by hand need not have
    these properties.  The given matrix is not changed.
    """
    n_samples, n_features = X.shape
    indptr, indices = X.indptr, X.indices
    if (
        len(indptr) != n_samples + 1
        or indptr[0] != 0
        or np.any(np.diff(indptr) < 0)
        or indptr[-1] > min(len(indices), len(X.data))
    ):
        raise ValueError("The indptr array of the sparse matrix X is not a valid CSR row index.")
    n_entries = int(indptr[-1])
    if n_entries:
        used = indices[:n_entries]
        if used.min() < 0 or used.max() >= n_features:
            raise ValueError(
                f"The indices array of the sparse matrix X must lie in [0, {n_features}). "
                f"Got values from {used.min()} to {used.max()}."
            )
        # look at the entries: the flag that SciPy caches may be wrong
        ascending = np.diff(used) > 0
        ends = indptr[1:-1]
        ascending[ends[(ends > 0) & (ends < n_entries)] - 1] = True
        if not ascending.all():
            X = X.copy()
            X.has_canonical_format = False
            X.has_sorted_indices = False
            X.sum_duplicates()
    if X.indices.dtype != X.indptr.dtype:
        X = X.copy()
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X
