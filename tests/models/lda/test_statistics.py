"""Statistics of the words that were seen, in rows of any order."""

import numpy as np
from numpy.testing import assert_array_equal

from annealvi.model import Batch, Tempering
from annealvi.models.lda import LDA
from tests.models.lda.streams import stream


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
