"""The builds of the kernels for several instruction sets, and the choice among them.

The best build for this processor is chosen at import.  The environment variable
``ANNEALVI_INSTRUCTION_SET`` (``baseline``, ``avx2`` or ``avx512``) selects another one.
"""

import os

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

VARIABLE = "ANNEALVI_INSTRUCTION_SET"
INSTRUCTION_SETS = ("avx512", "avx2", "baseline")


def available_instruction_sets() -> tuple:
    """The instruction sets of this build that the processor can run, the best one first."""
    return tuple(
        name for name in INSTRUCTION_SETS if find_kernels(name.encode()) != NULL
    )


def instruction_set() -> str:
    """The instruction set that is in use."""
    return kernels.name.decode()


def use_instruction_set(name: str) -> None:
    """Switch to another build of the kernels.  For tests only, and not while a kernel runs."""
    global kernels
    if name not in available_instruction_sets():
        raise ValueError(
            f"The instruction set {name!r} is not available here; "
            f"available: {', '.join(available_instruction_sets())}."
        )
    kernels = find_kernels(name.encode())


def _choose() -> None:
    global kernels
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        kernels = find_kernels(available_instruction_sets()[0].encode())
        return
    try:
        use_instruction_set(wanted)
    except ValueError as error:
        raise ImportError(f"{VARIABLE}={wanted!r}: {error}") from None


def openmp_enabled() -> bool:
    """Return whether more than one thread can be used."""
    return bool(ANNEALVI_OPENMP)


def sanitized_build() -> bool:
    """Return whether this build reports wrong memory accesses and undefined behaviour."""
    return bool(ANNEALVI_SANITIZE)


def debug_build() -> bool:
    """Return whether the kernels check array bounds."""
    return bool(ANNEALVI_DEBUG)


def built_with() -> dict:
    """Return the versions of Cython and of the C compiler that built the kernels."""
    parts = [CYTHON_HEX_VERSION >> shift & 0xFF for shift in (24, 16, 8)]
    return {
        "Cython": ".".join(str(part) for part in parts),
        "compiler": ANNEALVI_COMPILER.decode(),
    }


_choose()
