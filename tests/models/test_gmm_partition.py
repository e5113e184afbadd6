"""log C(T) of the Gaussian mixture: enumerated, and powers of weights in closed form."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import gammaln, logsumexp

from annealvi.models.gmm import log_mean_power
from tests.models.gmm_problems import (
    LOG_2PI,
    in_some_state,
    log_dirichlet,
    make_model,
    make_problem,
    random_phi,
    weight_nodes,
)

INVERSE = np.array([1.0, 0.8, 0.5, 0.25, 0.1])


def log_x_integral(z, b, mu, sigma):
    """log of int dx h(x) prod_n N(x_n; mu_z, sigma_z)^b h(x)^-b on a grid, all x at once."""
    N, D = len(z), mu.shape[1]
    log_h = -np.sum(np.log(sigma).mean(axis=0) + 0.5 * LOG_2PI)  # that of a datum
    reach = np.abs(mu).max() + 8.5 * sigma.max() / np.sqrt(b)
    axis = np.arange(-reach, reach, 0.7 * sigma.min() / np.sqrt(b))
    x = np.stack(np.meshgrid(*[axis] * (N * D)), axis=-1).reshape(-1, N, D)
    log_p = stats.norm.logpdf(x, mu[list(z)], sigma[list(z)]).sum(axis=(1, 2))
    return logsumexp(N * log_h + b * (log_p - N * log_h)) + N * D * np.log(axis[1] - axis[0])


def log_mean_weights(counts, alpha, b):
    """log E prod_k w_k^(b n_k) under the Dirichlet prior of two weights, by quadrature."""
    log_w, log_spacing = weight_nodes(alpha)
    return logsumexp(log_dirichlet(alpha, log_w) + b * log_w @ counts + log_spacing)


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("covariances", ["common", "different"])
@pytest.mark.parametrize(("N", "D"), [(1, 1), (2, 1), (1, 2)])
def test_log_partition_by_enumeration(N, D, covariances, weights):
    """C(b) = sum_z int dw dmu p(w, mu) int dx h(x) exp(b energy); x makes mu irrelevant."""
    rng = np.random.RandomState(4)
    variances = np.full((2, D), 0.7)
    if covariances == "different":
        variances = rng.uniform(0.4, 1.6, (2, D))
    problem = make_problem("diag", shape=(N, 2, D), seed=2)
    problem = problem._replace(covariances=variances, alpha=np.array([0.4, 1.7]))
    if weights:
        problem = problem._replace(weights=np.array([0.3, 0.7]))
    model = make_model(problem)
    model.start(problem.X, responsibilities=random_phi(problem))
    mu = rng.normal(0, 0.5, (2, D))
    expected = []
    for b in INVERSE:
        terms = []
        for z in itertools.product(range(2), repeat=N):
            counts = np.bincount(z, minlength=2)
            if weights:
                log_w = b * counts @ np.log(problem.weights)
            else:
                log_w = log_mean_weights(counts, problem.alpha, b)
            terms.append(log_w + log_x_integral(z, b, mu, np.sqrt(variances)))
        expected.append(logsumexp(terms))
    assert_allclose(model.log_partition(INVERSE), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("weights", [None, np.array([0.3, 0.7])])
def test_log_partition_follows_the_temperatures_and_the_data(weights):
    problem = make_problem(known=(False, True), shape=(6, 2, 2))._replace(weights=weights)

    model = make_model(problem)
    model.n_samples = 6
    first = model.log_partition(INVERSE)
    assert_allclose(model.log_partition(INVERSE[2:]), first[2:], rtol=1e-14)
    model.log_partition(INVERSE)[:] = 7  # what it gives is a copy
    assert_array_equal(model.log_partition(INVERSE), first)
    model.start(problem.X[:3], responsibilities=np.full((3, 2), 0.5))
    third = model.log_partition(INVERSE)
    model.n_samples, model.normaliser = 3, None
    assert_array_equal(model.log_partition(INVERSE), third)
    model.n_samples = 6
    assert_array_equal(model.log_partition(INVERSE), first)
    model.alpha = model.alpha + 2
    assert np.all(model.log_partition(INVERSE) == first) == (weights is not None)


@pytest.mark.parametrize("weights", [True, False])
def test_log_partition_needs_known_precisions(weights):
    problem = make_problem(known=(weights, False))
    with pytest.raises(ValueError, match=r"infinite at high T.* Give 'covariances'"):
        in_some_state(problem).log_partition(INVERSE)


def enumerated_mean_power(alpha, n, b, log_c):
    """log E (sum_k w_k^b c_k)^n by every term of the multinomial theorem."""
    free = itertools.product(range(n + 1), repeat=len(alpha) - 1)
    counts = np.array([(*i, n - sum(i)) for i in free if sum(i) <= n])
    total = alpha.sum()
    terms = gammaln(alpha + b * counts) - gammaln(alpha) - gammaln(counts + 1) + counts * log_c
    outside = gammaln(n + 1) + gammaln(total) - gammaln(total + b * n)
    return outside + logsumexp(terms.sum(axis=1))


ALPHAS = {"ordinary": [0.7, 2.0, 1.1], "tiny": [1e-8, 1e-6, 1e-7], "uneven": [1e-4, 300.0, 0.1]}


@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("K", "n"), [(1, 1), (1, 200), (2, 1), (2, 7), (2, 200), (3, 2), (3, 150)])
def test_mean_power_by_enumeration(K, n, alpha, spread):
    for b in (1.0, 0.5, 0.01):
        priors, log_c = np.array(ALPHAS[alpha][:K]), spread * np.array([1.0, -1.0, 0.3])[:K]
        expected = enumerated_mean_power(priors, n, b, log_c)
        assert log_mean_power(priors, n, b, log_c) == pytest.approx(expected, rel=1e-9, abs=1e-10)


def test_mean_power_of_many_data():
    """Against the series of two components, which is short enough at any n."""
    n, counts = 3000, np.arange(3001)
    for alpha, b, log_c in [([0.5, 0.5], 0.1, [0, 0]), ([1e-3, 5.0], 0.6, [2, -1])]:
        alpha, both = np.array(alpha), np.stack([counts, n - counts], axis=1)
        terms = gammaln(alpha + b * both) - gammaln(alpha) - gammaln(both + 1) + both * log_c
        outside = gammaln(n + 1) + gammaln(alpha.sum()) - gammaln(alpha.sum() + b * n)
        expected = outside + logsumexp(terms.sum(axis=1))
        found = log_mean_power(alpha, n, b, np.array(log_c, dtype=float))
        assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("value", [1e6, 1e10, 1e15])
def test_mean_power_of_large_priors(value):
    """Certain to be even: sum_k w_k^b = K^(1 - b), to 1 / alpha."""
    for n in (1, 50, 1000):
        found = [log_mean_power(np.full(3, value), n, b, np.zeros(3)) for b in (1.0, 0.5)]
        assert_allclose(found, [0, 0.5 * n * np.log(3)], atol=max(1e-8, n**2 / value))
