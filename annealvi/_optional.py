"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
from types import ModuleType


def import_optional(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {package}. Install it with the extra {extra!r}: "
            f"pip install 'annealvi[{extra}]'."
        ) from error
