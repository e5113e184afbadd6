"""SigmoidBeliefNetwork: what it finds, how it goes on, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annealvi import Annealed
from annealvi.deep import ProximityPenalty, SigmoidBeliefNetwork

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


def test_no_magnitude_is_no_penalty():
    X, _ = planted(60, 0)
    plain = tiny().fit(X)
    free = tiny(proximity=ProximityPenalty("entropy", magnitude=0.0)).fit(X)
    held = tiny(proximity=ProximityPenalty("entropy", magnitude=100.0)).fit(X)
    np.testing.assert_array_equal(free.components_, plain.components_)
    assert not np.array_equal(held.components_, plain.components_)


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
