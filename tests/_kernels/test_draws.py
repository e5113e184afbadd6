"""The kernel's gamma draws against those of numpy.random.RandomState."""

import numpy as np
import pytest
from numpy.random import RandomState
from numpy.testing import assert_array_equal

from annealvi._kernels import lda_seeds as kernels


def drawn(rng, shape, scale, n):
    """The kernel's draws from the state of a generator, and the generator after them."""
    state = rng.get_state(legacy=False)
    key, out = state["state"]["key"].copy(), np.empty(n)
    assert len(key) == kernels.N_WORDS
    left = state["state"]["pos"], state["has_gauss"], state["gauss"]
    after, left = RandomState(), kernels.legacy_gamma(key, *left, shape, scale, out)
    after.set_state(("MT19937", key, *left))
    return out, after


@pytest.mark.parametrize("shape", [1.0001, 1.3, 5.0, 100.0, 1e6])  # the first refuses most
@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 3001])
@pytest.mark.parametrize("used", [0, 1, 2, 623])
def test_the_same_numbers_and_the_same_state(shape, n, used):
    rng = RandomState(5)
    rng.randint(0, 2**32, used, dtype=np.uint32)  # one word each
    out, after = drawn(rng, shape, 0.25, n)
    assert_array_equal(out, rng.gamma(shape, 0.25, n))
    for theirs, ours in zip(rng.get_state(), after.get_state(), strict=True):
        assert_array_equal(theirs, ours)
