"""Readers of matrices with named rows and columns, such as counts of genes in cells, from AnnData
objects, .h5ad files, Matrix Market files and folders in the format of the company 10x Genomics."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from scipy.io import mmread
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from annealvi._optional import import_optional
from annealvi.corpus.files import check_counts, naming, opened, read_lines
from annealvi.corpus.mapped import DESCRIPTION, open_folder, write_corpus
from annealvi.exceptions import BadParameter, warn_user
from annealvi.matrices import check_csr

#: Files of a folder of 10x Genomics or of bustools: the names of features, and the names of cells.
FEATURES = ("features.tsv", "genes.tsv", "peaks.bed", "cells_x_genes.genes.txt")
BARCODES = ("barcodes.tsv", "cells_x_genes.barcodes.txt")
MATRIX = "matrix.mtx"
#: Patterns of the names of cells and of genome regions, and the number of names that are checked.
BARCODE = re.compile("[ACGT]{10}")
REGION = re.compile(r"chr\w+[:_-]\d+")
LOOKED_AT = 200
#: The endings of HDF5 files: of AnnData and of Cell Ranger.
HDF5 = (".h5ad", ".h5")
#: The kind of features that is read if there are several, and columns of an AnnData with kinds.
GENES = "Gene Expression"
KINDS = ("feature_types", "feature_type", "modality")
#: The number of entries that are read from a .h5ad file at a time.
ENTRIES = 1 << 20
#: The name of the counts in the attribute `raw` of an AnnData, which can have other genes than X.
RAW = "raw"


def open_corpus(path: str | PathLike, *, layer: str | None = None) -> csr_matrix:
    """Return a corpus on disk as a matrix, without reading it into memory.

    The arrays of the matrix are read-only views of files that are mapped into memory.  Parts are
    read from the disk when they are used, and removed from memory when memory is needed.  Methods
    such as `fit` and `transform` accept the matrix and read it in blocks, with bit for bit the same
    results as for a matrix in memory.  An operation that makes a new matrix, such as `X[:1000]` or
    `2 * X`, reads all entries that it needs.

    Parameters
    ----------
    path : path
        A folder written by :func:`write_corpus`, or a file or folder that :func:`read_cells` can
        read.  Do not change the files while the matrix is used.
    layer : str, default=None
        The layer of a .h5ad file; see :func:`read_cells`.

    Returns
    -------
    csr_matrix of shape (n_documents, n_words)
        The counts, in the dtype in which they were written, float32 or float64.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist, or if a file in it is missing.
    ValueError
        If the folder does not contain a corpus, or if a later version of annealvi wrote it.

    Notes
    -----
    The indices are int32 if there are fewer than 2^31 entries, and int64 otherwise.  The contents
    of the arrays are checked by the methods that use the matrix.
    """
    return read_cells(path, layer=layer).data if has_names(Path(path)) else open_folder(path)


def read_cells(source: Any, *, layer: str | None = None) -> Bunch:
    """Read counts of genes or of genome regions in cells, and the names of the rows and columns.

    Parameters
    ----------
    source : AnnData or path
        An AnnData, in memory or backed by a file, or

        - a .h5ad file.  The file is read in blocks of rows and written to a temporary folder, which
          is mapped into memory (see :func:`open_corpus`) and deleted when the matrix is no longer
          used.  The folder needs 8 bytes for each entry.  The environment variable ``TMPDIR`` sets
          where the folder is created.  Reading a .h5ad file requires anndata;
        - a .mtx file, which may be compressed by gzip.  Names are read from files in the same
          folder, if they exist: ``features.tsv``, ``genes.tsv`` or ``peaks.bed``, and
          ``barcodes.tsv``.  If the name of the matrix has a prefix before ``matrix.mtx``, these
          files must have the same prefix;
        - a folder of 10x Genomics with these files, or with one .mtx file of another name, such as
          ``cells_x_genes.mtx`` of bustools;
        - a .h5 file of Cell Ranger, such as ``filtered_feature_bc_matrix.h5``.  Reading it requires
          h5py.

        A .mtx matrix with features as rows, the format of 10x Genomics, is transposed.  If a file
        of 10x Genomics or Cell Ranger has features of several kinds, such as genes, peaks and
        antibodies, only genes are read.
    layer : str, default=None
        Which part of an AnnData or a .h5ad file contains the counts: the name of a layer, ``"raw"``
        for the attribute `raw`, or None for the attribute `X`.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are `data`, a CSR matrix of cells by features; `feature_names`, an ndarray of
        str or None; `document_names`, the names of the cells; and `columns`, a dict of the columns
        that describe the cells of an AnnData.  A number is appended to repeated names of features.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a file is not valid, if the layer does not exist, or if counts are negative or not
        finite.

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
        cells = _read_anndata(source, layer)
    elif _is_hdf5(Path(source)):
        cells = _read_h5ad(Path(source), layer)
    elif layer is not None:
        raise BadParameter("layer", "None unless 'source' is an AnnData", layer)
    else:
        cells = _read_mtx(Path(source))
    X, features, documents, columns = cells
    words = None
    if features is not None:
        if documents is not None:
            _check_side(features, documents)
        words = unique(features)
        changed = words[words != np.array([*features], dtype=object)]
        if len(changed):
            warn_user(
                f"A number was added to {len(changed)} repeated feature names, such as "
                f"{changed[0]!r}."
            )
    # of dtype object, like the names of features
    names = None if documents is None else np.array([*documents], dtype=object)
    return Bunch(data=X, feature_names=words, document_names=names, columns=columns)


