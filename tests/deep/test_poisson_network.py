"""The network of the Poisson deep exponential family: its estimates against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annealvi.deep import ProximityPenalty
from annealvi.deep.noise import Noise
from annealvi.deep.poisson import Counts, PoissonNetwork, _baseline, estimate
from annealvi.deep.statistics import OF_UNITS

K, V = 2, 4
PRIOR = 0.7


def network(penalty=None):
    torch.manual_seed(0)
    mean = torch.tensor([0.5, 1.0, 2.0, 0.3])
    net = PoissonNetwork(mean, K, 3, prior_rate=PRIOR, background=0.1, penalty=penalty)
    with torch.no_grad():
        net.weights += torch.randn(V, K)
        net.log_rates.copy_(torch.tensor([[0.5, -0.4], [0.1, 0.1], [-0.9, 0.2]]))
    return net.double()


@pytest.fixture
def counts():
    columns, values = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.tensor([[2.0, 1, 1], [1, 0, 0]])
    return Counts(columns, values.double(), torch.tensor([0.5, 1.0]).double())


def exact_terms(net, log_rates, counts, most=30):
    """log q, log p and log p(x | z) of every z up to a size, for each document."""
    z = torch.cartesian_prod(torch.arange(most), torch.arange(most)).double()
    rates = log_rates.exp()[:, None]
    log_q = torch.distributions.Poisson(rates).log_prob(z).sum(-1)
    log_prior = torch.distributions.Poisson(net.prior_rate).log_prob(z).sum(-1)
    words = z @ net.topics().T + net.background
    dense = torch.zeros(len(log_rates), V).double()
    dense.scatter_add_(1, counts.columns, counts.values)
    x_rates = counts.exposure[:, None, None] * words
    log_x = torch.distributions.Poisson(x_rates).log_prob(dense[:, None]).sum(-1)
    return log_q, log_prior, log_x


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_gradient_is_unbiased(temperature, counts):
    net = network()
    log_rates = net.log_rates[:2]
    log_q, log_prior, log_x = exact_terms(net, log_rates, counts)
    objective = (log_q.exp() * (log_prior + log_x - temperature * log_q)).sum()
    exact = torch.autograd.grad(objective, [net.log_rates, net.weights])
    repeat = Counts(*(part.repeat_interleave(4000, dim=0) for part in counts))
    noise, estimates = Noise(2), []
    for _ in range(40):
        many = net.log_rates[:2].repeat_interleave(4000, dim=0)
        found = estimate(net, many, repeat, 4, noise, temperature=temperature)
        gradient = torch.autograd.grad(found.surrogate.sum() / 4000, [net.log_rates, net.weights])
        estimates.append(torch.cat([part.flatten() for part in gradient]))
    found = torch.stack(estimates)
    error = found.std(dim=0) / len(found) ** 0.5
    wrong = (found.mean(dim=0) - torch.cat([part.flatten() for part in exact])).abs()
    assert float(error.max()) < 0.02  # the test can fail
    assert bool((wrong < 5 * error + 1e-7).all()), float((wrong / error).max())


def test_scaling_of_the_score_lowers_the_variance(counts):
    """Against the same draws with no control variate at all."""
    net = network()
    log_rates = net.log_rates[:2].detach().requires_grad_()
    scaled, plain = [], []
    for seed in range(300):
        found = estimate(net, log_rates, counts, 8, Noise(seed))
        scaled.append(torch.autograd.grad(found.surrogate.sum(), log_rates)[0])
        z = Noise(seed).poisson(log_rates.exp()[:, None].expand(-1, 8, -1))
        q, p = torch.distributions.Poisson(log_rates.exp()[:, None]), net._prior(z)
        f = net.log_likelihood(z, counts, net.topics())[..., None] + p.log_prob(z) - q.log_prob(z)
        score = (f.detach() * q.log_prob(z)).sum(-1).mean(1).sum()
        plain.append(torch.autograd.grad(score, log_rates)[0])
    ratio = torch.stack(scaled).var(dim=0) / torch.stack(plain).var(dim=0)
    assert float(ratio.max()) < 0.7


@pytest.mark.parametrize("rate", [1e-2, 3e-5, 1e-6])
def test_what_rare_draws_are_less_than_is_a_mean_of_the_others(rate):
    """Where a topic is unlikely, one draw that has it weighs more than all others together."""
    torch.manual_seed(0)
    z, f = torch.zeros(500, 32, 1), 50 * torch.randn(500, 32, 1)
    z[torch.arange(500), torch.randint(32, (500,))] = 1
    weights = (z - rate).square()
    found = _baseline(f, weights)
    others = 1 - torch.eye(32).double()
    f, weights = f.double(), weights.double()
    exact = (others @ (weights * f)) / (others @ weights)
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=1e-3)


def test_the_elbo(counts):
    net = network()
    with torch.no_grad():
        log_q, log_prior, log_x = exact_terms(net, net.log_rates[:2], counts)
        exact = (log_q.exp() * (log_prior + log_x - log_q)).sum(-1)
        found = estimate(net, net.log_rates[:2], counts, 60_000, Noise(0)).elbo
    np.testing.assert_allclose(found, exact, atol=0.03)
    assert bool((found < (log_prior + log_x).logsumexp(-1)).all())


@pytest.mark.parametrize("name", OF_UNITS)
def test_penalties_move_q_alone(name):
    penalty = ProximityPenalty(name, magnitude=2.0, gamma=1.0).plan(10)
    net = network(penalty)

    def cost():
        return penalty(net.statistic(penalty.statistic, net.log_rates), 1, 0.0)

    cost()
    state = penalty.state_dict()
    with torch.no_grad():
        net.log_rates += 0.3
    cost().backward()
    assert net.weights.grad is None
    differences = torch.zeros_like(net.log_rates)
    for place in np.ndindex(*net.log_rates.shape):
        values = []
        for epsilon in (1e-6, -2e-6):
            with torch.no_grad():
                net.log_rates[place] += epsilon
            penalty.load_state_dict(state)
            values.append(float(cost().detach()))
        with torch.no_grad():
            net.log_rates[place] += 1e-6
        differences[place] = (values[0] - values[1]) / 2e-6
    np.testing.assert_allclose(net.log_rates.grad, differences, rtol=1e-5, atol=1e-8)
    assert float(differences.abs().min()) > 1e-3
