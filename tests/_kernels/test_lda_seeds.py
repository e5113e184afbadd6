"""One centre of k-means++ against NumPy: cosines, distances, and the nearest documents."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.preprocessing import normalize

from annealvi._kernels import lda_seeds as kernels

SAME = 1e-9


def join(vectors, centre, distance, n_nearest):
    """Call the kernel; return the distances, the cosines and the nearest documents."""
    by_word = sparse.csr_matrix(vectors.T)
    distance, cosine = distance.copy(), np.full(len(distance), np.nan)
    nearest = np.full(n_nearest, -1)
    row = vectors[centre]
    entries = by_word.data, by_word.indices.astype(np.int64), by_word.indptr.astype(np.int64)
    words = row.indices.astype(np.int64)
    kernels.join_centre(row.data, words, *entries, SAME, distance, cosine, nearest)
    return distance, cosine, nearest


def unit_vectors(seed, n_samples=40, n_features=30):
    return normalize(sparse.random(n_samples, n_features, 0.2, "csr", random_state=seed))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_nearest", [0, 1, 5, 40])
def test_against_numpy(seed, n_nearest):
    vectors = unit_vectors(seed)
    dense = vectors.toarray()
    before = np.random.RandomState(seed).uniform(0, 1, len(dense))
    distance, cosine, nearest = join(vectors, 7, before, n_nearest)
    assert_allclose(cosine, dense @ dense[7], rtol=1e-14, atol=1e-15)
    assert_array_equal(nearest, np.argsort(-cosine, kind="stable")[:n_nearest])
    expected = np.minimum(before, 1 - cosine)
    assert_array_equal(distance, np.where(expected < SAME, 0, expected))


def test_of_equal_documents_the_first_are_nearest():
    vectors = sparse.csr_matrix(np.repeat(np.eye(3), 4, axis=0))  # cosines are 0 and 1
    distance, cosine, nearest = join(vectors, 5, np.ones(12), 6)
    assert_array_equal(cosine, np.repeat([0, 1, 0], 4))
    assert_array_equal(nearest, [4, 5, 6, 7, 0, 1])
    assert_array_equal(distance, 1 - cosine)
