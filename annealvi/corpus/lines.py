"""Text files, compressed or not, and what is wrong with one."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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
