"""Topics dropped from a document's sweeps change nothing: against all topics, and NumPy."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse

from annealvi.model import Batch, Tempering
from annealvi.models.lda import engine
from tests.marks import slow_values
from tests.models.lda.naive import fits
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.streams import dense

DTYPES = (np.float32, np.float64)
#: How far gamma may move, in words.
ATOL = 1e-6


@pytest.fixture(autouse=True)
def small_shares(monkeypatch):
    """In float32 too, topics are dropped only if no result shows it: see test_block_float32."""
    for name in ("SINGLE_SHARE", "TRAINING_SHARE"):
        monkeypatch.setattr(f"annealvi.models.lda.engine.{name}", engine.LEAST_SHARE)


class Fitted(NamedTuple):
    gamma: np.ndarray
    statistics: np.ndarray  # (K, V)
    energy: np.ndarray
    normalizer: np.ndarray
    n_active: np.ndarray  # topics left, or how wide rows are; up to 64 topics are spread again


def fit(X, lam, b=1.0, *, alpha, prune=True, n_iterations=30, n_threads=1, passes=1):
    K, V = lam.shape
    options = LocalOptions(n_iterations, 0.0, warm=True, prune=prune)
    model = LDA(K, V, alpha=alpha, eta=0.1, dtype=X.dtype, options=options, n_threads=n_threads)
    model.assign(lam)
    model.start_documents(X.shape[0])
    tempering = Tempering(np.asarray(b, dtype=X.dtype))
    for _ in range(passes):
        local = model.local_step(Batch(X, slice(0, X.shape[0])), tempering, moments=True)
    statistics = dense(local.statistics, K).T
    n_active = model.engine.n_active[: X.shape[0]].copy()
    again, normalizer = np.ones((X.shape[0], K), dtype=X.dtype), np.zeros(X.shape[0])
    model.fit(X, again, tempering, log_normalizer=normalizer)
    if passes == 1:
        assert_array_equal(again, model.gamma)
    return Fitted(model.gamma, statistics, local.energy, normalizer, n_active)


def naive(X, lam, b=1.0, *, alpha, n_iterations=30):
    """Coordinate ascent over all topics."""
    return Fitted(*fits(X.toarray().astype(float), 1.0, b, lam, alpha, n_iterations), None)


def assert_close(one, other, rtol):
    assert_allclose(one.gamma, other.gamma, rtol=rtol, atol=ATOL)
    of_words = other.statistics.sum(axis=0)
    error = np.abs(one.statistics - other.statistics) / (of_words + (of_words == 0))
    assert np.max(error) < 10 * max(rtol, ATOL)
    # what was dropped takes that much of a word, times how far apart its logarithms are
    assert_allclose(one.energy, other.energy, rtol=max(rtol, ATOL), atol=100 * ATOL)
    assert_allclose(one.normalizer, other.normalizer, rtol=max(rtol, ATOL), atol=10 * ATOL)


def problem(n_topics, n_features=150, seed=0, dtype=np.float64):
    """Topics with words of their own, and documents of a few topics: empty, short and long."""
    rng = np.random.RandomState(seed)
    lam = rng.gamma(0.05, 60.0, (n_topics, n_features)) + 0.1
    beta = lam / lam.sum(axis=1, keepdims=True)
    X = np.zeros((40, n_features))
    for counts, n_words in zip(X, [0, 1, 2, 3000] + 36 * [5, 20, 80], strict=False):
        theta = rng.dirichlet(np.full(n_topics, min(1.0, 2 / n_topics)))
        counts[:] = rng.multinomial(n_words, theta @ beta)
    lam = lam.astype(dtype).astype(np.float64)
    return sparse.csr_matrix(X).astype(dtype), lam


def alpha_of(kind, n_topics, dtype=np.float64):
    alpha = np.random.RandomState(5).uniform(0.005, 0.04, n_topics)
    return alpha.astype(dtype).astype(np.float64) if kind == "asymmetric" else 0.03125


def rtol_of(dtype):
    return 1e-9 if dtype is np.float64 else 2e-3  # float: psi is steep where gamma is small


@pytest.mark.thinned
@pytest.mark.parametrize("n_topics", [1, 8, 25, 100, *slow_values(2, 16, 24, 33, 600)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_with_all_topics(n_topics, dtype):
    X, lam = problem(n_topics, dtype=dtype)
    each = np.random.RandomState(2).choice([0.25, 0.5, 1.0], 40).astype(dtype)
    for b, kind, n_iterations in ((1.0, "asymmetric", 30), (0.4, "one", 12), (each, "one", 30)):
        options = dict(b=b, alpha=alpha_of(kind, n_topics, dtype), n_iterations=n_iterations)
        dropped, kept = (fit(X, lam, prune=prune, **options) for prune in (True, False))
        expected = naive(X, lam, **options)
        assert np.all(kept.n_active >= n_topics)
        if n_topics > 64 and n_iterations == 30:  # otherwise this test is of nothing
            assert np.mean(dropped.n_active < n_topics) > 0.2
        assert_close(dropped, expected, rtol_of(dtype))
        assert_close(dropped, kept, rtol_of(dtype))


def test_rows_are_made_shorter_again_and_again():
    """From 600 topics through short rows to columns, and fewer columns."""
    X, lam = problem(600, seed=1)
    left = []
    for n_iterations in range(1, 24):
        options = dict(alpha=0.01, n_iterations=n_iterations)
        dropped, kept = (fit(X, lam, prune=prune, **options) for prune in (True, False))
        assert_close(dropped, kept, 1e-9)
        left.append(dropped.n_active)
    left = np.array(left)
    assert np.all(np.diff(left, axis=0) <= 0)
    assert max([len(np.unique(column)) for column in left.T]) >= 4
    assert np.any((left > 24) & (left < 600)) and np.any(left <= 4)


@pytest.mark.thinned
@pytest.mark.parametrize("scale", [1e-3, 0.2, 1e3, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_tiny_and_huge(dtype, scale):
    """Topics that want each other's words a little; up to 1e-5 of the document's words then."""
    X, lam = problem(70, dtype=dtype)
    X.data *= dtype(scale)
    options = dict(alpha=0.02, n_iterations=20)
    dropped, kept = (fit(X, lam + 2, prune=prune, **options) for prune in (True, False))
    expected = naive(X, lam + 2, **options)
    n_words = np.maximum(10, np.asarray(X.sum(axis=1)).ravel())[:, None]
    for other in (kept, expected):
        error = np.abs(dropped.gamma - other.gamma) - rtol_of(dtype) * other.gamma
        assert np.max(error / n_words) < ATOL
        assert_allclose(dropped.energy, other.energy, rtol=1e-5, atol=1e-3)


@pytest.mark.slow
@given(st.integers(0, 2**31 - 1), st.integers(1, 90), st.sampled_from([1, 2, 3, 4, 6, 10, 20]))
def test_any_problem(seed, n_topics, n_iterations):
    rng = np.random.RandomState(seed)
    n_features, b = rng.randint(8, 61), rng.choice([1, 0.7, 0.3])
    least = rng.choice([0.05, 0.1, 0.5])
    lam = rng.gamma(rng.choice([0.03, 0.3]), 40.0, (n_topics, n_features)) + least
    X = sparse.csr_matrix(rng.poisson(rng.choice([0.1, 2.0, 30.0], (6, 1)), (6, n_features)) * 1.0)
    options = dict(b=b, alpha=rng.choice([0.02, 0.1, 1.0], n_topics), n_iterations=n_iterations)
    assert_close(fit(X, lam, **options), naive(X, lam, **options), 1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_same_bits(dtype, index):
    """For any number of threads, any integers, and whatever a document stands beside."""
    X, lam = problem(90, dtype=dtype)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    for b in (1.0, np.random.RandomState(2).choice([0.25, 1.0], 40).astype(dtype)):
        one = fit(X, lam, b, alpha=0.02)
        assert np.any(one.n_active < one.n_active.max())
        Y = X.copy()
        Y.indices, Y.indptr = X.indices.astype(index), X.indptr.astype(index)
        for other in (fit(Y, lam, b, alpha=0.02, n_threads=n) for n in (1, 3)):
            assert_equal(other, one)
    many = fit(X, lam, alpha=0.02)
    for order in (np.arange(40)[::-1], np.array([3]), np.array([9, 3, 5])):
        some = fit(X[order], lam, alpha=0.02)
        for name in ("gamma", "energy", "normalizer", "n_active"):
            assert_array_equal(getattr(some, name), getattr(many, name)[order])
