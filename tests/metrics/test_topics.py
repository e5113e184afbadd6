"""Coherence, diversity and stability against loops, numbers by hand, and gensim."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, LatentDirichletAllocation

from annealvi import TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, make_topic_corpus
from annealvi.metrics import topic_checksum, topic_coherence, topic_diversity, topic_stability
from annealvi.metrics.classes import purity
from annealvi.metrics.topics import component_recovery, duplicate_topics, top_columns
from annealvi.topics import merge_topics
from tests.asserts import refused

#: gensim 4.4.0, CoherenceModel of the ten top words of `categories()`: "c_npmi" with
#: window_size=10**6, "u_mass".
GENSIM = {
    "npmi": [
        [0.42277288, 0.332964452, 0.250100684, 0.336177698, 0.300216004],
        [0.388213861, 0.102986589, 0.401287201, 0.375498359, 0.319198974],
        [0.398361199, 0.357099889, 0.465379001, 0.264570503, 0.30332821],
    ],
    "umass": [
        [-1.60848899, -1.962074618, -4.456179193, -3.692657529, -3.188309403],
        [-2.09325063, -6.123557368, -1.966197624, -1.766387069, -2.019168279],
        [-2.016396985, -1.551549466, -1.532089548, -3.605942907, -2.422065305],
    ],
}


def categories():
    """The bundled corpus, and what stands out in each of its 15 categories."""
    corpus = load_arxiv_abstracts()
    own = [corpus.data[corpus.target == k] for k in range(15)]
    counts = np.stack([np.asarray(rows.sum(axis=0)).ravel() for rows in own])
    return corpus, counts / np.sqrt(counts.sum(axis=0))


def naive_top(topics, n):
    return [sorted(range(len(row)), key=lambda v: (-row[v], v))[:n] for row in topics]


def naive_coherence(topics, X, measure, n_words, epsilon):
    documents = [{v for v, count in enumerate(row) if count} for row in X.toarray()]

    def share(*words):
        return sum(all(w in document for w in words) for document in documents) / len(documents)

    means = []
    for words in naive_top(topics, n_words):
        values = []
        for rank, w in enumerate(words):
            for before in words[:rank]:
                both = share(w, before) + epsilon
                if measure == "umass":
                    values.append(np.log(both / share(before)))
                elif both:
                    values.append(np.log(both / share(w) / share(before)) / -np.log(both))
                else:
                    values.append(-1)
        means.append(np.mean(values))
    return means


def naive_cosines(a, b):
    return np.array([[x @ y / np.sqrt((x @ x) * (y @ y)) for y in b] for x in a])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def X():
    """Sixty documents of thirty words; no document holds the last word."""
    rng = np.random.default_rng(1)
    X = sparse.random(60, 30, 0.2, "csr", random_state=1, data_rvs=lambda n: rng.integers(1, 5, n))
    X = X.tolil()
    X[:, 29] = 0
    X[7] = 0
    return sparse.csr_matrix(X, dtype=np.float64)


@pytest.fixture(scope="module")
def topics():
    topics = np.random.default_rng(2).gamma(0.3, size=(6, 30))
    topics[:, 29] = 0
    return topics


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_top_words_are_in_order_of_weight_then_column(rng, dtype):
    topics = rng.integers(0, 5, (20, 40)).astype(dtype)  # many ties
    for n in (1, 3, 39, 40):
        assert_array_equal(top_columns(topics, n), naive_top(topics, n))
    assert_array_equal(top_columns(topics, 50), naive_top(topics, 40))
    lda = TemperedLDA(20)
    lda.components_ = topics + 1
    assert_array_equal(lda.top_words(7, relevance=1), naive_top(topics, 7))


@pytest.mark.parametrize("relevance", [0.0, 0.6, 0.7, 1.0])
def test_top_words_by_relevance(rng, relevance):
    topics = rng.gamma(0.3, 10.0, (5, 40)) + 0.01
    p = topics / topics.sum(axis=1, keepdims=True)
    lift = p / (topics.sum(axis=0) / topics.sum())
    ranks = relevance * np.log(p) + (1 - relevance) * np.log(lift)
    expected = naive_top(ranks, 6)
    assert_array_equal(top_columns(topics, 6, relevance), expected)
    lda = TemperedLDA(5)
    lda.components_ = topics
    assert_array_equal(lda.top_words(6, relevance=relevance), expected)
    assert (lda.top_words(6) == lda.top_words(6, relevance=relevance)) == (relevance == 0.7)
    plain = TemperedLDA(5, preset="sklearn")
    plain.components_ = topics
    assert (plain.top_words(6) == plain.top_words(6, relevance=relevance)) == (relevance == 1)
    share = len(np.unique(expected)) / np.size(expected)
    assert topic_diversity(topics, n_words=6, relevance=relevance) == share
    X = rng.poisson(0.5, (30, 40))
    by_rank = topic_coherence(np.exp(ranks - ranks.max()), X, n_words=6)
    assert_allclose(topic_coherence(topics, X, n_words=6, relevance=relevance), by_rank)
    for bad in (-0.1, 1.1, "high", None):
        refused(r"'relevance' .*\[0.0, 1.0\]", topic_diversity, topics, n_words=6, relevance=bad)
        if bad is not None:
            message = r"'relevance' .* TemperedLDA.top_words .*\[0.0, 1"
            refused(message, lda.top_words, 6, relevance=bad)


@pytest.mark.thinned
@pytest.mark.parametrize("epsilon", [1e-12, 1 / 60])
@pytest.mark.parametrize("n_words", [2, 5, 20])
@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_is_that_of_a_double_loop(X, topics, measure, n_words, epsilon):
    options = dict(measure=measure, n_words=n_words, epsilon=epsilon)
    coherence = topic_coherence(topics, X, **options)
    assert coherence.shape == (6,)
    assert_allclose(coherence, naive_coherence(topics, X, **options), rtol=1e-12)


def test_coherence_without_epsilon(X, topics):
    expected = naive_coherence(topics, X, "npmi", 8, 0)
    assert_allclose(topic_coherence(topics, X, n_words=8, epsilon=0), expected, rtol=1e-12)
    assert np.min(topic_coherence(topics, X, measure="umass", n_words=8, epsilon=0)) == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_words_that_are_absent_or_everywhere(X, topics, measure):
    X = X.tolil()
    X[:, 27:29] = 1  # two words of every document; word 29 is in none
    X = sparse.csr_matrix(X)

    def coherence(first, second, epsilon=1e-12):
        topic = np.zeros((1, 30))
        topic[0, [first, second]] = 2, 1
        return topic_coherence(topic, X, measure=measure, n_words=2, epsilon=epsilon)[0]

    assert_allclose(coherence(27, 28), 0, atol=2e-12)
    assert coherence(27, 28, epsilon=0) == 0
    with_common = 0 if measure == "npmi" else np.log(X[:, 0].nnz / 60)
    assert_allclose(coherence(27, 0), with_common, atol=1e-11)
    worst = -1 if measure == "npmi" else np.log(1e-12)
    assert coherence(29, 0) == pytest.approx(worst)
    unseen = -1 if measure == "npmi" else np.log(60e-12 / X[:, 0].nnz)
    assert coherence(0, 29) == pytest.approx(unseen)
    assert coherence(29, 0, epsilon=0) == (-1 if measure == "npmi" else -np.inf)
    pairs = (coherence(a, b) for a, b in itertools.permutations(range(29), 2) if (a, b) != (27, 28))
    assert worst <= min(pairs)


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_depends_on_presence_and_order_alone(rng, X, topics, measure):
    expected = topic_coherence(topics, X, measure=measure)
    scales = np.array([[1e-3], [1], [7], [1e5], [3], [1e200]])
    assert_array_equal(topic_coherence(topics * scales, X, measure=measure), expected)
    assert_array_equal(topic_coherence(topics[::-1], X, measure=measure), expected[::-1])
    zeros = X.astype(np.int64)
    zeros.data[:] = 1
    # an explicit zero in each row, and entries in two parts
    rows, columns = zeros.nonzero()
    data = np.concatenate([zeros.data, zeros.data, np.zeros(60, int)])
    places = np.r_[rows, rows, :60], np.r_[columns, columns, np.full(60, 3)]
    zeros = sparse.csr_matrix((data, places), shape=X.shape)
    for same in (X.toarray(), X.toarray() > 0, X.astype(np.float32), X[::-1], X.tocsc(), zeros):
        assert_allclose(topic_coherence(topics, same, measure=measure), expected, rtol=1e-14)
    columns = rng.permutation(30)
    permuted = topic_coherence(topics[:, columns], X[:, columns], measure=measure)
    assert_allclose(permuted, expected, rtol=1e-14)
    doubled = sparse.vstack([X, X])
    assert_allclose(topic_coherence(topics, doubled, measure=measure), expected, rtol=1e-14)


def test_counting_bits_where_numpy_cannot(X, topics, monkeypatch):
    expected = topic_coherence(topics, X)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert_array_equal(topic_coherence(topics, X), expected)


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_is_what_gensim_gave(measure):
    corpus, topics = categories()
    coherence = topic_coherence(topics, corpus.data, measure=measure)
    assert_allclose(coherence, np.ravel(GENSIM[measure]), rtol=0, atol=1e-9)


def test_checksum(rng):
    weights = rng.gamma(0.1, 1.0, (4, 30)).astype(np.float32)
    found = topic_checksum(weights)
    for same in (weights.astype(np.float64), np.asfortranarray(weights), weights.tolist()):
        assert topic_checksum(same) == found
    weights[2, 7] = np.nextafter(weights[2, 7], np.float32(np.inf))
    assert topic_checksum(weights) != found


def test_diversity(rng):
    topics = [[3, 2, 1, 0], [0, 1, 2, 3], [2, 3, 1, 0]]
    assert topic_diversity(topics, n_words=1) == 1 and topic_diversity(topics, n_words=2) == 4 / 6
    assert topic_diversity(topics, n_words=True) == 1  # an Integral
    assert topic_diversity(topics, n_words=4) == 4 / 12
    assert topic_diversity([[5, 1, 1, 1], [5, 1, 1, 1]], n_words=2) == 1 / 2  # ties by column
    topics = rng.gamma(0.3, size=(20, 200))
    words = naive_top(topics, 25)
    assert topic_diversity(topics) == len(set(itertools.chain(*words))) / 500
    assert topic_diversity(topics * rng.random((20, 1))) == topic_diversity(topics)


@pytest.mark.parametrize("block", [1 << 24, 8 * 11 * 7, 1])
def test_stability_is_that_of_a_double_loop(rng, monkeypatch, block):
    monkeypatch.setattr("annealvi.metrics.topics._BLOCK_BYTES", block)
    a, b = rng.gamma(0.3, size=(5, 40)), rng.gamma(0.3, size=(6, 40))
    cosine = naive_cosines(a, b)
    expected = (np.mean([max(row) for row in cosine]) + np.mean([max(c) for c in cosine.T])) / 2
    assert topic_stability(a, b) == pytest.approx(expected, rel=1e-13)
    assert topic_stability(b, a) == pytest.approx(expected, rel=1e-13)
    orders = itertools.permutations(range(6), 5)
    best = max(cosine[range(5), columns].sum() for columns in orders)
    assert topic_stability(a, b, matching="one_to_one") == pytest.approx(best / 6, rel=1e-13)
    assert topic_stability(b, a, matching="one_to_one") == pytest.approx(best / 6, rel=1e-13)


@pytest.mark.parametrize("matching", ["best", "one_to_one"])
def test_stability_does_not_know_order_or_scale(rng, matching):
    a, b = rng.gamma(0.3, size=(2, 8, 50))
    expected = topic_stability(a, b, matching=matching)
    assert 0 < expected < 0.9
    scales = np.array([[1e-200], [1e200], [1], [2], [3], [1e-5], [1e5], [7]])
    columns = rng.permutation(50)
    scaled, permuted = (a * scales, b * scales[::-1]), (a[:, columns], b[:, columns])
    for x, y in ((a[::-1], b), scaled, permuted, (a.tolist(), pd.DataFrame(b))):
        assert topic_stability(x, y, matching=matching) == pytest.approx(expected, rel=1e-13)
    single = topic_stability(a.astype(np.float32), b, matching=matching)
    assert single == pytest.approx(expected, rel=1e-6)
    for topics in rng.gamma(0.3, size=(50, 1, 50)):  # some roundings exceed 1
        itself = topic_stability(topics, 3 * topics, matching=matching)
        assert itself <= 1 and itself == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("library", [TemperedLDA, LatentDirichletAllocation])
def test_fitted_estimators_stand_for_their_topics(X, library):
    fits = [library(4, random_state=seed, max_iter=3).fit(X) for seed in (0, 1)]
    a, b = (fit.components_ for fit in fits)
    assert_array_equal(topic_coherence(fits[0], X), topic_coherence(a, X))
    assert topic_diversity(fits[0]) == topic_diversity(a)
    assert topic_stability(*fits) == topic_stability(fits[0], b) == topic_stability(a, b)


def test_feature_names_are_compared(X):
    frame = pd.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(30)])
    turned = frame[frame.columns[::-1]]
    lda, other = (TemperedLDA(3, max_iter=1).fit(data) for data in (frame, turned))
    assert_array_equal(topic_coherence(lda, frame), topic_coherence(lda, X))
    refused("names of 'topics' and 'X' should match", topic_coherence, lda, turned)
    refused("names of 'topics' and 'other_topics' should match", topic_stability, lda, other)
    assert topic_stability(lda, other.components_) < 1  # arrays have none


def broken(value):
    topics = np.ones((3, 30))
    topics[1, 2] = value
    return topics


#: Topics as lists of words.
WORDS = [np.array([["stars", "moon"]]), pd.DataFrame([["stars", "moon"]]), [[("stars", 0.2)]]]
WORDS += [[["stars", "moon"], ["bread", "jam"]], [["stars"], ["bread", "jam"]]]
MEASURES = {
    "topics": lambda topics: topic_coherence(topics, np.ones((2, 30)), n_words=3),
    "topics  ": lambda topics: topic_stability(topics, np.ones((2, 30))),
    "other_topics": lambda topics: topic_stability(np.ones((2, 30)), topics),
    "topics ": topic_diversity,
}


@pytest.mark.parametrize("name", MEASURES)
def test_topics_that_are_none(X, name):
    measure, name = MEASURES[name], name.strip()
    for topics, message in (
        (broken(np.nan), f"Input {name} contains NaN"),
        (broken(np.inf), f"Input {name} contains infinity"),
        (
            broken(-1),
            f"'{name}' parameter of topic_.* must be an array of non-negative numbers. Got -1",
        ),
        (np.ones(30), "Expected 2D array, got 1D"),
        (np.ma.masked, "Expected 2D array, got scalar"),
        (np.ones((0, 30)), "minimum of 1 is required"),
        (np.eye(2, 1) + np.zeros(30), rf"'{name}\[1\]' .* positive and finite sum. Got 0"),
        (TemperedLDA(), "TemperedLDA instance is not fitted"),
        (PCA(), "PCA instance is not fitted"),
        *((words, f"'{name}' .* must be a fitted estimator, or .* Got 'stars'") for words in WORDS),
    ):
        refused(message, measure, topics)
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        measure(sparse.csr_matrix(np.ones((3, 30))))
    with pytest.raises(TypeError, match=rf"'{name}' .* with `components_`\. Got KMeans"):
        measure(KMeans(2, n_init=1).fit(np.eye(3)))


def test_clear_errors(X, topics):
    refused("Input X contains NaN", topic_coherence, topics, X * np.nan)
    refused("'X' parameter of topic_coherence must be non-negative", topic_coherence, topics, -X)
    refused(r"'topics' and 'X' must .* features. Got 30 and 29", topic_coherence, topics, X[:, :29])
    message = r"'topics' and 'other_topics' must .* features. Got 30 and 29"
    refused(message, topic_stability, topics, topics[:, :29])
    refused("0 sample", topic_coherence, topics, X[:0])
    message = r"'n_words' .* number of features, 30. Got 31"
    refused(message, topic_diversity, topics, n_words=31)
    refused(message, topic_coherence, topics, X, n_words=31)


def test_topics_that_are_nearly_the_same():
    topics = np.random.RandomState(0).dirichlet(np.full(200, 0.05), 6)
    near = [topics[4] * 3 + 1e-4, topics[1] + 1e-4, topics[4] + 2e-4]
    assert duplicate_topics(np.vstack([topics, near])) == [[1, 7], [4, 6, 8]]
    assert duplicate_topics(topics) == []
    assert duplicate_topics(topics, threshold=0) == [[0, 1, 2, 3, 4, 5]]
    assert duplicate_topics(topics[:1]) == []
    assert duplicate_topics([[0.1, 0.2, 0.3], [0.3, 0.6, 0.9]], threshold=1.0) == [[0, 1]]
    at = np.radians([0, 20, 40, 90])  # one between two topics binds them
    topics = np.column_stack([np.cos(at), np.sin(at)])
    assert duplicate_topics(topics, threshold=np.cos(np.radians(21))) == [[0, 1, 2]]


def test_groups_that_merge_takes():
    X = make_topic_corpus(300, 60, 3, document_length=30, random_state=0).data
    lda = TemperedLDA(12, random_state=0, max_iter=3).fit(X)
    groups = duplicate_topics(lda)
    assert groups  # three topics cannot be told apart in twelve ways
    assert merge_topics(lda, groups).n_components == 12 - sum(len(group) - 1 for group in groups)


def test_components_are_matched_one_to_one():
    truth = np.eye(3, 5)
    found = np.array([[0, 0, 3.0, 0, 0], [2, 0.1, 0, 0, 0], [1.9, 0.1, 0, 0, 0], [0, -1, 0, 0, 0]])
    n_found, cosines = component_recovery(truth, found)
    assert n_found == 2
    assert_allclose(cosines, [2 / np.hypot(2, 0.1), 0.1 / np.hypot(1.9, 0.1), 1])
    assert component_recovery(truth, found, threshold=0.9999)[0] == 1
    n_found, cosines = component_recovery(truth, truth[:1])  # fewer than there are
    assert n_found == 1
    assert_allclose(cosines, [1, 0, 0])
    assert component_recovery(truth, np.zeros((3, 5)))[0] == 0
    refused(r"same number of features. Got 5 and 4", component_recovery, truth, np.ones((3, 4)))
    refused("components contains NaN", component_recovery, truth, np.full((3, 5), np.nan))


def test_purity_counts_the_most_frequent_label_of_each_class():
    rng = np.random.RandomState(0)
    labels, classes = rng.choice(["a", "b", "c"], 90), rng.randint(5, size=90)
    best = sum(np.unique(labels[classes == k], return_counts=True)[1].max() for k in range(5))
    assert purity(labels, classes) == best / 90
    assert purity(labels, labels) == purity(labels, range(90)) == 1
    assert purity(labels, np.zeros(90)) == np.unique(labels, return_counts=True)[1].max() / 90


@pytest.mark.parametrize(("one", "other"), [([1, 2], [1]), ([], []), (3, [1])])
def test_bad_labels(one, other):
    with pytest.raises(ValueError):
        purity(one, other)


def test_labels_that_cannot_be_sorted():
    with pytest.raises(ValueError, match=r"'labels_true' .* one kind.*Got \['a', None\]"):
        purity(["a", None], [0, 1])
