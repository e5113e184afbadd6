"""The check of word counts, for every method that takes documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_non_negative

from annealvi.lda.dtypes import fit_dtype, in_dtype
from annealvi.matrices import are_plain_counts, check_csr
from annealvi.scale.elsewhere import Elsewhere


def check_words(estimator: Any, X: Any, method: str, *, reset: bool = False) -> sparse.csr_matrix:
    """Check word counts and return them as a canonical CSR matrix, of float32 if X is, or float64.

    Whether their sums are in range is checked by :func:`annealvi.lda.dtypes.in_dtype`.
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


def prepare_words(estimator: Any, X: Any) -> Prepared:
    """Check the documents of a fit, and set the estimator's number and names of features."""
    X = check_words(estimator, X, "fit", reset=True)
    parameters = vars(estimator)
    return Prepared(in_dtype(X, fit_dtype(parameters, X, X.shape[0])), X.dtype, parameters)


def _are_texts(X: Any) -> bool:
    """Whether X is a list, a Series or an array of str."""
    if isinstance(X, str) or sparse.issparse(X):  # a sparse array is read only once it is checked
        return False
    one_dimensional = isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1
    return one_dimensional and isinstance(next(iter(X), None), str)
