"""topica's LDA at its defaults: sparse Gibbs sampling with learned priors, 5 samples averaged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import topica

from bench.adapters import Fit


def start(problem, X, *, n_threads=1, seed=0):
    """A fit of a number of sweeps from the beginning; its parsing is counted."""
    rows = pairwise(X.indptr)
    documents = [
        np.repeat(X.indices[begin:end], X.data[begin:end].astype(int)).astype(str).tolist()
        for begin, end in rows
    ]
    model = topica.LDA(problem.n_topics, seed=seed, num_threads=n_threads)

    def topics():
        beta = np.zeros((problem.n_topics, X.shape[1]))
        beta[:, [int(word) for word in model.vocabulary]] = model.topic_word
        return beta

    return Fit(lambda sweeps: model.fit(documents, iters=sweeps, progress=False), topics)
