"""Whether the kernels were built with OpenMP."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #define ANNEALVI_OPENMP 1
    #else
    #define ANNEALVI_OPENMP 0
    #endif
    """
    int ANNEALVI_OPENMP


def openmp_enabled() -> bool:
    """Whether more than one thread can be used."""
    return bool(ANNEALVI_OPENMP)
