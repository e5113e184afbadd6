"""Reads what a command is given: a folder or a file of texts, or a file of counts."""

from __future__ import annotations

import argparse
import codecs
import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import mmread

from annealvi._archive import read_archive
from annealvi._optional import import_optional
from annealvi.corpus import read_lda_c, read_uci
from annealvi.matrices import sound_csr

#: Columns that are taken if the command line names none.
TEXT, TITLE = "text", "title"
#: Most names that a message lists.
_LISTED = 40


@dataclass(frozen=True)
class Roles:
    """The columns that the command line names."""

    #: Columns of the texts, which are joined; by default ``text``, or the only column.
    text: tuple[str, ...] = ()
    #: By default a column ``title`` is taken as the titles.
    title: str | None = None
    time: str | None = None
    group: str | None = None
    name: str | None = None

    def among(self, columns: Iterable[str], origin: str, *, texts: bool = True) -> Roles:
        """Return the columns of a file; ValueError, which lists them all, if one is not there."""
        known = list(columns)
        options = {"--title": self.title, "--time": self.time, "--class": self.group}
        options |= {"--name": self.name}
        for option, column in [*(("--text", column) for column in self.text), *options.items()]:
            if column is not None and column not in known:
                raise ValueError(f"{origin} has no column {column!r} for {option}. {_list(known)}")
        text = self.text
        if texts and not text:
            if TEXT not in known and len(known) != 1:
                raise ValueError(
                    f"Name the column of the texts by --text: {origin} has no column {TEXT!r}. "
                    f"{_list(known)}"
                )
            text = (TEXT,) if TEXT in known else (known[0],)
        title = self.title
        if title is None and TITLE in known:
            title = TITLE
        return Roles(text if texts else (), title, self.time, self.group, self.name)

    def names(self) -> list[str]:
        """The columns, each once."""
        named = [*self.text, self.title, self.time, self.group, self.name]
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass
class Corpus:
    """Documents of a file or a folder: texts, or counts of words."""

    #: Where they are from, for messages.
    origin: str
    texts: list[str] | None = None
    counts: Any = None
    #: The words of the counts, where they are known.
    words: Any = None
    #: One for each document; None where the command line asks for none.
    titles: list[str] | None = None
    times: list | None = None
    groups: list | None = None
    names: list[str] | None = None
    #: What a reader should know of the reading.
    note: str = ""

    def __len__(self) -> int:
        return self.counts.shape[0] if self.texts is None else len(self.texts)


def corpus_of(table: dict[str, list], roles: Roles, origin: str) -> Corpus:
    """Return the documents of columns that were read."""
    texts, note = None, ""
    if roles.text:
        columns = [["" if value is None else value for value in table[name]] for name in roles.text]
        texts = ["\n".join(filter(None, parts)) for parts in zip(*columns, strict=True)]
        n_empty = sum(not text.strip() for text in texts)
        if texts and n_empty == len(texts):
            columns_read = " and ".join(map(repr, roles.text))
            raise ValueError(f"{origin} has no text in its column {columns_read}.")
        if n_empty:
            note = f"{n_empty:,} of them have no text"
    titles, groups, names = (
        None if name is None else [None if value is None else str(value) for value in table[name]]
        for name in (roles.title, roles.group, roles.name)
    )
    return Corpus(
        origin,
        texts,
        titles=None if titles is None else [title or "" for title in titles],
        times=None if roles.time is None else [_time(value) for value in table[roles.time]],
        groups=None if groups is None else [group or None for group in groups],
        names=None if names is None else [name or "" for name in names],
        note=note,
    )


