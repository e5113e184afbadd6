"""How the kernels were built."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #define ANNEALVI_OPENMP 1
    #else
    #define ANNEALVI_OPENMP 0
    #endif
    """
    int ANNEALVI_OPENMP
    int ANNEALVI_DEBUG
    int ANNEALVI_SANITIZE


def openmp_enabled() -> bool:
    """Return whether more than one thread can be used."""
    return bool(ANNEALVI_OPENMP)


def sanitized_build() -> bool:
    """Return whether the kernels report wrong memory accesses and undefined behaviour."""
    return bool(ANNEALVI_SANITIZE)


def debug_build() -> bool:
    """Return whether the kernels check array bounds."""
    return bool(ANNEALVI_DEBUG)
