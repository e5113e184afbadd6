"""Starting responsibilities of a Gaussian mixture, and which of its components are alike."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.cluster import KMeans, kmeans_plusplus

from annealvi._kernels.openmp import single_threaded_openmp


def initial_responsibilities(
    X: NDArray[np.float64], n_components: int, init: str, rng: RandomState
) -> NDArray[np.float64]:
    """Responsibilities at the start of a fit."""
    n, K = len(X), n_components
    if n < K and init != "random":
        raise ValueError(
            f"Expected n_samples >= n_components but got n_components = {K}, n_samples = {n} "
            f"with init_params={init!r}. Give 'means_init' or use init_params='random'."
        )
    responsibilities = np.zeros((n, K))
    if init == "kmeans":
        with single_threaded_openmp():
            labels = KMeans(K, n_init=1, random_state=rng).fit(X).labels_
        responsibilities[np.arange(n), labels] = 1
    elif init == "random":
        responsibilities = rng.uniform(size=(n, K)) + np.finfo(float).tiny
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
    else:
        if init == "k-means++":
            chosen = kmeans_plusplus(X, K, random_state=rng)[1]
        else:
            chosen = rng.choice(n, K, replace=False)
        responsibilities[chosen, np.arange(K)] = 1
    return responsibilities


def exchangeable(
    n_components: int,
    weights: NDArray[np.float64] | None,
    covariances: NDArray[np.float64] | None,
) -> NDArray[np.bool_]:
    """Which components have the same known weights and variances as another one."""
    known = [np.zeros((n_components, 1))]
    if weights is not None:
        known.append(weights[:, None])
    if covariances is not None:
        known.append(covariances)
    _, group, counts = np.unique(np.hstack(known), axis=0, return_inverse=True, return_counts=True)
    return counts[group.ravel()] > 1
