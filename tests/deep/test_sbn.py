"""SigmoidBeliefNetwork: its estimates against enumeration, what it finds, and its start."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from annealvi import Annealed
from annealvi.deep import ProximityPenalty, SigmoidBeliefNetwork
from annealvi.deep.objectives import importance_weighted, leave_one_out
from annealvi.deep.penalties import STATISTICS
from annealvi.deep.sbn import BeliefNetwork, log_bernoulli
from annealvi.deep.training import Noise
from tests.deep.fits import each_gradient

D = 5
DEPTHS = [(4,), (3, 2)]  # hidden units
BLOCKS = np.kron(np.eye(4), np.ones(4))  # four causes of four pixels each


def planted(n_samples, seed):
    rng = np.random.RandomState(seed)
    z = rng.random_sample((n_samples, 4)) < 0.4
    return (rng.random_sample((n_samples, 16)) < 0.05 + 0.9 * (z @ BLOCKS)).astype(np.float32), z


def truth(X):
    """log p of the planted network: its blocks are independent."""
    on = X.reshape(-1, 4, 4).sum(axis=2)
    log_on = np.log(0.4) + on * np.log(0.95) + (4 - on) * np.log(0.05)
    log_off = np.log(0.6) + on * np.log(0.05) + (4 - on) * np.log(0.95)
    return np.logaddexp(log_on, log_off).sum(axis=1)


def tiny(hidden=(4,), **options):
    options = dict(max_iter=30, learning_rate=0.01, random_state=0) | options
    return SigmoidBeliefNetwork(hidden, **options)


def test_planted_causes_are_found():
    X, _ = planted(2000, 0)
    sbn = tiny((4,), learning_rate=0.02, max_iter=1500).fit(X)
    new, causes = planted(500, 1)
    assert sbn.score_samples(new).mean() > truth(new).mean() - 0.15
    found = np.abs(np.corrcoef(sbn.transform(new).T, causes.T)[:4, 4:])
    assert np.all(found.max(axis=0) > 0.9) and len(set(found.argmax(axis=0))) == 4
    assert sbn.score(new) < sbn.score_samples(new).mean() < truth(new).mean() + 0.15
    drawn, bits = sbn.sample(2000)
    assert drawn.shape == (2000, 16) and bits.shape == (2000, 4)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06)


def test_penalties_hold_q_where_it_was():
    """A heavy penalty keeps the mean entropy of each unit near the average of its past."""
    X, _ = planted(500, 0)

    def entropy(sbn):
        q = torch.distributions.Bernoulli(probs=torch.tensor(sbn.transform(X)))
        return float(q.entropy().mean())

    options = dict(max_iter=200, learning_rate=0.02)
    start = entropy(tiny(max_iter=1, learning_rate=1e-9).fit(X))
    heavy = ProximityPenalty("entropy", magnitude=1e4, gamma=1.0)
    moved = abs(entropy(tiny(**options).fit(X)) - start)
    held = abs(entropy(tiny(proximity=heavy, **options).fit(X)) - start)
    assert moved > 0.1 and held < 0.25 * moved


def test_annealing_is_the_papers():
    X, _ = planted(60, 0)
    annealed = Annealed(50.0, length=np.log(50) / -np.log(1e-3), shape="exponential")
    path = tiny(temperature=annealed).fit(X).temperature_path_
    assert path[0] == pytest.approx(50) and path[-1] == 1 and np.all(np.diff(path) <= 0)
    expected = np.maximum(1, 50 * 1e-3 ** (np.arange(30) / 30))
    np.testing.assert_allclose(path, expected, rtol=0.06)  # whole steps


def test_the_bad_start_of_the_paper():
    X, _ = planted(60, 0)
    sbn = tiny(initial_weight=-10.0, initial_prior=0.001, max_iter=1, learning_rate=1e-9).fit(X)
    np.testing.assert_allclose(sbn.components_, -10, atol=1e-6)
    assert sbn.network_.prior.detach().sigmoid().numpy() == pytest.approx(0.001, rel=1e-3)


def network(hidden, seed=0):
    torch.manual_seed(seed)
    net = BeliefNetwork(torch.rand(D), hidden, initial_prior=0.3)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.9)
    return net.double()


def every_state(hidden):
    """All configurations of the bits, layers apart."""
    states = torch.tensor(list(itertools.product([0.0, 1.0], repeat=sum(hidden))))
    return list(states.double().split(hidden, dim=1))


def enumerate_q(net, x, hidden):
    """log q(z | x) and log p(x, z) of every z."""
    bits = every_state(hidden)
    below = [(x - net.center).expand(len(bits[0]), -1), *bits[:-1]]
    logits = [layer(inputs) for layer, inputs in zip(net.encoder, below, strict=True)]
    return log_bernoulli(bits, logits), net.log_joint(x, bits, net.p_logits(bits))


@pytest.fixture
def x():
    return torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0]).double()


@pytest.mark.parametrize("hidden", DEPTHS)
def test_q_and_p_are_distributions(hidden, x):
    net = network(hidden)
    data = torch.tensor(list(itertools.product([0.0, 1.0], repeat=D))).double()
    with torch.no_grad():
        log_q, _ = enumerate_q(net, x, hidden)
        log_p = torch.stack([enumerate_q(net, one, hidden)[1] for one in data])
    assert float(log_q.logsumexp(0)) == pytest.approx(0, abs=1e-12)
    assert float(log_p.logsumexp((0, 1))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("hidden", DEPTHS)
def test_the_gradient_is_unbiased(hidden, temperature, x):
    net = network(hidden)
    log_q, log_p = enumerate_q(net, x, hidden)
    exact = torch.autograd.grad((log_q.exp() * (log_p - temperature * log_q)).sum(), parts(net))
    noise, many = Noise(1), x.expand(4000, -1)
    estimates = []
    for _ in range(30):
        draws = net(many, 3, noise)
        surrogate = leave_one_out(draws.log_joint, draws.log_q, temperature=temperature)
        gradient = torch.autograd.grad(surrogate.mean(), parts(net))
        estimates.append(torch.cat([part.flatten() for part in gradient]))
    found = torch.stack(estimates)
    error = found.std(dim=0) / len(found) ** 0.5
    wrong = (found.mean(dim=0) - torch.cat([part.flatten() for part in exact])).abs()
    assert float(error.max()) < 0.02  # the test can fail
    assert bool((wrong < 5 * error + 1e-9).all()), float((wrong / error).max())


def parts(net):
    return [*net.encoder.parameters(), *net.decoder.parameters(), net.prior]


@pytest.mark.parametrize("hidden", DEPTHS)
def test_bounds_of_the_likelihood(hidden, x):
    net = network(hidden, seed=3)
    with torch.no_grad():
        log_q, log_p = enumerate_q(net, x, hidden)
        exact = float(log_p.logsumexp(0))
        elbo = float((log_q.exp() * (log_p - log_q)).sum())
        draws = net(x.expand(500, -1), 2000, Noise(0))
        log_w = draws.log_joint - draws.log_q
        bounds = {k: float(importance_weighted(log_w[:k]).mean()) for k in (1, 5, 2000)}
    assert elbo < exact - 0.1  # q is not the posterior
    assert bounds[1] == pytest.approx(elbo, abs=0.15)
    assert bounds[1] + 0.05 < bounds[5] < bounds[2000] < exact + 0.01
    assert bounds[2000] == pytest.approx(exact, abs=0.02)
    assert float(log_w.mean()) == pytest.approx(elbo, abs=0.03)


@pytest.mark.parametrize("name", STATISTICS)
def test_penalties_move_q_alone(name, x):
    """The gradient against finite differences, with k d(f - average) about a changed q."""
    penalty, net = ProximityPenalty(name, magnitude=2.0, gamma=1.0).plan(10), network((3, 2))
    data = torch.stack([x, 1 - x])

    def value():
        return net.statistic(penalty.statistic, net(data, 6, Noise(0)))

    past = value().detach()

    def cost():
        return penalty(value(), 1, 0.0, past)

    with torch.no_grad():
        for weights in net.encoder.parameters():
            weights += 0.05
    q = [part for part in net.encoder.parameters() if name != "orthogonal" or part.ndim == 2]
    largest = 0.0
    for found, differences in each_gradient(q, penalty, cost):
        np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-7)
        largest = max(largest, float(differences.abs().max()))
    assert largest > 0.01
    assert all(p.grad is None for p in [*net.decoder.parameters(), net.prior])


def test_draws_from_p():
    net = network((3, 2), seed=5)
    with torch.no_grad():
        x, bits = net.sample(20_000, Noise(0))
        states = every_state((3, 2))
        below = net.p_logits(states)
        weight = log_bernoulli(states, below[1:]).exp()[:, None]
    assert x.shape == (20_000, D) and bits.shape == (20_000, 3)
    np.testing.assert_allclose(x.mean(0), (weight * below[0].sigmoid()).sum(0), atol=0.02)
    np.testing.assert_allclose(bits.mean(0), (weight * states[0]).sum(0), atol=0.02)
