"""The OpenMP threads of the process: ours, and those of scikit-learn's and PyTorch's runtimes."""

from threadpoolctl import ThreadpoolController

#: `omp_pause_soft` of OpenMP 5.0.
SOFT = 1


def release_threads() -> None:
    """End the waiting threads of every GNU runtime in the process, before a fork.

    GCC's runtime keeps threads from one parallel region to the next.  A fork copies its records of
    them, but not the threads themselves, so the child would wait for them for ever.  After this
    call there are no records of threads, and both child and parent start new ones.  A copy older
    than GCC 9 cannot be asked.  Other runtimes handle forks themselves.
    """
    for runtime in ThreadpoolController().select(user_api="openmp").lib_controllers:
        pause = getattr(runtime.dynlib, "omp_pause_resource_all", None)
        if runtime.prefix == "libgomp" and pause is not None:
            pause(SOFT)
