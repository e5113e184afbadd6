"""Functions that add topics to a fitted model, or split a topic; other topics keep their numbers."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi.checks import COUNT, Interval, validated
from annealvi.exceptions import BadParameter
from annealvi.lda import TemperedLDA
from annealvi.matrices import check_words
from annealvi.metrics.held_out import word_probabilities
from annealvi.topics.choice import unwatched
from annealvi.topics.contrasts import expected_counts
from annealvi.topics.editing import rebuilt
from annealvi.topics.source import Source, counts_of, lda_of

Model = TypeVar("Model")

#: New topics are chosen from candidates, which are fitted to the documents that the model explains
#: worst: a share of all documents, but at least a number of them; and the number of candidates.
WORST_SHARE, LEAST_WORST, N_CANDIDATES = 0.1, 500, 10


@validated(n=COUNT, max_iter=COUNT)
def add_topics(model: Model, documents: Any, n: int = 1, *, max_iter: int = 30) -> Model:
    lda = lda_of(model)
    X = check_words(lda, counts_of(model, documents, "documents"), "add_topics")
    topics = np.asarray(lda.components_, np.float64)
    K = len(topics)
    temperatures = np.nan_to_num(lda.document_temperatures(X))
    n_worst = max(LEAST_WORST, int(WORST_SHARE * X.shape[0]))
    worst = np.sort(np.argsort(-temperatures, kind="stable")[:n_worst])
    candidates = _fitted(lda, X[worst], max(N_CANDIDATES, 2 * n)).components_
    new = candidates[_most_gain(lda, X, candidates, n)]
    eta = np.broadcast_to(lda.topic_word_prior_, topics.shape)
    priors = np.tile(eta.mean(axis=0), (n, 1))
    alpha = np.broadcast_to(lda.doc_topic_prior_, K)
    alpha = np.append(alpha, np.full(n, alpha.mean()))
    refined = unwatched(lda, n_components=K + n).set_params(
        init=np.vstack([topics, new]).astype(lda.dtype_),
        # the words that the old topics have learned are the prior of these topics
        topic_word_prior=np.vstack([topics, priors]),
        doc_topic_prior=alpha,
        temperature=1.0,
        learning_method="batch",
        max_iter=int(max_iter),
        n_init=1,
        validation_fraction=None,
    )
    eta = np.vstack([eta, priors]) if np.ndim(lda.topic_word_prior_) == 2 else lda.topic_word_prior_
    parts = [[k] for k in range(K)] + [[]] * n
    return rebuilt(model, refined.fit(X).components_, alpha, np.asarray(eta), parts)


@validated(n=[Interval(Integral, 2, None, closed="left")])
def split_topic(model: Model, topic: int | str, documents: Any, n: int = 2) -> Model:
    lda = lda_of(model)
    k = Source(model).labels.number(topic)
    X = check_words(lda, counts_of(model, documents, "documents"), "split_topic")
    topics = np.asarray(lda.components_, np.float64)
    shares = topics / topics.sum(axis=1, keepdims=True)
    own_words = expected_counts(X, lda.transform(X), shares, k)
    own_words = own_words[np.asarray(own_words.sum(axis=1)).ravel() >= 1.0]
    if own_words.shape[0] < n:
        raise BadParameter(
            "documents",
            f"at least {n} documents with words of topic {k}",
            f"{own_words.shape[0]} such documents",
        )
    new = np.asarray(_fitted(lda, own_words, n).components_, np.float64)
    new = new[np.argsort(-new.sum(axis=1), kind="stable")]
    # the parts have as many words together as the topic
    new *= topics[k].sum() / new.sum()
    sizes = new.sum(axis=1) / new.sum()
    alpha = np.array(np.broadcast_to(lda.doc_topic_prior_, len(topics)), np.float64)
    alpha = np.concatenate([alpha, alpha[k] * sizes[1:]])
    alpha[k] *= sizes[0]
    eta = np.asarray(lda.topic_word_prior_, np.float64)
    if eta.ndim == 2:
        eta = np.vstack([eta, eta[[k] * (n - 1)]])
    topics = np.vstack([topics, new[1:]])
    topics[k] = new[0]
    parts = [[j] if j != k else [] for j in range(len(lda.components_))] + [[]] * (n - 1)
    return rebuilt(model, topics.astype(lda.dtype_), alpha, eta, parts)


def _fitted(lda: TemperedLDA, X: sparse.csr_matrix, n_topics: int) -> TemperedLDA:
    """Fit another model with the parameters of a model, but with its own topics and priors."""
    fit = unwatched(lda, n_components=n_topics)
    return fit.set_params(init="auto", doc_topic_prior=None, topic_word_prior=None).fit(X)


def _most_gain(
    lda: TemperedLDA, X: sparse.csr_matrix, candidates: NDArray, n: int
) -> NDArray[np.intp]:
    """Return the n candidates that explain some documents much better than the topics do.

    A candidate's gain is the sum over documents of the log-likelihood that a document gains if half
    of its words come from the candidate, where that is positive.  Documents that gain from a chosen
    candidate are explained by it when the next one is chosen.
    """
    shares = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    new = candidates / candidates.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    p = word_probabilities(X, lda.transform(X), shares.T.__getitem__, np.ones(len(shares)))
    chosen = np.empty(n, np.intp)
    for place in range(n):
        mixed = 0.5 * p + 0.5 * new[:, X.indices]
        logs = np.log(mixed / np.maximum(p, np.finfo(np.float64).tiny)) * X.data
        gains = np.array([np.bincount(rows, own, X.shape[0]) for own in logs])
        totals = np.maximum(gains, 0.0).sum(axis=1)
        totals[chosen[:place]] = -1.0
        chosen[place] = totals.argmax()
        p = np.where(gains[chosen[place]][rows] > 0, mixed[chosen[place]], p)
    return chosen
