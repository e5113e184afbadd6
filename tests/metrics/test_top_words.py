"""The words of largest weight in each topic."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi import TemperedLDA
from annealvi.metrics.topics import top_columns
from tests.metrics.by_loops import naive_top


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_top_words_are_in_order_of_weight_then_column(rng, dtype):
    topics = rng.integers(0, 5, (20, 40)).astype(dtype)  # many ties
    for n in (1, 3, 39, 40):
        assert_array_equal(top_columns(topics, n), naive_top(topics, n))
    assert_array_equal(top_columns(topics, 50), naive_top(topics, 40))
    lda = TemperedLDA(20)
    lda.components_ = topics + 1
    assert_array_equal(lda.top_words(7), naive_top(topics, 7))
