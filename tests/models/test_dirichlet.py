"""Ratios of Gamma functions, and logarithms of Gamma variates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import psi

from annealvi.models.dirichlet import log_gamma_variates, log_rising
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
