"""Word counts on disk, which are mapped into memory: for corpora that are larger than it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints

from annealvi.corpus.files import check_counts
from annealvi.matrices import check_csr, sound_csr

#: Version of the format, in the description.
FORMAT = 1
DESCRIPTION, DATA, INDICES, INDPTR = "corpus.json", "data.npy", "indices.npy", "indptr.npy"
DTYPES = ("float32", "float64")
#: Entries that are converted at a time.
CHUNK = 1 << 22
_INT32_MAX = np.iinfo(np.int32).max


def write(
    path: str | os.PathLike,
    blocks: Iterable[Any],
    *,
    dtype: Literal["float32", "float64"] = "float32",
) -> None:
    """Write a corpus to disk block by block, for :func:`open`.

    Only one block at a time is in memory, so the corpus may be larger than that.  It is a folder
    of the three arrays of a CSR matrix, as files of NumPy, and a description.  The folder appears
    at `path` when it is complete, or not at all.

    Parameters
    ----------
    path : path
        The folder.  It must not be there yet.
    blocks : iterable of {array-like, sparse matrix} of shape (n_documents, n_words)
        Word counts of some documents each, all with the same words.
        :mod:`annealvi.corpus.streams` reads files and texts in such blocks.
    dtype : {"float32", "float64"}, default="float32"
        Of the counts in the file.  float32 takes 8 bytes for each entry and holds whole numbers up
        to 16,777,216; float64 takes 12.

    Raises
    ------
    FileExistsError
        If there is something at `path`.
    OSError
        If it cannot be written.
    TypeError
        If `blocks` is no iterable.
    ValueError
        If a block is no matrix of counts or has another number of words than the first, if
        float32 does not have one of the counts, or if there is no block.

    See Also
    --------
    annealvi.corpus.open : Use the corpus.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from annealvi import TemperedLDA, corpus
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> X = load_arxiv_abstracts().data
    >>> with TemporaryDirectory() as folder:
    ...     corpus.write(Path(folder) / "arxiv", (X[i : i + 100] for i in range(0, 1000, 100)))
    ...     lda = TemperedLDA(5, random_state=0).fit(corpus.open(Path(folder) / "arxiv"))
    >>> lda.components_.shape == (5, X.shape[1])
    True
    """
    validate_parameter_constraints({"dtype": [StrOptions(set(DTYPES))]}, {"dtype": dtype}, "write")
    try:
        stream = iter(blocks)
    except TypeError as error:
        raise TypeError(
            f"'blocks' must be an iterable of matrices. Got {type(blocks).__name__}."
        ) from error
    with _appearing(Path(path)) as folder, _Writer(folder, np.dtype(dtype)) as writer:
        for number, block in enumerate(stream):
            writer.append(block, f"block {number}")
        writer.finish()


def open(path: str | os.PathLike) -> sparse.csr_matrix:
    """Return a corpus that :func:`write` has written, without reading it.

    The arrays of the matrix are views of the files, which are mapped into memory: what is used is
    read from the disk, and given up when memory is needed.  Methods that learn or predict go
    through the documents in blocks and take the matrix as any other; the bits of a fit are the
    same.  The arrays are read-only.  Whatever makes a new matrix, such as `X[:1000]` or `2 * X`,
    reads all that it needs.

    Parameters
    ----------
    path : path
        The folder.  Its files must not be changed while the matrix is used.

    Returns
    -------
    csr_matrix of shape (n_documents, n_words)
        In float32 or float64, as it was written.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or a file in it is missing.
    ValueError
        If the folder does not hold a corpus, or one of a later version.

    Notes
    -----
    The indices are int32 with fewer than 2^31 entries, and int64 otherwise.  What the arrays hold
    is checked by the methods that take the matrix, as they check any matrix.
    """
    folder = Path(path)
    shape, dtype = _described(folder)
    indptr = _mapped(folder, INDPTR, (np.int32, np.int64), shape[0] + 1)
    n_entries = max(0, int(indptr[-1]))
    X = sparse.csr_matrix(shape, dtype=dtype)
    X.indptr = indptr
    X.indices = _mapped(folder, INDICES, (indptr.dtype,), n_entries)
    X.data = _mapped(folder, DATA, (dtype,), n_entries)
    return X


# ----------------------------------------------------------------------------- writing


class _Writer:
    """Appends blocks to the files of a folder."""

    def __init__(self, folder: Path, dtype: np.dtype) -> None:
        self.folder, self.dtype = folder, dtype
        self.n_words: int | None = None
        self._lengths: list[NDArray] = []
        self._data = _Appended(folder / DATA, dtype)
        self._indices = _Appended(folder / INDICES, np.dtype(np.int32))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._data.close()
        self._indices.close()

    def append(self, block: Any, name: str) -> None:
        """Append some documents."""
        empty = sparse.issparse(block) and block.shape[0] == 0
        X = sound_csr(block, name) if empty else check_csr(block, name=name)
        if self.n_words is None:
            self.n_words = X.shape[1]
        if X.shape[1] != self.n_words:
            raise ValueError(
                f"All blocks must have the same number of words. The first one has "
                f"{self.n_words}, and {name} has {X.shape[1]}."
            )
        if self.n_words > _INT32_MAX:
            raise ValueError(
                f"A corpus on disk has at most {_INT32_MAX} words. {name} has {X.shape[1]}."
            )
        try:
            check_counts(X)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        with np.errstate(over="ignore", under="ignore"):
            data = X.data.astype(self.dtype, copy=False)
        wrong = data != X.data
        if wrong.any():
            raise ValueError(
                f"{name} has the count {X.data[wrong][0]!r}, which float32 does not have: write "
                "with dtype='float64'."
            )
        self._data.append(data)
        self._indices.append(X.indices.astype(np.int32, copy=False))
        self._lengths.append(np.diff(X.indptr))

    def finish(self) -> None:
        """Write what follows from all blocks."""
        if self.n_words is None:
            raise ValueError("'blocks' has no block, so the number of words is not known.")
        indptr = np.concatenate([[0], *self._lengths]).cumsum(dtype=np.int64)
        n_entries = int(indptr[-1])
        wide = n_entries > _INT32_MAX
        self._data.close()
        self._indices.close()
        if wide:
            _widen(self.folder / INDICES, n_entries)
        np.save(self.folder / INDPTR, indptr if wide else indptr.astype(np.int32))
        described = {
            "format": FORMAT,
            "shape": [len(indptr) - 1, self.n_words],
            "dtype": self.dtype.name,
        }
        (self.folder / DESCRIPTION).write_text(json.dumps(described) + "\n", encoding="utf-8")


class _Appended:
    """A file of NumPy with one array, to which numbers are appended."""

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self.dtype, self.length = dtype, 0
        self._file: IO[bytes] = path.open("wb")
        self._write_header()  # NumPy leaves room in it, for a longer array

    def _write_header(self) -> None:
        described = npy.dtype_to_descr(self.dtype)
        header = {"descr": described, "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._file, header)

    def append(self, array: NDArray) -> None:
        """Append the numbers of an array."""
        self._file.write(np.ascontiguousarray(array, self.dtype).data)
        self.length += len(array)

    def close(self) -> None:
        """Write the length; nothing if it was closed before."""
        if self._file.closed:
            return
        with self._file:
            self._file.seek(0)
            self._write_header()


def _widen(path: Path, length: int) -> None:
    """Make a file of int32 one of int64, a part at a time."""
    narrow = np.load(path, mmap_mode="r")
    wide = _Appended(path.with_suffix(".wide"), np.dtype(np.int64))
    for first in range(0, length, CHUNK):
        wide.append(narrow[first : first + CHUNK])
    wide.close()
    path.with_suffix(".wide").replace(path)


@contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, which is moved there at the end, or removed after an error."""
    if path.exists() or path.is_symlink():
        raise FileExistsError(
            f"There is already something at {os.fspath(path)!r}: remove it, or write to another "
            "path."
        )
    prefix = f".{path.name[:40]}."  # a name has a greatest length
    try:
        partial = Path(tempfile.mkdtemp(prefix=prefix, suffix=".partial", dir=path.parent))
    except OSError as error:
        error.filename = os.fspath(path)  # the folder that was asked for, not the one beside it
        raise
    try:
        yield partial
        for file in partial.iterdir():
            with file.open("rb+") as stream:
                os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


