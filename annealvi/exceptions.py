"""What a fit raises beyond Python's and scikit-learn's own errors."""

from __future__ import annotations

from typing import Any


class DivergenceError(ArithmeticError):
    """A fit by gradients left the finite numbers; what it had before is kept.

    Parameters
    ----------
    message : str
        Names the step, the objective and what to change.
    state : object, optional
        The last finite state, where no estimator keeps it.

    Attributes
    ----------
    state : object or None
    """

    def __init__(self, message: str, state: Any = None) -> None:
        super().__init__(message)
        self.state = state
