"""From a fitted topic model of any kind to a summary of its topics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from annealvi.metrics import document_completion, topic_stability
from annealvi.topics.source import Source, of_each
from annealvi.topics.summary import TopicSummary
from annealvi.topics.texts import check_texts


def describe(
    model: Any,
    documents: Any,
    feature_names: ArrayLike | None = None,
    *,
    texts: Any = None,
    titles: Any = None,
    held_out: Any = None,
    other: Any = None,
    random_state: Any = 0,
) -> TopicSummary:
    """Say what a fitted topic model has found in documents.

    Parameters
    ----------
    model : fitted topic model
        A :class:`TopicModel`, a :class:`annealvi.TemperedLDA`, scikit-learn's
        ``LatentDirichletAllocation`` or ``NMF``, a pipeline of a vectorizer and one of these, or
        any object with ``components_`` of shape (K, V) and ``transform``.
    documents : iterable of str, or {array-like, sparse matrix} of shape (D, V)
        The documents to look at, usually those that were fitted: texts for a model that takes
        texts, otherwise word counts.  Counts may be given to every model.
    feature_names : array-like of shape (V,), default=None
        The words.  None means those that the model has seen, or numbers if it has seen none.
    texts : iterable of str, default=None
        The texts of the documents, for display.  Not needed if `documents` are texts.
    titles : iterable of str, default=None
        Titles of the documents, for display.
    held_out : iterable of str, or {array-like, sparse matrix}, default=None
        Documents that were not fitted.  ``quality["held_out"]`` of the summary is then their
        log-likelihood per word (:func:`annealvi.metrics.document_completion`).
    other : fitted topic model, default=None
        Another fit of the same words, say from another seed.  ``quality["stability"]`` of the
        summary is then how alike the topics of both are
        (:func:`annealvi.metrics.topic_stability`).
    random_state : int, RandomState instance or None, default=0
        Seed of the split of `held_out`.

    Returns
    -------
    TopicSummary

    Raises
    ------
    TypeError
        If `model` is no topic model, or texts are given to a model of counts.
    ValueError
        If `documents` have other features than the model or none of its words, or if `texts`,
        `titles` or `feature_names` have a wrong length.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> from annealvi.topics import describe
    >>> abstracts = load_arxiv_abstracts()
    >>> lda = TemperedLDA(20, random_state=0).fit(abstracts.data)
    >>> summary = describe(lda, abstracts.data, abstracts.feature_names)
    >>> summary
    <TopicSummary of 20 topics in 3000 documents, 3000 words>
    """
    source = Source(model)
    read = source.read(documents, "documents")
    names = source.names(feature_names, read.given)
    n_documents = read.counts.shape[0]
    texts = read.texts if texts is None else _of_documents(texts, "texts", n_documents)
    titles = None if titles is None else _of_documents(titles, "titles", n_documents)
    quality = {}
    if held_out is not None:
        X = source.read(held_out, "held_out").given
        quality["held_out"] = float(document_completion(source, X, random_state=random_state))
    if other is not None:
        quality["stability"] = _stability(source, Source(other, "other"))
    return TopicSummary(source, read, names, texts, titles, quality)


def _stability(source: Source, other: Source) -> float:
    names = [one.known_names for one in (source, other)]
    if all(known is not None for known in names) and not np.array_equal(*names):
        raise ValueError(
            "'other' must be a fit of the same words. Got one with other words, "
            f"{len(names[1])} against {len(names[0])}."
        )
    return topic_stability(source.components_, other.components_)


def _of_documents(texts: Any, name: str, n_documents: int) -> list[str]:
    return of_each(check_texts(texts, "describe", name=name), n_documents, name)
