"""Conversion of parameters to nested dicts and lists ("trees"), which files contain, and back.

Numbers, strings, arrays and lists stay as they are.  An object becomes a dict with its ``type``,
which must be in a fixed table, so that a file cannot make annealvi import other classes.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.random import RandomState

from annealvi.files.schema import Field, Generator, Listed, Schema, Text, Tree, damaged

#: Names of classes whose objects can be written, by the module of the class.
MODULES: dict[str, tuple[str, ...]] = {
    "annealvi.deep": (
        "HierarchicalPosterior",
        "PoissonDEF",
        "ProximityPenalty",
        "SigmoidBeliefNetwork",
        "VariationalAutoencoder",
    ),
    "annealvi.lda": ("TemperedLDA",),
    "annealvi.mixtures": (
        "TemperedFMM",
        "TemperedGaussianMixture",
        "TemperedMultinomialMixture",
    ),
    "annealvi.partition": ("LogPartition",),
    "annealvi.schedules": ("Exponential", "Linear", "Relaxing"),
    "annealvi.temperature": ("Annealed", "Fixed", "LocalVariational", "Proximity", "Variational"),
    "annealvi.topics": ("TopicModel", "TopicVectorizer"),
    "sklearn.feature_extraction.text": ("CountVectorizer",),
}
OBJECTS = {name: module for module, names in MODULES.items() for name in names}
#: Dtypes that can be values of parameters.
DTYPES = {np.dtype(kind).name: kind for kind in (np.float32, np.float64, np.int32, np.int64)}
ALLOWED = (
    "None, a bool, a number, a string, an array, list or dict of these, a dtype, a temperature or "
    "schedule of annealvi, a LogPartition or a RandomState"
)
#: Names of parameters that are not written.
LEFT_OUT = frozenset({"callback"})


class Parameter(Field):
    """A field whose value is a parameter."""

    def dump(self, value: Any) -> Any:
        """Convert a parameter to a tree."""
        return parameter_tree(value, "")

    def load(self, value: Any, path: str, sizes: Any) -> Any:
        """Convert a tree to a parameter."""
        return parameter_of(value, path)


#: Schemas of other values that must be converted, by their `type`.
KINDS = {
    "tuple": Schema(lambda items: tuple(items), items=Listed(Parameter())),
    "dict": Schema(
        lambda keys, items: dict(zip(keys, items, strict=False)),
        keys=Listed(Text()),
        items=Listed(Parameter()),
    ),
    "dtype": Schema(lambda name: DTYPES[name], name=Text(*DTYPES)),
    "RandomState": Schema(lambda state: state, state=Generator()),
}
_TYPE = Schema(type=Text(*OBJECTS, *KINDS))


def parameter_tree(value: Any, name: str) -> Any:
    """Convert a parameter to a tree; raise TypeError, which names it, if it cannot be written."""
    value = value.item() if isinstance(value, np.generic) else value  # a scalar of NumPy
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if is_object(value):
        items = contents(value).items()
        parameters = {key: parameter_tree(item, f"{name}.{key}") for key, item in items}
        return {"type": type(value).__name__, "parameters": parameters}
    if isinstance(value, RandomState):
        try:
            return {"type": "RandomState", "state": Generator().dump(value)}
        except TypeError as error:
            raise TypeError(f"The {name!r} parameter: {error}") from error
    if isinstance(value, tuple):
        return {"type": "tuple", "items": parameter_tree(list(value), name)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        items = parameter_tree(list(value.values()), name)
        return {"type": "dict", "keys": list(value), "items": items}
    if isinstance(value, type | np.dtype) and np.dtype(value).name in DTYPES:
        return {"type": "dtype", "name": np.dtype(value).name}
    if isinstance(value, list | range):
        return [parameter_tree(item, name) for item in value]
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind in "fiub" and array.itemsize <= 8 and array.dtype != np.float16:
            return array
    raise TypeError(
        f"The {name!r} parameter cannot be written to a file: it must be {ALLOWED}. "
        f"Got {value!r} instead."
    )


def parameter_of(tree: Any, path: str) -> Any:
    """Convert a tree from a file to a parameter; `path` is its place in the file."""
    if isinstance(tree, list):
        return [parameter_of(item, f"{path}.{i}") for i, item in enumerate(tree)]
    if isinstance(tree, np.ndarray):
        return tree.copy()  # because arrays of a file are read-only
    if not isinstance(tree, Mapping):
        return tree
    kind = _TYPE.load(tree, path)["type"]
    if kind in KINDS:
        return KINDS[kind].load(tree, path)
    cls = class_of(kind)
    parameters = parameters_of(tree.get("parameters"), cls, f"{path}.parameters")
    try:
        return cls(**parameters)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The file is damaged: {path!r} is not a {kind}: {error}") from error


def parameters_of(tree: Any, cls: Any, path: str) -> dict[str, Any]:
    """Read the parameters of an object of a class; missing parameters keep their defaults."""
    tree = Tree().load(tree, path, {})  # raises an error if it is not a dict
    parameter_names = inspect.signature(cls).parameters
    for name in tree:
        if name not in parameter_names or name in LEFT_OUT:
            raise damaged(f"{path}.{name}", f"a parameter of {cls.__name__}", tree[name])
    return {name: parameter_of(item, f"{path}.{name}") for name, item in tree.items()}


def contents(value: Any) -> dict[str, Any]:
    """Return the parameters of an estimator, or the fields of a dataclass."""
    if not hasattr(value, "get_params"):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    parameters = value.get_params(deep=False)
    return {name: parameter for name, parameter in parameters.items() if name not in LEFT_OUT}


def class_of(name: str) -> Any:
    """Import a class by its name in the table."""
    return getattr(importlib.import_module(OBJECTS[name]), name)


def is_object(value: Any) -> bool:
    """Whether the class of an object, not only a base class, is in the table."""
    name = type(value).__name__
    return name in OBJECTS and type(value) is class_of(name)


def has_function(value: Any) -> bool:
    """Whether a value is a function or has a function as a parameter, and cannot be written."""
    if is_object(value):
        return any(map(has_function, contents(value).values()))
    return callable(value) and not isinstance(value, type)
