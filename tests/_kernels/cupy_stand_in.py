"""A stand-in of CuPy: its arrays are NumPy's, and its modules are compiled as C++ and emulated.

It has what annealvi uses of CuPy and no more; test_gpu.py looks for each name in CuPy itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from annealvi import _kernels

KERNEL = re.compile(
    r"extern \"C\" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\((.*?)\)\s*\{", re.S
)
TYPES = {"int": ctypes.c_int, "float": ctypes.c_float, "double": ctypes.c_double}
#: Set for the compiler where kernels run under sanitizers, as they do in `make sanitize`.
VARIABLE, SANITIZERS = "ANNEALVI_EMULATED_FLAGS", "-fsanitize=address,undefined"
FLAGS = os.environ.get(VARIABLE, SANITIZERS * _kernels.sanitized_build()).split()


class Array(np.ndarray):
    """An array with what CuPy's have besides."""

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return np.array(self)
        assert out.shape == self.shape and out.dtype == self.dtype and out.flags.c_contiguous
        out[:] = self
        return out


def parameters_of(text: str) -> list[list[str]]:
    """The types and names of a kernel's parameters."""
    plain = re.sub(r"__restrict__|const", "", text).replace("*", "* ").replace(" *", "*")
    return [part.split() for part in plain.split(",")]


class RawModule:
    """Kernels, compiled by g++."""

    def __init__(self, *, code: str, options: tuple[str, ...]) -> None:
        code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
        self._kernels = {name: parameters_of(text) for name, text in KERNEL.findall(code)}
        runs = "".join(
            f'extern "C" void run_{name}(int x, int y, int n, long shared, '
            + ", ".join(f"{kind} {own}" for kind, own in parameters)
            + ") { emulated::run({x, y, 1}, n, shared, [=] { "
            + f"{name}({', '.join(own for _, own in parameters)}); }}); }}\n"
            for name, parameters in self._kernels.items()
        )
        header = Path(__file__).with_name("emulated.h").read_text(encoding="utf-8")
        text = "\n".join([header, code, runs])
        given = ["-O1", "-g", *FLAGS, *(option for option in options if option.startswith("-D"))]
        key = hashlib.sha256(repr((text, given)).encode()).hexdigest()[:20]
        folder = Path(tempfile.gettempdir()) / f"annealvi-emulated-{os.getuid()}"
        folder.mkdir(exist_ok=True)
        library = folder / f"{key}.so"
        if not library.exists():
            (folder / f"{key}.cpp").write_text(text)
            command = ["g++", "-std=c++17", "-ffp-contract=off", "-fPIC", "-shared", "-w", *given]
            part = folder / f"{key}.{os.getpid()}"
            subprocess.run([*command, folder / f"{key}.cpp", "-o", part], check=True)
            part.rename(library)
        self._library = ctypes.CDLL(str(library))

    def get_function(self, name: str) -> Any:
        return Kernel(getattr(self._library, f"run_{name}"), self._kernels[name])


class Kernel:
    """A kernel, launched as CuPy does: NumPy scalars and arrays of exactly its types."""

    def __init__(self, function: Any, parameters: list[list[str]]) -> None:
        self._function, self._parameters = function, parameters
        self.max_dynamic_shared_size_bytes = 48 << 10

    def __call__(self, grid: tuple, block: tuple, arguments: tuple, shared_mem: int = 0) -> None:
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        given = []
        for (kind, name), value in zip(self._parameters, arguments, strict=True):
            if not kind.endswith("*"):
                assert value.dtype == np.dtype(TYPES[kind]), name
                given.append(TYPES[kind](value.item()))
            elif isinstance(value, Array):
                wanted = TYPES[kind.rstrip("*").replace("float4", "float")]
                assert value.dtype == np.dtype(wanted) and value.flags.c_contiguous, name
                given.append(ctypes.c_void_p(value.ctypes.data))
            else:
                assert isinstance(value, np.intp) and not value, name  # null
                given.append(None)
        x, y = (*grid, 1)[:2]
        assert x > 0 and y > 0  # CUDA launches no empty grid
        self._function(x, y, block[0], ctypes.c_long(shared_mem), *given)


PROPERTIES = {
    "name": b"emulated",
    "sharedMemPerBlockOptin": 48 << 10,
    "sharedMemPerMultiprocessor": 100 << 10,
}
#: Most bytes of an array, how many GPUs there are, and the bytes that have been copied to them.
LIMITS = {"bytes": 1 << 40, "devices": 1, "copied": 0}
limits = SimpleNamespace(**LIMITS)


def _count() -> int:
    if not limits.devices:
        raise cuda.runtime.CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return limits.devices


cuda = SimpleNamespace(
    Device=lambda number: nullcontext(),
    runtime=SimpleNamespace(
        getDeviceProperties=lambda number: PROPERTIES,
        getDeviceCount=_count,
        memGetInfo=lambda: (1 << 29, 1 << 30),
        CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {}),
    ),
    memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {})),
)


def get_default_memory_pool() -> Any:
    return SimpleNamespace(free_all_blocks=lambda: None)


def _own(result: np.ndarray) -> Array:
    if result.nbytes > limits.bytes:
        raise cuda.memory.OutOfMemoryError(f"Out of memory allocating {result.nbytes:,} bytes")
    return result.view(Array)


def _made(function: Any) -> Any:
    return lambda *args, **options: _own(function(*args, **options))


zeros, ones, arange, searchsorted = map(_made, (np.zeros, np.ones, np.arange, np.searchsorted))


def asarray(values: Any) -> Array:
    limits.copied += np.asarray(values).nbytes
    return _own(np.array(values, order="C"))


def empty(shape: Any, dtype: Any) -> Array:
    """Filled, so that what is read before it is written makes a difference."""
    return _own(np.full(shape, 77, dtype))


def empty_like(array: Array) -> Array:
    return empty(array.shape, array.dtype)
