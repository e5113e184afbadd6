"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
import shlex
from types import ModuleType

#: The names that pip uses for modules whose import name is different.
PACKAGES = {
    "cupy": "cupy-cuda12x[ctk]",
    "dask": "dask[array]",
    "docx": "python-docx",
    "stop_words": "stop-words",
}


def import_optional(module: str, purpose: str, *others: str) -> ModuleType:
    """Import a module, or raise an error that names all modules needed, including `others`."""
    try:
        for name in others:
            importlib.import_module(name)
        return importlib.import_module(module)
    except ImportError as error:
        names = [name.partition(".")[0] for name in (module, *others)]
        packages = [PACKAGES.get(name, name) for name in names]
        needed = f"{purpose} needs {' and '.join(packages)}"
        install = f"pip install {shlex.join(packages)}"
        raise ImportError(f"{needed}. Install with: {install}") from error
