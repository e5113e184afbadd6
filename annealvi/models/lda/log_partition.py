r"""log C(T) of documents at the current q of LDA.

A word of document d, drawn from the tempered model, sums to

.. math::
   S_d(b) = \sum_k \exp(b E \log\theta_{dk}) \sum_v \exp(b E \log\beta_{kv}),

and log C_d(b) = N_d log S_d(b): the normaliser that matches the updates, in which topics
are explicit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import special
from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.model import LocalStep
from annealvi.models.lda.block import Statistics
from annealvi.partition.power_grid import PowerGrid

if TYPE_CHECKING:
    from annealvi.models.lda import LDA

#: The topics' sums over the vocabulary cost as much as a step, so they are kept until the
#: topics have moved by this much, the step sizes summed.  Sums of topics that were flatter
#: make the model look less sure of itself than it is, and T fall too early.
MOVED = 1.0
TINY = np.finfo(np.float64).tiny


class DocumentPartition:
    """log C_d(b) of documents at given inverse temperatures.

    Parameters
    ----------
    inverses : ndarray of shape (M,)
        Positive.
    """

    def __init__(self, inverses: NDArray[np.float64]) -> None:
        self.grid = PowerGrid(inverses, precise=False)
        self._topics: NDArray[np.float64] | None = None
        self._logs = np.empty((0, 0))  # room for E log beta
        self._rows = np.empty((0, 0))  # and for E log theta
        self._moved = 0.0

    def outdate(self, rho: float) -> None:
        """The topics have made a step of size rho."""
        self._moved += rho
        if self._moved >= MOVED:
            self._topics = None

    def let_go(self) -> None:
        """Keep only what the next steps of a stream can use."""
        self._logs = self._rows = np.empty((0, 0))

    def refresh(self, model: LDA) -> None:
        """Bring the topics' sums, over the vocabulary, up to date."""
        if self._topics is not None:
            return
        shape = (model.n_features, padded_length(model.n_topics, np.float64))
        if self._logs.shape != shape:
            self._logs = aligned_empty(shape, np.float64)
        logs = self._logs
        model.log_topics(model.lam[:, : shape[1]], out=logs)  # -infinity in the padding
        self._topics = self.grid.column_sums(logs, n_threads=model.n_threads)
        self._moved = 0.0

    def __call__(
        self, gamma: NDArray, n_words: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """log C_d, of shape (n_samples, M).

        Parameters
        ----------
        gamma : ndarray of shape (n_samples, K)
        n_words : ndarray of shape (n_samples,)
        n_threads : int
        """
        rows = self._e_log_theta(gamma)
        sums = self.grid.row_sums(rows, self._topics, n_threads=n_threads)
        return n_words[:, None] * np.log(np.maximum(self.grid.at_inverses(sums), TINY))

    def of_batch(
        self, gamma: NDArray, alpha: NDArray, n_words: NDArray[np.float64], n_threads: int
    ) -> tuple[NDArray[np.float64], float]:
        """The sum of log C_d over documents, of shape (M,), and what theta adds to b L.

        Cheaper than the parts: sum_v b n_dv phi_dvk = gamma_dk - alpha_k where a local step
        has converged, so b sum_k E log theta_k sum_v n_v phi_vk needs no phi.
        """
        e_log_theta = self._e_log_theta(gamma)
        sums = self.grid.row_sums(e_log_theta, self._topics, n_threads=n_threads)
        # no matrix product: its roundings depend on BLAS's threads
        total = np.einsum("n,np->p", n_words, special.log(np.maximum(sums, TINY)))
        log_c = self.grid.at_inverses(total)
        energy = np.einsum("nk,nk->", gamma - alpha, e_log_theta[:, : gamma.shape[1]])
        return log_c, float(energy)

    def _e_log_theta(self, gamma: NDArray) -> NDArray[np.float64]:
        """E log theta, in padded rows, valid until the next call."""
        n, K = gamma.shape
        width = padded_length(K, np.float64)
        if len(self._rows) < n or self._rows.shape[1] != width:
            self._rows = aligned_empty((n, width), np.float64)
        logs = self._rows[:n]
        logs[:, :K], logs[:, K:] = gamma, 0
        totals = logs.sum(axis=1)
        special.digamma(logs, out=logs)  # -infinity in the padding
        logs -= special.digamma(totals)[:, None]
        return logs


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
