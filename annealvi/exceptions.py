"""Errors that a fit may raise, besides those of Python and scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn import exceptions


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


class InconsistentVersionWarning(exceptions.InconsistentVersionWarning):
    """A pickle or a checkpoint comes from another version of annealvi.

    Parameters
    ----------
    estimator_name : str
    current_sklearn_version, original_sklearn_version : str
        Versions of annealvi; scikit-learn's warning has these names.
    """

    def __str__(self) -> str:
        return (
            f"This {self.estimator_name} comes from annealvi {self.original_sklearn_version} and "
            f"is read by annealvi {self.current_sklearn_version}. A pickle may not work, and a "
            "fit may go on to other bits. Files of annealvi.save are read by later versions."
        )
