"""What `transform` and `score` of a fitted LDA estimator are asked for: temperature and method."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints

from annealvi.checks import as_float
from annealvi.lda.state import LDAState
from annealvi.model import Tempering
from annealvi.models.lda.collapsed import METHODS


def check_method(method: Any, temperature: Any, owner: str) -> None:
    """Check the `method` of `transform`, and that the temperature is one that it has."""
    constraints = {"method": [StrOptions(set(METHODS))]}
    validate_parameter_constraints(constraints, {"method": method}, owner)
    if method == "cvb0" and not (isinstance(temperature, Real) and temperature == 1):
        raise ValueError(
            f"The 'temperature' parameter of {owner} must be 1.0 with method='cvb0', which infers "
            f"at T = 1. Got {temperature!r} instead."
        )


def prediction_tempering(state: LDAState, temperature: Any, owner: str) -> Tempering:
    """The tempering for a `temperature` parameter of `transform` or `score`."""
    if isinstance(temperature, str) and temperature == "learned":
        learned = state.temperature.learned()
        if learned is None:
            raise ValueError(
                "temperature='learned' needs a fit whose temperature was learned, "
                "'variational' or 'local'. Got a fit with "
                f"temperature={state.planned_for!r}."
            )
        return learned
    number = isinstance(temperature, Real) and not isinstance(temperature, bool)
    if number and 1 <= as_float(temperature) < np.inf:
        return Tempering(1.0 / float(temperature))
    raise ValueError(
        f"The 'temperature' parameter of {owner} must be a float in "
        f"the range [1.0, inf) or 'learned'. Got {temperature!r} instead."
    )
