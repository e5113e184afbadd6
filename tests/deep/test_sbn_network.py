"""The sigmoid belief network: its estimates against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from annealvi.deep import ProximityPenalty
from annealvi.deep.noise import Noise
from annealvi.deep.objectives import importance_weighted, leave_one_out
from annealvi.deep.penalties import STATISTICS
from annealvi.deep.sbn import BeliefNetwork, log_bernoulli

D = 5
DEPTHS = [(4,), (3, 2)]  # hidden units


def network(hidden, seed=0, penalty=None):
    torch.manual_seed(seed)
    net = BeliefNetwork(torch.rand(D), hidden, initial_prior=0.3, penalty=penalty)
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
    pairs = zip(net.encoder, below, bits, strict=True)
    log_q = sum(log_bernoulli(layer(inputs), z) for layer, inputs, z in pairs)
    return log_q, net.log_joint(x, bits)


@pytest.fixture
def x():
    return torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0]).double()


@pytest.mark.parametrize("hidden", DEPTHS)
def test_q_and_p_are_distributions(hidden, x):
    net = network(hidden)
    data = torch.tensor(list(itertools.product([0.0, 1.0], repeat=D))).double()
    with torch.no_grad():
        log_q, _ = enumerate_q(net, x, hidden)
        log_p = torch.stack([net.log_joint(one, every_state(hidden)) for one in data])
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
    penalty = ProximityPenalty(name, magnitude=2.0, gamma=1.0).plan(10)
    net = network((3, 2), penalty=penalty)
    data = torch.stack([x, 1 - x])

    def cost(step):
        return penalty(net.statistic(penalty.statistic, net(data, 6, Noise(0))), step, 0.0)

    cost(0)
    state = penalty.state_dict()
    with torch.no_grad():
        for weights in net.encoder.parameters():
            weights += 0.05
    cost(1).backward()
    assert all(p.grad is None for p in [*net.decoder.parameters(), net.prior])
    largest = 0.0
    for weights in net.encoder.parameters():
        if name == "orthogonal" and weights.ndim == 1:
            assert weights.grad is None
            continue
        differences = torch.zeros_like(weights)
        for place in np.ndindex(*weights.shape):
            values = []
            for epsilon in (1e-6, -2e-6):
                with torch.no_grad():
                    weights[place] += epsilon
                penalty.load_state_dict(state)
                values.append(float(cost(1).detach()))
            with torch.no_grad():
                weights[place] += 1e-6
            differences[place] = (values[0] - values[1]) / 2e-6
        np.testing.assert_allclose(weights.grad, differences, rtol=1e-5, atol=1e-7)
        largest = max(largest, float(differences.abs().max()))
    assert largest > 0.01


def test_draws_from_p():
    net = network((3, 2), seed=5)
    with torch.no_grad():
        x, bits = net.sample(20_000, Noise(0))
        states = every_state((3, 2))
        below = net.p_logits(states)
        weight = sum(log_bernoulli(*pair) for pair in zip(below[1:], states, strict=True)).exp()
        exact = (weight[:, None] * below[0].sigmoid()).sum(0)
    assert [part.shape for part in (x, *bits)] == [(20_000, D), (20_000, 3), (20_000, 2)]
    np.testing.assert_allclose(x.mean(0), exact, atol=0.02)
    np.testing.assert_allclose(bits[1].mean(0), net.prior.detach().sigmoid(), atol=0.02)
