"""VariationalAutoencoder: its bounds against integrals, what it learns and what it answers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from sklearn.linear_model import LinearRegression
from torch.distributions import Normal, kl_divergence

from annealvi import Fixed
from annealvi.deep import ProximityPenalty, VariationalAutoencoder
from annealvi.deep.estimator import penalised
from annealvi.deep.objectives import hvi_elbo, loss_calibrated
from annealvi.deep.penalties import STATISTICS, inverse_huber
from annealvi.deep.training import Noise
from annealvi.deep.vae import UNITS, AutoencoderNetwork, Stack, start_orthogonal
from tests.asserts import refused
from tests.marks import cases


def small(**others):
    parameters = {"hidden": (12, 8), "batch_size": 32, "max_iter": 40, "random_state": 0}
    return VariationalAutoencoder(3, **{**parameters, **others})


@pytest.fixture(scope="module")
def X():
    rng = np.random.RandomState(0)
    return (rng.random_sample((150, 20)) < rng.beta(0.5, 0.5, 20)).astype(np.float32)


def plant(n_samples, seed):
    """Bits whose log-odds are linear in two Gaussian variables."""
    rng = np.random.RandomState(7)
    loadings = rng.standard_normal((2, 40)) * 2
    rng = np.random.RandomState(seed)
    Z = rng.standard_normal((n_samples, 2))
    chance = 1 / (1 + np.exp(-Z @ loadings))
    return (rng.random_sample(chance.shape) < chance).astype(np.float32), Z, loadings


def evidence(X, loadings):
    """log p of each row of planted bits, on a grid of z."""
    axis = np.linspace(-5, 5, 101)
    Z = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    logits = Z @ loadings
    logs = X @ logits.T - np.logaddexp(0, logits).sum(axis=1) - 0.5 * np.sum(Z**2, axis=1)
    return np.logaddexp.reduce(logs, axis=1) + 2 * np.log(axis[1] - axis[0]) - np.log(2 * np.pi)


@cases("others", {}, {"n_transitions": 2, "calibration": 0.2}, ids=["plain", "chain"])
def test_planted_variables_are_recovered(others):
    X, _, _ = plant(3000, 0)
    test, Z, loadings = plant(500, 1)
    options = dict(hidden=(40,), max_iter=1500, learning_rate=3e-3, random_state=0) | others
    vae = VariationalAutoencoder(2, **options).fit(X)
    found = vae.transform(test)
    assert LinearRegression().fit(found, Z).score(found, Z) > 0.8
    exact = evidence(test, loadings).mean()
    elbo, sampled = vae.score(test), vae.score_samples(test, n_draws=200).mean()
    assert exact - 1.0 < elbo < sampled < exact + 0.1


def test_the_evidence_tightens_with_draws(X):
    vae = small(max_iter=200).fit(X)
    bounds = [vae.score_samples(X, n_draws=n).mean() for n in (1, 10, 300)]
    assert bounds[0] == pytest.approx(vae.elbo(X).mean(), abs=1e-6)  # the same draws
    assert vae.elbo(X, n_draws=300).mean() + 0.01 < bounds[1] < bounds[2] - 0.005
    assert vae.score(X) == pytest.approx(np.mean(vae.elbo(X)))


def test_draws_in_several_blocks_are_as_good_as_in_one(X, monkeypatch):
    vae = small().fit(X)
    whole, single = vae.elbo(X[:3], n_draws=1000), [vae.elbo(X[[0] * 500])]
    monkeypatch.setattr(VariationalAutoencoder, "BLOCK", 300)
    error = 5 * np.std(single) * np.sqrt(2 / 1000)
    np.testing.assert_allclose(vae.elbo(X[:3], n_draws=1000), whole, atol=error)


def test_what_a_fitted_model_answers(X):
    vae = small(n_transitions=1).fit(X)
    Z = vae.transform(X)
    assert Z.shape == (150, 3) and Z.dtype == np.float32
    chances = vae.inverse_transform(Z)
    assert chances.shape == X.shape and chances.min() > 0 and chances.max() < 1
    drawn, from_ = vae.sample(500)
    assert drawn.shape == (500, 20) and set(np.unique(drawn)) == {0, 1} and from_.shape == (500, 3)
    assert np.abs(drawn.mean(axis=0) - vae.inverse_transform(from_).mean(axis=0)).max() < 0.12
    assert vae.elbo(X).shape == vae.score_samples(X, n_draws=2).shape == (150,)
    assert vae.score_samples(X).dtype == np.float64
    assert vae.get_feature_names_out()[0] == "variationalautoencoder0"
    assert vae.temperature_path_[-1] == 1
    sizes = {name: dead.shape for name, dead in vae.dead_units(X).items()}
    assert sizes == {"encoder 1": (12,), "encoder 2": (8,), "decoder 1": (8,), "decoder 2": (12,)}


def test_units_with_large_negative_biases_are_dead(X):
    vae = small().fit(X)
    with torch.no_grad():
        vae.network_.encoder.layers[0].bias[:5] = -1e3
        vae.network_.decoder.layers[1].bias[:] = -1e6
        vae.network_.decoder.layers[0].bias[:] = 1e3
    dead = vae.dead_units(X)
    assert dead["encoder 1"][:5].all() and not dead["encoder 1"].all()
    assert dead["decoder 2"].all() and not dead["decoder 1"].any()


def test_heat_leaves_q_wider(X):
    spreads = []
    for T in (1, 3):
        net = small(temperature=T, max_iter=300).fit(X).network_
        with torch.no_grad():
            spreads.append(net.posterior(net.encoder(torch.as_tensor(X))).stddev.mean())
    assert spreads[1] > 1.2 * spreads[0]
    annealed = small(temperature="annealed").fit(X)
    assert annealed.history_["temperature"][0] == pytest.approx(3.9)
    assert annealed.temperature_path_[-1] == 1


def test_bad_questions(X):
    vae = small().fit(X)
    with pytest.raises(ValueError, match=r"X has 2 features, but inverse_transform .* expecting 3"):
        vae.inverse_transform(X[:, :2])
    refused("dead_units needs a model with units='relu'", small(units="gated").fit(X).dead_units, X)


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
    """T multiplies the entropy, and beta the divergence."""
    net = network()
    context = net.encoder(x)
    q, prior = net.posterior(context), Normal(torch.zeros(3), torch.ones(3))
    z = q.mean + q.stddev * Noise(5).normal(*q.mean.shape)
    likelihood = torch.distributions.Bernoulli(logits=net.logits(z)).log_prob(x).sum(dim=-1)
    divergence, entropy = kl_divergence(q, prior).sum(dim=-1), q.entropy().sum(dim=-1)
    for T, beta in ((1.0, 1.0), (3.0, 1.0), (1.0, 0.25), (3.0, 0.25)):
        tempered, elbo = net.bound(x, context, Noise(5), T, beta)
        torch.testing.assert_close(elbo, (likelihood - divergence).mean())
        expected = likelihood - beta * divergence + beta * (T - 1) * entropy
        torch.testing.assert_close(tempered, expected.mean())


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


def test_the_encoder_starts_orthogonal():
    weights = AutoencoderNetwork(12, 3, (7, 5), n_transitions=1).encoder_weights()
    assert [tuple(weight.shape) for weight in weights] == [(7, 12), (5, 7), (3, 5), (3, 5)]
    for weight in weights:
        torch.testing.assert_close(weight @ weight.T, torch.eye(len(weight)))


@pytest.mark.parametrize("name", STATISTICS)
def test_a_penalty_moves_the_encoder_alone(x, name):
    """What the loss adds to the gradient, by the difference of two fits' first objectives."""
    gradients = []
    for magnitude in (0.0, 3.0):
        penalty = ProximityPenalty(name, magnitude=magnitude, gamma=1.0)
        options = dict(proximity=penalty, max_iter=1, random_state=0)
        vae = VariationalAutoencoder(3, hidden=(7, 5), **options).fit(x)
        net = vae.network_
        objective = penalised(net, vae._bound(net, x, Noise(8)), Fixed(), vae._trainer.penalty)
        net.zero_grad(set_to_none=True)
        objective(torch.arange(9), 0).loss.backward()
        gradients.append({key: value.grad for key, value in net.named_parameters()})
    plain, held = gradients
    moved = {key for key in plain if not torch.equal(plain[key], held[key])}
    weights = {key for key in plain if key.startswith(("encoder", "head"))}
    assert moved and moved <= weights
    if name == "orthogonal":
        assert moved == {key for key in weights if key.endswith("weight")}


