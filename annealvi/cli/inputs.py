"""Readers of the input of commands: texts in a folder or a table, or word counts."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from argparse import Namespace
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, filterfalse, islice
from pathlib import Path, PurePath
from typing import Any
from warnings import catch_warnings, simplefilter

from annealvi._optional import import_optional
from annealvi.corpus import read_cells, read_lda_c, read_uci
from annealvi.corpus.cells import has_names
from annealvi.corpus.files import (
    checked_text,
    decoded,
    is_hidden,
    naming,
    opened,
    read_npz,
    read_vocabulary,
    unpacked,
    with_words,
)
from annealvi.corpus.office import columns_of, read_docx, read_xlsx, read_zip
from annealvi.exceptions import warn_user

#: The formats of files by the endings of their names.
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".txt": "lines",
    ".xlsx": "xlsx",
    ".docx": "docx",
    ".zip": "zip",
    ".npz": "npz",
    ".mtx": "mtx",
    ".h5ad": "h5ad",
    ".h5": "10x",
    ".ldac": "lda-c",
    ".lda-c": "lda-c",
}
COUNTS = ("npz", "mtx", "h5ad", "10x", "uci", "lda-c")
FORMATS = (*dict.fromkeys(ENDINGS.values()), "uci")
#: Formats that are read from several places of a file, or by its name.
OF_FILES = (*COUNTS[:4], "parquet", "xlsx", "docx", "zip")
#: Endings of compressed files, which follow the ending of the format.
PACKED = {".gz", ".bz2", ".xz", ".zip", ".zst"}
#: Endings of files that are no plain texts, of which a folder of texts is warned.
MARKED_UP = {*ENDINGS, ".eml", ".htm", ".html", ".json", ".pdf", ".rtf", ".xml"} - {".docx", ".txt"}
#: A line break or a tab in a .tsv file of a database; in LaTeX a small letter follows.
ESCAPED = re.compile(r"\\[nt](?![a-z])")
#: What to do with a file that cannot be read.
HINTS = {
    "xlsx": "Save it as a new .xlsx or .csv file in Excel.",
    "docx": "Save it as a new .docx or .txt file in Word.",
}
#: Characters that can separate the columns of a .csv file.
SEPARATORS = ",;\t|"
#: The separator for a single column, which does not occur in texts.
ALONE = "\x1f"
#: The number of rows that are used to find the separator.
LOOKED_AT = 1000
#: The first line by which Excel names the separator.
DECLARED = re.compile(r'"?sep=(.)"?')
#: Names of the array of words in an .npz file, and of files of words in the folder of counts.
WORDS = ("vocab", "feature_names", "vocabulary", "words")
BESIDE = ("vocab.txt", "vocabulary.txt")
#: What is near the beginning of files that annealvi writes: of reports and models; of what the
#: commands print, and of texts about a summary; and the first columns of tables, where ~ stands for
#: what separates columns in .csv, in .tex and in what is printed.
MARKS = re.compile(
    (
        rb'(?m)<meta name="generator" content="annealvi">|"__metadata__":\{"'
        rb"|^checksum of the topics: |\A\W*(?:read [\d,]+ documents? from |reading .+ \[\d\d:\d\d"
        rb"|annealvi [a-z-]+: |topic \d+: .+% of the words|The model is .+ topics over [\d,]+ words"
        rb"|Below are the \d+ topics of a topic model)"
        rb"|^\W*(?:document~topic~label|topic~(?:label|share)|similarity~finding"
        rb"|question~(?:topic~label|(?:title~)?(?:text~)?(?:option_1|words)))~"
        rb"|^[^,;&\t\n]+~n\\?_documents~|^#doc source pos typeindex type topic"
    ).replace(b"~", rb'(?:"?[,;\t]"?| & | {2,})')
)
#: The number of bytes in which these are searched.
START = 1000
#: Files that are in each folder of annealvi paper.
OF_PAPER = ("methods.txt", "topics.tex", "trust.tex")
#: The maximum number of names in a message.
LISTED = 40
#: The beginnings of files in UTF-16.
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass
class Corpus:
    """Documents of a file or a folder: texts or word counts."""

    #: The source of the documents, for messages.
    origin: str
    #: Additional columns by the options that name them: title, time, group, name.
    columns: dict[str, list]
    texts: list[str] | None = None
    counts: Any = None
    #: The words of the counts, or None if they are unknown.
    words: Any = None
    #: All columns by their names, with None for missing values.
    table: Any = None

    def take(self, numbers: Collection[int]) -> Corpus:
        """Return these documents of a corpus of texts."""
        columns, table = (
            {name: [column[n] for n in numbers] for name, column in columns.items()}
            for columns in (self.columns, self.table)
        )
        texts = [(self.texts or [])[n] for n in numbers]
        return Corpus(self.origin, columns, texts, table=table)

    def __len__(self) -> int:
        """The number of documents."""
        return self.counts.shape[0] if self.texts is None else len(self.texts)


def read_corpus(chosen: Namespace) -> Corpus:
    """Read the documents that the options name, or raise an error about an unsuitable option."""
    path = Path("/dev/stdin" if chosen.path == "-" else chosen.path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {chosen.path!r}.")
    if path.is_dir():
        kind = "10x" if has_names(path) and not chosen.files else "folder"
    else:
        kind = chosen.format or kind_of(path)
    # for each option, whether it is used for this kind, and what it is used with
    uses = {
        "files": (kind == "folder", "a folder of texts"),
        "format": (kind != "folder", "a file"),
        "vocabulary": (kind in COUNTS, "word counts"),
        "text": (kind not in COUNTS, "texts"),
        "layer": (kind == "h5ad", "a .h5ad file"),
    }
    for option, (is_used, what) in uses.items():
        if getattr(chosen, option) and not is_used:
            raise ValueError(f"--{option} can only be used with {what}. Got {chosen.path!r}.")
    if path.is_fifo() and kind in OF_FILES:
        raise ValueError(f"{chosen.path!r} is a pipe. Write it to a file first.")
    corpus = (_read_counts if kind in COUNTS else _read_texts)(path, kind, chosen)
    if not len(corpus):
        raise ValueError(f"{corpus.origin} must contain documents. Got no documents.")
    return corpus


def kind_of(path: Path) -> str:
    """Return the format of a file, which is determined by its name."""
    name = Path(path.name.lower())
    # of documents, unlike papers.csv.zip, which is a compressed table
    is_archive = name.suffix == ".zip" and Path(name.stem).suffix not in ENDINGS
    name = name.with_suffix("") if name.suffix in PACKED and not is_archive else name
    if name.name.startswith("docword."):
        return "uci"
    if name.suffix not in ENDINGS:
        raise ValueError(
            f"The format of {str(path)!r} is not clear from its name. Save the file as .csv, .xlsx "
            f"or .jsonl, or set its format with --format {{{','.join(FORMATS)}}}."
        )
    return ENDINGS[name.suffix]


def read_text(path: str | Path, encoding: str) -> str:
    """Read a text file, which may be compressed."""
    with opened(path, "text") as stream:
        text = decoded(stream.read(), encoding)
    return checked_text(text, path, encoding).replace("\r\n", "\n").replace("\r", "\n")


# ------------------------------------------------------------------------------ texts


def read_table(path: Path, kind: str, encoding: str, pattern: str = "*") -> Mapping[str, Any]:
    """Read the columns of documents that are texts: a folder, or a file of a kind."""
    if kind == "folder":
        return _read_folder(path, pattern, encoding)
    if kind == "lines":
        lines = read_text(path, encoding).removesuffix("\n").split("\n")
        return {"text": lines if any(map(str.strip, lines)) else []}  # no documents in a blank file
    with naming(path, f"a .{kind} file", HINTS.get(kind, "")):
        if kind == "xlsx":
            return read_xlsx(path)
        if kind == "docx":
            return {"text": read_docx(path)}
        if kind == "zip":
            return read_zip(path, encoding)
    return _read_file_as_table(path, kind, encoding)


def read_columns(path: Path) -> Mapping[str, Any]:
    """Read a file of texts, whose kind its name shows and whose encoding is not known."""
    kind = kind_of(path)
    if kind in COUNTS:
        raise ValueError(f"{str(path)!r} contains word counts, not texts.")
    with path.open("rb") as file:
        encoding = "utf-16" if file.read(2) in UTF_16 else "utf-8-sig,cp1252"  # the latter: Windows
    return read_table(path, kind, encoding)


def _read_texts(path: Path, kind: str, chosen: Namespace) -> Corpus:
    """Read documents that are texts, from a folder or a file of a kind."""
    table = read_table(path, kind, chosen.encoding, chosen.files or "*")
    names = list(table)
    origin = repr(chosen.path)
    if not names:  # an empty table
        return Corpus(origin, columns={}, texts=[])
    if not chosen.text and "text" not in names and len(names) != 1:
        raise ValueError(
            f"{origin} has no column 'text'. Name the column of the texts with --text. "
            f"{_list_of_names(names)}"
        )
    if kind in ("csv", "tsv", "xlsx") and len(names) == 1 and " " in str(names[0]).strip():
        warn_user(
            f"The first line of {origin}, {names[0]!r:.80}, is read as the header of the column. "
            "If it is a text, add a line with a header, such as text, above it."
        )
    columns = _chosen_columns(chosen, table)
    text_names = chosen.text or ["text" if "text" in names else names[0]]
    for name in text_names:
        for number, value in enumerate(table[name]):
            if not isinstance(value, str | None):
                raise ValueError(
                    f"{origin}, document {number}: {name!r} must be a text. Got {value!r:.60}."
                )
    rows = zip(*(table[name] for name in text_names), strict=True)
    texts = ["\n".join(filter(None, row)) for row in rows]  # without missing values
    return Corpus(origin, columns, texts, table=table)


def _chosen_columns(chosen: Namespace, table: Mapping[str, Any]) -> dict[str, list]:
    """Return the columns that options name; the error about a missing column lists all columns."""
    names = list(table)
    options = [("text", name) for name in chosen.text]
    options += [
        (option, getattr(chosen, option, None)) for option in ("title", "time", "group", "name")
    ]
    columns: dict[str, list] = {}
    for option, name in options:
        if name is None:  # a column with the name title is used by default
            if option != "title" or "title" not in names:
                continue
            name = "title"
        if name not in names:
            raise ValueError(
                f"--{option} must be a column of {chosen.path!r}. Got {name!r}. "
                f"{_list_of_names(names)}"
            )
        if option in ("title", "name"):
            columns[option] = ["" if value is None else str(value) for value in table[name]]
        elif option != "text":
            # an empty cell of times or groups is a missing value
            columns[option] = [None if value == "" else value for value in table[name]]
    return columns


def _is_output(file: Path) -> bool:
    """Whether a file is an output of annealvi, or the output of this command goes to the file."""
    for descriptor in (1, 2):  # stdout and stderr
        with suppress(OSError):  # the output is closed
            if os.path.samestat(file.stat(), os.fstat(descriptor)):
                return True
    start = b""
    # the error of a damaged file follows when it is read as a document
    with suppress(ValueError), opened(file, "text") as stream:
        start = stream.read(START).replace(b"\0", b"")  # without the zeros of UTF-16
    # or a file in a folder that annealvi paper has written
    return MARKS.search(start) is not None or all(
        file.with_name(name).is_file() for name in OF_PAPER
    )


def _list_of_names(names: list[str], headline: str = "Its columns are") -> str:
    """Return a sentence with at most LISTED names, for a message."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{headline}: {', '.join(map(str, names[:LISTED]))}{more}."


