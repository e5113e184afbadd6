"""The public names: what docs/api.rst lists."""

import re
from importlib import import_module
from pathlib import Path

API = Path(__file__).resolve().parents[1] / "docs" / "api.rst"


def reference():
    """Module and name of all that docs/api.rst lists."""
    module = None
    for line in API.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"   ([\w.]+)$", line):
            yield tuple(f"{module}.{match[1]}".rsplit(".", 1))


def thing(module, name):
    return getattr(import_module(module), name)
