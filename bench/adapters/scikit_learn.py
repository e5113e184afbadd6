"""The LatentDirichletAllocation of scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from bench.adapters import Fit, mean_topics


def _estimator(problem, X, n_threads=1, seed=0):
    return LatentDirichletAllocation(
        problem.n_topics,
        doc_topic_prior=problem.alpha,
        topic_word_prior=problem.eta,
        total_samples=X.shape[0],
        batch_size=problem.batch_size,
        learning_method="online",
        random_state=seed,
        n_jobs=n_threads,
    )


def start(problem, X, *, n_threads=1, seed=0, prepared=True):
    """Online passes of `partial_fit`."""
    lda = _estimator(problem, X, n_threads, seed)
    if prepared:
        lda.partial_fit(X[: problem.batch_size])

    return Fit(lambda: lda.partial_fit(X), lambda: mean_topics(lda.components_))


def start_fit(problem, X, *, learning_method, seed=0):
    """The passes of `fit`, with scikit-learn's default minibatches of 128 documents."""
    lda = LatentDirichletAllocation(
        problem.n_topics,
        doc_topic_prior=problem.alpha,
        topic_word_prior=problem.eta,
        learning_method=learning_method,
        max_iter=1,
        random_state=seed,
        n_jobs=1,
    )
    lda.fit(X[:1])  # to set its attributes; topics are drawn again before the first pass
    lda.random_state_ = np.random.RandomState(seed)
    lda._init_latent_vars(X.shape[1], dtype=X.dtype)
    size = X.shape[0] if learning_method == "batch" else lda.batch_size

    def one_pass():
        for first in range(0, X.shape[0], size):
            block = X[first : first + size]
            lda._em_step(block, X.shape[0], batch_update=learning_method == "batch")

    return Fit(one_pass, lambda: mean_topics(lda.components_))


def start_portions(problem, X, *, n_threads=1, seed=0):
    """Return `partial_fit` for portions of X; one minibatch was fitted before."""
    lda = _estimator(problem, X, n_threads, seed)
    return lda.partial_fit(X[: problem.batch_size]).partial_fit


def start_transform(problem, X, new, *, n_threads=1):
    """Return `transform` of documents that were not used in the fit."""
    lda = _estimator(problem, X, n_threads).partial_fit(X)
    return lambda: lda.transform(new)


def start_m_step(problem, X):
    """Return scikit-learn's `_em_step` with given statistics."""
    lda = _estimator(problem, X).partial_fit(X[: problem.batch_size])
    statistics = np.random.RandomState(0).random_sample(lda.components_.shape)
    lda._e_step = lambda *args, **kwargs: (None, statistics)
    return lambda: lda._em_step(X[: problem.batch_size], X.shape[0], batch_update=False)