def _read_folder(path: Path, pattern: str, encoding: str) -> dict[str, list[str]]:
    """Read the files of a folder and of its subfolders, except hidden files."""
    files = [file.relative_to(path) for file in path.rglob(pattern) if file.is_file()]
    # the same order on all systems
    files = sorted(filterfalse(is_hidden, files), key=Path.as_posix)
    written = [file.as_posix() for file in files if _is_output(path / file)]
    if written:
        files = [file for file in files if file.as_posix() not in written]
        warn_user(
            f"{_list_of_names(written, 'These files are not read, because annealvi wrote them')} "
            "To read them, move them to another folder."
        )
    documents: dict[PurePath, str] = {}
    errors = {}
    for file in files:
        full_path = path / file
        try:
            if file.suffix.lower() == ".docx":
                with naming(full_path, "a .docx file"):
                    documents[file] = "\n".join(read_docx(full_path))
            else:
                documents[file] = read_text(full_path, encoding)
        except ValueError as error:
            errors[file.as_posix()] = error
    if errors:
        encodings = (
            "name more than one: --encoding utf-8,cp1252 reads each file in the first that fits"
        )
        if "," in encoding:
            encodings = "name it in --encoding too"
        only_texts = "use --files to read only texts, for example --files '*.txt'"
        if pattern != "*":
            only_texts = f"leave them out by a narrower pattern than --files {pattern!r}"
        raise ValueError(
            f"{str(next(iter(errors.values()))).removesuffix('.')}. {len(errors)} of {len(files)} "
            f"files cannot be read: {', '.join([*errors][:LISTED])}. If they are texts in another "
            f"encoding, {encodings}. If they are no texts, {only_texts}."
        )
    endings = {Path(file.name.removesuffix(".gz")).suffix.lower() for file in files} & MARKED_UP
    if endings and pattern == "*":
        warn_user(
            f"In the folder {str(path)!r}, files that end in {', '.join(sorted(endings))} are read "
            "as plain texts, with all marks of their formats. To read only texts, use --files, for "
            "example --files '*.txt'."
        )
    return columns_of(documents)


