"""Checks of priors, arrays and other parameters that scikit-learn does not offer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _param_validation

from annealvi.exceptions import BadParameter

Function = TypeVar("Function", bound=Callable[..., Any])

#: The dtypes that the kernels compute in.
FLOATS = (np.float64, np.float32)
#: The least normal number of float64, for example as the least divisor.
TINY = float(np.finfo(np.float64).tiny)
#: Upper limit of the number of threads, unless the machine has more processors than this.
MAX_THREADS = 64
#: Sums of counts, priors and topics must be smaller than the largest number of their dtype by this
#: factor, because they are later multiplied by logarithms and step sizes.
HEADROOM = 1e8
#: The same factor for sums of squares, which are only added up and divided by variances.
SQUARES_HEADROOM = 1e3
#: How many numbers of an array are checked at a time, to limit memory.
PART = 1 << 18


class Interval(_param_validation.Interval):
    """scikit-learn's interval, made to work with numbers of every type and size.

    A number that no float can represent, such as ``10**400``, is outside of the interval.
    scikit-learn's own interval raises one of NumPy's errors for it.  Other numbers, such as
    fractions, are compared after they are converted to float.
    """

    def __contains__(self, value: Any) -> bool:
        """Whether a number is in the interval; integers are compared exactly."""
        number = as_float(value)
        return math.isfinite(number) and super().__contains__(
            value if isinstance(value, Integral) else number
        )


def calm() -> Any:
    """Return a context in which NumPy raises no errors, whatever its user has set.

    Numbers that become 0 in a smaller dtype are ignored, as NumPy does.  Infinite numbers are
    warned of, unless the user ignores them.
    """
    settings: dict[str, Any] = {
        kind: "warn" if way == "raise" else way for kind, way in np.geterr().items()
    }
    return np.errstate(**(settings | {"under": "ignore"}))


def checked(function: Function) -> Function:
    """Wrap a public method or function so that its BadParameter errors contain its name.

    The error names ``Class.method`` for the method's parameters, ``Class`` for other parameters.
    """
    parameters = signature(function).parameters
    is_method = "self" in parameters

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        """Call the function; add its name to errors about parameters."""
        try:
            with calm():
                return function(*args, **options)
        except BadParameter as error:
            if error.owner is None:  # no inner function has named itself
                owner = type(args[0]).__name__ if is_method else function.__name__
                # "documents" if the error is about documents[3]
                name = error.name.partition("[")[0]
                is_parameter_of_method = (
                    is_method and name in parameters and function.__name__ != "__init__"
                )
                error.owner = f"{owner}.{function.__name__}" if is_parameter_of_method else owner
            raise

    return call  # type: ignore[return-value]


#: Constraints for parameters that are counts, fractions of a whole, or numbers of temperatures.
COUNT = [Interval(Integral, 1, None, closed="left")]
SHARE = [Interval(Real, 0, 1, closed="both")]
GRID_SIZE = [Interval(Integral, 2, 10**6, closed="both")]


def validated(**constraints: Any) -> Callable[[Function], Function]:
    """Check the parameters of a function by scikit-learn's constraints, and apply `checked`."""

    def decorate(function: Function) -> Function:
        """Wrap a function in both checks."""
        # `checked` must be the inner one: scikit-learn rewrites the messages of such errors
        check = _param_validation.validate_params(constraints, prefer_skip_nested_validation=True)
        return check(checked(function))

    return decorate


