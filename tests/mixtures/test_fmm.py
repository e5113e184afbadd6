"""TemperedFMM as a user of scikit-learn meets it."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr, expit
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_iris
from sklearn.preprocessing import normalize, scale
from threadpoolctl import threadpool_info, threadpool_limits

from annealvi import Proximity, TemperedFMM, Variational
from annealvi.datasets import make_shape_mixture
from annealvi.mixtures.fmm import _with_sampled_directions
from annealvi.model import Batch, Tempering
from annealvi.models.fmm import FMM, collect, factors_at
from annealvi.proximity import Bernoulli, BernoulliFactorModel
from tests.mixtures.fits import SHAPES, X, all_finite, bits, fmm
from tests.proximity.bisection import bisected


@pytest.mark.slow
@pytest.mark.parametrize("temperature", ["annealed", Proximity("kl")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_bit_identical_for_any_number_of_threads(dtype, covariance, temperature):
    """The centre of Proximity("kl") follows the learned prior."""
    Z = make_shape_mixture(5000, random_state=1).data.astype(dtype)
    options = dict(covariance=covariance, temperature=temperature, prior_probability="learn")
    fits = [fmm(n_jobs=n, max_iter=10, **options).fit(Z) for n in (1, 2, 3, -1)]
    for other in fits[1:]:
        assert bits(other) == bits(fits[0])
        assert_array_equal(other.transform(Z), fits[0].transform(Z))
        assert_array_equal(other.score_samples(Z), fits[0].score_samples(Z))


def test_float32_and_integers():
    single = fmm(temperature=1).fit(X.astype(np.float32))
    double = fmm(temperature=1).fit(X)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.components_.dtype == np.float64
    assert_allclose(single.components_, double.components_, atol=5e-3)
    images = np.clip(X * 100 + 50, 0, 255).astype(np.uint8)
    assert_array_equal(fmm().fit(images).components_, fmm().fit(images.astype(float)).components_)


def test_what_float32_cannot_resolve_is_said():
    with pytest.warns(UserWarning, match=r"mean square of X, .* float32. Centre X, or"):
        fmm().fit((X + 1000).astype(np.float32))


def test_transform_and_its_inverse():
    estimator = fmm().fit(X)
    Z = estimator.transform(X)
    assert Z.shape == (200, 8) and Z.min() >= 0 and Z.max() <= 1
    assert_array_equal(Z, fmm().fit_transform(X))
    again = estimator.inverse_transform(Z)
    assert_allclose(again, Z @ estimator.components_)
    assert np.mean((again - X) ** 2) < 0.3 * np.mean((X - X.mean(axis=0)) ** 2)
    assert list(estimator.get_feature_names_out())[:2] == ["temperedfmm0", "temperedfmm1"]
    frame = fmm().set_output(transform="pandas").fit(X).transform(X)
    assert list(frame.columns) == list(estimator.get_feature_names_out())


def test_score():
    estimator = fmm().fit(X)
    samples = estimator.score_samples(X)
    assert samples.shape == (200,)
    assert estimator.score(X) == np.mean(samples)
    # with the components' part it is the ELBO: here not at the fit's own nu, but a better one
    part = estimator._state.model.global_bound() / 200
    assert -0.02 < estimator.score(X) + part - estimator.lower_bound_ < 1
    assert estimator.score(X + 1) < estimator.score(X)


def test_samples_come_from_the_model():
    estimator = fmm(noise_variance=0.1, prior_probability=0.3).fit(X)
    data, factors = estimator.sample(20_000)
    assert data.shape == (20_000, 16) and factors.shape == (20_000, 8)
    assert set(np.unique(factors)) == {0.0, 1.0}
    assert_allclose(factors.mean(axis=0), 0.3, atol=0.02)
    assert_allclose(np.var(data - factors @ estimator.components_, axis=0), 0.1, atol=0.005)
    assert_array_equal(estimator.sample(5)[0], estimator.sample(5)[0])  # random_state is a seed


def test_predictive_score():
    estimator, observed = fmm().fit(X), np.arange(16) % 2 == 0
    scores = estimator.predictive_score(X, observed, per_sample=True)
    assert estimator.predictive_score(X, observed.tolist()) == np.mean(scores)
    # better than a Gaussian that knows the hidden pixels' own mean and covariance
    covariance = np.cov(X[:, ~observed].T)
    gaussian = -0.5 * (8 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + 8)
    assert np.mean(scores) > gaussian + 0.5


def test_learned_noise_and_probability():
    big = make_shape_mixture(2000, prior_probability=0.2, noise_variance=0.05, random_state=0)
    estimator = fmm(prior_probability="learn", init=big.components, temperature=1).fit(big.data)
    assert estimator.noise_variance_ == pytest.approx(0.05, rel=0.1)
    assert_allclose(estimator.prior_probability_, 0.2, atol=0.05)
    given = fmm(prior_probability=np.linspace(0.1, 0.5, 8), noise_variance=0.3).fit(X)
    assert_array_equal(given.prior_probability_, np.linspace(0.1, 0.5, 8))
    assert given.noise_variance_ == 0.3


def test_starts():
    given = fmm(init=SHAPES.components, temperature=1, max_iter=5).fit(X)
    assert_allclose(given.components_, SHAPES.components, atol=0.25)
    inits = ("random", "prior", "data", "kmeans++")
    starts = [fmm(init=init, temperature=1, max_iter=1).fit(X).components_ for init in inits]
    assert min(np.abs(a - b).max() for a, b in combinations(starts, 2)) > 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_seeds_point_to_sampled_rows(dtype):
    drawn, rng = np.random.RandomState(1).standard_normal((8, 16)), np.random.RandomState
    seeds = _with_sampled_directions(drawn.copy(), X.astype(dtype), 0.5, rng(0))
    expected = kmeans_plusplus(X.astype(dtype), 8, random_state=rng(0))[0]
    assert_allclose(seeds, 0.5 * normalize(expected.astype(float)))
    many = np.random.RandomState(0).standard_normal((2500, 3))  # of which some are looked at
    seeds = _with_sampled_directions(np.zeros((4, 3)), many, 1.0, rng(0))
    assert_allclose((normalize(seeds) @ normalize(many).T).max(axis=1), 1)
    few = np.repeat(np.concatenate([np.zeros((1, 16)), X[:3]]), 5, axis=0).astype(dtype)
    seeds = _with_sampled_directions(drawn.copy(), few, 0.5, rng(0))
    kept = np.all(seeds == drawn, axis=1)
    assert kept.sum() == 5
    assert_allclose((normalize(seeds[~kept]) @ normalize(X[:3]).T).max(axis=0), 1, rtol=1e-6)
    for data in (few, np.zeros((20, 16), dtype), np.full((20, 16), 5.0, dtype)):
        assert all_finite(fmm(init="kmeans++", temperature=1, noise_variance=0.1).fit(data), data)


def test_components_survive_in_many_dimensions():
    """Draws from the prior are far longer than the noise there, and switch themselves off."""
    rng = np.random.RandomState(0)
    patterns = rng.standard_normal((4, 2000))
    Z = (rng.random_sample((600, 4)) < 0.4) @ patterns + rng.standard_normal((600, 2000))
    for temperature in (1, "annealed"):
        estimator = fmm(n_components=4, temperature=temperature).fit(Z)
        assert np.all(np.mean(estimator.components_**2, axis=1) > 0.1)
    assert estimator.temperature_path_[0] == 1.5  # few data for the dimensions: mild
    with pytest.warns(UserWarning, match=r"All 4 components are switched off: .* init='random'"):
        fmm(n_components=4, init="prior", random_state=1).fit(Z)


def test_the_covariance_of_components():
    diagonal, full = (fmm(covariance=kind).fit(X) for kind in ("diag", "full"))
    for fitted in (diagonal, full):
        variances = np.diag(fitted.component_covariance_)
        assert_array_equal(variances, fitted.component_variances_)
        off = np.abs(fitted.component_covariance_ - np.diag(variances)).max()
        assert (off > 0) == (fitted is full)


def test_a_temperature_learned_from_the_data():
    estimator = fmm(noise_variance=0.1, temperature="variational", max_iter=200).fit(X)
    path, tempered = estimator.temperature_path_, estimator.history_["tempered_elbo"]
    assert path[0] > 2.5 and estimator.temperature_posterior_.shape == (100,)
    assert estimator.temperature_posterior_.sum() == pytest.approx(1)
    assert np.all(path[-50:] == 1) and path[-51] != 1
    assert np.all(np.isnan(tempered[-50:])) and np.all(np.isfinite(tempered[:-50]))


def test_the_learned_temperature_is_the_residual_over_the_assumed_noise():
    """With half of the real noise assumed, T settles near 2 while it is learned."""
    temperature = Variational(t_max=100, damping=0.1, final_fraction=0)
    estimator = fmm(init=SHAPES.components, noise_variance=0.05, temperature=temperature)
    assert estimator.fit(X).temperature_ == pytest.approx(2, rel=0.15)


def test_fits_in_several_threads_at_once():
    """The hold on BLAS is of the whole process: it must last for all, and end with the last."""
    Z = np.random.RandomState(0).standard_normal((2000, 300))
    make = lambda: fmm(n_components=20, max_iter=8, noise_variance=1.0)  # noqa: E731
    alone = make().fit(Z).components_
    before = [library["num_threads"] for library in threadpool_info()]
    with ThreadPoolExecutor(3) as pool:
        fits = list(pool.map(lambda _: make().fit(Z).components_, range(6)))
    with threadpool_limits(2), ThreadPoolExecutor(1) as pool:  # held by this thread
        fits.append(pool.submit(lambda: make().fit(Z).components_).result())
    for components in fits:
        assert_array_equal(components, alone)
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_heat_does_not_make_components_vanish():
    """Without the small moves they shrink to nothing here and the fit ends as noise."""
    Z = scale(load_iris().data)
    plain, annealed = (fmm(n_components=4, temperature=T, max_iter=200) for T in (1, "annealed"))
    assert annealed.fit(Z).lower_bound_ > plain.fit(Z).lower_bound_ - 0.05  # or -5.9


def test_attributes_are_copies():
    estimator = fmm(max_iter=2).fit(X)
    Z = estimator.transform(X)
    estimator.components_[:] = 5
    with pytest.raises(AttributeError):
        estimator.components_ = np.zeros((8, 16))
    assert_array_equal(estimator.transform(X), Z)


def test_a_temperature_that_never_settles_does_not_ask_for_more_iterations():
    temperature = Variational.as_printed()
    estimator = fmm(noise_variance=0.1, temperature=temperature, tol=1e-9, max_iter=20).fit(X)
    assert not estimator.converged_  # and no warning


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("temperature", [1, "annealed", "proximity"])
def test_starts_side_by_side_are_those_in_turn(temperature):
    parameters = dict(noise_variance=0.1, temperature=temperature, max_iter=15, n_init=4)
    one, two = (fmm(n_jobs=n_jobs, **parameters).fit(X[:80]) for n_jobs in (1, 2))
    assert bits(one) == bits(two)


def test_starts_that_wait_have_no_room_for_the_data():
    Z = np.tile(X, (20, 1))

    def peak(n_init):
        estimator = fmm(temperature=1, max_iter=2, n_init=n_init, n_jobs=2)
        tracemalloc.start()
        estimator.fit(Z)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(12) < 4 * peak(1)  # two at a time, and what is left of the best


def test_data_that_float32_cannot_hold():
    points = np.array([[0.1, -1.0, 1e100], [0.2, -1.0, 1e100]])
    huge = fmm(noise_variance="learn", n_components=2).fit(points)
    data = huge.inverse_transform(np.ones((2, len(huge.components_)), np.float32))
    assert data.dtype == np.float32 and np.all(np.isfinite(data))


def near(**parameters):
    return fmm(**(dict(temperature="proximity", max_iter=40) | parameters))


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
            T = bisected(a, centre, average[:, j], 1 + k)
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
def test_proximity_against_plain_numpy_and_bisection(statistic):
    pi, means = 0.3, np.random.RandomState(0).normal(0, 0.6, (3, 16))
    expected, path = naive_fit(X[:60], means, pi, 0.2, 0.35, 12, 30.0, 1e-3, statistic)
    temperature = Proximity(statistic, magnitude=30.0, gamma=1e-3, decay=1.0)
    options = dict(prior_probability=pi, init=means, temperature=temperature, max_iter=12, tol=0)
    fitted = TemperedFMM(3, noise_variance=0.2, component_variance=0.35, **options).fit(X[:60])
    assert_allclose(fitted.components_, expected, atol=5e-5)  # limits are good to 1e-6
    assert_allclose(fitted.temperature_path_, path, rtol=1e-4)
    assert path[0] > 3 and fitted.temperature_path_[6:].tolist() == [1.0] * 6


def test_proximity_constrains_the_way():
    fitted = near().fit(X)
    history = fitted.history_
    assert set(history) == {"pass", "step", "temperature", "seconds", "elbo", "annealed_elbo"}
    # it constrains the way and leaves the objective as it is
    assert_array_equal(history["elbo"], history["annealed_elbo"])
    assert_array_equal(history["temperature"], fitted.temperature_path_)
    assert fitted.temperature_path_[0] > 1.5 and fitted.temperature_ == 1
    assert np.all(fitted.temperature_path_[20:] == 1)
    assert np.all(np.diff(history["elbo"][20:]) > -1e-9 * abs(history["elbo"][-1]))
    assert not hasattr(fitted, "temperature_posterior_")
    done = near(tol=1e-2, max_iter=200).fit(X)
    assert done.converged_ and 100 < done.n_iter_ < 200  # not before k is 0


@pytest.mark.parametrize("probability", [0.3, 0.5])
@pytest.mark.parametrize("statistic", ["entropy", "kl"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_proximity_of_any_magnitude(dtype, statistic, probability):
    """However hot, 1/T stays a number that the kernels can hold, and never becomes 0."""
    temperature = Proximity(statistic, magnitude=1e300)
    options = dict(prior_probability=probability, max_iter=12, noise_variance=0.1)
    fitted = near(temperature=temperature, **options).fit(X.astype(dtype))
    assert np.all(np.isfinite(fitted.temperature_path_))
    if probability == 0.5:  # the start has no room: every factor is held
        assert fitted.temperature_path_[0] > 1e20
    assert np.all(np.isfinite(fitted.components_))


def test_the_start_has_an_energy():
    """What a sweep's statistics would give at nu = pi, and the point model's ELBO."""
    rng = np.random.RandomState(0)
    pi, means = rng.uniform(0.2, 0.8, 8), rng.normal(0, 1, (8, 16))
    model = FMM(8, 16, prior_probability=pi, noise_variance=0.3)
    model.start(X, means)
    start, entropy = factors_at(pi, X)
    collected, same = collect(model.factors(), X, n_threads=1)
    assert_allclose(start.data, collected.data, rtol=1e-10)
    assert_allclose(start.pairs, collected.pairs, rtol=1e-10)
    assert entropy == pytest.approx(same)
    point = BernoulliFactorModel(X, prior_probability=pi, noise_variance=0.3)
    q = Bernoulli(np.broadcast_to(model.prior_logit()[:, None], (1, 8, 200)))
    elbo = model.energy() + model.log_base_measure() + entropy
    assert_allclose(point.elbo(q, means[None]), elbo, rtol=1e-10)


def test_a_local_step_says_how_hot_each_factor_was():
    model = FMM(8, 16, prior_probability=0.3, noise_variance=0.1)
    model.start(X, np.random.RandomState(0).normal(0, 0.6, (8, 16)))
    temperature = Proximity(magnitude=9.0, gamma=1.0).plan(10, model=model)
    local = model.local_step(Batch(X, slice(0, 200)), temperature.tempering(0))
    assert local.inverse.shape == (8, 200)
    assert 0.1 - 1e-12 <= local.inverse.min() < local.inverse.max() <= 1 + 1e-12
    assert model.local_step(Batch(X, slice(0, 200)), temperature.tempering(9)).inverse is None
    limits = temperature.tempering(0).limits
    for name in ("centre", "lower", "upper"):  # the kernel would read past their ends
        short = limits._replace(**{name: getattr(limits, name)[..., :-1]})
        with pytest.raises(ValueError, match=r"FactorLimits must have the shapes \(8,\), "):
            model.local_step(Batch(X, slice(0, 200)), Tempering(limits=short))


def test_a_fitted_estimator_holds_nothing_of_the_size_of_the_data():
    few, many = (near(max_iter=5).fit(np.tile(X, (n, 1))) for n in (1, 9))
    assert len(pickle.dumps(many)) < 1.1 * len(pickle.dumps(few))
