"""Natural parameters of the conjugate priors and posteriors of a Gaussian mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels.layout import single_threaded_blas
from annealvi.files import Node


@dataclass(frozen=True)
class Natural:
    """The parameters of q or p in which updates are linear."""

    #: Parameters of the Dirichlet distribution of the weights.
    alpha: NDArray[np.float64]
    #: Precision of each mean, divided by that of its component.
    kappa: NDArray[np.float64]
    #: kappa m.
    shift: NDArray[np.float64]
    #: Degrees of freedom of the precisions.
    nu: NDArray[np.float64]
    #: beta + kappa m^2.
    square: NDArray[np.float64]

    def __add__(self, other: Natural) -> Natural:
        return Natural(*(a + b for a, b in zip(self._fields(), other._fields(), strict=True)))

    def __rmul__(self, factor: float) -> Natural:
        return Natural(*(factor * a for a in self._fields()))

    def state_dict(self) -> dict[str, NDArray[np.float64]]:
        """The parameters by name."""
        return dict(vars(self))

    @classmethod
    def restored(cls, node: Node, shape: tuple[int, int], *, positive: bool) -> Self:
        """Parameters from a file."""

        def array(name: str, shape: tuple[int, ...], positive: bool = False) -> NDArray:
            return np.array(node.array(name, shape, np.float64, positive=positive))

        alpha, kappa, nu = (array(name, shape[:1], positive) for name in ("alpha", "kappa", "nu"))
        return cls(alpha, kappa, array("shift", shape), nu, array("square", shape))

    def _fields(self) -> tuple[NDArray[np.float64], ...]:
        return self.alpha, self.kappa, self.shift, self.nu, self.square


def collect(X: NDArray[np.float64], phi: NDArray[np.float64]) -> Natural:
    """The statistics of centred data, to which natural parameters are linear."""
    count = phi.sum(axis=0)
    with single_threaded_blas():
        return Natural(count, count, phi.T @ X, count, phi.T @ X**2)
