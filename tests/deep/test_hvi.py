"""Chains of gated transitions: densities, gradients, and runs side by side."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Normal

from annealvi.deep.energies import ENERGIES
from annealvi.deep.hvi import LEAST_SIGMA, StandardNormal, Transitions, inverse_softplus
from annealvi.deep.objectives import log_evidence_bounds
from tests.deep.chains import DoubleNoise, chain


def set_affine(transitions, t, factor, shift, sigma):
    """Transition t becomes N(factor z + shift, sigma^2 I), with 0 < factor < 1."""
    with torch.no_grad():
        transitions.out_weight[t] = 0.0
        dim = transitions.dim
        bias = transitions.out_bias[t]
        bias[..., :dim] = shift / (1.0 - factor)
        bias[..., dim : 2 * dim] = math.log((1.0 - factor) / factor)
        bias[..., 2 * dim :] = inverse_softplus(sigma - LEAST_SIGMA)


def exact_gaussian_chain(n_transitions=4, dim=2):
    """q whose marginals are Gaussian, r its exact reverse; with the last mean and variance."""
    exact = chain(dim=dim, n_transitions=n_transitions)
    mean, variance = 0.0, 1.0
    for t in range(n_transitions):
        factor, shift, sigma = 0.5 + 0.1 * t, 0.3 * t - 0.2, 0.6
        set_affine(exact.forwards, t, factor, shift, sigma)
        new_mean, new_variance = factor * mean + shift, factor**2 * variance + sigma**2
        back = factor * variance / new_variance
        set_affine(
            exact.reverses,
            t,
            back,
            mean - back * new_mean,
            math.sqrt(variance - back * factor * variance),
        )
        mean, variance = new_mean, new_variance
    return exact, mean, variance


def test_an_exact_reverse_gives_the_marginal_itself():
    exact, mean, variance = exact_gaussian_chain()
    target = Normal(mean, math.sqrt(variance))
    z = torch.randn(1, 50, 2, dtype=torch.double)
    for n_draws in (1, 7):
        found = exact.log_marginal(z, n_draws, DoubleNoise(0))
        np.testing.assert_allclose(found, target.log_prob(z).sum(-1), atol=1e-6)


def test_a_kl_of_gaussians_is_found_from_both_sides():
    """With a reverse chain that is wrong, so that K matters."""
    exact, mean, variance = exact_gaussian_chain()
    with torch.no_grad():
        exact.reverses.out_bias += 0.15
    target = Normal(0.5, 1.0)
    log_density = lambda z: target.log_prob(z).sum(-1)  # noqa: E731
    kl = 2 * 0.5 * (variance + (mean - 0.5) ** 2 - 1 - math.log(variance))
    gaps = {}
    for n_reverse in (1, 400):
        below, above = log_evidence_bounds(
            exact, log_density, DoubleNoise(0), n_draws=1000, n_reverse=n_reverse
        )
        error = 4 * float(above.std()) / math.sqrt(above.numel())
        assert float(below.mean()) - error < -kl < float(above.mean()) + error
        gaps[n_reverse] = float(above.mean() - below.mean())
    assert 0 <= gaps[400] < 0.05 < gaps[1]
    assert abs(float(above.mean()) + kl) < error


def test_densities_along_a_path():
    """Against torch.distributions, transition by transition."""
    some = chain(n_runs=2)
    path = some(some.draw_noise(5, DoubleNoise(1)))
    with torch.no_grad():
        for t in range(3):
            forward = Normal(*some.forwards.moments(path.z[t], t))
            reverse = Normal(*some.reverses.moments(path.z[t + 1], t))
            np.testing.assert_allclose(
                path.log_forward[t].detach(), forward.log_prob(path.z[t + 1]).sum(-1)
            )
            np.testing.assert_allclose(
                path.log_reverse[t].detach(), reverse.log_prob(path.z[t]).sum(-1)
            )
    base = Normal(0.0, 1.0).log_prob(path.z[0]).sum(-1)
    np.testing.assert_allclose(path.log_base.detach(), base.detach())


@pytest.mark.parametrize("context", [0, 3])
def test_the_gate_and_the_start(context):
    """sigma starts at what was asked for whatever z; a closed gate leaves z where it is."""
    torch.manual_seed(0)
    transitions = Transitions(2, 4, n_runs=3, sigma=0.05, context=context).double()
    z = 10 * torch.randn(3, 6, 2, dtype=torch.double)
    given = torch.zeros(6, context, dtype=torch.double) if context else None
    _, sigma = transitions.moments(z, 1, given)
    np.testing.assert_allclose(sigma.detach(), 0.05, rtol=1e-5)
    with torch.no_grad():
        transitions.out_bias[..., 2:4] = -1000.0
    mean, _ = transitions.moments(z, 1, given)
    np.testing.assert_allclose(mean.detach(), z)


@pytest.mark.parametrize("context", [0, 3])
def test_gated_hidden_units_are_linear_ones_times_sigmoids(context):
    torch.manual_seed(0)
    transitions = Transitions(2, 1, hidden=4, context=context, activation="gated").double()
    assert transitions.out_weight.shape == (1, 1, 4, 6)
    z = torch.randn(1, 5, 2).double()
    given = torch.ones(5, context).double() if context else None  # brought to mean 0: no effect
    weight = transitions.hidden_weight[0, 0]
    if context:
        weight = weight / weight.norm(dim=0)
    linear, gate = (z[0] @ weight + transitions.hidden_bias[0, 0]).chunk(2, dim=-1)
    h = linear * torch.sigmoid(gate)
    out = transitions.out_weight[0, 0]
    if context:
        out = out / out.norm(dim=0) * transitions.out_scale[0, 0]
    m, g, _ = (h @ out + transitions.out_bias[0, 0]).chunk(3, dim=-1)
    expected = torch.lerp(z[0], m, torch.sigmoid(g))
    torch.testing.assert_close(transitions.moments(z, 0, given)[0][0], expected)


def test_weight_normalisation_ignores_the_lengths_of_weights():
    torch.manual_seed(0)
    transitions = Transitions(2, 1, context=3, activation="elu").double()
    z, given = torch.randn(1, 5, 2).double(), torch.randn(5, 3).double()
    before = transitions.moments(z, 0, given)
    with torch.no_grad():
        transitions.hidden_weight *= 3.0
        transitions.out_weight *= 0.2
    for one, other in zip(before, transitions.moments(z, 0, given), strict=True):
        np.testing.assert_allclose(one.detach(), other.detach())
    for one, other in zip(before, transitions.moments(z, 0, given + 1.0), strict=True):
        assert (one - other).abs().max() > 1e-3
    with pytest.raises(ValueError, match="need a context"):
        transitions.moments(z, 0)


@pytest.mark.parametrize("block", [100, 2**16])
def test_the_marginal_of_an_amortised_chain(block, monkeypatch):
    """z_0 ~ N(c, I), z_1 ~ N(.7 z_0 + .2, .6^2 I), whatever the blocks of reverse draws."""
    monkeypatch.setattr("annealvi.deep.hvi.BLOCK", block)
    some = chain(n_transitions=1, context=2)
    with torch.no_grad():
        for transitions in (some.forwards, some.reverses):
            transitions.out_conditioner.zero_()
        some.base.weight.copy_(torch.eye(2, 4))
        some.base.bias[..., 2:] = inverse_softplus(1.0 - LEAST_SIGMA)
    set_affine(some.forwards, 0, 0.7, 0.2, 0.6)
    set_affine(some.reverses, 0, 0.5, 0.0, 1.0)  # not exact, but not far
    given = torch.tensor([[0.0, 0.5], [-0.5, 0.0], [0.3, 0.3]], dtype=torch.double)
    z = torch.tensor([[[0.0, 1.0], [-1.0, 0.5], [0.5, 0.5]]], dtype=torch.double)
    exact = Normal(0.7 * given + 0.2, math.sqrt(0.7**2 + 0.6**2)).log_prob(z).sum(-1)
    found = some.log_marginal(z, 5000, DoubleNoise(0), context=given)
    np.testing.assert_allclose(found, exact, atol=0.05)
    assert (exact - exact.mean()).abs().max() > 0.2  # rows that are mixed up would show


def test_a_chain_without_transitions_is_its_base():
    base = chain(n_transitions=0)
    assert isinstance(base.base, StandardNormal)
    path = base(base.draw_noise(5, DoubleNoise(0)))
    assert path.z.shape == (1, 1, 5, 2)
    below, above = log_evidence_bounds(base, ENERGIES["d"], DoubleNoise(0), n_draws=20, n_reverse=2)
    np.testing.assert_allclose(below, above)
    layers = base.layers(3, DoubleNoise(0))
    assert layers.shape == (1, 1, 3, 2)
