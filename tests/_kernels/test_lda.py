"""The LDA kernels against a few lines of NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import gammaln

from annealvi.model import Batch, Tempering
from tests.marks import slow_values
from tests.models.lda.naive import DTYPES, e_log, fits
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.streams import dense


def log_beta(parameters):
    return gammaln(parameters).sum(axis=-1) - gammaln(parameters.sum(axis=-1))


def make(n_topics, n_features, dtype, *, alpha=0.1, n_iterations=7, n_threads=1, **options):
    options = LocalOptions(n_iterations, 0.0, **{"prune": False} | options)
    given = dict(alpha=alpha, eta=0.05, dtype=dtype, options=options, n_threads=n_threads)
    model = LDA(n_topics, n_features, **given)
    model.rng = rng = np.random.RandomState(1)
    model.assign(rng.gamma(0.3, 1.0, (n_topics, n_features)) + 0.02)
    return model


@pytest.mark.thinned
@pytest.mark.parametrize("n_topics", [1, 2, 5, 8, 16, 17, 33])
@pytest.mark.parametrize("dtype", DTYPES)
def test_local_step(counts, dtype, n_topics):
    """At a temperature, at one for each document, and from scikit-learn's random start."""
    alpha = np.linspace(0.05, 0.4, n_topics)
    each = np.random.RandomState(2).uniform(0.1, 1, 60).astype(dtype)
    each[[4, 9]] = each.min()
    X, rows = counts.astype(dtype), slice(0, 60)
    rtol = 1e-9 if dtype is np.float64 else 1e-3
    for b, exact in ((1.0, False), (0.4, False), (each, False), (1.0, True)):
        model = make(n_topics, 41, dtype, alpha=alpha, exact=exact)
        begin, eps = 1.0, 0.0
        if exact:  # which adds eps, as scikit-learn does
            begin = np.random.RandomState(5).gamma(100.0, 0.01, (60, n_topics)).astype(dtype)
            model.rng, eps = np.random.RandomState(5), np.finfo(dtype).eps
        local = model.local_step(Batch(X, rows), Tempering(b), moments=not exact)
        lam, begin, at = (np.asarray(x, float) for x in (model.components, begin, b))
        expected = fits(counts.toarray(), begin, at, lam, alpha, 7, eps=eps)
        statistics = dense(local.statistics, n_topics)
        assert_allclose(statistics.T, expected[1], rtol=rtol, atol=1e-30 + rtol / 100)
        if exact:
            continue
        assert_allclose(local.energy, expected[2], rtol=rtol, atol=rtol)
        if np.ndim(b) == 0:
            gamma = model.infer(X, Tempering(b))
            assert_allclose(gamma, expected[0], rtol=rtol)
            bound = model.bounds(X, gamma, Tempering(b))
            kl = np.sum((alpha - expected[0]) * e_log(expected[0]), axis=1)
            kl += log_beta(expected[0]) - log_beta(alpha)
            assert_allclose(bound, expected[3] + kl, rtol=rtol, atol=10 * rtol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eta", [0.05, "words", "topics"])
def test_global_step(counts, dtype, eta):
    rng = np.random.RandomState(0)
    eta = {"words": rng.rand(41) + 0.1, "topics": rng.rand(6, 41) + 0.1}.get(eta, eta)
    for form in ("likelihood", "posterior"):
        model = make(6, 41, dtype)
        model.set_eta(np.asarray(eta, dtype=np.float64))
        before = model.components.astype(np.float64).copy()
        tempering = Tempering(0.5, form)
        local = model.local_step(Batch(counts.astype(dtype), slice(10, 40)), tempering)
        values = dense(local.statistics, 6)
        model.global_step(local.statistics, 0.3, 2.5, tempering)
        if form == "likelihood":
            expected = 0.7 * before + 0.3 * (eta + 2.5 * values.T)
        else:  # lambda <- (1 - rho T) lambda + rho (eta + scale * sum n phi)
            expected = 0.4 * before + 0.3 * (eta + 2.5 * values.T / 0.5)
        rtol = 1e-12 if dtype is np.float64 else 1e-5
        assert_allclose(model.components, expected, rtol=rtol)
        sums = model.components.sum(axis=1, dtype=np.float64)
        assert_allclose(model.sums, sums, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eta", [1e20, 1e-3])
def test_a_step_too_small_for_the_dtype_keeps_the_topics(counts, dtype, eta):
    """eta + (lambda - eta) would be 0 where eta is so large that lambda - eta is -eta."""
    model = make(6, 41, dtype)
    model.set_eta(np.asarray(eta))
    before = model.components.copy()
    for rows in (slice(10, 40), slice(0, 3)):  # all rows at once, and those of some words
        local = model.local_step(Batch(counts.astype(dtype), rows), Tempering())
        model.global_step(local.statistics, 1e-90, 2.5, Tempering())
        assert_array_equal(model.components, before)


@pytest.mark.parametrize("n_topics", [2, 500])
def test_float32_does_not_underflow(n_topics):
    """At alpha = eta = 1/500 psi(alpha) is -500; no word may lose its mass."""
    rng = np.random.RandomState(0)
    X = sparse.random(50, 300, 0.05, "csr", random_state=0, dtype=np.float32)
    X.data = np.ceil(X.data * 3).astype(np.float32)
    model = LDA(n_topics, 300, alpha=1 / 500, eta=1 / 500, dtype=np.float32)
    topics = np.full((n_topics, 300), 1 / 500)
    topics[rng.randint(n_topics, size=300), np.arange(300)] = 5e4
    model.assign(topics)
    for b in (1.0, 0.25):
        model.rng = rng
        local = model.local_step(Batch(X, slice(0, 50)), Tempering(b))
        total = dense(local.statistics, n_topics).sum(dtype=np.float64)
        assert_allclose(total, b * X.sum(), rtol=1e-5)
        assert np.isfinite(model.elbo(X, None, Tempering(b)))


def test_long_documents_in_float32():
    """Sums over very many words are kept in double."""
    n_features = 60_001
    X = sparse.csr_matrix(np.random.RandomState(0).poisson(1.0, (2, n_features)) + 1.0)
    gammas = {}
    for dtype in DTYPES:
        model = LDA(3, n_features, alpha=0.1, eta=0.1, dtype=dtype)
        model.assign(np.random.RandomState(1).gamma(1.0, 1.0, (3, n_features)) + 0.01)
        gammas[dtype] = model.infer(X.astype(dtype))
    total = np.ravel(X.sum(axis=1)) + 0.3
    assert_allclose(gammas[np.float32].sum(axis=1), total, rtol=3e-6)
    assert_allclose(gammas[np.float32], gammas[np.float64], rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiny_counts_and_priors(dtype):
    """Where psi falls steeply the reference must follow gamma closely."""
    X = sparse.csr_matrix(np.array([[5e-4, 0.0]]))
    model = LDA(2, 2, alpha=1e-3, eta=0.1, dtype=dtype, options=LocalOptions(5, 0.0))
    model.assign(np.array([[5.0, 1.0], [1.0, 5.0]]))
    gamma = model.infer(X.astype(dtype))
    expected = fits(X.toarray(), 1.0, 1.0, model.components.astype(float), 1e-3, 5)[0]
    assert_allclose(gamma, expected, rtol=1e-6 if dtype is np.float64 else 2e-2)


LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 511, 512, 513, 527, 1030)


@pytest.mark.thinned
@pytest.mark.parametrize("n_topics", [1, 5, 16, 25, *slow_values(3, 4, 8, 12, 13, 20, 23, 24)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_few_topics_and_any_number_of_words(dtype, n_topics):
    """Lanes are words there: document i has LENGTHS[i] of them, counts that are not whole."""
    rng = np.random.RandomState(n_topics)
    X = np.zeros((len(LENGTHS), 1030))
    for row, n_words in zip(X, LENGTHS, strict=True):
        row[rng.choice(1030, n_words, replace=False)] = rng.gamma(1.0, 2.0, n_words) + 0.1
    X = sparse.csr_matrix(X.astype(dtype))
    alpha = np.linspace(0.3, 0.8, n_topics)
    topics = rng.gamma(0.5, 1.0, (n_topics, 1030)) + 0.2
    runs = [(n, b, False) for n, b in ((0, 1.0), (1, 1.0), (2, 0.5), (3, 1.0), (6, 0.5))]
    for n_iterations, b, exact in [*runs, *((n, b, True) for n, b, _ in runs[2:])]:
        model = make(n_topics, 1030, dtype, alpha=alpha, exact=exact, n_iterations=n_iterations)
        model.assign(topics)
        lam = model.components.astype(np.float64)
        eps = np.finfo(dtype).eps if exact else 0.0
        expected = fits(X.toarray(), 1.0, b, lam, alpha, n_iterations, eps=eps)
        rtol = 1e-9 if dtype is np.float64 else 2e-3
        assert_allclose(model.infer(X, Tempering(b)), expected[0], rtol=rtol)
        if exact:
            continue
        local = model.local_step(Batch(X, slice(0, len(LENGTHS))), Tempering(b), moments=True)
        statistics = dense(local.statistics, n_topics)
        assert_allclose(statistics.T, expected[1], rtol=rtol, atol=rtol / 100)
        assert_allclose(local.energy, expected[2], rtol=rtol)
        normalizer = np.zeros(len(LENGTHS))
        again = np.ones_like(expected[0], dtype=dtype)
        model.fit(X, again, Tempering(b), log_normalizer=normalizer)
        assert_allclose(normalizer, expected[3], rtol=rtol, atol=rtol)
