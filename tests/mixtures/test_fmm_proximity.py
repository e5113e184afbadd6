"""TemperedFMM under a proximity temperature."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr, expit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from annealvi import Proximity, TemperedFMM, TemperedGaussianMixture, TemperedLDA
from annealvi.datasets import make_shape_mixture
from annealvi.model import Batch, Tempering
from annealvi.models.fmm import FMM, collect, factors_at
from annealvi.proximity import Bernoulli, BernoulliFactorModel

X = make_shape_mixture(200, random_state=0).data
K = 8


def fmm(**parameters):
    defaults = dict(n_components=K, temperature="proximity", random_state=0, max_iter=40, tol=0)
    return TemperedFMM(**(defaults | parameters))


def divergence(logit, centre):
    q = expit(logit)
    return np.logaddexp(0, centre) - q * centre - entr(q) - entr(expit(-logit))


def bisected(a, centre, average, k):
    """Proximity's T of each element by bisection, as docs/proximity.md has it."""
    cold, hot = np.ones_like(a), np.full_like(a, 1 + k)
    for _ in range(80):
        T = (cold + hot) / 2
        too_cold = divergence(centre + (a - centre) / T, centre) > average
        cold, hot = np.where(too_cold, T, cold), np.where(too_cold, hot, T)
    T = np.where(divergence(centre + (a - centre) / (1 + k), centre) > average, 1 + k, T)
    return np.where(divergence(a, centre) <= average, 1.0, T)


def naive_fit(X, means, pi, noise, variance, n_steps, k0, gamma, statistic):
    """Coordinate-wise proximity inference of half of the steps, plain inference after it."""
    nu, m, s = np.full((len(X), len(means)), pi), means.copy(), np.zeros(len(means))
    centre = np.log(pi / (1 - pi)) if statistic == "kl" else 0.0
    seen, path, half = [], [], n_steps // 2
    for t in range(n_steps):
        k = k0 * gamma ** (t / half) if t < half else 0.0
        seen.append(np.logaddexp(0, centre) - nu * centre - entr(nu) - entr(1 - nu))
        average, inverse = np.mean(seen, axis=0), np.empty_like(nu)
        gram = m @ m.T + X.shape[1] * np.diag(s)
        for j in range(len(m)):
            rest = nu @ gram[j] - nu[:, j] * gram[j, j]
            a = np.log(pi / (1 - pi)) + (X @ m[j] - rest - gram[j, j] / 2) / noise
            T = bisected(a, centre, average[:, j], k)
            inverse[:, j] = 1 / T
            nu[:, j] = expit(centre + (a - centre) / T)
        R = nu.T @ nu
        np.fill_diagonal(R, nu.sum(axis=0))
        s = 1 / (1 / variance + np.diag(R) / noise)
        for j in range(len(m)):
            rest = R[j] @ m - R[j, j] * m[j]
            m[j] = s[j] / noise * (nu[:, j] @ X - rest)
        path.append(1 / inverse.mean())
    return m, path


@pytest.mark.parametrize("statistic", ["entropy", "kl"])
def test_against_plain_numpy_and_bisection(statistic):
    rng = np.random.RandomState(0)
    pi, means = 0.3, rng.normal(0, 0.6, (3, 16))
    expected, path = naive_fit(X[:60], means, pi, 0.2, 0.35, 12, 30.0, 1e-3, statistic)
    fitted = TemperedFMM(
        3,
        prior_probability=pi,
        noise_variance=0.2,
        component_variance=0.35,
        init=means,
        temperature=Proximity(statistic, magnitude=30.0, gamma=1e-3, decay=1.0),
        max_iter=12,
        tol=0,
    ).fit(X[:60])
    assert_allclose(fitted.components_, expected, atol=5e-5)  # limits are good to 1e-6
    assert_allclose(fitted.temperature_path_, path, rtol=1e-4)
    assert path[0] > 3 and fitted.temperature_path_[6:].tolist() == [1.0] * 6


