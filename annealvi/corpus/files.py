"""Readers of files of word counts in the formats of UCI and LDA-C."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from os import PathLike, fspath
from pathlib import PurePath, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from annealvi.exceptions import warn_user
from annealvi.files import read_archive
from annealvi.matrices import sound_csr

#: Numbers of words or documents below this limit may always have gaps; see :func:`check_gaps`.
MOST_GAPS = 10**7
#: Beginnings of names that are not documents: hidden files, and lock files of Word.
NO_DOCUMENT = (".", "~$", "__MACOSX")
#: A number, which may be NaN or infinite.
NUMBER = rb"(?i:[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?))"
#: A line of LDA-C: the number of words, and pairs of a word and its count.
LDA_C = re.compile(rb"\d+(?: \d+:%b)*" % NUMBER)
#: A line of UCI: three numbers; the first form is faster.
UCI = re.compile(rb"\d+ \d+ \d+\n|(?:\s*%b(?!\S)){3}\s*" % NUMBER)
#: The number of lines that are parsed at a time in files with a line for each entry.
LINES = 1 << 20


@contextmanager
def naming(path: str | PathLike, kind: str, hint: str = "") -> Iterator[None]:
    """Add the name of the file, and what the user can do, to errors of a parser."""
    try:
        yield
    except (MemoryError, ImportError):  # not errors of the file
        raise
    except Exception as error:  # each parser and each compression has its own errors
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk
            raise
        # the first line of its message, or its type if it has none
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if hint:
            reason = f"{reason.removesuffix('.')}. {hint}"
        raise ValueError(f"{fspath(path)!r} cannot be read as {kind}: {reason}") from error


@contextmanager
def opened(path: str | PathLike, kind: str) -> Iterator[IO[bytes]]:
    """Open a file that may be compressed, and add its name to errors of the parser.

    A byte-order mark of UTF-8 is skipped.
    """
    with open(path, "rb") as file, naming(path, kind):
        stream = unpacked(file if file.seekable() else io.BytesIO(file.read()))  # of a pipe
        if stream.read(len(BOM_UTF8)) != BOM_UTF8:
            stream.seek(0)
        yield stream


def _only_member(stream: IO[bytes]) -> IO[bytes]:
    """Open the only file in a zip file, apart from what macOS adds."""
    if not zipfile.is_zipfile(stream):  # a damaged one
        stream.seek(0)
        return stream
    archive = zipfile.ZipFile(stream)
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not is_hidden(PurePosixPath(member.filename))
    ]
    if len(members) != 1:
        raise ValueError(
            "it is a zip file, as those of Excel and Word are, and must contain one file. "
            f"Got {len(members)} files."
        )
    return archive.open(members[0])


def _refuse_zstd(stream: IO[bytes]) -> IO[bytes]:
    """Raise an error, because Python's library does not unpack zstd before 3.14."""
    raise ValueError("it is compressed by zstd. Unpack it first, or compress it by gzip.")


#: The first bytes of compressed files, and what opens them.
OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
    b"PK\x03\x04": _only_member,
    b"\x28\xb5\x2f\xfd": _refuse_zstd,
}


def unpacked(stream: IO[bytes]) -> IO[bytes]:
    """Return the unpacked stream, if its first bytes show that it is compressed."""
    beginning = stream.read(8)
    stream.seek(0)
    for mark, unpack in OPENERS.items():
        if beginning.startswith(mark):
            return unpack(stream)
    return stream


def decoded(content: bytes, encodings: str) -> str:
    """Decode a file by the first of the `encodings`, separated by commas, that fits."""
    first, _, others = encodings.partition(",")
    try:
        return content.decode(first)
    except UnicodeDecodeError:
        if not others:
            raise
    text = decoded(content, others)
    expected = first.removesuffix("-sig")
    # without the name of the file, so that it is told once for a folder
    warn_user(
        f"A file that is not in the encoding {expected} is read in {others}. If letters are "
        f"wrong, it may be a damaged file in {expected}."
    )
    return text


def checked_text(text: str, path: str | PathLike, encoding: str) -> str:
    """Check that the content of a file is text, and remove the byte-order mark."""
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise ValueError(
            f"{fspath(path)!r} is not a text file in the encoding {encoding}: it contains NUL "
            "characters, like a binary file or a text in UTF-16."
        )
    if text.startswith("#doc source pos typeindex type topic"):
        raise ValueError(
            f"{fspath(path)!r} is a state file of MALLET, not a text. "
            "annealvi.corpus.read_mallet_state reads its counts and topics."
        )
    return text


def is_hidden(path: PurePath) -> bool:
    """Whether a file or one of its folders is none of a user's documents, by its name."""
    return any(name.startswith(NO_DOCUMENT) for name in path.parts)


