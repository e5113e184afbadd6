"""A stand-in of CuPy: its arrays are NumPy's, and its modules are compiled as C++ and emulated."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
KERNEL = re.compile(
    r"extern \"C\" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\((.*?)\)\s*\{", re.S
)
TYPES = {"int": ctypes.c_int, "float": ctypes.c_float, "double": ctypes.c_double}


class Array(np.ndarray):
    """An array with what CuPy's have besides."""

    def get(self) -> np.ndarray:
        return np.array(self)


def _array(values: Any, dtype: Any = None) -> Array:
    return np.array(values, dtype=dtype, order="C").view(Array)


def _parameters(text: str) -> list[list[str]]:
    """The types and names of a kernel's parameters."""
    plain = re.sub(r"__restrict__|const", "", text).replace("*", "* ").replace(" *", "*")
    return [part.split() for part in plain.split(",")]


class RawModule:
    """Kernels, compiled by g++."""

    flags: tuple[str, ...] = ("-O1",)

    def __init__(self, *, code: str, options: tuple[str, ...]) -> None:
        code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
        self._kernels = {name: _parameters(text) for name, text in KERNEL.findall(code)}
        runs = "".join(
            f'extern "C" void run_{name}(int x, int y, int n, long shared, '
            + ", ".join(f"{kind} {own}" for kind, own in parameters)
            + ") { emulated::run({x, y, 1}, n, shared, [=] { "
            + f"{name}({', '.join(own for _, own in parameters)}); }}); }}\n"
            for name, parameters in self._kernels.items()
        )
        text = f'#include "{FOLDER}/emulated.h"\n{code}\n{runs}'
        given = [*self.flags, *(option for option in options if option.startswith("-D"))]
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
        function = getattr(self._library, f"run_{name}")
        function.restype = None
        kinds = [kind for kind, _ in self._kernels[name]]

        def launch(grid: tuple, block: tuple, arguments: tuple, shared_mem: int = 0) -> None:
            given = [
                (
                    ctypes.c_void_p(a.ctypes.data)
                    if isinstance(a, np.ndarray)
                    else ctypes.c_void_p(int(a))
                )
                if kind.endswith("*")
                else TYPES[kind](a.item())
                for kind, a in zip(kinds, arguments, strict=True)
            ]
            x, y = (*grid, 1)[:2]
            function(x, y, block[0], ctypes.c_long(shared_mem), *given)

        return SimpleNamespaceCall(launch)


class SimpleNamespaceCall(SimpleNamespace):
    def __init__(self, call: Any) -> None:
        super().__init__(call=call, max_dynamic_shared_size_bytes=0)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self.call(*args, **kwargs)


class _Device:
    def __init__(self, number: int = 0) -> None:
        self.number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


PROPERTIES = {
    "name": b"emulated",
    "sharedMemPerBlockOptin": 48 << 10,
    "sharedMemPerMultiprocessor": 100 << 10,
    "totalGlobalMem": 1 << 30,
}
asarray = _array
cuda = SimpleNamespace(
    Device=_Device,
    runtime=SimpleNamespace(
        getDeviceProperties=lambda number: PROPERTIES, getDeviceCount=lambda: 1
    ),
)


def __getattr__(name: str) -> Any:
    """NumPy's functions, whose results are arrays with what CuPy's have."""
    function = getattr(np, name)

    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result.view(Array) if isinstance(result, np.ndarray) else result

    return called if callable(function) and not isinstance(function, type) else function
