"""Files and lists as other programs and people make them."""

import gzip

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from annealvi import TemperedFMM, TemperedLDA, TemperedMultinomialMixture, TopicModel
from annealvi.corpus import (
    from_gensim,
    read_lda_c,
    read_mallet_doc_topics,
    read_mallet_state,
    read_uci,
    stream_lda_c,
)
from annealvi.metrics import document_completion, topic_coherence, topic_diversity
from tests.asserts import refused
from tests.marks import cases

WORDS = ["äpfel", "хлеб", "云", "drum"]
UCI, LDA_C = "2\n4\n5\n1 1 3\n1 2 1\n2 2 2\n2 3 1\n2 4 4\n", "2 0:3 1:1\n3 1:2 2:1 3:4\n"


def files(folder, reader, vocabulary, packed=False):
    counts, words = folder / "counts", folder / "vocab"
    counts.write_text(UCI if reader is read_uci else LDA_C)
    content = vocabulary if isinstance(vocabulary, bytes) else vocabulary.encode()
    words.write_bytes(gzip.compress(content) if packed else content)
    return reader(counts, words)


@pytest.mark.parametrize("reader", [read_uci, read_lda_c])
@pytest.mark.parametrize("packed", [False, True])
def test_vocabularies_with_a_mark_and_other_ends_of_lines(reader, packed, tmp_path):
    lines = "\n".join(WORDS)
    for text in (lines, "\r\n".join(WORDS) + "\r\n", "\ufeff" + lines + "\n\n"):
        assert files(tmp_path, reader, text, packed).feature_names.tolist() == WORDS


@pytest.mark.parametrize("reader", [read_uci, read_lda_c])
@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_a_line_feed_ends_a_word(reader, sign, tmp_path):
    words = [WORDS[0], f"bre{sign}ad", *WORDS[2:]]
    assert files(tmp_path, reader, "\n".join(words)).feature_names.tolist() == words


@pytest.mark.parametrize("head", ["word", "4", "", "term", "# words", "слово"])
def test_a_headline_of_the_vocabulary(head, tmp_path):
    text = "\n".join([head, *WORDS])
    words = "'.*vocab' .* it has 5 words, but the counts have 4.* header"
    refused(words, files, tmp_path, read_uci, text)


LINES = {"2 5:1 0:2\n": [2, 0, 0, 0, 0, 1], "3 4:1 1:2 3:7 \n": [0, 2, 0, 7, 1, 0]}
LINES |= {
    "1 2:5\n": [0, 0, 5, 0, 0, 0],
    "0\n": [0] * 6,
    "4 5:1 3:1 2:1 0:1\r\n": [1, 0, 1, 1, 0, 1],
}


@pytest.mark.parametrize("line", LINES)
def test_lda_c_in_any_order(line, tmp_path):
    path = tmp_path / "c.ldac"
    path.write_bytes(("2 0:1 5:1\n" + line).encode())
    assert read_lda_c(path).data.toarray()[1].tolist() == LINES[line]
    (streamed,) = stream_lda_c(path, n_words=6)
    assert streamed.toarray()[1].tolist() == LINES[line]
    path.write_text("2 5:1 5:2\n")
    refused("c.ldac' cannot be read as LDA-C counts", read_lda_c, path)


SINGLE = [(0, 2), (3, 1), (5, 4)]
ONE_DOCUMENT = [SINGLE, tuple(SINGLE), [[*pair] for pair in SINGLE], np.array(SINGLE), iter(SINGLE)]
MALFORMED = [[(0, 1, 2), (3, 4, 5)], [0, 1, 2, 3], np.arange(4), [[0, 1, 2, 3]], [0.0, 1.0], ["ab"]]
MALFORMED += [[(0, 1), (2,)], [("a", 1)], 3]


@pytest.mark.parametrize("corpus", ONE_DOCUMENT, ids=range(5))
def test_a_single_document_of_gensim(corpus):
    refused("for document 0. Put a single document in a list", from_gensim, corpus)