# ----------------------------------------------------------------------------- reading


def _described(folder: Path) -> tuple[tuple[int, int], np.dtype]:
    """The shape and the dtype of a corpus."""
    name = os.fspath(folder)
    try:
        described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    except (NotADirectoryError, FileNotFoundError) as error:
        raise FileNotFoundError(
            f"There is no corpus at {name!r}: a folder with {DESCRIPTION}, as "
            "annealvi.corpus.write makes it."
        ) from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{DESCRIPTION} in {name!r} is not the description of a corpus."
        ) from error
    version = described.get("format") if isinstance(described, dict) else None
    if type(version) is int and version > FORMAT:
        raise ValueError(
            f"The corpus in {name!r} has format {version}, of a later version of annealvi. "
            f"This one reads format {FORMAT}."
        )
    if version != FORMAT:
        raise ValueError(_no_description(name))
    shape, dtype = described.get("shape"), described.get("dtype")
    if not (
        isinstance(shape, list)
        and len(shape) == 2
        and all(type(n) is int and n >= 0 for n in shape)
        and shape[1] <= _INT32_MAX
        and dtype in DTYPES
    ):
        raise ValueError(
            f"{DESCRIPTION} in {name!r} must have the shape of a matrix and the dtype float32 or "
            f"float64. Got {shape!r} and {dtype!r}."
        )
    return (shape[0], shape[1]), np.dtype(dtype)


def _no_description(name: str) -> str:
    return f"{DESCRIPTION} in {name!r} is not the description of a corpus."


def _mapped(folder: Path, file: str, dtypes: Iterable[Any], length: int) -> NDArray:
    """The array in a file, mapped into memory."""
    path = folder / file
    if not path.is_file():
        raise FileNotFoundError(f"The corpus in {os.fspath(folder)!r} has no file {file}.")
    try:
        with path.open("rb") as stream:
            version = npy.read_magic(stream)
            read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            shape, _, dtype = read_header[version](stream)
            begin = stream.tell()
    except OSError:
        raise
    except Exception as error:  # a header is a text of Python, which may be wrong in many ways
        raise ValueError(f"{os.fspath(path)!r} is no file of NumPy, or not whole.") from error
    if dtype not in [np.dtype(allowed) for allowed in dtypes] or shape != (length,):
        allowed = " or ".join(np.dtype(allowed).name for allowed in dtypes)
        raise ValueError(
            f"{os.fspath(path)!r} must hold {length} numbers of dtype {allowed}. Got an array of "
            f"shape {shape} and dtype {dtype}."
        )
    if path.stat().st_size < begin + length * dtype.itemsize:
        raise ValueError(f"{os.fspath(path)!r} is no file of NumPy, or not whole.")
    return np.asarray(np.memmap(path, dtype, "r", begin, shape))
