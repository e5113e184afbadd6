"""TemperedLDA, on scikit-learn's trajectory or on its own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from annealvi import TemperedLDA
from annealvi.model import UNTEMPERED
from annealvi.models.lda import LDA
from annealvi.models.lda.block import Statistics, TopicWeights
from bench.adapters import Fit


def estimator(
    problem, X, n_threads=1, same_trajectory=False, seed=0, **options: Any
) -> TemperedLDA:
    """An estimator of online mean-field steps at T = 1, unless `options` want another."""
    return TemperedLDA(
        problem.n_topics,
        doc_topic_prior=problem.alpha,
        topic_word_prior=problem.eta,
        total_samples=X.shape[0],
        batch_size=problem.batch_size,
        random_state=seed,
        n_jobs=n_threads,
        document_init="random" if same_trajectory else "constant",
        **{"preset": "sklearn", "learning_method": "online", **options},
    )


def _mean_topics(lda):
    return lda.components_ / lda.components_.sum(axis=1, keepdims=True)


def start(
    problem,
    X,
    *,
    n_threads=1,
    dtype=np.float64,
    same_trajectory=False,
    repeats=1,
    seed=0,
    prepared=True,
):
    """Online passes of `partial_fit` at T = 1, from a model that has seen one minibatch.

    Not `prepared`, it has seen nothing.
    """
    X = X.astype(dtype)
    lda = estimator(problem, X, n_threads, same_trajectory, seed)
    if prepared:
        lda.partial_fit(X[: problem.batch_size])

    def one_pass():
        for _ in range(repeats):
            lda.partial_fit(X)

    return Fit(one_pass, lambda: _mean_topics(lda))


def start_transform(problem, X, new, *, n_threads=1, dtype=np.float64, repeats=1):
    """`transform` of documents that the model was not fitted to."""
    X, new = X.astype(dtype), new.astype(dtype)
    lda = estimator(problem, X, n_threads).partial_fit(X)

    def transform():
        for _ in range(repeats):
            lda.transform(new)

    return transform


def fit(problem, X, dtype=np.float64, **options: Any):
    """A whole `fit`: what its seconds and topics were after each quarter of a pass.

    Parameters
    ----------
    problem : Problem
    X : csr_matrix
    dtype : dtype
    **options
        Of TemperedLDA.

    Returns
    -------
    list of (float, ndarray)
        CPU seconds of the process since the fit began, E[beta].
    """
    path, spent = [], 0.0
    interval = max(1, X.shape[0] // problem.batch_size // 4)

    def record(lda, monitor):
        nonlocal spent, began
        if monitor.step % interval == 0 or monitor.step == last:
            spent += time.process_time() - began
            path.append((spent, _mean_topics(lda)))
            began = time.process_time()

    X = X.astype(dtype)
    lda = estimator(problem, X, callback=record, **options)
    last = lda.max_iter * -(-X.shape[0] // problem.batch_size)
    began = time.process_time()
    lda.fit(X)
    return path


def start_m_step(n_topics, n_features, n_words, *, dtype=np.float64):
    """The step of lambda and the weights of the words that follow from it.

    Parameters
    ----------
    n_topics, n_features : int
    n_words : int
        How many words the minibatch has: only they need new weights.
    dtype : dtype
    """
    model = LDA(n_topics, n_features, alpha=1 / n_topics, eta=1 / n_topics, dtype=dtype)
    rng = np.random.RandomState(0)
    model.initialize(rng)
    statistics = Statistics.empty(n_features, model.width, model.dtype)
    words = np.sort(rng.choice(n_features, n_words, replace=False))
    statistics.seen[words] = 1
    statistics.values[words] = rng.random_sample((n_words, model.width))
    weights = TopicWeights(n_features, model.width, model.dtype)

    def m_step():
        model.global_step(statistics, 0.1, 10.0, UNTEMPERED)
        weights.outdate()
        weights.refresh(words, model._rows(), model.topic_sums, model.topic_estimate, 1.0, False, 1)

    return m_step
