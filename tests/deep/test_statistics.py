"""Statistics of networks: values, gradients, and functions of the user's own."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import Bernoulli, Independent, Normal, Poisson

from annealvi.deep import WeightStatistic
from annealvi.deep.statistics import (
    LARGE_RATE,
    OF_UNITS,
    STATISTICS,
    Statistic,
    bernoulli_kl,
    gram,
    poisson_entropy,
)


def of(q, name, prior=None):
    return Statistic(name)([(q, q if prior is None else prior)])


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
        of(q, "mean_variance"),
        torch.cat([p.mean((0, 1)), (p * (1 - p)).mean((0, 1))]),
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        of(q, "entropy"), stats.bernoulli(p.numpy()).entropy().mean((0, 1)), rtol=1e-4
    )
    prior = Bernoulli(logits=torch.zeros(3))
    expected = np.log(2) - stats.bernoulli(p.numpy()).entropy().mean((0, 1))
    np.testing.assert_allclose(of(q, "kl", prior), expected, rtol=1e-3, atol=1e-6)
    assert of(Poisson(p), "entropy").shape == (3,)
    assert of(Normal(p, 1.0), "entropy").shape == (3,)
    with pytest.raises(TypeError, match="Independent"):
        of(Independent(q, 1), "entropy")
    np.testing.assert_allclose(of(q, "mean"), p.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(of(q, "variance"), (p * (1 - p)).mean((0, 1)), rtol=1e-5)


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
    found = of(Bernoulli(logits=a[:, None]), "kl", Bernoulli(logits=b[:, None]))
    np.testing.assert_allclose(found.detach(), kl.detach().mean(), rtol=1e-6)


def test_gram_of_orthogonal_layers_is_the_identity():
    wide, square = torch.empty(3, 7), torch.empty(4, 4)
    torch.nn.init.orthogonal_(wide, generator=torch.Generator().manual_seed(0))
    torch.nn.init.orthogonal_(square, generator=torch.Generator().manual_seed(0))
    expected = np.r_[np.eye(3).ravel(), np.eye(4).ravel()]
    np.testing.assert_allclose(gram([wide, square]), expected, atol=1e-6)


def test_slope_of_gram():
    weights = [torch.randn(n, 4, dtype=torch.double, requires_grad=True) for n in (3, 2)]
    assert torch.autograd.gradcheck(lambda *layers: gram(layers), weights)


# ------------------------------------------------------------------ functions of the user's


def my_mean(q, prior):
    return q.mean


def spread(q, prior):
    return q.mean.reshape(-1, q.mean.shape[-1]).var(dim=0)


LOGITS = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()


def a_q(kind):
    if kind is Normal:
        return Normal(LOGITS, LOGITS.exp()), Normal(torch.tensor(0.0), torch.tensor(1.0))
    if kind is Poisson:
        return Poisson(LOGITS.exp()), Poisson(torch.tensor(0.1))
    return Bernoulli(logits=LOGITS), Bernoulli(logits=torch.zeros(3))


@pytest.mark.parametrize("kind", [Bernoulli, Normal, Poisson])
def test_functions_stand_where_names_do(kind):
    q, prior = a_q(kind)
    for name, function in OF_UNITS.items():
        by_name, by_itself = (Statistic(given)([(q, prior)] * 2) for given in (name, function))
        np.testing.assert_array_equal(by_name.detach(), by_itself.detach())
        assert Statistic(function).name == name and not Statistic(function).own
    own = Statistic(my_mean)
    np.testing.assert_array_equal(
        own([(q, prior)] * 2).detach(), Statistic("mean")([(q, prior)] * 2).detach()
    )
    assert own.name == "function my_mean" and own.own and not own.of_weights


def test_a_function_may_average_by_itself_and_return_several():
    q, prior = a_q(Bernoulli)
    p = LOGITS.detach().sigmoid().reshape(-1, 3)
    np.testing.assert_allclose(Statistic(spread)([(q, prior)]).detach(), p.var(dim=0), rtol=1e-5)
    several = Statistic(lambda q, prior: (q.mean, q.mean.sum(), prior.mean + q.mean[0, 0]))
    expected = torch.cat([p.mean(0), p.sum()[None], p[0] + 0.5])
    np.testing.assert_allclose(several([(q, prior)]).detach(), expected, rtol=1e-5)


def test_the_prior_has_the_shape_of_q():
    def shapes(q, prior):
        assert prior.batch_shape == q.batch_shape
        return q.mean - prior.mean

    for kind in (Bernoulli, Normal, Poisson):
        Statistic(shapes)([a_q(kind)])


def test_weights():
    weights = [torch.ones(2, 3, requires_grad=True), torch.full((1, 2), 2.0, requires_grad=True)]
    named, own = Statistic("orthogonal"), Statistic(WeightStatistic(lambda w: w[0] @ w[0].T))
    np.testing.assert_array_equal(named([], iter(weights)).detach(), [3, 3, 3, 3, 8])
    np.testing.assert_array_equal(own([], iter(weights)).detach(), [3, 3, 3, 3])
    assert named.of_weights and own.of_weights and own.name == "function <lambda>"
    assert Statistic(STATISTICS["orthogonal"]).name == "orthogonal"
    assert repr(WeightStatistic(my_mean)) == "WeightStatistic(my_mean)"
    with pytest.raises(TypeError, match=r"'function' parameter of Weight.* callable\. Got 3"):
        WeightStatistic(3)


def by_numpy(q, prior):
    return torch.tensor(q.mean.detach().numpy())


def of_a_constant(q, prior):
    return torch.ones(3, requires_grad=True)


def root_at_0(q, prior):
    return (q.mean - q.mean).abs().sqrt()


WRONG = [
    (lambda q, prior: q.mean.detach().numpy(), "must return a Tensor of floats. Got ndarray"),
    (lambda q, prior: q.mean > 0.5, "must return a Tensor of floats. Got torch.bool"),
    (lambda q, prior: q.mean[..., :0], "must return a Tensor of floats. Got an empty Tensor"),
    (lambda q, prior: [q.mean], "must return a Tensor of floats. Got list"),
    (lambda q, prior: q.mean / 0.0, "must be finite where q is. Got inf"),
    (lambda q, prior: (q.mean, q.mean * torch.nan), "must be finite where q is. Got nan"),
    (by_numpy, "'by_numpy' has no gradient with respect to q: compute it by operations of PyTorch"),
    (of_a_constant, "'of_a_constant' has no gradient with respect to q"),
    (lambda q, prior: prior.mean.expand(q.batch_shape), "has no gradient with respect to q"),
    (root_at_0, "The gradient of the statistic 'root_at_0' must be finite"),
]


@pytest.mark.parametrize(("function", "words"), WRONG)
def test_wrong_functions(function, words):
    with pytest.raises(ValueError, match=words):
        Statistic(function)([a_q(Bernoulli)])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda weights: None, "must return a Tensor of floats. Got NoneType"),
        (lambda weights: weights[0] / 0, "must be finite where q is. Got inf"),
        (lambda weights: weights[0].detach(), "no gradient with respect to q"),
    ],
)
def test_wrong_functions_of_weights(function, words):
    with pytest.raises(ValueError, match=words):
        Statistic(WeightStatistic(function))([], [torch.ones(2, 2, requires_grad=True)])


def test_gradients_are_looked_at_once():
    """The values at each step: they cost little."""
    bad = []

    def turning(q, prior):
        return torch.full((3,), torch.nan) if bad else q.mean

    statistic = Statistic(turning)
    statistic([a_q(Bernoulli)])
    again = copy.deepcopy(statistic)
    bad.append(1)
    for one in (statistic, again):
        with pytest.raises(ValueError, match="'turning' must be finite where q is"):
            one([a_q(Bernoulli)])
