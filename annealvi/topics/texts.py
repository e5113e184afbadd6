"""The checks of texts: a list, a Series of pandas or polars, or any iterable of str."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

ALLOWED = "a list, a Series of pandas or polars, or another iterable of str"


def check_texts(texts: Any, owner: str, *, name: str = "texts", least: int = 1) -> list[str]:
    """Check raw texts and return them as a list."""
    checked = []
    for number, text in enumerate(_items(texts, owner, name)):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{number}] of {owner} must be a str. {_got(text)}")
        checked.append(text)
    if len(checked) < least:
        documents = f"{least} document{'s' * (least > 1)}"
        raise ValueError(
            f"The {name!r} of {owner} must hold at least {documents}. Got {len(checked)}."
        )
    return checked


def are_texts(documents: Any, name: str) -> bool:
    """Tell whether documents are given as texts; else they must be rows of counts.

    Texts are in one dimension.  What they hold is not looked at: :func:`check_texts` says what is
    wrong with a list of numbers.
    """
    if isinstance(documents, str | bytes | bytearray):
        raise TypeError(
            f"{name!r} must be a list of texts or a matrix of counts. Got a single text: put it in "
            "a list."
        )
    if sparse.issparse(documents) or not hasattr(documents, "__iter__"):
        return False
    if hasattr(documents, "shape"):  # an array, a Series
        return len(documents.shape) == 1
    if isinstance(documents, list | tuple) and documents:
        first = documents[0]
        return not (isinstance(first, list | tuple) or len(getattr(first, "shape", ())) > 0)
    return True  # an iterator, or nothing


def blocks_of(texts: Any, owner: str) -> Iterator[list[str]]:
    """Yield blocks of checked texts: one if `texts` holds str, else each of its items.

    An iterator of blocks is read as far as blocks are asked for.
    """
    items = iter(_items(texts, owner, "texts"))
    try:
        first = next(items)
    except StopIteration:
        raise ValueError(f"The 'texts' of {owner} must hold at least 1 document. Got 0.") from None
    if not _is_block(first):
        yield check_texts(chain([first], items), owner)
        return
    for number, block in enumerate(chain([first], items)):
        yield check_texts(block, owner, name=f"texts[{number}]")


def _is_block(item: Any) -> bool:
    """Whether an item of `texts` is meant as a block of texts and not as a text."""
    single = isinstance(item, str | bytes | bytearray | Mapping) or item is None
    return not single and isinstance(item, Iterable) and np.ndim(_first(item)) == 0


def _first(item: Any) -> Any:
    """The first item of a sequence, to tell rows of numbers from blocks of texts."""
    return item[0] if isinstance(item, np.ndarray) and item.ndim and len(item) else ""


def _items(texts: Any, owner: str, name: str) -> Iterable:
    """What is iterated over; TypeError for what an iteration would misread."""
    if isinstance(texts, str | bytes | bytearray):
        kind = type(texts).__name__
        raise TypeError(
            f"The {name!r} of {owner} must be {ALLOWED}. Got {kind}: put a single text in a list; "
            "if it is the path of a file, read the file first."
        )
    if sparse.issparse(texts) or (isinstance(texts, np.ndarray) and texts.ndim != 1):
        raise TypeError(
            f"The {name!r} of {owner} must be {ALLOWED}. Got a {type(texts).__name__} of shape "
            f"{texts.shape}: word counts go to TemperedLDA."
        )
    if hasattr(texts, "columns"):
        columns = [str(column) for column in texts.columns][:10]
        raise TypeError(
            f"The {name!r} of {owner} must be {ALLOWED}. Got a {type(texts).__name__}: choose one "
            f"of its columns, {columns}."
        )
    if isinstance(texts, Mapping | Set) or not isinstance(texts, Iterable):
        why = ", which has no order" if isinstance(texts, Set) else ""
        why = ": read the file first" if isinstance(texts, PathLike) else why
        kind = type(texts).__name__
        raise TypeError(f"The {name!r} of {owner} must be {ALLOWED}. Got {kind}{why}.")
    return texts


def _got(text: Any) -> str:
    """What stands in the place of a text, and what to do about it."""
    if isinstance(text, bytes | bytearray):
        return "Got bytes: decode them, for example by text.decode('utf-8')."
    missing = text is None or (isinstance(text, float) and text != text)
    if missing or type(text).__name__ in ("NAType", "NaTType"):
        return f"Got {text!r}: leave the document out, or put '' in its place."
    return f"Got {type(text).__name__}."
