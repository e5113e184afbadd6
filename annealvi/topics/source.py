"""Reads fitted topic models of any kind: their topics, and the shares of topics in documents."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, check_non_negative

from annealvi._sparse import check_csr, check_matrix
from annealvi._validation import as_array

#: Largest distance of a sum of shares from 1.
_TOLERANCE = 1e-3


class Source(NamedTuple):
    """What a model says of documents.

    Attributes
    ----------
    model : object
        The model of word counts.
    topics : ndarray of shape (K, V)
        p(w | k).
    shares : ndarray of shape (D, K)
        p(k | d).
    counts : csr_matrix of shape (D, V)
        Of words in documents.
    feature_names : ndarray of shape (V,)
        The words, as str.
    texts : list of str or None
    """

    model: Any
    topics: NDArray[np.float64]
    shares: NDArray[np.float64]
    counts: sparse.csr_matrix
    feature_names: NDArray
    texts: list[str] | None


class _Reader(NamedTuple):
    """How a model turns texts into counts.

    Attributes
    ----------
    model : object
        The model of word counts.
    counts : callable or None
        From texts to counts.
    feature_names : array-like or None
    """

    model: Any
    counts: Any
    feature_names: Any


def reader_of(model: Any) -> _Reader:
    """Take a model apart: a TopicModel, a pipeline that ends with a topic model, or one of counts.

    Parameters
    ----------
    model : object
    """
    if hasattr(model, "counts") and hasattr(model, "set_params"):
        check_is_fitted(model)
        return _Reader(model.lda_, model.counts, model.feature_names_)
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        check_is_fitted(model)
        first, last = model[:-1], model[-1]
        if len(first):
            names = first.get_feature_names_out()
            return _Reader(last, first.transform, names)
        return _Reader(last, None, None)
    return _Reader(model, None, None)


def read(model: Any, documents: Any, feature_names: Any = None, texts: Any = None) -> Source:
    """Read a fitted model and what it says of documents.

    Parameters
    ----------
    model, documents, feature_names, texts
        See :func:`annealvi.topics.describe`.
    """
    reader = reader_of(model)
    topics, sums = _topics_of(reader.model)
    if _are_texts(documents):
        documents = list(documents)
        if reader.counts is None:
            raise TypeError(
                f"{type(model).__name__} takes word counts, not texts: give the counts as "
                "'documents' and the texts as 'texts', or use a TopicModel. "
                f"Got {len(documents)} texts."
            )
        texts = documents if texts is None else texts
        documents = reader.counts(documents)
    counts = check_csr(documents, name="documents")
    check_non_negative(counts, "describe as documents")
    if counts.shape[1] != topics.shape[1]:
        raise ValueError(
            f"X has {counts.shape[1]} features, but {type(reader.model).__name__} is expecting "
            f"{topics.shape[1]} features as input."
        )
    if not counts.data.any():
        raise ValueError(
            f"None of the {counts.shape[0]} documents has a word of the model's vocabulary of "
            f"{counts.shape[1]} words."
        )
    names = _names_of(reader, feature_names, documents, topics.shape[1])
    shares = _shares_of(reader.model, documents, counts, sums)
    texts = None if texts is None else of_each(texts, counts.shape[0], "texts", "document")
    return Source(reader.model, topics, shares, counts, names, texts)


def of_each(values: Any, n: int, name: str, what: str) -> list:
    """Check that there is one value for each of n things, and return them as a list.

    Parameters
    ----------
    values : iterable
    n : int
    name, what : str
        The parameter, and what there is one value for, for the message.
    """
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name!r} must be a sequence. Got {values!r} instead.")
    values = list(values)
    if len(values) != n:
        raise ValueError(
            f"{name!r} must have one entry for each of the {n} {what}s. Got {len(values)}."
        )
    return values


def _are_texts(documents: Any) -> bool:
    """Whether documents are given as texts: one dimension, the first of them a str or bytes."""
    if sparse.issparse(documents) or len(getattr(documents, "shape", ())) > 1:
        return False
    if isinstance(documents, str | bytes):
        raise TypeError("'documents' must be a list of texts or a matrix. Got a single text.")
    if isinstance(documents, list | tuple):
        return bool(documents) and isinstance(documents[0], str | bytes | None)
    return hasattr(documents, "__iter__")


def _topics_of(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p(w | k), and the sums of the rows of `components_`."""
    if not hasattr(model, "components_") and hasattr(model, "fit"):
        check_is_fitted(model)
    if not hasattr(model, "components_") or not hasattr(model, "transform"):
        raise TypeError(
            "'model' must be a fitted topic model with `components_` and `transform`. "
            f"Got {model!r} instead."
        )
    components = check_matrix(
        model.components_, accept_sparse=False, dtype=np.float64, name="components_"
    )
    check_non_negative(components, "describe as components_")
    sums = components.sum(axis=1)
    if not (sums > 0).all():
        empty = int(np.argmin(sums > 0))
        raise ValueError(f"Each topic must have a word of positive weight. Topic {empty} has none.")
    return components / sums[:, np.newaxis], sums


def _shares_of(
    model: Any, documents: Any, counts: sparse.csr_matrix, sums: NDArray[np.float64]
) -> NDArray[np.float64]:
    """p(k | d), from `transform`.

    Its rows sum to 1 for LDA.  A factorisation X = W H (NMF) has weights W instead: W_dk times
    the sum of row k of H is the number of words that topic k has in document d.
    """
    shares = as_array(model.transform(documents if hasattr(documents, "iloc") else counts))
    expected = (counts.shape[0], len(sums))
    if shares.shape != expected or shares.dtype.kind not in "fiu":
        raise ValueError(
            f"The 'transform' of {type(model).__name__} must give an array of numbers of shape "
            f"{expected}, documents and topics. Got shape {shares.shape} and dtype {shares.dtype}."
        )
    shares = shares.astype(np.float64)  # a copy
    if not (np.isfinite(shares).all() and shares.min(initial=0) >= 0):
        raise ValueError(
            f"The 'transform' of {type(model).__name__} must give finite and non-negative numbers."
        )
    totals = shares.sum(axis=1)
    if np.abs(totals - 1).max() > _TOLERANCE:
        shares *= sums
        totals = shares.sum(axis=1)
    shares[totals == 0] = 1.0  # nothing is known of a document without words
    return shares / shares.sum(axis=1, keepdims=True)


def _names_of(reader: _Reader, given: Any, documents: Any, n_features: int) -> NDArray:
    """The words: those given, else those that the model or the documents have, else numbers."""
    names = given
    for owner, attribute in ((reader.model, "feature_names_in_"), (documents, "columns")):
        if names is None:
            names = reader.feature_names
        if names is None:
            names = getattr(owner, attribute, None)
    names = as_array(range(n_features) if names is None else names)
    if names.shape != (n_features,):
        raise ValueError(
            f"'feature_names' must have one name for each of the {n_features} features. "
            f"Got shape {names.shape} instead."
        )
    return names.astype(str)
