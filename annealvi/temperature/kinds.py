"""The `temperature` parameter of estimators: a number, a name or an object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from sklearn.base import clone

from annealvi.temperature.annealed import Annealed, Fixed
from annealvi.temperature.base import Temperature

#: The temperatures that names stand for, in estimators without their own dictionary.
KINDS: dict[str, Temperature] = {"annealed": Annealed()}


def as_temperature(value: Any, owner: str, kinds: Mapping[str, Temperature] = KINDS) -> Temperature:
    """Check a `temperature` parameter and return the temperature object that it means.

    Parameters
    ----------
    value : float, str or Temperature
        A number >= 1, the name of a kind, or an object.
    owner : str
        The estimator's name, for the messages.
    kinds : dict of str to Temperature
        The temperatures that names stand for.
    """
    if isinstance(value, Temperature):
        value.check()
        return value
    if isinstance(value, str) and value in kinds:
        return clone(kinds[value])
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if 1 <= number < math.inf:
            return Fixed(number)
    raise ValueError(
        f"The 'temperature' parameter of {owner} must be a finite float in the range "
        f"[1.0, inf), a str among {set(kinds)} or an instance of "
        f"'annealvi.temperature.Temperature'. Got {value!r} instead."
    )
