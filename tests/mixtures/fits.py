"""Small data for the mixtures, and estimators to fit them with."""

import numpy as np

from annealvi import TemperedFMM, TemperedGaussianMixture
from annealvi.datasets import make_shape_mixture

SHAPES = make_shape_mixture(200, random_state=0)
X = SHAPES.data
BLOBS = np.concatenate([np.random.RandomState(k).randn(40, 3) + 6 * k for k in range(3)])


def fmm(**parameters):
    return TemperedFMM(**(dict(n_components=8, random_state=0, max_iter=60, tol=0) | parameters))


def gmm(**parameters):
    return TemperedGaussianMixture(
        **(dict(n_components=3, random_state=0, max_iter=60, tol=0) | parameters)
    )


def toy_factors(**parameters):
    """An estimator for 8 shapes or bars that knows how the toy of the papers was drawn."""
    known = dict(prior_probability=0.3, noise_variance=0.1, component_variance=0.35)
    return TemperedFMM(8, tol=0, **known, **parameters)


def fitted_arrays(estimator):
    names = ("components_", "component_covariance_", "means_", "weights_", "covariances_")
    return [getattr(estimator, name) for name in names if hasattr(estimator, name)]
