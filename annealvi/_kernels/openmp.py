"""The OpenMP threads of other libraries: scikit-learn and PyTorch bring runtimes of their own."""

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

#: `omp_pause_soft` of OpenMP 5.0.
SOFT = 1


def _runtimes() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


def release_threads() -> None:
    """End the waiting threads of every GNU runtime in the process, before a fork.

    :mod:`annealvi._kernels.threads` says why, and does it for the runtime of our kernels.  A
    copy older than GCC 9 cannot be asked.  Other runtimes handle forks themselves.
    """
    for runtime in _runtimes().lib_controllers:
        pause = getattr(runtime.dynlib, "omp_pause_resource_all", None)
        if runtime.prefix == "libgomp" and pause is not None:
            pause(SOFT)


@cache
def _known_runtimes() -> ThreadpoolController:
    return _runtimes()


def single_threaded_openmp() -> AbstractContextManager[Any]:
    """Return a context in which other libraries use one thread of OpenMP.

    One thread has none to wait for in a forked child, whatever runtime the library has.  Sums
    also have the same rounding errors for any number of processors.  The limit holds for the
    calling thread.
    """
    return _known_runtimes().limit(limits=1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=release_threads)
