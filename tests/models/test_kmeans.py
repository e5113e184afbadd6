"""k-means against scikit-learn's."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import adjusted_rand_score

from annealvi.models.kmeans import k_means, sampled_rows

# without equal distances, among which scikit-learn chooses by roundings
X = np.concatenate([np.random.RandomState(k).normal(3 * k, 1, (50, 4)) for k in range(3)])


@pytest.mark.parametrize("n_rows", [1, 3, 20])
def test_rows_are_sampled_as_by_scikit_learn(n_rows):
    for seed in range(20):
        ours, its = (np.random.RandomState(seed) for _ in range(2))
        expected = kmeans_plusplus(X, n_rows, random_state=its)[1]
        assert_array_equal(sampled_rows(X, n_rows, ours), expected)
        assert ours.uniform() == its.uniform()


def test_clusters_are_those_of_scikit_learn():
    start = sampled_rows(X, 3, np.random.RandomState(0))
    labels = k_means(X, 3, np.random.RandomState(0))
    its = KMeans(3, init=X[start], n_init=1, tol=0).fit(X)
    assert adjusted_rand_score(labels, its.labels_) == 1


def test_equal_rows_and_empty_clusters():
    labels = k_means(np.repeat(X[:2], 5, axis=0), 4, np.random.RandomState(0))
    assert len(set(labels[:5])) == len(set(labels[5:])) == 1 and labels[0] != labels[5]
    assert_array_equal(np.unique(k_means(np.ones((6, 2)), 3, np.random.RandomState(0))), [0])
