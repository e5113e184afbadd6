"""What the local step of LDA gives back where energies are wanted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from annealvi.model import LocalStep
from annealvi.models.lda.block import Statistics


class DocumentStep(LocalStep):
    """A local step whose units are words.

    Parameters
    ----------
    statistics : Statistics
    n_units : float

    Attributes
    ----------
    energy : ndarray of shape (n_samples,), float or None
        At the topics that the step was made with; once these have made a full step, their
        sum at the topics as they then are, which is what ascends the tempered ELBO.
    bound : callable or None
        Gives b * energy + entropy of each document, at the topics as they are then.
    moved : callable or None
        Gives what a full step of the topics has added to the energy, None before it.
    inverse_used : ndarray of shape (n_samples,) or None
        b of each document.
    """

    unit = "word"

    def __init__(self, statistics: Statistics, n_units: float) -> None:
        self.statistics = statistics
        self.n_units = n_units
        self.log_partition = self.inverse = None
        self.bound: Callable[[], NDArray[np.float64]] | None = None
        self.moved: Callable[[], float | None] | None = None
        self.inverse_used: NDArray | None = None
        self._energy: NDArray[np.float64] | float | None = None

    @property
    def energy(self) -> NDArray[np.float64] | float | None:  # type: ignore[override]
        added = None if self.moved is None else self.moved()
        if added is None or self._energy is None:
            return self._energy
        return float(np.sum(self._energy)) + added

    @energy.setter
    def energy(self, value: NDArray[np.float64] | float | None) -> None:
        self._energy = value

    @property
    def entropy(self) -> NDArray[np.float64] | None:  # type: ignore[override]
        """Of phi, less KL(theta), of each document; worked out when it is asked for."""
        if self.bound is None or self.inverse_used is None or self._energy is None:
            return None
        return self.bound() - self.inverse_used * self._energy
