"""Logits at which a statistic has a value, against SciPy's root finder."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

from annealvi.proximity import Bernoulli
from annealvi.proximity.statistics import CHUNK, REACH, entropy, kl, kl_limits


def divergence(logit, centre):
    return float(kl(Bernoulli(np.array(logit)), centre)[0])


@pytest.mark.parametrize("centre", [0.0, -0.85, 1.4, -4.0, -9.2, 13.8])
def test_limits_against_a_root_finder(centre):
    rng = np.random.RandomState(0)
    most = np.logaddexp(0, [-centre, centre])  # upper, lower
    values = rng.random_sample(200) * most.min() * 0.999
    lower, upper = kl_limits(values[None], np.array([centre]))
    for f, low, high in zip(values, lower[0], upper[0], strict=True):
        above = brentq(lambda x, f=f: divergence(x, centre) - f, centre, centre + 40, xtol=1e-13)
        below = brentq(lambda x, f=f: divergence(x, centre) - f, centre - 40, centre, xtol=1e-13)
        assert_allclose([low, high], [below, above], atol=2e-5 if abs(centre) > 2 else 2e-6)


def test_limits_of_the_entropy():
    x = np.concatenate([np.linspace(0.01, 15, 200), np.logspace(-4, -2, 20)])
    values = np.log(2) - entropy(Bernoulli(x))[0]
    lower, upper = kl_limits(values[None], np.zeros(1))
    assert_array_equal(lower, -upper)
    assert_allclose(upper[0], x, atol=2e-6)


def test_edges():
    """At the centre nothing may move; what no logit reaches is no limit."""
    values = np.array([[0.0, 1e-300, np.log(2) * (1 - 1e-16), 0.6931, np.log(2), 5.0]])
    lower, upper = kl_limits(values, np.zeros(1))
    assert_allclose(upper[0, :2], 0, atol=1e-12)
    assert 10 < upper[0, 3] < 15
    assert np.all(upper[0, 2:] > 10) and upper[0, -1] == np.inf and lower[0, -1] == -np.inf
    assert not np.any(np.isnan(upper))
    one_sided = kl_limits(np.array([[1.0]]), np.array([2.0]))  # log(1 + e^-2) = .13
    assert one_sided[1][0, 0] == np.inf and -REACH < one_sided[0][0, 0] < 2


@pytest.mark.parametrize("centre", [9.2, 23.0, -23.0])
def test_values_out_of_reach_of_one_side(centre):
    """Where a table ends flat: infinity less nothing is no number, and no warning either."""
    lower, upper = kl_limits(np.array([[5.0, 8.0]]), np.array([centre]))
    out, within = (upper, lower) if centre > 0 else (lower, upper)
    assert np.all(np.isinf(out))
    assert_allclose(kl(Bernoulli(within), centre)[0], [[5.0, 8.0]], rtol=1e-3)


@pytest.mark.parametrize("n_samples", [1, 700, CHUNK + 1])
def test_rows_of_one_centre_are_looked_up_together(n_samples):
    centre = np.array([0.0, -0.4, 0.0, 0.0, -0.4, 2.5, 0.0, 0.0])
    values = np.random.RandomState(0).random_sample((8, n_samples)) * 0.9
    lower, upper = kl_limits(values, centre)
    for k in range(8):
        single = kl_limits(values[k : k + 1], centre[k : k + 1])
        assert_array_equal([lower[k], upper[k]], [single[0][0], single[1][0]])


def test_rows_have_centres_of_their_own():
    values, centre = np.full((3, 4), 0.2), np.array([-1.0, 0.0, 0.7])
    lower, upper = kl_limits(values, centre)
    for k in range(3):
        single = kl_limits(values[k : k + 1], centre[k : k + 1])
        assert_array_equal(lower[k], single[0][0])
        assert_array_equal(upper[k], single[1][0])
    assert_allclose(kl(Bernoulli(lower), centre[:, None])[0], 0.2, rtol=1e-6)
    assert_allclose(kl(Bernoulli(upper), centre[:, None])[0], 0.2, rtol=1e-6)
