"""Which words stand for a topic, and labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi.topics import words
from annealvi.topics.words import Labels
from tests.asserts import refused
from tests.marks import cases


@pytest.fixture
def topics():
    topics = np.random.default_rng(0).gamma(0.3, size=(4, 30))
    topics[0, :25] = 0
    return topics / topics.sum(axis=1, keepdims=True)


def test_a_topic_that_no_document_has(topics):
    topics[:, :5] = [[0.1], [0], [0], [0]]
    p = words.shares_of_words(topics, np.array([0, 0.5, 0.25, 0.25]))
    assert np.all(p > 0)
    assert np.all(np.isfinite(words.relevance_of(topics[0], p, 0)[:5]))


def test_exclusivity_lies_between_all_and_none():
    assert_allclose(words.exclusivity_of(np.eye(3)[:, :3], n=1), 1)
    assert_allclose(words.exclusivity_of(np.full((4, 5), 0.2), n=3), 0.25)
    topics = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    assert_allclose(words.exclusivity_of(topics, n=2), [(0.75 + 0.5) / 2, (5 / 6 + 0.5) / 2])
    topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]])
    assert_allclose(words.exclusivity_of(topics, 4), (1 + 0.5) / 4)  # a word that no topic has


@cases(
    "given, kept",
    (["group", "groups", "finite", "finitely"], ["group", "finite"]),
    (["query", "queries", "quantum"], ["query", "quantum"]),
    (["tree", "trees", "trend", "art", "arts"], ["tree", "trend", "art", "arts"]),
)
def test_a_label_does_not_say_a_word_twice(given, kept):
    assert words.label_words(given) == kept


def test_each_topic_has_a_label_of_its_own():
    own = ["moon", "orbit", "star", "comet"]
    labels = words.labels_of([own, own, own, own, ["goal"], ["goal"], []], {})
    assert labels[:3] == ["moon, orbit, star", "moon, orbit, star, comet", "moon, orbit, star (2)"]
    assert labels[3:] == ["moon, orbit, star (3)", "goal", "goal (2)", ""]
    given = {3: "moon, orbit, star", 2: "sport"}  # which are not made twice
    found = words.labels_of([own, own, ["goal"], own], given)
    assert found == [*labels[1:3], "sport", "moon, orbit, star"]


@pytest.fixture
def labels():
    return Labels(["a", "b", "c"])


def test_labels_are_a_sequence_that_can_be_changed(labels):
    labels[1] = "space"
    labels.change({"c": "goal", 0: "x"})
    assert labels == ["x", "space", "goal"] and labels[-1] == "goal" and len(labels) == 3
    labels.change(("a", "b", "c"))
    assert labels == Labels(["a", "b", "c"]) and repr(labels) == "['a', 'b', 'c']"
    labels.change({0: "b", 1: "a"})  # two change places
    assert list(labels) == ["b", "a", "c"]


@cases(
    "given, message",
    (["a", "b"], r"'labels' .* one entry for each of the 3 topics. Got '2 entries"),
    *(({1: wrong}, rf"'labels\[1\]' .* differs from all other .* Got {wrong!r}") for wrong in "a "),
    ({1: 3}, r"'labels\[1\]' .* must be a non-empty str.* Got 3"),
    *(({k: "e"}, f"'topic' .* 0 to 2 or the label .* Got {k!r}") for k in (3, "d", -1, True)),
    *((wrong, "'labels' .* must be a sequence") for wrong in ("abc", 3, None, np.array(1), {"a"})),
)
def test_labels_that_cannot_be(labels, given, message):
    refused(message, labels.change, given)
    assert labels == ["a", "b", "c"]


def test_frex_is_the_harmonic_mean_of_two_ranks(topics):
    topics = topics[1:]
    exclusivity = topics[2] / topics.sum(axis=0)
    ranks = [[(values <= value).mean() for value in values] for values in (topics[2], exclusivity)]
    expected = [1 / (0.3 / a + 0.7 / b) for a, b in zip(*ranks, strict=True)]
    assert_allclose(words.frex_of(topics, 2, 0.3), expected)


@pytest.mark.oracle
@pytest.mark.parametrize("weight", [0.5, 0.2, 1.0])
def test_frex_is_that_of_topica(topics, weight):
    topica = pytest.importorskip("topica")
    topics = topics[1:]
    names = [str(word) for word in range(30)]
    theirs = dict(topica.frex(topics, names, w=weight, n=30)[1])
    assert_allclose(words.frex_of(topics, 1, weight), [theirs[name] for name in names])