def read_lines(stream: IO[bytes]) -> list[str]:
    """Return the non-empty lines of a text in UTF-8; only a line feed ends a line."""
    lines = stream.read().decode("utf-8-sig").split("\n")
    return [line.removesuffix("\r") for line in lines if line.strip()]


def check_counts(X: csr_matrix, name: str = "counts") -> csr_matrix:
    """Check that counts are finite and not negative, and return them."""
    wrong = ~(np.isfinite(X.data) & (X.data >= 0))  # also NaN
    if wrong.any():
        raise ValueError(f"{name} must be finite and non-negative. Got {X.data[wrong][0]:g}.")
    return X


def check_gaps(largest: int, n: int, what: str) -> int:
    """Return `largest` + 1, the number of rows or columns; raise an error if it is much too large.

    Readers make a row or column for each index up to `largest`, even if the file does not use it.
    """
    limit = max(MOST_GAPS, 10 * n)  # n is the number of indices or entries in the file
    if largest >= limit:
        raise ValueError(
            f"{what} must be less than {limit}. Got {largest}. Count from 0 without large gaps."
        )
    return largest + 1


def read_vocabulary(
    path: str | PathLike | None, n_words: int, encoding: str = "utf-8", *, exact: bool = True
) -> NDArray | None:
    """Read the words of a corpus, one on each line: at least `n_words`, or `exact`-ly `n_words`."""
    if path is None:
        return None
    with opened(path, "a vocabulary") as stream:
        text = stream.read().decode(encoding).removeprefix("\ufeff")
        words = [line.strip() for line in text.split("\n")]
        while words and not words[-1]:  # empty lines at the end
            words.pop()
        n_lines = len(words)
        if n_lines < n_words or (exact and n_lines > n_words):
            message = f"it has {n_lines} words, but the counts have {n_words}."
            if n_lines > n_words:
                message += f" Its first line, {words[0]!r}, may be a header."
            raise ValueError(message)
    return np.array(words, dtype=object)


def read_npz(path: str | PathLike, what: str) -> tuple[csr_matrix, dict[str, NDArray]]:
    """Read counts from a file in the format of SciPy's save_npz, and other arrays of the file."""
    arrays = read_archive(path, what)
    # SciPy stores the format as an array of bytes
    kind = np.asarray(arrays.pop("format", "csr")).astype(str).item()
    missing = [name for name in ("data", "indices", "indptr", "shape") if name not in arrays]
    if missing or kind not in ("csr", "csc"):
        raise ValueError(
            f"The file {fspath(path)!r} does not contain any {what} in CSR or CSC: "
            + (f"it has no arrays {missing}." if missing else f"its format is {kind!r}.")
        )
    try:
        shape = tuple(int(n) for n in arrays.pop("shape"))
        arrays_of_matrix = tuple(arrays.pop(name) for name in ("data", "indices", "indptr"))
        matrix = (csr_matrix if kind == "csr" else csc_matrix)(arrays_of_matrix, shape=shape)
        return check_counts(sound_csr(matrix, fspath(path)).astype(float)), arrays
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"The file {fspath(path)!r} does not contain any {what}, because its arrays "
            f"are not a valid sparse matrix of counts: {error}"
        ) from error


def read_uci(path: str | PathLike, vocabulary: str | PathLike | None = None) -> Bunch:
    """Read word counts in the format of the UCI machine learning repository.

    The first three lines contain the number of documents, the number of words in the vocabulary,
    and the number of entries.  Each of the other lines contains one entry: document, word, count.
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
        The attributes are `data`, a CSR matrix of shape (n_documents, n_words), and
        `feature_names`, an ndarray of the words or None.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a file is not valid.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from annealvi.corpus import read_uci
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "docword.txt"
    ...     _ = path.write_text("2\\n3\\n3\\n1 1 4\\n1 3 1\\n2 2 5\\n")
    ...     read_uci(path).data.toarray()
    array([[4., 0., 1.],
           [0., 5., 0.]])
    """
    with opened(path, "UCI bag of words") as stream:
        shape, n_entries = read_header(stream)
        X = matrix_of(np.concatenate([*triples(stream, shape, n_entries)]), shape)
    return _corpus(X, vocabulary, exact=True)


def read_header(stream: IO[bytes]) -> tuple[tuple[int, int], int]:
    """Read the first three lines of UCI's format: return the shape and the number of entries."""
    n_documents, n_words, n_entries = (int(stream.readline()) for _ in range(3))
    return (n_documents, n_words), n_entries


