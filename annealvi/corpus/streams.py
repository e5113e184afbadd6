"""Readers that yield a corpus in blocks of documents, for data that are larger than memory.

Each function yields CSR matrices of consecutive documents, all with the same words as columns.
Pass the result to :func:`annealvi.corpus.write_corpus` to store it, or pass each block to
`partial_fit`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from os import PathLike
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import COUNT, is_missing, validated
from annealvi.corpus.files import matrix_of, opened, parse_lda_c, read_header, triples
from annealvi.corpus.gensim import counts_of, words_of
from annealvi.exceptions import BadParameter, warn_user

Blocks = Iterator[csr_matrix]
#: The default number of documents in a block.
BLOCK = 10_000


@validated(block_size=COUNT)
def stream_uci(path: str | PathLike, *, block_size: int = BLOCK) -> Blocks:
    """Read a bag-of-words file of the UCI machine learning repository in blocks of documents.

    The format is described in :func:`annealvi.corpus.read_uci`.  The entries of each document must
    be on consecutive lines, and documents must be in the order of their numbers.

    Parameters
    ----------
    path : path
        The file, such as ``docword.pubmed.txt.gz``; it may be compressed by gzip.
    block_size : int, default=10000
        Number of documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The word counts of a block.  The last block may have fewer rows.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is not valid.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from annealvi.corpus import stream_uci
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "docword.txt"
    ...     _ = path.write_text("2\\n3\\n3\\n1 1 4\\n1 3 1\\n2 2 5\\n")
    ...     [block.toarray().tolist() for block in stream_uci(path, block_size=1)]
    [[[4.0, 0.0, 1.0]], [[0.0, 5.0, 0.0]]]
    """
    with opened(path, "UCI bag of words") as stream:
        shape, n_entries = read_header(stream)
        yield from _from_triples(stream, shape, n_entries, block_size)


@validated(block_size=COUNT)
def stream_matrix_market(path: str | PathLike, *, block_size: int = BLOCK) -> Blocks:
    """Read a Matrix Market file in blocks of documents.

    The file must contain a general matrix in coordinate format with a row for each document, like
    files that gensim's ``MmCorpus.serialize`` writes.  The entries of each row must be on
    consecutive lines, and rows must be in order.  To read a whole file with entries in any order,
    use SciPy's ``mmread``.

    Parameters
    ----------
    path : path
        The file, such as ``corpus.mm``; it may be compressed by gzip.
    block_size : int, default=10000
        Number of documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The word counts of a block.  The last block may have fewer rows.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is not valid.
    """
    with opened(path, "Matrix Market") as stream:
        banner = stream.readline().decode("ascii", "replace").lower().split()
        if banner[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
            raise ValueError("it must begin with '%%MatrixMarket matrix coordinate'.")
        if banner[3:] not in (["real", "general"], ["integer", "general"]):
            raise ValueError(
                "its first line must end in 'real general' or 'integer general'. "
                f"Got {' '.join(banner[3:])!r}."
            )
        line = stream.readline()
        while line.startswith(b"%") or (line and not line.strip()):  # comments and empty lines
            line = stream.readline()
        n_documents, n_words, n_entries = (int(number) for number in line.split())
        yield from _from_triples(stream, (n_documents, n_words), n_entries, block_size)


@validated(n_words=[*COUNT, None], block_size=COUNT)
def stream_lda_c(
    path: str | PathLike, n_words: int | None = None, *, block_size: int = BLOCK
) -> Blocks:
    """Read a file of Blei's program LDA-C in blocks of documents.

    The format is described in :func:`annealvi.corpus.read_lda_c`.

    Parameters
    ----------
    path : path
        The file, such as ``ap.dat``; it may be compressed by gzip.
    n_words : int, default=None
        The number of words of the vocabulary.  With None the file is read twice, because the first
        reading finds the largest word number.
    block_size : int, default=10000
        Number of documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The word counts of a block.  The last block may have fewer rows.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is not valid.
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
) -> Blocks:
    """Read a corpus of gensim in blocks of documents.

    gensim need not be installed.

    Parameters
    ----------
    corpus : iterable of iterables of (int, float)
        The ids and counts of the words of each document.  The corpus is read once.
    words : gensim.corpora.Dictionary, mapping of int to str or int
        The dictionary of the corpus, or the number of its words.
    block_size : int, default=10000
        Number of documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The word counts of a block.  The last block may have fewer rows.

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
def stream_texts(documents: Iterable[Any], vectorizer: Any, *, block_size: int = BLOCK) -> Blocks:
    """Count the words of texts in blocks of documents.

    Parameters
    ----------
    documents : iterable of str
        Texts, or other items that the vectorizer accepts.  The iterable is read once.
    vectorizer : estimator
        Either a fitted vectorizer, for example fitted to a sample of the texts, or a vectorizer
        that does not need to be fitted, such as scikit-learn's `HashingVectorizer` or a
        `CountVectorizer` with a `vocabulary`.
    block_size : int, default=10000
        Number of documents in a block.

    Yields
    ------
    csr_matrix of shape (block_size, n_words)
        The word counts of a block.  The last block may have fewer rows.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the vectorizer must be fitted but is not fitted.
    TypeError
        If `documents` is not an iterable, is a single str, or contains an item that the vectorizer
        does not accept, such as a missing value.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from annealvi.corpus import stream_texts
    >>> counter = CountVectorizer(vocabulary=["gene", "star"])
    >>> [block.toarray().tolist() for block in stream_texts(["a star", "a gene"], counter)]
    [[[0, 1], [1, 0]]]
    """
    if isinstance(documents, str | bytes):
        raise TypeError("'documents' must be an iterable of texts. Got a single text.")
    if issparse(documents):
        raise TypeError("'documents' must be an iterable of texts. Got a sparse matrix.")
    if hasattr(documents, "columns"):
        raise TypeError(
            "'documents' must be an iterable of texts. Got a table; choose one of its columns, "
            f"{list(documents.columns[:10])}."
        )
    if getattr(vectorizer, "vocabulary", None) is None:
        check_is_fitted(vectorizer)
    for number, chunk in enumerate(_chunks(documents, block_size, "documents")):
        for position, text in enumerate(chunk, number * block_size):
            if is_missing(text):
                raise BadParameter(
                    f"documents[{position}]", "a text", text, "Remove it, or replace it by ''."
                )
        try:
            counts = vectorizer.transform(chunk)
        except AttributeError as error:  # raised by a text that is not a str
            raise TypeError(
                "The items of 'documents' must be objects that the vectorizer accepts. "
                f"Got {', '.join(sorted({type(text).__name__ for text in chunk}))}."
            ) from error
        X = csr_matrix(counts)
        if not X.data.any():
            warn_user(
                f"Block {number} of 'documents' contains no word of the vocabulary, from document "
                f"{number * block_size} to {number * block_size + len(chunk) - 1}."
            )
        yield X


# ------------------------------------------------------------------------------- blocks


def _chunks(items: Iterable[Any], size: int, name: str) -> Iterator[list[Any]]:
    """Yield lists of `size` items; the last list may be shorter."""
    try:
        stream = iter(items)
    except TypeError as error:
        raise TypeError(
            f"'{name}' must be an iterable of documents. Got {type(items).__name__}."
        ) from error
    while chunk := list(islice(stream, min(size, sys.maxsize))):  # islice accepts no larger number
        yield chunk


def _documents(stream: IO[bytes], n_words: int | None, block_size: int) -> Blocks:
    """Yield the documents of a file of LDA-C in blocks; see :func:`parse_lda_c`."""
    first_document = 0
    for chunk in _chunks((line for line in stream if line.strip()), block_size, "lines"):
        yield parse_lda_c(b"".join(chunk), n_words, first_document)
        first_document += len(chunk)


def _from_triples(
    stream: IO[bytes], shape: tuple[int, int], n_entries: int, block_size: int
) -> Blocks:
    """Yield the documents of a file with a line for each entry in blocks; see :func:`triples`."""
    n_documents, n_words = shape
    first_document = 0  # of the next block
    entries_left = np.empty((0, 3))  # entries that were read, but not yielded yet
    # an additional entry after the last document, so that the loop yields the last block
    for entries in chain(triples(stream, shape, n_entries), [np.array([[n_documents, 0, 0]])]):
        entries_left = np.concatenate([entries_left, entries])
        if np.any(np.diff(entries_left[:, 0]) < 0) or entries_left[0, 0] < first_document:
            raise ValueError(
                "its documents must be in the order of their numbers, because it is read in blocks."
            )
        while first_document < n_documents and entries_left[-1, 0] >= min(
            first_document + block_size, n_documents
        ):
            size = min(block_size, n_documents - first_document)
            # the entries of the block end where those of later documents begin
            end = np.searchsorted(entries_left[:, 0], first_document + size)
            yield matrix_of(entries_left[:end] - [first_document, 0, 0], (size, n_words))
            entries_left = entries_left[end:]
            first_document += size
