"""Labels of topics that somebody has set survive files, edits and more texts."""

import copy
import pickle

import pytest

import annealvi
from annealvi import TemperedLDA, TopicModel
from annealvi.exceptions import BadParameter
from annealvi.topics import describe, drop_topics, merge_topics, reduce_topics, refine_topics
from annealvi.topics.words import labels_of
from tests.asserts import refused

from .corpus import make_texts

TEXTS = make_texts(40)


@pytest.fixture
def model():
    lda = TemperedLDA(max_iter=2)
    model = TopicModel(4, lda=lda, seed_words={"sea": ["ship"]}, random_state=0).fit(TEXTS)
    return model.set_labels({1: "food", 3: "the sky"})


def test_labels_are_shown(model):
    summary = describe(model, TEXTS)
    assert [summary.labels[k] for k in (0, 1, 3)] == ["sea", "food", "the sky"]
    assert summary.labels[2].count(",") == 2  # made of words
    assert summary.table.label.tolist() == list(summary.labels)
    assert summary.words("food") == summary.words(1)


def test_a_summary_names_the_topics_of_its_model(model, tmp_path):
    summary = model.describe(TEXTS)
    summary.labels[2] = "rest"
    summary.labels = {"sea": "ocean"}
    annealvi.save(model, tmp_path / "m")
    names = ["ocean", "food", "rest", "the sky"]
    for one in (model, annealvi.load(tmp_path / "m")):
        assert describe(one, TEXTS).labels == names and one.seed_topics_ == {"sea": 0}
    model.describe(TEXTS).labels = names[::-1]
    assert model.topic_labels_ == dict(enumerate(names[::-1])) and summary.labels == names
    with pytest.raises(BadParameter, match=r"'labels\[2\]'"):
        summary.labels[1] = "rest"
    copy.deepcopy(summary).labels[2] = pickle.loads(pickle.dumps(summary)).labels[3] = "a copy's"
    assert summary.labels == names and "a copy's" not in model.topic_labels_.values()


def test_a_summary_does_not_name_the_topics_of_a_later_fit(model):
    summary = model.describe(TEXTS)
    model.fit(TEXTS[:30])
    with pytest.warns(UserWarning, match="its model was fitted again"):
        summary.labels[2] = "rest"
    assert summary.labels[2] == "rest" and model.topic_labels_ == {}
    of_one = TopicModel(2, random_state=0).fit(TEXTS).describe(TEXTS)
    of_one.labels[0] = "alone"  # whose model is gone
    assert of_one.labels[0] == "alone"


def test_some_labels_are_set_and_the_others_stay(model):
    model.set_labels({3: "heaven"})
    assert model.topic_labels_ == {1: "food", 3: "heaven"}
    model.set_labels({0: "ocean"})
    assert describe(model, TEXTS).labels[0] == "ocean" and model.seed_topics_ == {"sea": 0}


def test_a_label_may_be_what_another_topic_would_be_called(model):
    words = describe(model, TEXTS).labels[2]
    model.set_labels({1: words})
    labels = describe(model, TEXTS).labels
    assert labels[1] == words and labels[2] != words


def named(model):
    """The topics with a name of seed words or a label."""
    return {k: name for name, k in model.seed_topics_.items()} | model.topic_labels_


def test_edits_keep_the_labels_of_the_topics_that_stay(model):
    assert named(merge_topics(model, [[1, 2]])) == {0: "sea", 2: "the sky"}
    assert named(merge_topics(model, [[0, 2]])) == {0: "sea", 1: "food", 2: "the sky"}
    assert named(drop_topics(model, [0, 1])) == {1: "the sky"}
    assert named(refine_topics(model, TEXTS, max_iter=1)) == named(model)
    reduced = reduce_topics(model, 3)
    for k, name in reduced.topic_labels_.items():
        old = next(j for j, label in model.topic_labels_.items() if label == name)
        assert (reduced.components_[k] == model.components_[old]).all()
    assert model.topic_labels_ == {1: "food", 3: "the sky"}


def test_more_texts_keep_labels_and_a_new_fit_has_none(model):
    model.partial_fit(TEXTS)
    assert model.topic_labels_ == {1: "food", 3: "the sky"}
    model.fit(TEXTS)
    assert model.topic_labels_ == {}
    assert TopicModel.from_parts(model.vectorizer_, model.lda_).topic_labels_ == {}


def test_bad_labels(model):
    bad = {4: "x"}, {"food": "x"}, {1: ""}, {1: 3}, {1: "sea"}, {2: "food"}, ["a"], "abcd", 3
    for labels in bad:
        refused("labels", model.set_labels, labels, error=BadParameter)
    assert model.topic_labels_ == {1: "food", 3: "the sky"}


@pytest.mark.parametrize("label", ["topic", "certainty", "n_documents", "label", "group", "period"])
def test_labels_differ_from_columns(label):
    model = TopicModel(2, random_state=0).fit(["star moon", "bread jam"] * 10)
    refused("differs from all other labels and is not in", model.set_labels, {0: label})
    summary = describe(model, ["star moon", "bread jam"] * 10)
    refused("differs from all other labels and is not in", summary.labels.change, {1: label})


def test_a_word_that_is_a_column_is_no_label():
    assert labels_of([["topic"], ["moon"]], {}) == ["topic (2)", "moon"]
