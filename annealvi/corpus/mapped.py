"""Word counts on disk that are mapped into memory, for corpora that are larger than memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Literal
from uuid import uuid4

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils._param_validation import StrOptions

from annealvi.checks import validated
from annealvi.corpus.files import check_counts
from annealvi.files import flush
from annealvi.files.schema import Integer, Listed, Schema, Text
from annealvi.matrices import INDEX_DTYPES, check_csr, csr_of, sound_csr

#: The version of the format, which is stored in the description.
FORMAT = 1
DESCRIPTION = "corpus.json"
DATA = "data.npy"
INDICES = "indices.npy"
INDPTR = "indptr.npy"
DESCRIBED = Schema(
    format=Integer(FORMAT, FORMAT), shape=Listed(Integer()), dtype=Text("float32", "float64")
)
#: The number of entries that are converted at a time.
CHUNK = 1 << 22
_INT32_MAX = np.iinfo(np.int32).max


@validated(dtype=[StrOptions({"float32", "float64"})])
def write_corpus(
    path: str | PathLike,
    blocks: Iterable[Any],
    *,
    dtype: Literal["float32", "float64"] = "float32",
) -> None:
    """Write a corpus to disk in blocks of documents, to be read by :func:`open_corpus`.

    Only one block at a time is in memory, so the corpus can be larger than memory.  The result is a
    folder with a description and the three arrays of a CSR matrix as NumPy files.  The folder
    appears at `path` only when it is complete.

    Parameters
    ----------
    path : path
        The folder to write, which must not exist.
    blocks : iterable of {array-like, sparse matrix} of shape (n_documents, n_words)
        Word counts of consecutive documents.  Column j must be the same word in all blocks.  The
        functions of :mod:`annealvi.corpus.streams` read files and texts in such blocks.
    dtype : {"float32", "float64"}, default="float32"
        Dtype of the counts in the file. float32 takes 8 bytes for each entry and represents
        integers up to 16,777,216 exactly; float64 takes 12 bytes for each entry.

    Raises
    ------
    FileExistsError
        If `path` already exists.
    OSError
        If the folder cannot be written.
    TypeError
        If `blocks` is not an iterable.
    ValueError
        If a block is not a matrix of counts, if blocks have different numbers of columns, if
        float32 cannot represent a count exactly, or if there is no block.

    See Also
    --------
    annealvi.corpus.open_corpus : Opens the corpus as a matrix.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from annealvi import TemperedLDA, corpus
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> X = load_arxiv_abstracts().data
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "arxiv"
    ...     corpus.write_corpus(path, (X[i : i + 100] for i in range(0, 1000, 100)))
    ...     lda = TemperedLDA(5, random_state=0).fit(corpus.open_corpus(path))
    >>> lda.components_.shape == (5, X.shape[1])
    True
    """
    try:
        stream = iter(blocks)
    except TypeError as error:
        raise TypeError(
            f"'blocks' must be an iterable of matrices. Got {type(blocks).__name__}."
        ) from error
    with _new_folder(Path(path)) as folder:
        _write(folder, stream, np.dtype(dtype))


def open_folder(path: str | PathLike) -> csr_matrix:
    """Open a corpus that :func:`write_corpus` has written; its arrays are views of mapped files."""
    folder = Path(path)
    shape, dtype = _read_description(folder)
    indptr = _mapped(folder, INDPTR, INDEX_DTYPES, shape[0] + 1)
    n_entries = max(0, indptr[-1])  # a damaged file may contain a negative number
    indices = _mapped(folder, INDICES, (indptr.dtype,), n_entries)
    return csr_of(_mapped(folder, DATA, (dtype,), n_entries), indices, indptr, shape)


# ----------------------------------------------------------------------------- writing


def _write(folder: Path, blocks: Iterable[Any], dtype: np.dtype) -> None:
    """Write the arrays of a CSR matrix and its description to a folder, block by block."""
    n_words = None
    lengths = [np.zeros(1, np.int64)]  # the first number of indptr
    with (
        closing(_Appended(folder / DATA, dtype)) as all_data,
        closing(_Appended(folder / INDICES, np.dtype(np.int32))) as all_indices,
    ):
        for number, block in enumerate(blocks):
            name = f"block {number}"
            empty = issparse(block) and block.shape[0] == 0
            # check_csr does not accept a matrix without rows
            X = sound_csr(block, name) if empty else check_csr(block, name=name)
            n_words = X.shape[1] if n_words is None else n_words
            if X.shape[1] != n_words or n_words > _INT32_MAX:
                raise ValueError(
                    f"All blocks must have the same number of columns, and at most {_INT32_MAX}. "
                    f"Block 0 has {n_words} columns, and {name} has {X.shape[1]} columns."
                )
            check_counts(X, f"{name}: counts")
            with np.errstate(over="ignore", under="ignore"):  # found by the comparison below
                data = X.data.astype(dtype, copy=False)
            wrong = data != X.data
            if wrong.any():
                raise ValueError(
                    f"{name} contains the count {X.data[wrong][0]!r}, which float32 cannot "
                    "represent exactly. Pass dtype='float64'."
                )
            all_data.append(data)
            all_indices.append(X.indices.astype(np.int32, copy=False))
            lengths.append(np.diff(X.indptr))
    if n_words is None:
        raise ValueError("'blocks' must contain at least one block. Got no blocks.")
    indptr = np.concatenate(lengths).cumsum(dtype=np.int64)
    # indptr and indices must have the same dtype
    if indptr[-1] > _INT32_MAX:
        _widen(folder / INDICES, indptr[-1])
    else:
        indptr = indptr.astype(np.int32)
    np.save(folder / INDPTR, indptr)
    described = {"format": FORMAT, "shape": [len(indptr) - 1, n_words], "dtype": dtype.name}
    (folder / DESCRIPTION).write_text(json.dumps(described) + "\n", encoding="utf-8")


class _Appended:
    """A NumPy file with one array, to which numbers are appended."""

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        """Create the file, with an empty array of a dtype."""
        self.dtype = dtype
        self.length = 0
        self._file: IO[bytes] = path.open("wb")
        self._write_header()  # NumPy reserves space in it for a larger length

    def _write_header(self) -> None:
        """Write the header of NumPy's format, which contains the length of the array."""
        described = npy.dtype_to_descr(self.dtype)
        header = {"descr": described, "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._file, header)

    def append(self, array: NDArray) -> None:
        """Append numbers to the array; only `close` writes the new length to the header."""
        self._file.write(np.ascontiguousarray(array, self.dtype).data)
        self.length += len(array)

    def close(self) -> None:
        """Write the length of the array to the header, and close the file."""
        with self._file:
            self._file.seek(0)
            self._write_header()


def _widen(path: Path, length: int) -> None:
    """Convert a file of int32 to int64, a part at a time."""
    narrow = np.load(path, mmap_mode="r")
    with closing(_Appended(path.with_suffix(".wide"), np.dtype(np.int64))) as wide:
        for first_entry in range(0, length, CHUNK):
            wide.append(narrow[first_entry : first_entry + CHUNK])
    del narrow  # Windows does not replace a file that is mapped
    path.with_suffix(".wide").replace(path)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder, which is moved to `path` at the end, or removed after an error."""
    if path.exists() or path.is_symlink():
        raise FileExistsError(
            f"The path {fspath(path)!r} already exists. Remove it, or write to another path."
        )
    # shortened, because the length of file names is limited
    partial = path.with_name(f".{path.name[:40]}.{uuid4().hex}.partial")
    try:
        partial.mkdir()
    except OSError as error:
        error.filename = fspath(path)  # the user's path instead of the temporary one
        raise
    try:
        yield partial
        for file in partial.iterdir():
            flush(file)  # to the disk, before the folder appears
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


# ----------------------------------------------------------------------------- reading


def _read_description(folder: Path) -> tuple[tuple[int, int], np.dtype]:
    """Read the shape and the dtype of a corpus from the description in its folder."""
    name = fspath(folder)
    try:
        text = (folder / DESCRIPTION).read_bytes()
    except (NotADirectoryError, FileNotFoundError) as error:
        raise FileNotFoundError(
            f"There is no corpus at {name!r}. A corpus is a folder that "
            f"annealvi.corpus.write_corpus has written, with a file {DESCRIPTION}."
        ) from error
    try:
        described = DESCRIBED.load(json.loads(text))
        n_documents, n_words = described["shape"]  # a ValueError if it has other numbers of sides
    except ValueError as error:
        raise ValueError(
            f"The file {DESCRIPTION} in {name!r} is not the description of a corpus that this "
            f"version can read: {error}"
        ) from error
    return (n_documents, n_words), np.dtype(described["dtype"])


def _mapped(folder: Path, file: str, dtypes: Sequence[np.dtype], length: int) -> NDArray:
    """Map a file of a corpus into memory, and check its length and that its dtype is allowed."""
    path = folder / file
    if not path.is_file():
        raise FileNotFoundError(f"The corpus in {fspath(folder)!r} has no file {file}.")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header can cause many kinds of errors
        raise ValueError(
            f"The file {fspath(path)!r} is not a NumPy file, or it is incomplete."
        ) from error
    if array.dtype not in dtypes or array.shape != (length,):
        raise ValueError(
            f"{fspath(path)!r} must contain {length} numbers of dtype "
            f"{' or '.join(dtype.name for dtype in dtypes)}. "
            f"Got shape {array.shape} and dtype {array.dtype}."
        )
    return np.asarray(array)  # an ordinary array instead of a memmap, over the same memory
