"""Passages: long texts are split at their paragraphs, with the rows of their documents."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.topics import split_passages
from tests.asserts import refused

BOOK = "\n\n".join(f"Chapter {n}. " + "a long sentence here. " * n for n in range(1, 9))


@pytest.mark.parametrize("n_words", [3, 10, 20, 1000])
def test_no_word_is_lost_and_no_passage_is_too_long(n_words):
    passages = split_passages([BOOK, "", "One.\n \nTwo."], n_words)
    assert max(len(text.split()) for text in passages.texts) <= n_words
    for number, text in enumerate([BOOK, "", "One. Two."]):
        joined = " ".join(np.array(passages.texts, dtype=object)[passages.document == number])
        assert joined.split() == text.split()
    assert passages.passage[0] == 0 and passages.passage[-1] == (0 if n_words > 1 else 1)


def test_paragraphs_stay_whole():
    text = "one two\n\nthree four\n\nfive six seven eight nine. ten"
    passages = ["one two\n\nthree four", "five six seven eight", "nine. ten"]
    assert split_passages([text], 4).texts == passages
    sentences = ["月" * 300 + "。", "日" * 300]
    assert split_passages(["".join(sentences)], 20).texts == sentences


def test_rows_of_the_documents_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"author": ["Ada", "Ben"], "year": [1900, 2000]}, index=[7, 9])
    for data in (frame, dict(frame)):
        passages = split_passages(["a b\n\nc d", "e"], 2, data=data)
        assert list(passages.data["author"]) == ["Ada", "Ada", "Ben"]
        assert_array_equal(passages.document, [0, 0, 1])
        assert_array_equal(passages.passage, [0, 1, 0])
    assert split_passages(["a"]).data is None
    refused("data.* 3 documents", split_passages, ["a", "b", "c"], data=frame)
    refused("data.* 3 documents", split_passages, ["a", "b", "c"], data=dict(frame))
    refused("'data' .* DataFrame", split_passages, ["a", "b"], data=np.eye(2))
    refused("'data' .* DataFrame", split_passages, ["a", "b"], data=frame.author)


def test_rows_are_matched_by_the_index():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"author": ["Ada", "Ben"]}, index=[7, 9])
    texts = pandas.Series(["e", "a b\n\nc d"], index=[9, 7])
    assert list(split_passages(texts, 2, data=frame).data["author"]) == ["Ben", "Ada", "Ada"]
    passages = split_passages(texts, 2, data=dict(frame))
    assert passages.data == {"author": ["Ben", "Ada", "Ada"]}
    other = frame.set_axis([1, 2])
    refused("'data' .* index of the documents", split_passages, texts, 2, data=other)
    refused("author.* index of the documents", split_passages, texts, 2, data=dict(other))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries(library):
    make_table = {"polars": "DataFrame", "pyarrow": "table"}[library]
    table = getattr(pytest.importorskip(library), make_table)({"author": ["Ada", "Ben"]})
    passages = split_passages(["a b\n\nc d", "e"], 2, data=table)
    assert list(map(str, passages.data["author"])) == ["Ada", "Ada", "Ben"]
    refused("data.* 3 documents", split_passages, ["a", "b", "c"], data=table)


def test_sentences_without_spaces_are_joined_as_they_were():
    text = "星が光る。月が出る！" * 40
    passages = split_passages([text], 20).texts
    assert len(passages) > 1 and "".join(passages) == text


@pytest.mark.parametrize("text", ["ดาวดวงจันทร์ที่" * 500, "月は明るい、星が光る、" * 500])
def test_a_text_without_spaces_or_sentences_is_divided(text):
    passages = split_passages([text], 20).texts
    assert max(map(len, passages)) <= 20 * 16 and "".join(passages) == text
    assert all(passage[0].isalnum() for passage in passages)  # no vowel sign, no comma
    assert split_passages(["w" * 900, "ab " * 5], 3).texts == ["w" * 900, "ab ab ab", "ab ab"]
