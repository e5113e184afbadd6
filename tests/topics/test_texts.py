"""Texts: what is taken, and the error of each thing that is not."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from annealvi.topics.vectorizer import are_texts, blocks_of, check_texts, of_each
from tests.asserts import refusals, refused
from tests.marks import cases

TEXTS = ["one text", "", "and another"]
SPARSE = sparse.eye_array(3, format="csr")


class Frame:
    """As a Series or DataFrame of polars: an iterable that is no list."""

    def __init__(self, values, **attributes):
        self.values = values
        vars(self).update(attributes)

    def __iter__(self):
        return iter(self.values)


@cases(
    "texts",
    *(TEXTS, tuple(TEXTS), iter(TEXTS), (text for text in TEXTS), np.array(TEXTS)),
    *(np.array(TEXTS, dtype=object), pd.Series(TEXTS, index=[5, 3, 1]), Frame(TEXTS)),
    pd.Series(TEXTS, dtype="category"),
)
def test_what_is_taken(texts):
    assert check_texts(texts) == TEXTS


test_what_is_refused = refusals(
    lambda texts: check_texts(texts, min_documents=2),
    ("texts.csv", "'documents'.* must be a list, .* Got .*str.* in a list. If this is the path of"),
    (b"a text", "Got .*bytes.* Put"),
    (Path("texts.csv"), r"must be a list.*Path.*Read the file first\."),
    *((None, "Got .*NoneType"), (3, "Got .*int"), ({"a": "b"}, "Got .*dict")),
    ({"a", "b"}, "Got .*set.* A set has no order"),
    (pd.DataFrame({"text": TEXTS}), r"DataFrame.* Choose one of its columns, \['text'\]"),
    (Frame([], columns=["a"]), r"Choose one of its columns, \['a'\]"),
    *((wrong, "counts to TemperedLDA") for wrong in (np.ones((2, 3)), np.array("a"), SPARSE)),
    (["a", None], r"'documents\[1\]'.* must be a str. Got None .* Remove the document"),
    (["a", float("nan")], "Got nan .* Remove"),
    (["a", pd.NA], r"Got <NA> instead. Remove the document, or replace it by ''"),
    (["a", b"b"], r"'documents\[1\]'.* Got .*bytes.* Decode bytes, for example by text.dec"),
    (["a", ["b", 1]], r"documents\[1\]\[1\].* must be a str. Got .*int"),
    ([1.0, 2.0], r"documents\[0\].* must be a str. Got .*float"),
    *(([], "at least 2 documents. Got 0"), (iter(["a"]), "at least 2 documents. Got 1")),
)


@cases(
    "texts, blocks",
    *((TEXTS, [TEXTS]), (iter(TEXTS), [TEXTS]), ([TEXTS, TEXTS[:1]], [TEXTS, TEXTS[:1]])),
    ((iter(block) for block in (TEXTS, TEXTS)), [TEXTS, TEXTS]),
    ([pd.Series(TEXTS), np.array(TEXTS)], [TEXTS, TEXTS]),
)
def test_blocks(texts, blocks):
    assert list(blocks_of(texts)) == blocks


def test_blocks_are_read_one_by_one():
    read = []

    def blocks():
        for number in range(3):
            read.append(number)
            yield [f"text {number}"]

    found = blocks_of(blocks())
    assert (next(found), read) == (["text 0"], [0]) and (next(found), read) == (["text 1"], [0, 1])


test_blocks_that_are_refused = refusals(
    lambda texts: list(blocks_of(texts)),
    ([], "'documents' .* must be at least 1 document"),
    ([TEXTS, []], r"'documents\[1\]' .* must be at least 1 document. Got 0"),
    ([TEXTS, "a text"], r"'documents\[1\]' .* must be a list.* Got .*str"),
    ([TEXTS, ["a", None]], r"'documents\[1\]\[1\]' .* must be a str. Got None"),
    ([None, "a"], r"'documents\[0\]' .* must be a str. Got None"),
    ([b"a"], r"'documents\[0\]' .* must be a str. Got .*bytes"),
    (np.ones((2, 3)), "ounts to TemperedLDA"),
)


@cases(
    "documents, texts",
    *((TEXTS, True), (tuple(TEXTS), True), (iter(TEXTS), True), (np.array(TEXTS), True)),
    *((pd.Series(TEXTS), True), (Frame(TEXTS), True), ([], True), ([None, "a"], True)),
    *(([b"a"], True), ([1.0, 2.0], True), ([pd.NA], True)),  # check_texts says what is wrong
    *(([[1, 0], [0, 2]], False), ([(1, 0)], False), ([np.ones(2)], False)),
    *(([[1, 0], [2]], False), ([[]], False), (SPARSE, False), (3, False), (None, False)),
    *((np.ones((2, 3)), False), (pd.DataFrame({"a": [1]}), False), (np.array(3.0), False)),
)
def test_texts_or_counts(documents, texts):
    assert are_texts(documents, "X") is texts


def test_a_single_text_is_neither_texts_nor_counts():
    with pytest.raises(TypeError, match=r"'X' .* must be a list of texts .* Put a single text in"):
        are_texts("a text", "X")


class Column:
    """A column of a data set, which is a sequence without `__iter__`."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, number):
        return self.values[number]


COLUMNS = {
    "array of one column": lambda texts: np.array(texts).reshape(-1, 1),
    "objects": lambda texts: np.array(texts, dtype=object).reshape(-1, 1),
    "rows of a reader": lambda texts: [[text] for text in texts],
    "data set": Column,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_texts(kind):
    assert check_texts(COLUMNS[kind](TEXTS)) == list(TEXTS)


def test_columns_of_arrow():
    pa = pytest.importorskip("pyarrow")
    for made in (pa.array(TEXTS), pa.chunked_array([TEXTS, TEXTS[:1]])):
        assert check_texts(made) == made.to_pylist()
    assert of_each(pa.array(TEXTS), len(TEXTS), "groups") == list(TEXTS)


def test_rows_with_names_are_no_texts():
    rows = [{"id": 1, "body": "star moon"}, {"id": 2, "body": "bread"}]
    refused(r"Choose one of the columns, \['id', 'body'\]", check_texts, rows)


@pytest.mark.parametrize("row", [["a first text", "a title"], ["7", "a_name", "a first text"]])
def test_rows_of_a_table_are_told(row):
    for rows in ([row] * 10, np.array([row] * 10), map(list, [row] * 10)):
        with pytest.warns(UserWarning, match="Many words in the lists .* contain spaces"):
            check_texts(rows)


def test_words_with_spaces_may_be_anywhere_in_a_list():
    check_texts([["new york", "taxi", "car"], ["taxi", "new york"]])  # without a warning
    check_texts([["new york", "taxi", "car"]])
