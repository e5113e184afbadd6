"""Steps of the factorial mixture: ascent, new data, threads, and what a step must be given."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp, softmax

from annealvi import TemperedFMM
from annealvi.datasets import make_shape_mixture
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.fmm import FMM
from annealvi.temperature import Variational
from tests.marks import twenty_problems
from tests.models.fmm_problems import (
    COVARIANCES,
    FORMS,
    bit_matrices,
    objective,
    step,
    tiny_problem,
    value,
)

# -------------------------------------------------------------------- ascent


def random_problem(seed, covariance, **options):
    """Data of a factorial mixture, and a model of other parameters at a random start."""
    rng = np.random.RandomState(seed)
    N, K, D = rng.randint(5, 60), rng.randint(1, 9), rng.randint(1, 12)
    Z = rng.random_sample((N, 4)) < 0.4
    X = Z @ rng.normal(0, 1, (4, D)) + rng.choice([0.1, 1.0]) * rng.standard_normal((N, D))
    model = FMM(
        K,
        D,
        prior_probability=rng.uniform(0.05, 0.95, K),
        noise_variance=rng.choice([0.05, 0.5, 5.0]),
        component_variance=rng.choice([0.1, 1.0, 10.0]),
        covariance=covariance,
        **options,
    )
    model.start(X, rng.normal(0, 1, (K, D)))
    return model, X


@twenty_problems
@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_the_objective_never_falls(covariance, form, learn, seeds):
    """Random problems: F(1/T) rises at every half step, from the first q(mu) on."""
    for seed, T in itertools.product(seeds, (1.0, 2.0, 5.0)):
        tempering = Tempering(1 / T, form)
        model, X = random_problem(
            seed,
            covariance,
            learn_probability=learn and seed % 3 != 0,
            learn_noise=learn and seed % 3 != 1,
        )
        step(model, X, tempering)
        bounds = [model.elbo(tempering)]
        for _ in range(25):
            local = model.local_step(Batch(X, slice(0, len(X))), tempering)
            bounds.append(model.elbo(tempering))
            model.global_step(local.statistics, 1.0, 1.0, tempering)
            bounds.append(model.elbo(tempering))
        bounds = np.array(bounds)
        assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9, (seed, T)
        assert bounds[-1] > bounds[0]
        assert bounds[-1] == pytest.approx(value(model, X, tempering), rel=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_the_posterior_form_is_a_wider_prior(covariance):
    wide, X = random_problem(1, covariance)
    posterior, _ = random_problem(1, covariance)
    wide.component_variance *= 4
    for _ in range(5):
        step(wide, X, Tempering(0.25))
        step(posterior, X, Tempering(0.25, "posterior"))
    assert_allclose(posterior.means, wide.means, rtol=1e-12)
    assert_allclose(posterior.covariance_matrix, wide.covariance_matrix, rtol=1e-12)
    bound = posterior.elbo(Tempering(0.25, "posterior"))
    assert bound == pytest.approx(wide.elbo(Tempering(0.25)), rel=1e-12)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("weights", [None, np.geomspace(1, 1e-9, 100)])
def test_an_undamped_variational_temperature_ascends_its_objective(weights, covariance):
    """Eq. 5 of Mandt et al., the temperature's own step included."""
    mean_b = np.average(np.geomspace(1, 0.01, 100), weights=weights)
    temperature = Variational(
        t_max=100.0,
        prior=weights,
        damping=1.0,
        start=1 / mean_b,
        monotone=False,
        final_fraction=0.0,
    )
    X = make_shape_mixture(200, random_state=0).data
    for seed in range(3):
        fmm = TemperedFMM(
            8,
            noise_variance=0.1,
            temperature=temperature,
            max_iter=50,
            tol=0,
            covariance=covariance,
            random_state=seed,
        ).fit(X)
        bounds = fmm.history_["tempered_elbo"]
        assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9
        assert bounds[-1] > bounds[0]
        assert len(np.unique(fmm.temperature_path_)) > 10  # it did move

        model, b = fmm._state.model, np.geomspace(1, 0.01, 100)
        energy = 2 * (model.elbo() - model.elbo(Tempering(0.5)))  # F(b) is linear in b
        energy += 0.5 * X.size * np.log(2 * np.pi * 0.1)  # h is not tempered
        log_partition = -0.5 * X.size * np.log(b) + 200 * 8 * np.log(0.3**b + 0.7**b)
        prior = np.ones(100) if weights is None else weights
        scores = np.log(prior / prior.sum()) + b * energy - log_partition
        assert_allclose(fmm.temperature_posterior_, softmax(scores), rtol=1e-6, atol=1e-9)
        expected = model.elbo() - energy + logsumexp(scores)
        assert bounds[-1] == pytest.approx(expected, rel=1e-10)


# -------------------------------------------------------------------- new data


