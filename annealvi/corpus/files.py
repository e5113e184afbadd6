"""Files of word counts: UCI's bag of words, and LDA-C."""

from __future__ import annotations

import gzip
import io
import os
import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

#: What parsers raise for a file that is not what they expect.
_WRONG = (ValueError, TypeError, OverflowError, IndexError, EOFError, zlib.error)

#: So many numbers of words or documents may always have gaps; see :func:`check_gaps`.
MOST_GAPS = 10**7


@contextmanager
def opened(path: str | os.PathLike, kind: str) -> Iterator[IO[bytes]]:
    """Open a file that may be compressed by gzip; its parser's errors name it."""
    place = os.fspath(path)
    with ExitStack() as stack:
        stream: Any = stack.enter_context(open(path, "rb"))
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        try:
            if packed:
                unpacked: Any = gzip.GzipFile(fileobj=stream)
                stream = stack.enter_context(unpacked)
            yield stream
        except (*_WRONG, gzip.BadGzipFile) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ValueError(f"{place!r} cannot be read as {kind}: {first}") from error


def read_lines(stream: IO[bytes]) -> list[str]:
    """The lines of a text in UTF-8, without those that are empty."""
    lines = stream.read().decode("utf-8").splitlines()
    return [line for line in lines if line.strip()]


def check_counts(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return counts, which must be finite and not negative."""
    wrong = ~(np.isfinite(X.data) & (X.data >= 0))
    if wrong.any():
        raise ValueError(f"counts must be finite and not negative. Got {X.data[wrong][0]:g}.")
    return X


def check_numbers(what: str, numbers: NDArray[np.float64], most: int) -> None:
    """Check that documents or words have numbers from 1 to `most`."""
    wrong = ~((numbers >= 1) & (numbers <= most) & (numbers == np.floor(numbers)))
    if wrong.any():
        raise ValueError(f"{what} must be numbered from 1 to {most}. Got {numbers[wrong][0]:g}.")


def check_gaps(most: int, n: int, what: str) -> int:
    """Return the number of words or documents, which must not be far more than there are.

    What is returned to the user has a place for each number, used or not.
    """
    limit = max(MOST_GAPS, 10 * n)
    if most >= limit:
        raise ValueError(f"{what} must be below {limit}, for there are {n}. Got {most}.")
    return most + 1


def read_vocabulary(path: str | os.PathLike | None, n_words: int) -> NDArray | None:
    """Read the words of a corpus, one on each line."""
    if path is None:
        return None
    with opened(path, "a vocabulary") as stream:
        words = [line.strip() for line in stream.read().decode("utf-8").splitlines()]
        while words and not words[-1]:
            words.pop()
        if len(words) < n_words:
            raise ValueError(f"it has {len(words)} words, and the counts have {n_words}.")
    return np.array(words, dtype=object)


def read_uci(path: str | os.PathLike, vocabulary: str | os.PathLike | None = None) -> Bunch:
    """Read word counts in the format of the UCI machine learning repository.

    The first three lines hold the number of documents, the number of words in the vocabulary,
    and the number of entries.  Each line after them holds one entry: document, word, count.
    Documents and words are numbered from 1.

    Parameters
    ----------
    path : path
        The file, such as ``docword.kos.txt.gz``; it may be compressed by gzip.
    vocabulary : path, default=None
        A file with a word on each line, such as ``vocab.kos.txt``.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        With `data`, a CSR matrix of shape (n_documents, n_words), and `feature_names`, an
        ndarray of the words or None.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a file is not what it should be.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from annealvi.corpus import read_uci
    >>> with NamedTemporaryFile(suffix=".txt", mode="w+") as file:
    ...     _ = file.write("2\\n3\\n3\\n1 1 4\\n1 3 1\\n2 2 5\\n")
    ...     file.flush()
    ...     read_uci(file.name).data.toarray()
    array([[4., 0., 1.],
           [0., 5., 0.]])
    """
    with opened(path, "UCI bag of words") as stream:
        n_documents, n_words, n_entries = (int(stream.readline()) for _ in range(3))
        with warnings.catch_warnings(action="ignore"):  # of a file that ends here
            entries = np.loadtxt(stream, comments=None, ndmin=2)
        if not entries.size:
            entries = np.empty((0, 3))
        if entries.shape != (n_entries, 3):
            raise ValueError(
                f"it must have {n_entries} lines of document, word and count. "
                f"Got {entries.shape[0]} lines of {entries.shape[1]} numbers."
            )
        documents, words, counts = entries.T
        check_numbers("Documents", documents, n_documents)
        check_numbers("Words", words, n_words)
        places = (documents.astype(np.int64) - 1, words.astype(np.int64) - 1)
        X = check_counts(sparse.csr_matrix((counts, places), shape=(n_documents, n_words)))
    return _corpus(X, read_vocabulary(vocabulary, X.shape[1]))


def read_lda_c(path: str | os.PathLike, vocabulary: str | os.PathLike | None = None) -> Bunch:
    """Read word counts in the format of Blei's program LDA-C.

    Each line is a document: the number of its different words, then ``word:count`` for each of
    them.  Words are numbered from 0.

    Parameters
    ----------
    path : path
        The file, such as ``ap.dat``; it may be compressed by gzip.
    vocabulary : path, default=None
        A file with a word on each line, such as ``vocab.txt``.  The columns are then those of
        its words; without it there are as many as the largest number of a word says.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        With `data`, a CSR matrix of shape (n_documents, n_words), and `feature_names`, an
        ndarray of the words or None.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a file is not what it should be.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from annealvi.corpus import read_lda_c
    >>> with NamedTemporaryFile(suffix=".dat", mode="w+") as file:
    ...     _ = file.write("2 0:4 2:1\\n1 1:5\\n")
    ...     file.flush()
    ...     read_lda_c(file.name).data.toarray()
    array([[4., 0., 1.],
           [0., 5., 0.]])
    """
    with opened(path, "LDA-C counts") as stream:
        X = parse_lda_c(stream.read())
    return _corpus(X, read_vocabulary(vocabulary, X.shape[1]))


def parse_lda_c(content: bytes, n_words: int | None = None, first: int = 0) -> sparse.csr_matrix:
    """Parse lines of a file of LDA-C."""
    # SVMlight's lines are the same, with a target in the place of the number of words
    X, n_different = load_svmlight_file(
        io.BytesIO(content), n_features=n_words, zero_based=True, dtype=np.float64
    )
    wrong = np.flatnonzero(np.diff(X.indptr) != n_different)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"document {first + row} says that it has {n_different[row]:g} different words. "
            f"It has {X.indptr[row + 1] - X.indptr[row]}."
        )
    return check_counts(sparse.csr_matrix(X))


def _corpus(X: sparse.csr_matrix, words: NDArray | None) -> Bunch:
    if words is not None and len(words) > X.shape[1]:  # the last words are in no document
        X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(words)))
    return Bunch(data=X, feature_names=words)
