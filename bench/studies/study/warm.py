"""A choice of the number of topics with warm starts: one fit, which is then reduced."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA, metrics
from annealvi.topics import Choice, reduce, refine
from annealvi.topics.choice import N_WORDS, RULES

#: Passes after each reduction.
PASSES = 3


def choose(X: sparse.csr_matrix, ks: tuple[int, ...], n_documents: int, *, n_runs: int) -> Choice:
    """Fit the largest number of topics; reduce and refine it to each of the smaller ones.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, n_features)
    ks : tuple of int
        Ascending.
    n_documents : int
        Number of documents that are used.
    n_runs : int
    """
    rng = np.random.RandomState(0)
    X = X[rng.permutation(X.shape[0])[:n_documents]]
    names = ("heldout", "gain", "coherence", "diversity", "quality")
    found = {name: np.zeros((len(ks), n_runs)) for name in names}
    topics = [[] for _ in ks]
    for run in range(n_runs):
        order = rng.permutation(X.shape[0])
        test, train = X[order[: X.shape[0] // 10]], X[order[X.shape[0] // 10 :]]
        counts = np.asarray(train.sum(axis=0)).ravel() + 0.1
        hidden = metrics.split_tokens(test, random_state=0)[1]
        without = (hidden @ np.log(counts / counts.sum())).sum() / hidden.sum()
        model = TemperedLDA(ks[-1], random_state=run).fit(train)
        for row in reversed(range(len(ks))):
            if ks[row] < ks[-1]:
                model = refine(reduce(model, ks[row]), train, max_iter=PASSES)
            found["heldout"][row, run] = metrics.document_completion(model, test)
            found["coherence"][row, run] = metrics.topic_coherence(model, train).mean()
            found["diversity"][row, run] = metrics.topic_diversity(model, n_words=N_WORDS)
            topics[row].append(model.components_.copy())
        found["gain"][:, run] = found["heldout"][:, run] - without
    found["quality"] = found["coherence"] * found["diversity"]
    found["stability"] = np.array(
        [[metrics.topic_stability(a, b) for a, b in combinations(fits, 2)] for fits in topics]
    )
    row, rule = RULES["quality"](np.array(ks), found)
    return Choice(np.array(ks), found, "quality", ks[row], rule, X.shape[0])
