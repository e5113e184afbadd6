"""The most probable words of topics, for estimators and metrics."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi.checks import as_array


def top_columns(topics: NDArray, n: int) -> NDArray[np.intp]:
    """Return the columns of the n largest numbers of each row, largest first.

    Equal numbers are taken in the order of their columns.
    """
    n_topics, n_features = topics.shape
    n = min(n, n_features)
    columns = np.empty((n_topics, n), dtype=np.intp)
    for topic, row in zip(columns, topics, strict=True):
        # sort only those not below the n-th largest: a vocabulary is long, and n is small
        least = np.partition(row, n_features - n)[n_features - n]
        candidates = np.flatnonzero(row >= least)
        topic[:] = candidates[np.argsort(-row[candidates], kind="stable")[:n]]
    return columns


def top_words(
    topics: NDArray, n: int, feature_names: ArrayLike | None, estimator: Any
) -> list[list[Any]]:
    """Return the words of :func:`top_columns`, for the `top_words` method of an estimator."""
    n_features = topics.shape[1]
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"'n' must be an int in the range [1, inf). Got {n!r} instead.")
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", range(n_features))
    names = as_array(feature_names)
    if names.shape != (n_features,):
        raise ValueError(
            f"'feature_names' must have one name for each of the {n_features} "
            f"features. Got shape {names.shape} instead."
        )
    return names[top_columns(topics, int(n))].tolist()
