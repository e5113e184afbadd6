"""The errors and warnings of annealvi, in addition to Python's and scikit-learn's."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
from sklearn import exceptions
from sklearn.utils._param_validation import InvalidParameterError


def warn_user(text: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the line of the user's code, outside of our library."""
    level = 1
    frame = inspect.currentframe()
    is_own = re.compile(r"(annealvi|sklearn)\b").match
    while frame and frame.f_back and is_own(frame.f_globals.get("__name__", "")):
        level += 1
        frame = frame.f_back
    warnings.warn(text, category, stacklevel=level)


class BadParameter(InvalidParameterError):  # noqa: N818
    """A parameter has a value that is not allowed.

    Like scikit-learn's errors about parameters, it is both a ValueError and a TypeError.

    Parameters
    ----------
    name : str
        The name of the parameter.
    must_be : str
        What is allowed; this text follows "must be" in the message.
    got : object
        The value that was passed.
    hint : str, default=""
        A sentence that recommends what to do instead.

    Attributes
    ----------
    owner : str or None
        The class or function that has the parameter; :func:`annealvi.checks.checked` sets it.
    """

    def __init__(self, name: str, must_be: str, got: Any, hint: str = "") -> None:
        super().__init__(name, must_be, got, hint)
        self.name = name
        self.must_be = must_be
        self.got = got
        self.hint = hint
        self.owner: str | None = None

    def __str__(self) -> str:
        of = f" of {self.owner}" if self.owner else ""
        text = f"The {self.name!r} parameter{of} must be {self.must_be}. "
        return f"{text}Got {_shown(self.got)} instead. {self.hint}".rstrip()


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"shape {value.shape} and dtype {value.dtype}"
    try:
        return repr(value.item() if isinstance(value, np.generic) else value)
    except Exception:  # the object is damaged, and its __repr__ fails
        return f"a damaged {type(value).__name__}"


class DivergenceError(ArithmeticError):
    """A gradient-based fit reached infinite or NaN values.

    The estimator, or `state` if there is no estimator, contains the last finite state.

    Parameters
    ----------
    message : str
        The step, the objective and what to change.
    state : object, optional
        The last finite state, if no estimator contains it.

    Attributes
    ----------
    state : object or None
    """

    def __init__(self, message: str, state: Any = None) -> None:
        super().__init__(message)
        self.state = state


class InconsistentVersionWarning(exceptions.InconsistentVersionWarning):
    """A pickle or a checkpoint comes from another version of annealvi.

    Parameters
    ----------
    estimator_name : str
    current_sklearn_version, original_sklearn_version : str
        Versions of annealvi.  The parameters are named as in scikit-learn's warning.
    """

    def __str__(self) -> str:
        return (
            f"This {self.estimator_name} was written by annealvi {self.original_sklearn_version} "
            f"and is now read by annealvi {self.current_sklearn_version}. A pickle may not work, "
            "and a continued fit may give other results. Use annealvi.save instead: its files can "
            "be read by later versions."
        )
