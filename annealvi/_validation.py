"""Checks that scikit-learn does not offer: of priors and arrays."""

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
    """The sum of squares of an array, in double precision; ValueError if it is not finite."""
    with np.errstate(over="ignore"):
        square = float(np.einsum("nd,nd->", X, X, dtype=np.float64))
    if not np.isfinite(square):
        raise ValueError(
            f"The squares of {name} must be finite. Got values up to {np.max(np.abs(X)):.3g}."
        )
    return square


def check_prior(
    value: ArrayLike | None,
    name: str,
    owner: str,
    shapes: tuple[tuple[int, ...], ...],
    dtype: np.dtype,
    *,
    default: float | None = None,
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
    _check_positive(array, name, owner, dtype)
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
    """
    K, V = shape
    first, second = (f"{name}{suffix}" for name in ("doc_topic_prior", "topic_word_prior"))
    return (
        check_prior(alpha, first, owner, ((K,),), dtype, default=default),
        check_prior(eta, second, owner, ((V,), (K, V)), dtype, default=default),
    )


def check_topics(
    value: ArrayLike, name: str, owner: str, shape: tuple[int, int], dtype: np.dtype
) -> NDArray:
    """Check topics given as an array: lambda, positive and finite, of a given shape."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape != shape:
        raise ValueError(
            f"The {name!r} of {owner} must be an array of numbers of shape {shape}, "
            f"(n_components, n_features). Got shape {array.shape} and dtype {array.dtype} instead."
        )
    _check_positive(array, name, owner, dtype)
    return array


def _check_positive(array: NDArray, name: str, owner: str, dtype: np.dtype) -> None:
    """Raise ValueError unless all are positive, finite and in the range of the model's dtype."""
    wrong = array[~(np.isfinite(array) & (array > 0))]
    if wrong.size:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be positive and finite. "
            f"Got {wrong.flat[0]} instead."
        )
    # scalars of float64, to which NumPy casts an array of float32 that they are compared with
    tiny, huge = np.float64(np.finfo(dtype).tiny), np.float64(np.finfo(dtype).max)
    wrong = array[(array < tiny) | (array > huge)]
    if wrong.size:
        raise ValueError(
            f"The {name!r} parameter of {owner} must lie in [{tiny:.3g}, {huge:.3g}], the range "
            f"of {dtype}, the dtype of X. Got {wrong.flat[0]} instead."
        )