def is_named(source: Any) -> bool:
    """Whether `read_cells` accepts an object: an AnnData or a path, but not a matrix."""
    return hasattr(source, "obs_names") or isinstance(source, str | PathLike)


def _is_hdf5(path: Path) -> bool:
    """Whether a file is an HDF5 file, or has the name of one."""
    if path.is_dir():
        return False
    with path.open("rb") as file:
        return path.suffix in HDF5 or file.read(4) == b"\x89HDF"  # with which such files begin


def has_names(path: Path) -> bool:
    """Whether `read_cells` can read a path: a .h5ad or .mtx file, or a folder of 10x Genomics."""
    if path.is_dir():
        return not (path / DESCRIPTION).exists() and bool(_matrices(path))
    return path.suffix in HDF5 or path.name.removesuffix(".gz").endswith(".mtx")


def unique(names: Iterable[str]) -> NDArray:
    """Return names with a number added to repeated names, in the same way as AnnData."""
    names = [str(name) for name in names]
    taken = set(names)
    numbers = dict[str, int]()  # the next number to add to each name
    distinct = []
    for name in names:
        new = name
        while name in numbers and new in taken:  # the first occurrence keeps the name
            new = f"{name}-{numbers[name]}"
            numbers[name] += 1
        numbers.setdefault(name, 1)
        taken.add(new)
        distinct.append(new)
    return np.array(distinct, dtype=object)


def _check_side(features: Iterable[str], documents: Iterable[str]) -> None:
    """Warn if the names suggest that the matrix is transposed."""
    for names, pattern, what, hint in (
        (features, BARCODE, "columns", "barcodes of cells"),
        (documents, REGION, "rows", "regions of a genome"),
    ):
        first_names = [str(name) for name in list(names)[:LOOKED_AT]]
        # if most of them match the pattern
        if 2 * len(list(filter(pattern.search, first_names))) > len(first_names):
            warn_user(
                f"The names of the {what} look like {hint}. Rows must be cells, and columns must "
                "be genes or regions. If they are not, pass the transpose, for example adata.T."
            )
            return


# ----------------------------------------------------------------------------- AnnData


def _read_anndata(adata: Any, layer: str | None) -> tuple[Any, ...]:
    """Return counts, features, cells and columns of an AnnData, which can be on disk."""
    if getattr(adata, "isbacked", False):
        if not adata.is_view:  # a view has only some of the rows or columns of the file
            return _read_h5ad(Path(adata.filename), layer)
        adata = adata.to_memory()
    is_raw = layer == RAW and layer not in adata.layers
    holder = adata.raw if is_raw else adata  # None if there is no attribute `raw`
    features = getattr(holder, "var_names", None)
    X = getattr(holder, "X", None) if is_raw or layer is None else adata.layers.get(layer)
    if X is None:
        raise _no_layer(layer, adata.layers, adata.raw is not None)
    _check_kinds(adata.var)
    return check_counts(check_csr(X)), features, adata.obs_names, dict(adata.obs.items())


