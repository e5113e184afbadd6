"""PoissonDEF: its estimates against enumeration, what it finds, and what it answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from annealvi.deep import PoissonDEF, ProximityPenalty
from annealvi.deep.penalties import OF_UNITS
from annealvi.deep.poisson import DocumentBatch, PoissonNetwork, _baseline, estimate
from annealvi.deep.training import Noise
from annealvi.metrics.held_out import split_tokens
from tests.asserts import refused
from tests.deep.fits import each_gradient

K, V = 2, 4
PRIOR = 0.7
TOPICS = np.kron(np.eye(3), np.full(6, 2.0))  # three topics of six words each


def planted(n_samples, seed):
    rng = np.random.RandomState(seed)
    z = rng.poisson(0.8, (n_samples, 3))
    return rng.poisson(0.05 + z @ TOPICS).astype(float), z


def tiny(**options):
    options = dict(n_components=3, prior_rate=1.0, max_iter=20, n_draws=8) | options
    return PoissonDEF(**(dict(n_local_steps=20, batch_size=32, random_state=0) | options))


def test_planted_topics_are_found():
    X, _ = planted(300, 0)
    found = tiny(max_iter=800, learning_rate=0.02, n_local_steps=100, n_draws=16).fit(X)
    blocks = sorted(tuple(sorted(words)) for words in found.top_words(6))
    assert blocks == [tuple(range(first, first + 6)) for first in (0, 6, 12)]
    new, z = planted(100, 1)
    order = [int(words[0]) // 6 for words in found.top_words(1)]
    theta = found.transform(new)
    for k, block in enumerate(order):
        # q is Poisson: its mean is not sharp
        assert np.corrcoef(theta[:, k], z[:, block])[0, 1] > 0.85
    history = found.history_["elbo"]
    assert history[-50:].mean() > history[:50].mean() + 5
    plain = np.exp(-np.sum(new * np.log(X.sum(axis=0) / X.sum())) / new.sum())
    assert found.perplexity(new, observed=0.3) < 0.85 * plain
    x, z = found.sample(2000)
    assert x.shape == (2000, 18) and z.shape == (2000, 3)
    np.testing.assert_allclose(z.mean(axis=0), 1.0, atol=0.1)
    expected = found.background_ + found.components_.sum(axis=0)
    np.testing.assert_allclose(x.mean(axis=0), expected, rtol=0.15)


def test_perplexity_is_its_formula():
    X, _ = planted(40, 0)
    fitted = tiny(random_state=3).fit(X)
    new, _ = planted(12, 5)
    new[3] = 0  # a document without words says nothing
    rng = np.random.RandomState(3)  # what the method draws its seed from
    noise = Noise(rng.randint(2**31 - 1), "cpu")
    seen, hidden = split_tokens(new, observed=0.1, random_state=np.random.RandomState(noise.seed()))
    length = np.maximum(new.sum(axis=1), 1)
    share = np.where(new.sum(axis=1) > 0, seen.toarray().sum(axis=1) / length, 1.0)
    rates = fitted._local_rates(seen.astype(np.float32), noise, share)[0]
    r = fitted.background_ + rates @ fitted.components_
    log_p = np.log(r / r.sum(axis=1, keepdims=True))
    expected = np.exp(-np.sum(hidden.toarray() * log_p) / hidden.sum())
    assert fitted.perplexity(new) == pytest.approx(expected, rel=1e-5)
    refused(
        "all words of the 18 documents are observed",
        fitted.perplexity,
        np.eye(18),
    )
    refused("'observed' parameter", fitted.perplexity, new, observed=1.0)


def test_rates_of_a_document_near_the_posterior():
    """One topic that all words come from: the posterior of z given its total."""
    X = np.random.RandomState(0).poisson(5.0, (60, 10)).astype(float)
    fitted = tiny(n_components=1, max_iter=300, prior_rate=5.0, learning_rate=0.05).fit(X)
    fitted.set_params(n_local_steps=400, n_draws=64)
    new = np.vstack([np.full(10, 2.0), np.full(10, 8.0)])
    z = np.arange(60)
    for found, row in zip(fitted.transform(new)[:, 0], new, strict=True):
        rate = fitted.background_ + z[:, None] * fitted.components_[0]
        log_p = stats.poisson(5.0).logpmf(z) + stats.poisson(rate).logpmf(row).sum(axis=1)
        # q's mean against that of the best Poisson distribution
        grid = np.linspace(0.2, 20, 400)
        q = stats.poisson(grid[:, None]).pmf(z)
        kl = (q * (stats.poisson(grid[:, None]).logpmf(z) - log_p)).sum(axis=1)
        assert found == pytest.approx(grid[np.argmin(kl)], rel=0.1)


def test_documents_without_words_and_words_without_documents():
    X, _ = planted(40, 0)
    X[5], X[:, 7] = 0, 0
    fitted = tiny().fit(X)
    assert np.all(fitted.components_ > 0) and np.all(fitted.background_ > 0)
    assert np.all(np.isfinite(fitted.transform(np.zeros((2, 18)))))
    with_it, _ = planted(20, 1)
    assert np.isfinite(fitted.perplexity(with_it))


def test_top_words():
    X, _ = planted(40, 0)
    fitted = tiny(max_iter=2).fit(X)
    names = [f"word{i}" for i in range(18)]
    named = [[f"word{i}" for i in words] for words in fitted.top_words(3)]
    assert fitted.top_words(3, names) == named
    best = np.argmax(fitted.components_, axis=1)
    assert [words[0] for words in fitted.top_words(1)] == best.tolist()
    refused(r"'n' .*must be an int", fitted.top_words, 0)
    refused(r"one name for each of the 18 features", fitted.top_words, 2, names[:4])


def network():
    torch.manual_seed(0)
    net = PoissonNetwork(torch.tensor([0.5, 1.0, 2.0, 0.3]), K, 3, prior_rate=PRIOR, background=0.1)
    with torch.no_grad():
        net.weights += torch.randn(V, K)
        net.log_rates.copy_(torch.tensor([[0.5, -0.4], [0.1, 0.1], [-0.9, 0.2]]))
    return net.double()


@pytest.fixture
def counts():
    columns, values = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.tensor([[2.0, 1, 1], [1, 0, 0]])
    return DocumentBatch(columns, values.double(), torch.tensor([0.5, 1.0]).double())


def exact_terms(net, log_rates, counts, most=30):
    """log q, log p and log p(x | z) of every z up to a size, for each document."""
    z = torch.cartesian_prod(torch.arange(most), torch.arange(most)).double()
    log_q = torch.distributions.Poisson(log_rates.exp()[:, None]).log_prob(z).sum(-1)
    log_prior = torch.distributions.Poisson(net.prior_rate).log_prob(z).sum(-1)
    words = z @ net.topics().T + net.background
    dense = torch.zeros(len(log_rates), V).double()
    dense.scatter_add_(1, counts.columns, counts.values)
    x_rates = counts.exposure[:, None, None] * words
    return log_q, log_prior, torch.distributions.Poisson(x_rates).log_prob(dense[:, None]).sum(-1)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_gradient_is_unbiased(temperature, counts):
    net = network()
    log_q, log_prior, log_x = exact_terms(net, net.log_rates[:2], counts)
    objective = (log_q.exp() * (log_prior + log_x - temperature * log_q)).sum()
    exact = torch.autograd.grad(objective, [net.log_rates, net.weights])
    repeat = DocumentBatch(*(part.repeat_interleave(4000, dim=0) for part in counts))
    noise, estimates = Noise(2), []
    for _ in range(40):
        many = net.log_rates[:2].repeat_interleave(4000, dim=0)
        found = estimate(net, many, repeat, 4, noise, temperature=temperature)
        gradient = torch.autograd.grad(found[0].sum() / 4000, [net.log_rates, net.weights])
        estimates.append(torch.cat([part.flatten() for part in gradient]))
    found = torch.stack(estimates)
    error = found.std(dim=0) / len(found) ** 0.5
    wrong = (found.mean(dim=0) - torch.cat([part.flatten() for part in exact])).abs()
    assert float(error.max()) < 0.02  # the test can fail
    assert bool((wrong < 5 * error + 1e-7).all()), float((wrong / error).max())


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
        found = estimate(net, net.log_rates[:2], counts, 60_000, Noise(0))[1]
    np.testing.assert_allclose(found, exact, atol=0.03)
    assert bool((found < (log_prior + log_x).logsumexp(-1)).all())


@pytest.mark.parametrize("name", OF_UNITS)
def test_penalties_move_q_alone(name):
    penalty, net = ProximityPenalty(name, magnitude=2.0, gamma=1.0).plan(10), network()
    past = net.statistic(penalty.statistic, net.log_rates).detach()

    def cost():
        return penalty(net.statistic(penalty.statistic, net.log_rates), 1, 0.0, past)

    with torch.no_grad():
        net.log_rates += 0.3
    ((found, differences),) = each_gradient([net.log_rates], penalty, cost)
    np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-8)
    assert net.weights.grad is None and float(differences.abs().min()) > 1e-3


def spread(q, prior):
    """A function of the user's that is no statistic of a single unit."""
    return q.rate.amax(dim=-1, keepdim=True)


