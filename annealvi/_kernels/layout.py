"""How arrays lie in memory for the kernels, and what they ask of BLAS."""

import threading
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import ThreadpoolController

CACHE_LINE = 64  # bytes


def padded_length(n: int, dtype: DTypeLike) -> int:
    """The least row length >= n that fills whole cache lines."""
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return -(-n // per_line) * per_line


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """An uninitialised C-ordered array that starts on a cache line."""
    dtype = np.dtype(dtype)
    n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(n_bytes + CACHE_LINE, dtype=np.uint8)
    offset = -raw.ctypes.data % CACHE_LINE
    return raw[offset : offset + n_bytes].view(dtype).reshape(shape)


def padded_rows(rows: NDArray, dtype: DTypeLike, fill: float = 0.0) -> NDArray:
    """A copy of a matrix with its rows padded by `fill`, aligned."""
    n, width = rows.shape
    out = aligned_empty((n, padded_length(width, dtype)), dtype)
    out[:, :width] = rows
    out[:, width:] = fill
    return out


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _SingleThreadedBlas:
    """The limit is of the whole process: the first to come sets it, the last restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = _blas().limit(limits=1)
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


_single_threaded_blas = _SingleThreadedBlas()


def single_threaded_blas() -> AbstractContextManager[None]:
    """Hold BLAS to one thread inside, as the blocked products want it."""
    return _single_threaded_blas
