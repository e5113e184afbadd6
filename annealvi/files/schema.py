"""Schemas, which define how an object's state is written to a file, and checked when it is read.

A schema lists the attributes of an object's state, each with a field that defines the allowed
values.  ``schema.dump(object)`` returns the state as a tree (nested dicts and lists).
``schema.load(tree)`` checks a tree from a file, which may be damaged, and returns the attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import DTypeLike, NDArray

from annealvi.checks import as_float

#: Values to which shapes and dtypes refer by name: earlier fields, or arguments of `load`.
Sizes = Mapping[str, Any]


def damaged(path: str, must_be: str, value: Any) -> ValueError:
    """Return the error about a value in a file that is not allowed; `way` is its path."""
    if isinstance(value, np.ndarray):
        got = f"an array of {value.dtype} of shape {value.shape}"
    else:
        got = repr(value)
        got = got if len(got) <= 80 else f"{got[:77]}..."
    return ValueError(f"The file is damaged: {path!r} must be {must_be}. Got {got}.")


class Field:
    """The allowed values of one attribute; this base class allows all values."""

    #: A function that converts a value before it is written.
    kind: ClassVar[Any] = staticmethod(lambda value: value)

    def dump(self, value: Any) -> Any:
        return self.kind(value)

    def load(self, value: Any, path: str, sizes: Sizes) -> Any:
        return value


class Tree(Field):
    """A dict whose values the caller checks; an object is written by its `state_dict`."""

    def dump(self, value: Any) -> Any:
        return value if isinstance(value, Mapping) else value.state_dict()

    def load(self, value: Any, path: str, sizes: Sizes) -> Any:
        if not isinstance(value, Mapping):
            raise damaged(path, "a dict", value)
        return value


class Flag(Field):
    """True or False."""

    kind = bool

    def load(self, value: Any, path: str, sizes: Sizes) -> bool:
        if not isinstance(value, bool):
            raise damaged(path, "a bool", value)
        return value


class Text(Field):
    """A string, which must be one of `options` if there are any."""

    kind = str

    def __init__(self, *options: str) -> None:
        self.options = options

    def load(self, value: Any, path: str, sizes: Sizes) -> str:
        if not isinstance(value, str) or (self.options and value not in self.options):
            raise damaged(path, f"one of {list(self.options)}" if self.options else "a str", value)
        return value


class Integer(Field):
    """An int in [lower, upper]; both limits can be names of values that were read before."""

    kind = int

    def __init__(self, lower: int | str = 0, upper: int | str = 2**53) -> None:
        self.lower = lower
        self.upper = upper

    def load(self, value: Any, path: str, sizes: Sizes) -> int:
        lower = _size(self.lower, sizes)
        upper = _size(self.upper, sizes)
        if not isinstance(value, int) or isinstance(value, bool) or not lower <= value <= upper:
            raise damaged(path, f"an int in the range [{lower}, {upper}]", value)
        return value


class Number(Field):
    """A float in [lower, upper]; with ``finite=False`` infinity and NaN are also allowed."""

    kind = float

    def __init__(
        self, lower: float = -np.inf, upper: float = np.inf, *, finite: bool = True
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.finite = finite

    def load(self, value: Any, path: str, sizes: Sizes) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = as_float(value)
            if np.isfinite(number):
                fits = self.lower <= number <= self.upper
            else:
                fits = not self.finite and isinstance(value, float)
            if fits:
                return number
        limits = f"in the range [{self.lower:g}, {self.upper:g}]"
        raise damaged(path, f"a{' finite' if self.finite else ''} float {limits}", value)


class Array(Field):
    """An array of the given shape and dtype; an array from a file is read-only.

    Each length is a number, or None for any length.  A length or the dtype can also be the name of
    a field read before.  With `finite`, elements must be finite; with `positive`, also above 0.
    """

    def __init__(
        self,
        shape: Sequence[int | str | None],
        dtype: DTypeLike = np.float64,
        *,
        finite: bool = True,
        positive: bool = False,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.finite = finite
        self.positive = positive

    def dump(self, value: Any) -> NDArray:
        return np.asarray(value)

    def load(self, value: Any, path: str, sizes: Sizes) -> NDArray:
        named = isinstance(self.dtype, str) and self.dtype in sizes
        dtype = np.dtype(sizes[self.dtype] if named else self.dtype)  # type: ignore[index]
        shape = tuple(None if side is None else _size(side, sizes) for side in self.shape)
        alike = isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == len(shape)
        if not alike or any(n not in (None, m) for n, m in zip(shape, value.shape, strict=True)):
            raise damaged(path, f"an array of {dtype} of shape {shape}", value)
        if dtype.kind == "f" and (self.finite or self.positive) and value.size:
            smallest = value.min()
            largest = value.max()  # NaN if the array contains NaN
            is_finite = np.isfinite(smallest) and np.isfinite(largest)
            if not is_finite or (self.positive and smallest <= 0):
                raise damaged(
                    path,
                    f"an array of {'positive and ' if self.positive else ''}finite numbers",
                    value,
                )
        return value


class Strings(Field):
    """A one-dimensional array of strings, whose length can be the name of a value read before."""

    def __init__(self, length: int | str | None = None) -> None:
        self.length = length

    def load(self, value: Any, path: str, sizes: Sizes) -> NDArray:
        length = None if self.length is None else _size(self.length, sizes)
        strings = isinstance(value, np.ndarray) and value.dtype.kind in "OU" and value.ndim == 1
        if not strings or (length is not None and len(value) != length):
            raise damaged(path, "an array of strings of the right length", value)
        return value


class Optional(Field):
    """None, or a value of another field; a value that is missing in a file means None."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def dump(self, value: Any) -> Any:
        return None if value is None else self.field.dump(value)

    def load(self, value: Any, path: str, sizes: Sizes) -> Any:
        return None if value is None else self.field.load(value, path, sizes)


