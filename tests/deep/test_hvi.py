"""Chains of gated transitions and of flows: densities, gradients, and runs side by side."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.distributions import Normal
from torch.testing import assert_close

from annealvi.deep.energies import ENERGIES
from annealvi.deep.hvi import (
    LEAST_SIGMA,
    LEAST_SLOPE,
    Chain,
    FlowPosterior,
    SigmoidalTransitions,
    Transitions,
    inverse_softplus,
    mixture_logit,
)
from annealvi.deep.objectives import avo_terms, log_evidence_bounds
from tests.deep.fits import DoubleNoise, chain

POSTERIORS = {
    "chain": partial(Chain, hidden=8),
    "amortised": partial(Chain, hidden=8, context=3),
    "flow": partial(FlowPosterior, hidden=8, n_sigmoids=4, weight_scale=10.0),
}
KINDS = pytest.mark.parametrize("kind", POSTERIORS)
PARTS = ("z", "log_base", "log_forward", "log_reverse")


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
        left = math.sqrt(variance - back * factor * variance)
        set_affine(exact.reverses, t, back, mean - back * new_mean, left)
        mean, variance = new_mean, new_variance
    return exact, mean, variance


@pytest.mark.parametrize("block", [100, 2**16])
def test_an_exact_reverse_gives_the_marginal_itself(block, monkeypatch):
    """Whatever the blocks of reverse draws."""
    monkeypatch.setattr("annealvi.deep.hvi.BLOCK", block)
    exact, mean, variance = exact_gaussian_chain()
    target = Normal(mean, math.sqrt(variance))
    z = torch.randn(1, 50, 2, dtype=torch.double)
    for n_draws in (1, 7):
        found = exact.log_marginal(z, n_draws, DoubleNoise(0))
        assert_allclose(found, target.log_prob(z).sum(-1), atol=1e-6)


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
        numbers = dict(n_draws=1000, n_reverse=n_reverse)
        below, above = log_evidence_bounds(exact, log_density, DoubleNoise(0), **numbers)
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
            assert_allclose(path.log_forward[t].detach(), forward.log_prob(path.z[t + 1]).sum(-1))
            assert_allclose(path.log_reverse[t].detach(), reverse.log_prob(path.z[t]).sum(-1))
    base = Normal(0.0, 1.0).log_prob(path.z[0]).sum(-1)
    assert_allclose(path.log_base.detach(), base.detach())


@pytest.mark.parametrize("context", [0, 3])
def test_the_gate_and_the_start(context):
    """sigma starts at what was asked for whatever z; a closed gate leaves z where it is."""
    torch.manual_seed(0)
    transitions = Transitions(2, 4, n_runs=3, sigma=0.05, context=context).double()
    z = 10 * torch.randn(3, 6, 2, dtype=torch.double)
    given = torch.zeros(6, context, dtype=torch.double) if context else None
    _, sigma = transitions.moments(z, 1, given)
    assert_allclose(sigma.detach(), 0.05, rtol=1e-5)
    with torch.no_grad():
        transitions.out_bias[..., 2:4] = -1000.0
    mean, _ = transitions.moments(z, 1, given)
    assert_allclose(mean.detach(), z)


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
    assert_close(transitions.moments(z, 0, given)[0][0], expected)


@pytest.mark.parametrize("t", [0, 1])
def test_conditional_weight_normalisation_as_it_is_written(t):
    """(a + A c) * (W / |W|) z + B c + b, for the ELU units and for the moments."""
    torch.manual_seed(0)
    some = Transitions(2, 2, n_runs=2, hidden=5, context=3, activation="elu").double()
    with torch.no_grad():
        for parameter in some.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    z, c = torch.randn(2, 6, 2).double(), torch.randn(6, 3).double()
    found = [part.detach() for part in some.moments(z, t, c)]
    parts = {name: value[t].detach().numpy() for name, value in some.named_parameters()}
    z, c = z.numpy(), c.numpy()

    def affine(x, name, run):
        W, a, A, b = (
            parts[f"{name}_{kind}"][run] for kind in ("weight", "scale", "conditioner", "bias")
        )
        scale, shift = np.split(c @ A, 2, axis=1)
        return (a + scale) * (x @ (W / np.sqrt((W**2).sum(axis=0)))) + shift + b

    for run in range(2):
        h = affine(z[run], "hidden", run)
        h = np.where(h > 0, h, np.expm1(np.minimum(h, 0)))
        m, g, s = np.split(affine(h, "out", run), 3, axis=1)
        g = 1 / (1 + np.exp(-g))
        assert_allclose(found[0][run], g * m + (1 - g) * z[run], rtol=1e-12)
        assert_allclose(found[1][run], np.log1p(np.exp(s)) + LEAST_SIGMA, rtol=1e-12)


def test_a_chain_without_transitions_is_its_base():
    base = chain(n_transitions=0)
    assert base(base.draw_noise(5, DoubleNoise(0))).z.shape == (1, 1, 5, 2)
    below, above = log_evidence_bounds(base, ENERGIES["d"], DoubleNoise(0), n_draws=20, n_reverse=2)
    assert_allclose(below, above)
    assert base.layers(3, DoubleNoise(0)).shape == (1, 1, 3, 2)


def posterior(kind, n_transitions=3, n_runs=2, seed=0, **options):
    """One of a kind, and a context for five draws."""
    torch.manual_seed(seed)
    context = torch.randn(5, 3).double() if kind == "amortised" else None
    return POSTERIORS[kind](2, n_transitions, n_runs=n_runs, **options).double(), context


@KINDS
def test_a_single_run_is_one_of_many(kind):
    many, context = posterior(kind, n_runs=4)
    one = many.single(2)
    assert one.n_runs == 1 and many.n_runs == 4
    epsilon = many.draw_noise(5, DoubleNoise(0))
    assert_close(many(epsilon, context=context).z[:, 2:3], one(epsilon[:, 2:3], context=context).z)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in many.parameters() if parameter.dim() == 4)  # a copy


@KINDS
def test_runs_are_independent(kind):
    """A run on its own gives the same as beside others, whatever these are."""
    many, context = posterior(kind, n_runs=3)
    alone, _ = posterior(kind, n_runs=1, seed=5)
    state = many.state_dict()
    alone.load_state_dict({k: v[:, 1:2] if v.dim() == 4 else v[1:2] for k, v in state.items()})
    with torch.no_grad():
        for parameter in many.forwards.parameters():
            parameter[:, 2] = torch.nan
    epsilon = many.draw_noise(5, DoubleNoise(0))
    for detach in (False, True):
        beside = many(epsilon, context=context, detach=detach)
        one = alone(epsilon[:, 1:2], context=context, detach=detach)
        assert_close(beside.z[:, 1:2], one.z)
        for name in PARTS[1:]:
            assert_close(getattr(beside, name)[..., 1:2, :], getattr(one, name))


@KINDS
@pytest.mark.parametrize("n_transitions", [0, 3])
def test_layers_are_those_of_a_path(kind, n_transitions):
    some, context = posterior(kind, n_transitions)
    layers = some.layers(5, DoubleNoise(0), context=context)
    path = some(some.draw_noise(5, DoubleNoise(0)), context=context)
    assert layers.shape == (n_transitions + 1, 2, 5, 2)
    assert_close(layers, path.z)
    expected = path.log_base + path.log_forward.sum(0) - path.log_reverse.sum(0)
    assert_close(some.log_weight(path), expected)


@KINDS
def test_detaching_changes_gradients_not_values(kind):
    some, context = posterior(kind)
    epsilon = some.draw_noise(5, DoubleNoise(1))
    through, detached = (some(epsilon, context=context, detach=part) for part in (False, True))
    for name in PARTS:
        assert_close(getattr(through, name), getattr(detached, name))
    bias = some.forwards.out_bias
    gradient = torch.autograd.grad(detached.z[-1].sum(), bias)[0]
    assert gradient[-1].abs().max() > 0 and gradient[:-1].abs().max() == 0
    assert torch.autograd.grad(through.z[-1].sum(), bias)[0][0].abs().max() > 0


@KINDS
def test_no_transition_is_moved_by_the_objective_of_another(kind):
    some, context = posterior(kind)
    path = some(some.draw_noise(5, DoubleNoise(0)), context=context, detach=True)
    terms = avo_terms(path, ENERGIES["d"](path.z[1:]), beta=0.7)
    assert terms.shape == (3, 2, 5)
    parameters = list(some.forwards.parameters())
    if kind != "flow":
        parameters += some.reverses.parameters()
    for t in range(3):
        for gradient in torch.autograd.grad(terms[t].sum(), parameters, retain_graph=True):
            sizes = np.array([float(part.abs().max()) for part in gradient])
            assert sizes[t] > 0 and not np.delete(sizes, t).any()


def sigmoidal(dim=3, n_transitions=2, **options):
    torch.manual_seed(0)
    return SigmoidalTransitions(dim, n_transitions, hidden=8, n_sigmoids=4, **options).double()


def test_far_away_nothing_overflows():
    z = torch.tensor([[-300.0, 300.0]])
    parts = torch.zeros(1, 2, 4)
    found, log_determinant = mixture_logit(z, parts - np.log(4), parts, parts)
    assert_close(found, z)
    assert_close(log_determinant, torch.zeros(1), atol=1e-4, rtol=0)


def test_each_coordinate_depends_on_those_before_it():
    """In the second transition on those after it."""
    some = sigmoidal(n_runs=2, weight_scale=10.0)
    z = torch.randn(2, 1, 3).double()
    for t in range(2):
        jacobian = torch.autograd.functional.jacobian(lambda z, t=t: some(z, t)[0], z)
        for run in range(2):
            part = jacobian[run, 0, :, run, 0]
            part = part if t == 0 else part.flip(0, 1)
            assert torch.equal(part, part.tril()) and (part.diagonal() > 0).all()
            assert part[1, 0] != 0 and part[2, 0] != 0
            assert part[2, 1] != 0
            determinant = some(z, t)[1][run, 0]
            assert_close(part.diagonal().log().sum(), determinant)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_an_inverse_leads_back(dim):
    some = sigmoidal(dim, weight_scale=10.0)
    z = 3 * torch.randn(1, 20, dim).double()
    for t in range(2):
        assert_close(some.inverse(some(z, t)[0], t), z, atol=1e-9, rtol=1e-9)


def test_a_flow_as_it_is_written():
    """Huang, Krueger et al. (2018) in two dimensions; every second transition begins at the end."""
    some, _ = posterior("flow")
    path = some(some.draw_noise(6, DoubleNoise(3)))
    parts = {name: p.detach().numpy() for name, p in some.forwards.named_parameters()}
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    for run in range(2):
        z = path.z[0, run].detach().numpy()
        log_q = -0.5 * (z**2).sum(axis=1) - math.log(2 * math.pi)
        for t in range(3):
            W, b, V, c = (
                parts[name][t, run]
                for name in ("hidden_weight", "hidden_bias", "out_weight", "out_bias")
            )
            first = t % 2
            h = np.maximum(z[:, [first]] * W[first] + b, 0)
            given = (h @ V + c).reshape(6, 3, 2, 4)  # of the coordinate that depends on the first
            given[:, :, first] = c.reshape(3, 2, 4)[:, first]
            w, a, b = given.transpose(1, 0, 2, 3)
            w, a = np.exp(w), np.log1p(np.exp(a)) + LEAST_SLOPE
            w /= w.sum(axis=-1, keepdims=True)
            s = sigmoid(a * z[:, :, None] + b)
            x = (w * s).sum(axis=-1)
            log_q -= np.log((w * a * s * (1 - s)).sum(axis=-1) / (x * (1 - x))).sum(axis=1)
            z = np.log(x / (1 - x))
            assert_allclose(path.z[t + 1, run].detach(), z, rtol=1e-9)
        assert_allclose(some.log_weight(path)[run].detach(), log_q, rtol=1e-9)


def test_the_density_is_one_in_all():
    """Over a grid, in each run; and along a path it is that of its end."""
    some, _ = posterior("flow", weight_scale=2.0)
    edge = torch.linspace(-8, 8, 101).double()
    z = torch.stack(torch.meshgrid(edge, edge, indexing="ij"), dim=-1).reshape(1, -1, 2)
    mass = some.log_marginal(z.repeat(2, 1, 1), 1, DoubleNoise(0)).exp().sum(dim=1) * 0.16**2
    assert_close(mass, torch.ones(2).double(), atol=2e-3, rtol=0)
    path = some(some.draw_noise(10, DoubleNoise(0)))
    found = some.log_marginal(path.z[-1].detach(), 1, DoubleNoise(0))
    assert_close(found, some.log_weight(path).detach(), atol=1e-8, rtol=1e-8)