@pytest.mark.parametrize("name", STATISTICS)
def test_the_penalty_is_taken_from_the_average_of_the_parameters(x, name):
    """f of the averaged weights, the newest among them, not the average of f (Algorithm 2)."""
    net, nets, alpha = network(), [], 0.6
    options = dict(magnitude=3.0, gamma=1.0, decay=alpha, average="parameters")
    penalty = ProximityPenalty(name, **options).plan(9)
    vae = VariationalAutoencoder(max_iter=9)
    held = penalised(net, vae._bound(net, x, Noise(8)), Fixed(), penalty)
    free = penalised(net, vae._bound(net, x, Noise(8)), Fixed(), None)
    for step in range(3):
        nets.append(copy.deepcopy(net))
        cost = held(torch.arange(9), step).loss - free(torch.arange(9), step).loss
        with torch.no_grad():
            for parameter in net.parameters():
                parameter += torch.randn(parameter.shape)
    average, weights = copy.deepcopy(net), alpha ** torch.arange(2, -1, -1)
    every = zip(*(one.parameters() for one in nets), strict=True)
    with torch.no_grad():
        for parameter, values in zip(average.parameters(), every, strict=True):
            parameter.copy_(sum(w * value for w, value in zip(weights, values, strict=True)))
            parameter /= weights.sum()
    now, past = (one.statistic(penalty.statistic, x) for one in (nets[-1], average))
    torch.testing.assert_close(cost, 3 * inverse_huber(now - past).sum(), rtol=1e-4, atol=1e-4)
    assert cost > 0