def triples(
    stream: IO[bytes], shape: tuple[int, int], n_entries: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the entries of a matrix in parts: document and word, counted from 0, and count."""
    lines = (line for line in stream if line.strip())
    n_read = 0
    while chunk := list(islice(lines, LINES)):
        for number, line in enumerate(chunk, start=n_read + 1):
            if not UCI.fullmatch(line):
                raise ValueError(
                    "each line must be three numbers (document, word, count). "
                    f"Got {line.decode(errors='replace').strip()!r} in the line of entry {number}."
                )
        entries = np.loadtxt(chunk, comments=None, ndmin=2)
        # the first two columns; `shape` has no limit for the third, the counts
        for what, numbers, size in zip(("Documents", "Words"), entries.T, shape, strict=False):
            wrong = ~((numbers >= 1) & (numbers <= size) & (numbers == np.floor(numbers)))
            if wrong.any():
                raise ValueError(
                    f"{what} must be numbered from 1 to {size}. Got {numbers[wrong][0]:g}."
                )
        n_read += len(entries)
        yield entries - [1, 1, 0]  # counted from 0
    if n_read != n_entries:
        raise ValueError(f"it must contain {n_entries} entries. Got {n_read} entries.")
    yield np.empty((0, 3))  # so that an empty file has a part, which can be concatenated


def matrix_of(entries: NDArray[np.float64], shape: tuple[int, int]) -> csr_matrix:
    """Make a matrix from rows of document, word and count; equal places are added."""
    documents, words, counts = entries.T
    places = (documents.astype(np.int64), words.astype(np.int64))
    return check_counts(csr_matrix((counts, places), shape=shape))


def read_lda_c(path: str | PathLike, vocabulary: str | PathLike | None = None) -> Bunch:
    """Read word counts in the format of Blei's program LDA-C.

    Each line is a document, and contains the number of distinct words, followed by ``word:count``
    for each word.  Words are numbered from 0.

    Parameters
    ----------
    path : path
        The file, such as ``ap.dat``; it may be compressed by gzip.
    vocabulary : path, default=None
        A file with a word on each line, such as ``vocab.txt``.  The matrix has a column for each
        word of this file.  Without a vocabulary, the largest word number determines the number of
        columns.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are `data`, a CSR matrix of shape (n_documents, n_words), and
        `feature_names`, an ndarray of the words or None.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a file is not valid.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from annealvi.corpus import read_lda_c
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "ap.dat"
    ...     _ = path.write_text("2 0:4 2:1\\n1 1:5\\n")
    ...     read_lda_c(path).data.toarray()
    array([[4., 0., 1.],
           [0., 5., 0.]])
    """
    with opened(path, "LDA-C counts") as stream:
        X = parse_lda_c(stream.read())
    return _corpus(X, vocabulary, exact=False)


def parse_lda_c(content: bytes, n_words: int | None = None, first: int = 0) -> csr_matrix:
    """Parse lines of LDA-C; `first` is the number of the first document, for errors.

    Without `n_words` the largest word number determines the number of columns.
    """
    # the format of SVMlight is similar: words are sorted, and a target replaces the number of words
    lines = [line.split() for line in content.split(b"\n")]
    for number, line in enumerate(filter(None, lines), start=first):
        words = {*map(_word, line[1:])}
        if not LDA_C.fullmatch(b" ".join(line)) or len(words) < len(line) - 1:
            raise ValueError(
                f"the line of document {number} must be a number and pairs word:count of different "
                f"words. Got {b' '.join(line)[:80].decode(errors='replace')!r}."
            )
    sorted_lines = [b" ".join([*line[:1], *sorted(line[1:], key=_word)]) for line in lines]
    # the targets are the numbers of different words
    X, n_different = load_svmlight_file(
        io.BytesIO(b"\n".join(sorted_lines)), n_features=n_words, zero_based=True, dtype=np.float64
    )
    n_entries = np.diff(X.indptr)
    # for the first row whose number of words is wrong
    for row in np.flatnonzero(n_entries != n_different).tolist():
        raise ValueError(
            f"the line of document {first + row} begins with {n_different[row]:g}, so it must have "
            f"{n_different[row]:g} different words. Got {n_entries[row]} words."
        )
    return check_counts(csr_matrix(X))


def _word(entry: bytes) -> int:
    """Return the word number of an entry, by which entries are sorted; -1 if it is not a number."""
    word = entry.partition(b":")[0]
    return int(word) if word.isdigit() else -1


def with_words(X: csr_matrix, words: Any) -> tuple[csr_matrix, NDArray | None]:
    """Return counts with a column for each word, even for words that do not occur."""
    if words is None:
        return X, None
    words = np.array([str(word) for word in words], dtype=object)
    if len(words) > X.shape[1]:
        X.resize(X.shape[0], len(words))
    return X, words


def _corpus(X: csr_matrix, vocabulary: str | PathLike | None, *, exact: bool) -> Bunch:
    """Return counts with the words of a file; `exact` is false if it may have more words."""
    X, words = with_words(X, read_vocabulary(vocabulary, X.shape[1], exact=exact))
    return Bunch(data=X, feature_names=words)
