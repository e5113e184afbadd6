"""k-means for the starts of mixtures; unlike scikit-learn's it is identical on all processors."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi._kernels import gemm

#: Most steps of Lloyd's algorithm.  As in scikit-learn, it ends when the squared moves of the
#: centres are at most TOLERANCE times the variance of X.
MAX_ITER = 300
TOLERANCE = 1e-4


def sampled_rows(X: NDArray, n_rows: int, rng: RandomState) -> NDArray[np.intp]:
    """Draw indices of rows that are far from each other, like scikit-learn's ``kmeans_plusplus``.

    For each index, a few rows are drawn with probability proportional to the squared distance to
    the nearest row kept so far.  The one that lowers the sum of these distances most is kept.
    """
    X = X - X.mean(axis=0, dtype=float)  # so that differences of squares lose no digits
    n_samples = len(X)
    squares = np.sum(X**2, axis=1)
    chosen = np.empty(n_rows, dtype=np.intp)
    nearest_distances = np.full(n_samples, np.inf)
    for row in range(n_rows):
        if row == 0:
            # with p, as in scikit-learn, so that the random numbers are the same
            candidates = rng.choice(n_samples, size=1, p=np.full(n_samples, 1.0 / n_samples))
        else:
            drawn = rng.uniform(size=2 + int(math.log(n_rows))) * nearest_distances.sum()
            candidates = np.minimum(
                np.searchsorted(np.cumsum(nearest_distances), drawn), n_samples - 1
            )
        distances = squares + squares[candidates, None] - 2 * gemm.product(X[candidates], X.T)
        # a datum keeps its nearest centre; rounding errors could make a distance negative
        distances = np.clip(distances, 0.0, nearest_distances)
        best = np.argmin(distances.sum(axis=1))
        chosen[row] = candidates[best]
        nearest_distances = distances[best]
    return chosen


def k_means(X: NDArray, n_clusters: int, rng: RandomState) -> NDArray[np.intp]:
    """Find the cluster of each row by Lloyd's algorithm, which starts from `sampled_rows`."""
    X = X - X.mean(axis=0)  # so that differences of squares lose no digits
    centres = X[sampled_rows(X, n_clusters, rng)]
    least_move = TOLERANCE * np.mean(X**2)
    for _ in range(MAX_ITER):
        # the squared distances, without the squares of X, which do not change the order
        labels = np.argmin(np.sum(centres**2, axis=1) - 2 * gemm.product(X, centres.T), axis=1)
        members = np.eye(n_clusters)[labels]  # 1 in the column of each row's cluster
        sizes = members.sum(axis=0)[:, None]
        previous_centres = centres
        centres = centres.copy()  # the centre of an empty cluster does not move
        np.divide(gemm.product(members.T, X), sizes, out=centres, where=sizes > 0)
        if np.sum((centres - previous_centres) ** 2) <= least_move:
            break
    return labels