@pytest.mark.parametrize("average", ["parameters", "statistic"])
@pytest.mark.parametrize("statistic", [*OF_UNITS, spread])
def test_new_documents_are_held_back_each_alone(statistic, average):
    """The penalty of new documents, against the statistic of one document at a time."""
    fitted = tiny(max_iter=2).fit(planted(20, 0)[0])
    options = dict(magnitude=2.0, gamma=1.0, decay=0.6, average=average)
    together, net = ProximityPenalty(statistic, **options).plan(9), fitted.network_
    path = torch.randn(3, 5, 3, requires_grad=True)
    found = [fitted._distances_from_past(together, log_rates) for log_rates in path][-1]
    for d in range(5):
        alone, f = ProximityPenalty(statistic, **options).plan(9), together.statistic
        for log_rates in path[:, d]:
            value = net.statistic(f, log_rates[None])
            past = None
            if average == "parameters":
                past = net.statistic(f, alone.update_average(log_rates)[None])
            cost = alone(value, 0, 0.0, past)
        torch.testing.assert_close(2 * found[d], cost, rtol=1e-4, atol=1e-5)


def test_new_documents_are_fitted_by_the_method_of_the_fit():
    """As in section 4.3 of Altosaar et al. (2018): the penalty holds their rates back too."""
    X, options = planted(60, 0)[0], dict(max_iter=30, n_local_steps=30)
    found = {}
    for magnitude in (0.0, 1e4):
        penalty = ProximityPenalty("mean", magnitude=magnitude, gamma=1.0, average="parameters")
        held = tiny(proximity=penalty, **options)
        held.fit(X).network_.load_state_dict(tiny(**options).fit(X).network_.state_dict())
        found[magnitude] = np.abs(held.transform(X) - held.prior_rate).mean()
        assert np.isfinite(held.perplexity(X))
    assert found[1e4] < 0.5 * found[0.0]


def test_the_magnitude_of_new_documents():
    """By default it is each document's |ELBO|, and it falls with gamma."""
    X, found = planted(60, 0)[0], {}
    fitted = tiny(max_iter=30, n_local_steps=30).fit(X)
    for magnitude, gamma in ((0.0, 1.0), (None, 1.0), (None, 1e-30)):
        penalty = ProximityPenalty("mean", magnitude=magnitude, gamma=gamma)
        theta = fitted.set_params(proximity=penalty).transform(X)
        found[magnitude, gamma] = np.abs(theta - fitted.prior_rate).mean()
    assert found[None, 1.0] < 0.9 * found[None, 1e-30] < 0.9 * found[0.0, 1.0]
