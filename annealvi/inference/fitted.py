"""Attributes that all fitted estimators have: the record and the temperature."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from annealvi.inference.callbacks import Callbacks, during_fit
from annealvi.temperature.variational import Variational
from annealvi.versions import Versioned


class Writable(Protocol):
    """A fit under way, which can be written to a file."""

    def write(self, path: str | os.PathLike) -> None:
        """Write all that is needed to resume the fit."""


class Fitted(Versioned):
    """The fitted attributes that follow from a state, which `fit` leaves in ``_state``.

    A state has a ``monitor``, and a planned ``temperature`` with what it has learned.  While
    `fit` runs, ``_progress`` is what :meth:`save_state` writes.
    """

    callback: Any  # the estimator's parameter
    _state: Any
    _progress: Writable

    def save_state(self, path: str | os.PathLike) -> None:
        """Write a checkpoint of the fit under way; call it in a callback.

        ``fit(X, resume=path)`` of an estimator with the same parameters, on the same X, goes on
        from there.  It ends with the same result as a fit that was never stopped, to the last
        bit.  :class:`annealvi.checkpoint.Checkpoint` calls this method from time to time.

        Parameters
        ----------
        path : path
            The file to write.  An existing file is replaced only once the new one is complete.

        Raises
        ------
        ValueError
            If no `fit` is under way: :func:`annealvi.save` writes a fitted estimator.
        TypeError
            If a parameter cannot be written to a file.
        """
        progress: Writable | None = vars(self).get("_progress")
        if progress is None:
            raise ValueError(
                f"'save_state' of {type(self).__name__} writes a checkpoint of a fit under way: "
                "call it in a callback of `fit`. A fitted estimator is written by annealvi.save."
            )
        progress.write(path)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_progress", None)
        return state

    @property
    def temperature_(self) -> float:
        return self._fitted().monitor.temperature

    @property
    def temperature_path_(self) -> NDArray[np.float64]:
        return np.array(self._fitted().monitor.temperature_path)

    @property
    def temperature_posterior_(self) -> NDArray[np.float64]:
        return self._variational("temperature_posterior_").posterior_

    @property
    def temperature_posterior_path_(self) -> NDArray[np.float32]:
        return self._variational("temperature_posterior_path_").path()

    @property
    def history_(self) -> dict[str, NDArray]:
        return self._fitted().monitor.history

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def _callbacks(self) -> Callbacks | None:
        """The user's callbacks, with the estimator as their first argument."""
        return Callbacks.of(self.callback, self)

    @contextmanager
    def _fit_under_way(self) -> Iterator[Callbacks | None]:
        """Return the context of a fit: callbacks act at its end, and its progress is let go."""
        callbacks = self._callbacks()
        try:
            with during_fit(callbacks):
                yield callbacks
        finally:
            self.__dict__.pop("_progress", None)

    def _fitted(self) -> Any:
        """The state of a fitted estimator; hasattr of an unfitted one must be false."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return self._state

    def _variational(self, name: str) -> Variational:
        """The Variational temperature of the fit; AttributeError if it had another kind."""
        temperature = self._fitted().temperature
        if not isinstance(temperature, Variational):
            raise AttributeError(
                f"{name!r} is only there after a fit with a Variational temperature."
            )
        return temperature
