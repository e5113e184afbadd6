"""The networks of the autoencoder: bounds against integrals, gradients, dead units."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from torch.distributions import Normal, kl_divergence

from annealvi import Fixed
from annealvi.deep.estimator import penalised
from annealvi.deep.noise import Noise
from annealvi.deep.penalties import STATISTICS, ProximityPenalty
from annealvi.deep.vae import (
    AutoencoderNetwork,
    GatedStack,
    ReLUStack,
    VariationalAutoencoder,
    never_positive,
    start_orthogonal,
)


def network(n_components=3, **others):
    torch.manual_seed(0)
    made = AutoencoderNetwork(12, n_components, (7, 5), **others)
    with torch.no_grad():  # far from the start, where z makes hardly a difference
        for parameter in made.decoder.parameters():
            parameter.mul_(3.0)
        made.pixels.weight.mul_(4.0)
    return made


@pytest.fixture
def x():
    return (torch.rand(9, 12, generator=torch.Generator().manual_seed(1)) < 0.4).float()


def test_the_bound_is_the_likelihood_less_the_exact_divergence(x):
    net = network()
    q = net.posterior(net.encoder(x))
    parts = net.bound(x, q, Noise(5))
    z = q.mean + q.stddev * Noise(5).normal(*q.mean.shape)
    likelihood = torch.distributions.Bernoulli(logits=net.logits(z)).log_prob(x).sum(dim=-1)
    prior = Normal(torch.zeros(3), torch.ones(3))
    expected = likelihood - kl_divergence(q, prior).sum(dim=-1)
    torch.testing.assert_close(parts.energy + parts.entropy, expected)
    torch.testing.assert_close(parts.entropy, q.entropy().sum(dim=-1))


def test_the_likelihood_of_one_draw_and_of_many(x):
    net = network()
    z = torch.randn(4, 9, 3, generator=torch.Generator().manual_seed(2))
    many = net.log_likelihood(x, z)
    torch.testing.assert_close(many, torch.stack([net.log_likelihood(x, one) for one in z]))


@pytest.mark.parametrize("n_transitions", [0, 2])
@torch.no_grad()
def test_weights_average_to_the_evidence_and_their_logs_to_a_bound_below(x, n_transitions):
    """With one latent variable, log p(x) is an integral over a grid."""
    net, x = network(1, n_transitions=n_transitions), x[:5]
    if net.chain is not None:  # shut the gates: r then fits q, and weights have a variance
        for transitions in (net.chain.forwards, net.chain.reverses):
            transitions.out_bias[..., 1] = -20.0
    grid = torch.linspace(-7, 7, 2001)
    logs = net.log_joint(x, grid[:, None, None].expand(-1, len(x), 1)).double().numpy()
    exact = logsumexp(logs, axis=0) + np.log(14 / 2000)
    z, weights = net.log_weights(x, 20_000, Noise(3))
    assert z.shape == (20_000, 5, 1)
    weights = weights.double().numpy()
    sizes = np.exp(weights - exact)
    error = sizes.std(axis=0) / np.sqrt(len(sizes))
    assert error.max() < 0.1
    assert np.all(np.abs(sizes.mean(axis=0) - 1) < 5 * error)
    assert np.all(weights.mean(axis=0) < exact - 0.001)


@torch.no_grad()
def test_draws_have_the_bound_of_the_closed_form(x):
    net = network()
    q = net.posterior(net.encoder(x))
    exact = torch.stack([sum(net.bound(x, q, Noise(seed))) for seed in range(400)])
    drawn = net.log_weights(x, 4000, Noise(401))[1]
    error = (exact.var(dim=0) / 400 + drawn.var(dim=0) / 4000).sqrt()
    assert torch.all((exact.mean(dim=0) - drawn.mean(dim=0)).abs() < 5 * error)


def test_the_encoder_starts_orthogonal():
    net = AutoencoderNetwork(12, 3, (7, 5), n_transitions=1)
    weights = net.encoder_weights()
    assert [tuple(weight.shape) for weight in weights] == [(7, 12), (5, 7), (3, 5), (3, 5)]
    for weight in weights:
        torch.testing.assert_close(weight @ weight.T, torch.eye(len(weight)))


@pytest.mark.parametrize("name", STATISTICS)
def test_a_penalty_moves_the_encoder_alone(x, name):
    """What the loss adds to the gradient, by the difference of two fits' first objectives."""
    gradients = []
    for magnitude in (0.0, 3.0):
        vae = VariationalAutoencoder(
            3,
            hidden=(7, 5),
            proximity=ProximityPenalty(name, magnitude=magnitude, gamma=1.0),
            max_iter=1,
            random_state=0,
        ).fit(x)
        net = vae.network_
        objective = penalised(vae._bound(net, x, Noise(8)), Fixed(), net.penalty)
        net.zero_grad(set_to_none=True)
        objective(torch.arange(9), 0).loss.backward()
        gradients.append({key: value.grad for key, value in net.named_parameters()})
    plain, held = gradients
    moved = {key for key in plain if not torch.equal(plain[key], held[key])}
    weights = {key for key in plain if key.startswith(("encoder", "head"))}
    assert moved and moved <= weights
    if name == "orthogonal":
        assert moved == {key for key in weights if key.endswith("weight")}


