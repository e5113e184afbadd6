"""Word counts for TemperedLDA: their check, and the dtype that a fit computes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_non_negative

from annealvi.checks import HEADROOM, as_array, check_counts, check_total, least_positive
from annealvi.lda.settings import PRIORS, is_learned, is_open
from annealvi.matrices import are_plain_counts, check_csr
from annealvi.scale.elsewhere import Counted, Elsewhere

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
#: Beside a larger prior a sum in float32 loses more than a thousandth of a word.
MOST_PRIOR = 2.0**13


def check_words(estimator: Any, X: Any, method: str, *, reset: bool = False) -> sparse.csr_matrix:
    """Check word counts and return them as a canonical CSR matrix, of float32 if X is, or float64.

    Whether their sums are in range is checked by :func:`in_dtype`.
    """
    if _are_texts(X):
        raise TypeError(
            f"The X of {type(estimator).__name__}.{method} must be a matrix of word counts. "
            "Got texts: annealvi.TopicModel takes texts."
        )
    if not reset and are_plain_counts(X, estimator):
        return X
    X = check_csr(X, estimator=estimator, reset=reset)
    check_non_negative(X, f"{type(estimator).__name__}.{method}")
    return X


class Prepared(NamedTuple):
    """What a fit gets, once it is checked."""

    #: In the dtype that the fit computes in.
    documents: sparse.csr_matrix | Elsewhere
    #: The dtype that the user sees.
    shown: np.dtype
    #: The parameters of the fit.
    parameters: Mapping[str, Any]


def _are_texts(X: Any) -> bool:
    """Whether X is a list, a Series or an array of str."""
    if isinstance(X, str) or sparse.issparse(X):  # a sparse array is read only once it is checked
        return False
    one_dimensional = isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1
    return one_dimensional and isinstance(next(iter(X), None), str)


def fit_dtype(
    parameters: Mapping[str, Any], X: sparse.csr_matrix | Counted, population: float
) -> np.dtype:
    """The dtype of a fit: that of the `dtype` parameter or, if it is ``"auto"``, float32.

    ``"auto"`` is the dtype of X if the parameters ask for scikit-learn's local step, and if float32
    cannot hold the counts.  It is float64 if `init` is an array with numbers that float32 does not
    have, and if float32 cannot hold the priors.
    """
    given = parameters["dtype"]
    if not is_open(given):
        return np.dtype(given)
    if _scikit_learns(parameters):
        return X.dtype  # the eps of the dtype is a part of that local step
    if not _hold_parameters(parameters, X.shape[1]):
        return DOUBLE
    return SINGLE if _hold_counts(*extent(X), population) else X.dtype


def extent(X: sparse.csr_matrix | Counted) -> tuple[float, float]:
    """The sum of word counts, and the least positive one (infinity if there is none)."""
    if isinstance(X, Counted):
        return X.n_words, X.least
    with np.errstate(over="ignore"):
        total = float(X.data.sum(dtype=np.float64))
    return total, least_positive(X.data)


def topics_dtype(parameters: Mapping[str, Any], components: NDArray) -> np.dtype:
    """The dtype of a model whose topics are given, without a fit.

    ``"auto"`` is float32 if it has all of their numbers: so topics that were found in float32 and
    shown in float64 are the same topics elsewhere.  It is the dtype of the topics if the parameters
    ask for scikit-learn's local step.
    """
    given = parameters["dtype"]
    if not is_open(given):
        return np.dtype(given)
    if _scikit_learns(parameters):
        return single_or_double(components)
    return SINGLE if _are_single(components) else DOUBLE


def single_or_double(array: NDArray) -> np.dtype:
    """float32 if an array is float32, and float64 if it is of any other dtype."""
    return SINGLE if array.dtype == SINGLE else DOUBLE


def in_dtype(X: sparse.csr_matrix, dtype: np.dtype) -> sparse.csr_matrix:
    """Check that a dtype can hold word counts, and return them in it; the indices are shared."""
    check_counts(X, dtype=dtype)
    if X.dtype == dtype:
        return X
    _check_least(least_positive(X.data), dtype)
    converted = sparse.csr_matrix(X.shape, dtype=dtype)
    converted.data = X.data.astype(dtype)
    converted.indices, converted.indptr = X.indices, X.indptr
    converted.has_canonical_format = True
    return converted


def check_fits(X: Counted, dtype: np.dtype) -> None:
    """Check that a dtype can hold word counts and their sum; see :func:`in_dtype`."""
    check_total(X.n_words, dtype)
    _check_least(X.least, dtype)


def _check_least(found: float, dtype: np.dtype) -> None:
    """Raise ValueError if the least positive count would become 0."""
    least = float(np.finfo(dtype).smallest_subnormal)
    if found < least:
        raise ValueError(
            f"The counts in X must be 0 or at least {least:.3g} in {dtype}. Got {found:.3g}."
        )


def _scikit_learns(parameters: Mapping[str, Any]) -> bool:
    """Whether the parameters ask for scikit-learn's local step."""
    return parameters["preset"] == "sklearn" or parameters["document_init"] == "random"


def _hold_counts(total: float, least: float, population: float) -> bool:
    """Whether float32 can hold the counts, and their sum times the population."""
    limits = np.finfo(SINGLE)
    with np.errstate(over="ignore"):
        total = max(total, 1.0) * max(population, 1.0)
    return bool(total <= float(limits.max) / HEADROOM and least >= limits.tiny)


def _hold_parameters(parameters: Mapping[str, Any], n_features: int) -> bool:
    """Whether float32 can hold the priors and the topics that are given, or none are."""
    given = [parameters[name] for name in PRIORS]
    priors = [as_array(value) for value in given if value is not None and not is_learned(value)]
    if not all(_within(prior, MOST_PRIOR) for prior in priors):
        return False
    init = parameters["init"]
    if isinstance(init, str):
        return True
    topics = as_array(init)
    return _are_single(topics) and _within(
        topics, float(np.finfo(SINGLE).max) / (HEADROOM * n_features)
    )


def _are_single(array: NDArray) -> bool:
    """Whether all numbers of an array are numbers of float32."""
    if array.dtype == SINGLE or array.dtype.kind not in "fiu":
        return array.dtype == SINGLE  # the check of the parameter has the message
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return all(np.array_equal(row.astype(SINGLE), row) for row in np.atleast_2d(array))


def _within(array: NDArray, most: float) -> bool:
    """Whether all are positive numbers of float32, and at most `most`."""
    if array.dtype.kind not in "fiu" or not array.size:
        return True  # the check of the parameter has the message
    least = np.float64(np.finfo(SINGLE).tiny)
    return bool(array.min() >= least and array.max() <= np.float64(most))
