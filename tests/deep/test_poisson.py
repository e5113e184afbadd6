"""PoissonDEF: what it finds, how it goes on, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.utils.estimator_checks import parametrize_with_checks

from annealvi.deep import PoissonDEF, ProximityPenalty
from annealvi.deep.noise import Noise
from annealvi.exceptions import DivergenceError
from annealvi.metrics.held_out import split_tokens
from tests.deep.fits import assert_refuses, order_matters, stop_at, undocumented

TOPICS = np.kron(np.eye(3), np.full(6, 2.0))  # three topics of six words each


def planted(n_samples, seed):
    rng = np.random.RandomState(seed)
    z = rng.poisson(0.8, (n_samples, 3))
    return rng.poisson(0.05 + z @ TOPICS).astype(float), z


def tiny(**options):
    options = dict(n_components=3, prior_rate=1.0, max_iter=20, n_draws=8) | options
    return PoissonDEF(**(dict(n_local_steps=20, batch_size=32, random_state=0) | options))


def same_weights(one, other):
    return np.array_equal(one.components_, other.components_) and np.array_equal(
        one.document_rates_, other.document_rates_
    )


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


def test_the_same_seed_gives_the_same_fit():
    X, _ = planted(50, 0)
    for options in ({}, {"proximity": "entropy", "temperature": "annealed"}):
        one, two, other = (tiny(**options, random_state=s).fit(X) for s in (0, 0, 1))
        assert same_weights(one, two) and not same_weights(one, other)
        np.testing.assert_array_equal(one.transform(X), two.transform(X))
        assert one.score(X) == two.score(X) and one.perplexity(X) == two.perplexity(X)


def test_sparse_is_dense():
    X, _ = planted(50, 0)
    dense = tiny().fit(X)
    for data in (sparse.csr_matrix(X), sparse.csr_array(X.astype(np.int64)), X.astype(np.int32)):
        other = tiny().fit(data)
        assert same_weights(dense, other)
        np.testing.assert_array_equal(dense.transform(X), other.transform(data))
        assert dense.perplexity(X) == other.perplexity(data)


def test_a_fit_that_is_resumed_is_the_same(tmp_path):
    X, _ = planted(70, 0)
    path = tmp_path / "state.pt"
    options = {"proximity": "mean_variance", "temperature": "annealed"}

    whole = tiny(**options).fit(X)
    part = tiny(**options, callback=stop_at(7, path)).fit(X)
    assert part.n_iter_ == 7 and not same_weights(part, whole)
    resumed = tiny(**options).fit(X, resume=path)
    assert same_weights(resumed, whole)
    np.testing.assert_array_equal(resumed.history_["elbo"], whole.history_["elbo"])
    with pytest.raises(ValueError, match=r"it has n_components=3, this PoissonDEF has n_comp.*=4"):
        tiny(**options, n_components=4).fit(X, resume=path)
    with pytest.raises(ValueError, match=r"it has n_samples=70, .* n_samples=60"):
        tiny(**options).fit(X[:60], resume=path)
    with pytest.raises(ValueError, match=r"it has background=0.01, .* background=0.02"):
        tiny(**options, background=0.02).fit(X, resume=path)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((4, 3), 0.5), r"needs counts: X must hold non-negative integers. Got 0.5"),
        (np.full((4, 3), -1), r"Negative values in data passed to PoissonDEF.fit"),
        (sparse.csr_matrix(np.full((4, 3), 1.25)), r"non-negative integers. Got 1.25"),
        (np.array([[0.0, np.inf]]), "infinity"),
        (np.zeros((0, 3)), "0 sample"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        tiny().fit(X)
    good, _ = planted(30, 0)
    fitted = tiny(max_iter=1).fit(good[:, :3])
    if X.shape == (4, 3):
        with pytest.raises(ValueError, match=message.replace(".fit", ".transform")):
            fitted.transform(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, r"'n_components' parameter .* Got 0"),
        ({"prior_rate": 0.0}, r"'prior_rate' parameter .* Got 0.0"),
        ({"background": 1.0}, r"'background' parameter .* range \(0.0, 1.0\)"),
        ({"n_draws": 1}, r"'n_draws' parameter .* Got 1"),
        ({"n_local_steps": 0}, r"'n_local_steps' parameter .* Got 0"),
        ({"proximity": "orthogonal"}, r"'proximity' parameter .* Got 'orthogonal'"),
        (
            {"proximity": ProximityPenalty("orthogonal")},
            r"one of the statistics \['entropy', 'kl', .*\]. Got 'orthogonal'",
        ),
        ({"proximity": ProximityPenalty(gamma=2.0)}, r"'gamma' parameter .* \(0.0, 1.0\]"),
        ({"temperature": "local"}, r"'temperature' parameter .* Got 'local'"),
        ({"device": "cuda:99"}, r"'device' parameter .* PyTorch sees .* Got 'cuda:99'"),
    ],
)
def test_bad_parameters_leave_the_estimator_as_it_was(options, message):
    X, _ = planted(30, 0)
    fitted = tiny(max_iter=2).fit(X)
    assert_refuses(fitted, options, X, message, lambda fitted: fitted.components_)


def test_a_fit_that_diverges_keeps_what_was_finite():
    X, _ = planted(60, 0)
    fitted = tiny(learning_rate=1e5)
    with pytest.raises(DivergenceError, match=r"diverged at step \d+ of 20: the loss is"):
        fitted.fit(X)
    assert np.all(np.isfinite(fitted.components_)) and fitted.n_iter_ >= 1
    assert np.all(np.isfinite(fitted.document_rates_))


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
    with pytest.raises(ValueError, match=r"'n_samples' parameter .*must be an int"):
        fitted.sample(0)


def test_every_fitted_attribute_is_documented():
    X, _ = planted(40, 0)
    fitted = tiny(max_iter=2).fit(X)
    assert undocumented(fitted) <= {"feature_names_in_"}


@parametrize_with_checks(
    [PoissonDEF(2, max_iter=3, n_local_steps=3, n_draws=4, random_state=0)],
    expected_failed_checks=order_matters(
        "the draws of a document depend on how many there are before it"
    ),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_cuda_agrees_with_cpu(cuda):
    X, _ = planted(100, 0)
    options = dict(max_iter=100, proximity="entropy", learning_rate=1e-3)
    cpu, gpu = tiny(**options).fit(X), tiny(**options, device="cuda").fit(X)
    np.testing.assert_allclose(gpu.history_["elbo"], cpu.history_["elbo"], rtol=1e-3)
