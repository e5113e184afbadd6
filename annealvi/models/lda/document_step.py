"""The result of LDA's local step, with energies, and the energy of its words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from annealvi.model import LocalStep
from annealvi.models.lda.documents import BLOCK_BYTES
from annealvi.models.lda.topics import Statistics, Topics


class DocumentStep(LocalStep):
    """A local step whose units are words."""

    unit = "word"

    def __init__(self, statistics: Statistics, n_units: float) -> None:
        self.statistics = statistics
        self.n_units = n_units
        self.log_partition = self.inverse = None
        self.bound: Callable[[], NDArray[np.float64]] | None = None
        self.moved: Callable[[], float | None] | None = None
        self.inverse_used: NDArray | None = None
        self.energy_of_words: float | None = None
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
        """Entropy of phi minus KL(theta), for each document; computed when it is read."""
        if self.bound is None or self.inverse_used is None or self._energy is None:
            return None
        return self.bound() - self.inverse_used * self._energy


def energy_of_words(statistics: Statistics, topics: Topics, b: float) -> float:
    """sum_dkv n_dv phi_dvk E log beta_kv of statistics at one b, at the current topics."""
    K, total, lam = topics.n_topics, 0.0, topics.lam
    words = statistics.words()
    for some in np.array_split(words, max(1, 8 * K * len(words) // BLOCK_BYTES)):
        logs = topics.logs(lam[some, :K])
        total += float(np.einsum("vk,vk->", statistics.rows(some, K), logs))
    return total / b
