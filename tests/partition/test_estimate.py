"""log C(T) of the mixtures and of a user's model, by every method."""

from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, psi

from annealvi.models.fmm import FMM
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import OutOfReach, log_partition
from tests.asserts import refusals, refused
from tests.examples import load_example
from tests.partition.mixtures import B, T, known_mixture


class UsersMixture(load_example("custom_model").PoissonMixture):
    """The Poisson mixture of the examples, with the methods that log_partition needs."""

    n_samples = 3
    # the example's own is at the current q
    log_partition = property()

    def sample_prior(self, rng):
        alpha, shape, inverse_scale = self.prior
        return np.log(rng.dirichlet(alpha)), rng.gamma(shape) / inverse_scale

    def local_log_partition(self, parameters, inverse):
        log_w, rate = parameters
        b = inverse[:, None]
        return logsumexp(b * (log_w - rate) + rate**b, axis=1)

    def prior_centre(self):
        alpha, shape, inverse_scale = self.prior
        return np.log(alpha / alpha.sum()), shape / inverse_scale


def users_mixture(n_samples=3):
    model = UsersMixture(np.array([1.5, 2.0]), shape=2.0, inverse_scale=1.0)
    model.n_samples = n_samples
    return model


@pytest.mark.slow
def test_learned_weights_by_every_method():
    """w ~ Beta: by the trapezoidal rule in logit w."""
    alpha = np.array([0.8, 1.7])
    model = known_mixture(known_weights=None, alpha=alpha, n_samples=6)
    s = np.arange(-60, 60, 0.2)
    log_w = -np.logaddexp(0, [-s, s])
    weight = np.exp(alpha @ log_w)
    local = np.stack([model.local_log_partition(w, B) for w in log_w.T])
    expected = logsumexp(6 * local, axis=0, b=(weight / weight.sum())[:, None])
    exact = log_partition(model, T)
    assert exact.method == "exact"
    assert_allclose(exact.values, expected, atol=1e-8)
    estimate = log_partition(model, T, "monte-carlo", n_samples=1500, random_state=0)
    assert np.all(np.abs(estimate.values - expected)[1:] < 3 * estimate.standard_error[1:])
    assert np.all(estimate.standard_error[1:] < 0.03)
    lower = log_partition(model, T, "jensen", n_samples=1500, random_state=0).bounds
    assert np.all(lower[0, 1:] < lower[1, 1:]) and np.all(lower[1, 1:] < expected[1:])
    centre = np.log(alpha / alpha.sum())
    values = log_partition(model, T, "map").values
    assert_allclose(values, 6 * model.local_log_partition(centre, B), atol=1e-14)


def test_posterior_is_at_the_current_q_and_0_at_1():
    model = known_mixture(known_weights=None, alpha=np.array([3.0, 1.0]), n_samples=6)
    values = log_partition(model, T, "posterior").values
    expected = 6 * model.local_log_partition(psi([3.0, 1.0]) - psi(4.0), B)
    assert_allclose(values, expected - expected[0])
    for known in (known_mixture(), FMM(2, 3, n_samples=5)):
        posterior = log_partition(known, T, "posterior")
        assert_allclose(posterior.values, log_partition(known, T).values, atol=1e-12)
        assert posterior.values[0] == 0


@pytest.mark.parametrize("method", ["exact", "monte-carlo", "jensen", "map", "posterior"])
def test_log_c_is_0_at_1_and_grows(method):
    models = [known_mixture(), known_mixture(known_weights=None), users_mixture()]
    models.append(FMM(2, 3, n_samples=5))
    models += [LDAPrior(2, 3, [3, 3]), LDAPrior(2, 2, [3, 2], form="collapsed")]
    n = 0
    for model in models:
        try:
            values = log_partition(model, T, method, n_samples=20, random_state=0).values
        except ValueError as error:
            assert "must be one that" in str(error)
            continue
        n += 1
        assert abs(values[0]) <= 1e-12 and np.all(np.diff(values) > 0)
    assert n >= 2


