r"""log C(T) of documents at the current q of LDA.

A word of document d, drawn from the tempered model, sums to

.. math::
   S_d(b) = \sum_k \exp(b E \log\theta_{dk}) \sum_v \exp(b E \log\beta_{kv}),

and log C_d(b) = N_d log S_d(b): the normaliser that matches the updates, in which topics
are explicit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import special
from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.files import Node
from annealvi.models.lda.topics import Topics
from annealvi.partition.estimate import SUMMED_ROWS, PowerGrid

#: The topics' sums over the vocabulary cost as much as a step.  So they are kept until the step
#: sizes since then sum to this.  Outdated sums belong to flatter topics: the model looks less
#: certain than it is, and T falls too early.
MOVED = 1.0
#: Number of words whose logarithms are computed at a time.
PIECE = 16 * SUMMED_ROWS
TINY = np.finfo(np.float64).tiny


class DocumentPartition:
    """log C_d(b) of documents at given inverse temperatures."""

    def __init__(self, inverses: NDArray[np.float64]) -> None:
        self.grid = PowerGrid(inverses)
        self._topics: NDArray[np.float64] | None = None
        self._replaced = -1  # `Topics.replaced` when the sums were computed
        self._logs = np.empty((0, 0))  # room for E log beta
        self._rows = np.empty((0, 0))  # and for E log theta
        self._moved = 0.0

    def outdate(self, rho: float) -> None:
        """Count a step of the topics, of size rho; drop the sums if they are too old."""
        self._moved += rho
        if self._moved >= MOVED:
            self._topics = None

    def release_buffers(self) -> None:
        """Keep only what the next steps of a stream can use."""
        self._logs = self._rows = np.empty((0, 0))

    def state_dict(self, topics: Topics) -> dict[str, Any]:
        """Return the topics' sums that are kept from step to step, as a tree."""
        sums = self._topics if self._replaced == topics.replaced else None
        return {"sums": sums, "moved": self._moved}

    def load_state_dict(self, node: Node, topics: Topics) -> None:
        """Take over what :meth:`state_dict` returned, for the topics as they are now."""
        self._topics, self._replaced = None, topics.replaced
        self._moved = node.number("moved", 0.0)
        if not node.is_none("sums"):
            shape = (self.grid.n_points, padded_length(topics.n_topics, np.float64))
            sums = node.array("sums", shape, np.float64)
            if np.any(sums < 0):
                raise node.error("sums", "not negative", sums)
            self._topics = sums

    def refresh(self, topics: Topics) -> None:
        """Bring the topics' sums over the vocabulary up to date."""
        if self._topics is not None and self._replaced == topics.replaced:
            return
        V, K = topics.n_features, topics.n_topics
        shape = min(V, PIECE), padded_length(K, np.float64)
        if self._logs.shape != shape:
            self._logs = aligned_empty(shape, np.float64)
        sums = np.zeros((self.grid.n_points, shape[1]))
        for start in range(0, V, PIECE):
            words = np.arange(start, min(start + PIECE, V))
            logs = self._logs[: len(words)]
            logs[:, :K], logs[:, K:] = topics.some_rows(words), 0
            topics.logs(logs, out=logs)  # -infinity in the padding
            self.grid.column_sums(logs, sums, n_threads=topics.n_threads)
        self._topics = sums
        self._moved, self._replaced = 0.0, topics.replaced

    def __call__(
        self, gamma: NDArray, n_words: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """log C_d, of shape (n_samples, M)."""
        rows = self._e_log_theta(gamma)
        sums = self.grid.row_sums(rows, self._topics, n_threads=n_threads)
        return n_words[:, None] * np.log(np.maximum(self.grid.at_inverses(sums), TINY))

    def of_batch(
        self, gamma: NDArray, alpha: NDArray, n_words: NDArray[np.float64], n_threads: int
    ) -> tuple[NDArray[np.float64], float]:
        """The sum of log C_d over documents, of shape (M,), and theta's part of b L.

        If a local step has converged, sum_v b n_dv phi_dvk = gamma_dk - alpha_k.  Then theta's
        part, b sum_k E log theta_k sum_v n_v phi_vk, needs no phi, which is cheaper.
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
