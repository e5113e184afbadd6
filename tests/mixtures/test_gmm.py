"""TemperedGaussianMixture as a user of scikit-learn meets it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

from annealvi import Annealed, TemperedGaussianMixture
from annealvi.mixtures import gmm as mixtures
from tests.mixtures.fits import BLOBS, all_finite, gmm

INITS = ("kmeans", "k-means++", "random", "random_from_data")


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


def test_seeds_of_a_mixture():
    """Each blob gets one of them; equal data may repeat them."""
    labels = np.repeat(np.arange(3), 40)
    make = lambda: gmm(init_params="k-means++", temperature=1, random_state=1)  # noqa: E731
    first, second = make().fit(BLOBS), make().fit(BLOBS)
    assert adjusted_rand_score(labels, first.predict(BLOBS)) == 1
    assert_array_equal(first.means_, second.means_)
    for data in (np.zeros((20, 3)), np.full((20, 3), 5.0), np.repeat(BLOBS[:2], 5, axis=0)):
        assert all_finite(gmm(init_params="k-means++", temperature=1).fit(data), data)


def test_means_init_is_where_the_fit_starts():
    means = np.array([[12.0] * 3, [0.0] * 3, [6.0] * 3])
    estimator = gmm(means_init=means, temperature=1, max_iter=3).fit(BLOBS)
    assert_allclose(estimator.means_, means, atol=0.7)


@pytest.mark.slow
def test_annealing_from_far_above_does_not_leave_one_component():
    """Without the small moves while T falls, components that heat made equal stay equal."""
    for start in (20.0, 200.0):
        hot = gmm(temperature=Annealed(start, length=0.5), max_iter=200).fit(BLOBS)
        assert len(set(hot.predict(BLOBS))) == 3
        bound = gmm(max_iter=200).fit(BLOBS).lower_bound_
        assert hot.lower_bound_ == pytest.approx(bound, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, np.array([0.2, 0.3, 0.5])])
def test_a_mixture_at_a_learned_temperature(weights):
    estimator = gmm(covariances=1.0, weights=weights, temperature="variational", max_iter=200)
    estimator.fit(BLOBS)
    expected = 7 * np.linalg.norm(BLOBS - BLOBS.mean(axis=0), 2) ** 2 / len(BLOBS)
    assert estimator.temperature_path_[0] == pytest.approx(expected)
    assert estimator.temperature_ == 1 and len(set(estimator.predict(BLOBS))) == 3


def test_roundings_of_lapack_change_nothing(monkeypatch):
    """They enter a fit only where its first temperature is computed, which is rounded."""
    options = dict(covariances=1.0, max_iter=5)
    before = gmm(**options).fit(BLOBS)
    svd = mixtures.randomized_svd

    def of_another_processor(*args, **options):
        u, values, v = svd(*args, **options)
        return u, values * (1 + 1e-12), v

    monkeypatch.setattr(mixtures, "randomized_svd", of_another_processor)
    after = gmm(**options).fit(BLOBS)
    assert_array_equal(after.temperature_path_, before.temperature_path_)
    assert_array_equal(after.means_, before.means_)


def test_a_prior_mean_far_from_the_data():
    estimator = gmm(mean_prior=[1e8] * 3, max_iter=100).fit(BLOBS)
    assert np.isfinite(estimator.lower_bound_)
    assert np.all(np.isfinite(estimator.covariances_)) and np.all(estimator.covariances_ > 0)


def test_the_mean_of_scores_beyond_the_largest_sum():
    estimator = gmm(covariances=1e-300).fit(BLOBS)
    scores = estimator.score_samples(BLOBS + 1000)
    assert np.all(scores < -1e306)  # so the sum of 120 is no float
    assert estimator.score(BLOBS + 1000) == pytest.approx(1e306 * np.mean(scores / 1e306))


# Its Wishart prior is a Gamma in one dimension only; in more, its responsibilities differ from
# ours, but not what it makes of given ones.
#: What both have, and what follows from given responsibilities.
SHARED = (
    *("means_", "covariances_", "weight_concentration_", "mean_precision_", "degrees_of_freedom_"),
)
TYPES = ("diag", "spherical")


def clusters(n_features, seed=0):
    """Three overlapping ones, of different widths and sizes."""
    rng = np.random.RandomState(seed)
    kinds = [(30, 0.5), (60, 1.0), (90, 2.0)]
    parts = [rng.normal(rng.normal(0, 4, n_features), w, (n, n_features)) for n, w in kinds]
    return np.concatenate(parts)


def pair(**settings):
    """Theirs and ours, for a fixed number of iterations from the same start."""
    options = dict(weight_concentration_prior_type="dirichlet_distribution", reg_covar=0)
    theirs = BayesianGaussianMixture(tol=0, **options, **settings)
    return theirs, TemperedGaussianMixture(temperature=1, tol=0, **settings)


def fit(X, **settings):
    theirs, ours = pair(**settings)
    with pytest.warns(ConvergenceWarning):
        theirs.fit(X)
    return theirs, ours.fit(X)


def priors(covariance_type, n_features):
    """Both with their defaults, and with every prior given."""
    beta = np.linspace(0.5, 2.0, n_features)
    given = dict(weight_concentration_prior=2.5, degrees_of_freedom_prior=n_features + 1.5)
    given |= dict(mean_precision_prior=0.3, mean_prior=np.linspace(-1.0, 3.0, n_features))
    return [{}, given | dict(covariance_prior=0.8 if covariance_type == "spherical" else beta)]


@pytest.mark.thinned
@pytest.mark.oracle
@pytest.mark.parametrize("given", [0, 1], ids=["default", "given"])
@pytest.mark.parametrize("init_params", INITS)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_same_mixture_after_each_iteration(covariance_type, init_params, given):
    X, bounds = clusters(1), []
    new = np.linspace(-20, 20, 101)[:, None]
    for max_iter in (1, 2, 5, 20):
        kind = dict(covariance_type=covariance_type, init_params=init_params)
        kind |= priors(covariance_type, 1)[given]
        theirs, ours = fit(X, n_components=4, max_iter=max_iter, random_state=3, **kind)
        assert ours.n_iter_ == theirs.n_iter_ == max_iter
        for name in (*SHARED, "precisions_", "weights_"):
            pair = getattr(ours, name), getattr(theirs, name)
            assert_allclose(*pair, rtol=1e-8, atol=1e-10, err_msg=name)
        for data in (X, new):
            assert_allclose(ours.predict_proba(data), theirs.predict_proba(data), atol=1e-8)
            assert_allclose(ours.score_samples(data), theirs.score_samples(data), rtol=1e-8)
        assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-8)
        assert (ours.predict(X) == theirs.predict(X)).all()
        bounds.append((len(X) * ours.lower_bound_, theirs.lower_bound_))
    gains = np.diff(bounds, axis=0)  # theirs leaves out constants
    assert_allclose(gains[:, 0], gains[:, 1], rtol=1e-7, atol=1e-8)
    assert np.all(gains > 0)


@pytest.mark.oracle
@pytest.mark.parametrize("given", [0, 1], ids=["default", "given"])
@pytest.mark.parametrize("n_features", [2, 5])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_same_update_from_the_same_responsibilities(covariance_type, n_features, given):
    X = clusters(n_features)
    settings = dict(n_components=3, covariance_type=covariance_type, random_state=0)
    settings |= dict(init_params="random", **priors(covariance_type, n_features)[given])
    theirs, before = pair(max_iter=4, **settings)
    _, after = pair(max_iter=5, **settings)
    responsibilities = before.fit(X).predict_proba(X)
    after.fit(X)
    assert np.all(np.ptp(responsibilities, axis=0) > 0.2)  # far from uniform
    theirs.set_params(max_iter=0).fit(X)  # sets the priors and no more
    theirs._m_step(X, np.log(np.maximum(responsibilities, 1e-300)))
    for name in SHARED:
        assert_allclose(getattr(after, name), getattr(theirs, name), rtol=1e-8, err_msg=name)
    assert not np.allclose(before.means_, after.means_, rtol=1e-6)


@pytest.mark.oracle
def test_parameters_of_the_same_name_have_the_same_default():
    theirs = BayesianGaussianMixture().get_params()
    ours = TemperedGaussianMixture().get_params()
    differ = {name for name in set(theirs) & set(ours) if ours[name] != theirs[name]}
    assert differ == {"covariance_type", "max_iter"}
