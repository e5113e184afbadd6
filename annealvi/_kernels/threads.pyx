"""OpenMP's own threads, of which a forked process has none."""

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
    """End the threads that wait for this thread's next parallel work; it starts others.

    The OpenMP runtime of GCC keeps them from one parallel region to the next.  A fork
    copies what it knows of them but not the threads, so the child would wait for them for
    ever; after this it finds none and starts its own, as the parent does.
    """
    with nogil:
        ANNEALVI_RELEASE_THREADS()
