r"""Which topics to merge: two at a time, those that lose the least information about words.

Merging topics a and b of p_a and p_b words loses

.. math::
   p_a \mathrm{KL}(\beta_a \| \beta_{ab}) + p_b \mathrm{KL}(\beta_b \| \beta_{ab}), \quad
   \beta_{ab} = \frac{p_a \beta_a + p_b \beta_b}{p_a + p_b}

of the mutual information of topics and words (Slonim and Tishby 1999, *Agglomerative Information
Bottleneck*).  With n_kv words v of topic k and f(x) = x log x the loss is

    sum_v [f(n_av) + f(n_bv) - f(n_av + n_bv)] - [f(n_a) + f(n_b) - f(n_a + n_b)].
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import xlogy

#: Topics that are compared by their largest words alone: how many words, and how many neighbours.
WORDS, NEIGHBOURS = 30, 4


def groups_of(
    counts: NDArray[np.float64], n: int, n_neighbours: int | None = None
) -> list[list[int]]:
    """Merge topics until n groups are left; each group and all groups are in ascending order.

    `counts` are the words of each topic, of shape (K, V).  With `n_neighbours` a topic is compared
    with so many others, whose largest words are most alike: the work then grows with K, not with
    its square.
    """
    topics, groups = dict(enumerate(counts)), {k: [k] for k in range(len(counts))}
    sizes = {k: float(row.sum()) for k, row in topics.items()}
    own = {k: _entropy(row) for k, row in topics.items()}
    near = _neighbours(counts, n_neighbours or len(counts))

    def loss(a: int, b: int) -> tuple[float, int, int]:
        """What a merge loses, and the two topics; of equal losses the first topics are merged."""
        p, q = sizes[a], sizes[b]
        of_sizes = xlogy(p, p) + xlogy(q, q) - xlogy(p + q, p + q)
        lost = own[a] + own[b] - _entropy(topics[a] + topics[b]) - float(of_sizes)
        return lost, min(a, b), max(a, b)

    waiting = [loss(a, b) for a, others in near.items() for b in others if a < b]
    heapq.heapify(waiting)
    while len(groups) > n:
        if waiting:
            _, a, b = heapq.heappop(waiting)
            if a not in groups or b not in groups:
                continue
        else:  # the topics that are left are alike in none of their largest words
            a, b = sorted(groups, key=lambda k: (sizes[k], k))[:2]
        merged = len(near)  # which keeps those that were merged
        groups[merged] = sorted(groups.pop(a) + groups.pop(b))
        topics[merged] = topics.pop(a) + topics.pop(b)
        sizes[merged] = sizes.pop(a) + sizes.pop(b)
        own[merged] = _entropy(topics[merged])
        near[merged] = {k for k in near[a] | near[b] if k in groups}
        for k in near[merged]:
            near[k].add(merged)
            heapq.heappush(waiting, loss(merged, k))
    return sorted(groups.values())


def _neighbours(counts: NDArray[np.float64], n: int) -> dict[int, set[int]]:
    """The topics that each topic is compared with; who is a neighbour has it as a neighbour."""
    K, V = counts.shape
    if n >= K - 1:
        return {k: set(range(K)) - {k} for k in range(K)}
    most = min(WORDS, V)
    # row by row, because the array may be large
    largest = np.array([np.argpartition(-row, most - 1)[:most] for row in counts])
    values = np.sqrt(np.take_along_axis(counts, largest, axis=1))
    values /= np.maximum(np.sqrt(counts.sum(axis=1, keepdims=True)), np.finfo(np.float64).tiny)
    rows = sparse.csr_matrix(
        (values.ravel(), largest.ravel(), np.arange(0, K * most + 1, most)), shape=(K, V)
    )
    alike = (rows @ rows.T).tocsr()
    near: dict[int, set[int]] = {k: set() for k in range(K)}
    for k in range(K):
        part = slice(alike.indptr[k], alike.indptr[k + 1])
        others = alike.indices[part][np.argsort(-alike.data[part], kind="stable")]
        for other in others[others != k][:n].tolist():
            near[k].add(other)
            near[other].add(k)
    for k in near:
        if not near[k]:  # a topic without words, say, is compared with all
            near[k] = set(near) - {k}
            for other in near[k]:
                near[other].add(k)
    return near


def _entropy(row: NDArray[np.float64]) -> float:
    """sum_v n_v log n_v of the words of a topic."""
    return float(xlogy(row, row).sum())