def _read_file_as_table(path: Path, kind: str, encoding: str) -> Any:
    """Read a file as a table, with None for missing values."""
    if kind == "parquet":
        import_optional("pyarrow", "Reading a .parquet file", "pandas")
    pandas = import_optional("pandas", f"Reading a .{kind} file")
    with naming(path, f"a .{kind} file"), catch_warnings():
        simplefilter("error", pandas.errors.ParserWarning)  # a row would be truncated
        if kind == "parquet":
            table = pandas.read_parquet(path, dtype_backend="numpy_nullable")
            return table.astype(object).where(table.notna(), None)
        # unpacks the file if its name says that it is compressed; `unpacked` knows .zip better
        packed = None if path.suffix.lower() == ".zip" else "infer"
        with pandas.io.common.get_handle(path, "rb", is_text=False, compression=packed) as handle:
            content = handle.handle.read()
        content = unpacked(io.BytesIO(content)).read()  # also from a pipe, which has no name
        text = checked_text(decoded(content, encoding), path, encoding)
        if kind == "jsonl":
            return _columns_of_json(text, repr(str(path)))
        head, _, below = text.partition("\n")
        if below.strip() and not head.strip():
            raise ValueError(
                "line 1 is blank, but must contain the names of the columns. Remove the blank "
                "lines at the beginning."
            )
        # Excel can name the separator in an additional first line
        if declared := DECLARED.fullmatch(head.strip()):
            text = below
            separator = declared[1]
        elif kind == "tsv":
            separator = "\t" if "\t" in head else ALONE
        else:
            separator = _separator(text)
        quoting = _quoting(text, separator)
        columns = _check_rows(text, separator, quoting, repr(str(path)))
        return pandas.read_csv(
            io.StringIO(text),
            sep=separator,
            dtype=str,
            header=0,
            keep_default_na=False,
            index_col=False,
            skipinitialspace=True,
            skip_blank_lines=separator != ALONE,  # in a single column they are cells
            quoting=quoting,
            **columns,
        )