def _read_h5ad(path: Path, layer: str | None) -> tuple[Any, ...]:
    """Return counts, features, cells and columns of a .h5ad file, or of a file of Cell Ranger."""
    h5py = import_optional("h5py", f"Reading a {path.suffix} file")
    with naming(path, "AnnData"), h5py.File(path) as file:
        # as in files of Cell Ranger, whose groups are called "matrix" or by the genome
        genomes = [
            name
            for name, group in file.items()
            if isinstance(group, h5py.Group) and {"barcodes", "indptr"} <= group.keys()
        ]
        if len(genomes) > 1:
            warn_user(
                f"{fspath(path)!r} has counts of several genomes: {', '.join(genomes)}. Only "
                f"{genomes[0]} is read. To fit another genome, pass an AnnData with its counts, "
                f"such as scanpy.read_10x_h5(path, genome={genomes[1]!r})."
            )
        if genomes:
            return _read_cell_ranger(file[genomes[0]], layer)
        if "obs" not in file:
            raise ValueError("it is no AnnData, and was not written by Cell Ranger.")
        io = import_optional("anndata.io", "Reading a .h5ad file", "h5py")
        if isinstance(file["obs"], h5py.Dataset):  # by anndata before 0.7
            return _read_anndata(_read_old_anndata(path), layer)
        layers = file.get("layers", {})
        is_raw = layer == RAW and layer not in layers
        # the path of the counts in the file
        place = "raw/X" if is_raw else "X" if layer is None else f"layers/{layer}"
        if place not in file:
            raise _no_layer(layer, layers, "raw" in file)
        obs = io.read_elem(file["obs"])
        var = io.read_elem(file["raw/var" if is_raw else "var"])
        _check_kinds(var)
        stored = file[place]
        # a sparse matrix is a group of arrays, a dense one an array
        is_group = isinstance(stored, h5py.Group)
        X = io.sparse_dataset(stored) if is_group else stored
        n_entries = stored["data"].shape[0] if is_group else X.size
        if is_group and X.format != "csr":
            warn_user(f"{fspath(path)!r} stores a CSC matrix, so all of it is read into memory.")
            X = X.to_memory().tocsr()
        if X.shape != (len(obs), len(var)):
            raise ValueError(
                f"counts of shape {X.shape} do not match {len(obs)} cells and {len(var)} features."
            )
        return _mapped(_blocks(X, n_entries)), var.index, obs.index, dict(obs.items())


def _read_old_anndata(path: Path) -> Any:
    """Read a .h5ad file that anndata before 0.7 wrote into memory."""
    anndata = import_optional("anndata", "Reading a .h5ad file")
    with catch_warnings():
        simplefilter("ignore")  # about the old format
        try:
            return anndata.read_h5ad(path)
        except Exception as error:  # of h5py, NumPy or pandas
            raise ValueError(
                "it was written by an old anndata, before 0.7. Read it with an anndata that can, "
                f"write it again, and pass the new file. Got {type(error).__name__}: {error}"
            ) from error


def _read_cell_ranger(group: Any, layer: str | None) -> tuple[Any, ...]:
    """Return counts, features and cells of a group of an .h5 file that Cell Ranger has written."""
    if layer is not None:
        raise BadParameter("layer", "None for a file of Cell Ranger", layer)
    # older files have only the names of genes
    features = group.get("features", {"name": group.get("gene_names")})
    place = "gene_names" if "gene_names" in group else "features/name"
    missing = [name for name in ("data", "indices", "shape", place) if name not in group]
    if missing:
        raise ValueError(f"its group {group.name!r} lacks {', '.join(missing)}.")
    # features are rows and compressed by column, so that the same arrays have cells as rows
    arrays = tuple(group[name][:] for name in ("data", "indices", "indptr"))
    X = check_csr(csr_matrix(arrays, shape=tuple(group["shape"][:])[::-1]))
    kinds, genomes_of_features = (
        features[name].asstr()[:] if name in features else () for name in ("feature_type", "genome")
    )
    _check_genomes(dict.fromkeys(filter(None, genomes_of_features)))  # some features have none
    X, names = _of_one_kind(check_counts(X), features["name"].asstr()[:], kinds)
    return X, names, group["barcodes"].asstr()[:], {}


