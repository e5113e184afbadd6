"""Versions: those in pickles, of which another version warns, and those of the installation."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_info

from annealvi import _kernels
from annealvi._version import __version__
from annealvi.exceptions import InconsistentVersionWarning, warn_user

KEY = "_annealvi_version"
#: The libraries that :func:`show_versions` lists: those that are required come first.
LIBRARIES = (
    "annealvi",
    "numpy",
    "scipy",
    "scikit-learn",
    "threadpoolctl",
    "safetensors",
    "tqdm",
    "pandas",
    "matplotlib",
    "plotly",
    "dask",
    "torch",
    "pip",
    "setuptools",
)


class Versioned:
    """A base class of estimators; it must precede scikit-learn's `BaseEstimator` in the bases."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[misc, assignment]
        return {**state, KEY: __version__}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        state = dict(state)
        warn_of_version(type(self).__name__, state.pop(KEY, "(an older version)"))
        super().__setstate__(state)  # type: ignore[misc]


def warn_of_version(owner: str, version: str) -> None:
    """Warn if another version of annealvi wrote the file or pickle."""
    if version != __version__:
        warning = InconsistentVersionWarning(
            estimator_name=owner,
            current_sklearn_version=__version__,
            original_sklearn_version=version[:40],
        )
        warn_user(warning)


def show_versions() -> None:
    """Print the versions of the system and of libraries, and how the kernels were built.

    Include what is printed when you report a problem.  It also shows whether the build has fast
    kernels for your processor, and whether fits can use several threads.

    Examples
    --------
    >>> import annealvi
    >>> annealvi.show_versions()  # doctest: +SKIP
    """
    available = _kernels.available_instruction_sets()
    tables: dict[str, Any] = {
        "System": {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
        },
        "Python dependencies": {name: _version_of(name) for name in LIBRARIES},
        "Compiled kernels": {
            "instruction set": f"{_kernels.instruction_set()} (available: {', '.join(available)})",
            "threads": "OpenMP" if _kernels.openmp_enabled() else "one, built without OpenMP",
            **_kernels.built_with(),
        },
    }
    for number, runtime in enumerate(threadpool_info(), start=1):
        tables[f"Runtime {number}, by threadpoolctl"] = runtime
    for title, rows in tables.items():
        print(f"\n{title}:")
        for name, value in rows.items():
            print(f"{name:>17}: {value}")


def _version_of(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
