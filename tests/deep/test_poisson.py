"""PoissonDEF: what it finds, how it goes on, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from annealvi.deep import PoissonDEF
from annealvi.deep.noise import Noise
from annealvi.metrics.held_out import split_tokens

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
        assert (
            np.corrcoef(theta[:, k], z[:, block])[0, 1] > 0.85
        )  # q is Poisson: its mean is not sharp
    history = found.history_["elbo"]
    assert history[-50:].mean() > history[:50].mean() + 5
    unigram = X.sum(axis=0) / X.sum()
    plain = np.exp(-np.sum(new * np.log(unigram)) / new.sum())
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
    split = np.random.RandomState(int(noise.integers(2**31 - 1, 1)))
    seen, hidden = split_tokens(new, observed=0.1, random_state=split)
    length = np.maximum(new.sum(axis=1), 1)
    share = np.where(new.sum(axis=1) > 0, seen.toarray().sum(axis=1) / length, 1.0)
    rates = fitted._local_rates(seen.astype(np.float32), noise, share)[0]
    r = fitted.background_ + rates @ fitted.components_
    log_p = np.log(r / r.sum(axis=1, keepdims=True))
    expected = np.exp(-np.sum(hidden.toarray() * log_p) / hidden.sum())
    assert fitted.perplexity(new) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match=r"words that are not observed.*at most 1 words"):
        fitted.perplexity(np.eye(18))
    with pytest.raises(ValueError, match="'observed' parameter"):
        fitted.perplexity(new, observed=1.0)


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
    assert fitted.top_words(3, names) == [
        [f"word{i}" for i in words] for words in fitted.top_words(3)
    ]
    best = np.argmax(fitted.components_, axis=1)
    assert [words[0] for words in fitted.top_words(1)] == best.tolist()
    with pytest.raises(ValueError, match=r"'n' .*must be an int"):
        fitted.top_words(0)
    with pytest.raises(ValueError, match=r"one name for each of the 18 features"):
        fitted.top_words(2, names[:4])
