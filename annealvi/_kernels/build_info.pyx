"""How the kernels were built."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #define ANNEALVI_OPENMP 1
    #else
    #define ANNEALVI_OPENMP 0
    #endif

    #if defined(__clang__)
    #define ANNEALVI_COMPILER __VERSION__
    #else
    #define ANNEALVI_COMPILER "GCC " __VERSION__
    #endif
    """
    int ANNEALVI_OPENMP
    int ANNEALVI_DEBUG
    int ANNEALVI_SANITIZE
    int CYTHON_HEX_VERSION
    const char *ANNEALVI_COMPILER


def openmp_enabled() -> bool:
    """Return whether more than one thread can be used."""
    return bool(ANNEALVI_OPENMP)


def sanitized_build() -> bool:
    """Return whether the kernels report wrong memory accesses and undefined behaviour."""
    return bool(ANNEALVI_SANITIZE)


def debug_build() -> bool:
    """Return whether the kernels check array bounds."""
    return bool(ANNEALVI_DEBUG)


def built_with() -> dict:
    """Return the versions of what compiled the kernels: Cython and the C compiler."""
    parts = [CYTHON_HEX_VERSION >> shift & 0xFF for shift in (24, 16, 8)]
    return {
        "Cython": ".".join(str(part) for part in parts),
        "compiler": ANNEALVI_COMPILER.decode(),
    }
