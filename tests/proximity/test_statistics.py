"""Proximity statistics: values against SciPy, derivatives against finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import entr, expit

from annealvi.proximity import STATISTICS, Bernoulli
from annealvi.proximity.statistics import CHUNK, REACH, kl, kl_limits

LOGITS = np.array([[-30.0, -5, -1.3, -0.2, 0.4, 2.1, 7.0, 20.0], np.linspace(-3, 3, 8)])
PRIOR = np.array([[-0.8], [0.3]])


def test_bernoulli():
    theta = np.concatenate([[-800.0, -700.0, 0.0, 700.0, 800.0], LOGITS.ravel()])
    q = Bernoulli(theta)
    assert_allclose(q.probability, expit(theta), rtol=1e-14)
    assert_allclose(q.variance, expit(theta) * expit(-theta), rtol=1e-14)
    rare = expit(-np.abs(theta))  # whose complement would round
    assert_allclose(q.entropy, entr(rare) - (1 - rare) * np.log1p(-rare), rtol=1e-13, atol=1e-300)


def test_values():
    q, p = expit(LOGITS), expit(PRIOR)
    expected = {
        "entropy": entr(q) + entr(1 - q),
        "kl": q * np.log(q / p) + (1 - q) * np.log1p(-q) - (1 - q) * np.log1p(-p),
        "mean": q,
        "variance": q * (1 - q),
        "mean_variance": [q, q * (1 - q)],
    }
    assert set(expected) == set(STATISTICS)
    for name, value in expected.items():
        assert_allclose(STATISTICS[name](Bernoulli(LOGITS), PRIOR)[0], value, rtol=1e-6, atol=1e-12)


def times_derivative(name, theta, weights):
    """sum_j w_j df_j/dtheta, of a derivative of either kind."""
    derivative = STATISTICS[name](Bernoulli(theta), PRIOR)[1]
    return derivative(weights) if callable(derivative) else weights * derivative


@pytest.mark.parametrize("name", STATISTICS)
def test_derivatives(name):
    step = 1e-5
    above, below = (STATISTICS[name](Bernoulli(LOGITS + s), PRIOR)[0] for s in (step, -step))
    weights = np.random.RandomState(1).normal(size=above.shape)
    difference = weights * (above - below) / (2 * step)  # f of an element is of its logit alone
    if difference.ndim > LOGITS.ndim:
        difference = difference.sum(axis=0)
    assert_allclose(times_derivative(name, LOGITS, weights), difference, rtol=1e-6, atol=1e-10)


def test_kl_is_never_negative_and_zero_at_the_prior():
    value, derivative = STATISTICS["kl"](Bernoulli(np.broadcast_to(PRIOR, LOGITS.shape)), PRIOR)
    assert np.all(value >= 0)
    assert_allclose(value, 0, atol=1e-15)
    assert_allclose(derivative, 0, atol=1e-15)


def divergence(logit, centre):
    return float(kl(Bernoulli(np.array(logit)), centre)[0])


@pytest.mark.slow
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
