"""The memory layout of arrays: what starts on a cache line of its own, and what padding holds."""

import numpy as np
import pytest

from annealvi._kernels.layout import CACHE_LINE, aligned_empty, separate_rows
from tests.asserts import refused


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (7, 1, 2)])
def test_arrays_start_on_a_cache_line(dtype, shape):
    for _ in range(10):
        found = aligned_empty(shape, dtype)
        assert (found.shape, found.dtype) == (shape, np.dtype(dtype))
        assert found.ctypes.data % CACHE_LINE == 0 and found.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [0, 1, 8, 9, 100])
def test_no_two_rows_share_a_cache_line(dtype, width):
    rows = separate_rows(3, width, dtype)
    assert len(rows) == 3
    assert width <= rows.shape[1] < width + CACHE_LINE // rows.itemsize
    lines = [row.ctypes.data // CACHE_LINE for row in rows] if width else [0, 1, 2]
    ends = [(row.ctypes.data + row.nbytes - 1) // CACHE_LINE for row in rows] if width else lines
    assert all(end < start for end, start in zip(ends[:-1], lines[1:], strict=True))


def test_more_than_fits_into_the_address_space_is_a_memory_error():
    refused("Unable to allocate", aligned_empty, (1 << 40, 1 << 40), np.float64, error=MemoryError)
