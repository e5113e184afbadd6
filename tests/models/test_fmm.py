"""The annealed objective of the factorial mixture: written out, enumerated, and maximised."""

import itertools

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit
from scipy.stats import multivariate_normal

from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.fmm import FMM
from tests.models.fmm_problems import COVARIANCES, FORMS, bit_matrices, step, tiny_problem, value


def maximise(function, start):
    return minimize(lambda x: -function(x), start, jac="3-point", options={"gtol": 1e-8}).x


# -------------------------------------------------------------------- the updates


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("b", [1.0, 0.4])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_nu_maximises_the_objective(covariance, b, form):
    tempering = Tempering(b, form)
    model, X = tiny_problem(covariance)
    nu = model.nu[:, : len(X)].T.copy()
    for n, k in np.ndindex(nu.shape):  # in sequence: each sees those before it moved

        def minus(p, n=n, k=k):
            changed = nu[n : n + 1].copy()
            changed[0, k] = p
            return -value(model, X[n : n + 1], tempering, nu=changed)

        nu[n, k] = minimize_scalar(minus, bounds=(0, 1), options={"xatol": 1e-12}).x
    model.local_step(Batch(X, slice(0, len(X))), tempering)
    assert_allclose(model.nu[:, : len(X)].T, nu, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("b", [1.0, 0.4])
def test_diagonal_components_maximise_the_objective(b, form):
    tempering = Tempering(b, form)
    model, X = tiny_problem("diag")
    local = model.local_step(Batch(X, slice(0, len(X))), tempering)
    M, s = model.means.copy(), np.diag(model.covariance_matrix).copy()
    for k in range(len(M)):

        def after(parameters, k=k):
            means, variances = M.copy(), s.copy()
            means[k], variances[k] = parameters[1:], np.exp(parameters[0])
            return value(model, X, tempering, M=means, Q=np.diag(variances))

        best = maximise(after, np.append(np.log(s[k]), M[k]))
        s[k], M[k] = np.exp(best[0]), best[1:]
    model.global_step(local.statistics, 1.0, 1.0, tempering)
    assert_allclose(model.means, M, rtol=1e-5, atol=1e-6)
    assert_allclose(model.covariance_matrix, np.diag(s), rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("b", [1.0, 0.4])
def test_full_components_maximise_the_objective(b, form):
    tempering = Tempering(b, form)
    model, X = tiny_problem("full")
    local = model.local_step(Batch(X, slice(0, len(X))), tempering)
    K, D = model.means.shape

    def unpack(parameters):
        root = np.zeros((K, K))
        root[np.tril_indices(K)] = parameters[K * D :]
        return parameters[: K * D].reshape(K, D), root @ root.T

    def after(parameters):
        means, covariance = unpack(parameters)
        return value(model, X, tempering, M=means, Q=covariance)

    root = np.linalg.cholesky(model.covariance_matrix)[np.tril_indices(K)]
    means, covariance = unpack(maximise(after, np.append(model.means, root)))
    model.global_step(local.statistics, 1.0, 1.0, tempering)
    assert_allclose(model.means, means, rtol=1e-5, atol=1e-6)
    assert_allclose(model.covariance_matrix, covariance, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("b", [1.0, 0.4])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_learned_hyperparameters_maximise_the_objective(covariance, b, form):
    """At the components that the same step has moved."""
    tempering = Tempering(b, form)
    model, X = tiny_problem(covariance, learn_probability=True, learn_noise=True)
    step(model, X, tempering)

    def after(parameters):
        pi, noise = expit(parameters[:-1]), np.exp(parameters[-1])
        return value(model, X, tempering, pi=pi, noise=noise)

    best = maximise(after, np.zeros(model.n_components + 1))
    assert_allclose(model.prior_probability, expit(best[:-1]), rtol=1e-5)
    assert_allclose(model.noise_variance, np.exp(best[-1]), rtol=1e-5)


def test_fixed_hyperparameters_stay():
    model, X = tiny_problem("full")
    before = model.prior_probability.copy(), model.noise_variance, model.component_variance
    step(model, X, Tempering(0.5, "posterior"))
    assert_array_equal(model.prior_probability, before[0])
    assert (model.noise_variance, model.component_variance) == before[1:]


# -------------------------------------------------------------------- the objective


def gaussian_nodes(n_dimensions, n_nodes):
    """Points and weights of the expectation under N(0, I)."""
    points, weights = hermegauss(n_nodes)
    weights = weights / weights.sum()
    grid = np.array(list(itertools.product(range(n_nodes), repeat=n_dimensions)))
    return points[grid], weights[grid].prod(axis=1)


def log_joint(X, Z, mu, pi, noise):
    """log p(x, z | mu)."""
    distance = np.sum((X - Z @ mu) ** 2)
    gaussian = -0.5 * X.size * np.log(2 * np.pi * noise) - distance / (2 * noise)
    return gaussian + np.sum(Z * np.log(pi) + (1 - Z) * np.log(1 - pi))


def enumerated(model, X, tempering):
    """F(b) by all Z and Gauss-Hermite quadrature over mu, exact as log p is quadratic in it."""
    b, form = tempering[:2]
    K, D = model.means.shape
    nu, Q = model.nu[:, : len(X)].T, model.covariance_matrix
    prior = model.component_variance / (b if form == "posterior" else 1)
    root = np.linalg.cholesky(Q)
    total = 0.0
    for point, weight in zip(*gaussian_nodes(K * D, 3), strict=True):
        mu = model.means + root @ point.reshape(K, D)
        for Z in bit_matrices(len(X), K):
            q = np.prod(np.where(Z == 1, nu, 1 - nu))
            term = b * log_joint(X, Z, mu, model.prior_probability, model.noise_variance)
            total += weight * q * (term - np.log(q))
        total += weight * np.sum(multivariate_normal.logpdf(mu.T, np.zeros(K), prior * np.eye(K)))
        total -= weight * sum(
            multivariate_normal.logpdf(m, mean, Q)
            for m, mean in zip(mu.T, model.means.T, strict=True)
        )
    return total


@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_elbo_by_enumeration(covariance, D):
    model, X = tiny_problem(covariance, shape=(2, 2, D), seed=3)
    model.local_step(Batch(X, slice(0, 2)), UNTEMPERED)
    for tempering in (UNTEMPERED, Tempering(0.3), Tempering(0.3, "posterior")):
        expected = enumerated(model, X, tempering)
        assert model.elbo(tempering) == pytest.approx(expected, rel=1e-9)
        assert value(model, X, tempering) == pytest.approx(expected, rel=1e-9)
    assert model.elbo() == model.elbo(Tempering(1.0, "posterior"))
    assert model.elbo() != pytest.approx(model.elbo(Tempering(0.3)), rel=0.01)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 1), (2, 2, 1), (1, 3, 1), (1, 2, 2)])
