"""Starting points spread over the corpus: repeatable, far apart, never in want of documents."""

from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.models.lda import starts
from annealvi.models.lda.starts import SEED_DOCUMENTS, SEED_WEIGHT, spread_documents
from tests.models.lda.pair import LDA

K = 6


def disjoint(n_each=12, n_words=15, n_topics=K, seed=0, rate=1.0):
    """Documents of K vocabularies that share no word, in random order, and whose they are."""
    rng = np.random.RandomState(seed)
    whose = rng.permutation(np.repeat(np.arange(n_topics), n_each))
    X = np.zeros((len(whose), n_topics * n_words))
    for row, topic in zip(X, whose, strict=True):
        row[topic * n_words : (topic + 1) * n_words] = rng.poisson(rate, n_words)
        row[topic * n_words + rng.randint(n_words)] += 1
    return sparse.csr_matrix(X), whose


def seeds(X, n_topics=K, seed=0, n_each=SEED_DOCUMENTS):
    return spread_documents(X, n_topics, n_each, np.random.RandomState(seed))


def start(X, n_topics=K, seed=0, dtype=np.float64):
    model = LDA(n_topics, X.shape[1], alpha=0.1, eta=0.1, dtype=dtype)
    model.initialize(np.random.RandomState(seed), X, "kmeans++")
    return np.array(model.components)


@pytest.mark.parametrize("seed", range(10))
def test_one_seed_of_each_vocabulary(seed):
    """Documents of one vocabulary lie close together, those of two at right angles."""
    X, whose = disjoint(n_each=30, seed=seed, rate=200)
    groups = seeds(X, seed=seed)
    assert groups.shape == (K, SEED_DOCUMENTS)
    for group in groups:
        assert len(set(whose[group])) == 1  # similar documents are of one vocabulary
        assert_array_equal(group, np.unique(group))
    # uniform draws would find all in 1.5 of 100 cases
    assert len(set(whose[groups[:, 0]])) == K


