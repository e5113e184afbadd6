"""A part of a tree that was read from a file: each value is checked when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import DTypeLike, NDArray

from annealvi.files.schema import Generator


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
        value = self._value(name)
        if not isinstance(value, bool):
            raise self.error(name, "a bool", value)
        return value

    def string(self, name: str, options: Sequence[str] | None = None) -> str:
        """A string, one of `options` if these are given."""
        value = self._value(name)
        if not isinstance(value, str) or (options is not None and value not in options):
            raise self.error(name, "a str" if options is None else f"one of {options}", value)
        return value

    def integer(self, name: str, least: int = 0, most: int = 2**53) -> int:
        """An int in [least, most]."""
        value = self._value(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.error(name, f"an int in the range [{least}, {most}]", value)
        return value

    def number(
        self,
        name: str,
        least: float = -np.inf,
        most: float = np.inf,
        *,
        finite: bool = True,
    ) -> float:
        """A float in [least, most]; with ``finite=False`` it may also be infinite or NaN."""
        value = self._value(name)
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if real:
            try:
                value = float(value)
            except OverflowError:
                real = False
        if not real or not (
            (np.isfinite(value) and least <= value <= most)
            or (not finite and not np.isfinite(value))
        ):
            kind = "a finite float" if finite else "a float"
            raise self.error(name, f"{kind} in the range [{least:g}, {most:g}]", value)
        return value

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
        value = self._value(name)
        dtype = np.dtype(dtype)
        if (
            not isinstance(value, np.ndarray)
            or value.dtype != dtype
            or value.ndim != len(shape)
            or any(n is not None and n != m for n, m in zip(shape, value.shape, strict=True))
        ):
            raise self.error(name, f"an array of {dtype} of shape {shape}", value)
        if dtype.kind == "f" and (finite or positive) and not _sound(value, positive):
            kind = "positive and finite" if positive else "finite"
            raise self.error(name, f"{kind} everywhere", value)
        return value

    def strings(self, name: str, length: int | None = None) -> NDArray:
        """A 1-d array of strings."""
        value = self._value(name)
        if (
            not isinstance(value, np.ndarray)
            or value.dtype.kind not in "OU"
            or (length is not None and len(value) != length)
        ):
            raise self.error(name, "an array of strings of the right length", value)
        return value

    def plain(self, name: str) -> Any:
        """A value as it stands: None, a bool, number, string, array, list or dict.

        The caller checks it.
        """
        return self._value(name)

    def error(self, name: str, wanted: str, value: Any) -> ValueError:
        """The error of a value that cannot be used."""
        if isinstance(value, np.ndarray):
            got = f"an array of {value.dtype} of shape {value.shape}"
        else:
            got = repr(value)
            got = got if len(got) <= 80 else f"{got[:77]}..."
        return ValueError(f"The file is damaged: {self._way(name)!r} must be {wanted}. Got {got}.")

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise ValueError(f"The file is damaged: {self._way(name)!r} is missing.")
        return self._values[name]

    def _way(self, name: str) -> str:
        return f"{self.way}.{name}" if self.way else name


def _sound(array: NDArray, positive: bool, block: int = 1 << 20) -> bool:
    """Whether all elements are finite, or positive and finite; without a copy of the array."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, block):
        some = flat[start : start + block]
        if not np.all(np.isfinite(some)) or (positive and not np.all(some > 0)):
            return False
    return True


def generator_state(rng: RandomState | None) -> dict[str, Any] | None:
    """The state of a generator as a tree; None for None."""
    return Generator().dump(rng)


def restore_generator(node: Node) -> RandomState:
    """The generator of a state that :func:`generator_state` returned."""
    rng = Generator().load(node, node.way, {})
    assert rng is not None
    return rng
