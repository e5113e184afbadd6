"""Inverse temperatures of documents in the dtype of the kernels."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.model import Tempering
from annealvi.models.lda.engine import inverse_of_each, of_rows, representable
from tests.asserts import refused


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_document_has_its_own_in_a_new_array(dtype):
    given = np.array([0.5, 0.25, 1.0])
    found = inverse_of_each(Tempering(given), 3, np.dtype(dtype))
    assert found.dtype == dtype and not np.shares_memory(found, given)
    assert_array_equal(found, given)
    one = inverse_of_each(Tempering(0.1), 2, np.dtype(dtype))
    assert_array_equal(one, np.full(2, 0.1, dtype))
    one[0] = 1  # it may be written to


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_none_is_below_the_least_normal_number(dtype):
    least, given = np.finfo(dtype).tiny, np.array([1e-307, 1.0])
    assert_array_equal(representable(given, np.dtype(dtype)), [max(least, dtype(1e-307)), 1])
    with pytest.raises(ValueError, match=r"temperature must be at most 4.49e\+307. Got 1e\+308"):
        inverse_of_each(Tempering(1e-308), 1, np.dtype(dtype))
    for inverse in (0.0, np.array([1.0, 0.0])):
        refused("Got inf", inverse_of_each, Tempering(inverse), 2, np.dtype(dtype))


def test_some_rows():
    assert of_rows(Tempering(0.5), slice(1, 2)).inverse == 0.5
    assert_array_equal(of_rows(Tempering(np.arange(1.0, 5.0)), slice(1, 3)).inverse, [2, 3])
