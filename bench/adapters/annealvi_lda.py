"""TemperedLDA, with the same results after each step as scikit-learn, or with constant gamma."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from annealvi import TemperedLDA
from annealvi.model import UNTEMPERED
from bench.adapters import Fit, mean_topics
from bench.parameters import mean_field


def estimator(
    problem, X, n_threads=1, same_trajectory=False, seed=0, **options: Any
) -> TemperedLDA:
    """Make an estimator for online mean-field steps at T = 1, in the dtype of X, by default."""
    parameters = {"preset": "sklearn"} if same_trajectory else mean_field(problem.n_topics)
    parameters |= {"doc_topic_prior": problem.alpha, "topic_word_prior": problem.eta}
    return TemperedLDA(
        problem.n_topics,
        total_samples=X.shape[0],
        batch_size=problem.batch_size,
        random_state=seed,
        n_jobs=n_threads,
        **{**parameters, "learning_method": "online", "dtype": X.dtype.name, **options},
    )


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
    """Online passes of `partial_fit` at T = 1; if `prepared`, one minibatch was fitted before."""
    X = X.astype(dtype)
    lda = estimator(problem, X, n_threads, same_trajectory, seed)
    if prepared:
        lda.partial_fit(X[: problem.batch_size])

    def one_pass():
        for _ in range(repeats):
            lda.partial_fit(X)

    return Fit(one_pass, lambda: mean_topics(lda.components_))


def start_portions(problem, X, *, n_threads=1, same_trajectory=False, seed=0):
    """Return `partial_fit` for portions of X; one minibatch was fitted before."""
    lda = estimator(problem, X, n_threads, same_trajectory, seed)
    return lda.partial_fit(X[: problem.batch_size]).partial_fit


def start_transform(problem, X, new, *, n_threads=1, dtype=np.float64, repeats=1):
    """Return `transform` of documents that were not used in the fit."""
    X = X.astype(dtype)
    new = new.astype(dtype)
    lda = estimator(problem, X, n_threads).partial_fit(X)

    def transform():
        for _ in range(repeats):
            lda.transform(new)

    return transform


def fit(problem, X, dtype=np.float64, **options: Any):
    """Yield the CPU seconds of a fit and its E[beta], after each quarter of a pass."""
    path = []
    spent = 0.0
    interval = max(1, X.shape[0] // problem.batch_size // 4)

    def record(lda, monitor):
        nonlocal spent, began
        if monitor.step % interval == 0 or monitor.step == last:
            spent += time.process_time() - began
            path.append((spent, mean_topics(lda.components_)))
            began = time.process_time()

    X = X.astype(dtype)
    lda = estimator(problem, X, callback=record, **options)
    last = lda.max_iter * -(-X.shape[0] // problem.batch_size)
    began = time.process_time()
    lda.fit(X)
    return path


def start_m_step(n_topics, n_features, n_words, *, dtype=np.float64):
    """Return a step of lambda, with the weights of words that are computed from lambda."""
    # imported here, because builds of older commits do not have these modules
    from annealvi.models.lda.cpu import CPUEngine, TopicWeights
    from annealvi.models.lda.model import LDA

    lda = LDA(n_topics, n_features, alpha=1 / n_topics, eta=1 / n_topics, dtype=dtype)
    rng = np.random.RandomState(0)
    lda.initialize(rng)
    engine = CPUEngine()
    statistics = engine.begin(lda)
    words = np.sort(rng.choice(n_features, n_words, replace=False))
    statistics.put_seen(
        np.isin(np.arange(n_features), words), rng.random_sample((n_words, lda.width))
    )
    weights = TopicWeights(*lda.shape)

    def m_step():
        engine.m_step(lda, statistics, 0.1, 10.0, UNTEMPERED)
        weights.refresh(lda, words, 1.0)

    return m_step