def _check_genomes(genomes: Collection[str]) -> None:
    """Warn if genes are of several genomes."""
    if len(genomes) > 1:
        warn_user(
            f"The genes are of several genomes: {', '.join(genomes)}. All of them are read. To fit "
            "one genome, pass an AnnData with its genes."
        )


def _check_kinds(var: Any) -> None:
    """Warn if the columns of an AnnData are features of several kinds."""
    for name in KINDS:
        # the different values of the column, in their order
        kinds = list(map(str, dict.fromkeys(var.get(name, ()))))
        if len(kinds) > 1:
            warn_user(
                f"The features are of several kinds: {', '.join(kinds)}. To fit one of them, pass "
                f"adata[:, adata.var[{name!r}] == {kinds[0]!r}]."
            )
            return


def _of_one_kind(X: csr_matrix, features: Any, kinds: Iterable[str]) -> tuple[Any, Any]:
    """Return the genes if there are features of several kinds, and say what is left out."""
    n_features = Counter(kinds)
    if len(n_features) < 2:
        return X, features
    kept = GENES if GENES in n_features else max(n_features, key=n_features.__getitem__)
    warn_user(
        "The features are of several kinds: "
        f"{', '.join(f'{kind} ({n:,})' for kind, n in n_features.items())}. Only {kept} is read. "
        "To fit another kind, pass an AnnData with its columns."
    )
    columns = np.flatnonzero([kind == kept for kind in kinds])
    return X[:, columns], [features[column] for column in columns]


def _no_layer(layer: str | None, layers: Iterable[str], has_raw: bool) -> ValueError:
    """Return the error for a layer or an X that an AnnData lacks, which names its layers."""
    names = sorted({*layers, *([RAW] if has_raw else ())})
    if not names and layer is None:
        return ValueError(
            "There are no counts: X, the layers and raw are missing. Of a MuData or a .h5mu file, "
            "pass one modality, such as mdata['rna']."
        )
    must_be = f"one of {names}" if names else "None, because there are no layers"
    reason = ", because there is no X" if layer is None else ""
    return BadParameter("layer", must_be + reason, layer)


