"""Which columns of a file are texts, titles, times and classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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
