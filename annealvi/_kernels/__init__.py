"""The compiled kernels.  No other part of annealvi depends on SIMD, threads or dtypes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

COMPILED = (
    *("_dispatch", "fmm", "gemm", "lda", "lda_collapsed", "lda_seeds", "lda_topics", "mmm"),
    *("partition", "special"),
)


@contextmanager
def _spinning_briefly() -> Iterator[None]:
    """Load GCC's OpenMP runtime so that idle threads spin only briefly.

    By default an idle thread waits actively for milliseconds.  On a busy machine it may occupy the
    processor that another thread of the same fit needs; in tests, a fit with two threads then took
    2 to 8 times as long as with one.  The runtime reads ``GOMP_SPINCOUNT`` when it is loaded.  If
    the user has set this variable or ``OMP_WAIT_POLICY``, nothing is changed.
    """
    variable = "GOMP_SPINCOUNT"
    if variable in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ[variable] = "1000"
    try:
        yield
    finally:
        del os.environ[variable]


try:
    with _spinning_briefly():
        for _name in COMPILED:
            import_module(f"{__name__}.{_name}")  # names what is missing, "from ... import" cannot
        from annealvi._kernels import (  # type: ignore[attr-defined]  # compiled
            fmm,
            gemm,
            lda,
            lda_collapsed,
            lda_seeds,
            lda_topics,
            mmm,
            openmp,
            partition,
            special,
        )
        from annealvi._kernels._dispatch import (
            available_instruction_sets,
            built_with,
            debug_build,
            instruction_set,
            openmp_enabled,
            sanitized_build,
            use_instruction_set,
        )
except ModuleNotFoundError as error:
    if not (error.name or "").startswith(f"{__name__}."):
        raise  # another module is missing, for example SciPy
    raise ImportError(
        f"The compiled kernels of annealvi are missing in {os.path.dirname(__file__)}: there is no "
        f"{error.name} for Python {sys.version.split()[0]}. Build them with `pip install -e .` in "
        "the source tree, or start Python in another folder to use an installed annealvi."
    ) from None

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=openmp.release_threads)

__all__ = [
    "available_instruction_sets",
    "built_with",
    "debug_build",
    "fmm",
    "gemm",
    "instruction_set",
    "lda",
    "lda_collapsed",
    "lda_seeds",
    "lda_topics",
    "mmm",
    "openmp_enabled",
    "partition",
    "sanitized_build",
    "special",
    "use_instruction_set",
]