@pytest.mark.parametrize("calibration", [0.0, 1.0])
def test_steps_of_a_chain_follow_the_objectives(x, calibration):
    from annealvi.deep.objectives import hvi_elbo, loss_calibrated

    net = network(n_transitions=3)
    context, noise = net.encoder(x), Noise(4)
    bound, elbo = net.chain_bound(x, context, noise, temperature=1.5, calibration=calibration)
    again = Noise(4)
    epsilon = net.chain.draw_noise(9, again)
    expected, path = loss_calibrated(
        net.chain,
        epsilon,
        lambda z: net.log_joint(x, z),
        calibration=calibration,
        beta=1.5,
        context=context,
    )
    torch.testing.assert_close(bound, expected.mean())
    plain = hvi_elbo(net.chain, path, lambda z: net.log_joint(x, z))
    torch.testing.assert_close(elbo, plain.mean())


@pytest.mark.parametrize("calibration", [0.0, 1.0])
def test_beta_weighs_all_but_the_likelihood(x, calibration):
    net = network(n_transitions=3)
    context = net.encoder(x)

    def bounds(beta):
        return net.chain_bound(
            x, context, Noise(4), temperature=1.0, calibration=calibration, beta=beta
        )

    none, half, whole = (bounds(beta)[0] for beta in (0.0, 0.5, 1.0))
    path = net.chain(net.chain.draw_noise(9, Noise(4)), context=context)
    likelihood = net.log_likelihood(x, path.z[1:])
    alpha = torch.tensor([0.0, 0.0, 1.0]) if calibration == 0 else torch.tensor([1.0, 2.0, 3.0]) / 3
    expected = (alpha[:, None, None] * likelihood).sum(dim=0).mean()
    torch.testing.assert_close(none, expected)
    torch.testing.assert_close(half, (none + whole) / 2)
    assert (whole - none).abs() > 0.1
    for beta in (0.0, 0.5):
        torch.testing.assert_close(bounds(beta)[1], bounds(1.0)[1])  # the ELBO has beta = 1


def test_beta_multiplies_the_divergence_without_a_chain(x):
    """After the steps with a beta, the loss is minus the ELBO."""
    net = network()
    q = net.posterior(net.encoder(x))
    parts = net.bound(x, q, Noise(5))
    divergence = kl_divergence(q, Normal(torch.zeros(3), torch.ones(3))).sum(dim=-1)
    for beta, step in ((0.25, 0), (1.0, 1)):
        vae = VariationalAutoencoder(schedule=lambda s: 0.25, annealing=1.0, max_iter=1)
        objective = penalised(vae._bound(net, x, Noise(5)), Fixed(), None)
        found = objective(torch.arange(9), step)
        torch.testing.assert_close(-found.loss, (parts.likelihood - beta * divergence).mean())
        torch.testing.assert_close(found.elbo, (parts.likelihood - divergence).mean())


