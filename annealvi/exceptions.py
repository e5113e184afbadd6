"""Errors that a fit may raise, besides those of Python and scikit-learn."""

from __future__ import annotations

from typing import Any


class DivergenceError(ArithmeticError):
    """A gradient-based fit reached infinite or NaN values; the last finite state is kept.

    Parameters
    ----------
    message : str
        Gives the step, the objective and what to change.
    state : object, optional
        The last finite state, if no estimator keeps it.

    Attributes
    ----------
    state : object or None
    """

    def __init__(self, message: str, state: Any = None) -> None:
        super().__init__(message)
        self.state = state
