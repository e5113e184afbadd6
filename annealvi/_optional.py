"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
import shlex
from types import ModuleType

#: The names that pip uses for modules whose import name is different.
PACKAGES = {"cupy": "cupy-cuda12x[ctk]", "dask": "dask[array]", "stop_words": "stop-words"}
PACKAGES |= {"docx": "python-docx"}


def import_optional(module: str, purpose: str, *others: str) -> ModuleType:
    """Import a module, or raise an error that names all modules needed, including `others`."""
    try:
        modules = [importlib.import_module(name) for name in (module, *others)]
    except ImportError as error:
        packages = [PACKAGES.get(n := name.partition(".")[0], n) for name in (module, *others)]
        raise ImportError(
            f"{purpose} needs {' and '.join(packages)}. Install with: pip install "
            f"{shlex.join(packages)}"
        ) from error
    return modules[0]
