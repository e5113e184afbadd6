"""TemperedGaussianMixture finds the better optimum of two Gaussians."""

import numpy as np
import pytest

from annealvi import Annealed, TemperedGaussianMixture
from tests.marks import slow_values

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize("n_starts", [20, *slow_values(100)])
def test_annealing_ends_in_the_better_optimum_of_two_gaussians(n_starts):
    """Katahira et al. (2008): annealed from above the critical temperature, from many starts."""
    rng = np.random.RandomState(0)
    z = rng.random_sample(500) < 0.3
    X = (np.where(z, 4.0, -4.0) + rng.standard_normal(500))[:, None]
    starts = 6 * np.random.RandomState(1).standard_normal((n_starts, 2, 1))
    bounds = {}
    for temperature in (1, Annealed(100, length=0.5, shape="linear")):
        bounds[temperature] = np.array(
            [
                TemperedGaussianMixture(
                    2,
                    weights=[0.3, 0.7],
                    covariances=1.0,
                    mean_prior=[0.0],
                    mean_precision_prior=0.1,
                    means_init=means,
                    temperature=temperature,
                    max_iter=200,
                    tol=1e-9,
                )
                .fit(X)
                .lower_bound_
                for means in starts
            ]
        )
    best = max(b.max() for b in bounds.values())
    plain, annealed = (int(np.sum(b > best - 0.01)) for b in bounds.values())
    assert annealed >= 0.99 * n_starts
    assert plain < 0.8 * n_starts
