"""Corpora in blocks of documents: for files and texts that are larger than memory.

Each function yields CSR matrices of some documents, in order, all with the same words.  They can be
written to disk with :func:`annealvi.corpus.write`, or given to `partial_fit` one after the other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from numbers import Integral
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from annealvi.corpus.files import check_counts, check_numbers, opened, parse_lda_c
from annealvi.corpus.gensim import from_gensim

#: Documents in a block.
BLOCK = 10_000
#: Lines that are parsed at a time, of files with a line for each entry.
LINES = 1 << 20


def stream_uci(path: str | os.PathLike, *, block_size: int = BLOCK) -> Iterator[sparse.csr_matrix]:
    """Read a file of the UCI machine learning repository in blocks of documents.

    Its format is that of :func:`annealvi.corpus.read_uci`.  The entries of a document must follow
    one another, and documents must come in the order of their numbers.

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
        If it is not what it should be.

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
    _check_size(block_size, "stream_uci")
    with opened(path, "UCI bag of words") as stream:
        n_documents, n_words, n_entries = (int(stream.readline()) for _ in range(3))
        yield from _from_triples(stream, (n_documents, n_words), n_entries, block_size)


def stream_matrix_market(
    path: str | os.PathLike, *, block_size: int = BLOCK
) -> Iterator[sparse.csr_matrix]:
    """Read a file of Matrix Market in blocks of documents.

    It must be a general matrix in coordinates, with a row for each document, such as gensim's
    ``MmCorpus.serialize`` writes.  The entries of a row must follow one another, and rows must
    come in order.  SciPy's ``mmread`` reads files in any order, as a whole.

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
        If it is not what it should be.
    """
    _check_size(block_size, "stream_matrix_market")
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


