"""Objectives: gradients against enumeration, bounds, and what AVO must not move."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.distributions import Normal

from annealvi.deep.energies import ENERGIES
from annealvi.deep.hvi import Trajectory
from annealvi.deep.objectives import (
    avo,
    avo_terms,
    hvi_elbo,
    log_densities,
    log_evidence_bounds,
    loss_calibrated,
)
from annealvi.deep.vae import GaussianHead
from tests.deep.fits import DoubleNoise, chain


def numbers(some, n, seed=0):
    return some.draw_noise(n, DoubleNoise(seed))


@pytest.mark.parametrize("name", ENERGIES)
def test_the_elbo_of_a_chain_is_a_lower_bound(name):
    energy, some = ENERGIES[name], chain(n_transitions=2)
    values = hvi_elbo(some, some(numbers(some, 4000)), energy).detach()
    error = 4 * float(values.std()) / math.sqrt(values.numel())
    below, above = log_evidence_bounds(some, energy, DoubleNoise(1), n_draws=500, n_reverse=500)
    assert float(values.mean()) < energy.log_partition + error
    assert float(values.mean()) <= float(below.mean()) + error
    assert float(below.mean()) <= float(above.mean())


def parameters_of(some):
    return list(some.forwards.parameters()) + list(some.reverses.parameters())


def test_the_annealed_objectives_as_they_are_written():
    some, energy, beta = chain(), ENERGIES["a"], 0.3
    path = some(numbers(some, 6), detach=True)
    normal = torch.distributions.Normal(0.0, 1.0)
    log_f = log_densities(path, energy, None)
    for weight in (1.0, beta):  # of an f_0 that is no prior (App. D), and of a prior (Eq. 2)
        terms = avo_terms(path, log_f, beta=beta, prior_weight=weight)
        for t in range(1, 4):
            z, a = path.z[t], t / 3
            expected = a * energy(z) + weight * (1 - a) * normal.log_prob(z).sum(-1)
            expected = expected + beta * (path.log_reverse[t - 1] - path.log_forward[t - 1])
            assert_allclose(terms[t - 1].detach(), expected.detach())
    start = beta * (normal.log_prob(path.z[0]).sum(-1) - path.log_base)
    total = avo(path, log_f, beta=beta, prior_weight=beta)
    assert_allclose(total.detach(), (terms.sum(0) + start).detach(), atol=1e-12)


def test_a_model_in_the_density_follows_the_last_state_alone():
    """The states before are meant to be broad, and a model of them would be too (Eq. 4)."""
    some = chain()
    path, model = some(numbers(some, 6), detach=True), torch.nn.Linear(2, 1).double()

    def density(z):
        return -(model(z)[..., 0] ** 2)

    transitions, gradients = parameters_of(some), []
    for of in (None, model):
        total = avo(path, log_densities(path, density, of)).sum()
        gradients.append(torch.autograd.grad(total, transitions, retain_graph=True))
    (gradient,) = torch.autograd.grad(total, [model.weight], retain_graph=True)
    expected = torch.autograd.grad(density(path.z[-1]).sum(), [model.weight], retain_graph=True)
    assert_allclose(gradient, expected[0], rtol=1e-12)
    for free, frozen in zip(*gradients, strict=True):
        assert_array_equal(free, frozen)
    rests = avo(path, log_densities(path, density, model, follows=False)).sum()
    assert torch.autograd.grad(rests, [model.weight], allow_unused=True) == (None,)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_one_transition_is_annealed_like_the_elbo():
    """With one transition AVO is the ELBO, but for the entropy of a base that learns nothing."""
    some, energy = chain(n_transitions=1), ENERGIES["d"]
    epsilon = numbers(some, 6)
    path = some(epsilon, detach=True)
    one = avo(path, energy(path.z[1:])) - path.log_base
    other = hvi_elbo(some, some(epsilon), energy)
    assert_allclose(one.detach(), other.detach())


@pytest.mark.parametrize("context", [0, 3])
def test_loss_calibration_mixes_the_two(context):
    some, energy = chain(context=context), ENERGIES["d"]
    epsilon = numbers(some, 6)
    given = torch.randn(6, 3, dtype=torch.double) if context else None
    path = some(epsilon, context=given, detach=True)
    annealed = avo(path, energy(path.z[1:]), beta=0.5)
    bound = hvi_elbo(some, some(epsilon, context=given), energy, beta=0.5)
    gradients = {}
    for a in (0.0, 0.25, 1.0):
        mixed, _ = loss_calibrated(some, epsilon, energy, calibration=a, beta=0.5, context=given)
        assert_allclose(mixed.detach(), (a * annealed + (1 - a) * bound).detach(), atol=1e-12)
        gradients[a] = torch.autograd.grad(mixed.sum(), parameters_of(some))
    for none, some_of_it, all_of_it in zip(*gradients.values(), strict=True):
        assert_allclose(some_of_it, 0.75 * none + 0.25 * all_of_it, atol=1e-10)


def test_the_amortised_base_learns_from_its_own_term():
    """J_0 is minus the KL to the prior: its maximum is the prior."""
    some = chain(context=3, base=GaussianHead(3, 2))
    given = torch.randn(6, 3, dtype=torch.double)
    path = some(numbers(some, 6), context=given, detach=True)
    total = avo(path, ENERGIES["d"](path.z[1:])).sum()
    gradient = torch.autograd.grad(total, some.base.mean.bias, retain_graph=True)[0]
    own = (-0.5 * path.z[0] ** 2).sum() - path.log_base.sum()
    assert_allclose(gradient, torch.autograd.grad(own, some.base.mean.bias)[0])
    assert gradient.abs().max() > 0


def test_optimal_transitions_reach_their_targets():
    """Proposition 1 and Corollary 1 of Huang et al. (2018), where all is Gaussian."""
    T, rho, rng = 4, 0.6, np.random.RandomState(0)
    target, base = Normal(1.5, 0.5), Normal(0.0, 1.0)

    def log_f(z):  # log Z = .7
        return target.log_prob(z)[..., 0] + 0.7

    alpha = np.arange(T + 1) / T
    precision = alpha / 0.5**2 + (1 - alpha)
    f = [Normal(a * 1.5 / 0.5**2 / p, p**-0.5) for a, p in zip(alpha, precision, strict=True)]

    def given(f, other, value):  # the conditional of a pair with correlation rho
        mean = f.mean + rho * f.stddev / other.stddev * (value - other.mean)
        return Normal(mean, f.stddev * math.sqrt(1 - rho**2))

    def log_p(one, other, value, at):
        return given(one, other, value).log_prob(at)[None, :, 0]

    z = [torch.from_numpy(rng.standard_normal((5000, 1)))]
    for t in range(1, T + 1):
        q = given(f[t], f[t - 1], z[-1])
        z.append(q.mean + q.stddev * torch.from_numpy(rng.standard_normal((5000, 1))))
    forward = [log_p(f[t], f[t - 1], z[t - 1], z[t]) for t in range(1, T + 1)]
    reverse = [log_p(f[t - 1], f[t], z[t], z[t - 1]) for t in range(1, T + 1)]
    log_base = base.log_prob(z[0])[None, :, 0]
    path = Trajectory(torch.stack(z)[:, None], log_base, torch.stack(forward), torch.stack(reverse))
    some = chain(n_transitions=T)
    assert_allclose(hvi_elbo(some, path, log_f), 0.7, atol=1e-6)  # log p(x), each draw
    for t, term in enumerate(avo_terms(path, log_f(path.z[1:])), start=1):
        assert z[t].mean() == pytest.approx(float(f[t].mean), abs=0.06)
        assert z[t].std() == pytest.approx(float(f[t].stddev), abs=0.05)
        # log r - log q = log f_(t-1) - log f_t: what is left does not depend on z_t
        assert float((term - f[t - 1].log_prob(z[t - 1])[None, :, 0]).std()) < 1e-5
