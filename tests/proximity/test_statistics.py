"""Proximity statistics: values against SciPy, derivatives against finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr, expit

from annealvi.proximity import DISTANCES, STATISTICS, Bernoulli

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
        found = STATISTICS[name](Bernoulli(LOGITS), PRIOR)[0]
        assert_allclose(found, value, rtol=1e-6, atol=1e-12)


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


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("past", [0.01, 3.0], ids=["near", "far"])
@pytest.mark.parametrize("name", STATISTICS)
def test_penalty_gradients(name, past, distance):
    """d(f - past f) by the chain rule, on both branches of the distance."""
    step, d = 1e-5, DISTANCES[distance]
    value = STATISTICS[name](Bernoulli(LOGITS), PRIOR)[0]
    shift = past * np.random.RandomState(0).choice([-1, 1], value.shape)
    assert np.any(np.abs(shift) < 1) == (past < 1)

    def penalty(theta):
        away = d.value(STATISTICS[name](Bernoulli(theta), PRIOR)[0] - value - shift)
        return away.sum(axis=0) if away.ndim > theta.ndim else away

    difference = (penalty(LOGITS + step) - penalty(LOGITS - step)) / (2 * step)
    gradient = times_derivative(name, LOGITS, d.derivative(-shift))
    assert_allclose(gradient, difference, rtol=1e-6, atol=1e-9)


def test_kl_is_never_negative_and_zero_at_the_prior():
    theta = np.broadcast_to(PRIOR, LOGITS.shape)
    value, derivative = STATISTICS["kl"](Bernoulli(theta), PRIOR)
    assert np.all(value >= 0)
    assert_allclose(value, 0, atol=1e-15)
    assert_allclose(derivative, 0, atol=1e-15)
