"""The collapsed kernel against plain NumPy, for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi._kernels import lda_collapsed as kernels
from annealvi._kernels.layout import padded_length, padded_rows
from annealvi.models.lda.cpu import TopicWeights
from tests.asserts import same_bits

DTYPES = (np.float32, np.float64)
RTOL = {np.float32: 3e-5, np.float64: 1e-12}


def collapse(
    X, beta, alpha, *, dtype=np.float64, tolerance=0.0, max_iter=20, n_threads=1, rows=None
):
    """gamma and the number of sweeps of documents; `beta` has a row for each word."""
    X = sparse.csr_matrix(X, dtype=dtype)
    rows = slice(0, X.shape[0]) if rows is None else rows
    n, (n_features, K) = rows.stop - rows.start, beta.shape
    weights = TopicWeights(n_features, padded_length(K, dtype), dtype)
    weights.values[:] = padded_rows(beta / beta.max(axis=1, keepdims=True), dtype)
    weights.place[:] = np.arange(n_features)
    prior = padded_rows(np.broadcast_to(alpha, (1, K)), dtype)[0]
    longest = int(np.diff(X.indptr).max(initial=0))
    gamma, n_iter = np.full((n, K), np.nan, dtype), np.full(n, -1, np.int32)
    places = np.empty((n_threads, longest), np.int64)
    scratch = np.full((n_threads, (longest + 3) * weights.values.shape[1]), np.nan, dtype)
    kernels.collapse_documents(
        *(X.data, X.indices, X.indptr, rows.start, rows.stop, weights, prior, tolerance, max_iter),
        *(n_threads, places, scratch, gamma, n_iter),
    )
    return gamma, n_iter


def naive(X, beta, alpha, max_iter):
    """The same, a word at a time."""
    gammas = []
    for counts in np.asarray(X, dtype=np.float64):
        words = np.flatnonzero(counts)
        phi = {v: alpha * beta[v] / (alpha * beta[v]).sum() for v in words}
        n = sum((counts[v] * phi[v] for v in words), np.zeros(beta.shape[1]))
        for _ in range(max_iter):
            for v in words:
                p = (alpha + n - min(counts[v], 1.0) * phi[v]) * beta[v]
                n = n + counts[v] * (p / p.sum() - phi[v])
                phi[v] = p / p.sum()
        gammas.append(alpha + n)
    return np.array(gammas)


def problem(seed=0, n_samples=12, n_features=30, K=7, rate=0.5):
    rng = np.random.RandomState(seed)
    X = rng.poisson(rate, (n_samples, n_features)) * 1.0
    return X, rng.dirichlet(np.full(n_features, 0.2), K).T + 1e-9, rng.uniform(0.02, 0.5, K)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 7, 16, 19])
def test_against_numpy(dtype, K):
    X, beta, alpha = problem(K=K)
    gamma, n_iter = collapse(X, beta, alpha, dtype=dtype, max_iter=4)
    assert_allclose(gamma, naive(X, beta, alpha, 4), rtol=RTOL[dtype], atol=1e-6)
    assert np.all(n_iter == 4) or K == 1  # which has converged at once


def test_documents_without_words_have_the_prior():
    X, beta, alpha = problem()
    X[3] = 0
    gamma, n_iter = collapse(X, beta, alpha)
    assert_array_equal(gamma[3], alpha)
    assert n_iter[3] == 0 and np.all(n_iter[:3] > 0)


def test_an_entry_that_is_zero_changes_nothing():
    X, beta, alpha = problem(n_samples=1)
    stored = sparse.csr_matrix(np.ones_like(X))
    stored.data[:] = X[0]
    assert_allclose(collapse(stored, beta, alpha)[0], collapse(X, beta, alpha)[0], rtol=1e-14)
    stored.data[:] = 0
    gamma, n_iter = collapse(stored, beta, alpha)
    assert_array_equal(gamma[0], alpha)
    assert n_iter[0] == 1


def test_a_document_stops_when_few_tokens_change():
    X, beta, alpha = problem(rate=2.0)
    exact, _ = collapse(X, beta, alpha, max_iter=2000)
    near, n_iter = collapse(X, beta, alpha, tolerance=1e-4, max_iter=2000)
    assert 3 < n_iter.max() < 2000
    assert np.abs(near - exact).sum(axis=1).max() < 0.1 * X.sum(axis=1).min()
    assert np.any(collapse(X, beta, alpha, max_iter=int(n_iter[0]) - 1)[0][0] != near[0])
    assert_array_equal(collapse(X, beta, alpha, max_iter=int(n_iter[0]))[0][0], near[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_priors_at_the_ends_of_the_range(dtype):
    X, beta, _ = problem()
    for alpha in (np.finfo(dtype).tiny, np.finfo(dtype).max / 1e3):
        gamma, _ = collapse(X, beta, np.full(7, alpha), dtype=dtype)
        assert np.all(np.isfinite(gamma))
        assert_allclose(gamma.astype(float).sum(axis=1), 7 * alpha + X.sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 7, 8, 20, 50])
def test_bits_do_not_depend_on_threads_or_on_other_documents(K, dtype):
    X, beta, alpha = problem(n_samples=150, n_features=60, K=K, rate=1.0)
    options = dict(dtype=dtype, tolerance=0.01)
    same_bits(lambda n: collapse(X, beta, alpha, n_threads=n, **options), 1, 5)
    some, _ = collapse(X, beta, alpha, rows=slice(40, 43), **options)
    assert_array_equal(some, collapse(X, beta, alpha, **options)[0][40:43])