@pytest.mark.parametrize("document", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_documents_of_gensim(document):
    refused("must be a list of .id, count.. Got .* for document 1", from_gensim, [SINGLE, document])


@cases("corpus", [SINGLE, [(1, 1)]] * 4, [SINGLE[:2], SINGLE[1:]] * 6, [[], SINGLE])
def test_a_corpus_of_gensim_in_the_place_of_counts(corpus):
    fitted = TemperedLDA(2, max_iter=1).fit(np.ones((4, 6)))
    for model in (TemperedLDA(2), TemperedMultinomialMixture(2), TemperedFMM(2)):
        refused(r"X must be a matrix .*from_gensim\(X\)", model.fit, corpus)
    for method in (fitted.transform, fitted.perplexity, fitted.partial_fit, fitted.score):
        refused(r"X must be a matrix .*from_gensim\(X\)", method, corpus)


HEAD = "#doc name topic proportion ...\n"
THRESHOLD = {
    "0\ta\t0\t0.62\t2\t0.3\n1\tb\t1\t0.95\n2\tc\t2\t0.8\t0\t0.15\n": [
        [0.62, 0, 0.3],
        [0, 0.95, 0],
        [0.15, 0, 0.8],
    ],
    "0\ta\t0\t0.9\n1\tb\t2\t0.8\n": [[0.9, 0, 0], [0, 0, 0.8]],
    "0\ta\n1\tb\t1\t0.8\n": [[0, 0], [0, 0.8]],
}


@pytest.mark.parametrize("rows", THRESHOLD)
def test_topics_of_mallet_above_a_threshold(rows, tmp_path):
    (tmp_path / "t").write_text(HEAD + rows)
    with pytest.warns(UserWarning, match="written with a threshold"):
        assert_array_equal(read_mallet_doc_topics(tmp_path / "t").doc_topic, THRESHOLD[rows])


def test_one_topic_of_each_document_is_no_pair_of_shares(tmp_path):
    (tmp_path / "t").write_text(HEAD + "0\ta\t0\t1.0\n1\tb\t0\t1.0\n")
    assert read_mallet_doc_topics(tmp_path / "t").doc_topic.tolist() == [[1], [1]]
    (tmp_path / "t").write_text(HEAD + "0\ta\t0.0\t1.0\n1\tb\t1.0\t0.0\n")
    assert read_mallet_doc_topics(tmp_path / "t").doc_topic.tolist() == [[0, 1], [1, 0]]


STATE = "#doc source pos typeindex type topic\n#alpha : 0.5 0.5 \n#beta : 0.01\n"
STATE += "0 a.txt 0 0 star 1\n0 a.txt 1 1 planet 1\n1 b.txt 0 2 bread 0\n"


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n", "  \n"])
def test_a_state_of_mallet_with_blank_lines(end, tmp_path):
    (tmp_path / "s").write_text(STATE + end)
    assert read_mallet_state(tmp_path / "s").data.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("cut", ["1 b", "1", "1 b.txt 1 0"])
def test_a_state_of_mallet_that_is_cut_off(cut, tmp_path):
    (tmp_path / "s").write_text(STATE + cut)
    refused("line 7 must have six parts", read_mallet_state, tmp_path / "s")


TOPICS = [
    np.array([["stars", "moon"]]),
    pd.DataFrame([["stars", "moon"]]),
    [["stars", "moon"], ["bread", "jam"]],
    [["stars"], ["bread", "jam"]],
    [[("stars", 0.2)]],
]


@pytest.mark.parametrize("topics", TOPICS, ids=range(5))
def test_topics_as_words(topics):
    for measure in (
        lambda: topic_coherence(topics, np.ones((3, 4))),
        lambda: topic_diversity(topics),
    ):
        refused("'topics' parameter .* must be a fitted estimator, or .* Got 'stars'", measure)


def test_completion_of_a_model_of_texts():
    texts = ["stars and planets shine", "bread and butter taste"] * 12
    model = TopicModel(2, random_state=0).fit(texts)
    message = "'estimator' .* must be a model of word counts.* `lda_`"
    refused(message, document_completion, model, model.counts(texts))
    refused(
        "Got texts instead. Fit a TopicModel",
        document_completion,
        model.lda_,
        texts,
        error=TypeError,
    )
