"""Functions that add topics to a fitted model, or split a topic; other topics keep their numbers."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.utils._param_validation import validate_params

from annealvi.checks import COUNT, checked
from annealvi.exceptions import BadParameter
from annealvi.matrices import check_words
from annealvi.metrics.held_out import word_probabilities
from annealvi.topics.choice import unwatched
from annealvi.topics.editing import REFINING_PASSES, _clone
from annealvi.topics.source import counts_of, lda_of, number_of_topics

Model = TypeVar("Model")

#: New topics are chosen from topics that are fitted to the documents that the model explains worst:
#: a share of all documents, but at least a number of them; the number of candidates.
WORST_SHARE, LEAST_WORST, N_CANDIDATES = 0.1, 500, 10
#: Passes over the documents by which new topics are learned.
ADDING_PASSES = 30


@validate_params({"n": COUNT, "max_iter": COUNT}, prefer_skip_nested_validation=False)
@checked
def add_topics(model: Model, documents: Any, n: int = 1, *, max_iter: int = ADDING_PASSES) -> Model:
    lda = lda_of(model)
    X = check_words(lda, counts_of(model, documents, "documents"), "add_topics")
    K = number_of_topics(lda)
    temperatures = np.nan_to_num(lda.document_temperatures(X))
    n_worst = max(LEAST_WORST, int(WORST_SHARE * X.shape[0]))
    worst = np.sort(np.argsort(-temperatures, kind="stable")[:n_worst])
    first = np.asarray(lda.components_, np.float64)
    eta = np.broadcast_to(lda.topic_word_prior_, first.shape).astype(np.float64)
    base = np.tile(eta.mean(axis=0), (n, 1))
    candidates = unwatched(lda, n_components=max(N_CANDIDATES, 2 * n))
    candidates.set_params(init="auto", doc_topic_prior=None, topic_word_prior=None)
    candidates.fit(X[worst])
    new = candidates.components_[_most_gain(lda, X, candidates.components_, n)]
    alpha = np.broadcast_to(np.asarray(lda.doc_topic_prior_, np.float64), K)
    alpha = np.append(alpha, np.full(n, alpha.mean()))
    fitted = _clone(lda).set_params(
        n_components=K + n,
        init=np.vstack([first, new]).astype(lda.dtype_),
        # the words of the old topics are known already: they are the prior of these topics
        topic_word_prior=np.vstack([first, base]),
        doc_topic_prior=alpha,
        temperature=1.0,
        learning_method="batch",
        max_iter=int(max_iter),
        n_init=1,
        validation_fraction=None,
    )
    fitted.fit(X)
    return fitted


def _most_gain(lda: Any, X: Any, candidates: Any, n: int) -> list[int]:
    """Choose n candidates, one after the other, that explain documents better than the topics do.

    The gain of a candidate is the sum over documents of the log-likelihood that a document gains if
    half of its words come from the candidate, where that is positive.
    """
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    new = candidates / candidates.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    p = word_probabilities(X, lda.transform(X), topics.T.__getitem__, np.ones(len(topics)))
    p = np.maximum(p, np.finfo(np.float64).tiny)
    chosen: list[int] = []
    for _ in range(n):
        gains = []
        for topic in new:
            half = np.log(0.5 + 0.5 * topic[X.indices] / p) * X.data
            gains.append(np.bincount(rows, half, X.shape[0]))
        totals = np.maximum(gains, 0.0).sum(axis=1)
        totals[chosen] = -1.0
        best = int(totals.argmax())
        chosen.append(best)
        mixed = gains[best][rows] > 0
        p = np.where(mixed, 0.5 * p + 0.5 * new[best][X.indices], p)
    return chosen
