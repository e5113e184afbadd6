"""Ways to reduce the topics of a fit, compared by held-out likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage

from annealvi import TemperedLDA, topics
from annealvi.metrics import document_completion, split_tokens

#: Documents on which the loss of prediction is measured.
JUDGES = 1000
SEEDS = (0, 1)


def by_prediction(lda: TemperedLDA, n: int, X: sparse.csr_matrix) -> TemperedLDA:
    """Merge the two topics that cost the least likelihood of hidden words, until n are left.

    Proportions are those that the other half of each document's words gives.  If topics a and b
    of sizes w_a and w_b are merged, the probability of a word changes by
    (beta_a - beta_b) (w_a theta_b - w_b theta_a) / (w_a + w_b).
    """
    seen, hidden = split_tokens(X[:JUDGES], random_state=0)
    theta = lda.transform(seen)
    components = np.asarray(lda.components_)
    size = components.sum(axis=1)
    rows = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr))
    beta, theta = (components / size[:, None])[:, hidden.indices].T.copy(), theta[rows]
    probability = (beta * theta).sum(axis=1)
    parts = {topic: [topic] for topic in range(len(components))}

    def losses(a: int, others: NDArray) -> NDArray:
        share = size[a] / (size[a] + size[others])
        change = (beta[:, [a]] - beta[:, others]) * (
            share * theta[:, others] - (1 - share) * theta[:, [a]]
        )
        ratio = np.maximum(change / probability[:, None], -1 + 1e-9)
        return -(hidden.data[:, None] * np.log1p(ratio)).sum(axis=0)

    K = len(components)
    loss = np.full((K, K), np.inf)
    for a in range(K - 1):
        others = np.arange(a + 1, K)
        loss[a, others] = losses(a, others)
    while len(parts) > n:
        a, b = divmod(int(np.argmin(loss)), K)
        share = size[a] / (size[a] + size[b])
        beta[:, a] = share * beta[:, a] + (1 - share) * beta[:, b]
        theta[:, a] += theta[:, b]
        theta[:, b] = 0
        size[a] += size[b]
        probability = (beta * theta).sum(axis=1)
        parts[a] += parts.pop(b)
        loss[b, :] = loss[:, b] = np.inf
        others = np.array([topic for topic in parts if topic != a], dtype=int)
        loss[np.minimum(a, others), np.maximum(a, others)] = losses(a, others)
    return _merged(lda, list(parts.values()))


def by_distance(lda: TemperedLDA, n: int, X: sparse.csr_matrix) -> TemperedLDA:
    """Cluster the topics by Hellinger distance (average linkage)."""
    beta = np.asarray(lda.components_)
    roots = np.sqrt(beta / beta.sum(axis=1)[:, None])
    labels = fcluster(linkage(roots, "average"), n, "maxclust")
    return _merged(lda, [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)])


def smallest_dropped(lda: TemperedLDA, n: int, X: sparse.csr_matrix) -> TemperedLDA:
    """Drop the smallest topics."""
    order = np.argsort(lda.components_.sum(axis=1))
    return topics.drop(lda, order[: len(order) - n].tolist())


def _merged(lda: TemperedLDA, parts: Sequence[Sequence[int]]) -> TemperedLDA:
    return topics.merge(lda, [part for part in parts if len(part) > 1])


WAYS: dict[str, Callable[..., TemperedLDA]] = {
    "information": lambda lda, n, X: topics.reduce(lda, n),
    "information, sizes from X": lambda lda, n, X: topics.reduce(lda, n, X),
    "prediction": by_prediction,
    "Hellinger distance": by_distance,
    "smallest dropped": smallest_dropped,
}


def compare(corpora: dict[str, Any]) -> tuple[list[list[str]], tuple[list[str], list[list[str]]]]:
    """Rows of a table, and a table of their means: behind the best, before and after `refine`.

    Parameters
    ----------
    corpora : dict of str to tuple
        Documents, number of topics that are fitted, and those that are kept.
    """
    rows, all_scores = [], []
    for corpus, (X, n_topics, kept) in corpora.items():
        scores: dict[tuple[int, str], list[tuple[float, float]]] = {}
        for seed in SEEDS:
            order = np.random.RandomState(seed).permutation(X.shape[0])
            test, train = X[order[: X.shape[0] // 10]], X[order[X.shape[0] // 10 :]]
            lda = TemperedLDA(n_topics, random_state=seed).fit(train)
            for n in kept:
                for way, reduced in WAYS.items():
                    model = reduced(lda, n, train)
                    pair = model, topics.refine(model, train)
                    found = tuple(document_completion(one, test) for one in pair)
                    scores.setdefault((n, way), []).append(found)
                fresh = document_completion(TemperedLDA(n, random_state=seed).fit(train), test)
                scores.setdefault((n, "fresh"), []).append((fresh, fresh))
        for n in kept:
            means = {way: np.mean(scores[n, way], axis=0) for way in (*WAYS, "fresh")}
            all_scores.append(means)
            rows.append(
                [corpus, f"{n_topics}, {n}"]
                + [f"{means[way][0]:.3f}, {means[way][1]:.3f}" for way in WAYS]
                + [f"{means['fresh'][0]:.3f}"]
            )
    totals = []
    for way in WAYS:
        behind = np.array([means[way] - means["fresh"] for means in all_scores])
        best = [
            sum(means[way][i] >= max(means[other][i] for other in WAYS) for means in all_scores)
            for i in (0, 1)
        ]
        means = [f"{value:+.3f}" for value in behind.mean(axis=0)]
        totals.append([way, *means, *(f"{count} of {len(all_scores)}" for count in best)])
    header = ["way", "against a new fit", "refined", "best of the ways", "refined, best"]
    return rows, (header, totals)