def naive_factors(X, model, columns):
    """nu of data from some dimensions at T = 1, by coordinate ascent from pi."""
    M, Q = model.means[:, columns], model.covariance_matrix
    pi, noise = model.prior_probability, model.noise_variance
    G = M @ M.T + M.shape[1] * Q
    nu = np.tile(pi, (len(X), 1))
    for _ in range(1000):
        for k in range(len(M)):
            others = np.arange(len(M)) != k
            drive = X[:, columns] @ M[k] - nu[:, others] @ G[others, k] - G[k, k] / 2
            nu[:, k] = expit(np.log(pi[k] / (1 - pi[k])) + drive / noise)
    return nu


def fitted(covariance, seed=0, K=3):
    """A model after a few iterations at T = 1, and other data of the same kind."""
    rng = np.random.RandomState(seed)
    truth = rng.normal(0, 1, (K, 7))
    X = (rng.random_sample((60, K)) < 0.4) @ truth + 0.7 * rng.standard_normal((60, 7))
    model = FMM(K, 7, prior_probability=0.4, noise_variance=0.5, covariance=covariance)
    train, test = np.ascontiguousarray(X[:30]), np.ascontiguousarray(X[30:])
    model.start(train, truth + 0.3 * rng.standard_normal(truth.shape))
    for _ in range(5):
        step(model, train)
    return model, test


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_new_data(covariance):
    model, X = fitted(covariance)
    nu = model.infer(X)
    assert_allclose(nu, naive_factors(X, model, slice(None)), rtol=1e-7, atol=1e-9)
    for x, p, bound in zip(X, nu, model.sample_bound(X), strict=True):
        expected = objective(
            x[None],
            p[None],
            model.means,
            model.covariance_matrix,
            model.prior_probability,
            model.noise_variance,
            model.component_variance,
        )
        assert bound == pytest.approx(expected - model.global_bound(), rel=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_predictive(covariance):
    """Against all z weighed by q(z | observed): apart by a few standard errors at most."""
    model, X = fitted(covariance)
    observed = np.array([True, False, True, True, False, True, False])
    nu = naive_factors(X, model, observed)
    n_draws, n_hidden = 4000, 3
    log_q, log_p = [], []
    for (z,) in bit_matrices(1, 3):
        variance = model.noise_variance + z @ model.covariance_matrix @ z
        distance = np.sum((X[:, ~observed] - z @ model.means[:, ~observed]) ** 2, axis=1)
        log_p.append(-0.5 * (n_hidden * np.log(2 * np.pi * variance) + distance / variance))
        log_q.append(np.sum(np.log(np.where(z == 1, nu, 1 - nu)), axis=1))
    log_q, log_p = np.array(log_q), np.array(log_p)
    exact = logsumexp(log_q + log_p, axis=0)
    relative_variance = np.exp(logsumexp(log_q + 2 * log_p, axis=0) - 2 * exact) - 1
    found = model.predictive(X, observed, n_draws, np.random.RandomState(0))
    error = (found - exact) / np.sqrt(relative_variance / n_draws)
    assert np.all(np.abs(error) < 4)
    assert 0.5 < np.std(error) < 2  # neither too far off nor suspiciously close
    assert np.median(np.abs(found - exact)) < 0.02


# -------------------------------------------------------------------- the protocol


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bits(dtype, covariance):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((2500, 30)).astype(dtype)
    start = rng.standard_normal((7, 30))
    results = []
    for n_threads in (1, 2, 3):
        model = FMM(
            7,
            30,
            covariance=covariance,
            learn_probability=True,
            learn_noise=True,
            dtype=dtype,
            n_threads=n_threads,
        )
        model.start(X, start)
        for _ in range(5):
            step(model, X, Tempering(0.5))
        assert model.nu.dtype == dtype
        results.append(
            (
                model.nu[:, :2500],
                model.means,
                model.covariance_matrix,
                model.noise_variance,
                model.elbo(),
            )
        )
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            assert_array_equal(ours, theirs)


def test_float32_is_close_to_float64():
    fits = {}
    for dtype in (np.float32, np.float64):
        X = make_shape_mixture(300, random_state=0).data.astype(dtype)
        model = FMM(8, 16, prior_probability=0.3, noise_variance=0.5, dtype=dtype)
        model.start(X, np.random.RandomState(0).normal(0, 0.5, (8, 16)))
        for _ in range(5):
            step(model, X)
        fits[dtype] = model
    assert_allclose(fits[np.float32].means, fits[np.float64].means, atol=1e-4)
    assert fits[np.float32].elbo() == pytest.approx(fits[np.float64].elbo(), rel=1e-5)


@pytest.mark.parametrize(("rho", "scale"), [(0.5, 1.0), (1.0, 2.0)])
def test_a_step_goes_all_the_way(rho, scale):
    model, X = tiny_problem("diag")
    local = model.local_step(Batch(X, slice(0, 4)), UNTEMPERED)
    before = model.means.copy()
    with pytest.raises(ValueError, match=f"must be 1. Got rho={rho} and scale={scale}"):
        model.global_step(local.statistics, rho, scale, UNTEMPERED)
    assert_array_equal(model.means, before)
