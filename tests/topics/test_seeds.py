"""Seed words: what they do to the prior and to the topics, and bad ones."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from annealvi import TemperedLDA, TopicModel
from annealvi.topics.seeds import check_seeds, seeded_prior, seeded_start
from tests.asserts import refused
from tests.marks import cases
from tests.topics.corpus import WORDS, make_texts

X = sparse.csr_matrix([[2, 0, 1], [1, 3, 0]])
COLUMNS = {"a": 0, "b": 1, "c": 2}


def prior(seed_words, base=0.1, n_each=1.0):
    return seeded_prior(seed_words, COLUMNS, X, base, 2, n_each)


def test_a_seed_word_gets_its_number_of_tokens():
    assert_array_equal(prior({"x": ["a", "c"]}), [[1.6, 0.1, 0.6], [0.1, 0.1, 0.1]])
    assert_array_equal(prior({"x": ["a", "a"]}, n_each=2.0)[0], [3.1, 0.1, 0.1])
    assert_array_equal(prior({"x": ["b"], "y": ["b"]})[:, 1], [1.6, 1.6])
    base = np.arange(1.0, 7.0).reshape(2, 3)
    assert_array_equal(prior({"x": ["b"]}, base), base + np.array([[0, 1.5, 0], [0, 0, 0]]))
    assert_array_equal(prior({"x": ["b"]}, [1, 2, 3]), [[1, 3.5, 3], [1, 2, 3]])


def test_words_that_the_corpus_does_not_have():
    with pytest.warns(
        UserWarning, match=r"1 seed words are not in the vocabulary and have no effect: \['d'\]"
    ):
        assert_array_equal(prior({"x": ["b", "d"]})[0], [0.1, 1.6, 0.1])
    message = r"word of the corpus for each topic. Got \{'x': \['d', 'e'\]\}"
    refused(message, prior, {"x": ["d", "e"]})


@pytest.mark.parametrize("base", ["learn", [0.1, 0.2], np.ones((3, 2))])
def test_priors_that_cannot_have_seeds(base):
    message = r"'lda__topic_word_prior' .* with 'seed_words' None, a float or"
    refused(message, prior, {"x": ["a"]}, base)


def test_seeds_are_written_as_the_vectorizer_writes_words():
    seed_words = {"space": ("NASA", "Orbit"), "food": np.array(["Bread"])}
    found = check_seeds(seed_words, 2, CountVectorizer())
    assert found == {"space": ["nasa", "orbit"], "food": ["bread"]}
    assert check_seeds(None, 2, CountVectorizer()) == {}


@cases(
    "seed_words",
    *(["nasa"], {"space": "nasa"}, {"space": ["nasa", None]}, {"space": [b"nasa"]}),
    *({1: ["nasa"]}, {"space": np.array("nasa")}, {"space": 3}, {"space": []}),
)
def test_what_is_refused(seed_words):
    got = re.escape(repr(seed_words))
    message = f"'seed_words' .* must be a dict of names to lists.* Got {got}"
    refused(message, check_seeds, seed_words, 2, CountVectorizer(), error=TypeError)


@cases("name", "n_documents", "topic", "group", " ")
def test_names_of_seed_words_are_labels(name):
    seed_words = {"food": ["bread"], name: ["nasa"]}
    message = rf"seed_words\['{name}'\].* differs from all other labels"
    refused(message, check_seeds, seed_words, 2, CountVectorizer())


def test_more_seeds_than_topics():
    with pytest.raises(ValueError, match=r"'seed_words' .* at most n_topics=2 topics. Got 3"):
        check_seeds({name: ["x"] for name in "abc"}, 2, CountVectorizer())


def test_seeded_topics_are_where_they_are_named():
    """Three topics in each order: without seed words they have an order of their own."""
    texts = make_texts(90)
    for names in (["sea", "space", "kitchen"], ["kitchen", "sea", "space"]):
        seed_words = {name: WORDS[name][:2] for name in names}
        model = TopicModel(3, seed_words=seed_words, random_state=0).fit(texts)
        assert model.seed_topics_ == {name: topic for topic, name in enumerate(names)}
        for name, words in zip(names, model.top_words(8), strict=True):
            assert set(words) == set(WORDS[name])


def test_a_seeded_topic_starts_from_documents_with_its_words():
    start = seeded_start({"x": ["b"]}, COLUMNS, X, 2, random_state=0)
    assert_array_equal(start[0], [6.0, 16.0, 1.0])
    assert np.all(start[1] >= 1) and np.any(start[1] > 1)


def test_a_start_of_the_users_own_stays():
    texts, seed_words = make_texts(), {"sea": ["ship"]}
    ldas = [TemperedLDA(max_iter=1, **given) for given in ({}, {"init": "random"}, {"n_init": 2})]
    model = TopicModel(3, seed_words=seed_words, random_state=0)
    found = [clone(model).set_params(lda=lda).fit(texts) for lda in ldas]
    assert [model.lda_.init for model in found] == ["auto", "random", "auto"]
    assert not np.array_equal(found[0].components_, found[2].components_)


def test_rare_seed_words_stay():
    texts = [*make_texts(), "The lighthouse of the coast", "A ship and a wave"]
    model = TopicModel(3, seed_words={"sea": ["Lighthouse", "ship"]}, random_state=0).fit(texts)
    assert "lighthouse" in model.feature_names_ and "lighthouse" in model.top_words(9)[0]
    assert "lighthouse" not in TopicModel(3, random_state=0).fit(texts).feature_names_


@pytest.mark.parametrize("preset", ["annealvi", "sklearn"])
def test_without_seeds_the_prior_is_that_of_the_recipe(preset):
    lda = TemperedLDA(preset=preset, max_iter=2)
    model = TopicModel(3, lda=lda, seed_words={"sea": ["ship"]}, random_state=0).fit(make_texts())
    plain = TopicModel(3, lda=lda, random_state=0).fit(make_texts())
    column = model.feature_names_.tolist().index("ship")
    eta = model.lda_.topic_word_prior_
    assert eta[0, column] > 10 and np.all(np.delete(eta[0], column) == plain.lda_.topic_word_prior_)
    assert np.all(eta[1:] == plain.lda_.topic_word_prior_)


def test_a_stream_counts_a_block_for_all():
    lda = TemperedLDA(total_samples=120, max_iter=2)
    model = TopicModel(3, lda=lda, seed_words={"sea": ["ship"]}, random_state=0)
    texts = make_texts(60)
    column = sorted({word for words in WORDS.values() for word in words}).index("ship")
    count = sum(text.split().count("ship") for text in texts)
    eta = model.partial_fit(texts).lda_.topic_word_prior_
    assert eta[0, column] == pytest.approx(0.1 + count, abs=0.4)
