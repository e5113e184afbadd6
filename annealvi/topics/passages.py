"""Passages of long texts, such as books, which are documents of a suitable length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from annealvi.checks import COUNT, validated
from annealvi.exceptions import BadParameter
from annealvi.topics.shares import in_order
from annealvi.topics.vectorizer import check_texts, of_each

#: Where a text is divided, from paragraphs to words, and what joins the pieces again.
BREAKS = (
    (r"\n\s*\n", "\n\n"),
    (r"\n", "\n"),
    (r"(?<=[。！？])", ""),
    (r"(?<=[.!?])\s+", " "),
    (r"\s+", " "),
    # scripts without spaces, not before punctuation or a vowel sign
    (
        "([\u0e00-\u109f\u1780-\u17ff\u1980-\u19df\u1a20-\u1aad\u3000-\u30ff\u3400-\u9fff"
        r"\uff00-\uffef\U00020000-\U0003ffff]{1,16})(?=\w|\Z)",
        "",
    ),
)
#: The number of characters of a word, for scripts without spaces between words.
LETTERS = 8


@validated(documents="no_validation", n_words=COUNT, data="no_validation")
def split_passages(documents: Iterable[str], n_words: int = 300, *, data: Any = None) -> Bunch:
    r"""Split long texts into passages at their paragraphs.

    Topic models find topics of words that occur together in a document.  In a whole book nearly all
    words occur together, so the passages of books are better documents.

    Parameters
    ----------
    documents : iterable of str
        Texts, whose paragraphs are separated by blank lines.
    n_words : int, default=300
        The maximum number of words of a passage.  As many paragraphs as possible are joined to a
        passage.  A longer paragraph is divided at its lines, sentences or words.  In scripts
        without spaces between words, 16 characters count as a word.
    data : DataFrame or mapping of str to sequence, default=None
        Columns that describe the documents, with a row for each document.  If the documents are a
        Series, a DataFrame and columns that are Series are matched by its index.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes have an entry for each passage: `texts`, a list of str; `document`, the
        number of the document that contains the passage, counted from 0; `passage`, the number of
        the passage in its document; and `data`, the rows of `data` of these documents, or None.  A
        document without words has no passage.

    Raises
    ------
    TypeError
        If the documents are not an iterable of str, or `data` is not a table.
    ValueError
        If `data` does not have a row for each document.

    Examples
    --------
    >>> from annealvi.topics import split_passages
    >>> texts = ["One two.\n\nThree four.\n\nFive.", "Six."]
    >>> passages = split_passages(texts, 4, data={"author": ["Ada", "Ben"]})
    >>> passages.texts
    ['One two.\n\nThree four.', 'Five.', 'Six.']
    >>> passages.document, passages.data["author"]
    (array([0, 0, 1]), ['Ada', 'Ada', 'Ben'])
    """
    index = getattr(documents, "index", None) if hasattr(documents, "iloc") else None
    texts = check_texts(documents)
    of_documents = [_split(text, int(n_words)) for text in texts]
    # the document of each passage
    rows = np.repeat(np.arange(len(texts), dtype=np.int64), list(map(len, of_documents)))
    if isinstance(data, Mapping):
        columns = {
            name: of_each(in_order(column, index, f"data[{name!r}]"), len(texts), f"data[{name!r}]")
            for name, column in data.items()
        }
        data = {name: [column[row] for row in rows] for name, column in columns.items()}
    elif data is not None:
        if not hasattr(data, "columns"):
            raise BadParameter("data", "a DataFrame or a mapping of columns", type(data))
        if len(data) != len(texts):
            raise BadParameter("data", f"a row for each of the {len(texts)} documents", len(data))
        if hasattr(data, "iloc"):  # of pandas
            data = in_order(data, index, "data").iloc[rows].reset_index(drop=True)
        else:  # of Arrow or polars
            data = data.take(rows) if hasattr(data, "to_pylist") else data[rows]
    return Bunch(
        texts=[passage for passages in of_documents for passage in passages],
        document=rows,
        passage=np.concatenate(
            [np.arange(len(passages), dtype=np.int64) for passages in of_documents]
        ),
        data=data,
    )


def _n_words(text: str) -> int:
    """Return about the number of words, even in a script without spaces."""
    return max(len(text.split()), len(text) // (2 * LETTERS))


def _split(text: str, n_words: int, level: int = 0) -> list[str]:
    """Split a text into passages of at most `n_words` words.

    It is split at the breaks of a level, and longer pieces at those of the next level.
    """
    if _n_words(text) <= n_words or level == len(BREAKS):
        return [text.strip()] if text.strip() else []
    pattern, joint = BREAKS[level]
    passages: list[str] = []
    n_last = n_words  # the number of words of the last passage
    for piece in filter(str.strip, re.split(pattern, text)):
        n_piece = _n_words(piece)
        if passages and n_last + n_piece <= n_words:
            passages[-1] += joint + piece.strip()
            n_last += n_piece
        else:
            passages += _split(piece, n_words, level + 1)
            n_last = _n_words(passages[-1])
    return passages
