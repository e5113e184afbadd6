"""The checks of functions that a user has written."""

import numpy as np
import pytest

from annealvi.proximity import (
    DISTANCES,
    STATISTICS,
    Bernoulli,
    Distance,
    check_distance,
    check_statistic,
)

PRIOR = np.array([[-0.8], [0.3]])
SHAPES = [(1, 2, 3), (4, 2, 50), (2, 2, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", STATISTICS)
def test_ours_pass(name, shape):
    check_statistic(STATISTICS[name], Bernoulli(np.zeros(shape)), PRIOR)
    check_statistic(STATISTICS[name], Bernoulli(np.full(shape, 40.0)), PRIOR)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_scales_pass(size, shape):
    check_statistic(
        lambda q, c: (size * q.probability, size * q.variance), Bernoulli(np.zeros(shape))
    )
    check_statistic(lambda q, c: (size + q.probability, q.variance), Bernoulli(np.zeros(shape)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_wrong_element_is_found(shape):
    def almost(q, prior_logit):
        derivative = q.variance.copy()
        derivative[0, 0, 0] *= -1
        return q.probability, derivative

    with pytest.raises(ValueError, match="gradient of the statistic 'almost' differs"):
        check_statistic(almost, Bernoulli(np.zeros(shape)))


def test_a_gradient_that_ignores_the_prior_is_found():
    def kl(q, prior_logit):
        return STATISTICS["kl"](q, prior_logit)[0], q.logit * q.variance

    check_statistic(kl, Bernoulli(np.zeros((1, 2, 3))), 0.0)
    with pytest.raises(ValueError, match="'kl' differs from finite differences"):
        check_statistic(kl, Bernoulli(np.zeros((1, 2, 3))), PRIOR)


def test_the_logits_of_the_caller_stay_as_they_are():
    q = Bernoulli(np.zeros((1, 2, 3)))
    check_statistic(STATISTICS["mean"], q)
    assert np.all(q.logit == 0)


@pytest.mark.parametrize("wrong", [None, "entropy", 3])
def test_what_is_no_statistic(wrong):
    with pytest.raises(TypeError, match=f"'statistic' parameter .* callable. Got {wrong!r}"):
        check_statistic(wrong, Bernoulli(np.zeros(2)))


def test_what_is_no_q():
    with pytest.raises(TypeError, match=r"'q' parameter .* must be a Bernoulli"):
        check_statistic(STATISTICS["mean"], np.zeros(2))


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (
            np.zeros((3, 1)),
            r"broadcastable to the shape of q, \(1, 2, 3\)\. Got shape \(3, 1\)",
        ),
        (np.zeros((4, 2, 3)), "must be broadcastable to the shape of q"),
        (np.nan, "must be finite"),
        ("even", "must be a float or an array of floats"),
    ],
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


@pytest.mark.parametrize(
    ("value", "derivative", "words"),
    [
        (absolute, lambda u: -np.sign(u), r"derivative '<lambda>' of a distance at u = .* differs"),
        (lambda u: u**2, lambda u: 2.1 * u, "gives .*, they give"),
        (lambda u: np.sqrt(np.abs(u)), root, "The derivative 'root' of a distance must be finite"),
        (total, lambda u: 2 * u, r"The distance 'total' must have shape \(7,\)\. Got shape \(\)"),
        (lambda u: u**2, lambda u: 2.0, r"of a distance must have shape \(7,\)"),
        (lambda u: None, lambda u: u, r"The distance '<lambda>' must be an array of floats"),
        (lambda u: u * np.nan, lambda u: u, r"must be finite\. Got nan"),
    ],
)
def test_wrong_distances(value, derivative, words):
    with pytest.raises(ValueError, match=words):
        Distance(value, derivative)
    with pytest.raises(ValueError, match=words):
        check_distance(value, derivative)


@pytest.mark.parametrize(("parts", "name"), [((3, abs), "value"), ((abs, None), "derivative")])
def test_parts_of_a_distance_that_cannot_be_called(parts, name):
    with pytest.raises(TypeError, match=f"The '{name}' parameter of Distance must be callable"):
        Distance(*parts)