def stream_lda_c(
    path: str | os.PathLike, n_words: int | None = None, *, block_size: int = BLOCK
) -> Iterator[sparse.csr_matrix]:
    """Read a file of Blei's program LDA-C in blocks of documents.

    Its format is that of :func:`annealvi.corpus.read_lda_c`.

    Parameters
    ----------
    path : path
        The file, such as ``ap.dat``; it may be compressed by gzip.
    n_words : int, default=None
        The number of words of the vocabulary.  Without it the file is read once more before, for
        the largest number of a word.
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
        If it is not what it should be.
    """
    _check_size(block_size, "stream_lda_c")
    if n_words is None:
        with opened(path, "LDA-C counts") as stream:
            n_words = max((X.shape[1] for X in _documents(stream, None, block_size)), default=0)
    else:
        _check_integer(n_words, "n_words", "stream_lda_c", least=1)
    with opened(path, "LDA-C counts") as stream:
        yield from _documents(stream, n_words, block_size)


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
        If `corpus` is no iterable, or `words` no mapping and no integer.
    ValueError
        If a document is no list of (id, count), an id is negative or too large, or a count is
        negative or not finite.

    Examples
    --------
    >>> from annealvi.corpus import stream_gensim
    >>> [block.toarray().tolist() for block in stream_gensim([[(0, 4), (2, 1)], [(1, 5)]], 3)]
    [[[4.0, 0.0, 1.0], [0.0, 5.0, 0.0]]]
    """
    _check_size(block_size, "stream_gensim")
    if not isinstance(words, Mapping):
        _check_integer(words, "words", "stream_gensim", least=1)
    for documents in _chunks(corpus, block_size, "corpus"):
        if isinstance(words, Mapping):
            yield from_gensim(documents, words).data
            continue
        X = from_gensim(documents).data
        if X.shape[1] > words:
            raise ValueError(
                f"Ids of 'corpus' must be below {words}, the number of words. Got the id "
                f"{X.shape[1] - 1}."
            )
        X.resize(X.shape[0], int(words))
        yield X


def stream_texts(
    texts: Iterable[Any], vectorizer: Any, *, block_size: int = BLOCK
) -> Iterator[sparse.csr_matrix]:
    """Count the words of texts in blocks of documents.

    Parameters
    ----------
    texts : iterable of str
        Or of whatever the vectorizer reads.  It is read once.
    vectorizer : estimator
        One that need not be fitted, as scikit-learn's `HashingVectorizer`, or has been fitted, as
        a `CountVectorizer` with a `vocabulary` or after `fit` on a sample of the texts.
    block_size : int, default=10000
        Documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The last one may have fewer rows.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the vectorizer must be fitted and has not been.
    TypeError
        If `texts` is no iterable, or a single str, or has what the vectorizer cannot read.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from annealvi.corpus import stream_texts
    >>> counter = CountVectorizer(vocabulary=["gene", "star"])
    >>> [block.toarray().tolist() for block in stream_texts(["a star", "a gene"], counter)]
    [[[0, 1], [1, 0]]]
    """
    _check_size(block_size, "stream_texts")
    if isinstance(texts, str | bytes):
        raise TypeError("'texts' must be an iterable of texts. Got a single one.")
    if not hasattr(vectorizer, "transform"):
        raise TypeError(
            f"'vectorizer' must have a method transform. Got {type(vectorizer).__name__}."
        )
    if getattr(vectorizer, "vocabulary", None) is None:
        check_is_fitted(vectorizer)
    for some in _chunks(texts, block_size, "texts"):
        try:
            counts = vectorizer.transform(some)
        except AttributeError as error:  # that of a text that is no str
            kinds = ", ".join(sorted({type(text).__name__ for text in some}))
            raise TypeError(f"'texts' must be what the vectorizer reads. Got {kinds}.") from error
        yield sparse.csr_matrix(counts)


# ------------------------------------------------------------------------- of documents


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
    """Blocks of a file with a line for each document: their number, then ``word:count``."""
    first = 0
    lines = (line for line in stream if line.strip())
    while chunk := list(islice(lines, min(block_size, sys.maxsize))):
        X = parse_lda_c(b"".join(chunk), n_words, first)
        yield X
        first += X.shape[0]


# --------------------------------------------------------------------------- of entries


def _from_triples(
    stream: IO[bytes], shape: tuple[int, int], n_entries: int, block_size: int
) -> Iterator[sparse.csr_matrix]:
    """Blocks of a file with a line for each entry: document, word, count."""
    n_documents, n_words = shape
    left, n_read = np.empty((0, 3)), 0
    first = 0  # the first document of the next block
    for entries in _triples(stream):
        n_read += len(entries)
        check_numbers("Documents", entries[:, 0], n_documents)
        check_numbers("Words", entries[:, 1], n_words)
        entries = np.concatenate([left, entries])
        if np.any(np.diff(entries[:, 0]) < 0) or (len(entries) and entries[0, 0] <= first):
            raise ValueError(
                "its documents must come in the order of their numbers, to be read in blocks."
            )
        # the last document may have more entries in the next lines
        while len(entries) and entries[-1, 0] > first + block_size:
            end = int(np.searchsorted(entries[:, 0], first + block_size, side="right"))
            yield _block(entries[:end], first, block_size, n_words)
            entries, first = entries[end:], first + block_size
        left = entries
    if n_read != n_entries:
        raise ValueError(f"it must have {n_entries} entries. Got {n_read}.")
    while first < n_documents:
        size = min(block_size, n_documents - first)
        end = int(np.searchsorted(left[:, 0], first + size, side="right"))
        yield _block(left[:end], first, size, n_words)
        left, first = left[end:], first + size


def _triples(stream: IO[bytes]) -> Iterator[NDArray[np.float64]]:
    lines = (line for line in stream if line.strip())
    while chunk := list(islice(lines, LINES)):
        entries = np.loadtxt(chunk, comments=None, ndmin=2)
        if entries.shape[1] != 3:
            raise ValueError(
                f"its lines must have a document, a word and a count. Got {entries.shape[1]} "
                "numbers in a line."
            )
        yield entries


def _block(entries: NDArray[np.float64], first: int, size: int, n_words: int) -> sparse.csr_matrix:
    """The matrix of the documents from number `first` + 1 on."""
    places = (entries[:, 0].astype(np.int64) - 1 - first, entries[:, 1].astype(np.int64) - 1)
    return check_counts(sparse.csr_matrix((entries[:, 2], places), shape=(size, n_words)))


# ------------------------------------------------------------------------------- checks


def _check_size(block_size: Any, owner: str) -> None:
    _check_integer(block_size, "block_size", owner, least=1)


def _check_integer(value: Any, name: str, owner: str, *, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be an int in the range [{least}, inf). "
            f"Got {value!r} instead."
        )
