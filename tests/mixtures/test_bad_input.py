"""Bad input to the mixtures gets an error that names the parameter, the value, what is allowed.

What a parameter's own constraint says is tested in tests/project/test_bad_parameters.py.
"""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from annealvi import (
    Annealed,
    Fixed,
    LocalVariational,
    TemperedFMM,
    TemperedGaussianMixture,
    TemperedMultinomialMixture,
    Variational,
)
from annealvi.datasets import make_shape_mixture
from tests.asserts import refusals, refused
from tests.marks import cases

X = make_shape_mixture(30, random_state=0).data  # 16 features
MAKERS = pytest.mark.parametrize("make", [TemperedFMM, TemperedGaussianMixture])


def spoil(value):
    Z = X.copy()
    Z[3, 4] = value
    return Z


def fitted(make, **parameters):
    return make(3, tol=0, max_iter=5, random_state=0, **parameters).fit(X)


ALL = [
    (dict(temperature="local"), "'temperature' .*'variational'.* Got 'local'"),
    (dict(temperature=Fixed(0.5)), "'value' parameter of Fixed .* Got 0.5"),
    (dict(temperature=Annealed(passes=1e4)), "'passes' .* at most the 200 passes .* Got 10000.0"),
    (dict(temperature=Variational(prior=[1, 2])), r"'prior' .* shape \(100,\).* Got shape \(2,\)"),
    (dict(temperature=LocalVariational()), "LocalVariational .* Use 'annealed' or"),
]
NO_JOBS = (dict(n_jobs=0), "n_jobs == 0 in Parallel has no meaning")
FACTORS = [
    (dict(prior_probability=[0.1, 0.2]), r"'prior_probability' .* shape \(3,\). Got shape \(2,\)"),
    (dict(prior_probability=[0.1, 0.2, 1]), r"'prior_probability' .* range \(0.0, 1.0\). Got 1.0 "),
    (dict(prior_probability=[0.1, 0.2, math.nan]), r"'prior_probability' .* Got nan instead"),
    (dict(init=np.ones((3, 15))), r"'init' .* shape \(3, 16\). Got shape \(3, 15\)"),
    (dict(init="data", n_components=31), "n_components=31 must be at most n_samples=30"),
    (dict(init="kmeans++", n_components=31), r"at most n_samples=30 with init='kmeans\+\+'"),
    NO_JOBS,
    (
        dict(temperature="variational"),
        "noise_variance='learn' cannot be combined with a variational temperature",
    ),
]
ROUND, HOT = dict(covariance_type="spherical"), Annealed(50, form="posterior")
GAUSSIANS = [
    (dict(means_init=np.ones((2, 16))), r"'means_init' .* shape \(3, 16\). Got shape \(2, 16\)"),
    (dict(weights=[0.5, 0.5]), r"'weights' .* shape \(3,\). Got shape \(2,\)"),
    (dict(weights=[0.5, 0.5, 0.5]), r"'weights' .* sum to 1, not to 1.5. Got"),
    (dict(weights=[0.5, 0.5, 0.0]), r"'weights' .* positive and finite. Got 0.0"),
    (dict(covariances=np.ones(3)), r"'covariances' .* \(16,\) or .* \(3, 16\). Got shape \(3,\)"),
    (ROUND | dict(covariances=np.ones(16)), r"'covariances' .* shape \(3,\). Got shape \(16,\)"),
    (dict(mean_prior=np.ones(3)), r"'mean_prior' .* shape \(16,\). Got shape \(3,\)"),
    (ROUND | dict(covariance_prior=np.ones(16)), r"'covariance_prior' .* a float. Got shape \(16"),
    (dict(mean_precision_prior=1e308), "The ELBO is nan after iteration 1. Some parameters"),
    (dict(degrees_of_freedom_prior=1e308, covariance_prior=0.7), "The ELBO is nan"),
    (dict(n_components=31), "n_components = 31, n_samples = 30 with init_params='kmeans'"),
    (dict(temperature="variational"), "needs known 'covariances', because .* both be learned"),
    (ROUND | dict(temperature=HOT), "prior of the precisions is improper at T=50"),
]
CLASSES = [
    NO_JOBS,
    (dict(word_prior=1e308), "The ELBO is nan after iteration 1. Some parameters .* too large"),
    (dict(weight_concentration_prior=1e308), "The ELBO is nan .* parameters .* too large"),
    (dict(init=np.ones((2, 16))), r"'init' .* shape \(3, 16\). Got shape \(2, 16\)"),
    (dict(init=-np.eye(3, 16)), "'init' .* non-negative, with a positive number in each row"),
    (dict(init=np.zeros((3, 16))), "'init' .* non-negative, with a positive number in each row"),
    (dict(init="random"), "'init' .* 'merged'|'kmeans"),
]


test_parameters = refusals(
    lambda make, parameters: make(**(dict(n_components=3, max_iter=200) | parameters)).fit(
        np.abs(X)
    ),
    *((TemperedFMM, *case) for case in ALL + FACTORS),
    *((TemperedGaussianMixture, *case) for case in ALL + GAUSSIANS),
    *((TemperedMultinomialMixture, *case) for case in ALL + CLASSES),
)


