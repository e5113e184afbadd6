"""The memory layout of arrays for the kernels, and the number of threads of BLAS."""

import math
import os
import threading
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import ThreadpoolController

CACHE_LINE = 64  # bytes


def padded_length(n: int, dtype: DTypeLike) -> int:
    """The least row length >= n that is a whole number of cache lines."""
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return -(-n // per_line) * per_line


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """An uninitialised C-ordered array that starts on a cache line."""
    dtype = np.dtype(dtype)
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > np.iinfo(np.intp).max - CACHE_LINE:  # NumPy's own error is no MemoryError
        raise MemoryError(f"Unable to allocate an array with shape {shape} and data type {dtype}")
    raw = np.empty(n_bytes + CACHE_LINE, dtype=np.uint8)
    offset = -raw.ctypes.data % CACHE_LINE
    return raw[offset : offset + n_bytes].view(dtype).reshape(shape)


def separate_rows(n: int, width: int, dtype: DTypeLike = np.float64) -> NDArray:
    """n uninitialised rows of at least `width` numbers, of which no two share a cache line.

    Two threads that write to the same line, each to its own part, wait for each other.
    """
    return aligned_empty((n, padded_length(width, dtype)), dtype)


def padded_rows(rows: NDArray, dtype: DTypeLike, fill: float = 0.0) -> NDArray:
    """An aligned copy of a matrix whose rows are padded with `fill`."""
    n, width = rows.shape
    out = aligned_empty((n, padded_length(width, dtype)), dtype)
    out[:, :width] = rows
    out[:, width:] = fill
    return out


def _set_threads(library: Any, number: int) -> None:
    """Set the number of threads of a BLAS, from any thread.

    threadpoolctl 3.8 lets only one Python thread set it and ignores the others.  Their
    products would then depend on the number of threads.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    openmp = [library for library in found if library.info().get("threading_layer") == "openmp"]
    return [library for library in found if library not in openmp], openmp


def _shared() -> list[Any]:
    return _libraries()[0]


def _per_thread() -> list[Any]:
    return _libraries()[1]


class _SingleThreadedBlas:
    """A context in which BLAS uses one thread.

    The limit holds for the whole process: the first thread that enters sets it, and the last
    one that leaves restores it.  An OpenBLAS built on OpenMP has a limit for each thread, so
    there every thread sets and restores its own.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the counts of threads inside the context."""
        self._lock = threading.Lock()
        self._users = 0
        self._before: list[int] = []
        self._own = threading.local()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = [library.num_threads for library in _shared()]
                for library in _shared():
                    _set_threads(library, 1)
            self._users += 1
        depth = getattr(self._own, "depth", 0)
        if depth == 0:
            self._own.before = [library.num_threads for library in _per_thread()]
            for library in _per_thread():
                _set_threads(library, 1)
        self._own.depth = depth + 1

    def __exit__(self, *error: object) -> None:
        self._own.depth -= 1
        if self._own.depth == 0:
            for library, number in zip(_per_thread(), self._own.before, strict=True):
                _set_threads(library, number)
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for library, number in zip(_shared(), self._before, strict=True):
                    _set_threads(library, number)


_single_threaded_blas = _SingleThreadedBlas()
if hasattr(os, "register_at_fork"):
    # threads that were inside the context, or held the lock, do not exist in the child
    os.register_at_fork(after_in_child=_single_threaded_blas.reset)


def single_threaded_blas() -> AbstractContextManager[None]:
    """Return a context in which BLAS uses one thread, as the blocked products need it."""
    return _single_threaded_blas
