"""Reads texts: a folder of files, a file with a text on each line, .csv, .jsonl, .parquet."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from annealvi._optional import import_optional
from annealvi.cli.columns import Roles

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
