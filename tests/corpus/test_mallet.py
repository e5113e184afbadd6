"""Files that MALLET writes; the small ones here have its formats."""

import gzip

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi.corpus import read_mallet_doc_topics, read_mallet_state, read_mallet_topic_keys
from annealvi.corpus.mallet import read_mallet_weights
from tests.asserts import refused
from tests.marks import cases

STATE = """#doc source pos typeindex type topic
#alpha : 0.5 1.5 
#beta : 0.01
0 NA 0 0 star 1
0 NA 1 1 proof# 0
0 NA 2 0 star 1
2 my file.txt 0 2 gène 0
"""  # noqa: W291  MALLET leaves a space there
WEIGHTS = "0\tstar\t0.01\n0\tgène\t1.01\n1\tstar\t2.01\n1\tgène\t0.01\n"
DENSE = "0\tfile:/a\t0.25\t0.75\n1\tb\t0.5\t0.5\n"
PAIRS = "#doc name topic proportion ...\n0\ta\t1\t0.75\t0\t0.25\t\n1\tb\t0\t0.6\t1\t0.4\t\n"
KEYS = "0\t0.5\tstar gène \n1\t1.5\tproof \n"


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n", "  \n"])
def test_a_state(end, tmp_path):
    path = tmp_path / "state.gz"
    path.write_bytes(gzip.compress((STATE + end).encode()))
    state = read_mallet_state(path)
    assert_array_equal(state.data.toarray(), [[2, 1, 0], [0, 0, 0], [0, 0, 1]])
    assert state.feature_names.tolist() == ["star", "proof#", "gène"]
    assert_allclose(state.components, [[0.01, 1.01, 1.01], [2.01, 0.01, 0.01]])
    assert_allclose(state.doc_topic, [[0.3, 0.7], [0.25, 0.75], [0.5, 0.5]])
    assert state.doc_topic_prior.tolist() == [0.5, 1.5] and state.topic_word_prior == 0.01


def test_weights_proportions_and_keys(tmp_path):
    path = tmp_path / "mallet.txt"
    path.write_text(WEIGHTS, encoding="utf-8")
    weights = read_mallet_weights(path)
    assert weights.feature_names.tolist() == ["star", "gène"]
    assert_array_equal(weights.components, [[0.01, 1.01], [2.01, 0.01]])
    path.write_text(KEYS, encoding="utf-8")
    keys = read_mallet_topic_keys(path)
    assert keys.words == [["star", "gène"], ["proof"]]
    assert keys.doc_topic_prior.tolist() == [0.5, 1.5]
    path.write_text("0\t0.5\t\r\n1\t1.5\tproof \r\n", encoding="utf-8")
    assert read_mallet_topic_keys(path).words == [[], ["proof"]]
    path.write_text(DENSE, encoding="utf-8")
    dense = read_mallet_doc_topics(path)
    assert dense.names == ["file:/a", "b"]
    assert_array_equal(dense.doc_topic, [[0.25, 0.75], [0.5, 0.5]])
    path.write_text(PAIRS, encoding="utf-8")
    assert_array_equal(read_mallet_doc_topics(path).doc_topic, [[0.25, 0.75], [0.6, 0.4]])


HEAD = "#doc name topic proportion ...\n"


@cases(
    "rows, doc_topic",
    ("0\ta\t0\t0.62\t2\t0.3\n1\tb\t2\t0.8\t0\t0.1\n", [[0.62, 0, 0.3], [0.1, 0, 0.8]]),
    ("0\ta\t0\t0.9\n1\tb\t2\t0.8\n", [[0.9, 0, 0], [0, 0, 0.8]]),
    ("0\ta\n1\tb\t1\t0.8\n", [[0, 0], [0, 0.8]]),
)
def test_topics_above_a_threshold(rows, doc_topic, tmp_path):
    (tmp_path / "t").write_text(HEAD + rows)
    with pytest.warns(UserWarning, match="written with a threshold"):
        assert_array_equal(read_mallet_doc_topics(tmp_path / "t").doc_topic, doc_topic)


def test_one_topic_of_each_document_is_no_pair_of_shares(tmp_path):
    (tmp_path / "t").write_text(HEAD + "0\ta\t0\t1.0\n1\tb\t0\t1.0\n")
    assert read_mallet_doc_topics(tmp_path / "t").doc_topic.tolist() == [[1], [1]]
    (tmp_path / "t").write_text(HEAD + "0\ta\t0.0\t1.0\n1\tb\t1.0\t0.0\n")
    assert read_mallet_doc_topics(tmp_path / "t").doc_topic.tolist() == [[0, 1], [1, 0]]


