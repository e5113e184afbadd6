"""Choose, at import, the best build of the C kernels for this processor.

The environment variable ``ANNEALVI_INSTRUCTION_SET`` (``baseline``, ``avx2`` or
``avx512``) selects one explicitly.
"""

import os

VARIABLE = "ANNEALVI_INSTRUCTION_SET"
INSTRUCTION_SETS = ("avx512", "avx2", "baseline")


def available_instruction_sets() -> tuple:
    """The instruction sets that are in this build and run on this processor, best first."""
    return tuple(
        name for name in INSTRUCTION_SETS if find_kernels(name.encode()) != NULL
    )


def instruction_set() -> str:
    """The instruction set in use."""
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


_choose()