def _blocks(X: Any, n_entries: int) -> Iterator[csr_matrix]:
    """Yield rows of a matrix on disk, with about ENTRIES entries at a time."""
    step = max(1, ENTRIES * X.shape[0] // max(1, n_entries))
    for first_row in range(0, max(1, X.shape[0]), step):  # at least one block, even if it is empty
        block = csr_matrix(X[first_row : first_row + step])
        # float32 represents all likely counts exactly, and fractions with seven digits
        fractions = block.dtype == np.float64 and (block.data != np.floor(block.data)).any()
        yield block.astype(np.float32) if fractions else block


def _mapped(blocks: Iterator[csr_matrix]) -> csr_matrix:
    """Write a matrix to deleted files, which remain on the disk as long as the matrix is used.

    Windows deletes no file that is mapped, so there the matrix is read into memory.
    """
    with TemporaryDirectory(prefix="annealvi-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "cells"
        write_corpus(path, blocks)
        return open_folder(path).copy() if sys.platform == "win32" else open_folder(path)


# ----------------------------------------------------------------------- Matrix Market


def _existing(path: Path) -> Path | None:
    """Return the path of a file, or of its version compressed by gzip, if one of them exists."""
    packed = path.with_name(f"{path.name}.gz")  # as 10x Genomics compresses files
    return next(filter(Path.is_file, (path, packed)), None)


def _matrices(path: Path) -> list[Path]:
    """Return the Matrix Market files of a folder: matrix.mtx, or all those of other names."""
    matrix = _existing(path / MATRIX)
    return sorted(path.glob("[!.]*.mtx*")) if matrix is None else [matrix]


def _rows_beside(path: Path, names: Iterable[str]) -> list[list[str]] | None:
    """Read the rows of the first file of these names that exists in the folder of a matrix."""
    # what stands before "matrix.mtx", or nothing if the matrix has another name
    start = path.name.removesuffix(".gz").removesuffix(MATRIX)
    start = "" if start.endswith(".mtx") else start
    file = next(filter(None, (_existing(path.with_name(start + name)) for name in names)), None)
    if file is None:
        return None
    with opened(file, "names") as stream:
        # R puts names in quotation marks
        rows = [[cell.strip('"') for cell in line.split("\t")] for line in read_lines(stream)]
        if ".bed" in file.suffixes:  # regions: chromosome, start and end
            return [[f"{row[0]}:{row[1]}-{row[2]}"] for row in rows]
    return rows


def _names_in(rows: list[list[str]] | None) -> list[str] | None:
    """Return the names in rows; the first of several columns contains identifiers."""
    return None if rows is None else [row[min(1, len(row) - 1)] for row in rows]


class _SafeText:
    """A stream of text in which SciPy's reader finds the end of each line.

    The reader crashes the process if something follows the last number of a file that does not end
    with a line feed, and at a null character.  It skips blank lines.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        """Read from a stream that is open."""
        self._stream = stream
        self._end = b"\n"

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; a line feed follows the last of them."""
        text = self._stream.read(size).replace(b"\0", b"?")
        if not text:
            text = self._end
            self._end = b""
        return text


def _read_mtx(path: Path) -> tuple[Any, ...]:
    """Return counts, features and cells of a Matrix Market file, or of a folder that has one."""
    if path.is_dir():
        matrices = _matrices(path)
        if len(matrices) > 1:
            raise ValueError(
                f"The folder {fspath(path)!r} has several matrices. Pass the path of one of them: "
                f"{', '.join(matrix.name for matrix in matrices)}."
            )
        # if the file does not exist, `opened` raises an error with its name
        path = next(iter(matrices), path / MATRIX)
    with opened(path, "Matrix Market counts") as stream, catch_warnings():
        if stream.read(1) != b"%":
            raise ValueError(
                "it does not begin with %%MatrixMarket. Unpack .h5ad and .h5 files, which cannot "
                "be read compressed. Write other formats, such as .rds, as .h5ad or .mtx."
            )
        stream.seek(0)
        simplefilter("ignore", DeprecationWarning)  # SciPy 1.20 will return an array
        X = check_counts(csr_matrix(mmread(_SafeText(stream)), dtype=np.float64))
    rows = _rows_beside(path, FEATURES)
    features = _names_in(rows)
    documents = _names_in(_rows_beside(path, BARCODES))
    # the numbers of names, with which the sides of the matrix or of its transpose must agree
    shape = [None if names is None else len(names) for names in (documents, features)]
    as_it_is, transposed = (
        all(known in (None, n) for known, n in zip(shape, sides, strict=True))
        for sides in (X.shape, X.shape[::-1])
    )
    if not (as_it_is or transposed):
        raise ValueError(
            f"The matrix in {fspath(path)!r} has {X.shape[0]} rows and {X.shape[1]} columns, "
            f"but its folder has names of {shape[0]} cells and {shape[1]} features."
        )
    if transposed and shape != [None, None]:  # also if it is square: 10x writes features as rows
        X = csr_matrix(X.T)
    # of two species, names begin with the genome, such as GRCh38_CD4
    genomes = dict.fromkeys(name.partition("_")[0] for name in features or ())
    if len(genomes) == 2 < X.shape[1]:
        _check_genomes(genomes)
    # rows can contain the identifier, the name and the kind of each feature
    kinds = [row[2] if len(row) > 2 else "unknown" for row in rows or ()]
    X, features = _of_one_kind(X, features, kinds)
    return X, features, documents, {}
