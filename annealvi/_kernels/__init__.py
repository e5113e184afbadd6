"""The compiled kernels: the only place that knows about SIMD, threads and dtypes."""

import os

try:
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
    from annealvi._kernels.build_info import debug_build, openmp_enabled
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
    "special",
    "threads",
    "use_instruction_set",
]