@MAKERS
@pytest.mark.parametrize("method", ["fit", "score_samples"])
@cases(
    "Z, message",
    (spoil(np.nan), "contains NaN"),
    (spoil(np.inf), "contains infinity"),
    (spoil(1e200), "squares of X must be at most"),
    (sparse.csr_matrix(X), "Sparse data was passed"),
    (X.astype(complex), "Complex data not supported"),
    (np.full((3, 16), "word", dtype=object), "could not convert string to float"),
    (X[0], "Expected 2D array, got 1D array"),
    (X.reshape(30, 4, 4), r"expected (a )?2D array|Found array with dim 3"),
    (np.zeros((0, 16)), r"Found array with 0 sample\(s\)"),
    (np.zeros((3, 0)), r"0 feature\(s\)|has 0 features"),
)
def test_data(make, method, Z, message):
    estimator = make(3) if method == "fit" else fitted(make)
    with pytest.raises(TypeError if sparse.issparse(Z) else ValueError, match=message):
        getattr(estimator, method)(Z)


@cases(
    "make, methods",
    (TemperedFMM, ["transform", "score_samples", "score"]),
    (TemperedGaussianMixture, ["predict", "predict_proba", "score_samples", "score"]),
)
def test_another_number_of_features_and_not_fitted(make, methods):
    estimator, name = fitted(make), make.__name__
    for method in methods:
        with pytest.raises(ValueError, match=f"X has 15 features, but {name} is expecting 16"):
            getattr(estimator, method)(X[:, :15])
        with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
            getattr(make(), method)(X)
    with pytest.raises(NotFittedError):
        make().sample()
    for number in (0, -1, 2.5):
        refused(rf"'n_samples' .*\[1, inf\). Got {number}", estimator.sample, number)


test_predictive_score = refusals(
    lambda observed: fitted(TemperedFMM).predictive_score(X, observed),
    (np.ones(15, dtype=bool), r"'observed' .* shape \(16,\). Got shape \(15,\)"),
    (np.ones(16), r"'observed' .* an array of bool .* dtype float64"),
    ([[True], [True, False]], "'observed' .* an array of bool"),
    (np.ones(16, dtype=bool), "'observed' .* for 1 to 15 of the 16 features. Got 16"),
    (np.zeros(16, dtype=bool), "Got 0"),
)


def test_inverse_transform():
    with pytest.raises(ValueError, match=r"X has 4 features, but inverse_transform .* expecting 3"):
        fitted(TemperedFMM).inverse_transform(np.ones((2, 4)))


test_what_float32_cannot_hold = refusals(
    lambda Z, parameters: TemperedFMM(3, **parameters).fit(np.float32(Z)),
    (X, dict(noise_variance=1e-36), "times noise_variance=.* too large for float32"),
    (X, dict(noise_variance=1e-50), r"'noise_variance' .* the range of float32"),
    (1e19 * X, {}, r"sum of the squares of X must be at"),
)


@pytest.mark.parametrize("temperature", ["annealed", 1.0, "proximity"])
@pytest.mark.parametrize("init", ["random", "data", "kmeans++"])
def test_numbers_at_the_limits_of_float32(init, temperature):
    Z = np.float32(1e16 * np.random.RandomState(0).standard_normal((30, 4)))
    fmm = TemperedFMM(2, init=init, temperature=temperature, random_state=0, tol=0, max_iter=5)
    assert np.all(np.isfinite(fmm.fit(Z).score_samples(Z)))
    assert np.all(np.isfinite(fmm.transform(Z)))
    assert np.all(np.isfinite(fmm.history_["temperature"]))


@pytest.mark.parametrize("temperature", ["annealed", "proximity", "variational"])
def test_components_whose_equations_are_singular(temperature):
    """Equal data determine only the sum of the components, and next to no noise leaves no prior."""
    parameters = dict(noise_variance=1e-300, temperature=temperature, random_state=0)
    fmm = TemperedFMM(3, covariance="full", **parameters)
    message = r"components are singular .* T=.* .now 1e-300. and a component_variance .now 1"
    with pytest.raises(ValueError, match=message) as info:
        fmm.fit(np.ones((30, 4)))
    assert type(info.value) is ValueError and not hasattr(fmm, "components_")


def test_a_row_too_far_from_all_components():
    mixture = TemperedGaussianMixture(2, covariances=1e-250, random_state=0).fit(X)
    far = X[:3] + np.array([[0.0], [1e100], [0.0]])
    for method in ("predict", "predict_proba", "score_samples", "score"):
        refused(r"Row 1 of X is so far .* the row is 1e\+100", getattr(mixture, method), far)


@MAKERS
def test_a_data_frame_of_any_byte_order(make):
    frames = [pd.DataFrame(X.astype(f"{order}f4")) for order in "<>"]
    fits = [make(3, tol=0, max_iter=5, random_state=0).fit(frame) for frame in frames]
    np.testing.assert_array_equal(*(fit.score_samples(X.astype(np.float32)) for fit in fits))
