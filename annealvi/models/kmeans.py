"""k-means, as a start of the mixtures: scikit-learn's bits depend on BLAS, so by processor."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi._kernels import gemm

#: Most steps of Lloyd's algorithm, which ends when the squares of its moves are at most this
#: fraction of the variance of X, as scikit-learn's.
MAX_ITER, TOLERANCE = 300, 1e-4


def sampled_rows(X: NDArray, n_rows: int, rng: RandomState) -> NDArray[np.intp]:
    """Indices of rows far from each other, drawn as scikit-learn's ``kmeans_plusplus`` does.

    The best of a few rows is taken that are drawn by the square of their distance to the nearest of
    those before (Arthur and Vassilvitskii 2007, *k-means++: the advantages of careful seeding*).
    """
    X = X - X.mean(axis=0, dtype=np.float64)  # so that differences of squares lose no digits
    n, squares = len(X), np.sum(X**2, axis=1)
    chosen = np.empty(n_rows, dtype=np.intp)
    nearest = np.full(n, np.inf)
    for row in range(n_rows):
        if row == 0:
            some = rng.choice(n, size=1, p=np.full(n, 1.0 / n))
        else:
            drawn = rng.uniform(size=2 + int(math.log(n_rows))) * nearest.sum()
            some = np.minimum(np.searchsorted(np.cumsum(nearest), drawn), n - 1)
        distances = squares + squares[some, None] - 2 * gemm.product(X[some], X.T)
        distances = np.clip(distances, 0.0, nearest)
        best = int(np.argmin(distances.sum(axis=1)))
        chosen[row], nearest = some[best], distances[best]
    return chosen


def k_means(X: NDArray, n_clusters: int, rng: RandomState) -> NDArray[np.intp]:
    """The cluster of each row, by Lloyd's algorithm from :func:`sampled_rows`."""
    X = X - X.mean(axis=0)
    centres, rows = X[sampled_rows(X, n_clusters, rng)], np.arange(len(X))
    least = TOLERANCE * float(np.mean(X**2))
    for _ in range(MAX_ITER):
        labels = np.argmin(np.sum(centres**2, axis=1) - 2 * gemm.product(X, centres.T), axis=1)
        members = np.zeros((len(X), n_clusters))
        members[rows, labels] = 1
        sizes = members.sum(axis=0)
        means = gemm.product(members.T, X) / np.maximum(sizes, 1)[:, None]
        before, filled = centres, sizes[:, None] > 0
        centres = np.where(filled, means, before)  # an empty cluster stays where it is
        if np.sum((centres - before) ** 2) <= least:
            break
    return labels
