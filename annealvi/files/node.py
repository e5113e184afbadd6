"""A part of a tree that was read from a file: each value is checked when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import DTypeLike, NDArray

from annealvi.files.schema import (
    Array,
    Field,
    Flag,
    Generator,
    Integer,
    Number,
    Strings,
    Text,
    damaged,
)


class Node(Mapping[str, Any]):
    """A dict of a tree, whose values may come from a stranger.

    Its methods return a value only if it is what the caller can use.
    """

    def __init__(self, values: Mapping[str, Any], way: str = "") -> None:
        self._values = values
        self.way = way

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def is_none(self, name: str) -> bool:
        """Return whether a value is None."""
        return self._value(name) is None

    def node(self, name: str) -> Node:
        """A dict, as a node."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise self.error(name, "a dict", value)
        return Node(value, self._way(name))

    def nodes(self, name: str, most: int | None = None) -> list[Node]:
        """A list of dicts, as nodes; at most so many."""
        values = self.items(name)
        if most is not None and len(values) > most:
            raise self.error(name, f"a list of at most {most} dicts", values)
        for value in values:
            if not isinstance(value, dict):
                raise self.error(name, "a list of dicts", value)
        return [Node(value, f"{self._way(name)}.{i}") for i, value in enumerate(values)]

    def items(self, name: str) -> list[Any]:
        """A list, whose items the caller checks."""
        value = self._value(name)
        if not isinstance(value, list):
            raise self.error(name, "a list", value)
        return value

    def boolean(self, name: str) -> bool:
        """True or False."""
        return self._load(name, Flag())

    def string(self, name: str, options: Sequence[str] | None = None) -> str:
        """A string, one of `options` if these are given."""
        return self._load(name, Text(*(options or ())))

    def integer(self, name: str, least: int = 0, most: int = 2**53) -> int:
        """An int in [least, most]."""
        return self._load(name, Integer(least, most))

    def number(
        self,
        name: str,
        least: float = -np.inf,
        most: float = np.inf,
        *,
        finite: bool = True,
    ) -> float:
        """A float in [least, most]; with ``finite=False`` it may also be infinite or NaN."""
        return self._load(name, Number(least, most, finite=finite))

    def array(
        self,
        name: str,
        shape: tuple[int | None, ...],
        dtype: DTypeLike,
        *,
        finite: bool = True,
        positive: bool = False,
    ) -> NDArray:
        """An array, read-only."""
        field = Array(shape, dtype, finite=finite, positive=positive)
        return self._load(name, field)

    def strings(self, name: str, length: int | None = None) -> NDArray:
        """A 1-d array of strings."""
        return self._load(name, Strings(length))

    def plain(self, name: str) -> Any:
        """A value as it stands: None, a bool, number, string, array, list or dict.

        The caller checks it.
        """
        return self._value(name)

    def error(self, name: str, wanted: str, value: Any) -> ValueError:
        """The error of a value that cannot be used."""
        return damaged(self._way(name), wanted, value)

    def _load(self, name: str, field: Field) -> Any:
        return field.load(self._value(name), self._way(name), {})

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise ValueError(f"The file is damaged: {self._way(name)!r} is missing.")
        return self._values[name]

    def _way(self, name: str) -> str:
        return f"{self.way}.{name}" if self.way else name


def generator_state(rng: RandomState | None) -> dict[str, Any] | None:
    """The state of a generator as a tree; None for None."""
    return Generator().dump(rng)


def restore_generator(node: Node) -> RandomState:
    """The generator of a state that :func:`generator_state` returned."""
    rng = Generator().load(node, node.way, {})
    assert rng is not None
    return rng