def test_no_magnitude_is_plain_inference():
    plain = fmm(temperature=1).fit(X)
    held = fmm(temperature=Proximity(magnitude=0)).fit(X)
    assert_allclose(held.components_, plain.components_, rtol=1e-9, atol=1e-12)
    assert_allclose(held.history_["elbo"], plain.history_["elbo"], rtol=1e-12)
    assert_array_equal(held.temperature_path_, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_bit_identical_for_any_number_of_threads(dtype, covariance):
    Z = make_shape_mixture(5000, random_state=1).data.astype(dtype)
    options = dict(covariance=covariance, max_iter=10, prior_probability="learn")
    temperature = Proximity("kl")  # whose centre follows the learned prior
    fits = [fmm(n_jobs=n, temperature=temperature, **options).fit(Z) for n in (1, 2, 3, -1)]
    for other in fits[1:]:
        assert_array_equal(other.components_, fits[0].components_)
        assert_array_equal(other.history_["elbo"], fits[0].history_["elbo"])
        assert_array_equal(other.temperature_path_, fits[0].temperature_path_)


def test_history_and_paths():
    fitted = fmm().fit(X)
    history = fitted.history_
    assert set(history) == {"pass", "step", "temperature", "seconds", "elbo", "annealed_elbo"}
    # it constrains the way and leaves the objective as it is
    assert_array_equal(history["elbo"], history["annealed_elbo"])
    assert_array_equal(history["temperature"], fitted.temperature_path_)
    assert fitted.temperature_path_[0] > 1.5 and fitted.temperature_ == 1
    assert np.all(fitted.temperature_path_[20:] == 1)
    assert np.all(np.diff(history["elbo"][20:]) > -1e-9 * abs(history["elbo"][-1]))
    assert not hasattr(fitted, "temperature_posterior_")


def test_a_fit_does_not_converge_before_k_is_0():
    done = fmm(tol=1e-2, max_iter=200).fit(X)
    assert done.converged_ and 100 < done.n_iter_ < 200


def test_starts_callbacks_and_prediction():
    steps = []
    fitted = fmm(n_init=2, callback=lambda _, monitor: steps.append(monitor.step)).fit(X)
    assert steps == [*range(1, 41)] * 2
    assert fitted.transform(X).shape == (200, K)
    assert np.all(np.isfinite(fitted.score_samples(X)))
    single = fmm().fit(X.astype(np.float32))
    assert_allclose(single.lower_bound_, fmm().fit(X).lower_bound_, atol=0.5)


def test_clones_copies_and_searches():
    estimator = fmm(temperature=Proximity(magnitude=50.0)).fit(X)
    copy = pickle.loads(pickle.dumps(estimator))
    assert_array_equal(copy.score_samples(X), estimator.score_samples(X))
    assert clone(estimator).temperature == estimator.temperature
    search = GridSearchCV(
        fmm(temperature=Proximity(), max_iter=10), {"temperature__magnitude": [1.0, 1e3]}, cv=2
    ).fit(X)
    hottest = search.best_estimator_.temperature_path_.max()
    assert (
        search.best_params_["temperature__magnitude"]
        == search.best_estimator_.temperature.magnitude
    )
    scores = search.cv_results_["mean_test_score"]
    assert np.all(np.isfinite(scores)) and scores[0] != scores[1] and hottest > 1


def test_the_same_as_the_name():
    by_name, by_object = fmm().fit(X), fmm(temperature=Proximity()).fit(X)
    assert_array_equal(by_name.components_, by_object.components_)


@pytest.mark.parametrize("shape", [(1, 16), (3, 1)])
def test_few_data(shape):
    fitted = fmm().fit(X[: shape[0], : shape[1]])
    assert np.all(np.isfinite(fitted.components_))
    for data in (np.zeros((20, 3)), np.full((20, 3), 5.0)):
        fitted = fmm(noise_variance=0.5, init="prior").fit(data)
        assert np.all(np.isfinite(fitted.components_))


@pytest.mark.parametrize("probability", [0.3, 0.5])
@pytest.mark.parametrize("statistic", ["entropy", "kl"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_magnitude(dtype, statistic, probability):
    """However hot, 1/T stays a number that the kernels can hold, and never becomes 0."""
    fitted = fmm(
        temperature=Proximity(statistic, magnitude=1e300),
        prior_probability=probability,
        max_iter=12,
        noise_variance=0.1,
    ).fit(X.astype(dtype))
    assert np.all(np.isfinite(fitted.temperature_path_))
    if probability == 0.5:  # the start has no room: every factor is held
        assert fitted.temperature_path_[0] > 1e20
    assert np.all(np.isfinite(fitted.components_))


@pytest.mark.parametrize(
    ("estimator", "Z"),
    [
        (TemperedGaussianMixture(2, temperature=Proximity()), X),
        (TemperedLDA(2, temperature=Proximity()), np.ones((5, 4))),
    ],
    ids=["gmm", "lda"],
)
def test_other_models_refuse_it(estimator, Z):
    with pytest.raises(ValueError, match="binary factors back, and this model has none"):
        estimator.fit(Z)


def test_names_of_kinds():
    with pytest.raises(ValueError, match="'proximity'"):
        fmm(temperature="hot").fit(X)
    with pytest.raises(ValueError, match=r"'gamma' parameter of Proximity .*\(0.0, 1.0\]"):
        fmm(temperature=Proximity(gamma=2)).fit(X)


def test_the_start_has_an_energy():
    """What a sweep's statistics would give at nu = pi, and the point model's ELBO."""
    rng = np.random.RandomState(0)
    pi, means = rng.uniform(0.2, 0.8, K), rng.normal(0, 1, (K, 16))
    model = FMM(K, 16, prior_probability=pi, noise_variance=0.3)
    model.start(X, means)
    start, entropy = factors_at(pi, X)
    collected, same = collect(model.factors(), X, n_threads=1)
    assert_allclose(start.data, collected.data, rtol=1e-10)
    assert_allclose(start.pairs, collected.pairs, rtol=1e-10)
    assert entropy == pytest.approx(same)
    point = BernoulliFactorModel(X, prior_probability=pi, noise_variance=0.3)
    q = Bernoulli(np.broadcast_to(model.prior_logit()[:, None], (1, K, 200)))
    elbo = model.energy() + model.log_base_measure() + entropy
    assert_allclose(point.elbo(q, means[None]), elbo, rtol=1e-10)


def test_a_local_step_says_how_hot_each_factor_was():
    model = FMM(K, 16, prior_probability=0.3, noise_variance=0.1)
    model.start(X, np.random.RandomState(0).normal(0, 0.6, (K, 16)))
    temperature = Proximity(magnitude=9.0, gamma=1.0).plan(10, model=model)
    local = model.local_step(Batch(X, slice(0, 200)), temperature.tempering(0))
    assert local.inverse.shape == (K, 200)
    assert 0.1 - 1e-12 <= local.inverse.min() < local.inverse.max() <= 1 + 1e-12
    untempered = model.local_step(Batch(X, slice(0, 200)), temperature.tempering(9))
    assert untempered.inverse is None
    limits = temperature.tempering(0).limits
    for name in ("centre", "lower", "upper"):  # the kernel would read past their ends
        short = limits._replace(**{name: getattr(limits, name)[..., :-1]})
        with pytest.raises(ValueError, match=r"Limits of factors must have the shapes \(8,\), "):
            model.local_step(Batch(X, slice(0, 200)), Tempering(limits=short))


def test_a_fitted_estimator_holds_nothing_of_the_size_of_the_data():
    few, many = (fmm(max_iter=5).fit(np.tile(X, (n, 1))) for n in (1, 9))
    assert len(pickle.dumps(many)) < 1.1 * len(pickle.dumps(few))
