"""Small data for the mixtures, and estimators to fit them with."""

import numpy as np

from annealvi import (
    Annealed,
    Fixed,
    Proximity,
    TemperedFMM,
    TemperedGaussianMixture,
    TemperedMultinomialMixture,
    Variational,
)
from annealvi.datasets import make_shape_mixture
from annealvi.partition import LogPartition

SHAPES = make_shape_mixture(200, random_state=0)
X = SHAPES.data
BLOBS = np.concatenate([np.random.RandomState(k).randn(40, 3) + 6 * k for k in range(3)])


#: Counts of 12 words in 90 documents of three classes, of which each has four words more often.
COUNTS = np.random.RandomState(0).poisson(np.kron(np.eye(3), np.ones((30, 4))) * 1.5 + 0.3)


def mmm(**parameters):
    given = dict(n_components=3, random_state=0, max_iter=60, tol=0) | parameters
    return TemperedMultinomialMixture(**given)


def fmm(**parameters):
    return TemperedFMM(**(dict(n_components=8, random_state=0, max_iter=60, tol=0) | parameters))


def gmm(**parameters):
    given = dict(n_components=3, random_state=0, max_iter=60, tol=0) | parameters
    return TemperedGaussianMixture(**given)


def toy_factors(**parameters):
    """An estimator for 8 shapes or bars that knows how the toy of the papers was drawn."""
    known = dict(prior_probability=0.3, noise_variance=0.1, component_variance=0.35)
    return TemperedFMM(8, tol=0, **known, **parameters)


def all_finite(estimator, data):
    """Whether all that a fit found and says of data are numbers."""
    names = ("components_", "component_covariance_", "means_", "weights_", "covariances_")
    found = [getattr(estimator, name) for name in names if hasattr(estimator, name)]
    return all(np.all(np.isfinite(array)) for array in (*found, estimator.score_samples(data)))


Z = X[:60]
KNOWN = dict(noise_variance=0.1)
FEW = dict(covariances=1.0, init_params="random_from_data")
LOG_C = LogPartition(np.geomspace(1, 5, 9), 180 * np.log(np.geomspace(1, 5, 9)))
#: Makers, data and parameters of fits of every kind.
CASES = {
    "fmm": (fmm, Z, {}),
    "fmm, float32, full": (fmm, np.float32(Z), dict(covariance="full", prior_probability="learn")),
    "fmm, learned T": (fmm, Z, dict(temperature="variational", **KNOWN)),
    "fmm, undamped": (fmm, Z, dict(temperature=Variational(damping=1.0), **KNOWN)),
    "fmm, proximity": (fmm, Z, dict(temperature="proximity")),
    "fmm, proximity KL": (fmm, Z, dict(temperature=Proximity("kl", magnitude=9.0))),
    "fmm, starts": (fmm, Z, dict(n_init=3, init="kmeans++")),
    "fmm, fixed starts": (fmm, Z, dict(n_init=3, temperature=1, n_jobs=2)),
    "fmm, learned T, starts": (fmm, Z, dict(n_init=2, temperature="variational", **KNOWN)),
    "fmm, posterior": (fmm, Z, dict(temperature=Annealed(3.0, form="posterior"))),
    "fmm, converges": (fmm, Z, dict(tol=1e-2, temperature=Fixed(1.0))),
    "gmm": (gmm, BLOBS, {}),
    "gmm, spherical": (gmm, BLOBS, dict(covariance_type="spherical", init_params="random")),
    "gmm, learned T": (gmm, BLOBS, dict(temperature="variational", **FEW)),
    "gmm, log C given": (gmm, BLOBS, dict(temperature=Variational(5, 9, partition=LOG_C), **FEW)),
    "gmm, known": (gmm, BLOBS, dict(weights=[0.2, 0.3, 0.5], covariances=[1.0, 2.0, 1.5])),
    "gmm, starts": (gmm, BLOBS, dict(n_init=3, **FEW)),
    "gmm, means": (gmm, BLOBS, dict(means_init=BLOBS[::40], temperature=Annealed(2.0))),
    "gmm, posterior": (gmm, BLOBS, dict(temperature=Annealed(1.2, form="posterior"))),
    "gmm, converges": (gmm, BLOBS, dict(tol=1e-1, temperature=1)),
    "mmm": (mmm, COUNTS, {}),
    "mmm, kmeans++": (mmm, COUNTS, dict(init="kmeans++", n_init=2, temperature=1)),
    "mmm, learned T": (mmm, COUNTS, dict(temperature="variational", init="kmeans++")),
    "mmm, posterior": (mmm, COUNTS, dict(temperature=Annealed(2.0, form="posterior"))),
    "mmm, given": (mmm, COUNTS, dict(init=COUNTS[::30], word_prior=1.0)),
}


ATTRIBUTES = {
    fmm: ("components_", "component_covariance_", "noise_variance_", "prior_probability_"),
    gmm: ("means_", "weights_", "precisions_", "covariances_", "weight_concentration_"),
    mmm: ("components_", "weights_"),
}
FOUND = (
    *("temperature_path_", "n_iter_", "converged_", "lower_bound_", "temperature_"),
    *("temperature_posterior_", "temperature_posterior_path_", "n_features_in_"),
    *(name for names in ATTRIBUTES.values() for name in names),
)


def bits(estimator):
    """All that a fit leaves, but seconds, as bytes."""
    found = {name: getattr(estimator, name) for name in FOUND if hasattr(estimator, name)}
    found |= {name: part for name, part in estimator.history_.items() if name != "seconds"}
    return {name: np.asarray(value).tobytes() for name, value in found.items()}


def answers(estimator, data):
    """What an estimator says of data, and what it draws."""
    names = ("transform", "score_samples", "predict_proba", "score")
    found = [getattr(estimator, name)(data) for name in names if hasattr(estimator, name)]
    if isinstance(estimator, TemperedFMM):
        found.append(estimator.predictive_score(data[:9], np.arange(data.shape[1]) < 3, n_draws=3))
    drawn = estimator.sample(3) if hasattr(estimator, "sample") else ()
    return [np.asarray(one) for one in (*found, *drawn)]