def test_a_users_model_by_enumeration():
    """N = 1: the sum over x of h(x) E[sum_z p(x, z)^b], over the very draws."""
    model, rng = users_mixture(1), np.random.default_rng(0)
    draws = [model.sample_prior(rng) for _ in range(30)]
    x = np.arange(200)
    log_factorial = np.cumsum(np.log(np.maximum(x, 1)))

    class Replays(UsersMixture):
        def sample_prior(self, rng):
            return draws.pop(0)

    expected = np.zeros(len(B))
    for log_w, rate in draws:
        energy = log_w[:, None] + x * np.log(rate)[:, None] - rate[:, None]
        expected += [np.sum(np.exp(b * energy - log_factorial)) / 30 for b in B]
    replays = Replays(np.array([1.5, 2.0]), shape=2.0, inverse_scale=1.0)
    replays.n_samples = 1
    values = log_partition(replays, T, "monte-carlo", n_samples=30).values
    assert_allclose(values, np.log(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_bounds_of_a_users_model():
    model = users_mixture()
    estimate = log_partition(model, T, n_samples=1500, random_state=0)
    assert estimate.method == "monte-carlo" and estimate.made_for == {}
    lower = log_partition(model, T, "jensen", n_samples=1500, random_state=0)
    assert_array_equal(lower.values, lower.bounds[1])
    assert np.all(np.diff([*lower.bounds, estimate.values], axis=0)[:, 1:] > 0)
    values = log_partition(model, T, "map").values
    assert_allclose(values, 3 * model.local_log_partition(model.prior_centre(), B))


def test_estimates_of_the_very_draws():
    """Both bounds, the error and the sizes, as defined, from what each draw gives."""
    draws = []

    class Remembers(UsersMixture):
        def sample_prior(self, rng):
            draws.append(super().sample_prior(rng))
            return draws[-1]

    model = Remembers(np.array([1.5, 2.0]), shape=2.0, inverse_scale=1.0)
    lower = log_partition(model, T, "jensen", n_samples=40, random_state=0).bounds
    sums = np.exp([model.local_log_partition(draw, B) for draw in draws])
    assert_allclose(lower[0], 3 * np.log(sums).mean(axis=0), rtol=1e-12, atol=1e-13)
    assert_allclose(lower[1], 3 * np.log(sums.mean(axis=0)), rtol=1e-12, atol=1e-13)
    draws.clear()
    estimate = log_partition(model, T, "monte-carlo", n_samples=40, random_state=1)
    w = np.exp([3 * model.local_log_partition(draw, B) for draw in draws])
    size = w.sum(axis=0) ** 2 / (w**2).sum(axis=0)
    assert_allclose(estimate.values, np.log(w.mean(axis=0)), rtol=1e-12, atol=1e-13)
    assert_allclose(estimate.effective_sample_size, size, rtol=1e-10)
    error = w.std(axis=0, ddof=1) / w.mean(axis=0) / np.sqrt(40)
    assert_allclose(estimate.standard_error, error, rtol=1e-10, atol=1e-13)


def test_one_draw_that_dominates_is_told():
    for n_samples in (1, 2**53):  # whose logarithms are known to whole numbers only
        prior = LDAPrior(2, 3, [n_samples])
        with pytest.warns(UserWarning, match="are unreliable") if n_samples > 1 else nullcontext():
            result = log_partition(prior, T, "monte-carlo", n_samples=20, random_state=0)
        assert np.all(result.effective_sample_size >= 1)
    with pytest.warns(UserWarning, match=r"At T=\S+ the effective sample size is 1.* 20 draws"):
        result = log_partition(users_mixture(10**6), T, n_samples=20, random_state=0)
    assert np.min(result.effective_sample_size) < 2
    log_partition(users_mixture(), T, n_samples=20, random_state=0)  # a warning is an error here


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_progress_and_threads(n_jobs):
    seen = []
    record = lambda done, total: seen.append((done, total))  # noqa: E731
    options = dict(n_samples=9, random_state=np.random.RandomState(4), n_jobs=n_jobs)
    result = log_partition(users_mixture(), T, callback=record, **options)
    assert seen == [(i + 1, 9) for i in range(9)]
    same = log_partition(users_mixture(), T, n_samples=9, random_state=np.random.RandomState(4))
    assert_array_equal(result.values, same.values)
    other = log_partition(users_mixture(), T, n_samples=9, random_state=5)
    assert np.all(result.values[1:] != other.values[1:])


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_end_it(n_jobs):
    def stop(done, total):
        if done == 3:
            raise KeyboardInterrupt

    drawn = []

    class Counts(UsersMixture):
        def sample_prior(self, rng):
            drawn.append(1)
            return super().sample_prior(rng)

    model = Counts(np.array([1.5, 2.0]), shape=2.0, inverse_scale=1.0)
    with pytest.raises(KeyboardInterrupt):
        log_partition(model, T, n_samples=10_000, callback=stop, n_jobs=n_jobs)
    assert len(drawn) < 20


class Nothing:
    n_samples = 3


test_bad_input = refusals(
    lambda model, options: log_partition(model, T, **options),
    (users_mixture(), dict(method="exact"), "'monte-carlo', 'jensen', 'map'. Got 'exact'"),
    (users_mixture(), dict(method="posterior"), "must be one that UsersMixture offers"),
    (FMM(2, 3, n_samples=5), dict(method="map"), "FMM offers: 'exact', 'posterior'. Got 'map'"),
    (LDAPrior(2, 3, [3]), dict(method="posterior"), "'exact', 'monte-carlo', 'jensen', 'map'"),
    (Nothing(), {}, "offers: none, see the notes of log_partition. Got 'auto'"),
    (users_mixture(), dict(n_jobs=0), "n_jobs == 0"),
    (FMM(2, 3), {}, "FMM must have at least one sample .* Got n_samples=0"),
)


@pytest.mark.parametrize("method", ["auto", "exact", "monte-carlo", "jensen", "map", "posterior"])
def test_learned_precisions_have_no_log_c(method):
    with pytest.raises(ValueError, match=r"learned covariances .* C\(T\) .* infinite"):
        log_partition(known_mixture(known_covariances=None), T, method)


def test_models_that_give_something_else():
    def one(name, **methods):
        return type(name, (UsersMixture,), methods)(np.array([1.5, 2.0]), 2.0, 1.0)

    def too_large(model, inverse):
        raise OutOfReach("no")

    whole = UsersMixture.local_log_partition
    short = one("Short", local_log_partition=lambda *given: whole(*given)[:-1])
    words = one("Words", local_log_partition=lambda model, one, b: ["a"] * len(b))
    infinite = one("Infinite", log_partition=lambda model, b: np.full(len(b), np.inf))
    large = one("Large", log_partition=too_large)
    refused(r"'local_log_partition' of Short.*Got shape \(4,\)", log_partition, short, T)
    refused(r"'local_log_partition' of Words.*dtype <U1", log_partition, words, T)
    refused("method='exact', Infinite must compute one finite", log_partition, infinite, T)
    assert log_partition(large, T).method == "monte-carlo"
    refused("no", log_partition, large, T, "exact", error=OutOfReach)
