"""Control of all OpenMP threads in the process, including scikit-learn's and PyTorch's."""

from threadpoolctl import ThreadpoolController

#: The constant `omp_pause_soft` of OpenMP 5.0.
SOFT = 1


def release_threads() -> None:
    """End the waiting threads of every GNU OpenMP runtime in the process, before a fork.

    GCC's runtime keeps threads between parallel regions.  A fork copies the runtime's records of
    threads, but not the threads themselves, so the child process would never stop waiting for them.
    This call also removes the records, so child and parent can start new threads.  GNU runtimes
    before GCC 9 cannot end their threads.  Runtimes of other compilers handle forks themselves.
    """
    for runtime in ThreadpoolController().select(user_api="openmp").lib_controllers:
        pause = getattr(runtime.dynlib, "omp_pause_resource_all", None)
        if runtime.prefix == "libgomp" and pause is not None:
            pause(SOFT)
