"""Bad input to the mixtures gets an error that names the parameter, the value, what is allowed."""

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
    Variational,
)
from annealvi.datasets import make_shape_mixture

X = make_shape_mixture(30, random_state=0).data  # 16 features


def spoil(value):
    Z = X.copy()
    Z[3, 4] = value
    return Z


COMMON = [
    (dict(temperature="local"), "'temperature' .*'variational'.* Got 'local'"),
    (dict(temperature=Fixed(0.5)), "'value' parameter of Fixed .* Got 0.5"),
    (dict(temperature=Annealed(passes=1e4)), "'passes' .* at most the 200 passes .* Got 10000.0"),
    (dict(temperature=Variational(prior=[1, 2])), r"'prior' .* shape \(100,\).* Got shape \(2,\)"),
]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *COMMON,
        (
            dict(prior_probability=[0.1, 0.2]),
            r"'prior_probability' .* shape \(3,\). Got \[0.1, 0.2\]",
        ),
        (
            dict(prior_probability=[0.1, 0.2, 1]),
            r"'prior_probability' .* range \(0.0, 1.0\). Got 1.0 instead",
        ),
        (dict(prior_probability=[0.1, 0.2, math.nan]), r"'prior_probability' .* Got nan instead"),
        (dict(init=np.ones((3, 15))), r"'init' .* shape \(3, 16\). Got shape \(3, 15\)"),
        (dict(init=np.full((3, 16), math.nan)), r"'init' .* finite. Got nan"),
        (dict(init="data", n_components=31), "n_components=31 must be at most n_samples=30"),
        (
            dict(init="kmeans++", n_components=31),
            r"n_components=31 must be at most n_samples=30 with init='kmeans\+\+'",
        ),
        (dict(n_jobs=0), "n_jobs == 0 in Parallel has no meaning"),
        (
            dict(temperature="variational", noise_variance="learn"),
            "noise_variance='learn' and a variational temperature exclude each other: .* only "
            "their product is determined",
        ),
    ],
)
def test_parameters_of_the_factorial_mixture(parameters, message):
    with pytest.raises(ValueError, match=message):
        TemperedFMM(**(dict(n_components=3) | parameters)).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *COMMON,
        (
            dict(means_init=np.ones((2, 16))),
            r"'means_init' .* shape \(3, 16\). Got shape \(2, 16\)",
        ),
        (dict(means_init=np.full((3, 16), math.inf)), r"'means_init' .* finite. Got inf"),
        (dict(weights=[0.5, 0.5]), r"'weights' .* shape \(3,\). Got shape \(2,\)"),
        (dict(weights=[0.5, 0.5, 0.5]), r"'weights' .* sum to 1, not to 1.5. Got"),
        (dict(weights=[0.5, 0.5, 0.0]), r"'weights' .* positive and finite. Got 0.0"),
        (dict(weights=["a", "b", "c"]), r"'weights' .* Got shape \(3,\) and dtype <U1"),
        (dict(covariances=np.full(16, math.inf)), r"'covariances' .* positive and finite. Got inf"),
        (
            dict(covariances=np.ones(3)),
            r"'covariances' .* \(16,\) or .* \(3, 16\). Got shape \(3,\)",
        ),
        (
            dict(covariances=np.ones(16), covariance_type="spherical"),
            r"'covariances' .* shape \(3,\). Got shape \(16,\)",
        ),
        (dict(mean_prior=np.ones(3)), r"'mean_prior' .* shape \(16,\). Got shape \(3,\)"),
        (
            dict(covariance_prior=np.ones(16), covariance_type="spherical"),
            r"'covariance_prior' .* a float. Got shape \(16,\)",
        ),
        (dict(n_components=31), "n_components = 31, n_samples = 30 with init_params='kmeans'"),
        (
            dict(n_components=31, init_params="k-means++"),
            r"n_components = 31, n_samples = 30 with init_params='k-means\+\+'",
        ),
        (
            dict(temperature="variational"),
            r"needs known 'covariances': .* C\(T\) is infinite at high T",
        ),
        (
            dict(temperature=Annealed(50, form="posterior"), covariance_type="spherical"),
            "prior of the precisions, .* is improper at T=50",
        ),
    ],
)
def test_parameters_of_the_gaussian_mixture(parameters, message):
    with pytest.raises(ValueError, match=message):
        TemperedGaussianMixture(**(dict(n_components=3) | parameters)).fit(X)


@pytest.mark.parametrize("make", [TemperedFMM, TemperedGaussianMixture])
@pytest.mark.parametrize("method", ["fit", "score_samples"])
@pytest.mark.parametrize(
    ("Z", "message"),
    [
        (spoil(np.nan), "contains NaN"),
        (spoil(np.inf), "contains infinity"),
        (spoil(1e200), "squares of X must be finite"),
        (sparse.csr_matrix(X), "Sparse data was passed"),
        (X.astype(complex), "Complex data not supported"),
        (np.full((3, 16), "word", dtype=object), "could not convert string to float"),
        (X[0], "Expected 2D array, got 1D array"),
        (X.reshape(30, 4, 4), r"expected (a )?2D array|Found array with dim 3"),
        (np.zeros((0, 16)), r"Found array with 0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)|has 0 features"),
    ],
)
def test_data(make, method, Z, message):
    estimator = make(3, tol=0, max_iter=5)
    if method != "fit":
        estimator.fit(X)
    error = TypeError if sparse.issparse(Z) else ValueError
    with pytest.raises(error, match=message):
        getattr(estimator, method)(Z)


