"""The compiled kernels: the only place that knows about SIMD, threads and dtypes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _spinning_briefly() -> Iterator[None]:
    """Load GCC's OpenMP runtime so that idle threads spin only briefly.

    By default an idle thread spins for milliseconds.  On a busy machine it may then occupy
    the very processor that the thread it waits for needs: two threads took 2 to 8 times as
    long as one.  The runtime reads the environment variable when it is loaded.  If the user
    has set it, it is left alone.
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
        from annealvi._kernels import (  # type: ignore[attr-defined]  # compiled
            bounds,
            fmm,
            gemm,
            lda,
            partition,
            special,
            threads,
        )
        from annealvi._kernels._dispatch import (
            available_instruction_sets,
            instruction_set,
            use_instruction_set,
        )
        from annealvi._kernels.build_info import debug_build, openmp_enabled, sanitized_build
except ModuleNotFoundError as error:
    raise ImportError(
        "annealvi's compiled kernels are missing. If this is a source checkout, build them "
        "with `pip install -e .` in it, or start Python in another folder to use an "
        f"installed annealvi. ({error})"
    ) from error

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=threads.release)

__all__ = [
    "available_instruction_sets",
    "bounds",
    "debug_build",
    "fmm",
    "gemm",
    "instruction_set",
    "lda",
    "openmp_enabled",
    "partition",
    "sanitized_build",
    "special",
    "threads",
    "use_instruction_set",
]
