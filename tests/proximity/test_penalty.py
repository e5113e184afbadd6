"""The distance, the moving average and the magnitudes of proximity penalties."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi.proximity import (
    DISTANCES,
    STATISTICS,
    Bernoulli,
    Distance,
    MovingAverage,
    check_distance,
    check_statistic,
    inverse_huber,
    inverse_huber_derivative,
)
from tests.asserts import refused
from tests.marks import cases


def test_distance():
    u = np.array([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0])
    assert_array_equal(inverse_huber(u), [5.0, 1.0, 0.5, 0.0, 0.25, 1.0, 2.5])
    assert_array_equal(inverse_huber_derivative(u), [-3.0, -1.0, -1.0, 0.0, 1.0, 1.0, 2.0])
    assert inverse_huber(1e200) == np.inf
    assert np.all(np.isnan([inverse_huber(np.nan), inverse_huber_derivative(np.nan)]))


@pytest.mark.parametrize("decay", [0.3, 0.9, 0.9999, 1.0])
def test_debiasing_is_exact(decay):
    """Weights alpha^(t - s), normalised: no trace of the zero that it starts from."""
    values = np.random.RandomState(0).normal(5, 1, (50, 3))
    average = MovingAverage(decay)
    assert average.value is None
    for t in range(1, 51):
        weights = decay ** np.arange(t - 1, -1, -1.0)
        got = average.update(values[t - 1])
        assert_allclose(got, weights @ values[:t] / weights.sum(), rtol=1e-11)
    constant = MovingAverage(decay)
    assert [float(constant.update(0.7)) for _ in range(20)] == [0.7] * 20


def test_the_average_keeps_nothing_of_its_caller():
    values = np.ones(3)
    average = MovingAverage(0.5)
    average.update(values)
    values[:] = 7
    assert_array_equal(average.value, 1)
    first = average.value
    second = average.update(values)
    assert_array_equal(values, 7)
    assert_array_equal(first, 1)  # what was given out stays what it was
    average.update(values)
    assert_array_equal(second, 5)


@pytest.mark.parametrize("wrong", ["a", [1.0, [2.0]], None, 1j, {"a": 1}])
def test_what_is_no_number(wrong):
    for function in (inverse_huber, inverse_huber_derivative):
        refused("'u' parameter must be a float or an array of floats", function, wrong)
    refused(r"'new' parameter of MovingAverage\.update must be a", MovingAverage(0.5).update, wrong)


PRIOR = np.array([[-0.8], [0.3]])
SHAPES = [(1, 2, 3), (4, 2, 50), (2, 2, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", STATISTICS)
def test_ours_pass(name, shape):
    check_statistic(STATISTICS[name], Bernoulli(np.zeros(shape)), PRIOR)
    check_statistic(STATISTICS[name], Bernoulli(np.full(shape, 40.0)), PRIOR)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_scales_pass(size):
    q = Bernoulli(np.zeros((4, 2, 50)))
    check_statistic(lambda q, c: (size * q.probability, size * q.variance), q)
    check_statistic(lambda q, c: (size + q.probability, q.variance), q)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_wrong_element_is_found(shape):
    def almost(q, prior_logit):
        derivative = q.variance.copy()
        derivative[0, 0, 0] *= -1
        return q.probability, derivative

    with pytest.raises(ValueError, match="gradient of the statistic 'almost' is wrong: "):
        check_statistic(almost, Bernoulli(np.zeros(shape)))


@cases(
    "prior, words",
    (np.zeros((3, 1)), r"broadcastable to the shape of q, \(1, 2, 3\)\. Got shape \(3, 1\)"),
    (np.nan, "must be finite"),
    ("even", "must be a float or an array of floats"),
)
def test_what_is_no_prior(prior, words):
    with pytest.raises(ValueError, match=f"'prior_logit'.* {words}"):
        check_statistic(STATISTICS["kl"], Bernoulli(np.zeros((1, 2, 3))), prior)


def test_named_distances_pass():
    for distance in DISTANCES.values():
        check_distance(distance.value, distance.derivative)
    check_distance(np.abs, np.sign)  # a corner at 0 is allowed


def absolute(u):
    return np.abs(u)


def root(u):
    with np.errstate(divide="ignore", invalid="ignore"):
        return 0.5 / np.sqrt(np.abs(u)) * np.sign(u)


def total(u):
    return np.sum(u**2)


@cases(
    "value, derivative, words",
    (absolute, lambda u: -np.sign(u), r"derivative '<lambda>' of a distance at u = .* is wrong"),
    (lambda u: u**2, lambda u: 2.1 * u, "is .*, but finite differences"),
    (lambda u: np.sqrt(np.abs(u)), root, "The derivative 'root' of a distance must be finite"),
    (total, lambda u: 2 * u, r"The distance 'total' must have shape \(7,\)\. Got shape \(\)"),
    (lambda u: u**2, lambda u: 2.0, r"of a distance must have shape \(7,\)"),
    (lambda u: None, lambda u: u, r"The distance '<lambda>' must be an array of floats"),
    (lambda u: u * np.nan, lambda u: u, r"must be finite\. Got nan"),
)
def test_wrong_distances(value, derivative, words):
    refused(words, Distance, value, derivative)
    refused(words, check_distance, value, derivative)


@pytest.mark.parametrize(("parts", "name"), [((3, abs), "value"), ((abs, None), "derivative")])
def test_parts_of_a_distance_that_cannot_be_called(parts, name):
    with pytest.raises(TypeError, match=f"The '{name}' parameter of Distance must be callable"):
        Distance(*parts)


def test_what_is_no_statistic():
    message = "'statistic' parameter of check_statistic must be callable"
    refused(message, check_statistic, "entropy", Bernoulli(np.zeros(2)), error=TypeError)
    with pytest.raises(TypeError, match="'q' parameter of check_statistic must be a Bernoulli"):
        check_statistic(STATISTICS["mean"], np.zeros(2))
