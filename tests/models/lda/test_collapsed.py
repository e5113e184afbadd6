"""Collapsed inference against the exact posterior mean, by enumeration of all topics."""

from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import gammaln

from annealvi.models.lda.collapsed import infer_collapsed
from tests.models.lda.pair import LDA, LocalOptions


def model_of(beta, alpha, **options):
    K, V = beta.shape
    local = LocalOptions(500, 1e-9)
    model = LDA(K, V, alpha=alpha, eta=1.0, options=local, estimate="map", **options)
    model.assign(beta)
    return model


def collapsed_of(model, X, **options):
    return infer_collapsed(model.engine, model, X, **options)


def shares(gamma):
    return gamma / gamma.sum(axis=1, keepdims=True)


def exact_mean(words, beta, alpha):
    """E[theta | words], summed over all topics that the words may have."""
    topics = np.array(list(product(range(len(beta)), repeat=len(words))))
    counts = np.stack([(topics == k).sum(axis=1) for k in range(len(beta))], axis=1)
    logs = gammaln(alpha + counts).sum(axis=1) + np.log(beta[topics, words]).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return weights @ shares(alpha + counts) / weights.sum()


def documents(seed, n_samples, n_words, K=3, V=12, alpha=0.1):
    """Tokens that the model draws, their counts and the topics."""
    rng = np.random.RandomState(seed)
    beta = rng.dirichlet(np.full(V, 0.3), K) + 1e-6
    beta /= beta.sum(axis=1, keepdims=True)
    theta = rng.dirichlet(np.full(K, alpha), n_samples)
    words = np.array([rng.choice(V, n_words, p=share @ beta) for share in theta])
    counts = np.array([np.bincount(row, minlength=V) for row in words])
    return words, sparse.csr_matrix(counts * 1.0), beta


def test_one_word_is_exact():
    words, X, beta = documents(0, 12, 1)
    theta = shares(collapsed_of(model_of(beta, 0.3), X))
    assert_allclose(theta, [exact_mean(row, beta, 0.3) for row in words], rtol=1e-12)


def test_words_that_tell_nothing_are_exact():
    words, X, beta = documents(0, 5, 6)
    beta[:] = beta[0]
    theta = shares(collapsed_of(model_of(beta, 0.1), X, tolerance=0.0))
    assert_allclose(theta, 1 / 3, rtol=1e-12)
    assert_allclose(exact_mean(words[0], beta, 0.1), 1 / 3, rtol=1e-12)


def test_closer_to_the_exact_mean_than_the_mean_field():
    words, X, beta = documents(1, 60, 8)
    exact = np.array([exact_mean(row, beta, 0.1) for row in words])
    model = model_of(beta, 0.1)
    collapsed = shares(collapsed_of(model, X, tolerance=1e-9, max_iter=500))
    mean_field = shares(model.infer(X))
    error, other = (np.abs(theta - exact).sum(axis=1).mean() for theta in (collapsed, mean_field))
    assert error < 0.7 * other
    # the mean field drops topics that a document may have
    assert mean_field.max(axis=1).mean() > exact.max(axis=1).mean() + 0.01


def test_the_scale_of_the_topics_does_not_matter():
    _, X, beta = documents(2, 10, 8)
    expected = collapsed_of(model_of(beta, 0.1), X)
    scaled = collapsed_of(model_of(beta * [[1e8], [3.0], [1e-4]], 0.1), X)
    assert_allclose(scaled, expected, rtol=1e-9)


def test_blocks_and_threads(monkeypatch):
    _, X, beta = documents(3, 300, 20, K=9, V=50)
    model = model_of(beta, 0.1)
    expected = collapsed_of(model, X)
    monkeypatch.setattr("annealvi.models.lda.engine.BLOCK_BYTES", 1)  # 64 documents each
    model.engine.n_threads = 3
    assert_array_equal(collapsed_of(model, X), expected)
