"""Ratios of Gamma functions, and logarithms of Gamma variates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import gammaln, psi

from annealvi.models.dirichlet import (
    BLOCK,
    divergence_terms,
    log_gamma_variates,
    log_rising,
    negative_kl,
)
from tests._kernels.test_partition import log_gamma_cdf


def test_ratios_of_gamma_functions():
    """Gamma(a + n) / Gamma(a) = a (a + 1) ... (a + n - 1)."""
    for a in (1e-300, 1e-3, 0.5, 15.9, 16.0, 16.1, 1e3, 1e10, 1e200):
        for n in (0, 1, 2, 30):
            assert_allclose(log_rising(a, n), np.sum(np.log(a + np.arange(n))), rtol=2e-14)
    assert_array_equal(log_rising([1e-3, 1e300], 0.0), 0)


@pytest.mark.parametrize("shape", [1e-3, 0.05, 0.2, 0.44, 0.46, 1.0, 7.0])
def test_log_gamma_variates(shape):
    rng = np.random.Generator(np.random.SFC64(5))
    x = log_gamma_variates(rng, np.array([shape]), (200, 200)).ravel()
    assert stats.kstest(x, lambda x: log_gamma_cdf(x, shape)).pvalue > 1e-3


def test_log_gamma_variates_of_different_shapes():
    rng = np.random.Generator(np.random.SFC64(5))
    shapes = np.array([0.05, 0.3, 4.0])
    x = log_gamma_variates(rng, shapes, (40_000, 3))
    assert_allclose(x.mean(axis=0), psi(shapes), rtol=0.02)
    tiny = log_gamma_variates(rng, np.array([1e-308]), (50,))
    assert np.all(np.isfinite(tiny)) and np.all(tiny < 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_terms_of_divergences(dtype):
    rng = np.random.RandomState(0)
    # from what a sparse topic holds to what a large corpus does
    x = np.exp(rng.uniform(np.log(1e-6), np.log(1e6), (200, 30))).astype(dtype)
    prior, psi_sums, wide = (
        rng.uniform(0.01, 2, 30),
        psi(x.sum(axis=1, keepdims=True, dtype=float)),
        x.astype(float),
    )
    expected = (prior - wide) * (psi(wide) - psi_sums) + gammaln(wide)
    # the factors of a term may cancel, in SciPy too
    scale = np.abs(expected) + wide * np.abs(psi(wide)) + 1
    assert np.max(np.abs(divergence_terms(x, prior, psi_sums) - expected) / scale) < 1e-14


def test_divergences_of_many_rows():
    """More rows than are computed at a time."""
    rng = np.random.RandomState(0)
    q, p = rng.uniform(0.1, 9, (BLOCK // 3 + 5, 3)), np.array([0.1, 1.0, 2.0])
    total = q.sum(axis=1)
    expected = gammaln(p.sum()) - gammaln(p).sum() - gammaln(total) + gammaln(q).sum(axis=1)
    expected += np.sum((p - q) * (psi(q) - psi(total)[:, None]), axis=1)
    assert_allclose(negative_kl(p, q), expected, rtol=1e-11)