@contextmanager
def naming(owner: str) -> Iterator[None]:
    """Add the name of the parameter's owner to errors about bad parameters."""
    try:
        with calm():
            yield
    except BadParameter as error:
        error.owner = error.owner or owner
        raise


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`; None means 1 or the `n_jobs` of a joblib context.

    Numbers are not passed to joblib, because it would return 1 for all of them on a machine that
    can start threads but not processes.
    """
    if n_jobs is None:
        n_jobs = joblib.effective_n_jobs(None)
    if not isinstance(n_jobs, Integral):
        raise BadParameter("n_jobs", "an int or None", n_jobs)
    n_jobs = int(n_jobs)
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 in Parallel has no meaning")
    if n_jobs < 0:
        n_jobs = max(1, joblib.cpu_count() + 1 + n_jobs)
    if n_jobs <= MAX_THREADS:
        return n_jobs  # processors are not counted: this would take a tenth of a small `transform`
    return min(n_jobs, max(joblib.cpu_count(), MAX_THREADS))


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[Callable[[], None]]:
    """Restore the attributes of an estimator if an error occurs before `commit` is called."""
    attributes_before: dict[str, Any] | None = dict(vars(estimator))

    def commit() -> None:
        """Keep the present attributes, even if an error occurs later."""
        nonlocal attributes_before
        attributes_before = None

    try:
        yield commit
    except BaseException:  # also an interrupt of the user
        if attributes_before is not None:
            for name in vars(estimator).keys() - attributes_before.keys():
                delattr(estimator, name)
            vars(estimator).update(attributes_before)
        raise


def as_array(value: Any) -> NDArray:
    """Convert a parameter to an array.

    Rows of different lengths result in an array of dtype object, which all checks reject.
    """
    try:
        if isinstance(value, np.ma.MaskedArray) and value.mask.any():
            value = np.ma.filled(value.astype(float), np.nan)  # a masked number is a missing number
        return np.asarray(value)
    except ValueError:
        return np.asarray(None)  # an array of dtype object


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or one of the missing values of pandas."""
    # a text or a list of words is not, and may be long
    return not isinstance(value, Sequence) and str(value) in ("None", "nan", "<NA>", "NaT")


def check_width(
    X: Any, n: int, owner: str, what: str = " features as input", name: str = "X"
) -> None:
    """Raise scikit-learn's error if the number of features of a matrix is not n."""
    if X.shape[1] != n:
        raise ValueError(f"{name} has {X.shape[1]} features, but {owner} is expecting {n}{what}.")


def check_flag(value: Any, name: str) -> bool:
    """Check an argument that is True or False; 0 and 1 are also allowed."""
    if not isinstance(value, bool | np.bool_ | Integral):
        raise BadParameter(name, "a bool", value)
    return bool(value)


def is_int_in(value: Any, lower: int, upper: float = math.inf) -> bool:
    """Whether a value is an int, and not a bool, in the range [lower, upper]."""
    is_int = isinstance(value, Integral) and not isinstance(value, bool)
    return is_int and lower <= value <= upper


def check_count(value: Any, name: str) -> int:
    """Check an argument that counts something: an int of at least 1."""
    if not is_int_in(value, 1):
        raise BadParameter(name, "an int in the range [1, inf)", value)
    return int(value)


def as_float(value: Any) -> float:
    """Convert a number to float, or to infinity if it is too large for a float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_numbers(value: Any, name: str) -> NDArray[np.float64]:
    """Convert an argument to an array of float64; raise an error if it is not numeric."""
    array = as_array(value)
    if array.dtype.kind not in "fiub":
        raise BadParameter(name, "a float or an array of floats", _shown(value, array))
    return array.astype(float, copy=False)


def _shown(value: Any, array: NDArray) -> Any:
    """Return what an error message shows: an array itself, or a value that is not an array."""
    return array if array.ndim else value


def check_inverses(value: ArrayLike, name: str, min_length: int = 1) -> NDArray[np.float64]:
    """Check an array of at least `min_length` inverse temperatures, which may be in any order."""
    array = as_array(value)
    if array.dtype.kind not in "fiu" or array.ndim != 1 or len(array) < min_length:
        raise BadParameter(
            name,
            "a one-dimensional array of "
            + (f"at least {min_length} numbers" if min_length > 1 else "numbers"),
            array,
        )
    array = array.astype(float)
    _check_all(array, array > 0, name, "positive and finite")
    return array


def _check_all(array: NDArray, is_allowed: NDArray, name: str, must_be: str) -> None:
    """Raise BadParameter about the first value of an array that is not finite or not allowed."""
    wrong_values = array[~(np.isfinite(array) & is_allowed)]
    if wrong_values.size:
        raise BadParameter(name, must_be, wrong_values.flat[0])


def check_numbers(
    value: Any, name: str, *shapes: tuple[int, ...], positive: bool = False
) -> NDArray[np.float64]:
    """Check that a parameter is a finite array of one of the `shapes`; a number has shape ``()``.

    If no shapes are passed, any shape is allowed.
    """
    array = as_array(value)
    if array.dtype.kind not in "fiu" or (shapes and array.shape not in shapes):
        raise BadParameter(
            name,
            " or ".join([f"an array of numbers of shape {s}" if s else "a float" for s in shapes])
            or "a float or an array of floats",
            _shown(value, array),
        )
    lower = np.float64(TINY) if positive else -np.inf  # compared in float64, also with float32
    _check_all(array, array >= lower, name, "positive and finite" if positive else "finite")
    return array.astype(float)


def check_squares(X: NDArray, name: str = "X") -> float:
    """Return the sum of squares of an array, or raise ValueError if it is too large."""
    with np.errstate(over="ignore"):
        # einsum makes no array of the squares
        square = float(np.einsum("nd,nd->", X, X, dtype=float))
    limit = float(np.finfo(X.dtype).max) / SQUARES_HEADROOM
    if not square <= limit:
        raise ValueError(
            f"The sum of the squares of {name} must be at most {limit:.3g}, or {X.dtype} "
            f"overflows. The largest absolute value is {np.max(np.abs(X)):.3g}. Rescale {name}."
        )
    return square


def check_counts(X: Any, population: float = 1.0, method: str = "", *, dtype: Any = None) -> float:
    """Check that the sum of all word counts is in the range of a dtype, and return the sum.

    `population` is a factor that multiplies the sum later, which is called `method` in errors.
    """
    with np.errstate(over="ignore"):
        total = float(X.data.sum(dtype=float))
    return check_total(total, X.dtype if dtype is None else np.dtype(dtype), population, method)


def least_positive(counts: NDArray) -> float:
    """Return the smallest positive number of an array, or infinity if there is none."""
    smallest = np.inf
    for start in range(0, len(counts), PART):
        block = counts[start : start + PART]
        smallest = min(smallest, float(np.min(block, where=block > 0, initial=np.inf)))
    return smallest


def check_total(total: float, dtype: np.dtype, population: float = 1.0, method: str = "") -> float:
    """Check that a sum of word counts is in the range of a dtype, and return the sum.

    `population` is a factor that multiplies the sum later, which is called `method` in errors.
    """
    limit = float(np.finfo(dtype).max) / HEADROOM
    if not total <= limit:
        raise ValueError(
            f"The counts in X must sum to at most {limit:.3g}, or {dtype} overflows. Got {total:g}."
        )
    if max(total, 1.0) > limit / max(population, 1.0):
        raise ValueError(
            f"The sum of the counts in X times {method} must be at most {limit:.3g}, or {dtype} "
            f"overflows. Got {total:.3g} times {population:.3g}."
        )
    return total


def check_prior(
    value: ArrayLike | None,
    name: str,
    shapes: tuple[tuple[int, ...], ...],
    dtype: np.dtype,
) -> float | NDArray[np.float64]:
    """Check a Dirichlet prior: a positive finite number, or an array of one of the `shapes`.

    The prior must not underflow in the dtype that the model computes in, and the sum of the prior
    times :data:`HEADROOM` must not overflow.
    """
    array = as_array(value)
    if array.dtype.kind not in "fiu":
        raise BadParameter(name, "a float or an array of floats", value)
    if array.ndim and array.shape not in shapes:
        raise BadParameter(
            name, f"a float or an array of shape {' or '.join(map(str, shapes))}", array
        )
    # the last length of a shape is the number of values in a sum
    _check_positive(array, name, dtype, n_summed=shapes[-1][-1])
    return float(array) if array.ndim == 0 else array.astype(float)


def check_priors(
    alpha: ArrayLike | None,
    eta: ArrayLike | None,
    shape: tuple[int, int],
    dtype: np.dtype,
    *,
    suffix: str = "",
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Check the two priors of LDA, where `shape` is (K, V); `suffix` ends their names in errors."""
    K, V = shape
    return (
        check_prior(alpha, f"doc_topic_prior{suffix}", shapes=((K,),), dtype=dtype),
        check_prior(eta, f"topic_word_prior{suffix}", shapes=((V,), (K, V)), dtype=dtype),
    )


def check_topics(value: ArrayLike, name: str, shape: tuple[int, int], dtype: np.dtype) -> NDArray:
    """Check that topics are an array of the given shape, with positive and finite values."""
    array = as_array(value)
    if array.dtype.kind not in "fiu" or array.shape != shape or not array.size:
        raise BadParameter(
            name, (f"an array of numbers of shape {shape}, (n_components, n_features)"), array
        )
    _check_positive(array, name, dtype, n_summed=shape[1])
    return array


def _check_positive(array: NDArray, name: str, dtype: np.dtype, n_summed: int) -> None:
    """Check that all values are positive and in the range of the model's dtype.

    The sum of `n_summed` values, multiplied by :data:`HEADROOM`, must also be in that range.
    """
    smallest = array.min()
    largest = array.max()  # NaN if the array contains NaN
    if not (smallest > 0 and largest < np.inf):
        _check_all(array, array > 0, name, "positive and finite")
    # scalars of float64, because NumPy then compares numbers of float32 in float64
    tiny = np.float64(np.finfo(dtype).tiny)
    huge = np.float64(np.finfo(dtype).max) / (HEADROOM * n_summed)
    if smallest < tiny or largest > huge:
        must_be = (
            f"in [{tiny:.3g}, {huge:.3g}], the range of sums of {n_summed} numbers of {dtype}, the "
            "dtype of the fit"
        )
        raise BadParameter(name, must_be, smallest if smallest < tiny else largest)
