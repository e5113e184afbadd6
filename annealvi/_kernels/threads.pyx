"""The threads of OpenMP, which a forked process does not have."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define ANNEALVI_RELEASE_THREADS() omp_pause_resource_all(omp_pause_soft)
    #else
    #define ANNEALVI_RELEASE_THREADS() 0
    #endif
    """
    int ANNEALVI_RELEASE_THREADS() nogil


def release() -> None:
    """End the threads that wait for this thread's next parallel work; new ones start then.

    The OpenMP runtime of GCC keeps threads from one parallel region to the next.  A fork
    copies the runtime's records of them, but not the threads themselves, so the child would
    wait for them for ever.  After this call there are no records of threads, and both child
    and parent start new ones.
    """
    with nogil:
        ANNEALVI_RELEASE_THREADS()
