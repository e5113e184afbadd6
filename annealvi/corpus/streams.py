"""Corpora in blocks of documents: for files and texts that are larger than memory.

Each function yields CSR matrices of some documents, in order, all with the same words.  They can be
written to disk with :func:`annealvi.corpus.write`, or passed to `partial_fit` one after the other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import IO, Any

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import COUNT, validated
from annealvi.corpus.files import matrix_of, opened, parse_lda_c, read_header, triples
from annealvi.corpus.gensim import counts_of, words_of

#: Documents in a block.
BLOCK = 10_000


@validated(block_size=COUNT)
def stream_uci(path: str | os.PathLike, *, block_size: int = BLOCK) -> Iterator[sparse.csr_matrix]:
    """Read a file of the UCI machine learning repository in blocks of documents.

    The format is described in :func:`annealvi.corpus.read_uci`.  The entries of a document must
    follow one another, and documents must come in the order of their numbers.

    Parameters
    ----------
    path : path
        The file, such as ``docword.pubmed.txt.gz``; it may be compressed by gzip.
    block_size : int, default=10000
        Documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The last one may have fewer rows.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is not valid.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from annealvi.corpus import stream_uci
    >>> with NamedTemporaryFile(suffix=".txt", mode="w+") as file:
    ...     _ = file.write("2\\n3\\n3\\n1 1 4\\n1 3 1\\n2 2 5\\n")
    ...     file.flush()
    ...     [block.toarray().tolist() for block in stream_uci(file.name, block_size=1)]
    [[[4.0, 0.0, 1.0]], [[0.0, 5.0, 0.0]]]
    """
    with opened(path, "UCI bag of words") as stream:
        shape, n_entries = read_header(stream)
        yield from _from_triples(stream, shape, n_entries, block_size)


@validated(block_size=COUNT)
def stream_matrix_market(
    path: str | os.PathLike, *, block_size: int = BLOCK
) -> Iterator[sparse.csr_matrix]:
    """Read a Matrix Market file in blocks of documents.

    It must be a general matrix in coordinates, with a row for each document, such as gensim's
    ``MmCorpus.serialize`` writes.  The entries of a row must follow one another, and rows must come
    in order.  SciPy's ``mmread`` reads whole files with entries in any order.

    Parameters
    ----------
    path : path
        The file, such as ``corpus.mm``; it may be compressed by gzip.
    block_size : int, default=10000
        Documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The last one may have fewer rows.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is not valid.
    """
    with opened(path, "Matrix Market") as stream:
        banner = stream.readline().decode("ascii", "replace").lower().split()
        if banner[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
            raise ValueError("it must begin with '%%MatrixMarket matrix coordinate'.")
        if banner[3:] not in (["real", "general"], ["integer", "general"]):
            raise ValueError(
                f"it must be real or integer, and general. Got {' '.join(banner[3:])!r}."
            )
        line = stream.readline()
        while line.startswith(b"%") or (line and not line.strip()):
            line = stream.readline()
        n_documents, n_words, n_entries = (int(number) for number in line.split())
        yield from _from_triples(stream, (n_documents, n_words), n_entries, block_size)


@validated(n_words=[*COUNT, None], block_size=COUNT)
def stream_lda_c(
    path: str | os.PathLike, n_words: int | None = None, *, block_size: int = BLOCK
) -> Iterator[sparse.csr_matrix]:
    """Read a file of Blei's program LDA-C in blocks of documents.

    The format is described in :func:`annealvi.corpus.read_lda_c`.

    Parameters
    ----------
    path : path
        The file, such as ``ap.dat``; it may be compressed by gzip.
    n_words : int, default=None
        The number of words of the vocabulary.  Without it the file is first read once more to find
        the largest word number.
    block_size : int, default=10000
        Documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The last one may have fewer rows.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is not valid.
    """
    if n_words is None:
        with opened(path, "LDA-C counts") as stream:
            n_words = max((X.shape[1] for X in _documents(stream, None, block_size)), default=0)
    with opened(path, "LDA-C counts") as stream:
        yield from _documents(stream, n_words, block_size)


@validated(words=[*COUNT, Mapping], block_size=COUNT)
def stream_gensim(
    corpus: Iterable[Iterable[tuple[int, float]]],
    words: Mapping[int, str] | int,
    *,
    block_size: int = BLOCK,
) -> Iterator[sparse.csr_matrix]:
    """Read a corpus of gensim in blocks of documents.

    gensim need not be installed.

    Parameters
    ----------
    corpus : iterable of iterables of (int, float)
        For each document the ids and counts of its words.  It is read once.
    words : gensim.corpora.Dictionary, mapping of int to str or int
        The dictionary of the corpus, or the number of its words.
    block_size : int, default=10000
        Documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The last one may have fewer rows.

    Raises
    ------
    TypeError
        If `corpus` is not an iterable, or `words` is neither a mapping nor an integer.
    ValueError
        If a document is not a list of (id, count), an id is negative or too large, or a count is
        negative or not finite.

    Examples
    --------
    >>> from annealvi.corpus import stream_gensim
    >>> [block.toarray().tolist() for block in stream_gensim([[(0, 4), (2, 1)], [(1, 5)]], 3)]
    [[[4.0, 0.0, 1.0], [0.0, 5.0, 0.0]]]
    """
    n_words = len(words_of(words)) if isinstance(words, Mapping) else int(words)
    for documents in _chunks(corpus, block_size, "corpus"):
        yield counts_of(documents, n_words)


@validated(vectorizer=[HasMethods("transform")], block_size=COUNT)
def stream_texts(
    texts: Iterable[Any], vectorizer: Any, *, block_size: int = BLOCK
) -> Iterator[sparse.csr_matrix]:
    """Count the words of texts in blocks of documents.

    Parameters
    ----------
    texts : iterable of str
        Texts, or other items that the vectorizer reads.  They are read once.
    vectorizer : estimator
        A vectorizer that needs no fit, such as scikit-learn's `HashingVectorizer` or a
        `CountVectorizer` with a `vocabulary`, or one that was fitted, for example to a sample of
        the texts.
    block_size : int, default=10000
        Documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The last one may have fewer rows.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the vectorizer needs a fit and is not fitted.
    TypeError
        If `texts` is not an iterable, is a single str, or contains an item that the vectorizer
        cannot read.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from annealvi.corpus import stream_texts
    >>> counter = CountVectorizer(vocabulary=["gene", "star"])
    >>> [block.toarray().tolist() for block in stream_texts(["a star", "a gene"], counter)]
    [[[0, 1], [1, 0]]]
    """
    if isinstance(texts, str | bytes):
        raise TypeError("'texts' must be an iterable of texts. Got a single one.")
    if getattr(vectorizer, "vocabulary", None) is None:
        check_is_fitted(vectorizer)
    for some in _chunks(texts, block_size, "texts"):
        try:
            counts = vectorizer.transform(some)
        except AttributeError as error:  # raised by a text that is not a str
            kinds = ", ".join(sorted({type(text).__name__ for text in some}))
            raise TypeError(f"The vectorizer cannot read these 'texts'. Got {kinds}.") from error
        yield sparse.csr_matrix(counts)


# ------------------------------------------------------------------------------- blocks


def _chunks(items: Iterable[Any], size: int, name: str) -> Iterator[list[Any]]:
    """Lists of so many items, the last one perhaps of fewer."""
    try:
        stream = iter(items)
    except TypeError as error:
        raise TypeError(
            f"'{name}' must be an iterable of documents. Got {type(items).__name__}."
        ) from error
    while chunk := list(islice(stream, min(size, sys.maxsize))):
        yield chunk


def _documents(
    stream: IO[bytes], n_words: int | None, block_size: int
) -> Iterator[sparse.csr_matrix]:
    """Blocks of a file with a line for each document."""
    first = 0
    for chunk in _chunks((line for line in stream if line.strip()), block_size, "lines"):
        yield parse_lda_c(b"".join(chunk), n_words, first)
        first += len(chunk)


def _from_triples(
    stream: IO[bytes], shape: tuple[int, int], n_entries: int, block_size: int
) -> Iterator[sparse.csr_matrix]:
    """Blocks of a file with a line for each entry."""
    first, left = 0, np.empty((0, 3))  # the first document of the next block, and entries from it
    # one entry beyond the last document sends off all blocks but the last
    for entries in chain(triples(stream, shape, n_entries), [np.array([[shape[0], 0, 0]])]):
        left = np.concatenate([left, entries])
        if np.any(np.diff(left[:, 0]) < 0) or left[0, 0] < first:
            raise ValueError(
                "its documents must come in the order of their numbers, to be read in blocks."
            )
        while first < shape[0] and left[-1, 0] >= min(first + block_size, shape[0]):
            size = min(block_size, shape[0] - first)
            end = int(np.searchsorted(left[:, 0], first + size))
            yield matrix_of(left[:end] - [first, 0, 0], (size, shape[1]))
            left, first = left[end:], first + size
