"""scikit-learn's Bayesian mixture as the oracle: the same numbers at T = 1.

Its Wishart prior is a Gamma in one dimension only; in more, its responsibilities differ
from ours, but not what it makes of given ones.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from annealvi import TemperedGaussianMixture

pytestmark = pytest.mark.oracle

TYPES = ("diag", "spherical")
INITS = ("kmeans", "k-means++", "random", "random_from_data")


def clusters(n_features, seed=0):
    """Three overlapping ones, of different widths and sizes."""
    rng = np.random.RandomState(seed)
    parts = [
        rng.normal(rng.normal(0, 4, n_features), width, (n, n_features))
        for n, width in [(30, 0.5), (60, 1.0), (90, 2.0)]
    ]
    return np.concatenate(parts)


def pair(**settings):
    """Theirs and ours, for a fixed number of iterations from the same start."""
    theirs = BayesianGaussianMixture(
        weight_concentration_prior_type="dirichlet_distribution", reg_covar=0, tol=0, **settings
    )
    return theirs, TemperedGaussianMixture(temperature=1, tol=0, **settings)


def fit(X, **settings):
    theirs, ours = pair(**settings)
    with pytest.warns(ConvergenceWarning):
        theirs.fit(X)
    return theirs, ours.fit(X)


def priors(covariance_type, n_features):
    """Both with their defaults, and with every prior given."""
    beta = np.linspace(0.5, 2.0, n_features)
    given = dict(
        weight_concentration_prior=2.5,
        mean_precision_prior=0.3,
        mean_prior=np.linspace(-1.0, 3.0, n_features),
        degrees_of_freedom_prior=n_features + 1.5,
        covariance_prior=0.8 if covariance_type == "spherical" else beta,
    )
    return [{}, given]


@pytest.mark.parametrize("given", [0, 1], ids=["default", "given"])
@pytest.mark.parametrize("init_params", INITS)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_same_mixture_after_each_iteration(covariance_type, init_params, given):
    X, bounds = clusters(1), []
    new = np.linspace(-20, 20, 101)[:, None]
    for max_iter in (1, 2, 5, 20):
        theirs, ours = fit(
            X,
            n_components=4,
            covariance_type=covariance_type,
            init_params=init_params,
            max_iter=max_iter,
            random_state=3,
            **priors(covariance_type, 1)[given],
        )
        assert ours.n_iter_ == theirs.n_iter_ == max_iter
        for name in (
            "means_",
            "covariances_",
            "precisions_",
            "weights_",
            "weight_concentration_",
            "mean_precision_",
            "degrees_of_freedom_",
        ):
            assert_allclose(
                getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-10, err_msg=name
            )
        for data in (X, new):
            assert_allclose(ours.predict_proba(data), theirs.predict_proba(data), atol=1e-8)
            assert_allclose(ours.score_samples(data), theirs.score_samples(data), rtol=1e-8)
        assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-8)
        assert (ours.predict(X) == theirs.predict(X)).all()
        bounds.append((len(X) * ours.lower_bound_, theirs.lower_bound_))
    gains = np.diff(bounds, axis=0)  # theirs leaves out constants
    assert_allclose(gains[:, 0], gains[:, 1], rtol=1e-7, atol=1e-8)
    assert np.all(gains > 0)


@pytest.mark.parametrize("given", [0, 1], ids=["default", "given"])
@pytest.mark.parametrize("n_features", [2, 5])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_same_update_from_the_same_responsibilities(covariance_type, n_features, given):
    X = clusters(n_features)
    settings = dict(
        n_components=3,
        covariance_type=covariance_type,
        init_params="random",
        random_state=0,
        **priors(covariance_type, n_features)[given],
    )
    theirs, before = pair(max_iter=4, **settings)
    _, after = pair(max_iter=5, **settings)
    responsibilities = before.fit(X).predict_proba(X)
    after.fit(X)
    assert np.all(np.ptp(responsibilities, axis=0) > 0.2)  # far from uniform
    theirs.set_params(max_iter=0).fit(X)  # sets the priors and no more
    theirs._m_step(X, np.log(np.maximum(responsibilities, 1e-300)))
    for name in (
        "means_",
        "covariances_",
        "weight_concentration_",
        "mean_precision_",
        "degrees_of_freedom_",
    ):
        assert_allclose(getattr(after, name), getattr(theirs, name), rtol=1e-8, err_msg=name)
    assert not np.allclose(before.means_, after.means_, rtol=1e-6)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_same_start_in_more_dimensions(covariance_type):
    X = clusters(3)
    theirs, ours = pair(
        n_components=3, covariance_type=covariance_type, init_params="kmeans", random_state=0
    )
    # k-means on clusters so far apart that an iteration keeps its labels
    apart = X + 100.0 * np.repeat(np.arange(3), [30, 60, 90])[:, None]
    theirs.set_params(max_iter=0).fit(apart)
    ours.set_params(max_iter=1).fit(apart)
    for name in ("means_", "covariances_", "weight_concentration_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, err_msg=name)


def test_parameters_of_the_same_name_have_the_same_default():
    theirs = BayesianGaussianMixture().get_params()
    ours = TemperedGaussianMixture().get_params()
    differ = {name for name in set(theirs) & set(ours) if ours[name] != theirs[name]}
    assert differ == {"covariance_type", "max_iter"}
    assert set(ours) - set(theirs) == {
        "callback",
        "covariances",
        "means_init",
        "temperature",
        "weights",
    }
