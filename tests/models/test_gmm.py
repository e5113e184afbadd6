"""The annealed objective of the Gaussian mixture: written out, enumerated, and ascended."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import minimize
from scipy.special import entr, gammaln, logsumexp, psi, softmax

from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.gmm import Natural
from tests.models.gmm_problems import (
    KINDS,
    LOG_2PI,
    TYPES,
    assert_same,
    everything,
    in_some_state,
    log_dirichlet,
    make_model,
    make_problem,
    step,
    weight_nodes,
)

TEMPERINGS = [UNTEMPERED, Tempering(0.4), Tempering(0.4, "posterior")]


class Factors(NamedTuple):
    """q(w) = Dir(alpha), q(lambda) = Gamma(a, r), q(mu | lambda) = N(m, 1 / (kappa lambda)).

    Wider than the model's: kappa and a may differ between dimensions.
    """

    alpha: np.ndarray
    m: np.ndarray
    kappa: np.ndarray
    a: np.ndarray
    r: np.ndarray


def objective(problem, phi, q, tempering):
    """F(b) as b E log p(x, z | w, mu, lambda) + E log p(w, mu, lambda) + H(q).

    Under the posterior form b multiplies E log p(w, mu, lambda) too, so F is that of the
    normalised p^b up to the logarithm of its normaliser.
    """
    b, form = tempering[:2]
    power = b if form == "posterior" else 1.0
    prior, entropy = 0.0, entr(phi).sum()
    if problem.weights is None:
        log_w = psi(q.alpha) - psi(q.alpha.sum())
        prior += gammaln(problem.alpha.sum()) - gammaln(problem.alpha).sum()
        prior += (problem.alpha - 1) @ log_w
        entropy += gammaln(q.alpha).sum() - gammaln(q.alpha.sum()) - (q.alpha - 1) @ log_w
    else:
        log_w = np.log(problem.weights)
    if problem.covariances is None:
        a, r = problem.gamma
        log_lambda, precision = psi(q.a) - np.log(q.r), q.a / q.r
        prior += np.sum(a * np.log(r) - gammaln(a) + (a - 1) * log_lambda - r * precision)
        entropy += np.sum(q.a - np.log(q.r) + gammaln(q.a) + (1 - q.a) * psi(q.a))
    else:
        log_lambda, precision = -np.log(problem.covariances), 1 / problem.covariances
    log_lambda = log_lambda + np.zeros_like(q.m)  # one for each dimension
    distance = precision * (q.m - problem.m) ** 2 + 1 / q.kappa
    prior += 0.5 * np.sum(np.log(problem.kappa) + log_lambda - LOG_2PI - problem.kappa * distance)
    entropy += 0.5 * np.sum(LOG_2PI + 1 - np.log(q.kappa) - log_lambda)
    distance = precision * (problem.X[:, None] - q.m) ** 2 + 1 / q.kappa
    log_x = 0.5 * np.sum(log_lambda - LOG_2PI - distance, axis=2)
    likelihood = np.sum(phi * (log_w + log_x))
    return b * likelihood + power * prior + entropy


def factors(model):
    """q as the objective takes it."""
    q = model.posterior
    width = 1 if model.covariance_type == "spherical" else model.n_features
    shared = model.n_features // width
    a = np.tile(0.5 * shared * q.nu[:, None], width)
    kappa = np.tile(q.kappa[:, None], model.n_features)
    return Factors(q.alpha, model.means, kappa, a, a / model.precisions[:, :width])


def responsibilities(model, problem, tempering):
    """phi, read from the statistics of one datum after another."""
    rows = []
    for n in range(len(problem.X)):
        local = model.local_step(Batch(problem.X, slice(n, n + 1)), tempering)
        rows.append(local.statistics.alpha / tempering.inverse)
    return np.array(rows)


def maximise(function, start):
    return minimize(lambda x: -function(x), start, jac="3-point", options={"gtol": 1e-7}).x


# -------------------------------------------------------------------- the updates


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_responsibilities_maximise_the_objective(covariance_type, weights, precisions, tempering):
    problem = make_problem(covariance_type, (weights, precisions), shape=(3, 3, 2))
    model = in_some_state(problem)
    q, b = factors(model), tempering.inverse
    phi = np.empty((3, 3))
    for n in range(3):
        datum = problem._replace(X=problem.X[n : n + 1])

        def after(logits, datum=datum):
            return objective(datum, softmax(np.append(logits, 0))[None], q, tempering)

        phi[n] = softmax(np.append(maximise(after, np.zeros(2)), 0))
    assert_allclose(responsibilities(model, problem, tempering), phi, atol=1e-6)
    local = model.local_step(everything(problem), tempering)
    X = problem.X - problem.X.mean(axis=0)
    count = b * phi.sum(axis=0)
    expected = Natural(count, count, b * phi.T @ X, count, b * phi.T @ X**2)
    assert_same(local.statistics, expected, atol=1e-5)
    assert_allclose(local.entropy, entr(phi).sum(axis=1), atol=1e-5)


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_every_factor_maximises_the_objective(covariance_type, weights, precisions, tempering):
    """In a family that has a kappa and a Gamma shape for each dimension."""
    problem = make_problem(covariance_type, (weights, precisions))
    model = in_some_state(problem)
    phi = responsibilities(model, problem, tempering)
    learned = Factors(not weights, True, True, not precisions, not precisions)
    positive = Factors(True, False, True, True, True)
    start = factors(model)

    def unpack(parameters):
        values, done = [], 0
        for first, is_learned, is_positive in zip(start, learned, positive, strict=True):
            if not is_learned:
                values.append(first)
                continue
            value = parameters[done : done + first.size].reshape(first.shape)
            values.append(np.exp(value) if is_positive else value)
            done += first.size
        return Factors(*values)

    packed = [
        (np.log(first) if is_positive else first).ravel()
        for first, is_learned, is_positive in zip(start, learned, positive, strict=True)
        if is_learned
    ]
    best = unpack(
        maximise(lambda x: objective(problem, phi, unpack(x), tempering), np.concatenate(packed))
    )
    step(model, problem, tempering)
    for name, is_learned, ours, theirs in zip(
        Factors._fields, learned, factors(model), best, strict=True
    ):
        if is_learned:
            assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_what_is_known_stays(covariance_type):
    problem = make_problem(covariance_type, (True, True))
    model = in_some_state(problem)
    step(model, problem, Tempering(0.5, "posterior"))
    assert_array_equal(model.weights, problem.weights)
    assert_allclose(model.precisions, 1 / problem.covariances, rtol=1e-15)


# -------------------------------------------------------------------- the objective


@pytest.mark.parametrize("b", [1.0, 0.4])
@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_elbo_and_energy_in_any_state(covariance_type, weights, precisions, b):
    problem = make_problem(covariance_type, (weights, precisions), shape=(6, 3, 2))
    model, tempering = in_some_state(problem), Tempering(b)
    phi = responsibilities(model, problem, tempering)
    local = model.local_step(everything(problem), tempering)
    variances = problem.covariances if precisions else np.ones((3, 2))
    base = -0.5 * 6 * np.sum(LOG_2PI + np.log(variances).mean(axis=0))
    assert model.log_base_measure() == pytest.approx(base, rel=1e-12)
    for _ in range(2):  # before and after the globals have moved
        assert model.elbo(tempering) == pytest.approx(
            objective(problem, phi, factors(model), tempering), rel=1e-11
        )
        slope = objective(problem, phi, factors(model), Tempering(2.0))  # F is linear in b
        slope -= objective(problem, phi, factors(model), Tempering(1.0))
        assert local.energy == model.energy()
        assert model.energy() + model.log_base_measure() == pytest.approx(slope, rel=1e-10)
        model.global_step(local.statistics, 1.0, 1.0, tempering)


@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_the_posterior_form_powers_the_prior(covariance_type, weights, precisions):
    """Apart by the normaliser of p^b, which depends on no factor."""
    problem = make_problem(covariance_type, (weights, precisions))
    tempering, gaps = Tempering(0.4, "posterior"), []
    for seed in range(3):
        model = in_some_state(problem, seed)
        phi = responsibilities(model, problem, tempering)
        model.local_step(everything(problem), tempering)
        gaps.append(
            objective(problem, phi, factors(model), tempering) - model.elbo(tempering),
        )
    assert_allclose(gaps, gaps[0], rtol=1e-10)
    model.local_step(everything(problem), UNTEMPERED)
    assert model.elbo(Tempering(1.0, "posterior")) == model.elbo()
    assert model.elbo(Tempering(0.4)) != pytest.approx(model.elbo(), rel=0.01)


def component_nodes(q, k, variance):
    """(mu, lambda) of component k, of one dimension, and the logarithms of their q weights."""
    point, mass = hermegauss(3)  # exact, as log p is quadratic in mu
    if variance is None:
        log_lambda = np.arange(-6.0, 3.0, 0.2)
        precision = np.exp(log_lambda)
        log_q = stats.gamma.logpdf(precision, q.a[k, 0], scale=1 / q.r[k, 0])
        log_mass = log_q + log_lambda + np.log(0.2)
    else:
        precision, log_q, log_mass = 1 / np.array([variance]), np.zeros(1), np.zeros(1)
    sd = 1 / np.sqrt(q.kappa[k, 0] * precision)
    mu = q.m[k, 0] + sd[:, None] * point
    log_q = log_q[:, None] + stats.norm.logpdf(mu, q.m[k, 0], sd[:, None])
    log_mass = log_mass[:, None] + np.log(mass / mass.sum())
    precision = np.broadcast_to(precision[:, None], mu.shape)
    return mu.ravel(), precision.ravel(), log_q.ravel(), np.exp(log_mass).ravel()


def log_component_prior(problem, mu, precision):
    total = stats.norm.logpdf(mu, problem.m[0], 1 / np.sqrt(problem.kappa * precision))
    if problem.covariances is None:
        total += stats.gamma.logpdf(precision, problem.nu / 2, scale=2 / problem.beta[0])
    return total


def log_prior_normaliser(problem, power):
    """log of the integral of p(w, mu, lambda)^power, by the trapezium rule."""
    log_w, log_spacing = weight_nodes(problem.alpha * power + 1 - power)
    total = logsumexp(power * log_dirichlet(problem.alpha, log_w) + log_spacing)
    for k in range(2):
        if problem.covariances is None:
            log_lambda = np.arange(-60.0, 10.0, 0.25)
            log_spacing = log_lambda + np.log(0.25)
        else:
            log_lambda, log_spacing = -np.log(problem.covariances[k]), np.zeros(1)
        sd = np.exp(-0.5 * log_lambda[:, None]) / np.sqrt(problem.kappa * power)
        mu = problem.m[0] + sd * np.arange(-9.0, 9.0, 0.25)
        log_p = log_component_prior(problem, mu, np.exp(log_lambda[:, None]))
        total += logsumexp(power * log_p + log_spacing[:, None] + np.log(0.25 * sd))
    return total


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize("precisions", [True, False])
def test_elbo_by_enumeration(precisions, tempering):
    """All z, and quadrature over the weights, means and precisions of two components."""
    b, form = tempering[:2]
    problem = make_problem("diag", (False, precisions), shape=(3, 2, 1), seed=1)
    model = in_some_state(problem)
    phi = responsibilities(model, problem, tempering)
    model.local_step(everything(problem), tempering)
    q, power = factors(model), b if form == "posterior" else 1.0
    log_w, log_spacing = weight_nodes(q.alpha)
    log_q_w = log_dirichlet(q.alpha, log_w)
    mass_w = np.exp(log_q_w + log_spacing)
    known = problem.covariances[:, 0] if precisions else (None, None)
    components = [component_nodes(q, k, known[k]) for k in range(2)]
    mass = mass_w[:, None, None] * components[0][3][:, None] * components[1][3]
    assert mass.sum() == pytest.approx(1.0, abs=1e-11)
    constant = power * log_dirichlet(problem.alpha, log_w)[:, None, None] - log_q_w[:, None, None]
    for (mu, precision, log_q, _), shape in zip(components, [(-1, 1), (1, -1)], strict=True):
        log_p = log_component_prior(problem, mu, precision)
        constant = constant + (power * log_p - log_q).reshape(shape)
    total = 0.0
    for z in itertools.product(range(2), repeat=3):
        term = constant
        for x, k in zip(problem.X[:, 0], z, strict=True):
            mu, precision = components[k][:2]
            log_x = stats.norm.logpdf(x, mu, 1 / np.sqrt(precision))
            term = term + b * (log_w[:, k, None, None] + log_x.reshape([(-1, 1), (1, -1)][k]))
        probability = np.prod(phi[np.arange(3), z])
        total += probability * (np.sum(mass * term) - np.log(probability))
    total -= log_prior_normaliser(problem, power)
    assert model.elbo(tempering) == pytest.approx(total, rel=1e-9)


def test_elbo_of_one_component_is_the_evidence():
    """Conjugate and with no z, so q is exact: the evidence is a product of predictives."""
    problem = make_problem("diag", shape=(7, 1, 3))
    model = make_model(problem)
    model.start(problem.X, responsibilities=np.ones((7, 1)))
    step(model, problem)
    evidence = 0.0
    for x, m, beta in zip(problem.X.T, problem.m, problem.beta, strict=True):
        kappa, nu = problem.kappa, problem.nu
        for value in x:
            scale = np.sqrt(beta * (kappa + 1) / (nu * kappa))
            evidence += stats.t.logpdf(value, nu, m, scale)
            beta = beta + kappa * (value - m) ** 2 / (kappa + 1)
            m, kappa, nu = (kappa * m + value) / (kappa + 1), kappa + 1, nu + 1
    assert model.elbo() == pytest.approx(evidence, rel=1e-12)
