"""What all fitted estimators have: the record, the temperature, and the state of the fit."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from annealvi.inference.callbacks import Callbacks, CallbackSupport, Tasks, during_fit
from annealvi.inference.starts import Starts
from annealvi.temperature.variational import Variational
from annealvi.threads import changing, reading, reads, shallow, writing
from annealvi.versions import Versioned


class Fitted(Versioned, CallbackSupport):
    """The fitted attributes that follow from a state, which `fit` leaves in ``_state``.

    A state has a ``monitor``, and a planned ``temperature`` with what it has learned.  While
    `fit` runs, ``_starts`` are its starts.
    """

    callback: Any  # the estimator's parameter
    _state: Any
    _starts: Starts | None

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
        with writing(self):  # which the thread of a callback has
            starts = vars(self).get("_starts")
            if starts is None:
                raise ValueError(
                    f"'save_state' of {type(self).__name__} writes a checkpoint of a fit under "
                    "way: call it in a callback of `fit`. A fitted estimator is written by "
                    "annealvi.save."
                )
            starts.write(path)

    def __getstate__(self) -> dict[str, Any]:
        with reading(self):
            state = dict(super().__getstate__())
            state.pop("_starts", None)
            if "_state" in state:
                state["_state"] = copy.copy(state["_state"])
            return state

    @reads
    def __copy__(self) -> Self:
        """A copy with the same parameters, which goes on from the fit for itself."""
        copied = shallow(self)
        vars(copied).pop("_starts", None)
        if "_state" in vars(copied):
            copied._state = copy.copy(copied._state)
        return copied

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
    def _fit_under_way(
        self, X: Any, y: Any, others: tuple[Any, ...] = ()
    ) -> Iterator[Callbacks | None]:
        """The context of a fit: callbacks act at its end, and its starts are let go."""
        if "_skl_callbacks" in vars(self):  # scikit-learn's, from `set_callbacks`
            others += (Tasks(self, self._init_callback_context, X, y),)
        callbacks = Callbacks.of(self.callback, self, others)
        try:
            with during_fit(callbacks):
                yield callbacks
        finally:
            vars(self).pop("_starts", None)

    def _fitted(self) -> Any:
        """The state of a fitted estimator; hasattr of an unfitted one must be false."""
        state = vars(self).get("_state")
        if state is None:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return state

    def _show(self, columns: Any, **found: Any) -> None:
        """Set what a fit has found, with the features that it was given, all at once."""
        names = ("n_features_in_", "feature_names_in_")
        seen = {name: vars(columns)[name] for name in names if name in vars(columns)}
        with changing(self):
            vars(self).update(found | seen)
            if len(seen) < len(names):
                vars(self).pop("feature_names_in_", None)

    def _variational(self, name: str) -> Variational:
        """The Variational temperature of the fit; AttributeError if it had another kind."""
        temperature = self._fitted().temperature
        if temperature is None or not temperature.learns or temperature.per_document:
            raise AttributeError(
                f"{name!r} is only there after a fit with a Variational temperature."
            )
        return temperature
