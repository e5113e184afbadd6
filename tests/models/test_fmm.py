"""The factorial mixture: its annealed objective written out, enumerated and ascended; new data."""

import itertools

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import entr, expit, logsumexp, softmax
from scipy.stats import multivariate_normal

from annealvi import TemperedFMM
from annealvi.datasets import make_shape_mixture
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.fmm import FMM
from annealvi.temperature import Variational
from tests.marks import cases

COVARIANCES = ("diag", "full")
TEMPERINGS = [Tempering(b, form) for b in (1.0, 0.4) for form in ("likelihood", "posterior")]
everywhere = cases("covariance, tempering", *itertools.product(COVARIANCES, TEMPERINGS))


def objective(X, nu, M, Q, pi, noise, variance, tempering=UNTEMPERED):
    """F(b) as b E log p(x, z | mu) + E log p(mu) + H(z) + H(mu), datum by datum.

    nu is (N, K) here; under the posterior form p(mu) has variance T sigma_mu.
    """
    b, form = tempering[:2]
    prior = variance / b if form == "posterior" else variance
    K, D = M.shape
    total = 0.0
    for x, p in zip(X, nu, strict=True):
        pairs = np.outer(p, p)
        np.fill_diagonal(pairs, p)
        distance = x @ x - 2 * x @ (p @ M) + sum(np.sum(pairs * (np.outer(m, m) + Q)) for m in M.T)
        likelihood = -0.5 * D * np.log(2 * np.pi * noise) - distance / (2 * noise)
        likelihood += np.sum(p * np.log(pi) + (1 - p) * np.log(1 - pi))
        total += b * likelihood + np.sum(entr(p) + entr(1 - p))
    for m in M.T:
        total -= 0.5 * (K * np.log(2 * np.pi * prior) + (m @ m + np.trace(Q)) / prior)
        total += 0.5 * np.linalg.slogdet(2 * np.pi * np.e * Q)[1]
    return total


def tiny_problem(covariance, *, shape=(4, 3, 2), seed=0, **options):
    """A model of (N, K, D) in some state of its factors, and its data."""
    rng = np.random.RandomState(seed)
    N, K, D = shape
    X = rng.normal(0, 1.5, (N, D))
    given = dict(prior_probability=rng.uniform(0.2, 0.7, K), covariance=covariance) | options
    model = FMM(K, D, noise_variance=0.6, component_variance=0.8, **given)
    model.start(X, rng.normal(0, 1, (K, D)))
    spread = rng.normal(0, 0.4, (K, K))
    model.covariance_matrix = np.eye(K) * rng.uniform(0.1, 0.5, K)
    if covariance == "full":
        model.covariance_matrix += spread @ spread.T
    model.nu[:, :N] = rng.uniform(0.1, 0.9, (K, N))
    return model, X


def value(model, X, tempering=UNTEMPERED, **changed):
    """The written-out objective of a model's state, with something changed."""
    state = dict(nu=model.nu[:, : len(X)].T, M=model.means, Q=model.covariance_matrix)
    state |= dict(pi=model.prior_probability, noise=model.noise_variance)
    state |= dict(variance=model.component_variance, tempering=tempering)
    return objective(X, **(state | changed))


def step(model, X, tempering=UNTEMPERED):
    local = model.local_step(Batch(X, slice(0, len(X))), tempering)
    model.global_step(local.statistics, 1.0, 1.0, tempering)


def bit_matrices(n_rows, n_columns):
    for bits in itertools.product((0.0, 1.0), repeat=n_rows * n_columns):
        yield np.reshape(bits, (n_rows, n_columns))


def maximise(function, start):
    return minimize(lambda x: -function(x), start, jac="3-point", options={"gtol": 1e-8}).x


@everywhere
def test_nu_maximises_the_objective(covariance, tempering):
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


