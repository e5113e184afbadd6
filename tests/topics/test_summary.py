"""What a summary says of topics and documents."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist, squareform

from annealvi import TemperedLDA, TopicModel
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import topic_coherence
from annealvi.topics import describe, words
from annealvi.topics.summary import places
from annealvi.topics.trust import hellinger
from tests.asserts import refused
from tests.marks import cases
from tests.topics.models import COMPONENTS, COUNTS, SHARES, WORDS, Given, fitted

TITLES = ["sky", "match", "night", "both", "nothing"]


@pytest.fixture
def summary():
    return describe(Given(), COUNTS, WORDS, titles=TITLES)


def test_what_is_held(summary):
    assert_allclose(summary.topics.sum(axis=1), 1)
    assert_array_equal(summary.lengths, COUNTS.sum(axis=1))
    tokens = summary.lengths @ SHARES
    assert_allclose(summary.topic_shares, tokens / tokens.sum())
    assert_allclose(summary.word_shares, summary.topic_shares @ summary.topics)
    assert summary.titles == TITLES and summary.texts is None and summary.history is None
    assert repr(summary) == "<TopicSummary of 3 topics in 5 documents, 8 words>"
    with pytest.raises(ValueError, match="read-only"):
        summary.topics[0, 0] = 1


def test_words_by_relevance(summary):
    assert summary.words(0, 3, relevance=1) == ["orbit", "the", "comet"]  # with "orbits"
    assert summary.words(0, 3) == ["orbit", "the", "comet"]
    assert summary.words(1, 100, relevance=0)[:2] == ["goal", "team"]
    assert len(summary.words(1, 100)) == 6  # "rare" has no weight there
    assert summary.words(1, 10, relevance=summary.relevance) == summary.words(1)


def test_weights_are_those_that_rank(summary):
    for weight in (0, 0.3, 1):
        frame = summary.weights(0, 4, relevance=weight)
        assert frame.columns.tolist() == ["word", "probability", "lift", "relevance"]
        assert frame.word.tolist() == summary.words(0, 4, relevance=weight)
        columns = [WORDS.tolist().index(word) for word in frame.word]
        orbits = np.where(np.isin(WORDS, ["orbit"]), COMPONENTS[0][2], 0)  # added to "orbit"
        folded = (COMPONENTS[0] + orbits) / COMPONENTS[0].sum()
        assert_allclose(frame.probability, folded[columns])
        assert_allclose(frame.lift, frame.probability / summary.folded_word_shares[columns])
        relevance = weight * np.log(frame.probability) + (1 - weight) * np.log(frame.lift)
        assert_allclose(frame.relevance, relevance)


def test_words_by_frex(summary):
    assert summary.frex(0, 3) == ["orbit", "orbits", "the"]  # ranks 7 and 7, 6 and 6, 8 and 4
    assert summary.frex(0, 3, weight=1) == ["the", "orbit", "orbits"]  # by probability
    exclusive = WORDS[np.argsort(-(summary.topics[1] / summary.topics.sum(axis=0)), kind="stable")]
    assert summary.frex(1, 4, weight=0) == exclusive[:4].tolist()
    assert len(summary.frex(1, 100)) == 7  # "rare" has no weight there
    refused("'weight' parameter", summary.frex, 0, weight=1.5)


def test_the_table(summary):
    table = summary.table
    assert " ".join(table) == "share documents label words coherence exclusivity certainty"
    assert table.index.tolist() == [0, 1, 2] and table.index.name == "topic"
    assert table["words"][1].startswith("goal, team, ")
    assert_allclose(table.coherence, topic_coherence(COMPONENTS, COUNTS, n_words=8))
    assert_allclose(table.exclusivity, words.exclusivity_of(summary.topics))
    tokens = summary.lengths[:, None] * SHARES
    assert_allclose(table.certainty, (tokens * SHARES).sum(axis=0) / tokens.sum(axis=0))
    assert_allclose(table.share, summary.topic_shares)


def test_labels_are_shown_everywhere(summary):
    assert summary.labels[0] == "orbit, the, comet"  # without "orbits"
    summary.labels[0] = "space"
    summary.labels = {"space": "sky", 1: "sport"}
    summary.labels = [*summary.labels[:2], "night"]
    assert summary.table.label.tolist() == ["sky", "sport", "night"]
    assert summary.map().label.tolist() == ["sky", "sport", "night"]
    for frame in (summary.by_group(list("aabba")), summary.over_time([2001] * 5)):
        assert frame.columns.tolist() == ["n_documents", "sky", "sport", "night"]
    assert summary.words("sport") == summary.words(1)
    assert_array_equal(summary.documents("sport").index, summary.documents(1).index)
    refused("Got 'space' instead", summary.words, "space")


def test_documents_of_a_topic(summary):
    frame = summary.documents(0, 3)
    assert frame.index.tolist() == [0, 3, 2] and frame.index.name == "document"
    assert_allclose(frame.share, [0.8, 0.5, 0.2])
    assert frame.tokens.tolist() == [16, 4, 13] and frame.title.tolist() == ["sky", "both", "night"]
    assert summary.documents(0, 100).index.tolist() == [0, 3, 2, 1]  # the empty one is left out
    alike = describe(Given(shares=np.full((5, 3), 1 / 3)), COUNTS / 2).documents(1, 4)
    assert alike.tokens.tolist() == [8, 7.5, 6.5, 2] and "title" not in alike  # the longest first
    assert frame.tokens.dtype == np.int64 and alike.tokens.dtype == np.float64


def test_equal_documents_are_shown_once():
    texts = ["moon", "goal", "moon", "moon", ""]
    for titles, shown in ((None, [0, 1]), (TITLES, [0, 3, 2, 1])):
        summary = describe(Given(), COUNTS, texts=texts, titles=titles)
        assert summary.documents(0, 5).index.tolist() == shown


def test_odd_documents(summary):
    frame = summary.outliers(2)
    assert frame.columns.tolist() == ["log_likelihood", "tokens", "title"]
    assert frame.log_likelihood.is_monotonic_increasing and 4 not in frame.index
    assert 3 not in summary.outliers(10).index  # of 4 words
    assert 3 in summary.outliers(10, min_tokens=0).index
    assert len(describe(Given(), np.minimum(COUNTS, 1)).outliers()) >= 2  # all of them are short
    p = SHARES @ summary.topics
    with np.errstate(invalid="ignore"):
        means = np.where(COUNTS, COUNTS * np.log(p), 0).sum(axis=1) / COUNTS.sum(axis=1)
    frame = summary.outliers(min_tokens=0)
    assert_allclose(frame.log_likelihood, means[frame.index])
    assert sorted(frame.index) == [0, 1, 2, 3]
    lda, X = fitted()
    frame = describe(lda, X).outliers(3)
    expected = lda.document_temperatures(X)
    order = np.argsort(-expected)[:3]
    assert_array_equal(frame.index, order)
    assert_allclose(frame.temperature, expected[order])


def test_documents_of_words_that_do_not_belong_together_are_found():
    corpus = make_topic_corpus(200, 100, 5, document_length=60, random_state=1)
    rng = np.random.default_rng(0)
    X = np.vstack([corpus.data.toarray(), rng.multinomial(60, np.full(100, 0.01), 4)])
    lda, odd = TemperedLDA(5, random_state=0).fit(X), {200, 201, 202, 203}
    for model in (lda, Given(lda.components_, lda.transform(X))):  # any other by the likelihood
        assert set(describe(model, X).outliers(4).index) == odd


def test_the_map(summary):
    found = summary.map()
    assert found.columns.tolist() == ["x", "y", "share", "label"] and found.index.name == "topic"
    place = places(hellinger(summary.topics))
    assert_array_equal(found[["x", "y"]], place)
    documents = summary.map(documents=True)
    assert documents.columns.tolist() == ["x", "y", "topic", "share"]
    assert documents.index.name == "document"
    assert_allclose(documents[["x", "y"]], SHARES @ place)
    assert documents.topic.tolist()[:3] == [0, 1, 2]
    assert_allclose(documents.share, SHARES.max(axis=1))


def test_a_summary_does_not_change_with_the_model():
    X = fitted()[1]
    lda = TemperedLDA(4, max_iter=2, random_state=0).fit(X)
    summary = describe(lda, X)
    before = summary.table, summary.outliers(3)
    assert set(summary.history) == set(lda.history_)
    lda.partial_fit(X[::-1])
    pd.testing.assert_frame_equal(summary.table, before[0])
    pd.testing.assert_frame_equal(summary.outliers(3), before[1])


def test_one_topic_and_one_word():
    one = describe(Given([[2.0, 1.0]], [[1.0]] * 2), [[1, 1], [0, 2]])
    assert one.quality["diversity"] == 1 and one.similar().linkage.shape == (0, 4)
    assert one.map()[["x", "y"]].to_numpy().tolist() == [[0, 0]]
    assert one.words(0, relevance=0) == ["0", "1"]
    word = describe(Given([[2.0]], [[1.0]]), [[3]])
    assert word.words(0) == ["0"] and word.table.coherence.isna().all()


@cases(
    "method, arguments, message",
    ("words", (3,), r"'topic' .*words must be an int from 0 to 2 or the label of a topic. Got 3"),
    ("words", (0, 0), r"'n' parameter of TopicSummary.words must be an int .* Got 0"),
    ("words", (0, 5, 1.5), r"'relevance' parameter of .*words must be a float .* Got 1.5"),
    ("weights", (0, 2.5), r"'n' parameter of TopicSummary.weights .* Got 2.5"),
    ("documents", (0, "a"), r"'n' .* Got 'a'"),
    ("outliers", (0,), r"'n' parameter of TopicSummary.outliers .* Got 0"),
    ("outliers", (1, -2), r"'min_tokens' .* Got -2"),
    ("map", (SHARES,), r"'documents' parameter of TopicSummary.map must be a bool"),
    ("by_group", (["a"],), r"'groups' .* TopicSummary.by_group must be .* one entry for each"),
    ("over_time", ([2001, 2002],), r"'times' .* of TopicSummary.over_time .* Got '2 entries"),
)
def test_bad_arguments(summary, method, arguments, message):
    refused(message, getattr(summary, method), *arguments, error=(ValueError, TypeError))


def of_topics(topics):
    return describe(Given(topics, np.eye(len(topics))), np.ones((len(topics), topics.shape[1])))


@pytest.fixture
def topics():
    return np.random.default_rng(1).dirichlet(np.full(40, 0.1), 12)


def test_distances_are_hellingers(topics):
    distances = of_topics(topics).similar().distances
    assert_allclose(distances, squareform(pdist(np.sqrt(topics))) / np.sqrt(2), atol=1e-12)
    assert_array_equal(distances, distances.T)
    assert_array_equal(hellinger(np.eye(2)), [[0, 1], [1, 0]])


def test_the_hierarchy_joins_the_closest_first(topics):
    topics[7] = 0.9 * topics[2] + 0.1 * topics[7]
    found = of_topics(topics).similar()
    assert found.linkage.shape == (11, 4) and sorted(found.linkage[0, :2]) == [2, 7]
    pairs = found.closest(1000)
    assert found.closest(1) == [(2, 7)] and len(pairs) == 66
    assert np.all(np.diff([found.distances[pair] for pair in pairs]) >= 0)


def test_places_keep_distances_that_a_plane_has():
    distances = squareform(pdist(np.random.default_rng(2).normal(size=(15, 2))))
    assert_allclose(squareform(pdist(places(distances))), distances, atol=1e-3)
    assert_allclose(squareform(pdist(places(distances[:2, :2]))), distances[:2, :2])


def test_places_are_the_same_each_time_and_centred(topics):
    distances = hellinger(topics)
    np.random.seed(3)
    found = places(distances)
    assert_array_equal(found, places(distances))
    assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    assert_array_equal(places(hellinger(np.full((4, 4), 0.25))), np.zeros((4, 2)))


def test_the_index_of_a_series_is_kept():
    texts = pd.Series(["star moon comet", "bread jam butter"] * 10, [f"t{n}" for n in range(20)])
    model = TopicModel(2, random_state=0).fit(texts)
    summary = describe(model, texts[texts.str.contains("a")])
    for table in (summary.documents(0, 3), summary.outliers(3)):
        assert set(table.index) <= {*texts.index}
        assert table.text.tolist() == texts[table.index].tolist()
    assert describe(model, list(texts)).documents(0, 2).index.dtype.kind == "i"


@pytest.mark.parametrize(
    "groups", [[1, "a", ("x", 2), None], [datetime.date(2020, 1, 1), "a", 1, 2]]
)
def test_groups_without_an_order(groups):
    texts = ["star moon comet", "bread jam butter"] * 10
    summary = describe(TopicModel(2, random_state=0).fit(texts), texts)
    table = summary.by_group(groups * 5)
    assert {*table.index} == {group for group in groups if group is not None}
    assert table.n_documents.tolist() == [5] * len(table)