def _columns_of_json(text: str, origin: str) -> dict[str, list]:
    """Return the columns of a text with a JSON object on each line."""
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                if line.lstrip().startswith("["):
                    raise ValueError(
                        f"line {number} begins a list, but each line must be a JSON object. Save "
                        "the file as .csv, or write each object on one line."
                    ) from error
                raise ValueError(f"line {number}, {line[:40]!r}, is not JSON: {error}") from error
            if not isinstance(rows[-1], dict):
                raise ValueError(f"line {number} must be a JSON object. Got {line[:40]!r}.")
    # without those after the last row
    _warn_of_blank_lines(sum(map(str.isspace, io.StringIO(text.rstrip()))), origin)
    names = dict.fromkeys(chain.from_iterable(rows))  # of all rows, in the order of appearance
    return {
        # NaN, which differs from itself, is a missing value
        name: [None if value != value else value for value in (row.get(name) for row in rows)]
        for name in names
    }


def _warn_of_blank_lines(n_blank: int, origin: str) -> None:
    """Warn if lines between rows are blank."""
    if n_blank:
        warn_user(
            f"In {origin}, {n_blank} lines between rows are blank. They are no documents, and "
            "documents are numbered without them."
        )


def _reader(text: str, separator: str, quoting: Any = csv.QUOTE_MINIMAL, **options: Any) -> Any:
    """Return a reader of the rows of a text; `options` are further options of csv.reader."""
    # a cell can be as long as the text
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    return csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        quoting=quoting,
        skipinitialspace=True,
        **options,
    )