@pytest.mark.slow
@everywhere
def test_components_maximise_the_objective(covariance, tempering):
    """One after another (diag), or jointly (full)."""
    model, X = tiny_problem(covariance)
    local = model.local_step(Batch(X, slice(0, len(X))), tempering)
    M, Q = model.means.copy(), model.covariance_matrix.copy()
    K, D = M.shape
    for some in [[k] for k in range(K)] if covariance == "diag" else [list(range(K))]:
        below = np.tril_indices(len(some))

        def unpack(parameters, some=some, below=below, M=M, Q=Q):
            means, cov, root = M.copy(), Q.copy(), np.zeros((len(some), len(some)))
            root[below] = parameters[len(some) * D :]
            means[some] = parameters[: len(some) * D].reshape(-1, D)
            cov[np.ix_(some, some)] = root @ root.T
            return means, cov

        def after(parameters, unpack=unpack):
            means, cov = unpack(parameters)
            return value(model, X, tempering, M=means, Q=cov)

        root = np.linalg.cholesky(Q[np.ix_(some, some)])[below]
        M, Q = unpack(maximise(after, np.append(M[some], root)))
    model.global_step(local.statistics, 1.0, 1.0, tempering)
    assert_allclose(model.means, M, rtol=1e-5, atol=1e-6)
    assert_allclose(model.covariance_matrix, Q, rtol=1e-5, atol=1e-6)


@everywhere
def test_learned_hyperparameters_maximise_the_objective(covariance, tempering):
    """At the components that the same step has moved."""
    model, X = tiny_problem(covariance, learn_probability=True, learn_noise=True)
    step(model, X, tempering)

    def after(parameters):
        pi, noise = expit(parameters[:-1]), np.exp(parameters[-1])
        return value(model, X, tempering, pi=pi, noise=noise)

    best = maximise(after, np.zeros(model.n_components + 1))
    assert_allclose(model.prior_probability, expit(best[:-1]), rtol=1e-5)
    assert_allclose(model.noise_variance, np.exp(best[-1]), rtol=1e-5)


def gaussian_nodes(n_dimensions, n_nodes):
    """Points and weights of the expectation under N(0, I)."""
    points, weights = hermegauss(n_nodes)
    weights = weights / weights.sum()
    grid = np.array(list(itertools.product(range(n_nodes), repeat=n_dimensions)))
    return points[grid], weights[grid].prod(axis=1)


def log_joint(X, Z, mu, pi, noise):
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
        both = zip(mu.T, model.means.T, strict=True)
        total -= weight * sum(multivariate_normal.logpdf(m, mean, Q) for m, mean in both)
    return total


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("weights", [None, np.geomspace(1, 1e-9, 100)])
def test_an_undamped_variational_temperature_ascends_its_objective(weights, covariance):
    """Eq. 5 of Mandt et al., the temperature's own step included."""
    mean_b = np.average(np.geomspace(1, 0.01, 100), weights=weights)
    options = dict(damping=1.0, monotone=False, final_fraction=0.0)
    temperature = Variational(t_max=100.0, prior=weights, start=1 / mean_b, **options)
    X = make_shape_mixture(200, random_state=0).data
    for seed in range(3):
        options = dict(temperature=temperature, covariance=covariance, random_state=seed)
        fmm = TemperedFMM(8, noise_variance=0.1, max_iter=50, tol=0, **options).fit(X)
        bounds = fmm.history_["tempered_elbo"]
        assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9 and bounds[-1] > bounds[0]
        assert len(np.unique(fmm.temperature_path_)) > 10  # it did move

        model, b = fmm._state.model, np.geomspace(1, 0.01, 100)
        energy = 2 * (model.elbo() - model.elbo(Tempering(0.5)))  # F(b) is linear in b
        energy += 0.5 * X.size * np.log(2 * np.pi * 0.1)  # h is not tempered
        log_partition = -0.5 * X.size * np.log(b) + 200 * 8 * np.log(0.3**b + 0.7**b)
        prior = np.ones(100) if weights is None else weights
        scores = np.log(prior / prior.sum()) + b * energy - log_partition
        assert_allclose(fmm.temperature_posterior_, softmax(scores), rtol=1e-6, atol=1e-9)
        assert bounds[-1] == pytest.approx(model.elbo() - energy + logsumexp(scores), rel=1e-10)


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
        expected = value(model, x[None], nu=p[None])
        assert bound == pytest.approx(expected - model.global_bound(), rel=1e-10)


@pytest.mark.slow
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


@pytest.mark.parametrize(("rho", "scale"), [(0.5, 1.0), (1.0, 2.0)])
def test_a_step_goes_all_the_way(rho, scale):
    model, X = tiny_problem("diag")
    local = model.local_step(Batch(X, slice(0, 4)), UNTEMPERED)
    before = model.means.copy()
    with pytest.raises(ValueError, match=f"must be 1, .* Got rho={rho} and scale={scale}"):
        model.global_step(local.statistics, rho, scale, UNTEMPERED)
    assert_array_equal(model.means, before)
