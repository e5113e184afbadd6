"""Penalties of networks: distances, averages, entropies, and what is saved of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from annealvi.deep.penalties import (
    DISTANCES,
    ProximityPenalty,
    as_penalty,
    inverse_huber,
)
from annealvi.deep.statistics import OF_UNITS, STATISTICS, WeightStatistic


def my_mean(q, prior):
    return q.mean


def test_inverse_huber_and_its_slope():
    u = torch.tensor([-3.0, -1.0, -0.25, 0.0, 0.5, 1.0, 2.0], dtype=torch.double)
    u.requires_grad_()
    d = inverse_huber(u)
    d.sum().backward()
    np.testing.assert_allclose(d.detach(), [5.0, 1.0, 0.25, 0.0, 0.5, 1.0, 2.5])
    np.testing.assert_allclose(u.grad, [-3.0, -1.0, -1.0, 0.0, 1.0, 1.0, 2.0])


@pytest.mark.parametrize("alpha", [0.5, 0.9999, 1.0])
def test_the_average_is_debiased(alpha):
    values = torch.tensor(np.random.RandomState(0).randn(30, 4))
    penalty = ProximityPenalty(magnitude=1.0, decay=alpha).plan(30)
    for step, value in enumerate(values):
        if step:
            weights = alpha ** np.arange(step - 1, -1, -1.0)
            exact = weights @ values[:step].numpy() / weights.sum()
            np.testing.assert_allclose(penalty.average(value), exact, rtol=1e-12)
        penalty(value, step, 0.0)


def test_a_constant_statistic_costs_nothing():
    penalty = ProximityPenalty(magnitude=7.0, gamma=1.0, decay=0.9).plan(10)
    assert [float(penalty(torch.ones(3), step, 0.0)) for step in range(10)] == [0.0] * 10


def test_the_penalty_is_the_magnitude_times_the_distance():
    penalty = ProximityPenalty(magnitude=8.0, gamma=0.25).plan(2)
    penalty(torch.zeros(2, dtype=torch.double), 0, 0.0)
    value = torch.tensor([0.5, 3.0], dtype=torch.double, requires_grad=True)
    cost = penalty(value, 1, 0.0)
    cost.backward()
    assert cost.item() == pytest.approx(8 * 0.5 * (0.5 + 5.0))
    np.testing.assert_allclose(value.grad, 4 * np.array([1.0, 3.0]))


def test_magnitudes_fall_from_the_elbo_at_the_start():
    exponential = ProximityPenalty(gamma=1e-4).plan(100)
    linear = ProximityPenalty(shape="linear").plan(100)
    for penalty in (exponential, linear):
        penalty(torch.zeros(1), 0, torch.tensor(-50.0))
        penalty(torch.zeros(1), 1, torch.tensor(-7.0))  # only the first counts
    assert exponential.magnitude(0) == 50
    assert exponential.magnitude(50) == pytest.approx(0.5)
    assert linear.magnitude(25) == pytest.approx(37.5)


def test_the_state_goes_on():
    values = torch.tensor(np.random.RandomState(1).randn(20, 3))
    whole = ProximityPenalty().plan(20)
    costs = [float(whole(value, step, 9.0)) for step, value in enumerate(values)]
    begun = ProximityPenalty().plan(20)
    for step in range(8):
        begun(values[step], step, 9.0)
    resumed = ProximityPenalty().plan(20)
    resumed.load_state_dict(copy.deepcopy(begun.state_dict()))
    assert [float(resumed(values[step], step, 9.0)) for step in range(8, 20)] == costs[8:]


def test_a_fit_goes_on_with_the_magnitude_it_is_given():
    states = {}
    for k in (None, 3.0):
        begun = ProximityPenalty(magnitude=k).plan(20)
        begun(torch.zeros(2), 0, 9.0)
        states[k] = begun.state_dict()
    for before, now, expected in ((3.0, 5.0, 5.0), (None, 5.0, 5.0), (None, None, 9.0)):
        resumed = ProximityPenalty(magnitude=now).plan(20)
        resumed.load_state_dict(states[before])
        assert resumed.magnitude(0) == expected


def test_parameters():
    penalty = ProximityPenalty("kl", magnitude=2.0)
    assert clone(penalty).get_params() == penalty.get_params()
    assert as_penalty(None) is None
    assert as_penalty("kl").statistic == "kl"
    assert as_penalty(penalty) is penalty
    for statistic in (my_mean, STATISTICS["kl"], WeightStatistic(my_mean)):
        assert as_penalty(statistic).statistic is statistic
    own = ProximityPenalty(my_mean, distance=torch.square)
    for copied in (clone(own), pickle.loads(pickle.dumps(own))):
        assert copied.statistic is my_mean and copied.distance is torch.square


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"statistic": "median"}, "'statistic' parameter .* must be a str among .* or a callable"),
        ({"distance": "far"}, "'distance' parameter .* must be a str among .* or a callable"),
        ({"statistic": 3}, "'statistic' parameter .* must be a str among .* or a callable"),
        ({"decay": 0.0}, r"'decay' parameter .* range \(0.0, 1.0\]"),
        ({"decay": float("nan")}, r"'decay' parameter"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        as_penalty(ProximityPenalty(**parameters))


def test_bad_penalties_name_what_is_allowed():
    with pytest.raises(ValueError, match=r"'proximity' parameter must be None.*'median'"):
        as_penalty("median")
    with pytest.raises(ValueError, match=r"one of the statistics \['entropy'\].*'kl'"):
        as_penalty(ProximityPenalty("kl"), ["entropy"])
    with pytest.raises(ValueError, match=r"'proximity' .* a callable or an instance.*Got <class"):
        as_penalty(ProximityPenalty)
    with pytest.raises(
        ValueError, match="must be without a WeightStatistic, because its q has no net"
    ):
        as_penalty(WeightStatistic(my_mean), OF_UNITS)
    with pytest.raises(ValueError, match=r"one of the statistics .* Got 'orthogonal'"):
        as_penalty(STATISTICS["orthogonal"], OF_UNITS)


def test_other_distances():
    value = torch.tensor([0.5, 3.0], dtype=torch.double, requires_grad=True)
    for distance, cost, slope in (
        ("square", 9.25, [1.0, 6.0]),
        (DISTANCES["square"], 9.25, [1.0, 6.0]),
        (lambda u: torch.cosh(u) - 1, np.cosh([0.5, 3.0]).sum() - 2, np.sinh([0.5, 3.0])),
    ):
        penalty = ProximityPenalty(distance=distance, magnitude=2.0, gamma=1.0).plan(2)
        penalty(torch.zeros(2, dtype=torch.double), 0, 0.0)
        found = penalty(value, 1, 0.0)
        (gradient,) = torch.autograd.grad(found, value)
        assert found.item() == pytest.approx(2 * cost)
        np.testing.assert_allclose(gradient, 2 * np.array(slope))


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (lambda u: u.square().sum(), r"must return a Tensor of shape \(7,\)\. Got \(\)"),
        (lambda u: u.detach().numpy(), r"must return a Tensor of shape \(7,\)\. Got ndarray"),
        (lambda u: u.log(), r"must be finite\. It is not at u = 0"),
        (lambda u: u.square().sqrt(), r"The gradient of the 'distance' .* must be finite at u = 0"),
        (lambda u: u.abs().detach(), "has no gradient: compute it by operations of PyTorch"),
        (lambda u: (u - u.mean()).square(), "must work on each element alone"),
    ],
)
def test_wrong_distances(distance, words):
    with pytest.raises(ValueError, match=words):
        as_penalty(ProximityPenalty(distance=distance))


def test_a_distance_that_goes_wrong_later():
    penalty = ProximityPenalty(distance=lambda u: u.square() / (u < 10)).plan(9)
    penalty(torch.zeros(2), 0, 1.0)
    with pytest.raises(ValueError, match=r"'distance' of the penalty must be finite\. .* u = 11"):
        penalty(torch.tensor([1.0, 11.0]), 1, 1.0)


def test_a_statistic_that_changes_its_shape():
    penalty = ProximityPenalty(my_mean).plan(9)
    penalty(torch.zeros(2), 0, 1.0)
    with pytest.raises(ValueError, match=r"must keep its shape\. It had 2 values, and now has 3"):
        penalty(torch.zeros(3), 1, 1.0)
