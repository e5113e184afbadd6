"""Ascents with statistics and distances of the user's own."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from annealvi.proximity import (
    DISTANCES,
    STATISTICS,
    Bernoulli,
    BernoulliFactorModel,
    Distance,
    ProximityAscent,
    inverse_huber,
    inverse_huber_derivative,
)

RNG = np.random.RandomState(0)
X = (RNG.random_sample((30, 2)) < 0.5) @ np.array([[3.0, 1.0], [0.0, 4.0]]) + RNG.randn(30, 2)
MODEL = BernoulliFactorModel(X, prior_probability=0.4)
START = RNG.normal(0, 3, (5, 2, 2))
LOGITS = RNG.normal(0, 1, (5, 2, 30))
HELD = dict(magnitude=1e4, gamma=1.0, n_steps=200)


def mean_of_my_own(q, prior_logit):
    return q.probability, q.variance


def mean_times_q(q, prior_logit):
    return q.probability, lambda c: c * q.variance


def usage(q, prior_logit):
    """The share of the data that has each factor: it mixes all data of a run."""
    n = q.logit.shape[-1]
    return q.probability.mean(axis=-1), lambda c: c[..., None] * q.variance / n


SMOOTH = Distance(lambda u: np.log(np.cosh(u)), np.tanh)


@pytest.mark.parametrize("method", ["fast", "inner"])
@pytest.mark.parametrize("own", [mean_of_my_own, mean_times_q])
def test_a_function_is_what_the_name_is(own, method):
    """Whether its derivative is elementwise or a product."""
    options = dict(method=method, n_steps=30, random_state=0)
    named = ProximityAscent("mean", **options).ascend(MODEL, START, LOGITS)
    found = ProximityAscent(own, **options).ascend(MODEL, START, LOGITS)
    assert_array_equal(found.logits, named.logits)
    assert_array_equal(found.means, named.means)


def test_named_ones_are_functions_and_objects_like_any_other():
    for name, statistic in STATISTICS.items():
        by_name = ProximityAscent(name, n_steps=10).ascend(MODEL, START, LOGITS)
        by_object = ProximityAscent(statistic, n_steps=10).ascend(MODEL, START, LOGITS)
        assert_array_equal(by_name.logits, by_object.logits)
    own = Distance(inverse_huber, inverse_huber_derivative)
    results = [
        ProximityAscent("kl", distance=distance, n_steps=10).ascend(MODEL, START, LOGITS).logits
        for distance in ("inverse_huber", DISTANCES["inverse_huber"], own)
    ]
    assert_array_equal(results[0], results[1])
    assert_array_equal(results[0], results[2])


def test_a_statistic_that_mixes_elements_is_held():
    moved = {}
    for k in (0.0, 1e5):
        ascent = ProximityAscent(usage, **HELD | {"magnitude": k}).ascend(MODEL, START, LOGITS)
        shares = [Bernoulli(theta).probability.mean(axis=-1) for theta in (LOGITS, ascent.logits)]
        moved[k] = np.mean(np.abs(shares[1] - shares[0]))
    assert moved[1e5] < 0.2 * moved[0.0]


@pytest.mark.parametrize("distance", ["square", SMOOTH], ids=["square", "smooth"])
def test_algorithm_2_with_another_distance_against_plain_numpy(distance):
    theta, mu, raw, rate, k, decay = LOGITS.copy(), START.copy(), 0.0, 1e-3, 50.0, 0.9
    slope_of = np.tanh if distance is SMOOTH else lambda u: 2 * u
    for t in range(20):
        q = Bernoulli(theta)
        a, slope = MODEL.gradients(q, mu)
        gradient = (a - theta) * q.variance
        if t:
            past = raw / (1 - decay**t)
            gradient = gradient - k * slope_of(q.probability - past) * q.variance
        raw = decay * raw + (1 - decay) * q.probability
        theta, mu = theta + rate * gradient, mu + rate * slope
    options = dict(decay=decay, magnitude=k, gamma=1.0, optimizer="gradient", learning_rate=rate)
    ascent = ProximityAscent("mean", distance=distance, n_steps=20, **options)
    found = ascent.ascend(MODEL, START, LOGITS)
    assert_allclose(found.logits, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(found.means, mu, rtol=1e-9, atol=1e-12)


def test_clones_and_pickles_keep_functions():
    ascent = ProximityAscent(usage, distance=Distance(inverse_huber, inverse_huber_derivative))
    copies = clone(ascent), pickle.loads(pickle.dumps(ascent))
    for copy in copies:
        assert copy.statistic is usage
        assert copy.distance == ascent.distance
    assert "usage" in repr(ascent)


def no_pair(q, prior_logit):
    return q.probability


def no_numbers(q, prior_logit):
    return "half", q.variance


def other_shape(q, prior_logit):
    return q.probability, q.variance[..., :1]


def sum_without_a_product(q, prior_logit):
    return q.probability.sum(axis=-1), q.variance


def product_of_another_shape(q, prior_logit):
    return q.probability, lambda c: c.sum(axis=0)


def wrong_gradient(q, prior_logit):
    return q.probability, 1.01 * q.variance


def wrong_product(q, prior_logit):
    return q.probability.sum(axis=-1), lambda c: c[..., None] * q.probability


def nan(q, prior_logit):
    return np.where(q.logit > 0, np.nan, q.probability), q.variance


def nan_gradient(q, prior_logit):
    return q.probability, np.where(q.logit > 0, np.nan, q.variance)


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        (no_pair, r"'no_pair' must return a tuple of f and its derivative\. Got ndarray"),
        (no_numbers, r"'no_numbers' must be an array of floats\. Got 'half'"),
        (other_shape, r"derivative of .*'other_shape' must have shape \(5, 2, 30\)\. Got .*, 1\)"),
        (sum_without_a_product, r"must be a function, because f has shape \(5, 2\) and q \(5, 2"),
        (product_of_another_shape, r"gradient of .*must have shape \(5, 2, 30\)\. Got shape \(2"),
        (wrong_gradient, r"gradient of the statistic 'wrong_gradient' differs from finite diff"),
        (wrong_product, r"'wrong_product' differs from finite differences: it gives .*, they give"),
        (nan, r"The statistic 'nan' must be finite\. Got nan"),
        (nan_gradient, r"derivative of the statistic 'nan_gradient' must be finite\. Got nan"),
    ],
)
def test_wrong_statistics(statistic, words):
    with pytest.raises(ValueError, match=words):
        ProximityAscent(statistic, n_steps=3).ascend(MODEL, START, LOGITS)
    annealed = ProximityAscent(statistic, method="annealing", n_steps=1)
    assert annealed.ascend(MODEL, START, LOGITS).n_steps == 1  # which does not use it


class Turning:
    """A statistic that goes wrong during the fit."""

    def __init__(self, after, bad):
        self.after, self.bad, self.calls = after, bad, 0

    def __call__(self, q, prior_logit):
        self.calls += 1
        if self.calls > self.after:
            return self.bad(q)
        return q.probability, q.variance


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda q: (q.probability * np.nan, q.variance), r"'Turning' must be finite"),
        (lambda q: (q.probability[..., :4], q.variance[..., :4]), r"must have shape \(5, 2, 30\)"),
        (lambda q: (q.probability, q.variance * np.inf), r"derivative of .* finite.*Got inf"),
        (lambda q: (q.probability, lambda c: c * np.nan), r"gradient of 'Turning' must be finite"),
    ],
)
def test_a_statistic_that_goes_wrong_later(bad, words):
    counted = Turning(10**9, bad)
    ProximityAscent(counted, n_steps=1).ascend(MODEL, START, LOGITS)
    with pytest.raises(ValueError, match=words):
        ProximityAscent(Turning(counted.calls + 4, bad), n_steps=50).ascend(MODEL, START, LOGITS)


def test_a_distance_that_goes_wrong_later():
    narrow = Distance(lambda u: u**2, lambda u: np.where(np.abs(u) > 8, np.nan, 2 * u))
    wide = ProximityAscent(lambda q, c: (q.logit, np.ones_like(q.logit)), distance=narrow)
    wide.set_params(n_steps=50, learning_rate=20.0, magnitude=1e-3)
    with pytest.raises(ValueError, match=r"derivative of Distance.* must be finite"):
        wide.ascend(MODEL, START, LOGITS)