def _separator(text: str) -> str:
    """Find the separator for which most rows have as many columns as the header, or ALONE."""

    def agreement(separator: str) -> tuple[float, int]:
        """The share of rows with as many columns as the header, and the number of columns."""
        rows = islice(filter(None, _reader(text, separator)), LOOKED_AT)
        n = len(next(rows, [""]))
        if n == 1:
            return 0.0, 1
        agree = [len(row) == n for row in rows]
        return (sum(agree) / len(agree) if agree else 1.0), n

    return max(ALONE + SEPARATORS, key=agreement)  # the first if all texts have one column


def _quoting(text: str, separator: str) -> int:
    """Find out whether quotation marks enclose cells, or are a part of the texts.

    They are a part of the texts if they join lines that have as many columns as the header.  All
    other lines must have as many too, unless tabs, which texts hardly contain, separate columns:
    then most of the joined lines must have as many, whereas at most one line of a row that has
    several can.  In a single column, a quotation must also end within a cell or not at all.
    """
    if separator == ALONE:
        with suppress(csv.Error):
            deque(_reader(text, separator, strict=True), maxlen=0)
            return csv.QUOTE_MINIMAL
    lines = [*io.StringIO(text, newline="")]
    joined: list[str] = []  # the lines of rows that have more than one line
    n_read = 0
    reader = _reader(text, separator)
    for _ in reader:
        if reader.line_num > n_read + 1:
            joined += lines[n_read : reader.line_num]
        n_read = reader.line_num
    # for each line, whether it is a row if quotation marks are a part of the texts
    n_separators = lines[0].count(separator) if lines else 0
    compared = joined if separator == "\t" else lines
    are_rows = [line.count(separator) == n_separators for line in compared if line.strip()]
    is_text = 2 * sum(are_rows) > len(are_rows) if separator == "\t" else all(are_rows)
    return csv.QUOTE_NONE if joined and is_text else csv.QUOTE_MINIMAL


def _check_rows(text: str, separator: str, quoting: int, origin: str) -> dict[str, Any]:
    """Raise ValueError if a row has more columns than the header; warn about other odd rows.

    The result is options of pandas: which columns to read, or the names of all columns if R has
    written the names of rows without a header.
    """
    rows = _reader(text.rstrip("\r\n "), separator, quoting)  # without blank lines at the end
    header: list[str] = next(rows, [])
    n_columns = len(header)
    # rows by the number of their last line, from the second row on
    lines = {rows.line_num: row if row != [""] else [] for row in rows}  # noqa: B035, it changes
    cells = list(filter(None, lines.values()))  # without blank lines
    body = text.partition("\n")[2]
    if _begin_with_names(cells, n_columns, body, separator):
        for line, row in lines.items():
            if row and len(row) != n_columns + 1:
                raise ValueError(
                    f"the row that ends on line {line} has {len(row)} columns, but most rows have "
                    f"{n_columns + 1}, one more than the header, as R writes names of rows."
                )
        if not body.startswith('"'):
            warn_user(
                f"In {origin}, all rows have one more column than the header. The first column is "
                "read as the names of rows that R writes."
            )
        return {"names": ["", *header]}  # the column of row names has no name
    for line, row in lines.items():
        if any(row[n_columns:]):
            raise ValueError(
                f"the row that ends on line {line} has {len(row)} columns, but the header has "
                f"{n_columns} columns. Put texts that contain {separator!r} in quotation marks."
            )
    _warn_of_joined_rows(lines, n_columns, separator, origin)
    n_escaped = len(ESCAPED.findall(text)) if separator == "\t" else 0
    if n_escaped:
        warn_user(
            rf"In {origin}, {n_escaped} line breaks or tabs are written as \n or \t, as PostgreSQL "
            "and MySQL do, and these letters are read. Export the table as .csv instead."
        )
    if separator != ALONE:
        short = [line for line, row in lines.items() if 0 < len(row) < n_columns]
        if short:
            warn_user(
                f"In {origin}, rows have fewer columns than the header, as if a separator were "
                f"missing: {len(short)} rows, the first on line {short[0]}."
            )
        _warn_of_blank_lines(len(lines) - len(cells), origin)
    return {"usecols": range(n_columns)}  # without blank cells after these columns


