"""Fits have the same bits on every machine: processors are simulated, golden values are kept.

The golden values are written anew with `python -m bench.speed.same_bits --golden`, where a change
of results is wanted; the changelog then says so.
"""

import json
import os
import platform
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from annealvi import _kernels
from bench import CHECKOUT
from bench.speed.same_bits import GOLDEN

#: The digests of all fits, and of what a BLAS and NumPy compute: these do differ.
CODE = """
import hashlib, json, sys
import numpy as np
from bench.speed.same_bits import digests
x = np.random.RandomState(0).standard_normal((60, 60))
others = [x @ x, np.log1p(x**2)]
others = [hashlib.sha256(np.ascontiguousarray(other)).hexdigest() for other in others]
json.dump([digests(deep=False), others], sys.stdout)
"""


def numpys_choices() -> list[str]:
    """The instruction sets beyond its baseline that NumPy uses here."""
    umath = (np._core if hasattr(np, "_core") else np.core)._multiarray_umath
    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


AVX2 = {"AVX2", "FMA3", "X86_V3"}
PROCESSORS = {
    "AVX2": {
        "ANNEALVI_INSTRUCTION_SET": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": " ".join(n for n in numpys_choices() if n not in AVX2),
    },
    "SSE": {
        "ANNEALVI_INSTRUCTION_SET": "baseline",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": " ".join(numpys_choices()),
    },
}


@cache
def fits_on(processor: str) -> tuple[dict[str, str], list[str]]:
    """The digests of the fits of a process that takes this machine for another one."""
    options = dict(env=os.environ | PROCESSORS.get(processor, {}), stdout=subprocess.PIPE)
    printed = subprocess.run([sys.executable, "-c", CODE], cwd=CHECKOUT, check=True, **options)
    fits, others = json.loads(printed.stdout)
    return fits, others


def differing(some: dict[str, str], others: dict[str, str]) -> list[str]:
    assert some.keys() == others.keys()
    return [name for name in some if some[name] != others[name]]


@pytest.mark.slow
@pytest.mark.parametrize("processor", PROCESSORS)
def test_fits_have_the_same_bits_on_other_processors(processor):
    wanted = PROCESSORS[processor]["ANNEALVI_INSTRUCTION_SET"]
    if wanted not in _kernels.available_instruction_sets():
        pytest.skip(f"this processor has no {wanted}")
    here, there = fits_on("this"), fits_on(processor)
    if processor == "SSE" and len(numpys_choices()) > 1:
        assert here[1] != there[1]  # or nothing is simulated
    assert differing(here[0], there[0]) == []


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries round otherwise")
def test_fits_have_the_golden_values():
    assert differing(json.loads(GOLDEN.read_text("utf-8")), fits_on("this")[0]) == []
