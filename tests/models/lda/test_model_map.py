"""Topics as a point, estimate="map": the objective, written out, and what ascends it."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi
from scipy.stats import dirichlet

from annealvi.model import Batch, Tempering
from annealvi.models.lda.cpu import Statistics
from tests.models.lda.naive import fits, lengths, log_c_of, naive_log_c
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.problems import bounds_of_steps
from tests.models.lda.streams import dense, put

FORMS = ("likelihood", "posterior")
ETA = {
    "number": lambda rng, shape: 0.07,
    "words": lambda rng, shape: rng.uniform(0.01, 1, shape[1]),
    "topics": lambda rng, shape: rng.uniform(0.01, 1, shape),
}


def make(shape, *, seed=0, eta=0.07, alpha=0.2, dtype=np.float64, **options):
    """A model of the mean of topics, started at random."""
    options = dict(max_iter=500, tolerance=1e-12, warm=True) | options
    given = dict(alpha=alpha, eta=eta, dtype=dtype, estimate="map")
    model = LDA(*shape, options=LocalOptions(**options), **given)
    model.initialize(np.random.RandomState(seed))
    return model


def documents(n_samples, n_features, seed=0, rate=0.5):
    X = np.random.RandomState(seed).poisson(rate, (n_samples, n_features)).astype(float)
    X[2] = 0
    return sparse.csr_matrix(X)


def point_objective(X, beta, gamma, alpha, eta, b):
    """F(b) of topics that are a point, by loops; alpha and eta as the form makes them."""
    total = 0.0
    for row, prior in zip(beta, np.broadcast_to(eta, beta.shape), strict=True):
        total += dirichlet.logpdf(row, prior + 1) - dirichlet.logpdf(row, np.ones(len(row)))
    for counts, row in zip(X.toarray(), gamma, strict=True):
        e_log_theta = psi(row) - psi(row.sum())
        total += np.sum(counts * logsumexp(b * (e_log_theta[:, None] + np.log(beta)), axis=0))
        total -= gammaln(row.sum()) - gammaln(row).sum() - gammaln(alpha.sum())
        total -= gammaln(alpha).sum() + np.sum((row - alpha) * e_log_theta)
    return total


def mean(lam):
    return lam / lam.sum(axis=1, keepdims=True)


def priors(alpha, eta, T, form):
    """What tempering the posterior makes of the priors."""
    return ((alpha + T - 1) / T, eta / T) if form == "posterior" else (alpha, eta)


@pytest.mark.parametrize("eta", ETA)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("T", [1.0, 2.0, 5.0])
def test_the_objective_is_the_one_written_out(T, form, eta):
    rng = np.random.RandomState(0)
    eta, alpha, X = ETA[eta](rng, (4, 23)), rng.rand(4) + 0.1, documents(9, 23)
    model = make((4, 23), eta=eta, alpha=alpha)
    model.assign(rng.gamma(0.5, 2.0, (4, 23)) + 0.01)
    gamma = rng.gamma(2.0, 1.0, (9, 4))
    beta, given = mean(model.components), priors(alpha, eta, T, form)
    expected = point_objective(X, beta, gamma, *given, 1 / T)
    assert model.elbo(X, gamma, Tempering(1 / T, form)) == pytest.approx(expected, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("eta", ETA)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("T", [1.0, 2.0, 5.0])
def test_the_objective_never_falls(T, form, eta):
    """gamma kept from step to step, in batch: after the local step, and after the global one."""
    tempering = Tempering(1 / T, form)
    for seed in range(4):
        rng = np.random.RandomState(seed)
        shape = (rng.randint(1, 9), rng.randint(2, 50))
        X = documents(30, shape[1], seed, rng.choice([0.1, 0.5, 3.0]))
        model = make(shape, seed=seed, eta=ETA[eta](rng, shape), max_iter=rng.choice([1, 3, 200]))
        model.start_documents(30)
        bounds = bounds_of_steps(model, X, tempering, 20)
        assert np.min(np.diff(bounds) / np.maximum(1, np.abs(bounds[1:]))) >= -1e-10, seed
        assert bounds[-1] >= bounds[0]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("b", [1.0, 0.4])
@pytest.mark.parametrize("n_topics", [1, 5, 16, 33])
def test_the_local_step_word_by_word(counts, n_topics, b, dtype):
    """gamma, statistics, energies and bounds against loops that have log E beta."""
    rng = np.random.RandomState(1)
    X, alpha = counts.astype(dtype), np.linspace(0.05, 0.4, n_topics)
    options = dict(warm=False, max_iter=7, tolerance=0)
    model = make((n_topics, 41), alpha=alpha, dtype=dtype, **options)
    model.options = LocalOptions(7, 0.0, prune=False)
    model.assign(rng.gamma(0.3, 1.0, (n_topics, 41)) + 0.02)
    local = model.local_step(Batch(X, slice(0, 60)), Tempering(b), moments=True)
    log_beta = np.log(mean(model.components.astype(np.float64)))
    found = fits(counts.toarray(), 1.0, b, log_beta, alpha, 7, log_of=np.asarray)
    gammas, statistics, energies, _ = found
    rtol = 1e-9 if dtype is np.float64 else 1e-3
    assert_allclose(model.infer(X, Tempering(b)), gammas, rtol=rtol)
    assert_allclose(dense(local.statistics, n_topics).T, statistics, rtol=rtol, atol=rtol / 100)
    assert_allclose(local.energy, energies, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("eta", [1e-30, 1e-16, 1e-6])
def test_single_precision_follows_double_however_small_the_prior(eta):
    """PLSA, nearly: topics without any words are far smaller than the others."""
    X = documents(20, 30, rate=1.0)
    X = sparse.csr_matrix(np.hstack([X.toarray(), np.zeros((20, 1))]))  # a word of no document
    topics = np.full((4, 31), eta)
    topics[:3, :30] += 1e6 * np.random.RandomState(0).gamma(0.5, 1.0, (3, 30)) * [[1], [10], [100]]
    unseen = sparse.csr_matrix(np.eye(1, 31, 30))
    gammas, unseen_gammas = [], []
    for dtype in (np.float32, np.float64):
        model = make((4, 31), eta=eta, dtype=dtype, warm=False, max_iter=50, tolerance=0)
        model.assign(topics)
        gammas.append(model.infer(X.astype(dtype)))
        unseen_gammas.append(model.infer(unseen.astype(dtype)))
    assert_allclose(*gammas, rtol=2e-3, atol=1e-4)
    assert np.all(np.isfinite(unseen_gammas))


def test_changing_the_estimate_of_a_model():
    """What was worked out under the other is not used any more."""
    X, rng = documents(20, 30), np.random.RandomState(0)
    model = make((4, 30), warm=False)
    model.assign(rng.gamma(0.5, 1.0, (4, 30)) + 0.02)
    batch = Batch(X, slice(0, 20))

    def everything():
        local = model.local_step(batch, Tempering(0.5), moments=True)
        statistics = dense(local.statistics, 4).T
        log_c = model.engine.posterior_log_partition(model, np.array([0.5]), X)
        return [statistics, local.energy, model.infer(X), model.elbo(X), log_c]

    of_mean = everything()
    model.estimate = "variational"
    model.replaced()
    of_distribution = everything()
    model.estimate = "map"
    model.replaced()
    for one, other, again in zip(of_mean, of_distribution, everything(), strict=True):
        assert not np.allclose(one, other, rtol=1e-3)
        assert_array_equal(one, again)
    copied = copy.deepcopy(model)
    assert copied.estimate == "map"
    assert_array_equal(copied.infer(X), model.infer(X))


def test_rows_that_make_up_for_steps_and_rows_that_moved_are_one():
    """A stream of minibatches with few of the words: the bound looks at all of them."""
    rng, V = np.random.RandomState(0), 150
    lazy, eager = (make((5, V), eta=0.3) for _ in range(2))
    for _ in range(30):
        words = np.sort(rng.choice(V, 5, replace=False))
        for model in (lazy, eager):
            statistics = Statistics(V, model.width, model.dtype)
            put(statistics, words, words[:, None] + np.arange(5.0))
            model.global_step(statistics, 0.2, 3.0, Tempering())
        eager.catch_up()
    X = documents(8, V)
    assert lazy.now != 1
    assert_allclose(lazy.infer(X), eager.infer(X), rtol=1e-9)
    assert lazy.elbo(X) == pytest.approx(eager.elbo(X), rel=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_c_has_the_logarithm_of_the_mean(dtype):
    X = documents(11, 25).astype(dtype)
    model = make((6, 25), dtype=dtype)
    model.assign(np.random.RandomState(0).gamma(0.5, 1.0, (6, 25)) + 0.02)
    gamma, inverses = model.infer(X), np.array([1.0, 0.6, 0.1])
    log_beta = np.log(mean(model.components.astype(np.float64)))
    expected = naive_log_c(gamma, log_beta, lengths(X), inverses, log_of=np.asarray)
    rtol = 1e-11 if dtype is np.float64 else 1e-4
    assert_allclose(log_c_of(model, X, gamma, inverses), expected, rtol=rtol)
    total = model.engine.posterior_log_partition(model, inverses, X, gamma)
    assert_allclose(total, expected.sum(axis=0), rtol=rtol)
