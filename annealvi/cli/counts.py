"""Reads counts of words: .npz, Matrix Market, UCI's bag of words, and LDA-C."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import mmread

from annealvi._archive import read_archive
from annealvi.cli.columns import Corpus, Roles
from annealvi.cli.tables import kind_of, read_words
from annealvi.corpus import read_lda_c, read_uci
from annealvi.matrices import sound_csr

#: The arrays of a CSR matrix in an .npz file, annealvi's or SciPy's.
_MATRIX = ("data", "indices", "indptr", "shape")
#: Names that the words may have there.
_WORDS = ("vocab", "feature_names", "vocabulary", "words")
#: Files that may lie beside counts and have their words.
_BESIDE = ("vocab.txt", "vocabulary.txt")
_UCI, _LDA_C = "uci", "lda-c"


def format_of(path: Path) -> str | None:
    """The format of counts that the name of a file tells, or None."""
    name, kind = path.name.lower(), kind_of(path)
    if name.startswith("docword."):
        return _UCI
    return {".npz": "npz", ".mtx": "mtx", ".ldac": _LDA_C, ".lda-c": _LDA_C}.get(kind)


def read_counts(
    path: Path, format: str, roles: Roles, vocabulary: str | None, encoding: str
) -> Corpus:
    """Read counts of words."""
    origin, words = repr(str(path)), None
    arrays: dict[str, NDArray] = {}
    if format == "npz":
        X, words, arrays = _npz(path)
    elif format == "mtx":
        X = _mtx(path)
    else:
        X = (read_uci if format == _UCI else read_lda_c)(path).data
    if not (np.all(np.isfinite(X.data)) and np.all(X.data >= 0)):
        raise ValueError(f"{origin} holds no counts: some are negative, NaN or infinite.")
    words = _words(path, X.shape[1], words, vocabulary, encoding)
    if words is not None and len(words) > X.shape[1]:  # the last words are in no document
        X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(words)))
    columns = {name: array for name, array in arrays.items() if array.shape == (X.shape[0],)}
    chosen = roles.among(columns, origin, texts=False)
    if roles.text:
        raise ValueError(f"--text: {origin} holds counts of words and no texts.")

    def column(name: str | None) -> list | None:
        return None if name is None else [str(value) for value in columns[name].tolist()]

    return Corpus(
        origin,
        counts=X,
        words=words,
        titles=column(chosen.title),
        times=None if chosen.time is None else columns[chosen.time].tolist(),
        groups=column(chosen.group),
        names=column(chosen.name),
    )


def _npz(path: Path) -> tuple[sparse.csr_matrix, Any, dict[str, NDArray]]:
    """The counts, the words or None, and further arrays."""
    arrays = read_archive(path, "counts of words")
    missing = sorted(set(_MATRIX) - set(arrays))
    kind = arrays.pop("format", np.array("csr")).item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if missing or kind not in ("csr", "csc"):
        raise ValueError(
            f"{str(path)!r} holds no counts of words: it must hold a sparse matrix, as "
            "scipy.sparse.save_npz writes it in the formats csr and csc. "
            + (f"It has no {missing}." if missing else f"Got {kind!r}.")
        )
    parts = tuple(arrays.pop(name) for name in _MATRIX[:3])
    sizes = arrays.pop("shape")
    try:
        shape = tuple(int(n) for n in sizes)
        made = (sparse.csr_matrix if kind == "csr" else sparse.csc_matrix)(parts, shape=shape)
        X = sound_csr(sparse.csr_matrix(made), str(path)).astype(np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{str(path)!r} holds no counts of words. ({error})") from error
    words = next((arrays.pop(name) for name in _WORDS if name in arrays), None)
    return X, words, arrays


def _mtx(path: Path) -> sparse.csr_matrix:
    try:
        return sparse.csr_matrix(mmread(str(path)), dtype=np.float64)
    except gzip.BadGzipFile:
        raise ValueError(f"{str(path)!r} is no .gz file, or it is damaged.") from None
    except (ValueError, TypeError, OverflowError, IndexError, EOFError, zlib.error) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{str(path)!r} cannot be read as Matrix Market counts ({first}).") from (
            error
        )


def _words(path: Path, n_words: int, found: Any, vocabulary: str | None, encoding: str) -> Any:
    """The words of the counts, or None."""
    file: Path | None = None
    if vocabulary is not None:
        file = Path(vocabulary)
    elif found is None:
        beside = [path.name.replace("docword.", "vocab.", 1).removesuffix(".gz"), *_BESIDE]
        files = (path.with_name(name) for name in beside if name != path.name)
        file = next((candidate for candidate in files if candidate.is_file()), None)
    if file is not None:
        found = read_words(file, encoding)
    if found is None:
        return None
    words = np.array([str(word) for word in found], dtype=object)
    source = str(path) if file is None else str(file)
    short = len(words) < n_words or (file is None and len(words) != n_words)
    if words.ndim != 1 or short:
        raise ValueError(
            f"{source!r} has {len(words):,} words for the {n_words:,} columns of {str(path)!r}."
        )
    distinct, first = np.unique(words, return_index=True)
    if len(distinct) < len(words):
        twice = words[np.setdiff1d(np.arange(len(words)), first)[0]]
        raise ValueError(f"{source!r} has the word {twice!r} twice.")
    return words
