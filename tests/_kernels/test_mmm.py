"""The kernels of the multinomial mixture against SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp, softmax

from annealvi._kernels import mmm as kernels
from tests.asserts import same_bits


def documents(n=70, n_words=40, dtype=np.float64, index=np.int32):
    rng = np.random.RandomState(0)
    X = sparse.random(n, n_words, 0.2, format="csr", random_state=rng, dtype=dtype)
    X.data = rng.poisson(3, X.nnz).astype(dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def product(X, rows, first, n_threads=1):
    out = np.tile(first, (X.shape[0], 1))
    kernels.add_product(X.data, X.indices, X.indptr, rows, n_threads, out)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("K", [1, 3, 8, 50])
def test_product(K, dtype, index):
    X, rng = documents(dtype=dtype, index=index), np.random.RandomState(1)
    rows, first = rng.normal(size=(40, K)), rng.normal(size=K)
    assert_allclose(product(X, rows, first), first + X.astype(float) @ rows, rtol=1e-12)
    assert_array_equal(product(X[:0], rows, first), np.empty((0, K)))
    assert_array_equal(product(sparse.csr_matrix((2, 40), dtype=dtype), rows, first), [first] * 2)


@pytest.mark.parametrize("b", [1.0, 0.3])
@pytest.mark.parametrize("K", [1, 3, 8, 50])
def test_normalise(K, b):
    logs = np.random.RandomState(1).normal(-1e4, 30, size=(60, K))
    energies, log_sums = np.empty(60), np.empty(60)
    phi = logs.copy()
    kernels.normalise(b, 1, np.empty((1, K)), phi, energies, log_sums)
    expected = softmax(b * logs, axis=1)
    assert_allclose(phi, expected, rtol=1e-11, atol=1e-300)
    assert_allclose(log_sums, logsumexp(b * logs, axis=1), rtol=1e-13)
    assert_allclose(energies, (expected * logs).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [1, 8, 60])
def test_the_same_bits(K, dtype):
    X, rng = documents(3000, dtype=dtype), np.random.RandomState(1)
    rows, first, sums = rng.normal(size=(40, K)), np.zeros(K), np.empty((2, 3000))

    def compute(n_threads):
        out = product(X, rows, first, n_threads)
        phi = out.copy()
        kernels.normalise(0.5, n_threads, np.empty((n_threads, 64)), phi, *sums)
        return out, phi, sums.copy()

    same_bits(compute)