@pytest.mark.parametrize(
    ("make", "methods"),
    [
        (TemperedFMM, ["transform", "score_samples", "score"]),
        (TemperedGaussianMixture, ["predict", "predict_proba", "score_samples", "score"]),
    ],
)
def test_another_number_of_features_and_not_fitted(make, methods):
    fitted = make(3, tol=0, max_iter=5).fit(X)
    for method in methods:
        with pytest.raises(
            ValueError, match=f"X has 15 features, but {make.__name__} is expecting 16"
        ):
            getattr(fitted, method)(X[:, :15])
        with pytest.raises(
            NotFittedError, match=f"This {make.__name__} instance is not fitted yet"
        ):
            getattr(make(), method)(X)
    with pytest.raises(NotFittedError):
        make().sample()
    for number in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"'n_samples': {number}"):
            fitted.sample(number)


@pytest.mark.parametrize(
    ("observed", "options", "message"),
    [
        (np.ones(15, dtype=bool), {}, r"'observed' .* shape \(16,\).* Got shape \(15,\)"),
        (np.ones(16), {}, r"'observed' must be an array of bool .* dtype float64"),
        (np.ones(16, dtype=bool), {}, "True for some features and False for others. Got 16 True"),
        (np.zeros(16, dtype=bool), {}, "Got 0 True of 16"),
    ],
)
def test_predictive_score(observed, options, message):
    estimator = TemperedFMM(3, tol=0, max_iter=5).fit(X)
    with pytest.raises(ValueError, match=message):
        estimator.predictive_score(X, observed, **options)


def test_inverse_transform():
    estimator = TemperedFMM(3, tol=0, max_iter=5).fit(X)
    with pytest.raises(ValueError, match=r"X has 4 features, but inverse_transform .* expecting 3"):
        estimator.inverse_transform(np.ones((2, 4)))
    with pytest.raises(NotFittedError):
        TemperedFMM().inverse_transform(np.ones((2, 4)))


@pytest.mark.parametrize("make", [TemperedFMM, TemperedGaussianMixture])
def test_the_mixtures_have_no_local_temperatures(make):
    message = "LocalVariational .* as the documents of TemperedLDA have. .* use 'annealed' or"
    with pytest.raises(ValueError, match=message):
        make(3, temperature=LocalVariational()).fit(X)


def test_what_the_dtype_cannot_hold():
    single = X.astype(np.float32)
    message = "times the noise variance, .* which float32 cannot hold. Scale X or give a larger"
    with pytest.raises(ValueError, match=message):
        TemperedFMM(3, noise_variance=1e-36).fit(single)
    with pytest.raises(ValueError, match=r"squares of X must be finite in float32"):
        TemperedFMM(3).fit(single).transform(1e19 * single)
    with pytest.raises(ValueError, match=r"'noise_variance' .* the range of float32"):
        TemperedFMM(3, noise_variance=1e-50).fit(single)
    huge = TemperedFMM(3).fit(1e12 * single)
    assert np.all(np.isfinite(huge.transform(1e12 * single)))


@pytest.mark.parametrize("temperature", ["annealed", 1.0, "proximity", "variational"])
@pytest.mark.parametrize("noise_variance", [1e-300, 1e-100])
def test_components_whose_equations_are_singular(noise_variance, temperature):
    """Equal data determine only the sum of the components, and next to no noise leaves no prior."""
    fmm = TemperedFMM(
        3,
        covariance="full",
        noise_variance=noise_variance,
        temperature=temperature,
        random_state=0,
    )
    with pytest.raises(
        ValueError, match=r"equations for the components are singular .* T="
    ) as info:
        fmm.fit(np.ones((30, 4)))
    assert f"noise_variance={noise_variance:.4g} and component_variance=1" in str(info.value)
    assert type(info.value) is ValueError
    assert not hasattr(fmm, "components_")


def test_squares_at_the_end_of_single_precision():
    Z = np.random.RandomState(0).standard_normal((30, 4)).astype(np.float32)
    with pytest.raises(ValueError, match=r"squares of X must be finite in float32, and sum to at"):
        TemperedFMM(2).fit(Z * np.float32(1e19))
    for init in ("random", "data", "kmeans++"):
        for temperature in ("annealed", 1.0, "proximity"):
            fmm = TemperedFMM(2, init=init, temperature=temperature, random_state=0, tol=0)
            fmm.set_params(max_iter=5).fit(Z * np.float32(1e16))
            assert np.all(np.isfinite(fmm.score_samples(Z * np.float32(1e16))))
            assert np.all(np.isfinite(fmm.history_["temperature"]))


def test_a_row_too_far_from_all_components():
    mixture = TemperedGaussianMixture(2, covariances=1e-250, random_state=0).fit(X)
    far = X[:3] + np.array([[0.0], [1e100], [0.0]])
    for method in ("predict", "predict_proba", "score_samples", "score"):
        with pytest.raises(ValueError, match=r"Row 1 of X is so far .* up to 1e\+100"):
            getattr(mixture, method)(far)


@pytest.mark.parametrize("make", [TemperedFMM, TemperedGaussianMixture])
def test_a_data_frame_of_any_byte_order(make):
    fits = [
        make(3, tol=0, max_iter=5, random_state=0).fit(pd.DataFrame(X.astype(f"{order}f4")))
        for order in "<>"
    ]
    np.testing.assert_array_equal(*(fit.score_samples(X.astype(np.float32)) for fit in fits))


def test_arguments_that_are_no_arrays():
    fmm = TemperedFMM(3, tol=0, max_iter=5, random_state=0).fit(X)
    with pytest.raises(ValueError, match="'observed' must be an array of bool"):
        fmm.predictive_score(X, [[True], [True, False]])
