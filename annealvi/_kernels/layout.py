"""Arrays with the memory layout that the kernels need."""

import math

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64  # bytes


def padded_length(n: int, dtype: DTypeLike) -> int:
    """The least row length of at least n that fills whole cache lines."""
    # the number of elements in a cache line
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return -(-n // per_line) * per_line  # rounded up


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """Make an uninitialised C-ordered array that starts at the beginning of a cache line."""
    dtype = np.dtype(dtype)
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > np.iinfo(np.intp).max - CACHE_LINE:  # NumPy would not raise a MemoryError
        raise MemoryError(f"Unable to allocate an array with shape {shape} and data type {dtype}")
    # more bytes than needed, so that a part of them begins at the beginning of a cache line
    raw = np.empty(n_bytes + CACHE_LINE, dtype=np.uint8)
    offset = -raw.ctypes.data % CACHE_LINE
    return raw[offset : offset + n_bytes].view(dtype).reshape(shape)


def separate_rows(n: int, width: int, dtype: DTypeLike = np.float64) -> NDArray:
    """Make n uninitialised rows of at least `width` numbers; no two rows share a cache line.

    Threads that write to different parts of the same cache line would slow each other down.
    """
    return aligned_empty((n, padded_length(width, dtype)), dtype)


def padded_rows(rows: NDArray, dtype: DTypeLike, fill: float = 0.0) -> NDArray:
    """Make an aligned copy of a matrix whose rows are padded with `fill`."""
    n, width = rows.shape
    out = aligned_empty((n, padded_length(width, dtype)), dtype)
    out[:, :width] = rows
    out[:, width:] = fill
    return out
