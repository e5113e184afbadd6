"""Planned temperatures as trees, for files."""

from __future__ import annotations

from typing import Any

from annealvi.files import Node
from annealvi.files.parameters import parameter_of, parameter_tree
from annealvi.files.schema import Field, Schema, Tree, damaged
from annealvi.temperature.base import Temperature

_PLANNED = Schema(temperature=Field(), state=Tree())


def temperature_tree(temperature: Temperature) -> dict[str, Any]:
    """A planned temperature as a tree: its parameters, and all that it has learned."""
    state = temperature.state_dict()
    return {"temperature": parameter_tree(temperature, "temperature"), "state": state}


def restored_temperature(node: Node, *, model: Any = None) -> Temperature:
    """The planned temperature of a tree; `model` is the one whose fit it goes on with."""
    tree = _PLANNED.load(node)
    way = f"{node.way}." if node.way else ""
    temperature = parameter_of(tree["temperature"], f"{way}temperature")
    if not isinstance(temperature, Temperature):
        raise damaged(f"{way}temperature", "a temperature", temperature)
    temperature.load_state_dict(Node(tree["state"], f"{way}state"), model=model)
    return temperature
