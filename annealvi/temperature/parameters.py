"""Parameters of estimators and temperatures as trees, for files.

Numbers, strings, arrays and lists stand for themselves.  Objects are dicts with their ``type``,
which is looked up in a fixed table: a file cannot name a class to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.random import RandomState

from annealvi.files import Node, generator_state, restore_generator
from annealvi.partition.result import LogPartition
from annealvi.schedules import Exponential, Linear, Relaxing
from annealvi.temperature.annealed import Annealed, Fixed
from annealvi.temperature.base import Temperature
from annealvi.temperature.factors import Proximity
from annealvi.temperature.local import LocalVariational
from annealvi.temperature.variational import Variational

#: The temperatures that a file can hold.
TEMPERATURES: dict[str, type[Temperature]] = {
    kind.__name__: kind for kind in (Annealed, Fixed, LocalVariational, Proximity, Variational)
}
#: The schedules that a file can hold.
SCHEDULES: dict[str, type] = {kind.__name__: kind for kind in (Exponential, Linear, Relaxing)}
#: Dtypes that may be parameters.
DTYPES = {np.dtype(kind).name: kind for kind in (np.float32, np.float64, np.int32, np.int64)}
ALLOWED = (
    "None, a bool, a number, a string, an array, list or dict of these, a dtype, a temperature or "
    "schedule of annealvi, a LogPartition or a RandomState"
)
#: What the type of a dict says of it that is no object of ours.
PLAIN = ("dict", "dtype")
#: No further kinds of objects.
NONE: Mapping[str, type] = {}


def parameter_tree(value: Any, name: str, owner: str, kinds: Mapping[str, type] = NONE) -> Any:
    """Return a parameter as a tree.

    Parameters
    ----------
    value : object
    name, owner : str
        The parameter and the class that has it, for the message.
    kinds : dict of str to type
        Further classes, by name, with ``get_params`` as scikit-learn's estimators have it.

    Raises
    ------
    TypeError
        If a file cannot hold it.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return parameter_tree(value.item(), name, owner)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if type(value) in TEMPERATURES.values() or type(value) in kinds.values():
        return _object_tree(value, value.get_params(deep=False), name, owner)
    if type(value) in SCHEDULES.values():
        return _object_tree(value, vars(value), name, owner)
    if isinstance(value, LogPartition):
        content = {part.name: getattr(value, part.name) for part in fields(value)}
        made_for = content.pop("made_for")
        tree = _object_tree(value, content, name, owner)
        tree["made_for"] = {
            key: parameter_tree(part, f"{name}.made_for.{key}", owner)
            for key, part in made_for.items()
        }
        return tree
    if isinstance(value, RandomState):
        try:
            return {"type": "RandomState", "state": generator_state(value)}
        except TypeError as error:
            raise TypeError(f"The {name!r} parameter of {owner}: {error}") from error
    if isinstance(value, tuple):
        return {"type": "tuple", "items": parameter_tree(list(value), name, owner)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {
            "type": "dict",
            "keys": [str(key) for key in value],
            "items": parameter_tree(list(value.values()), name, owner),
        }
    if isinstance(value, type | np.dtype) and np.dtype(value).name in DTYPES:
        return {"type": "dtype", "name": np.dtype(value).name}
    if isinstance(value, list | range):
        return [parameter_tree(part, name, owner) for part in value]
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind in "fiu" and array.itemsize <= 8 and array.dtype != np.float16:
            return array
        if array.dtype.kind == "b":
            return array
    raise TypeError(
        f"The {name!r} parameter of {owner} cannot be written to a file: it must be {ALLOWED}. "
        f"Got {value!r} instead."
    )


def parameter_value(node: Node, name: str, kinds: Mapping[str, type] = NONE) -> Any:
    """Return the parameter of a tree that :func:`parameter_tree` returned.

    Parameters
    ----------
    node : Node
    name : str
        Its name in the node.
    kinds : dict of str to type
        The same as there.

    Raises
    ------
    ValueError
        If it is no such tree.
    """
    value = node.plain(name)
    if isinstance(value, list):
        way = f"{node.way}.{name}" if node.way else name
        wrapped = Node({str(i): part for i, part in enumerate(value)}, way)
        return [parameter_value(wrapped, key) for key in wrapped]
    if isinstance(value, np.ndarray):
        return value.copy()  # a file's arrays are read-only
    if not isinstance(value, dict):
        return value
    part = node.node(name)
    kind = part.string(
        "type", [*TEMPERATURES, *SCHEDULES, *kinds, "LogPartition", "RandomState", "tuple", *PLAIN]
    )
    if kind == "RandomState":
        return restore_generator(part.node("state"))
    if kind == "tuple":
        part.items("items")  # it must be a list
        return tuple(parameter_value(part, "items"))
    if kind == "dtype":
        return DTYPES[part.string("name", list(DTYPES))]
    if kind == "dict":
        keys, items = part.items("keys"), part.items("items")
        if len(keys) != len(items) or not all(isinstance(key, str) for key in keys):
            raise part.error("keys", "strings, one for each item", keys)
        return dict(zip(keys, parameter_value(part, "items"), strict=True))
    if kind == "LogPartition":
        names = [field.name for field in fields(LogPartition) if field.name != "made_for"]
        made_for, parts = part.node("made_for"), part.node("parameters")
        parts.plain("inverse_temperatures"), parts.plain("values")  # these have no default
        return LogPartition(
            **_content(part, names),
            made_for={key: parameter_value(made_for, key) for key in made_for},
        )
    if kind in SCHEDULES:
        schedule = SCHEDULES[kind]
        numbers = part.node("parameters")
        return schedule(*(numbers.number(field.name) for field in fields(schedule)))
    cls: Any = (TEMPERATURES | dict(kinds))[kind]
    return cls(**_content(part, list(cls().get_params(deep=False))))


def temperature_tree(temperature: Temperature) -> dict[str, Any]:
    """Return a planned temperature as a tree: its parameters, and all that it has learned.

    Parameters
    ----------
    temperature : Temperature
        See :meth:`Temperature.plan`.

    Raises
    ------
    TypeError
        If a file cannot hold it, as one of a class of the user's own.
    """
    state = temperature.state_dict()
    tree = parameter_tree(temperature, "temperature", "a fit")
    return {"temperature": tree, "state": state}


def restored_temperature(node: Node, *, model: Any = None) -> Temperature:
    """Return the planned temperature of a tree that :func:`temperature_tree` returned.

    Parameters
    ----------
    node : Node
    model : Model, optional
        The model whose fit it goes on with.

    Raises
    ------
    ValueError
        If it is no such tree.
    """
    temperature = parameter_value(node, "temperature")
    if not isinstance(temperature, Temperature):
        raise node.error("temperature", "a temperature", temperature)
    temperature.load_state_dict(node.node("state"), model=model)
    return temperature


def _object_tree(
    value: object, content: Mapping[str, Any], name: str, owner: str
) -> dict[str, Any]:
    parts = {key: parameter_tree(part, f"{name}.{key}", owner) for key, part in content.items()}
    return {"type": type(value).__name__, "parameters": parts}


def _content(node: Node, names: list[str]) -> dict[str, Any]:
    """The parameters of an object; those that the file does not have keep their defaults."""
    parts = node.node("parameters")
    unknown = [name for name in parts if name not in names]
    if unknown:
        raise parts.error(unknown[0], f"one of {names}", unknown[0])
    return {name: parameter_value(parts, name) for name in parts}
