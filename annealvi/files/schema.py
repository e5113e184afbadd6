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
    """Return the error about a value in a file that is not allowed; `path` is its place."""
    if isinstance(value, np.ndarray):
        shown_value = f"an array of {value.dtype} of shape {value.shape}"
    else:
        shown_value = repr(value)
        shown_value = shown_value if len(shown_value) <= 80 else f"{shown_value[:77]}..."
    return ValueError(f"The file is damaged: {path!r} must be {must_be}. Got {shown_value}.")


class Field:
    """The allowed values of one attribute; this base class allows all values."""

    #: A function that converts a value before it is written.
    kind: ClassVar[Any] = staticmethod(lambda value: value)

    def dump(self, value: Any) -> Any:
        """Convert the value of an attribute to what the file contains."""
        return self.kind(value)

    def load(self, value: Any, path: str, sizes: Sizes) -> Any:
        """Check a value from a file, where its place is `path`, and return it."""
        return value


class Tree(Field):
    """A dict whose values the caller checks; an object is written by its `state_dict`."""

    def dump(self, value: Any) -> Any:
        """Return a dict, or the `state_dict` of an object."""
        return value if isinstance(value, Mapping) else value.state_dict()

    def load(self, value: Any, path: str, sizes: Sizes) -> Any:
        """Check that a value from a file is a dict."""
        if not isinstance(value, Mapping):
            raise damaged(path, "a dict", value)
        return value


class Flag(Field):
    """True or False."""

    kind = bool

    def load(self, value: Any, path: str, sizes: Sizes) -> bool:
        """Check that a value from a file is a bool."""
        if not isinstance(value, bool):
            raise damaged(path, "a bool", value)
        return value


class Text(Field):
    """A string, which must be one of `options` if there are any."""

    kind = str

    def __init__(self, *options: str) -> None:
        """Any string is allowed if there are no `options`."""
        self.options = options

    def load(self, value: Any, path: str, sizes: Sizes) -> str:
        """Check that a value from a file is a string, and one of the options."""
        if not isinstance(value, str) or (self.options and value not in self.options):
            raise damaged(path, f"one of {list(self.options)}" if self.options else "a str", value)
        return value