def test_the_steps_that_move_the_decoder(x):
    """All but one in a million steps are annealed here."""
    moved = {}
    for steps in ("all", "elbo"):
        options = dict(n_transitions=1, calibration=1 - 1e-6, decoder_steps=steps)
        vae = VariationalAutoencoder(2, hidden=(5,), random_state=0, **options)
        one, two = (vae.set_params(max_iter=n).fit(x).network_ for n in (1, 5))
        moved[steps] = float((two.pixels.weight - one.pixels.weight).detach().abs().max())
    assert moved["elbo"] == 0 < moved["all"]
    with pytest.raises(ValueError, match=r"'calibration' .* below 1 with decoder_steps='elbo'"):
        vae.set_params(calibration=1.0).fit(x)


@pytest.mark.parametrize("steps", ["all", "elbo"])
def test_an_annealed_step_moves_the_decoder_by_the_last_state_or_not_at_all(x, steps):
    net = network(n_transitions=3)
    context = net.encoder(x).detach()
    bound, _ = net.chain_bound(x, context, Noise(4), calibration=1.0, decoder_steps=steps)
    path = net.chain(net.chain.draw_noise(9, Noise(4)), context=context, detach=True)
    for weight in (net.pixels.weight, net.decoder.layers[0].weight):
        (found,) = torch.autograd.grad(bound, weight, retain_graph=True, allow_unused=True)
        if steps == "elbo":
            assert found is None
        else:
            likelihood = net.log_likelihood(x, path.z[-1]).mean()
            expected = torch.autograd.grad(likelihood, weight, retain_graph=True)[0]
            torch.testing.assert_close(found, expected)


def test_the_papers_network_has_gated_coders_and_elu_transitions():
    found = {}
    for units in UNITS:
        net = network(n_transitions=2, units=units)
        found[units] = net.encoder.gated and net.decoder.gated, net.chain.forwards.activation
    assert found == {"relu": (False, "elu"), "gated": (True, "gated"), "gated-elu": (True, "elu")}


