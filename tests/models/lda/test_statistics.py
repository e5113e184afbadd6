"""Statistics of the words that were seen, in rows of any order."""

import numpy as np
from numpy.testing import assert_array_equal

from annealvi.model import Batch, Tempering
from annealvi.models.lda import LDA
from annealvi.models.lda.topics import Statistics
from tests.models.lda.streams import put, stream


def test_rows_by_word():
    statistics = Statistics(9, 8, np.float32)
    statistics.values[:] = np.nan
    put(statistics, np.array([7, 2]), np.array([[1.0, 2, 3], [4, 5, 6]]))
    put(statistics, np.array([5]), np.array([[7.0, 8, 9]]))
    assert_array_equal(statistics.words(), [2, 5, 7])
    assert_array_equal(statistics.rows(np.array([5, 7]), 3), [[7, 8, 9], [1, 2, 3]])
    assert_array_equal(statistics.dense(2)[[0, 2, 7]], [[0, 0], [4, 5], [1, 2]])
    statistics.clear()
    assert_array_equal(statistics.dense(3), 0)


def test_a_step_uses_rows_for_the_words_of_its_minibatch_only():
    """What is never written to takes no memory."""
    X = stream(12)
    model = LDA(5, X.shape[1], alpha=0.1, eta=0.1)
    model.initialize(np.random.RandomState(0))
    for rows in (slice(0, 4), slice(4, 12)):
        model.local_step(Batch(X, rows), Tempering())
        weights, _, statistics = model.buffers.training
        words = np.unique(X[rows].indices)
        assert len(words) < X.shape[1]
        for place in (weights.place, statistics.row_of):
            assert_array_equal(np.flatnonzero(place >= 0), words)
            assert_array_equal(np.sort(place[words]), np.arange(len(words)))
        weights.values[len(words) :] = np.nan
        statistics.values[len(words) :] = np.nan
        model.global_step(statistics, 0.5, 1.0, Tempering())
        assert np.all(np.isfinite(model.topics.components))