def test_gated_units_are_in_all_networks():
    net = AutoencoderNetwork(12, 3, (7, 5), n_transitions=2, transition_hidden=4, units="gated")
    assert [tuple(weight.shape) for weight in net.encoder_weights()[:2]] == [(14, 12), (10, 7)]
    assert net.decoder.layers[0].weight.shape == (10, 3)
    assert net.chain.forwards.activation == net.chain.reverses.activation == "gated"
    assert net.log_weights(torch.ones(6, 12), 2, Noise(0))[1].shape == (2, 6)


@pytest.mark.parametrize("units", ["relu", "gated"])
def test_a_chain_starts_near_the_identity(units):
    """Its bound is not far from that of the Gaussian it begins with, whatever the encoder says."""
    torch.manual_seed(0)
    x = (torch.rand(200, 30) < 0.3).float()
    net = AutoencoderNetwork(30, 10, (20,), n_transitions=5, units=units)
    context = net.encoder(x)
    z = torch.randn(1, 200, 10)
    for t in range(5):
        mean, sigma = net.chain.forwards.moments(z, t, context)
        assert (mean - z).std() < 0.15
        assert 0.03 < sigma.mean() < 0.08
    _, elbo = net.chain_bound(x, context, Noise(0), temperature=1.0, calibration=0.0)
    parts = net.bound(x, net.posterior(context), Noise(0))
    assert elbo > (parts.energy + parts.entropy).mean() - 100  # open gates: less 1,500


def test_a_large_context_does_not_throw_gated_transitions_off():
    torch.manual_seed(0)
    net = AutoencoderNetwork(30, 10, (20,), n_transitions=2, units="gated")
    z, context = torch.randn(1, 200, 10), torch.randn(200, 20)
    for transitions in (net.chain.forwards, net.chain.reverses):
        usual = transitions.moments(z, 0, context)
        large = transitions.moments(z, 0, 1e6 * context + 3e6)
        for one, other in zip(usual, large, strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


# ----------------------------------------------------------------------- stacks of layers


def test_a_gated_unit_is_a_linear_one_times_a_sigmoid():
    torch.manual_seed(0)
    stack, x = GatedStack(4, (3, 2)), torch.randn(6, 4)
    first, second = stack.activations(x)
    linear, gate = (x @ stack.layers[0].weight.T + stack.layers[0].bias).chunk(2, dim=-1)
    torch.testing.assert_close(first, linear * torch.sigmoid(gate))
    assert (first < 0).any() and second.shape == (6, 2)
    torch.testing.assert_close(stack(x), second)


def test_both_halves_of_a_gated_layer_start_orthogonal():
    stack = GatedStack(5, (3,))
    weight = stack.layers[0].weight
    start_orthogonal(weight, stack.maps)
    for half in weight.chunk(2):
        torch.testing.assert_close(half @ half.T, torch.eye(3))


def test_dead_units_of_a_network_made_by_hand():
    stack = ReLUStack(2, (3, 2))
    with torch.no_grad():
        stack.layers[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
        stack.layers[0].bias.copy_(torch.tensor([0.0, -0.5, 0.0]))
        stack.layers[1].weight.copy_(torch.tensor([[1.0, 1.0, 0.0], [-1.0, 0.0, 5.0]]))
        stack.layers[1].bias.zero_()
    x = torch.tensor([[0.0, 0.4], [1.0, 0.0], [0.2, 0.5]])
    first, second = stack.activations(x)
    expected = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(stack(x), second)
    # x_1 is positive somewhere; x_2 never above .5; -x_1 - x_2 never above 0
    dead = never_positive([first, second])
    assert [layer.tolist() for layer in dead] == [[False, True, True], [False, True]]
    alive = never_positive([torch.tensor([[[0.0, 1.0]], [[2.0, 0.0]]])])
    assert alive[0].tolist() == [False, False]
