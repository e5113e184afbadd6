"""One document, its words in the colours of topics, and MALLET's state; what notebooks show."""

import base64
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi.corpus import read_mallet_state
from annealvi.plot.notebook import marked
from annealvi.topics import choose_n_topics, describe
from tests.asserts import refused
from tests.topics.models import COMPONENTS, COUNTS, SHARES, WORDS, Given, fitted

TEXTS = ["Orbits, an ORBIT <script>alert(1)</script> & the comet", "goal", "moon", "team", ""]


@pytest.fixture
def summary():
    return describe(Given(), COUNTS, WORDS, texts=TEXTS, titles=["<b>sky", "b", "c", "d", "e"])


def test_the_words_of_a_document(summary):
    document = summary.document(0)
    assert (document.number, document.title, document.text) == (0, "<b>sky", TEXTS[0])
    assert document.words.tolist() == [w for w, n in zip(WORDS, COUNTS[0], strict=True) if n]
    topics = COMPONENTS / COMPONENTS.sum(axis=1, keepdims=True)
    joint = SHARES[0][:, None] * topics[:, COUNTS[0] > 0]
    assert_allclose(document.responsibilities, (joint / joint.sum(axis=0)).T)
    assert_array_equal(document.counts, COUNTS[0][COUNTS[0] > 0])
    assert_array_equal(document.shares, SHARES[0])
    assert repr(document) == "<TopicDocument 0 with 16 words>"
    assert len(summary.document(4).words) == 0
    for number in (-1, 5, "0", True, 1.0):
        refused("'number' parameter .* from 0 to 4", summary.document, number)


def test_a_document_in_a_notebook(summary):
    html = summary.document(0)._repr_html_()
    assert "<script" not in html and "&lt;b&gt;sky" in html and "&lt;script&gt;" in html
    words = re.findall(r"<mark[^>]*>(.*?)</mark>", html)
    assert words == ["Orbits", "ORBIT", "the", "comet"]
    assert 'title="0 orbit' in html and "80%" in html
    assert "<mark" not in summary.document(4)._repr_html_()
    counts_only = describe(Given(), COUNTS, WORDS).document(0)._repr_html_()
    assert "Document 0" in counts_only and ">orbits</mark>" in counts_only


def test_words_in_a_text():
    pieces = marked("Monte-Carlo and café, 北京大学", ["monte carlo", "café", "北京"])
    assert [piece for piece, number in pieces if number is not None] == [
        "Monte-Carlo",
        "café",
        "北京",
    ]
    assert "".join(piece for piece, _ in pieces) == "Monte-Carlo and café, 北京大学"
    assert marked("stars", ["star"]) == [("stars", None)]


def images(html):
    return [base64.b64decode(data) for data in re.findall(r"svg\+xml;base64,([^\"]+)", html)]


def test_a_summary_a_choice_and_effects_in_a_notebook(monkeypatch):
    pytest.importorskip("formulaic")
    lda, X = fitted()
    summary = describe(lda, X)
    effects = summary.effects("~ half", {"half": [0, 1] * 40})
    choice = choose_n_topics(X, (2, 3), n_runs=1, random_state=0)
    for shown in (summary, effects, choice):
        html = shown._repr_html_()
        (svg,) = images(html)
        assert b"<svg" in svg and b"<script" not in svg and "<script" not in html
        assert "<table" in html and shown._repr_html_() == html
    assert summary.labels[0] in summary._repr_html_()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<table" in summary._repr_html_() and not images(summary._repr_html_())


def test_a_state_of_mallet_that_is_read_again(summary, tmp_path):
    for name in ("state", "state.gz"):
        summary.write_mallet_state(tmp_path / name)
        state = read_mallet_state(tmp_path / name)
        assert_array_equal(state.data.toarray()[:, : len(WORDS)], COUNTS[:4])
        assert state.feature_names.tolist() == WORDS.tolist()
    assert state.components.sum() == pytest.approx(COUNTS.sum() + 0.01 * 3 * 8)
    lda, X = fitted()
    described = describe(lda, X)
    described.write_mallet_state(tmp_path / "lda")
    state = read_mallet_state(tmp_path / "lda")
    assert_allclose(state.doc_topic_prior, np.broadcast_to(lda.doc_topic_prior_, 4))
    assert np.corrcoef(state.doc_topic.ravel(), described.shares.ravel())[0, 1] > 0.95
    before = (tmp_path / "lda").read_bytes()
    described.write_mallet_state(tmp_path / "lda", random_state=0)
    assert (tmp_path / "lda").read_bytes() == before  # the model's random state is 0
    refused("integer counts", describe(Given(), COUNTS / 3).write_mallet_state, tmp_path / "no")
    refused("No such file", summary.write_mallet_state, tmp_path / "no" / "no", error=OSError)
