"""The public names, read from the package: what is called."""

from __future__ import annotations

import inspect
from importlib import import_module

#: Modules whose public names are fuzzed.  The models and the optimiser, on which users build
#: models of their own, take what an estimator has checked.
MODULES = (
    *("annealvi", "annealvi.checkpoint", "annealvi.corpus", "annealvi.dask", "annealvi.datasets"),
    *("annealvi.metrics", "annealvi.models.lda_prior", "annealvi.partition", "annealvi.plot"),
    *("annealvi.plot.interactive", "annealvi.plot.report", "annealvi.progress"),
    *("annealvi.proximity", "annealvi.schedules", "annealvi.temperature", "annealvi.topics"),
)
DEEP = ("annealvi.deep",)
#: What cannot be called, or is called by the library and not by its users; with the reason.
EXEMPT = {
    **dict.fromkeys(["Conjugate", "Nested", "Schedule"], "a protocol"),
    **dict.fromkeys(["KINDS", "STATISTICS", "DISTANCES", "__version__"], "not callable"),
    **dict.fromkeys(["Ascent", "TopicSummary", "Choice"], "a result, made by a function"),
    "Temperature": "the base class, whose methods are covered in its subclasses",
    "OutOfReach": "an error",
    "Draws": "made by log_partition, which checks its parameters",
    "PowerGrid": "made by models and by log_partition, with checked grids",
    "Bernoulli": "the q of a BernoulliFactorModel",
}
#: Methods that the library calls, with the steps of a fit, files or numbers that it has checked.
INNER = {
    *("attach", "copy", "learned", "observe", "tempered_energy", "tempering", "path", "perturbs"),
    *("observes", "plan", "inverse", "settled", "during_fit", "begin", "of"),
    *("state_dict", "load_state_dict", "log_partition", "draw_log_partition"),
    *("jensen_log_partition", "map_log_partition", "elbo", "gradients", "best_means"),
}


def public_names(module: str) -> list[str]:
    """The public names of a module: its ``__all__``, or what it defines without underscore."""
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


def members(cls: type) -> list[str]:
    """Methods and properties of a class that are ours, settable ones with ``=`` too."""
    found = set()
    for base in cls.__mro__:
        if base.__module__.startswith("annealvi"):
            for name, value in vars(base).items():
                if isinstance(value, property):
                    found |= {name, *[f"{name}="] * (value.fset is not None)}
                elif isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
                    found.add(name)
    return sorted(name for name in found if not name.startswith("_") and name not in INNER)
