"""Functions that add topics to a fitted model or split a topic; other topics keep their numbers."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from annealvi.checks import COUNT, TINY, Interval, validated
from annealvi.exceptions import BadParameter
from annealvi.lda import TemperedLDA
from annealvi.matrices import summed
from annealvi.metrics.held_out import rows_of_entries
from annealvi.topics.choice import unwatched
from annealvi.topics.contrasts import expected_counts
from annealvi.topics.described import DescribedDocuments, Topics, probabilities_in
from annealvi.topics.editing import refine_topics, with_groups
from annealvi.topics.source import Source, lda_of

Model = TypeVar("Model")

#: New topics are chosen from candidates, which are fitted to the documents that the model explains
#: worst: a share of all documents, but at least a number of them; and the number of candidates.
WORST_SHARE, LEAST_WORST, N_CANDIDATES = 0.1, 1000, 20


@validated(n=COUNT, max_iter=COUNT)
def add_topics(model: Model, documents: Any, n: int = 1, *, max_iter: int = 30) -> Model:
    r"""Add topics that explain what the topics of a model explain badly, such as new documents.

    The topics of the model keep their numbers, labels and words: what they have learned is their
    prior, to which the words of `documents` are added.  Each new topic is learned from the
    documents that gain most from it.

    Parameters
    ----------
    model : fitted TemperedLDA or TopicModel
        The model, which is not changed.
    documents : documents
        New documents, or old and new ones: word counts, or texts for a TopicModel.  Words that are
        not in the vocabulary of the model are ignored.
    n : int, default=1
        Number of topics to add.
    max_iter : int, default=30
        Number of passes over the documents.

    Returns
    -------
    model
        A new fitted model of the same class, in which the new topics come last.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a model of annealvi.
    ValueError
        If the words of the documents are not those of the model, or a parameter is out of range.

    See Also
    --------
    refine_topics : Continues the fit, in which all topics change.

    Notes
    -----
    Candidates for new topics are fitted to the tenth of the documents, but at least to 1,000,
    that the model explains worst (:meth:`annealvi.TemperedLDA.document_temperatures`).  The gain of
    a candidate is the sum over all documents of the log-likelihood that a document gains if half of
    its words come from the candidate, where that is positive.  The fit continues from the old
    topics and the candidates of the largest gain, where the prior of an old topic is
    its posterior :math:`\lambda_k`.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.topics import add_topics
    >>> X = make_topic_corpus(200, 50, 4, random_state=0).data
    >>> lda = TemperedLDA(3, random_state=0).fit(X)
    >>> add_topics(lda, X).transform(X).shape
    (200, 4)
    """
    lda = lda_of(model)
    source = Source(model)
    counted = source.read(documents, "documents")
    X = counted.counts
    K = len(lda.components_)
    temperatures = np.nan_to_num(lda.document_temperatures(X))  # NaN for documents without words
    n_worst = max(LEAST_WORST, int(WORST_SHARE * X.shape[0]))
    worst = np.sort(np.argsort(-temperatures, kind="stable")[:n_worst])
    candidates = _fitted(lda, X[worst], n_topics=max(N_CANDIDATES, 2 * n)).components_
    gains = _gains(source.topics, source.describe(counted, refits=None), candidates)
    best = np.argsort(-gains, kind="stable")[:n]
    # n copies of the last topic are added, whose words are replaced by those of the candidates
    start = with_groups(model, lda, [[k] for k in range(K)] + [[K - 1]] * n)
    start_lda = lda_of(start)
    start_lda.components_ = np.concatenate([lda.components_, candidates[best]])
    prior = start_lda.topic_word_prior
    fitted_prior = start_lda.topic_word_prior_
    # the words that the old topics have learned are the prior of these topics
    learned = np.full(start_lda.components_.shape, fitted_prior)
    learned[:K] = lda.components_
    start_lda.set_params(topic_word_prior=learned).topic_word_prior_ = learned
    refined = refine_topics(start, X, max_iter=max_iter)
    # the model has the prior of the old model again
    lda_of(refined).set_params(topic_word_prior=prior).topic_word_prior_ = fitted_prior
    return refined


@validated(n=[Interval(Integral, 2, None, closed="left")])
def split_topic(model: Model, topic: int | str, documents: Any, n: int = 2) -> Model:
    """Split a topic into several topics, by a fit to the words of documents that belong to it.

    Parameters
    ----------
    model : fitted TemperedLDA or TopicModel
        The model, which is not changed.
    topic : int or str
        The number or label of the topic.
    documents : documents
        The documents to which the model was fitted: word counts, or texts for a TopicModel.
    n : int, default=2
        Number of topics into which the topic is split.

    Returns
    -------
    model
        A new fitted model of the same class.  The largest of the n topics has the number and the
        label of the topic that was split, and the others come last.  The words of all other topics
        are the same.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a model of annealvi.
    ValueError
        If the topic does not exist, if fewer than n documents contain words of the topic, or if
        the words of the documents are not those of the model.

    See Also
    --------
    refine_topics : Continues the fit, so that topics adjust to each other.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.topics import split_topic
    >>> X = make_topic_corpus(200, 50, 4, random_state=0).data
    >>> lda = TemperedLDA(3, random_state=0).fit(X)
    >>> split_topic(lda, 1, X).transform(X).shape
    (200, 4)
    """
    lda = lda_of(model)
    source = Source(model)
    k = source.topics.labels.number(topic)
    described = source.describe(source.read(documents, "documents"), refits=None)
    # the expected counts of words that belong to the topic, in documents with at least one of them
    words = expected_counts(source.topics, described, k)
    words = words[summed(words, axis=1) >= 1.0]
    if words.shape[0] < n:
        raise BadParameter(
            "documents",
            f"at least {n} documents that contain words of topic {k}",
            f"{words.shape[0]} such documents",
        )
    new = _fitted(lda, words, n).components_
    new = new[np.argsort(-new.sum(axis=1), kind="stable")]  # the largest topic first
    K = len(lda.components_)
    # n - 1 copies of topic k are added, and these and topic k get the words of the new topics
    split = with_groups(model, lda, [[j] for j in range(K)] + [[k]] * (n - 1))
    components = lda_of(split).components_.copy()
    # the new topics have as many words together as the old one
    components[[k, *range(K, K + n - 1)]] = new * (components[k].sum() / new.sum())
    lda_of(split).components_ = components
    return split


def _fitted(lda: TemperedLDA, X: csr_matrix, n_topics: int) -> TemperedLDA:
    """Fit another model with the parameters of a model, but with its own topics and priors."""
    fit = unwatched(lda, n_components=n_topics)
    return fit.set_params(init="auto", doc_topic_prior=None, topic_word_prior=None).fit(X)


def _gains(topics: Topics, documents: DescribedDocuments, candidates: NDArray) -> NDArray:
    """Return the log-likelihood that documents gain by mixing in each of the candidates.

    Half of the words of a document then come from the candidate; losses count as 0.
    """
    X = documents.counts
    ratio = 0.5 / np.maximum(probabilities_in(documents, topics.components), TINY)
    rows = rows_of_entries(X)
    # of the entries, for each candidate
    gains = (
        X.data * np.log(0.5 + ratio * candidate[X.indices])
        for candidate in candidates / candidates.sum(axis=1, keepdims=True)
    )
    return np.array([np.maximum(np.bincount(rows, gain), 0.0).sum() for gain in gains])
