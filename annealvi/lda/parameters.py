"""The parameters of TemperedLDA at each call of `partial_fit`, looked at again if one has changed.

Numbers, strings and None that are the same as in an earlier call need no second look.  Arrays,
temperatures, generators and callbacks may have changed in place, so they are checked every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from annealvi.lda.defaults import Settings, resolve

#: Types of which a value never changes.  Types that inherit from them do not count.
PLAIN = (type(None), bool, int, float, str)
#: What `resolve` reads, besides the fields of `Settings`.
OTHERS = ("n_components", "preset", "validation_fraction")


def check_parameters(check: Callable[[dict[str, Any]], None], values: Mapping[str, Any]) -> None:
    """Check the parameters of an estimator, those that are the same as before only once."""
    plain: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in values.items():
        (plain if type(value) in PLAIN else others)[name] = value
    _accept(check, tuple(plain), *plain.values())
    if others:
        check(others)


def stream_settings(values: Mapping[str, Any], n_samples: int) -> Settings:
    """Return the settings for a stream: the same object as long as no parameter changes.

    If a parameter is an object that may change in place, it is a new one every time.
    """
    given = {name: values[name] for name in (*Settings._fields, *OTHERS) if name in values}
    if all(type(value) in PLAIN for value in given.values()):
        return _resolve(n_samples, tuple(given), *given.values())
    return resolve(values, n_samples)


# typed, because 1, 1.0 and True are equal; what raises an error is not kept
@lru_cache(maxsize=32, typed=True)
def _accept(check: Callable[[dict[str, Any]], None], names: tuple[str, ...], *values: Any) -> None:
    check(dict(zip(names, values, strict=True)))


@lru_cache(maxsize=32, typed=True)
def _resolve(n_samples: int, names: tuple[str, ...], *values: Any) -> Settings:
    return resolve(dict(zip(names, values, strict=True)), n_samples)
