"""The LDAModel of tomotopy, which uses collapsed Gibbs sampling."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np

from bench.adapters import Fit

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tomotopy


def start(problem, X, *, n_threads=1, seed=0):
    """Gibbs sweeps over the documents, after the first draws of topics."""
    model = tomotopy.LDAModel(
        k=problem.n_topics, alpha=problem.doc_topic_prior, eta=problem.topic_word_prior, seed=seed
    )
    for begin, end in pairwise(X.indptr):
        words = np.repeat(X.indices[begin:end], X.data[begin:end].astype(int))
        model.add_doc(words.astype(str).tolist())
    model.train(0, workers=n_threads)
    columns = np.array([int(word) for word in model.used_vocabs])

    def topics():
        beta = np.zeros((problem.n_topics, X.shape[1]))
        for k in range(problem.n_topics):
            beta[k, columns] = model.get_topic_word_dist(k)
        return beta

    return Fit(lambda sweeps=1: model.train(sweeps, workers=n_threads), topics)
