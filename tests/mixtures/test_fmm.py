"""TemperedFMM as a user of scikit-learn meets it."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_iris
from sklearn.preprocessing import normalize, scale
from threadpoolctl import threadpool_info, threadpool_limits

from annealvi import Annealed, TemperedFMM, Variational
from annealvi.datasets import make_shape_mixture
from annealvi.mixtures.fmm import _with_sampled_directions
from tests.mixtures.fits import SHAPES, X, fitted_arrays, fmm


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_bit_identical_for_any_number_of_threads(dtype, covariance):
    Z = make_shape_mixture(5000, random_state=1).data.astype(dtype)
    fits = [
        fmm(n_jobs=n, covariance=covariance, max_iter=12, prior_probability="learn").fit(Z)
        for n in (1, 2, 3, -1)
    ]
    for other in fits[1:]:
        assert_array_equal(other.components_, fits[0].components_)
        assert_array_equal(other.history_["elbo"], fits[0].history_["elbo"])
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


def test_transform_does_not_depend_on_the_company():
    estimator = fmm().fit(X)
    one_by_one = np.concatenate([estimator.transform(row[None]) for row in X[:30]])
    assert_allclose(one_by_one, estimator.transform(X)[:30], atol=1e-8)


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


def test_predictive_score_prefers_the_truth():
    fitted = fmm(temperature=Annealed(10, length=0.5, shape="exponential"), max_iter=150)
    fitted.fit(make_shape_mixture(1000, random_state=0).data)
    new = make_shape_mixture(1000, random_state=0)
    observed = np.arange(16) % 2 == 0
    scores = fitted.predictive_score(new.data, observed, per_sample=True)
    assert scores.shape == (1000,)
    assert fitted.predictive_score(new.data, observed) == np.mean(scores)
    assert fitted.predictive_score(new.data, observed.tolist()) == np.mean(scores)
    # better than a Gaussian that knows the hidden pixels' own mean and covariance
    hidden = new.data[:, ~observed]
    covariance = np.cov(hidden.T)
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
    truth = SHAPES.components
    given = fmm(init=truth, temperature=1, max_iter=5).fit(X)
    assert_allclose(given.components_, truth, atol=0.25)
    inits = ("random", "prior", "data", "kmeans++")
    starts = [fmm(init=init, temperature=1, max_iter=1).fit(X).components_ for init in inits]
    assert min(np.abs(a - b).max() for a, b in combinations(starts, 2)) > 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_seeds_point_to_sampled_rows(dtype):
    Z = X.astype(dtype)
    drawn = np.random.RandomState(1).standard_normal((8, 16))
    seeds = _with_sampled_directions(drawn.copy(), Z, 0.5, np.random.RandomState(0))
    again = _with_sampled_directions(drawn.copy(), Z, 0.5, np.random.RandomState(0))
    assert_array_equal(seeds, again)
    assert_allclose(np.linalg.norm(seeds, axis=1), 0.5)
    expected = kmeans_plusplus(Z, 8, random_state=np.random.RandomState(0))[0]
    assert_allclose(seeds, 0.5 * normalize(expected.astype(float)))
    first, second = (fmm(init="kmeans++", max_iter=3).fit(Z) for _ in range(2))
    assert_array_equal(first.components_, second.components_)


def test_seeds_of_many_rows_come_from_some_of_them():
    Z = np.random.RandomState(0).standard_normal((2500, 3))
    seeds = _with_sampled_directions(np.zeros((4, 3)), Z, 1.0, np.random.RandomState(0))
    cosines = normalize(seeds) @ normalize(Z).T
    assert_allclose(cosines.max(axis=1), 1)


def test_seeds_where_distinct_rows_are_few():
    drawn = np.random.RandomState(1).standard_normal((8, 16))
    rows = np.concatenate([np.zeros((1, 16)), X[:3]])
    Z = np.repeat(rows, 5, axis=0)
    seeds = _with_sampled_directions(drawn.copy(), Z, 0.5, np.random.RandomState(0))
    kept = np.all(seeds == drawn, axis=1)
    assert kept.sum() == 5
    cosines = normalize(seeds[~kept]) @ normalize(X[:3]).T
    assert_allclose(np.sort(cosines.max(axis=0)), 1)
    for data in (Z, Z.astype(np.float32), np.zeros((20, 16)), np.full((20, 16), 5.0)):
        estimator = fmm(init="kmeans++", temperature=1, noise_variance=0.1).fit(data)
        assert all(np.all(np.isfinite(array)) for array in fitted_arrays(estimator))


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


def test_the_variances_of_components_shrink_with_data():
    few, many = (fmm().fit(make_shape_mixture(n, random_state=0).data) for n in (50, 5000))
    assert np.all(many.component_variances_ < 0.1 * few.component_variances_)
    assert_array_equal(np.diag(many.component_covariance_), many.component_variances_)
    full = fmm(covariance="full").fit(X)
    off = full.component_covariance_ - np.diag(full.component_variances_)
    assert np.abs(off).max() > 0


@pytest.mark.parametrize(
    "temperature", ["variational", Variational(t_max=100), Variational.as_printed()]
)
def test_a_temperature_learned_from_the_data(temperature):
    estimator = fmm(noise_variance=0.1, temperature=temperature, max_iter=200).fit(X)
    path = estimator.temperature_path_
    assert path[0] > 2.5 and estimator.temperature_posterior_.shape == (100,)
    assert estimator.temperature_posterior_.sum() == pytest.approx(1)
    tempered = estimator.history_["tempered_elbo"]
    if temperature == Variational.as_printed():
        assert np.all(np.isfinite(tempered))
        assert np.min(np.diff(tempered)) > -1e-9 * abs(tempered[-1])  # Eq. 5 in T as well
    else:
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
    estimator = fmm().fit(X)
    Z = estimator.transform(X)
    estimator.components_ *= 5
    assert_array_equal(estimator.transform(X), Z)


def test_a_temperature_that_never_settles_does_not_ask_for_more_iterations():
    estimator = fmm(
        noise_variance=0.1, temperature=Variational.as_printed(), tol=1e-9, max_iter=20
    ).fit(X)
    assert not estimator.converged_  # and no warning


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("temperature", [1, "annealed"])
def test_starts_side_by_side_are_those_in_turn(temperature):
    X = make_shape_mixture(80, random_state=0).data

    def fit(n_jobs):
        parameters = {"noise_variance": 0.1, "temperature": temperature, "max_iter": 15}
        return TemperedFMM(4, n_init=4, random_state=0, n_jobs=n_jobs, **parameters).fit(X)

    one, two = fit(1), fit(2)
    assert_array_equal(one.components_, two.components_)
    assert_array_equal(one.history_["elbo"], two.history_["elbo"])
    assert one.lower_bound_ == two.lower_bound_


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


def test_fractions_as_variances():
    numbers = dict(component_variance=1 / 3, noise_variance=1 / 4)
    fractions = {name: Fraction(value).limit_denominator(9) for name, value in numbers.items()}
    one, other = (fmm(**given).fit(X) for given in (numbers, fractions))
    assert_array_equal(one.components_, other.components_)


def test_data_that_float32_cannot_hold():
    huge = fmm(noise_variance="learn", n_components=2).fit(
        np.array([[0.1, -1.0, 1e100], [0.2, -1.0, 1e100]])
    )
    data = huge.inverse_transform(np.ones((2, len(huge.components_)), np.float32))
    assert data.dtype == np.float32 and np.all(np.isfinite(data))