def _time(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _list(names: list[str]) -> str:
    """The columns, for a message."""
    if not names:
        return "It has none."
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"Its columns are: {', '.join(names[:_LISTED])}{more}."


#: Rows of a .jsonl file that are looked at to know its columns.
_FIRST_ROWS = 1000
#: What may separate the columns of a .csv file.
_SEPARATORS = ",;\t|"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

#: Reads the columns that a function chooses, given the names of all.
Reader = Callable[[Path, Callable[[list[str]], Roles], str], dict[str, list]]


def kind_of(path: Path) -> str:
    """The ending of a name without ``.gz``, in lower case."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_folder(path: Path, choose: Any, encoding: str, pattern: str = "*") -> dict[str, list]:
    """Read the files of a folder and of the folders in it, a document each.

    The columns are ``text``, ``name`` (the path within the folder) and ``folder``.
    """
    files = sorted(
        (
            file
            for file in path.rglob(pattern)
            if file.is_file()
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
        ),
        key=lambda file: file.relative_to(path).as_posix(),
    )
    if not files:
        named = "" if pattern == "*" else f" named {pattern}"
        raise ValueError(f"{str(path)!r} has no documents: there are no files{named} in it.")
    choose(["text", "name", "folder"])
    texts = []
    for file in files:
        with _opened(file, encoding, advice=", or leave it out by --files '*.txt'") as stream:
            texts.append(stream.read())
        if "\0" in texts[-1]:
            raise ValueError(
                f"{str(file)!r} is no text: it has zero bytes. Choose files by their names, for "
                "example --files '*.txt'."
            )
    within = [file.relative_to(path) for file in files]
    return {
        "text": texts,
        "name": [file.as_posix() for file in within],
        "folder": [file.parent.as_posix() for file in within],
    }


def read_lines(path: Path, choose: Any, encoding: str) -> dict[str, list]:
    """Read a file with a document on each line; empty lines are left out."""
    choose(["text"])
    with _opened(path, encoding) as stream:
        return {"text": [line.rstrip("\n") for line in stream if line.strip()]}


def read_csv(path: Path, choose: Any, encoding: str) -> dict[str, list]:
    """Read columns of a .csv or .tsv file, whose first line has their names."""
    limit = csv.field_size_limit(sys.maxsize)  # texts may be long
    try:
        with _opened(path, encoding, newline="") as stream:
            first = stream.readline()
            if not first.strip():
                raise ValueError(f"{str(path)!r} is empty: its first line must name the columns.")
            rows = csv.reader(chain([first], stream), delimiter=_separator(path, first))
            try:
                return _rows(path, rows, choose)
            except csv.Error as error:
                raise ValueError(f"{str(path)!r}, line {rows.line_num}: {error}.") from error
    finally:
        csv.field_size_limit(limit)


def _rows(path: Path, rows: Any, choose: Any) -> dict[str, list]:
    names = [name.strip() for name in next(rows)]
    wanted = choose(names).names()
    columns = [names.index(name) for name in wanted]
    found: list[list] = [[] for _ in wanted]
    for row in rows:
        if not row:
            continue  # an empty line
        if len(row) != len(names):
            raise ValueError(
                f"{str(path)!r}, line {rows.line_num}: {len(row)} values for {len(names)} columns."
            )
        for values, column in zip(found, columns, strict=True):
            values.append(row[column])
    return dict(zip(wanted, found, strict=True))


def _separator(path: Path, first: str) -> str:
    if kind_of(path) == ".tsv":
        return "\t"
    return max(_SEPARATORS, key=first.count)  # the comma if there is none


def read_jsonl(path: Path, choose: Any, encoding: str) -> dict[str, list]:
    """Read columns of a .jsonl file, which has a JSON object on each line."""
    with _opened(path, encoding) as stream:
        rows = _objects(path, stream)
        first = list(islice(rows, _FIRST_ROWS))
        if not first:
            raise ValueError(f"{str(path)!r} has no documents.")
        roles = choose(list(dict.fromkeys(name for _, row in first for name in row)))
        wanted = roles.names()
        found: dict[str, list] = {name: [] for name in wanted}
        for number, row in chain(first, rows):
            for name in wanted:
                value = row.get(name)
                if name in roles.text and not isinstance(value, str | None):
                    raise ValueError(
                        f"{str(path)!r}, line {number}: {name!r} must be a text. Got {value!r:.60}."
                    )
                if isinstance(value, list | dict):
                    raise ValueError(
                        f"{str(path)!r}, line {number}: {name!r} must be a text or a number. "
                        f"Got {value!r:.60}."
                    )
                found[name].append(value)
    return found


def _objects(path: Path, stream: Iterable[str]) -> Iterator[tuple[int, dict]]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{str(path)!r}, line {number}: no JSON ({error}).") from error
        if not isinstance(row, dict):
            raise ValueError(
                f"{str(path)!r}, line {number}: each line must be a JSON object, such as "
                f'{{"text": "..."}}. Got {line.strip()!r:.60}.'
            )
        yield number, row


def read_parquet(path: Path, choose: Any, encoding: str) -> dict[str, list]:
    """Read columns of a .parquet file; the encoding is the format's own."""
    parquet = import_optional("pyarrow.parquet", "parquet", "Reading a .parquet file")
    arrow = import_optional("pyarrow", "parquet", "Reading a .parquet file")
    with path.open("rb") as stream:
        try:
            file = parquet.ParquetFile(stream)
            roles = choose(list(file.schema_arrow.names))
            table = file.read(columns=roles.names())
            found = {name: table.column(name).to_pylist() for name in roles.names()}
        except arrow.ArrowException as error:
            raise ValueError(
                f"{str(path)!r} is no .parquet file, or it is damaged ({_short(error)})."
            ) from error
    for name in roles.text:
        for number, value in enumerate(found[name]):
            if not isinstance(value, str | None):
                raise ValueError(
                    f"{str(path)!r}, row {number}: {name!r} must be a text. Got {value!r:.60}."
                )
    return found


#: How files are read, by their endings.
READERS: dict[str, Reader] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".parquet": read_parquet,
    ".txt": read_lines,
}


