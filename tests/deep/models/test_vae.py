"""The networks of the autoencoder: bounds against integrals, gradients, dead units."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from torch.distributions import Normal, kl_divergence

from annealvi import Fixed
from annealvi.deep.estimators.vae import VariationalAutoencoder, negative_bound
from annealvi.deep.models.vae import AutoencoderNetwork, ReLUStack, never_positive
from annealvi.deep.noise import Noise
from annealvi.deep.penalties import STATISTICS, ProximityPenalty


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
        objective = negative_bound(net, x, Noise(8), temperature=Fixed(), calibration=0.0)
        net.zero_grad(set_to_none=True)
        objective(torch.arange(9), 0).loss.backward()
        gradients.append({key: value.grad for key, value in net.named_parameters()})
    plain, penalised = gradients
    moved = {key for key in plain if not torch.equal(plain[key], penalised[key])}
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
