"""The check of word counts, for every method that takes documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scipy import sparse
from sklearn.utils.validation import check_non_negative

from annealvi._sparse import check_csr
from annealvi._validation import FLOATS, check_counts


def check_words(
    estimator: Any, X: Any, method: str, *, dtype: Any = FLOATS, reset: bool = False
) -> sparse.csr_matrix:
    """Check word counts and return them as a canonical CSR matrix.

    Parameters
    ----------
    estimator : TemperedLDA
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    method : str
        Its method that got X, for messages.
    dtype : dtype or tuple of dtypes
        Allowed ones; others are converted to the first.
    reset : bool
        Whether to set the estimator's number and names of features, instead of checking them.

    Raises
    ------
    TypeError
        If X is a list of texts.
    ValueError
        If it is no matrix of counts.
    """
    if _are_texts(X):
        raise TypeError(
            f"The X of {type(estimator).__name__}.{method} must be a matrix of word counts. "
            "Got texts: annealvi.TopicModel takes texts."
        )
    X = check_csr(X, estimator=estimator, reset=reset, dtype=dtype)
    check_non_negative(X, f"{type(estimator).__name__}.{method}")
    check_counts(X)
    return X


def _are_texts(X: Any) -> bool:
    """Whether X is a list, a Series or an array of str."""
    if isinstance(X, str) or sparse.issparse(X):  # a sparse array is read only once it is checked
        return False
    one_dimensional = isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1
    return one_dimensional and isinstance(next(iter(X), None), str)
