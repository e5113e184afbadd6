"""The LDA of topica, by default sparse Gibbs sampling with learned priors and 5 samples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import topica

from bench.adapters import Fit


def start(problem, X, *, n_threads=1, seed=0, sampler="sparse", online=False, sweeps=1000):
    """A whole fit with a number of Gibbs sweeps; the time of parsing is included."""
    rows = pairwise(X.indptr)
    documents = [
        np.repeat(X.indices[begin:end], X.data[begin:end].astype(int)).astype(str).tolist()
        for begin, end in rows
    ]
    if online:
        model = topica.OnlineLDA(problem.n_topics, seed=seed)
    else:
        model = topica.LDA(problem.n_topics, seed=seed, num_threads=n_threads, sampler=sampler)

    def topics():
        beta = np.zeros((problem.n_topics, X.shape[1]))
        beta[:, [int(word) for word in model.vocabulary]] = model.topic_word
        return beta

    def fit(sweeps=sweeps):
        model.fit(documents, iters=sweeps, **({} if online else {"progress": False}))

    return Fit(fit, topics, sweeps)
