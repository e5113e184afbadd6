"""Topics at several levels, topics that occur together, names, and the comparison of two models."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi import TemperedLDA, TopicModel
from annealvi.datasets import make_topic_corpus
from annealvi.plot import plot_topics_together
from annealvi.topics import (
    compare_topics,
    describe,
    drop_topics,
    merge_topics,
    reduce_topics,
    split_topic,
)
from tests.asserts import refused
from tests.topics.corpus import make_texts
from tests.topics.models import COUNTS, WORDS, Given, fitted


@pytest.fixture(scope="module")
def summary():
    lda, X = fitted()
    return describe(lda, X)


def test_levels_are_nested_and_those_of_reduce_topics(summary):
    lda, X = fitted()
    table = summary.levels([3, 2, 4])
    assert list(table) == [
        *("topic_2", "label_2", "topic_3", "label_3", "topic_4", "label_4", "share", "label")
    ]
    assert table.groupby("topic_3")["topic_2"].nunique().max() == 1
    assert table["topic_2"].is_monotonic_increasing and sorted(table.index) == [0, 1, 2, 3]
    assert (table["label_4"] == table["label"]).all()
    two = reduce_topics(lda, 2, X).components_
    weights = summary.topics * summary.topic_shares[:, np.newaxis]
    for number, group in table.groupby("topic_2"):
        merged = weights[group.index].sum(axis=0)
        own = two[number] / two[number].sum()
        assert_allclose(merged / merged.sum(), own, atol=0.02)
    for wrong in ([0], [5], [2, 2], "2", 1.5):
        refused("'n_topics' parameter", summary.levels, wrong)


def test_topics_that_occur_together():
    rng = np.random.RandomState(0)
    shares = rng.dirichlet([0.3, 0.3, 0.3, 3.0], 400)
    shares[:, 1] = shares[:, 0] * rng.uniform(0.8, 1.2, 400)  # the first two occur together
    shares /= shares.sum(axis=1, keepdims=True)
    topics = rng.dirichlet(np.full(50, 0.1), 4)
    X = np.array([rng.multinomial(200, own @ topics) for own in shares])
    summary = describe(Given(topics, shares), X)
    table = summary.together()
    assert " ".join(table) == "topic label other other_label correlation low high"
    assert len(table) == 6 and table.correlation.is_monotonic_decreasing
    first = table.iloc[0]
    assert (first.topic, first.other) == (0, 1) and first.low > 0.8
    truth = np.corrcoef(shares, rowvar=False)
    assert ((table.low < table.correlation) & (table.correlation < table.high)).all()
    assert_allclose(table.correlation, truth[table.topic, table.other], atol=0.1)
    assert table.equals(summary.together())
    assert len(plot_topics_together(summary).get_yticklabels()) == 4
    refused("'n_draws' parameter", summary.together, n_draws=1)
    refused("at least 4 documents", describe(Given(shares=np.eye(3)), COUNTS[:3]).together)


def test_refits_widen_the_intervals_of_correlations():
    X = make_topic_corpus(200, 60, 4, random_state=0).data
    lda = TemperedLDA(4, max_iter=8, random_state=0).fit(X)
    known = describe(lda, X).together().set_index(["topic", "other"])
    refits = describe(lda, X, refits=3).together().set_index(["topic", "other"])
    wider = (refits.high - refits.low - (known.high - known.low)).dropna()
    assert len(wider) and (wider > 0).all()


def test_a_prompt_and_its_answer():
    texts = make_texts()
    model = TopicModel(3, random_state=0).fit([*texts, "ship <b>wave</b> harbour"])
    summary = model.describe(texts)
    text = summary.prompt(n_words=4, n_documents=1)
    for k in range(3):
        assert f"Topic {k} " in text and ", ".join(summary.words(k, 4)) in text
    assert text.count("<document>") == 4  # one is in the instructions
    assert "<document>" not in summary.prompt(n_documents=0).partition("Topic 0")[2]
    names = {str(k): f"name {k}" for k in range(3)}
    summary.labels = f"Here is the JSON:\n```json\n{json.dumps(names)}\n```"
    assert summary.labels == list(names.values()) == list(model.topic_labels_.values())
    for answer in (
        "I do not know.",
        "{1: 2}",
        '["a"]',
        '{"7": "x"}',
        '{"0": "name 1"}',
        '{"a": ""}',
    ):
        refused("'labels|'topic'", setattr, summary, "labels", answer)
    assert summary.labels == list(names.values())


def test_the_beginnings_of_documents_are_in_a_prompt():
    texts = [f"{text} {'paragraph ' * 50}" for text in make_texts()]
    text = TopicModel(3, random_state=0).fit(texts).describe(texts).prompt()
    documents = re.findall("<document>(.*)</document>", text)
    assert [len(document) for document in documents[-9:]] == [300] * 9


def test_titles_are_in_a_prompt():
    summary = describe(Given(), COUNTS, WORDS, titles=["a  title", "b", "c", "d", "e"])
    assert "<document>a title</document>" in summary.prompt()


def test_two_models_are_compared():
    lda, X = fitted()
    same = compare_topics(lda, lda)
    assert same["kind"].tolist() == ["matched"] * 4 and (same.topics == same.others).all()
    assert same.attrs == {"stability": pytest.approx(1), "n_words": 60}
    merged = compare_topics(lda, merge_topics(lda, [[1, 3]]))
    row = merged.iloc[-1]
    assert (row.kind, row.topics, row.others) == ("merged", [1, 3], [1]) and row.cosine > 0.99
    parts = compare_topics(lda, split_topic(lda, 2, X)).iloc[-1]
    assert (parts.kind, parts.topics, parts.others) == ("split", [2], [2, 4])
    fewer = compare_topics(lda, drop_topics(lda, 3))
    assert fewer["kind"].tolist() == ["matched"] * 3 + ["vanished"] and fewer.iloc[-1].topics == [3]
    more = compare_topics(drop_topics(lda, 3), lda)
    assert more.iloc[-1].kind == "new" and more.iloc[-1].others == [3]
    assert more.iloc[-1].label == "" and more.iloc[-1].other_label


def test_models_of_different_words():
    first, second = (TopicModel(3, random_state=0).fit(make_texts(seed=seed)) for seed in (0, 1))
    assert (compare_topics(first, second)["kind"] == "matched").all()
    other = TopicModel(2, random_state=0).fit(["red blue", "green yellow"] * 5)
    refused("words in common", compare_topics, first, other)
    refused("'other'", compare_topics, first, 3, error=TypeError)
