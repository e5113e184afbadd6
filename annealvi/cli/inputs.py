"""Reads what a command is given: a folder or a file of texts, or a file of counts."""

from __future__ import annotations

from pathlib import Path

from annealvi.cli.columns import Corpus, Roles, corpus_of
from annealvi.cli.counts import format_of, read_counts
from annealvi.cli.tables import READERS, kind_of, read_folder

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