class Listed(Field):
    """A list of at most `max_length` items, which are all of the same field."""

    def __init__(self, field: Field, max_length: int | str = 2**53) -> None:
        self.field = field
        self.max_length = max_length

    def dump(self, value: Any) -> list:
        return [self.field.dump(item) for item in value]

    def load(self, value: Any, path: str, sizes: Sizes) -> list:
        max_length = _size(self.max_length, sizes)
        if not isinstance(value, list) or len(value) > max_length:
            raise damaged(path, f"a list of at most {max_length} items", value)
        return [self.field.load(item, f"{path}.{i}", sizes) for i, item in enumerate(value)]


class Named(Field):
    """A dict whose values are all of the same field."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def dump(self, value: Any) -> dict[str, Any]:
        return {name: self.field.dump(item) for name, item in value.items()}

    def load(self, value: Any, path: str, sizes: Sizes) -> dict[str, Any]:
        items = Tree().load(value, path, sizes).items()
        return {name: self.field.load(item, f"{path}.{name}", sizes) for name, item in items}


class Generator(Field):
    """A RandomState or None; reading creates a new generator in the same state."""

    def dump(self, value: RandomState | None) -> dict[str, Any] | None:
        if value is None:
            return None
        state = value.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise TypeError(
                f"A RandomState with the bit generator {state['bit_generator']} cannot be "
                "written to a file. Only MT19937, the default of RandomState, can be written."
            )
        return {**state["state"], "has_gauss": state["has_gauss"], "gauss": state["gauss"]}

    def load(self, value: Any, path: str, sizes: Sizes) -> RandomState | None:
        if value is None:
            return None
        state = TWISTER.load(value, path)
        rng = RandomState(0)
        rng.set_state(("MT19937", *(state[name] for name in TWISTER.fields)))
        return rng


class Schema(Field):
    """A field for each attribute of an object's state.

    A schema is itself a field, so states can be nested.  Fields are read in their order.  Shapes
    can refer by name to values that were read before, and to keyword arguments of :meth:`load`.
    """

    def __init__(self, make: Callable[..., Any] = dict, /, **fields: Field) -> None:
        self.make = make
        self.fields = fields

    def dump(self, value: Any) -> dict[str, Any]:
        """Return the state of an object, or of a mapping with its values, as a tree."""
        if isinstance(value, Mapping):
            return {name: field.dump(value[name]) for name, field in self.fields.items()}
        return {name: field.dump(getattr(value, name)) for name, field in self.fields.items()}

    def load(self, value: Any, path: str = "", sizes: Sizes | None = None, **more: Any) -> Any:
        """Check the values of a tree that was read from a file, and return them."""
        if not isinstance(value, Mapping):
            raise damaged(path, "a dict", value)
        known = {**(sizes or {}), **more}
        values = {}
        for name, field in self.fields.items():
            place = f"{path}.{name}" if path else name
            # fields that are added in a later version are Optional: older files lack them
            if name not in value and not isinstance(field, Optional):
                raise ValueError(f"The file is damaged: {place!r} is missing.")
            values[name] = field.load(value.get(name), place, known)
            known[name] = values[name]
        return self.make(**values)

    def restore(self, target: Any, value: Any, path: str = "", **sizes: Any) -> None:
        """Check all values of a tree, and set them as attributes of an object."""
        for name, attribute in Schema(**self.fields).load(value, path, sizes).items():
            # a copy instead of a view of the file's memory map
            is_view = isinstance(attribute, np.ndarray)
            setattr(target, name, attribute.copy() if is_view else attribute)


TWISTER = Schema(
    key=Array((624,), np.uint32), pos=Integer(0, 624), has_gauss=Integer(0, 1), gauss=Number()
)


def _size(size: int | str, sizes: Sizes) -> int:
    return sizes[size] if isinstance(size, str) else size
