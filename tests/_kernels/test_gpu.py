"""The sources of the kernels for a GPU: compiled for CUDA, and emulated under sanitizers.

What they compute is tested in tests/models/lda/test_device.py.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

import pytest

from annealvi._kernels import gpu as kernels
from bench import CHECKOUT
from tests._kernels import cupy_stand_in
from tests.sanitize import runtimes

NVRTC = "nvidia.cuda_nvrtc"


@pytest.fixture(scope="module")
def nvrtc():
    """NVIDIA's compiler, which needs no GPU."""
    if find_spec("nvidia") is None or find_spec(NVRTC) is None:
        pytest.skip("needs nvidia-cuda-nvrtc-cu12")
    folder = Path(find_spec(NVRTC).submodule_search_locations[0], "lib")
    return ctypes.CDLL(str(next(folder.glob("libnvrtc.so.*"))))


def names_used():
    """What the package takes of CuPy."""
    files = Path(kernels.__file__), CHECKOUT / "annealvi/models/lda/gpu.py"
    texts = (path.read_text(encoding="utf-8") for path in files)
    return {
        name for text in texts for name in re.findall(r"\b(?:cp|cupy)\.([a-zA-Z.]\w[\w.]*)", text)
    }


def text_of(get_size, get, program):
    size = ctypes.c_size_t()
    get_size(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.raw.decode(errors="replace")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("K", "mixed"),
    [(20, False), *(pytest.param(K, True, marks=pytest.mark.slow) for K in (3, 100, 500, 2048))],
)
def test_cuda_compiles_every_kernel(nvrtc, K, mixed, arch):
    for name in ("lda_document", "lda_topics"):
        source, program = kernels.source(name), ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"", 0, None, None)
        given = [
            text.encode() for text in (*kernels.options(K, mixed), f"--gpu-architecture={arch}")
        ]
        failed = nvrtc.nvrtcCompileProgram(
            program, len(given), (ctypes.c_char_p * len(given))(*given)
        )
        log = text_of(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        assert not failed and not log.strip("\0\n"), log
        code = text_of(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        for kernel, _ in cupy_stand_in.KERNEL.findall(source):
            assert kernel in code


@pytest.mark.parametrize("name", sorted(names_used()))
def test_cupy_has_what_is_used_of_it(name):
    assert callable(attrgetter(name)(pytest.importorskip("cupy")))


OVERRUN = """
import numpy as np
from tests._kernels import cupy_stand_in as cp
from annealvi._kernels import gpu
device = gpu.Device(cp)
kernel = device.compiled("lda_topics", 16, False).get_function("add_blocks")
partial, sums = cp.empty((200, 16), np.float64), cp.empty(16, np.float64)
kernel((1,), (128,), (np.int32({n_blocks}), partial, sums))
"""


def sanitized(*arguments):
    """The process that runs Python with arguments, kernels and all, under AddressSanitizer."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to compile the kernels")
    environment = os.environ | {
        cupy_stand_in.VARIABLE: "-fsanitize=address",
        "LD_PRELOAD": runtimes(),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "PYTHONPATH": str(CHECKOUT),
    }
    command = [sys.executable, *arguments]
    options = dict(cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return subprocess.run(command, env=environment, **options)


@pytest.mark.slow
def test_an_overrun_of_a_kernel_is_reported():
    assert sanitized("-c", OVERRUN.format(n_blocks=200)).returncode == 0
    assert "heap-buffer-overflow" in sanitized("-c", OVERRUN.format(n_blocks=201)).stderr


@pytest.mark.slow
def test_steps_read_and_write_no_more_than_their_arrays():
    tests = "memory_is_short or every_size and (33 or 5) or temperatures and map"
    file = "tests/models/lda/test_device.py"
    done = sanitized("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file, "-k", tests)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
