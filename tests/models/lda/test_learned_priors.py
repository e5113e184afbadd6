"""Learned alpha and eta: the maxima of the objective's parts, and ascent towards them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, psi

from annealvi.model import UNTEMPERED, Batch, LocalStep, Tempering
from annealvi.models.lda.priors import (
    COLD,
    learned_alpha,
    learned_eta,
    learns_at,
    prior_sums,
    symmetric_from_mean,
    usual_prior,
)
from tests.marks import twenty_problems
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.problems import random_corpus

ESTIMATES = ("variational", "map")
FORMS = ("likelihood", "posterior")


BOTH = ("doc_topic_prior", "topic_word_prior")


def step(alpha, counts, rho=1.0, tempering=UNTEMPERED):
    """One step of alpha from documents with these counts of words a topic."""
    b = tempering.inverse if tempering.form == "posterior" else 1.0
    prior = b * alpha + (1 - b)
    sums = sum(prior_sums(prior + part, prior) for part in np.array_split(counts, 3))
    return learned_alpha(alpha, sums, rho, b)


def log_likelihood(alpha, counts):
    """Of Dirichlet-multinomial counts."""
    of_totals = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum(axis=1))
    return np.sum(of_totals + np.sum(gammaln(alpha + counts) - gammaln(alpha), axis=1))


def draw(rng, alpha, n_documents, length):
    shares = rng.dirichlet(alpha, n_documents)
    return np.array([rng.multinomial(length, share) for share in shares], dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_steps_of_alpha_lead_to_the_maximum_and_never_down(form):
    """Against a general optimiser in the same box, some of whose sides the maximum lies on."""
    rng = np.random.RandomState(0)
    b = 1 / COLD if form == "posterior" else 1.0
    tempering = Tempering(1 / COLD, form)
    counts = draw(rng, np.array([0.002, 0.05, 0.3, 1.0]), 100, 50)

    def objective(alpha):
        return log_likelihood(b * alpha + (1 - b), counts)

    centre = usual_prior(4)
    least, most = centre / 100, centre * 100
    bounds, options = np.log([(least, most)] * 4), dict(ftol=1e-15, gtol=1e-10, maxiter=1000)
    begin = np.log(np.full(4, centre))
    best = minimize(lambda x: -objective(np.exp(x)), begin, bounds=bounds, options=options)
    alpha = np.full(4, centre)
    heights = [objective(alpha)]
    for n in range(1000):
        alpha = step(alpha, counts, 0.3 if n < 10 else 1.0, tempering)
        heights.append(objective(alpha))
    assert np.all(np.diff(heights) >= -1e-9 * abs(heights[0]))
    assert heights[-1] == pytest.approx(-best.fun, rel=1e-9)
    assert_allclose(alpha, np.exp(best.x), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("spread", [0.3, 40.0])
def test_eta_is_the_maximum_of_the_topics_bound(estimate, form, spread):
    """A whole step; with peaked topics the maximum is at the lower limit under "map"."""
    rng = np.random.RandomState(0)
    tempering = Tempering(1 / COLD, form)
    model = LDA(5, 60, alpha=0.1, eta=0.1, estimate=estimate)
    model.assign(rng.gamma(spread, 1.0, (5, 60)) + 1e-3)
    model.learned = ("topic_word_prior",)
    model.engine.learn_priors(model, None, 1.0, tempering.of_priors)
    found = float(model.eta)

    def bound(log_eta):
        model.set_priors(0.1, np.exp(log_eta))
        return model.bound(tempering.of_priors)

    limits, options = np.log(usual_prior(5) * np.array([0.1, 10])), dict(xatol=1e-10)
    best = minimize_scalar(lambda x: -bound(x), bounds=limits, method="bounded", options=options)
    assert found == pytest.approx(np.exp(best.x), rel=1e-5)
    assert -best.fun <= bound(np.log(found)) + 1e-9 * abs(best.fun)
    if estimate == "map" and spread < 1:
        assert found == pytest.approx(usual_prior(5) / 10)


@pytest.mark.thinned
@twenty_problems
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("T", [1.0, COLD])
def test_the_objective_never_falls(T, form, estimate, seeds):
    """Random problems, gamma kept from step to step, both priors learned."""
    tempering = Tempering(1 / T, form)
    for seed in seeds:
        X, shape, rng = random_corpus(seed)
        alpha, eta = rng.choice([0.05, 0.3], 2)
        options = LocalOptions(warm=True, tolerance=1e-8, max_iter=300)
        model = LDA(*shape, alpha=alpha, eta=eta, options=options, estimate=estimate)
        model.initialize(rng)
        model.start_documents(30)
        model.learned = BOTH
        values = []
        for _ in range(15):
            local = model.local_step(Batch(X, slice(0, 30)), tempering)
            model.global_step(local.statistics, 1.0, 1.0, tempering)
            values.append(model.elbo(X, model.gamma, tempering))
        assert np.all(np.diff(values) >= -1e-8 * np.abs(values[:-1])), seed
        assert shape[0] == 1 or X.sum() == 0 or not np.any(np.isin(model.alpha, (0.05, 0.3)))


@pytest.mark.parametrize("inverse", [1 / (COLD + 1e-6), 0.5, np.array([1.0, 0.5, 1.0])])
def test_no_step_while_hot(inverse):
    assert not learns_at(Tempering(inverse))
    assert not learns_at(Tempering(1.0, rule=lambda *_: 1.0))
    assert learns_at(Tempering(1 / COLD))


def test_one_topic_and_one_word_say_nothing():
    model = LDA(1, 1, alpha=1.0, eta=0.5)
    model.assign(np.ones((1, 1)))
    model.learned = BOTH
    X = sparse.csr_matrix(np.full((5, 1), 6.0))
    local = model.local_step(Batch(X, slice(0, 5)), Tempering())
    model.global_step(local.statistics, 1.0, 1.0, Tempering())
    assert model.alpha == 1 and model.eta == 0.5


@pytest.mark.parametrize("prior", [np.finfo(float).tiny, 1e-6, 1e3, 1e300])
def test_a_prior_beyond_the_limits_comes_to_them(prior):
    centre, alpha = usual_prior(3), np.full(3, prior)
    sums = prior_sums(prior + np.eye(3) * 20, alpha)
    found = learned_alpha(alpha, sums, 0.5, 1.0)
    assert_array_equal(found, centre / 100 if prior < 1 else centre * 100)
    assert centre / 10 <= learned_eta(prior, -9.0, (3, 10), 0.5, 1.0, 1.0) <= centre * 10


@pytest.mark.parametrize("size", [2, 1000])
def test_symmetric_from_mean(size):
    for x in (1e-6, 0.1, 3.0, 1e4):
        mean = psi(x) - psi(size * x)
        assert symmetric_from_mean(mean, size, 1e-9, 1e9) == pytest.approx(x, rel=1e-6)
    assert symmetric_from_mean(-1e30, size, 0.5, 2.0) == 0.5
    assert symmetric_from_mean(0.0, size, 0.5, 2.0) == 2.0


def test_moments_and_log_c_are_of_the_step_that_was_made(counts):
    """What a learned temperature is told does not depend on whether alpha then moves."""
    found = []
    for learns in (False, True):
        model = LDA(4, 41, alpha=0.3, eta=0.1)
        model.initialize(np.random.RandomState(0))
        model.normalise_at(np.array([1.0, 0.5]))
        if learns:
            model.learned = BOTH
        local: LocalStep = model.local_step(Batch(counts, slice(0, 60)), Tempering(), True)
        model.global_step(local.statistics, 0.5, 1.0, Tempering())
        found.append((local.energy, *local.log_partition))
    assert_array_equal(*found)