def test_log_partition_by_enumeration(shape):
    """C(b) = sum_z int dmu p(mu) int dx h(x) exp(b energy), by quadrature of every integral."""
    N, K, D = shape
    pi = np.array([0.2, 0.6, 0.35])[:K]
    noise, variance = 0.7, 0.5
    model = FMM(K, D, prior_probability=pi, noise_variance=noise, component_variance=variance)
    model.start(np.zeros((N, D)), np.zeros((K, D)))
    components, weights = gaussian_nodes(K * D, 3)
    components = np.sqrt(variance) * components.reshape(-1, K, D)
    reach = np.abs(components).sum(axis=1).max()
    inverse = np.array([1.0, 0.8, 0.5, 0.25, 0.1])
    expected = []
    for b in inverse:
        sd = np.sqrt(noise / b)
        axis = np.arange(-reach - 8 * sd, reach + 8 * sd, sd / 2)  # far finer than a Gaussian asks
        x = np.stack(np.meshgrid(*[axis] * (N * D)), axis=-1).reshape(-1, N, D)
        total = 0.0
        for mu, weight in zip(components, weights, strict=True):
            for Z in bit_matrices(N, K):
                energy = -np.sum((x - Z @ mu) ** 2, axis=(1, 2)) / (2 * noise)
                energy += np.sum(Z * np.log(pi) + (1 - Z) * np.log(1 - pi))
                total += weight * np.sum(np.exp(b * energy))
        h = (2 * np.pi * noise) ** (-N * D / 2)
        expected.append(np.log(total * h * (axis[1] - axis[0]) ** (N * D)))
    assert_allclose(model.log_partition(inverse), expected, rtol=1e-10, atol=1e-12)