@cases(
    "read, text, message",
    (read_mallet_state, "0 NA 0 0 star 1\n", "first line must be '#doc source"),
    (read_mallet_state, STATE.replace("#beta", "#gamma"), "must begin with '#alpha' and '#beta'"),
    (read_mallet_state, STATE.replace("1.5", "-1"), "numbers after '#alpha' must be positive"),
    (read_mallet_state, STATE.replace(" 2 gène", " 9999999999 gène"), "word numbers must be less"),
    (read_mallet_state, STATE.replace("2 my", "9999999999 my"), "document numbers must be less"),
    (read_mallet_state, STATE.partition("0 NA")[0], "contains no words"),
    (read_mallet_state, STATE.replace("star 1", "star 2"), "topic numbers must be less than 2"),
    (read_mallet_state, STATE.replace("star 1", "star x"), "a state of MALLET: "),
    (read_mallet_state, STATE.replace("0.5 1.5", "0.5"), "line 4: topic numbers .* less than 1"),
    (read_mallet_state, STATE.replace(" 0 2 gène", " 0 gène"), "line 7 must have six parts"),
    (read_mallet_state, STATE.replace(" 0 2 gène", " 0 2"), "line 7 must have six parts"),
    (read_mallet_state, STATE.replace("file.txt 0 2", "7 0"), "line 7 .* 0 to the word 'gène'"),
    (read_mallet_state, STATE.replace("2 0 star", "2 0 moon"), "line 6 .* gives it to 'star'"),
    (read_mallet_state, STATE + "1", "line 8 must have six parts"),
    (read_mallet_state, STATE + "1 b", "line 8 must have six parts"),
    (read_mallet_state, STATE + "1 b.txt 1 0", "line 8 must have six parts"),
    (read_mallet_weights, "", "the weights of all words"),
    (read_mallet_weights, WEIGHTS.replace("2.01", "-1"), "weights must be positive"),
    (read_mallet_weights, WEIGHTS + "2\tstar\t1\n", "weights of all words in topic 0"),
    (read_mallet_weights, WEIGHTS.replace("1\tstar\t2.01\n", ""), "Line 3 is out of order"),
    (read_mallet_weights, WEIGHTS.replace("1\tgène\t0.01\n", ""), "Lines are missing at the end"),
    (read_mallet_weights, WEIGHTS.replace("gène", ""), "line 2, .* the word is empty"),
    (read_mallet_doc_topics, PAIRS + "2\tc\t-1\t0.6\n", "line 4, .* differ and be >= 0"),
    (read_mallet_doc_topics, "", "no line has a document's number"),
    (read_mallet_doc_topics, PAIRS.replace("\t", " "), "separated by tabs"),
    (read_mallet_doc_topics, DENSE + "7\n8\n9\n", "lacks the name of its document"),
    (read_mallet_doc_topics, '"","V1"\n"1",0.5\n', "separated by tabs"),
    (read_mallet_doc_topics, "0\ta\t1.5\t-0.5\n", "line 1, .* proportions >= 0"),
    (read_mallet_doc_topics, "0\ta\t0\t1.5\t1\t-0.5\n", "line 1, .* must be >= 0"),
    (read_mallet_state, STATE + "1\tb.txt\t1\t0\tstar\t1", "line 8 must have six parts"),
    (read_mallet_doc_topics, DENSE.replace("0.75", "0.5"), "proportions >= 0 that sum to 1"),
    (read_mallet_doc_topics, PAIRS.replace("0.75", "0.8"), "sum to at most 1"),
    (read_mallet_doc_topics, PAIRS.replace("\t1\t0.75", "\t0\t0.75"), "All topics must differ"),
    (read_mallet_weights, WEIGHTS.replace("1\tgène", "1000000000000\tgène"), "the weights of"),
    (read_mallet_topic_keys, "1\t0.5\tstar\n", "begin with the topic numbers 0, 1, 2"),
    (read_mallet_topic_keys, STATE, "cannot be read as topic keys of MALLET: "),
)
def test_wrong_files(tmp_path, read, text, message):
    path = tmp_path / "mallet.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert repr(str(path)) in str(caught.value)


IN_PAIRS = "#doc name topic proportion\n0\ta\t0\t.7\t1\t.3\n1\tb\t0\t.71\t.3\n2\tc\t1\t.9\t0\t.1\n"
BROKEN = {
    IN_PAIRS: (read_mallet_doc_topics, "line 3, '1 b 0 .71 .3'"),
    "0\ta\t.7\t.3\n1\t.4\t.6\n2\tc\t.1\t.9\n": (read_mallet_doc_topics, "line 2, '1 .4 .6'"),
    "0\tstar\t2\n0\tmoon\t1\t7\n": (read_mallet_weights, "line 2, '0 moon 1 7'"),
    "0\t.1\tstar\n1\t.1\n": (read_mallet_topic_keys, "line 2, '1 .1'"),
    "0\tnan\tstar\n": (read_mallet_topic_keys, "line 1, '0 nan star'"),
    "0\tstar\t2\n0\tmoon\n": (read_mallet_weights, "line 2, '0 moon'"),
    "0\t.1\tstar moon\n1 .1\tbread\n": (read_mallet_topic_keys, "line 2, '1 .1 bread'"),
}


@pytest.mark.parametrize("text", BROKEN)
def test_the_line_with_a_missing_cell_is_named(text, tmp_path):
    read, message = BROKEN[text]
    (tmp_path / "x").write_text(text)
    refused(message, read, tmp_path / "x")


@cases(
    "read, text, line",
    (read_mallet_state, STATE, 7),
    (read_mallet_weights, WEIGHTS, 2),
    (read_mallet_topic_keys, KEYS, 1),
    (read_mallet_doc_topics, DENSE.replace("b", "café"), 2),
)
def test_a_line_that_is_not_in_utf_8_is_named(read, text, line, tmp_path):
    (tmp_path / "x").write_text(text, encoding="cp1252")
    refused(f"line {line} is not in UTF-8.*-Dfile.encoding=UTF-8", read, tmp_path / "x")


def test_a_byte_order_mark_is_skipped(tmp_path):
    for read, text in ((read_mallet_state, STATE), (read_mallet_topic_keys, KEYS)):
        (tmp_path / "x").write_text(text, encoding="utf-8-sig")
        read(tmp_path / "x")