def read_text(path: Path, encoding: str) -> str:
    """Read a file of text."""
    with _opened(path, encoding) as stream:
        return stream.read()


def read_words(path: Path, encoding: str) -> list[str]:
    """Read a file with a word on each line."""
    with _opened(path, encoding) as stream:
        lines = [line.strip() for line in stream]
    while lines and not lines[-1]:
        lines.pop()
    return lines


@contextmanager
def _opened(
    path: Path, encoding: str, *, newline: str | None = None, advice: str = ""
) -> Iterator[IO[str]]:
    """A file as text, unpacked if it ends in .gz; errors name the file."""
    try:
        if codecs.lookup(encoding).name == "utf-8":
            encoding = "utf-8-sig"  # a mark at the beginning is no text
    except LookupError:
        raise ValueError(
            f"--encoding: there is no encoding {encoding!r}. Usual ones are utf-8, cp1252, "
            "latin-1, utf-16."
        ) from None
    packed = path.suffix.lower() == ".gz"
    opener: Any = gzip.open if packed else open
    try:
        with opener(path, "rt", encoding=encoding, newline=newline) as stream:
            yield stream
    except UnicodeError as error:
        raise ValueError(
            f"{str(path)!r} is not {encoding.removesuffix('-sig')} ({_short(error)}): name its "
            f"encoding, for example --encoding {_likely(path)}{advice}."
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is no .gz file, or it is damaged ({error}).") from error


def _likely(path: Path) -> str:
    """An encoding that a file may have."""
    with path.open("rb") as stream:
        return _MARKS.get(stream.read(2), "cp1252")


def _short(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte 0x{error.object[error.start]:02x} at position {error.start}"
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


#: What the option --format knows, and the ending that stands for each.
FORMATS = {
    "csv": ".csv",
    "tsv": ".tsv",
    "jsonl": ".jsonl",
    "parquet": ".parquet",
    "lines": ".txt",
    "npz": None,
    "mtx": None,
    "uci": None,
    "lda-c": None,
}


def read_corpus(
    path: str,
    roles: Roles,
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    files: str | None = None,
    vocabulary: str | None = None,
) -> Corpus:
    """Read documents."""
    place, origin = Path(path), repr(path)
    is_folder = place.is_dir()
    if not is_folder and not place.exists():
        raise FileNotFoundError(f"There is no file or folder {origin}.")
    counts = None if is_folder else (format_of(place) if format is None else format)
    if files is not None and not is_folder:
        raise ValueError(f"--files is for folders, and {origin} is a file.")
    if is_folder and format is not None:
        raise ValueError(f"--format is for files, and {origin} is a folder of texts.")
    if counts in FORMATS and FORMATS[counts] is None:
        corpus = read_counts(place, counts, roles, vocabulary, encoding)
    else:
        if vocabulary is not None:
            raise ValueError(f"--vocabulary is for counts of words, and {origin} has texts.")
        chosen: list[Roles] = []

        def choose(columns: list[str]) -> Roles:
            chosen.append(roles.among(columns, origin))
            return chosen[0]

        if is_folder:
            table = read_folder(place, choose, encoding, files or "*")
        else:
            ending = kind_of(place) if format is None else FORMATS[format]
            if ending not in READERS:
                raise ValueError(
                    f"The name of {origin} does not tell its format: choose one by --format "
                    f"{{{','.join(FORMATS)}}}."
                )
            table = READERS[ending](place, choose, encoding)
        corpus = corpus_of(table, chosen[0], origin)
    if not len(corpus):
        raise ValueError(f"{origin} has no documents.")
    return corpus


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


def as_roles(chosen: argparse.Namespace) -> Roles:
    """Return the columns that the options name."""
    return Roles(tuple(chosen.text), chosen.title, chosen.time, chosen.group, chosen.name)
