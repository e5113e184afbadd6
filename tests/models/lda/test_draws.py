"""Draws of a RandomState, number for number."""

import numpy as np
import pytest
from numpy.random import PCG64, RandomState
from numpy.testing import assert_array_equal

from annealvi.models.lda import starts
from annealvi.models.lda.starts import WORTH, as_numpy, gamma_draws


class Own(RandomState):
    def gamma(self, shape, scale=1.0, size=None):
        return np.full(size, 7.0)


def test_the_kernel_draws_as_numpy_does_here():
    assert as_numpy()


@pytest.mark.parametrize("make", [RandomState, lambda seed: RandomState(PCG64(seed))])
@pytest.mark.parametrize("shape", [(3, 5), (2, WORTH), (WORTH + 7,), (WORTH // 4, 5)])
def test_the_same_numbers_and_the_same_generator_after(make, shape):
    ours, theirs = make(3), make(3)
    for _ in range(2):
        assert_array_equal(gamma_draws(ours, shape), theirs.gamma(100.0, 0.01, shape))
        assert ours.normal() == theirs.normal()  # which may leave one for the next draw
    assert_array_equal(ours.random_sample(5), theirs.random_sample(5))


def test_a_generator_of_the_users_own_is_asked():
    assert_array_equal(gamma_draws(Own(0), (WORTH, 2)), 7.0)


def test_where_the_logarithm_is_another_numpy_draws(monkeypatch):
    monkeypatch.setattr(starts, "as_numpy", lambda: False)
    monkeypatch.delattr(starts.lda_seeds, "legacy_gamma")
    expected = RandomState(0).gamma(100.0, 0.01, WORTH)
    assert_array_equal(gamma_draws(RandomState(0), (WORTH,)), expected)
