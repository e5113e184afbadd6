"""Penalties of networks: distances, averages, entropies, and what is saved of them."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.base import clone
from torch.distributions import Bernoulli, Independent, Normal, Poisson

from annealvi.deep.penalties import (
    LARGE_RATE,
    ProximityPenalty,
    as_penalty,
    bernoulli_kl,
    gram,
    inverse_huber,
    poisson_entropy,
    statistic,
)


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


@pytest.mark.parametrize("rate", [1e-3, 0.3, 1.0, 7.5, 29.9, 30.1, 80.0])
def test_poisson_entropy(rate):
    found = float(poisson_entropy(torch.tensor(rate, dtype=torch.double)))
    assert found == pytest.approx(float(stats.poisson(rate).entropy()), rel=1e-6)


@pytest.mark.parametrize("rate", [0.5, 12.0, LARGE_RATE + 3])
def test_slope_of_poisson_entropy(rate):
    at = torch.tensor(rate, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(poisson_entropy, (at,))


def test_poisson_entropy_of_no_rate():
    rate = torch.tensor([0.0, 1e-30], requires_grad=True)
    entropy = poisson_entropy(rate)
    entropy.sum().backward()
    assert float(entropy.detach().abs().max()) < 1e-20
    assert bool(torch.isfinite(rate.grad).all())


def test_statistics_are_averaged_before_the_distance():
    logits = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0))
    q = Bernoulli(logits=logits)
    p = logits.sigmoid()
    np.testing.assert_allclose(
        statistic("mean_variance", q),
        torch.cat([p.mean((0, 1)), (p * (1 - p)).mean((0, 1))]),
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        statistic("entropy", q), stats.bernoulli(p.numpy()).entropy().mean((0, 1)), rtol=1e-4
    )
    prior = Bernoulli(logits=torch.zeros(3))
    expected = np.log(2) - stats.bernoulli(p.numpy()).entropy().mean((0, 1))
    np.testing.assert_allclose(statistic("kl", q, prior), expected, rtol=1e-3, atol=1e-6)
    assert statistic("entropy", Poisson(p)).shape == (3,)
    assert statistic("entropy", Normal(p, 1.0)).shape == (3,)
    with pytest.raises(TypeError, match="Independent"):
        statistic("entropy", Independent(q, 1))
    with pytest.raises(ValueError, match="'orthogonal'"):
        statistic("orthogonal", q)


def test_kl_of_bits_that_are_all_but_certain():
    a = torch.tensor([-500.0, 0.3, 80.0, -2.0], requires_grad=True)
    b = torch.tensor([3.0, -1.0, -90.0, -700.0])
    kl = bernoulli_kl(a, b)
    kl.sum().backward()
    p = 1 / (1 + np.exp(-np.array([0.3, -1.0])))
    exact = stats.bernoulli(p[0]).expect(
        lambda z: stats.bernoulli(p[0]).logpmf(z) - stats.bernoulli(p[1]).logpmf(z)
    )
    certain = 700 / (1 + np.exp(2)) - stats.bernoulli(1 / (1 + np.exp(2))).entropy()
    np.testing.assert_allclose(kl.detach(), [np.log1p(np.exp(3)), exact, 90, certain], rtol=1e-5)
    assert bool(torch.isfinite(a.grad).all())
    found = statistic("kl", Bernoulli(logits=a[:, None]), Bernoulli(logits=b[:, None]))
    np.testing.assert_allclose(found.detach(), kl.detach().mean(), rtol=1e-6)


def test_gram_of_orthogonal_layers_is_the_identity():
    wide, square = torch.empty(3, 7), torch.empty(4, 4)
    torch.nn.init.orthogonal_(wide, generator=torch.Generator().manual_seed(0))
    torch.nn.init.orthogonal_(square, generator=torch.Generator().manual_seed(0))
    expected = np.r_[np.eye(3).ravel(), np.eye(4).ravel()]
    np.testing.assert_allclose(gram([wide, square]), expected, atol=1e-6)


def test_parameters():
    penalty = ProximityPenalty("kl", magnitude=2.0)
    assert clone(penalty).get_params() == penalty.get_params()
    assert as_penalty(None, "VAE") is None
    assert as_penalty("kl", "VAE").statistic == "kl"
    assert as_penalty(penalty, "VAE") is penalty


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"statistic": "median"}, "'statistic' parameter .* must be a str among"),
        ({"magnitude": -1.0}, r"'magnitude' parameter .* range \[0.0, inf\)"),
        ({"gamma": 0.0}, r"'gamma' parameter .* range \(0.0, 1.0\]"),
        ({"gamma": 1.5}, r"'gamma' parameter .* range \(0.0, 1.0\]"),
        ({"decay": 0.0}, r"'decay' parameter .* range \(0.0, 1.0\]"),
        ({"decay": float("nan")}, r"'decay' parameter"),
        ({"shape": "cosine"}, "'shape' parameter .* must be a str among"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        as_penalty(ProximityPenalty(**parameters), "VAE")


def test_bad_penalties_name_what_is_allowed():
    with pytest.raises(ValueError, match=r"'proximity' parameter of VAE must be None.*'median'"):
        as_penalty("median", "VAE")
    with pytest.raises(ValueError, match=r"can have the statistics \['entropy'\].*'kl'"):
        as_penalty(ProximityPenalty("kl"), "VAE", ["entropy"])


def test_slope_of_gram():
    weights = [torch.randn(n, 4, dtype=torch.double, requires_grad=True) for n in (3, 2)]
    assert torch.autograd.gradcheck(lambda *layers: gram(layers), weights)
