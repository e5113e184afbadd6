"""Conversion of gensim corpora, where documents are lists of (word id, count), and Dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from annealvi._optional import import_optional
from annealvi.checks import validated
from annealvi.corpus.files import check_counts, check_gaps
from annealvi.exceptions import BadParameter
from annealvi.matrices import check_csr

#: Ids of words must be smaller than this number.
MOST_WORDS = 2**31 - 1


@validated(corpus=[Iterable], dictionary=[Mapping, None])
def from_gensim(
    corpus: Iterable[Iterable[tuple[int, float]]], dictionary: Mapping[int, str] | None = None
) -> Bunch:
    """Convert a corpus of gensim to word counts.

    gensim need not be installed.

    Parameters
    ----------
    corpus : iterable of iterables of (int, float)
        The ids and counts of the words of each document, in the form that ``Dictionary.doc2bow``
        returns.  The corpus is read once, so it can be a stream.
    dictionary : gensim.corpora.Dictionary or mapping of int to str, default=None
        The word of each id.  Without a dictionary, the largest id determines the number of words.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are `data`, a CSR matrix of shape (n_documents, n_words), and
        `feature_names`, an ndarray of the words (None if no dictionary is passed).

    Raises
    ------
    TypeError
        If `corpus` is not an iterable, or `dictionary` is not a mapping.
    ValueError
        If a document is not a list of (id, count), an id is negative or not in the dictionary, or a
        count is negative or not finite.

    Examples
    --------
    >>> from annealvi.corpus import from_gensim
    >>> from_gensim([[(0, 4), (2, 1)], [(1, 5)]]).data.toarray()
    array([[4., 0., 1.],
           [0., 5., 0.]])
    """
    words = None if dictionary is None else words_of(dictionary)
    if getattr(corpus, "ndim", 1) == 0:  # an array without dimensions
        raise BadParameter("corpus", "an iterable of lists of (id, count)", corpus)
    X = counts_of(corpus, None if words is None else len(words))
    return Bunch(data=X, feature_names=words)


def counts_of(corpus: Iterable[Any], n_words: int | None) -> csr_matrix:
    """Return the counts of documents; without `n_words` the largest id determines the columns."""
    documents = []
    for number, document in enumerate(corpus):
        try:
            pairs = np.array(list(document), dtype=float)
        except (TypeError, ValueError):
            pairs = np.empty(1)  # of a wrong shape, for the error below
        if pairs.size and pairs.shape[1:] != (2,):
            raise ValueError(
                f"Each document of 'corpus' must be a list of (id, count). Got {document!r} for "
                f"document {number}. Put a single document in a list."
            )
        documents.append(pairs.reshape(-1, 2))
    # with an empty array, because at least one is needed
    ids, counts = np.concatenate([*documents, np.empty((0, 2))]).T
    limit = MOST_WORDS if n_words is None else n_words
    wrong = ~((ids >= 0) & (ids < limit) & (ids == np.floor(ids)))
    if wrong.any():
        raise ValueError(
            f"Ids in 'corpus' must be integers >= 0 and less than {limit}"
            + ("" if n_words is None else ", the number of words")
            + f". Got {ids[wrong][0]:g}."
        )
    indptr = np.cumsum([0, *map(len, documents)])
    shape = (len(documents), int(ids.max(initial=-1)) + 1 if n_words is None else n_words)
    X = csr_matrix((counts, ids.astype(np.int64), indptr), shape=shape)
    X.sum_duplicates()  # counts of the same id in a document are added
    return check_counts(X, "Counts of 'corpus'")


def to_gensim(X: Any, feature_names: ArrayLike) -> tuple[list[list[tuple[int, float]]], Any]:
    """Convert word counts to a corpus of gensim and its Dictionary.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_documents, n_words)
        Word counts.
    feature_names : array-like of shape (n_words,)
        The words.

    Returns
    -------
    corpus : list of lists of (int, int or float)
        The ids and counts of the words of each document.  Integer counts are ints.
    dictionary : gensim.corpora.Dictionary

    Raises
    ------
    ImportError
        If gensim is not installed.
    ValueError
        If X is not a matrix of counts, or the numbers of words and columns differ.

    Examples
    --------
    >>> from annealvi.corpus import to_gensim
    >>> corpus, dictionary = to_gensim([[4, 0, 1]], ["star", "gene", "proof"])  # doctest: +SKIP
    >>> corpus, dictionary[2]  # doctest: +SKIP
    ([[(0, 4), (2, 1)]], 'proof')
    """
    X = check_csr(X)
    gensim = import_optional("gensim.corpora", "to_gensim")
    check_counts(X, "X")
    words = [str(word) for word in np.asarray(feature_names).ravel()]
    if len(words) != X.shape[1]:
        raise ValueError(
            f"'feature_names' must contain a word for each of the {X.shape[1]} columns of X. "
            f"Got {len(words)} words."
        )
    # ints if all counts are integers
    data = X.data.astype(np.int64) if np.all(X.data == np.floor(X.data)) else X.data
    pairs = list(zip(X.indices.tolist(), data.tolist(), strict=True))
    corpus = [pairs[begin:end] for begin, end in pairwise(X.indptr)]
    dictionary = gensim.Dictionary.from_corpus(corpus, id2word=dict(enumerate(words)))
    return corpus, dictionary


def words_of(dictionary: Mapping[int, str]) -> np.ndarray:
    """Return words in the order of their ids; an id without a word is represented by itself."""
    try:
        word_of_id = {int(number): dictionary[number] for number in dictionary}
    except (TypeError, ValueError) as error:
        raise ValueError(f"Ids in 'dictionary' must be integers >= 0. {error}.") from error
    if min(word_of_id, default=0) < 0:
        raise ValueError(f"Ids in 'dictionary' must be >= 0. Got {min(word_of_id)}.")
    # as many words as the largest id requires
    size = check_gaps(max(word_of_id, default=-1), len(word_of_id), "Ids in 'dictionary'")
    return np.array([str(word_of_id.get(number, number)) for number in range(size)], dtype=object)
