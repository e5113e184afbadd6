"""Which topics are weak, and why."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import cosine_similarity

import annealvi
from annealvi import TemperedLDA, TopicModel, load
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import topic_coherence
from annealvi.topics import describe, drop_topics, trust
from annealvi.topics.described import Topics
from tests.topics.corpus import make_texts
from tests.topics.models import COMPONENTS, COUNTS, WORDS, Given, fitted


def wide(rows):
    """With as many columns as words must be for each topic."""
    return np.hstack([rows, np.ones((len(rows), 30 - len(WORDS)), dtype=rows.dtype)])


@pytest.fixture
def summary():
    return describe(Given(wide(COMPONENTS)), wide(COUNTS))


def test_the_table_of_a_model_of_which_little_is_known(summary, monkeypatch):
    monkeypatch.setattr(trust, "N_DOCUMENTS", 0)
    table = summary.trust
    assert (
        " ".join(table) == "label support found_again similarity coherence distinctness weak reason"
    )
    assert table.label.tolist() == list(summary.labels) and table.index.name == "topic"
    assert table[["support", "found_again", "similarity"]].isna().all(axis=None)
    assert_array_equal(table.coherence, summary.coherence)
    assert_allclose(table.distinctness, (summary.similar().distances + 2 * np.eye(3)).min(axis=1))
    assert_array_equal(table.weak, table.reason != "")
    assert_array_equal(table.weak, summary.coherence < trust.LEAST_COHERENCE)
    assert table.weak.any() and not describe(Given(), COUNTS, WORDS).trust.weak.any()


COHERENCE = np.array([0.01, 0.5, 0.5])


def topics_with(support, similarity, **facts):
    return Topics(
        components=wide(COMPONENTS) / wide(COMPONENTS).sum(axis=1, keepdims=True),
        sizes=np.full(3, 1 / 3),
        words=np.array([f"word {n}" for n in range(30)]),
        named={},
        support=np.array(support),
        similarity=np.array(similarity),
        facts=facts,
        random_state=0,
    )


def test_each_reason():
    similarity = [[0.6, 0.71, 0.1], [0.6, 0.71, 0.3]]
    support = [1 / 4, 3 / 4, 0]
    topics = topics_with(support, similarity, settings={"n_init": 4})
    chance = "its words occur together hardly more often than by chance"
    table = trust.trust(topics, COHERENCE, None, 60)
    assert table.reason.tolist() == [
        f"found by 1 of 4 runs; other fits found no similar topic (cosine 0.60); {chance}",
        "",
        "found by none of 4 runs; other fits found no similar topic (cosine 0.20)",
    ]
    assert table.weak.tolist() == [True, False, True]
    topics = topics_with(support, np.empty((0, 3)))
    assert trust.reasons(topics, COHERENCE)[0] == f"found by 25% of the runs; {chance}"
    topics = topics_with(support, np.full((1, 3), 0.71))  # in other fits it is there
    assert trust.reasons(topics, COHERENCE) == [chance, "", ""]


def test_refits_go_before_other_fits():
    similarity = np.array([[0.9, 0.6, 0.8], [0.8, 0.5, 0.9], [0.9, 0.9, 0.4]])
    similarity[:2, 2] = 0.3
    refits = SimpleNamespace(similarity=similarity, found_again=np.array([1, 1 / 3, 0]))
    topics = topics_with(np.ones(3), np.ones((1, 3)))
    table = trust.trust(topics, np.ones(3), refits, 60)
    assert_array_equal(table.similarity, [0.9, 0.6, 0.3])
    assert_array_equal(table.support, 1)  # of the runs of the fit itself
    assert_array_equal(table.found_again, [1, 1 / 3, 0])
    assert table.reason.tolist() == ["", "found by 1 of 3 refits", "found by none of 3 refits"]
    similarity = np.array([[0.9] * 3, [0.498] * 3])
    refits = SimpleNamespace(similarity=similarity, found_again=np.full(3, 0.5))
    assert (
        trust.reasons(topics, np.ones(3), refits)[0] == "found by 1 of 2 refits (similarity 0.699)"
    )


def test_two_topics_of_the_same_words():
    twice = np.vstack([COMPONENTS[0], COMPONENTS[0] * 1.01 + 1, COMPONENTS[1]])
    table = describe(Given(twice), COUNTS, WORDS).trust
    assert table.distinctness[0] < trust.LEAST_DISTINCTNESS < table.distinctness[2]
    assert f"nearly the same words as topic 1 ({table.label[1]})" in table.reason[0]
    assert "nearly" not in table.reason[2]
    # a single topic is distinct
    table = describe(Given(COMPONENTS[:1], np.ones((5, 1))), COUNTS, WORDS).trust
    assert np.isnan(table.distinctness[0]) and "nearly" not in table.reason[0]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_matches_are_the_best_pairs(n):
    rng = np.random.RandomState(n)
    topics, other = rng.rand(3, 6), rng.rand(n, 6)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (topics, other)]
    cosines = np.zeros((3, max(n, 3)))
    cosines[:, :n] = unit[0] @ unit[1].T
    best = max((cosines[range(3), list(own)] for own in permutations(range(max(n, 3)), 3)), key=sum)
    assert_allclose(trust.match(topics, other), best)


def test_refits_fill_support_and_stability():
    lda, X = fitted()
    summary = describe(lda, X, refits=3)
    table = summary.trust
    assert_allclose(table.similarity, np.median(summary.refits.similarity, axis=0))
    assert_allclose(table.found_again, summary.refits.found_again)


def test_another_fit_fills_stability():
    lda, X = fitted()
    other = SimpleNamespace(components_=lda.components_[[2, 0, 3, 1]], transform=lda.transform)
    summary = describe(lda, X, other=other)
    assert_allclose(summary.similarity, np.ones((1, 4)))
    assert_allclose(summary.trust.similarity, 1)
    with pytest.raises(ValueError, match="read-only"):
        summary.similarity[0, 0] = 1


@pytest.mark.slow
def test_auto_fills_stability_and_a_file_keeps_it(tmp_path):
    texts = make_texts(105)
    model = TopicModel("auto", random_state=0).fit(texts)
    K = model.choice_.recommended
    assert model.topic_similarity_.shape == (2, K) and model.choice_.topics is None
    assert_allclose(describe(model, texts).trust.similarity, np.median(model.topic_similarity_, 0))
    assert (model.topic_similarity_.min(axis=0) > 0.9).sum() >= 3  # the planted themes
    annealvi.save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert_array_equal(again.topic_similarity_, model.topic_similarity_)
    assert not hasattr(drop_topics(model, [0]), "topic_similarity_")  # of other topics
    assert not hasattr(again.partial_fit(texts), "topic_similarity_")
    assert not hasattr(model.set_params(n_topics=2).fit(texts), "topic_similarity_")


def test_topics_of_chance_are_marked_and_planted_ones_are_not():
    corpus = make_topic_corpus(600, 400, 8, random_state=1)
    lda = TemperedLDA(16, random_state=0).fit(corpus.data)
    table = describe(lda, corpus.data).trust
    true = cosine_similarity(lda.components_, corpus.topics).max(axis=1) > 0.9
    assert true.sum() >= 8 and not table.reason[true].str.contains("found by|chance").any()
    assert table.weak[~true].mean() > 0.7
    assert_allclose(table.coherence, topic_coherence(lda.components_, corpus.data))
