"""Counts whose rows and columns have names: cells by genes or regions, as AnnData, .h5ad, Matrix
Market or a folder of 10x."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from gzip import GzipFile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import mmread
from sklearn.utils import Bunch

from annealvi._optional import import_optional
from annealvi.corpus.files import check_counts, naming, opened, read_lines
from annealvi.corpus.mapped import DESCRIPTION, open_folder, write
from annealvi.exceptions import BadParameter, warn_user
from annealvi.matrices import check_csr

#: What a folder of 10x has beside its matrix: the names of columns here, and of rows.
FEATURES, BARCODES = ("features.tsv", "genes.tsv", "peaks.bed"), ("barcodes.tsv",)
MATRIX = "matrix.mtx"
#: Names that tell what a row or a column is, and how many are looked at.
BARCODE, REGION, LOOKED_AT = re.compile("[ACGT]{10}"), re.compile(r"chr\w+[:_-]\d+"), 200
#: Entries that are read from a .h5ad file at a time.
ENTRIES = 1 << 20
#: The name for the counts that an AnnData keeps beside its X, with genes of their own.
RAW = "raw"


def open_corpus(path: str | os.PathLike, *, layer: str | None = None) -> sparse.csr_matrix:
    """Return a corpus on disk as a matrix, without reading it into memory.

    The arrays of the matrix are read-only views of files mapped into memory: parts are read from
    the disk when they are used, and dropped when memory is needed.  Methods that learn or predict
    accept the matrix like any other and read it in blocks; a fit is identical, bit for bit.  An
    operation that makes a new matrix, such as `X[:1000]` or `2 * X`, reads all that it needs.

    Parameters
    ----------
    path : path
        A folder written by :func:`write`, or anything that :func:`read_cells` reads.  Do not change
        its files while the matrix is used.
    layer : str, default=None
        The layer of a .h5ad file; see :func:`read_cells`.

    Returns
    -------
    csr_matrix of shape (n_documents, n_words)
        In float32 or float64, as written.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or a file in it is missing.
    ValueError
        If it does not contain a corpus, or one of a later version.

    Notes
    -----
    The indices are int32 with fewer than 2^31 entries, and int64 otherwise.  The contents of the
    arrays are checked by the methods that use the matrix, as for any matrix.
    """
    return read_cells(path, layer=layer).data if has_names(Path(path)) else open_folder(path)


def read_cells(source: Any, *, layer: str | None = None) -> Bunch:
    """Read counts with the names of their rows and columns: cells by genes or by regions.

    Parameters
    ----------
    source : AnnData or path
        An AnnData, in memory or backed, or

        - a .h5ad file.  It is read in blocks of rows and written to a temporary folder, which is
          mapped into memory and deleted with the matrix; see :func:`open_corpus`.  The folder needs
          8 bytes for each entry; the variable ``TMPDIR`` sets its place.  This needs anndata;
        - a .mtx file, which may be compressed by gzip.  Names are read from files in the same
          folder, if they exist: ``features.tsv``, ``genes.tsv`` or ``peaks.bed``, and
          ``barcodes.tsv``, with the same prefix that the matrix has before ``matrix.mtx``;
        - a folder of 10x with these files.

        A matrix whose rows are the features, as 10x writes it, is transposed.
    layer : str, default=None
        The layer of an AnnData or a .h5ad file that contains the counts, or ``"raw"`` for its
        `raw`.  None means X.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        With `data`, a CSR matrix of cells by features; `feature_names`, an ndarray of str or None;
        `document_names`, the same for the cells; and `columns`, a dict of the columns that describe
        the cells of an AnnData.  A number is added to repeated names of features.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a file is not valid, if there is no such layer, or if the counts are negative
        or not finite.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from annealvi.corpus import read_cells
    >>> with TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     entries = "%%MatrixMarket matrix coordinate integer general\\n3 2 2\\n1 1 4\\n3 2 5\\n"
    ...     _ = (folder / "matrix.mtx").write_text(entries)
    ...     _ = (folder / "genes.tsv").write_text("ENSG1\\tCD4\\nENSG2\\tCD8A\\nENSG3\\tNKG7\\n")
    ...     _ = (folder / "barcodes.tsv").write_text("AAAC-1\\nAAAG-1\\n")
    ...     cells = read_cells(folder)
    >>> cells.data.toarray(), cells.feature_names[0], cells.document_names[1]
    (array([[4., 0., 0.],
           [0., 0., 5.]]), 'CD4', 'AAAG-1')
    """
    if not is_named(source):
        raise BadParameter("source", "an AnnData or the path of a file or folder", type(source))
    if hasattr(source, "obs_names"):
        cells = _of_anndata(source, layer)
    elif _is_hdf5(Path(source)):
        cells = _of_h5ad(Path(source), layer)
    elif layer is not None:
        raise BadParameter("layer", "None unless 'source' is an AnnData", layer)
    else:
        cells = _of_mtx(Path(source))
    X, features, documents, columns = cells
    if features is not None and documents is not None:
        _check_side(features, documents)
    words = None if features is None else unique(features)
    changed = [] if words is None else words[words != np.array([*features], dtype=object)]
    if len(changed):
        warn_user(
            f"{len(changed)} names of features repeat an earlier one: a number is added to each, "
            f"as in {changed[0]!r}."
        )
    names = None if documents is None else np.array([*documents], dtype=object)
    return Bunch(data=X, feature_names=words, document_names=names, columns=columns)


def is_named(source: Any) -> bool:
    """Whether this may be read by :func:`read_cells`: an AnnData or a path, and no matrix."""
    return hasattr(source, "obs_names") or isinstance(source, str | os.PathLike)


def _is_hdf5(path: Path) -> bool:
    """Whether a file is one of HDF5, or called so."""
    if path.is_dir():
        return False
    with path.open("rb") as file:
        return path.suffix == ".h5ad" or file.read(4) == b"\x89HDF"


def has_names(path: Path) -> bool:
    """Whether a path is one of :func:`read_cells`: a .h5ad or .mtx file, or a folder of 10x."""
    if path.is_dir():
        return not (path / DESCRIPTION).exists() and _there(path / MATRIX) is not None
    return path.suffix == ".h5ad" or path.name.removesuffix(".gz").endswith(".mtx")


def unique(names: Iterable[str]) -> NDArray:
    """Names, with a number added to those that are there before, as AnnData does it."""
    names = [str(name) for name in names]
    taken, numbers, found = set(names), dict[str, int](), []
    for name in names:
        new = name
        while name in numbers and new in taken:
            new, numbers[name] = f"{name}-{numbers[name]}", numbers[name] + 1
        numbers.setdefault(name, 1)
        taken.add(new)
        found.append(new)
    return np.array(found, dtype=object)


def _check_side(features: Iterable[str], documents: Iterable[str]) -> None:
    """Warn if the names tell that rows and columns have changed places."""
    for names, pattern, what, hint in (
        (features, BARCODE, "columns", "barcodes of cells"),
        (documents, REGION, "rows", "regions of a genome"),
    ):
        some = [str(name) for name in list(names)[:LOOKED_AT]]
        if 2 * sum(bool(pattern.search(name)) for name in some) > len(some):
            warn_user(
                f"The names of the {what} look like {hint}: rows must be cells, and columns genes "
                "or regions. If they are not, pass the transpose, such as adata.T."
            )
            return


# ----------------------------------------------------------------------------- AnnData


def _of_anndata(adata: Any, layer: str | None) -> tuple[Any, ...]:
    """Counts, features, cells and columns of an AnnData; one on disk is read from there."""
    if getattr(adata, "isbacked", False):
        if not adata.is_view:
            return _of_h5ad(Path(adata.filename), layer)
        adata = adata.to_memory()
    place, features = adata, adata.var_names
    if layer == RAW and layer not in adata.layers:
        place = adata.raw
        features = getattr(place, "var_names", None)
    layered = layer is not None and place is adata
    X = adata.layers.get(layer) if layered else getattr(place, "X", None)
    if X is None:
        raise _no_layer(layer, adata.layers, adata.raw is not None)
    return check_counts(check_csr(X)), features, adata.obs_names, dict(adata.obs.items())


def _of_h5ad(path: Path, layer: str | None) -> tuple[Any, ...]:
    """The same of a .h5ad file."""
    h5py = import_optional("h5py", "Reading a .h5ad file", "anndata")
    io = import_optional("anndata.io", "Reading a .h5ad file", "h5py")
    with naming(path, "AnnData"), h5py.File(path) as file:
        layers = file.get("layers", {})
        is_raw = layer == RAW and layer not in layers
        place = "raw/X" if is_raw else "X" if layer is None else f"layers/{layer}"
        if place not in file or "obs" not in file:
            raise _no_layer(layer, layers, "raw" in file)
        obs, var = io.read_elem(file["obs"]), io.read_elem(file["raw/var" if is_raw else "var"])
        is_group = isinstance(file[place], h5py.Group)
        X = io.sparse_dataset(file[place]) if is_group else file[place]
        n_entries = file[place]["data"].shape[0] if is_group else X.size
        if is_group and X.format != "csr":
            warn_user(f"{os.fspath(path)!r} is stored by columns, so it is read as a whole.")
            X = X.to_memory().tocsr()
        if X.shape != (len(obs), len(var)):
            raise ValueError(
                f"it has {len(obs)} cells and {len(var)} features, but counts of shape {X.shape}."
            )
        return _mapped(_blocks(X, n_entries)), var.index, obs.index, dict(obs.items())


def _no_layer(layer: str | None, layers: Iterable[str], has_raw: bool) -> BadParameter:
    """An error that lists what there is."""
    there = sorted({*layers, *([RAW] if has_raw else ())})
    return BadParameter("layer", f"one of {there}" if there else "None (it has no layers)", layer)


def _blocks(X: Any, n_entries: int) -> Iterator[sparse.csr_matrix]:
    """Rows of a matrix on disk, with about ENTRIES at a time."""
    step = max(1, ENTRIES * X.shape[0] // max(1, n_entries))
    for first in range(0, max(1, X.shape[0]), step):
        block = sparse.csr_matrix(X[first : first + step])
        # float32 has all counts that are likely; of fractions it keeps seven digits
        fractions = block.dtype == np.float64 and (block.data != np.floor(block.data)).any()
        yield block.astype(np.float32) if fractions else block


def _mapped(blocks: Iterator[sparse.csr_matrix]) -> sparse.csr_matrix:
    """A matrix whose files are gone from their folder, and stay on the disk while it is used."""
    with TemporaryDirectory(prefix="annealvi-", ignore_cleanup_errors=True) as folder:
        write(Path(folder) / "cells", blocks)
        return open_folder(Path(folder) / "cells")


# ----------------------------------------------------------------------- Matrix Market


def _there(path: Path) -> Path | None:
    """A file, or the same compressed by gzip, if one is there."""
    packed = path.with_name(f"{path.name}.gz")
    return path if path.is_file() else packed if packed.is_file() else None


def _names_beside(path: Path, kinds: Iterable[str]) -> list[str] | None:
    """The names in one of some files beside a matrix."""
    start = path.name.removesuffix(".gz").removesuffix(MATRIX)
    start = "" if start.endswith(".mtx") else start
    file = next(filter(None, (_there(path.with_name(start + kind)) for kind in kinds)), None)
    if file is None:
        return None
    with opened(file, "names") as stream:
        rows = [line.split("\t") for line in read_lines(stream)]
    if ".bed" in file.suffixes:
        return [f"{row[0]}:{row[1]}-{row[2]}" for row in rows]
    return [row[min(1, len(row) - 1)] for row in rows]  # an identifier may be before the name


def _of_mtx(path: Path) -> tuple[Any, ...]:
    """Counts, features and cells of a file of Matrix Market, or of a folder that has one."""
    path = (_there(path / MATRIX) or path / MATRIX) if path.is_dir() else path
    with opened(path, "Matrix Market counts") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # SciPy 1.20 will return an array
        # SciPy ends the process where a file that Python has opened is damaged
        source = stream if isinstance(stream, GzipFile) else path
        X = check_counts(sparse.csr_matrix(mmread(source), dtype=np.float64))
    features, documents = _names_beside(path, FEATURES), _names_beside(path, BARCODES)
    shape = [None if names is None else len(names) for names in (documents, features)]
    as_it_is, transposed = (
        all(known in (None, n) for known, n in zip(shape, sides, strict=True))
        for sides in (X.shape, X.shape[::-1])
    )
    if not (as_it_is or transposed):
        raise ValueError(
            f"{os.fspath(path)!r} has {X.shape[0]} rows and {X.shape[1]} columns, but the files "
            f"beside it have {shape[0]} names of cells and {shape[1]} of features."
        )
    if transposed and shape != [None, None]:  # a square one too: 10x writes features as rows
        X = sparse.csr_matrix(X.T)
    return X, features, documents, {}