@pytest.mark.parametrize("calibration", [0.0, 1.0])
def test_steps_of_a_chain_follow_the_objectives(x, calibration):
    net = network(n_transitions=3)
    context, noise = net.encoder(x), Noise(4)
    bound, elbo = net.chain_bound(x, context, noise, temperature=1.5, calibration=calibration)
    epsilon = net.chain.draw_noise(9, Noise(4))
    options = dict(calibration=calibration, beta=1.5, context=context)
    expected, path = loss_calibrated(net.chain, epsilon, lambda z: net.log_joint(x, z), **options)
    torch.testing.assert_close(bound, expected.mean())
    plain = hvi_elbo(net.chain, path, lambda z: net.log_joint(x, z))
    torch.testing.assert_close(elbo, plain.mean())


@pytest.mark.parametrize("calibration", [0.0, 1.0])
def test_beta_weighs_all_but_the_likelihood(x, calibration):
    net = network(n_transitions=3)
    context = net.encoder(x)

    def bounds(beta):
        options = dict(temperature=1.0, calibration=calibration, beta=beta)
        return net.chain_bound(x, context, Noise(4), **options)

    none, half, whole = (bounds(beta)[0] for beta in (0.0, 0.5, 1.0))
    path = net.chain(net.chain.draw_noise(9, Noise(4)), context=context)
    likelihood = net.log_likelihood(x, path.z[1:])
    alpha = torch.tensor([0.0, 0.0, 1.0]) if calibration == 0 else torch.tensor([1.0, 2.0, 3.0]) / 3
    torch.testing.assert_close(none, (alpha[:, None, None] * likelihood).sum(dim=0).mean())
    torch.testing.assert_close(half, (none + whole) / 2)
    assert (whole - none).abs() > 0.1
    for beta in (0.0, 0.5):
        torch.testing.assert_close(bounds(beta)[1], bounds(1.0)[1])  # the ELBO has beta = 1


def test_beta_follows_the_schedule_and_is_1_after_it(x):
    net = network()
    context = net.encoder(x)
    vae = VariationalAutoencoder(schedule=lambda s: 0.25, annealing=0.5, max_iter=2)
    for step, beta in ((0, 0.25), (1, 1.0)):
        found = penalised(net, vae._bound(net, x, Noise(5)), Fixed(), None)(torch.arange(9), step)
        tempered, elbo = net.bound(x, context, Noise(5), 1.0, beta)
        assert found.elbo == elbo and found.loss == -tempered and (beta == 1) == (elbo == tempered)


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
    assert elbo > net.bound(x, context, Noise(0))[1] - 100  # open gates: less 1,500


def test_a_large_context_does_not_throw_gated_transitions_off():
    torch.manual_seed(0)
    net = AutoencoderNetwork(30, 10, (20,), n_transitions=2, units="gated")
    z, context = torch.randn(1, 200, 10), torch.randn(200, 20)
    for transitions in (net.chain.forwards, net.chain.reverses):
        usual = transitions.moments(z, 0, context)
        for one, other in zip(usual, transitions.moments(z, 0, 1e6 * context + 3e6), strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_a_gated_unit_is_a_linear_one_times_a_sigmoid():
    torch.manual_seed(0)
    stack, x = Stack(4, (3, 2), "gated"), torch.randn(6, 4)
    first, second = stack.activations(x)
    linear, gate = (x @ stack.layers[0].weight.T + stack.layers[0].bias).chunk(2, dim=-1)
    torch.testing.assert_close(first, linear * torch.sigmoid(gate))
    assert (first < 0).any() and second.shape == (6, 2)
    torch.testing.assert_close(stack(x), second)


def test_both_halves_of_a_gated_layer_start_orthogonal():
    stack = Stack(5, (3,), "gated")
    start_orthogonal(stack.layers[0], stack.maps)
    for half in stack.layers[0].weight.chunk(2):
        torch.testing.assert_close(half @ half.T, torch.eye(3))
