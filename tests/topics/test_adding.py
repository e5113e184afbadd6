"""New topics, and topics that are split."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics.pairwise import cosine_similarity

from annealvi import TemperedLDA, TopicModel
from annealvi.topics import add_topics, split_topic
from tests.asserts import refused
from tests.topics.corpus import WORDS, make_texts
from tests.topics.models import fitted

GARDEN = ["soil", "seed", "rose", "weed", "hedge", "lawn", "spade", "tulip"]


@pytest.fixture(scope="module")
def model():
    texts = [*make_texts(), *[" ".join(GARDEN)] * 2]
    model = TopicModel(3, stop_words=None, random_state=0).fit(texts)
    return model.set_labels({0: "first", 2: "last"})


def garden(n, rng):
    return [" ".join(rng.choice(GARDEN, 15)) for _ in range(n)]


def test_new_documents_bring_a_topic_and_old_topics_stay(model):
    before = model.components_.copy()
    texts = garden(40, np.random.RandomState(0)) + make_texts(30, seed=1)
    larger = add_topics(model, texts)
    assert set(larger.top_words(6)[-1]) <= set(GARDEN)
    assert larger.topic_labels_ == model.topic_labels_ and larger.n_topics == 4
    kept = cosine_similarity(before, larger.components_[:3]).diagonal()
    assert kept.min() > 0.95
    assert (larger.transform(texts)[:40].argmax(axis=1) == 3).all()
    assert_array_equal(model.components_, before)
    assert larger.lda_.topic_word_prior_ == model.lda_.topic_word_prior_
    assert larger.lda_.topic_word_prior is None
    again = add_topics(model, texts, 2)
    assert again.transform(texts[:2]).shape == (2, 5)


def test_counts_and_what_cannot_be_added(model):
    lda, X = fitted()
    assert add_topics(lda, X, 2, max_iter=3).transform(X).shape == (80, 6)
    assert isinstance(add_topics(lda, X, max_iter=1), TemperedLDA)
    for parameter in ({"n": 0}, {"n": 1.5}, {"max_iter": 0}):
        refused(f"'{next(iter(parameter))}' parameter", add_topics, lda, X, **parameter)
    refused("expecting 60 features|60 features", add_topics, lda, X[:, :5])
    refused("fitted TemperedLDA or TopicModel", add_topics, 3, X, error=TypeError)
    refused("documents with words of the model", add_topics, model, ["zzz", "yyy"])


def test_a_topic_is_split_and_the_others_stay(model):
    texts = make_texts()
    one = TopicModel(2, stop_words=None, random_state=1).fit(texts).set_labels({0: "a", 1: "b"})
    names = [set(words) for words in WORDS.values()]
    of_two = [
        k for k in (0, 1) if sum(len(own & set(one.top_words(16)[k])) > 3 for own in names) > 1
    ]
    k = of_two[0]
    parts = split_topic(one, "ab"[k], texts)
    assert parts.n_topics == 3 and parts.topic_labels_ == {0: "a", 1: "b"}
    assert_array_equal(parts.components_[1 - k], one.components_[1 - k])
    tops = [set(parts.top_words(5)[topic]) for topic in (k, 2)]
    assert all(any(top <= own for own in names) for top in tops)
    assert parts.components_[[k, 2]].sum() == pytest.approx(one.components_[k].sum())
    assert parts.components_[k].sum() >= parts.components_[2].sum()
    refused("'topic'", split_topic, one, "c", texts)
    refused("'n' parameter", split_topic, one, 0, texts, n=1)
    refused("at least 50 documents that contain words", split_topic, one, 0, texts, n=50)