class Integer(Field):
    """An int in [lower, upper]; both limits can be names of values that were read before."""

    kind = int

    def __init__(self, lower: int | str = 0, upper: int | str = 2**53) -> None:
        """Limits are numbers, or names of values that were read before."""
        self.lower = lower
        self.upper = upper

    def load(self, value: Any, path: str, sizes: Sizes) -> int:
        """Check an int from a file; `sizes` has the values that limits refer to."""
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
        """With ``finite=False`` infinity and NaN are allowed, whatever the limits."""
        self.lower = lower
        self.upper = upper
        self.finite = finite

    def load(self, value: Any, path: str, sizes: Sizes) -> float:
        """Check a float from a file, where its place is `path`."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = as_float(value)
            if np.isfinite(number):
                is_allowed = self.lower <= number <= self.upper
            else:
                is_allowed = not self.finite and isinstance(value, float)
            if is_allowed:
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
        """A length of None allows any length; a name refers to a value read before."""
        self.shape = shape
        self.dtype = dtype
        self.finite = finite
        self.positive = positive

    def dump(self, value: Any) -> NDArray:
        """Convert a value to an array."""
        return np.asarray(value)

    def load(self, value: Any, path: str, sizes: Sizes) -> NDArray:
        """Check an array from a file; `sizes` has the values that its shape refers to."""
        dtype = np.dtype(sizes.get(self.dtype, self.dtype))  # type: ignore[arg-type, call-overload]
        shape = tuple(_size(side, sizes) for side in self.shape)
        has_dtype_and_ndim = (
            isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == len(shape)
        )
        if not has_dtype_and_ndim or any(
            expected not in (None, length)
            for expected, length in zip(shape, value.shape, strict=True)
        ):
            raise damaged(path, f"an array of {dtype} of shape {shape}", value)
        if dtype.kind == "f" and (self.finite or self.positive) and value.size:
            smallest = value.min()
            largest = value.max()  # NaN if the array contains NaN
            lower = 0.0 if self.positive else -np.inf
            if not lower < smallest <= largest < np.inf:
                raise damaged(
                    path,
                    f"an array of {'positive and ' if self.positive else ''}finite numbers",
                    value,
                )
        return value


class Strings(Field):
    """A one-dimensional array of strings, whose length can be the name of a value read before."""

    def __init__(self, length: int | str | None = None) -> None:
        """A `length` of None allows any length; a name refers to a value read before."""
        self.length = length

    def load(self, value: Any, path: str, sizes: Sizes) -> NDArray:
        """Check an array of strings from a file; `sizes` may have its length."""
        length = _size(self.length, sizes)
        is_strings = isinstance(value, np.ndarray) and value.dtype.kind in "OU" and value.ndim == 1
        if not is_strings or (length is not None and len(value) != length):
            raise damaged(path, "an array of strings of the right length", value)
        return value


class Optional(Field):
    """None, or a value of another field; a value that is missing in a file means None."""

    def __init__(self, field: Field) -> None:
        """`field` defines the values other than None."""
        self.field = field

    def dump(self, value: Any) -> Any:
        """Write None, or a value of the field."""
        return None if value is None else self.field.dump(value)

    def load(self, value: Any, path: str, sizes: Sizes) -> Any:
        """Check a value from a file, unless it is None."""
        return None if value is None else self.field.load(value, path, sizes)


class Listed(Field):
    """A list of at most `max_length` items, which are all of the same field."""

    def __init__(self, field: Field, max_length: int | str = 2**53) -> None:
        """`field` defines the items; `max_length` can be the name of a value read before."""
        self.field = field
        self.max_length = max_length

    def dump(self, value: Any) -> list:
        """Write each item."""
        return [self.field.dump(item) for item in value]

    def load(self, value: Any, path: str, sizes: Sizes) -> list:
        """Check each item of a list from a file."""
        max_length = _size(self.max_length, sizes)
        if not isinstance(value, list) or len(value) > max_length:
            raise damaged(path, f"a list of at most {max_length} items", value)
        return [self.field.load(item, f"{path}.{i}", sizes) for i, item in enumerate(value)]


class Named(Field):
    """A dict whose values are all of the same field."""

    def __init__(self, field: Field) -> None:
        """`field` defines the values."""
        self.field = field

    def dump(self, value: Any) -> dict[str, Any]:
        """Write the value of each name."""
        return {name: self.field.dump(item) for name, item in value.items()}

    def load(self, value: Any, path: str, sizes: Sizes) -> dict[str, Any]:
        """Check each value of a dict from a file."""
        items = Tree().load(value, path, sizes).items()
        return {name: self.field.load(item, f"{path}.{name}", sizes) for name, item in items}


class Generator(Field):
    """A RandomState or None; reading creates a new generator in the same state."""

    def dump(self, value: RandomState | None) -> dict[str, Any] | None:
        """Write the state of a generator; raise TypeError for other bit generators."""
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
        """Make a generator in the state from a file."""
        if value is None:
            return None
        state = TWISTER.load(value, path)
        rng = RandomState(0)
        rng.set_state(("MT19937", *state.values()))
        return rng


class Schema(Field):
    """A field for each attribute of an object's state.

    A schema is itself a field, so states can be nested.  Fields are read in their order.  Shapes
    can refer by name to values that were read before, and to keyword arguments of :meth:`load`.
    """

    def __init__(self, make: Callable[..., Any] = dict, /, **fields: Field) -> None:
        """`make` is called with the values that were read, as keyword arguments."""
        self.make = make
        self.fields = fields

    def dump(self, value: Any) -> dict[str, Any]:
        """Return the state of an object, or of a mapping with its values, as a tree."""
        is_mapping = isinstance(value, Mapping)
        state = value if is_mapping else {name: getattr(value, name) for name in self.fields}
        return {name: field.dump(state[name]) for name, field in self.fields.items()}

    def load(self, value: Any, path: str = "", sizes: Sizes | None = None, **more: Any) -> Any:
        """Check the values of a tree that was read from a file, and return them."""
        if not isinstance(value, Mapping):
            raise damaged(path, "a dict", value)
        known_sizes = {**(sizes or {}), **more}
        values = {}
        for name, field in self.fields.items():
            place = f"{path}.{name}" if path else name
            # fields that are added in a later version are Optional: older files lack them
            if name not in value and not isinstance(field, Optional):
                raise ValueError(f"The file is damaged: {place!r} is missing.")
            values[name] = field.load(value.get(name), place, known_sizes)
            known_sizes[name] = values[name]  # the next fields can refer to it
        return self.make(**values)

    def restore(self, target: Any, value: Any, path: str = "", **sizes: Any) -> None:
        """Check all values of a tree, and set them as attributes of an object."""
        # a plain schema, without `make`, returns a dict
        for name, attribute in Schema(**self.fields).load(value, path, sizes).items():
            # a copy instead of a view of the file's memory map
            is_array = isinstance(attribute, np.ndarray)
            setattr(target, name, attribute.copy() if is_array else attribute)


TWISTER = Schema(
    key=Array((624,), np.uint32), pos=Integer(0, 624), has_gauss=Integer(0, 1), gauss=Number()
)


def _size(size: int | str | None, sizes: Sizes) -> Any:
    """A length or limit, which can be the name of a value in `sizes`; None means any length."""
    return sizes[size] if isinstance(size, str) else size