def test_documents_that_are_the_same_are_seeded_once():
    """With one document a vocabulary, many times over, the distances leave no choice."""
    rows = np.zeros((K, 3 * K))
    for topic, row in enumerate(rows):
        row[3 * topic : 3 * topic + 3] = [3, 1, 2]
    X = sparse.csr_matrix(np.repeat(rows, 20, axis=0))
    for seed in range(20):
        groups = seeds(X, seed=seed)
        assert len(set(groups[:, 0] // 20)) == K and np.all(groups // 20 == groups[:, :1] // 20)
    assert len(seeds(X, K + 3)) == K  # no more different documents than that


def test_distances_against_loops():
    """Centres, drawn with probability proportional to 1 - cosine, and their neighbours."""
    X, _ = disjoint(seed=3)
    counts = X.toarray() + np.random.RandomState(0).poisson(0.2, X.shape)
    counts = np.vstack([counts, counts[:40]])  # of equal ones the first are nearest
    X = sparse.csr_matrix(counts)
    idf = np.log(len(counts) / np.maximum((counts > 0).sum(axis=0), 1))
    vectors = np.log1p(counts) * idf
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rng, expected = np.random.RandomState(7), []
    distance = np.ones(len(counts))
    for _ in range(9):
        draw = rng.random_sample() * distance.sum()
        centre = vectors[int(np.argmax(np.cumsum(distance) > draw))]
        cosine = np.sum(vectors * centre, axis=1)  # the same for equal rows
        expected.append(sorted(np.argsort(-cosine, kind="stable")[:4]))
        distance = np.minimum(distance, 1 - cosine)
        distance[distance < 1e-9] = 0
    assert_array_equal(seeds(X, 9, seed=7, n_each=4), expected)


def test_a_sample_of_a_large_corpus(monkeypatch):
    monkeypatch.setattr("annealvi.models.lda.starts.LEAST_SAMPLE", 20)
    monkeypatch.setattr("annealvi.models.lda.starts.SAMPLE_PER_TOPIC", 5)
    X, _ = disjoint(n_each=40)
    for n_topics, size in ((2, 20), (K, 30)):
        sample = np.random.RandomState(4).choice(240, size, replace=False)
        assert set(seeds(X, n_topics, seed=4, n_each=3).ravel()) <= set(sample)


def test_topics_are_one_and_the_counts_of_their_documents():
    X, _ = disjoint()
    groups, topics = seeds(X), start(X)
    for topic, group in zip(topics, groups, strict=True):
        assert_allclose(topic, 1 + SEED_WEIGHT * X[group].toarray().sum(axis=0), rtol=1e-12)


def test_topics_without_documents_start_at_random():
    X = sparse.csr_matrix(np.repeat(np.eye(2, 9) * 4, 10, axis=0))
    rng = np.random.RandomState(2)
    groups = spread_documents(X, 5, SEED_DOCUMENTS, rng)
    expected = rng.gamma(100.0, 0.01, (3, 9))
    assert len(groups) == 2
    assert_allclose(start(X, 5, seed=2)[2:], expected, rtol=1e-12)


LITTLE = {
    "no words": np.zeros((4, 6)),
    "the same document": np.tile([0, 2, 1.0, 0, 3, 0], (7, 1)),
    "one document": [[0, 2, 1.0]],
    "one and an empty one": [[0, 2, 1.0], [0, 0, 0]],
    "one word": [[3.0], [0], [2]],
    "words of every document": [[1.0, 1], [1, 1], [1, 3]],
    "many empty ones": np.vstack([np.eye(3, 5), np.zeros((9, 5))]),
    "next to nothing": [[1e-200, 0, 1e-250], [0, 1e-300, 0], [1e-220, 1e-220, 1e-300]],
    "sizes": [[1e12, 0, 1], [0, 1e-3, 0], [4, 0, 1e6]],
}


@pytest.mark.thinned
@pytest.mark.parametrize("n_components", [1, 4, 30])
@pytest.mark.parametrize("corpus", LITTLE)
def test_corpora_that_leave_little_choice(corpus, n_components):
    Z = np.array(LITTLE[corpus])
    groups = seeds(sparse.csr_matrix(Z), n_components)
    assert groups.shape[1] == min(SEED_DOCUMENTS, len(Z)) and len(groups) <= n_components
    topics = start(sparse.csr_matrix(Z), n_components)
    assert np.all(np.isfinite(topics)) and np.all(topics > 0)
    for method in ("batch", "online") if np.any(Z) else ():
        lda = TemperedLDA(n_components, init="kmeans++", learning_method=method, random_state=0)
        theta = lda.fit(Z).transform(Z)
        assert np.all(np.isfinite(lda.components_)) and np.all(lda.components_ > 0)
        assert_allclose(theta.sum(axis=1), 1)
        assert_allclose(theta[Z.sum(axis=1) == 0], 1 / n_components)
        assert np.isfinite(lda.score(Z))
    lda = TemperedLDA(n_components, random_state=0)
    with nullcontext() if np.any(Z) else pytest.warns(UserWarning, match="has a counted word"):
        lda.partial_fit(Z).partial_fit(Z)
    assert_allclose(lda.transform(Z).sum(axis=1), 1)


def test_nobody_starts_from_an_empty_document_or_one_of_words_of_all():
    rng = np.random.RandomState(0)
    Z = np.zeros((40, 8))
    Z[:, 7] = 3  # in every document: tells none from another
    Z[20:, :7] = rng.poisson(1.0, (20, 7))
    Z[20:, 0] += 1
    for seed in range(10):
        assert seeds(sparse.csr_matrix(Z), 5, seed=seed, n_each=1).min() >= 20


def fit(X, **kwargs):
    settings = dict(n_components=K, init="kmeans++", max_iter=0, random_state=0) | kwargs
    return np.array(TemperedLDA(**settings).fit(X).components_)


def test_estimators_start_alike():
    X, _ = disjoint(seed=1)
    X = sparse.csr_matrix(X.toarray() + np.random.RandomState(0).poisson(0.3, X.shape))
    wide, zeros, expected = X.copy(), X.copy(), fit(X)
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    zeros.data[:5] = 0
    assert_array_equal(expected, start(X))
    assert_array_equal(fit(zeros), fit(zeros.toarray()))
    arrays = X.toarray(), X.toarray().astype(int), np.asfortranarray(X.toarray())
    kinds = X.toarray().tolist(), X.tocsc(), X.tocoo(), X.astype(np.float32), sparse.csr_array(X)
    for data in (*arrays, *kinds, wide):
        assert_array_equal(fit(data), expected)
    rng = np.random.RandomState(0)
    for given in ({"n_jobs": 3}, {"init": "auto"}, {"random_state": rng}, {"preset": "sklearn"}):
        assert_array_equal(fit(X, **given), expected)
    assert not np.array_equal(fit(X, random_state=1), expected)


@pytest.mark.slow
def test_a_fit_from_seeds_finds_every_vocabulary():
    X, whose = disjoint(n_each=30, seed=2)
    for seed in range(5):
        found = TemperedLDA(K, random_state=seed).fit(X).transform(X).argmax(axis=1)
        assert len(set(zip(whose.tolist(), found.tolist(), strict=True))) == K  # one to one


@pytest.mark.parametrize("n_topics", [1, 5, 16, 40])
def test_random_topics_are_one_draw_of_all(n_topics):
    """Drawn a few topics at a time, to save memory, they are scikit-learn's numbers."""
    model = LDA(n_topics, 9, alpha=0.1, eta=0.1)
    model.initialize(np.random.RandomState(3))
    expected = np.random.RandomState(3).gamma(100.0, 0.01, (n_topics, 9))
    assert_array_equal(model.components, expected)


@pytest.mark.parametrize("eta", [0.3, "of words", "of words and topics"])
def test_topics_of_documents_are_the_prior_and_counts(eta):
    X, _ = disjoint(n_words=4)
    rng = np.random.RandomState(0)
    if eta == "of words":
        eta = rng.uniform(0.1, 1, X.shape[1])
    elif eta == "of words and topics":
        eta = rng.uniform(0.1, 1, (K, X.shape[1]))
    model = LDA(K, X.shape[1], alpha=0.1, eta=eta)
    model.initialize(np.random.RandomState(7), X, "documents")
    rng = np.random.RandomState(7)
    chosen = [rng.choice(X.shape[0], SEED_DOCUMENTS, replace=False) for _ in range(K)]
    counts = np.array([X.toarray()[rows].sum(axis=0) for rows in chosen])
    assert_allclose(model.components, eta + SEED_WEIGHT * counts, rtol=1e-15)


def test_samples_of_very_many_documents(monkeypatch):
    """They take no array of all, and are different documents, drawn evenly."""
    monkeypatch.setattr(starts, "MANY", 100)
    rng = np.random.RandomState(0)
    found = np.sort([starts._sample(200, 50, rng) for _ in range(400)], axis=1)
    assert np.all(np.diff(found, axis=1) > 0) and found.min() >= 0 and found.max() < 200
    shares = np.bincount(found.ravel(), minlength=200) / 400
    assert abs(shares.mean() - 0.25) < 1e-12 and shares.std() < 0.03
    for n_samples in (99, 100):
        assert len(set(starts._sample(n_samples, n_samples, rng).tolist())) == n_samples
