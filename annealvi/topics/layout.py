"""How far topics are from one another: distances, their hierarchy, and places in a plane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Iterations that move places from where classical scaling puts them.
_ITERATIONS = 300


class Similarity(NamedTuple):
    """How similar topics are."""

    #: Hellinger distances of topics: 0 if they are the same, 1 if they share no word.
    distances: NDArray[np.float64]
    #: Their hierarchy by average linkage, as SciPy has it
    #: (:func:`scipy.cluster.hierarchy.linkage`): each row joins two clusters.
    linkage: NDArray[np.float64]

    def closest(self, n: int = 10) -> list[tuple[int, int]]:
        """Return the n pairs of topics that are most similar, closest first."""
        first, second = np.triu_indices(len(self.distances), k=1)
        order = np.argsort(self.distances[first, second], kind="stable")[:n]
        return list(zip(first[order].tolist(), second[order].tolist(), strict=True))


def hellinger(topics: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute :math:`\sqrt{1 - \sum_w \sqrt{p(w \mid k) p(w \mid l)}}` of all pairs of topics."""
    roots = np.sqrt(topics)
    distances = np.sqrt(np.clip(1.0 - roots @ roots.T, 0.0, 1.0))
    distances = np.maximum(distances, distances.T)
    np.fill_diagonal(distances, 0.0)
    return distances


def similarity(topics: NDArray[np.float64]) -> Similarity:
    """See :meth:`annealvi.topics.TopicSummary.similar`."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    distances = hellinger(topics)
    if len(distances) < 2:
        return Similarity(distances, np.empty((0, 4)))
    pairs = squareform(distances, checks=False)
    return Similarity(distances, hierarchy.linkage(pairs, "average", optimal_ordering=True))


def places(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place topics in a plane, at about their distances: metric multidimensional scaling.

    It starts from classical scaling, not at random, so the same distances give the same places.
    Classical scaling alone puts topics on top of one another, because it keeps only two of many
    dimensions.
    """
    from sklearn.manifold import smacof

    start = _classical(distances)
    if len(distances) < 3 or not distances.any():
        return start
    found, _ = smacof(
        distances, init=start, n_init=1, max_iter=_ITERATIONS, eps=1e-6, normalized_stress=False
    )
    return found - found.mean(axis=0)


def _classical(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two main dimensions of the distances; the largest number of each is positive."""
    squares = distances**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    result = np.zeros((len(distances), 2))
    n = min(2, len(distances))
    result[:, :n] = vectors[:, ::-1][:, :n] * np.sqrt(np.maximum(values[::-1][:n], 0.0))
    peaks = np.take_along_axis(result, np.abs(result).argmax(axis=0)[np.newaxis], axis=0)
    return np.where(peaks < 0, -result, result)
