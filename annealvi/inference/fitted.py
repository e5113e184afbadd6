"""Attributes that all fitted estimators have: the record and the temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi.temperature.variational import Variational


class Fitted:
    """The fitted attributes that follow from a state, which `fit` leaves in ``_state``.

    A state has a ``monitor``, and a planned ``temperature`` with what it has learned.
    """

    _state: Any

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