def _begin_with_names(cells: list[list[str]], n_columns: int, body: str, separator: str) -> bool:
    """Whether rows begin with names, as R writes them, without a name of their column.

    `cells` are the rows without the header, and `body` is their text.
    """
    is_quoted = body.startswith('"')
    # instead of blank last cells, or of texts with separators, which spaces often follow
    is_of_r = any(row[-1] for row in cells) and (is_quoted or f"{separator} " not in body)
    # numbers from 1, or other names; unquoted names in .csv files may be parts of texts
    is_numbered = all(row[0] == str(n) for n, row in enumerate(cells, start=1))
    is_named = is_numbered or (
        (is_quoted or separator == "\t") and len({row[0] for row in cells}) == len(cells)
    )
    n_longer = sum(len(row) == n_columns + 1 for row in cells)
    return is_named and is_of_r and len(cells) > 1 and 2 * n_longer > len(cells)


def _warn_of_joined_rows(
    lines: dict[int, list[str]], n_columns: int, separator: str, origin: str
) -> None:
    """Warn if quotation marks enclose several lines that look like rows.

    `lines` are the rows by the numbers of their last lines.
    """
    # in texts, a space often follows a separator
    joined = [
        end
        for end, row in lines.items()
        for cell in row
        if any(
            line.replace(f"{separator} ", " ").count(separator) == n_columns - 1
            for line in cell.split("\n")[1:]
        )
    ]
    # in a single column each line looks like a row, but often most texts have several lines
    if joined and (separator != ALONE or 2 * len(joined) < len(lines)):
        warn_user(
            f"In {origin}, quotation marks enclose several lines that look like rows, and each is "
            f"read as one text: {len(joined)} texts, the first ends on line {joined[0]}. If a "
            "quotation mark is a part of a text, write it twice, and put the text in quotation "
            "marks."
        )


# ----------------------------------------------------------------------------- counts


def _read_counts(path: Path, kind: str, chosen: Namespace) -> Corpus:
    """Read word counts of a kind, with their words and with columns of the documents."""
    words = None
    names = None
    arrays: dict[str, Any] = {}
    if kind == "npz":
        X, arrays = read_npz(path, "word counts")
        # under the first of these names that exists
        words = next((arrays.pop(name) for name in WORDS if name in arrays), None)
    elif kind in ("mtx", "h5ad", "10x"):
        cells = read_cells(path, layer=chosen.layer)
        X = cells.data
        words = cells.feature_names
        names = cells.document_names
        arrays = {
            name: column.astype(object).where(column.notna(), None)
            for name, column in cells.columns.items()
        }
    else:
        X = (read_uci if kind == "uci" else read_lda_c)(path).data
    file = chosen.vocabulary
    if file is None and words is None:
        # a file of words in the same folder, such as vocab.kos.txt for docword.kos.txt.gz
        beside = (path.name.replace("docword.", "vocab.", 1).removesuffix(".gz"), *BESIDE)
        files = [path.with_name(name) for name in beside if name != path.name]
        file = next(filter(Path.is_file, files), None)
    if file is not None:
        words = read_vocabulary(file, X.shape[1], chosen.encoding, exact=kind != "lda-c")
    X, words = with_words(X, words)
    # arrays with a value for each document
    table = {name: array.tolist() for name, array in arrays.items() if array.shape == (X.shape[0],)}
    columns = _chosen_columns(chosen, table)
    if names is not None:
        columns.setdefault("name", names.tolist())
    return Corpus(repr(chosen.path), columns, counts=X, words=words, table=table)
