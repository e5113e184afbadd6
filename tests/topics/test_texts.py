"""Texts: what is taken, and the error of each thing that is not."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from annealvi.topics.vectorizer import are_texts, blocks_of, check_texts

TEXTS = ["one text", "", "and another"]


class Frame:
    """As a Series or DataFrame of polars: an iterable that is no list."""

    def __init__(self, values, **attributes):
        self.values = values
        vars(self).update(attributes)

    def __iter__(self):
        return iter(self.values)


@pytest.mark.parametrize(
    "texts",
    [
        *(TEXTS, tuple(TEXTS), iter(TEXTS), (text for text in TEXTS), np.array(TEXTS)),
        *(np.array(TEXTS, dtype=object), pd.Series(TEXTS, index=[5, 3, 1]), Frame(TEXTS)),
        pd.Series(TEXTS, dtype="category"),
    ],
)
def test_what_is_taken(texts):
    assert check_texts(texts, "f") == TEXTS


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("a text", TypeError, "'texts' of f must be a list, .* Got str: put a single text in a"),
        (b"a text", TypeError, "Got bytes: put"),
        ("texts.csv", TypeError, "in a list; if it is the path of a file, read the file first"),
        (Path("texts.csv"), TypeError, r"must be a list.* Got \w+Path: read the file first\."),
        (None, TypeError, "must be a list.* Got NoneType"),
        (3, TypeError, "Got int"),
        ({"a": "b"}, TypeError, "Got dict"),
        ({"a", "b"}, TypeError, "Got set, which has no order"),
        (
            pd.DataFrame({"text": TEXTS}),
            TypeError,
            r"a DataFrame: choose one of its col",
        ),
        (Frame([], columns=["a"]), TypeError, r"Got a Frame: choose one of its columns, \['a'\]"),
        (np.ones((2, 3)), TypeError, r"a ndarray of shape \(2, 3\): word counts go to TemperedLDA"),
        (np.array("a"), TypeError, r"a ndarray of shape \(\)"),
        (sparse.eye_array(3, format="csr"), TypeError, "word counts go to TemperedLDA"),
        (
            ["a", None],
            TypeError,
            r"texts\[1\] of f must be a str. Got None: leave the do",
        ),
        (["a", float("nan")], TypeError, r"texts\[1\] of f must be a str. Got nan: leave"),
        (["a", pd.NA], TypeError, r"Got <NA>: leave the document out, or put '' in its place"),
        (["a", b"b"], TypeError, r"texts\[1\] .* Got bytes: decode them, for example by text.dec"),
        (["a", ["b"]], TypeError, r"texts\[1\] of f must be a str. Got list."),
        ([1.0, 2.0], TypeError, r"texts\[0\] of f must be a str. Got float."),
        ([], ValueError, "'texts' of f must hold at least 2 documents. Got 0."),
        (iter(["a"]), ValueError, "'texts' of f must hold at least 2 documents. Got 1."),
    ],
)
def test_what_is_refused(texts, error, message):
    with pytest.raises(error, match=message):
        check_texts(texts, "f", least=2)


@pytest.mark.parametrize(
    ("texts", "blocks"),
    [
        (TEXTS, [TEXTS]),
        (iter(TEXTS), [TEXTS]),
        ([TEXTS, TEXTS[:1]], [TEXTS, TEXTS[:1]]),
        ((iter(block) for block in (TEXTS, TEXTS)), [TEXTS, TEXTS]),
        ([pd.Series(TEXTS), np.array(TEXTS)], [TEXTS, TEXTS]),
        (np.array([TEXTS, TEXTS], dtype=object).tolist(), [TEXTS, TEXTS]),
    ],
)
def test_blocks(texts, blocks):
    assert list(blocks_of(texts, "f")) == blocks


def test_blocks_are_read_one_by_one():
    read = []

    def blocks():
        for number in range(3):
            read.append(number)
            yield [f"text {number}"]

    found = blocks_of(blocks(), "f")
    assert (next(found), read) == (["text 0"], [0])
    assert (next(found), read) == (["text 1"], [0, 1])


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ([], ValueError, "'texts' of f must hold at least 1 document"),
        ([[]], ValueError, r"'texts\[0\]' of f must hold at least 1 document. Got 0."),
        ([TEXTS, []], ValueError, r"'texts\[1\]' of f must hold at least 1 document. Got 0."),
        ([TEXTS, "a text"], TypeError, r"'texts\[1\]' of f must be a list.* Got str"),
        ([TEXTS, ["a", None]], TypeError, r"texts\[1\]\[1\] of f must be a str. Got None"),
        ([None, "a"], TypeError, r"texts\[0\] of f must be a str. Got None"),
        ([b"a"], TypeError, r"texts\[0\] of f must be a str. Got bytes"),
        ("a text", TypeError, "'texts' of f must be a list.* Got str"),
        (np.ones((2, 3)), TypeError, "word counts go to TemperedLDA"),
    ],
)
def test_blocks_that_are_refused(texts, error, message):
    with pytest.raises(error, match=message):
        list(blocks_of(texts, "f"))


@pytest.mark.parametrize(
    ("documents", "texts"),
    [
        *((TEXTS, True), (tuple(TEXTS), True), (iter(TEXTS), True), (np.array(TEXTS), True)),
        *((pd.Series(TEXTS), True), (Frame(TEXTS), True), ([], True), ([None, "a"], True)),
        *(([b"a"], True), ([1.0, 2.0], True), ([pd.NA], True)),  # check_texts says what is wrong
        *(([[1, 0], [0, 2]], False), ([(1, 0)], False), ([np.ones(2)], False)),
        *(([[1, 0], [2]], False), ([[]], False)),
        *((np.ones((2, 3)), False), (pd.DataFrame({"a": [1]}), False), (np.array(3.0), False)),
        *((sparse.eye_array(3, format="csr"), False), (3, False), (None, False)),
    ],
)
def test_texts_or_counts(documents, texts):
    assert are_texts(documents, "X") is texts


@pytest.mark.parametrize("single", ["a text", b"a text"])
def test_a_single_text_is_neither_texts_nor_counts(single):
    with pytest.raises(TypeError, match=r"'X' must be a list of texts .* Got a single text: put"):
        are_texts(single, "X")
