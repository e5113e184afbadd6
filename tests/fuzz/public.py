"""The public names, read from the package: what a target must cover."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

#: Modules whose public names are fuzzed.  The models and the optimiser, on which users build
#: models of their own, take what an estimator has checked.
MODULES = (
    "annealvi",
    "annealvi.checkpoint",
    "annealvi.corpus",
    "annealvi.dask",
    "annealvi.datasets",
    "annealvi.metrics",
    "annealvi.models.lda_prior",
    "annealvi.partition",
    "annealvi.plot",
    "annealvi.plot.interactive",
    "annealvi.plot.report",
    "annealvi.progress",
    "annealvi.proximity",
    "annealvi.schedules",
    "annealvi.temperature",
    "annealvi.topics",
)
DEEP = ("annealvi.deep",)
#: What cannot be called, or is called by the library and not by its users.
EXEMPT = {
    "Conjugate": "a protocol",
    "Nested": "a protocol",
    "Schedule": "a protocol",
    "Temperature": "the base class, whose methods are covered in its subclasses",
    "OutOfReach": "an error",
    "KINDS": "a dict",
    "STATISTICS": "a dict",
    "DISTANCES": "a dict",
    "__version__": "a str",
    "Ascent": "a result",
    "Draws": "made by log_partition, which checks its parameters",
    "PowerGrid": "made by models and by log_partition, with checked grids",
    "Bernoulli": "the q of a BernoulliFactorModel",
}
#: Methods of temperatures that the optimiser calls, with the steps of a fit, and those that
#: files are made of.
OF_A_FIT = {
    "attach",
    "copy",
    "learned",
    "observe",
    "tempered_energy",
    "tempering",
    "path",
    "perturbs",
    "observes",
}
OF_FILES = {"state_dict", "load_state_dict", "of"}


def public_names(module: str) -> list[str]:
    """The public names of a module: its ``__all__``, or what it defines without underscore.

    Parameters
    ----------
    module : str
    """
    loaded = import_module(module)
    if hasattr(loaded, "__all__"):
        return list(loaded.__all__)
    return [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == module
    ]


def surface(modules: tuple[str, ...] = MODULES) -> set[str]:
    """Everything that a target must cover: ``function``, ``Class`` and ``Class.method``.

    Parameters
    ----------
    modules : tuple of str
    """
    found = set()
    for module in modules:
        for name in public_names(module):
            if name in EXEMPT:
                continue
            value = getattr(import_module(module), name)
            found.add(name)
            if inspect.isclass(value):
                found |= {f"{name}.{member}" for member in _members(value)}
    return found


def _members(cls: type) -> Iterator[str]:
    """Methods and properties of a class that are ours, settable ones with ``=`` too."""
    parts = ("Temperature", "MovingAverage", "Choice")  # their trees are parts of an estimator's
    part = any(base.__name__ in parts for base in cls.__mro__)
    for base in cls.__mro__:
        if not base.__module__.startswith("annealvi"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or (part and name in OF_A_FIT | OF_FILES):
                continue
            if isinstance(value, property):
                yield name
                if value.fset is not None:
                    yield f"{name}="
            elif isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
                yield name


def covered(targets: Any) -> set[str]:
    """What some targets cover.

    Parameters
    ----------
    targets : iterable of Target
    """
    return {name for target in targets for name in target.covers}
