"""The Bernoulli factor model: its ELBO by enumeration, gradients, coordinate optima."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr, expit
from scipy.stats import norm

from annealvi.proximity import Bernoulli, BernoulliFactorModel
from tests.asserts import refusals, refused
from tests.marks import cases

N, K, D, RUNS = 7, 3, 2, 4
PI = np.array([0.2, 0.5, 0.7])


def problem(runs_of_data=False):
    rng = np.random.RandomState(0)
    X = rng.normal(1, 2, (RUNS, N, D) if runs_of_data else (N, D))
    model = BernoulliFactorModel(X, prior_probability=PI, noise_variance=0.6)
    return X, model, rng.normal(0, 1.5, (RUNS, K, N)), rng.normal(0, 1, (RUNS, K, D))


@pytest.mark.parametrize("runs_of_data", [False, True])
def test_elbo_against_enumeration(runs_of_data):
    """E_q[log p(x, z)] + H(q), datum by datum over all z."""
    X, model, theta, mu = problem(runs_of_data)
    X = np.broadcast_to(X, (RUNS, N, D))
    expected = np.zeros(RUNS)
    for run, i in product(range(RUNS), range(N)):
        q = expit(theta[run, :, i])
        for z in product([0, 1], repeat=K):
            z = np.array(z)
            weight = np.prod(np.where(z, q, 1 - q))
            log_p = norm.logpdf(X[run, i], z @ mu[run], np.sqrt(0.6)).sum()
            expected[run] += weight * (log_p + np.log(np.where(z, PI, 1 - PI)).sum())
        expected[run] += np.sum(entr(q) + entr(1 - q))
    assert_allclose(model.elbo(Bernoulli(theta), mu), expected, rtol=1e-12)


@pytest.mark.parametrize("runs_of_data", [False, True])
def test_gradients_against_finite_differences(runs_of_data):
    _, model, theta, mu = problem(runs_of_data)
    q = Bernoulli(theta)
    a, slope = model.gradients(q, mu)
    step = 1e-6

    def differences(array, elbo):
        out = np.empty_like(array)
        for index in np.ndindex(array.shape[1:]):
            move = np.zeros(array.shape[1:])
            move[index] = step
            out[(slice(None), *index)] = (elbo(array + move) - elbo(array - move)) / (2 * step)
        return out

    by_theta = differences(theta, lambda t: model.elbo(Bernoulli(t), mu))
    by_mu = differences(mu, lambda m: model.elbo(q, m))
    assert_allclose((a - theta) * q.variance, by_theta, rtol=1e-6, atol=1e-7)
    assert_allclose(slope, by_mu, rtol=1e-6, atol=1e-7)


def test_coordinate_optima():
    """logit lambda = a in turn, and the exact M-step, never lower the ELBO."""
    _, model, theta, mu = problem()
    last = model.elbo(Bernoulli(theta), mu)
    for _ in range(30):
        for k in range(K):
            theta[:, k] = model.gradients(Bernoulli(theta), mu)[0][:, k]
            now = model.elbo(Bernoulli(theta), mu)
            assert np.all(now >= last - 1e-10)
            last = now
        mu = model.best_means(Bernoulli(theta))
        assert_allclose(model.gradients(Bernoulli(theta), mu)[1], 0, atol=1e-9)
        now = model.elbo(Bernoulli(theta), mu)
        assert np.all(now >= last - 1e-10)
        last = now


def test_factors_that_no_datum_has():
    _, model, theta, _ = problem()
    theta[:, 1] = -900
    means = model.best_means(Bernoulli(theta))
    assert np.all(np.isfinite(means))
    assert_allclose(means[:, 1], 0, atol=1e-10)
    theta[:] = -740.0
    assert_allclose(model.best_means(Bernoulli(theta)), 0)


test_bad_constants = refusals(
    lambda options: BernoulliFactorModel(**dict(X=[[0.0], [1.0]]) | options),
    (dict(X=[1.0, 2.0]), r"'X' .* of Bernoulli.* \(n_runs, n_samples, n_features\)"),
    (dict(X=[["a"]]), "'X' parameter of BernoulliFactorModel must be a float or an array"),
    (dict(X=np.empty((0, 2))), "'X' parameter of BernoulliFactorModel"),
    (dict(X=[[np.nan]]), "must be finite"),
    (dict(prior_probability=[0.5, 1.0]), r"'prior_.*\(0.0, 1.0\). Got 1.0"),
    (dict(prior_probability="half"), "'prior_probability' .* 'half'"),
    (dict(prior_probability=[]), r"'prior_probability' .* \(n_components,\). Got shape \(0,\)"),
    (dict(noise_variance=0), "'noise_variance' .* must be positive and finite. Got 0"),
    (dict(noise_variance="learn"), "'noise_variance' .* must be a float. Got"),
)


@cases("means", 1.0, np.zeros((K, D + 1)), np.zeros((K + 1, D)), np.full((K, D), np.inf), "five")
def test_bad_means(means):
    refused("'means' parameter must be", problem()[1].check_means, means)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 2)])
def test_data_whose_squares_overflow(shape):
    """As in the mixtures: the ELBO would be minus infinity."""
    with pytest.raises(ValueError, match=r"sum of the squares of X .* Rescale X"):
        BernoulliFactorModel(np.full(shape, 1e200))


def test_runs_of_data_are_as_many_as_runs_of_means():
    model = problem(runs_of_data=True)[1]
    assert model.check_means(np.zeros((RUNS, K, D))).shape == (RUNS, K, D)
    refused(rf"\({RUNS}, {K}, {D}\)", model.check_means, np.zeros((RUNS + 1, K, D)))
