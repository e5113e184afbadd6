"""Public names that have changed, so that scripts with the present names run with older builds."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

#: The present place of a function or class, as module and name, and its former place.
MOVED = {
    ("annealvi.callbacks", "Checkpoint"): "annealvi.checkpoint:Checkpoint",
    ("annealvi.callbacks", "HeldOut"): "annealvi.metrics:HeldOut",
    ("annealvi.callbacks", "ProgressBar"): "annealvi.progress:ProgressBar",
    ("annealvi.corpus", "write_corpus"): "annealvi.corpus:write",
}
#: The place and name of a function, with the present and the former names of its parameters.
PARAMETERS = {
    ("annealvi:TopicModel", "__init__"): {"single_topic": "clusters"},
    ("annealvi.metrics", "document_completion"): {"model": "estimator"},
    ("annealvi.topics", "choose_n_topics"): {"documents": "X", "n_topics": "ks"},
}
#: The present names of attributes and results of fits, with the names in older digests.
RESULTS: dict[str, str] = {}


def adapt() -> None:
    """Give the imported package the present names, if it is an older build."""
    for (module, name), former in MOVED.items():
        try:
            place = import_module(module)
        except ImportError:
            place = sys.modules.setdefault(module, ModuleType(module))
        if not hasattr(place, name):
            setattr(place, name, resolve_name(former))
    for (owner_name, name), renamed in PARAMETERS.items():
        owner = resolve_name(owner_name)
        setattr(owner, name, with_former_names(getattr(owner, name), renamed))


def with_former_names(function: Callable[..., Any], renamed: dict[str, str]) -> Callable[..., Any]:
    """Return a function that passes arguments on under the names that an older build has."""
    accepted = inspect.signature(function).parameters
    former = {new: old for new, old in renamed.items() if new not in accepted}
    if not former:
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **{former.get(name, name): x for name, x in named.items()})

    return call
