"""A Gaussian mixture whose log C(T) is known, and inverse temperatures to ask for it at."""

import numpy as np

from annealvi.models.gmm import GMM

T = np.array([1.0, 1.25, 2.0, 10 / 3, 10.0])
B = 1 / T


def known_mixture(**options):
    known = dict(known_weights=np.array([0.3, 0.7]), known_covariances=np.array([[0.5], [1.6]]))
    given = dict(alpha=np.ones(2), mean_prior=np.zeros(1), kappa=0.7, n_samples=2) | known
    return GMM(2, 1, **(given | options))
