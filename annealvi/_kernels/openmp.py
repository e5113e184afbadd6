"""The OpenMP threads of other libraries: scikit-learn and PyTorch bring runtimes of their own."""

from threadpoolctl import ThreadpoolController

#: `omp_pause_soft` of OpenMP 5.0.
SOFT = 1


def release_threads() -> None:
    """End the waiting threads of every GNU runtime in the process, before a fork.

    :mod:`annealvi._kernels.threads` says why, and does it for the runtime of our kernels.  A
    copy older than GCC 9 cannot be asked.  Other runtimes handle forks themselves.
    """
    for runtime in ThreadpoolController().select(user_api="openmp").lib_controllers:
        pause = getattr(runtime.dynlib, "omp_pause_resource_all", None)
        if runtime.prefix == "libgomp" and pause is not None:
            pause(SOFT)
