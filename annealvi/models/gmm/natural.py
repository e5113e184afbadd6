"""Natural parameters of the conjugate priors and posteriors of a Gaussian mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Natural:
    """The parameters of q or p in which updates are linear.

    Attributes
    ----------
    alpha : ndarray of shape (K,)
        Parameters of the Dirichlet distribution of the weights.
    kappa : ndarray of shape (K,)
        Precision of each mean, divided by that of its component.
    shift : ndarray of shape (K, D)
        kappa m.
    nu : ndarray of shape (K,)
        Degrees of freedom of the precisions.
    square : ndarray of shape (K, D)
        beta + kappa m^2.
    """

    alpha: NDArray[np.float64]
    kappa: NDArray[np.float64]
    shift: NDArray[np.float64]
    nu: NDArray[np.float64]
    square: NDArray[np.float64]

    def __add__(self, other: Natural) -> Natural:
        return Natural(*(a + b for a, b in zip(self._fields(), other._fields(), strict=True)))

    def __rmul__(self, factor: float) -> Natural:
        return Natural(*(factor * a for a in self._fields()))

    def _fields(self) -> tuple[NDArray[np.float64], ...]:
        return self.alpha, self.kappa, self.shift, self.nu, self.square
