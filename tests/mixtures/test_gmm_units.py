"""The same clusters in any units."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from annealvi import TemperedGaussianMixture

X, Y = make_blobs(400, centers=[[-6, -6], [0, 0], [6, 6]], random_state=0)
SCALES = ([1, 1e5], [1e5, 1], [1, 1e-5], [1e-4, 1e4], [1e-9, 1e-9], [1e12, 1e-12])


@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("options", [{}, {"init_params": "k-means++"}, {"init_params": "random"}])
def test_columns_are_rescaled(scales, options):
    plain = TemperedGaussianMixture(3, random_state=0, **options).fit(X)
    scaled = TemperedGaussianMixture(3, random_state=0, **options).fit(X * scales)
    assert adjusted_rand_score(scaled.predict(X * scales), plain.predict(X)) > 0.99
    assert adjusted_rand_score(Y, plain.predict(X)) > 0.99
    order, other = (np.argsort(each.means_[:, 0]) for each in (plain, scaled))
    ratio = scaled.covariances_[other] / plain.covariances_[order] / np.square(scales)
    assert ratio == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("constant", [0.0, 0.3, 1e6, -1e-7])
def test_a_column_that_is_constant_changes_nothing(constant):
    beside = np.full((len(X), 1), constant)
    beside[::2] = constant * (1 + 2e-16)
    Z = np.hstack([X, beside])
    found = TemperedGaussianMixture(3, random_state=0).fit_predict(Z)
    assert adjusted_rand_score(Y, found) > 0.99
