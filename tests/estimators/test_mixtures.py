"""TemperedFMM and TemperedGaussianMixture as a user of scikit-learn meets them."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import normalize, scale
from threadpoolctl import threadpool_info, threadpool_limits

from annealvi import Annealed, Fixed, TemperedFMM, TemperedGaussianMixture, Variational
from annealvi.datasets import make_shape_mixture
from annealvi.mixtures.fmm import _with_sampled_directions

SHAPES = make_shape_mixture(200, random_state=0)
X = SHAPES.data
BLOBS = np.concatenate([np.random.RandomState(k).randn(40, 3) + 6 * k for k in range(3)])


def fmm(**parameters):
    return TemperedFMM(**(dict(n_components=8, random_state=0, max_iter=60, tol=0) | parameters))


def gmm(**parameters):
    return TemperedGaussianMixture(
        **(dict(n_components=3, random_state=0, max_iter=60, tol=0) | parameters)
    )


BOTH = pytest.mark.parametrize(("make", "Z"), [(fmm, X), (gmm, BLOBS)], ids=["fmm", "gmm"])


def fitted_arrays(estimator):
    names = ("components_", "component_covariance_", "means_", "weights_", "covariances_")
    return [getattr(estimator, name) for name in names if hasattr(estimator, name)]


# ------------------------------------------------------------------ both of them


@BOTH
def test_results_repeat(make, Z):
    first, second = make().fit(Z), make().fit(Z)
    for a, b in zip(fitted_arrays(first), fitted_arrays(second), strict=True):
        assert_array_equal(a, b)
    if make is fmm:
        assert np.abs(make(random_state=1).fit(Z).components_ - first.components_).max() > 1e-3


@BOTH
def test_the_best_start_is_kept(make, Z):
    options = dict(temperature=1, max_iter=30)
    if make is gmm:
        options |= dict(init_params="random_from_data", max_iter=2)
    rng = np.random.RandomState(3)
    singles = [make(random_state=rng, **options).fit(Z).lower_bound_ for _ in range(4)]
    best = make(random_state=np.random.RandomState(3), n_init=4, **options).fit(Z)
    assert np.ptp(singles) > 1e-3
    assert best.lower_bound_ == max(singles)


@BOTH
def test_history_and_paths(make, Z):
    estimator = make(temperature=Annealed(4, length=0.5, shape="linear"), max_iter=20).fit(Z)
    history = estimator.history_
    assert set(history) == {"pass", "step", "temperature", "seconds", "elbo", "annealed_elbo"}
    assert_array_equal(history["step"], np.arange(1, 21))
    assert_allclose(history["temperature"], [4 - 3 * t / 10 for t in range(10)] + [1] * 10)
    assert_array_equal(estimator.temperature_path_, history["temperature"])
    assert estimator.temperature_ == 1 and estimator.n_iter_ == 20
    assert estimator.lower_bound_ == history["elbo"][-1] / len(Z)
    assert_array_equal(history["elbo"][10:], history["annealed_elbo"][10:])
    assert np.all(np.diff(history["seconds"]) > 0)


@BOTH
def test_fixed_temperatures_never_lower_their_objective(make, Z):
    for form in ("likelihood", "posterior"):
        history = make(temperature=Fixed(3.0, form=form), max_iter=40).fit(Z).history_
        bound = history["annealed_elbo"]
        assert np.min(np.diff(bound) / np.abs(bound[1:])) >= -1e-9
        assert not np.allclose(bound, history["elbo"])


@BOTH
def test_stopping(make, Z):
    done = make(tol=1e-4, max_iter=300).fit(Z)
    assert done.converged_ and 150 < done.n_iter_ < 300  # not before T has come to 1
    assert done.temperature_path_[-2:].tolist() == [1.0, 1.0]
    change = np.diff(done.history_["elbo"][-3:]) / len(Z)
    assert abs(change[1]) < 1e-4
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-12 after max_iter=4"):
        cut = make(tol=1e-12, max_iter=4).fit(Z)
    assert not cut.converged_ and cut.n_iter_ == 4


@BOTH
def test_callbacks(make, Z):
    seen = []

    def callback(estimator, monitor):
        monitor.record(own=estimator.score(Z))
        seen.append(estimator.n_iter_)
        if monitor.step == 5:
            raise StopIteration

    estimator = make(callback=callback, n_init=3, tol=1e-3).fit(Z)
    assert seen == [1, 2, 3, 4, 5]  # it ends the fit, not one start of it
    assert estimator.history_["own"].shape == (5,)
    assert estimator.history_["own"][-1] == estimator.score(Z)


@BOTH
def test_an_interrupted_fit_leaves_what_it_has(make, Z):
    def callback(estimator, monitor):
        if monitor.step == 4:
            raise KeyboardInterrupt

    estimator = make(callback=callback)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(Z)
    assert estimator.n_iter_ == 4
    assert np.isfinite(estimator.score(Z))


@BOTH
def test_clones_copies_and_searches(make, Z):
    estimator = make(temperature=Annealed(3, length=0.5)).fit(Z)
    copy = pickle.loads(pickle.dumps(estimator))
    assert_array_equal(copy.score_samples(Z), estimator.score_samples(Z))
    assert not hasattr(clone(estimator), "lower_bound_")
    search = GridSearchCV(
        make(temperature=Annealed(length=0.5), max_iter=20),
        {"temperature__start": [2.0, 5.0]},
        cv=2,
    ).fit(Z)
    assert search.best_params_["temperature__start"] in (2.0, 5.0)
    starts = [clone(search.estimator).set_params(temperature__start=T).fit(Z) for T in (2.0, 5.0)]
    assert [e.temperature_path_[0] for e in starts] == [2.0, 5.0]


@BOTH
def test_verbose_prints_a_line_an_iteration(make, Z, capsys):
    make(verbose=1, max_iter=7, n_init=2).fit(Z)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 14
    assert lines[0].startswith("start 1, iteration 1: T ")
    assert lines[-1].startswith("start 2, iteration 7: T 1, ELBO a sample -")


@BOTH
def test_a_failed_fit_changes_nothing(make, Z):
    estimator = make().fit(Z)
    before = dict(vars(estimator))
    estimator.temperature = "cold"
    with pytest.raises(ValueError, match="temperature"):
        estimator.fit(Z[:, :2])
    estimator.temperature = before["temperature"]
    assert estimator.n_features_in_ == Z.shape[1]
    assert vars(estimator).keys() == before.keys()


@BOTH
@pytest.mark.parametrize("n_samples", [1, 2, 5])
def test_few_samples(make, Z, n_samples):
    # the mixture's other starts need a datum a component
    options = dict(init_params="random") if make is gmm else {}
    estimator = make(**options).fit(Z[:n_samples])
    assert np.all(np.isfinite(estimator.score_samples(Z[:n_samples])))
    assert all(np.all(np.isfinite(array)) for array in fitted_arrays(estimator))


@BOTH
@pytest.mark.parametrize("temperature", [1, "annealed"])
def test_one_dimension_and_constant_ones(make, Z, temperature):
    column = make(temperature=temperature).fit(Z[:, :1])
    assert np.all(np.isfinite(column.score_samples(Z[:, :1])))
    flat = Z.copy()
    flat[:, 0], flat[:, 1] = 0, 7
    for data in (flat, np.zeros((20, 3)), np.full((20, 3), 5.0)):
        estimator = make(
            temperature=temperature, **({} if make is fmm else dict(init_params="random"))
        )
        estimator.fit(data)
        assert np.all(np.isfinite(estimator.score_samples(data)))
        assert all(np.all(np.isfinite(array)) for array in fitted_arrays(estimator))


# ------------------------------------------------------------------ the factorial mixture


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
    part = estimator._model.component_bound() / 200
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


# ------------------------------------------------------------------ the Gaussian mixture


def test_blobs_are_found():
    estimator = gmm(max_iter=200).fit(BLOBS)
    order = np.argsort(estimator.means_[:, 0])
    assert_allclose(estimator.means_[order], np.arange(3)[:, None] * np.full(3, 6.0), atol=0.6)
    assert_allclose(estimator.weights_, 1 / 3, atol=0.02)
    labels = estimator.predict(BLOBS)
    assert_array_equal(labels, gmm(max_iter=200).fit_predict(BLOBS))
    assert all(len(set(labels[40 * k : 40 * (k + 1)])) == 1 for k in range(3))
    probability = estimator.predict_proba(BLOBS)
    assert_allclose(probability.sum(axis=1), 1)
    assert_array_equal(probability.argmax(axis=1), labels)
    assert estimator.score(BLOBS) == np.mean(estimator.score_samples(BLOBS))


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_shapes_of_attributes(covariance_type):
    estimator = gmm(covariance_type=covariance_type).fit(BLOBS)
    shape = (3, 3) if covariance_type == "diag" else (3,)
    assert estimator.covariances_.shape == estimator.precisions_.shape == shape
    assert_allclose(estimator.covariances_ * estimator.precisions_, 1)
    assert estimator.weight_concentration_.shape == estimator.degrees_of_freedom_.shape == (3,)
    assert estimator.mean_precision_.shape == (3,)
    known = gmm(covariance_type=covariance_type, covariances=1.0, weights=np.ones(3) / 3).fit(BLOBS)
    assert_array_equal(known.covariances_, np.ones(shape))
    assert not hasattr(known, "degrees_of_freedom_") and not hasattr(known, "weight_concentration_")


def test_samples_of_a_mixture():
    estimator = gmm(max_iter=200).fit(BLOBS)
    data, labels = estimator.sample(30_000)
    for k in range(3):
        assert_allclose(data[labels == k].mean(axis=0), estimator.means_[k], atol=0.06)
        assert_allclose(data[labels == k].var(axis=0), estimator.covariances_[k], rtol=0.06)
    assert_allclose(np.bincount(labels) / 30_000, estimator.weights_, atol=0.01)


@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_initial_responsibilities(init_params):
    assert np.isfinite(gmm(init_params=init_params).fit(BLOBS).lower_bound_)


def test_seeds_of_a_mixture():
    """Each blob gets one of them; equal data may repeat them."""
    labels = np.repeat(np.arange(3), 40)
    first, second = (
        gmm(init_params="k-means++", temperature=1, random_state=1).fit(BLOBS) for _ in range(2)
    )
    assert adjusted_rand_score(labels, first.predict(BLOBS)) == 1
    assert_array_equal(first.means_, second.means_)
    for data in (np.zeros((20, 3)), np.full((20, 3), 5.0), np.repeat(BLOBS[:2], 5, axis=0)):
        estimator = gmm(init_params="k-means++", temperature=1).fit(data)
        assert all(np.all(np.isfinite(array)) for array in fitted_arrays(estimator))


def test_means_init_is_where_the_fit_starts():
    means = np.array([[12.0] * 3, [0.0] * 3, [6.0] * 3])
    estimator = gmm(means_init=means, temperature=1, max_iter=3).fit(BLOBS)
    assert_allclose(estimator.means_, means, atol=0.7)


def test_annealing_from_far_above_does_not_leave_one_component():
    """Without the small moves while T falls, components that heat made equal stay equal."""
    for start in (20.0, 200.0):
        hot = gmm(temperature=Annealed(start, length=0.5), max_iter=200).fit(BLOBS)
        assert len(set(hot.predict(BLOBS))) == 3
        assert hot.lower_bound_ == pytest.approx(
            gmm(max_iter=200).fit(BLOBS).lower_bound_, abs=0.05
        )


@pytest.mark.parametrize("weights", [None, np.array([0.2, 0.3, 0.5])])
def test_a_mixture_at_a_learned_temperature(weights):
    estimator = gmm(covariances=1.0, weights=weights, temperature="variational", max_iter=200)
    estimator.fit(BLOBS)
    assert estimator.temperature_path_[0] == pytest.approx(
        7 * np.linalg.norm(BLOBS - BLOBS.mean(axis=0), 2) ** 2 / len(BLOBS)
    )
    assert estimator.temperature_ == 1
    assert len(set(estimator.predict(BLOBS))) == 3


# ------------------------------------------------------------------ what a review found


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


@pytest.mark.parametrize(
    ("make", "Z", "change", "bad"),
    [
        (gmm, BLOBS, {}, np.ones((2, 5))),  # fewer than n_components
        (fmm, X, dict(temperature=Annealed(passes=100)), np.ones((20, 5))),
        (
            gmm,
            np.tile(BLOBS, 4),
            dict(temperature=Annealed(100, form="posterior"), covariance_type="spherical"),
            np.tile(BLOBS, 4),
        ),
        (gmm, BLOBS, dict(mean_prior=[1e160] * 3), BLOBS),
    ],
)
def test_a_fit_that_fails_late_changes_nothing(make, Z, change, bad):
    estimator = make().fit(Z)
    scores, before = estimator.score_samples(Z), dict(vars(estimator))
    with pytest.raises(ValueError), np.errstate(all="ignore"):
        estimator.set_params(**change).fit(bad)
    assert estimator.n_features_in_ == Z.shape[1]
    assert vars(estimator).keys() == before.keys()
    assert_array_equal(estimator.score_samples(Z), scores)
    fresh = make(**change)
    with pytest.raises(ValueError), np.errstate(all="ignore"):
        fresh.fit(bad)
    assert not hasattr(fresh, "n_iter_") and not hasattr(fresh, "history_")


@BOTH
def test_an_error_of_a_callback_leaves_what_there_is(make, Z):
    def callback(estimator, monitor):
        if monitor.step == 3:
            raise RuntimeError("mine")

    estimator = make(callback=callback)
    with pytest.raises(RuntimeError, match="mine"):
        estimator.fit(Z)
    assert estimator.n_iter_ == 3 and len(estimator.history_["elbo"]) == 3
    assert np.isfinite(estimator.score(Z))
    largest = max(v.size for v in vars(estimator._model).values() if isinstance(v, np.ndarray))
    assert largest <= max(estimator.n_features_in_, 8) * 8  # nothing of the size of the data


def test_a_prior_mean_far_from_the_data():
    estimator = gmm(mean_prior=[1e8] * 3, max_iter=100).fit(BLOBS)
    assert np.isfinite(estimator.lower_bound_)
    assert np.all(np.isfinite(estimator.covariances_)) and np.all(estimator.covariances_ > 0)


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
