"""Descriptions of the machine and of library versions, for tables of measurements."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np
import scipy

import annealvi
from annealvi import _kernels
from bench.adapters import RIVALS, SCIKIT_LEARN


def describe() -> dict[str, str | int]:
    """Return the processor, the number of cores and the instruction set of the kernels."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "instruction_set": _kernels.instruction_set(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed libraries."""
    numbers = {
        "Python": platform.python_version(),
        "annealvi": annealvi.__version__,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
    }
    libraries = {library.name: library.version() for library in (SCIKIT_LEARN, *RIVALS)}
    return numbers | {name: version for name, version in libraries.items() if version}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.split(":", 1) for line in reversed(lines) if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    return name
