"""The most probable words of topics, for estimators and metrics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def top_columns(topics: NDArray, n: int) -> NDArray[np.intp]:
    """Columns of the n largest numbers of each row, largest first, ties in order of columns.

    Parameters
    ----------
    topics : ndarray of shape (n_topics, n_features), float
        Finite.
    n : int
        At least 1; all columns where there are fewer.

    Returns
    -------
    ndarray of shape (n_topics, min(n, n_features)), intp
    """
    n_topics, n_features = topics.shape
    n = min(n, n_features)
    columns = np.empty((n_topics, n), dtype=np.intp)
    for topic, row in zip(columns, topics, strict=True):
        # only those not below the n-th are sorted: a vocabulary is long, and n is small
        least = np.partition(row, n_features - n)[n_features - n]
        candidates = np.flatnonzero(row >= least)
        topic[:] = candidates[np.argsort(-row[candidates], kind="stable")[:n]]
    return columns
