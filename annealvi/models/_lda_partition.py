r"""log C(T) of documents at the current q of LDA.

A word of document d, drawn from the tempered model, sums to

.. math::
   S_d(b) = \sum_k \exp(b E \log\theta_{dk}) \sum_v \exp(b E \log\beta_{kv}),

and log C_d(b) = N_d log S_d(b): the normaliser that matches the updates, in which topics
are explicit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import special
from annealvi._kernels.layout import padded_rows
from annealvi.partition import PowerGrid

if TYPE_CHECKING:
    from annealvi.models.lda import LDA

#: Steps of minibatches for which the topics' sums are kept: they change slowly, and at each
#: step they would cost as much as the step.
REFRESH = 20


class DocumentPartition:
    """log C_d(b) of documents at given inverse temperatures.

    Parameters
    ----------
    inverses : ndarray of shape (M,)
        Positive.
    """

    def __init__(self, inverses: NDArray[np.float64]) -> None:
        self.grid = PowerGrid(inverses)
        self._topics: NDArray[np.float64] | None = None
        self._age = 0

    def outdate(self, rho: float) -> None:
        """The topics have made a step of size rho."""
        self._age += 1
        if rho == 1 or self._age >= REFRESH:
            self._topics = None

    def refresh(self, model: LDA) -> None:
        """Bring the topics' sums, over the vocabulary, up to date."""
        if self._topics is not None:
            return
        lam = model.lam[:, : model.n_topics]
        logs = padded_rows(lam, np.float64)
        special.digamma(logs, out=logs)
        logs[:, : model.n_topics] -= special.digamma(model.topic_sums)
        self._topics = self.grid.column_sums(logs, n_threads=model.n_threads)
        self._age = 0

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
        gamma = gamma.astype(np.float64)
        logs = special.digamma(gamma) - special.digamma(gamma.sum(axis=1))[:, None]
        rows = padded_rows(logs, np.float64, fill=-np.inf)
        sums = self.grid.row_sums(rows, self._topics, n_threads=n_threads)
        return n_words[:, None] * self.grid.log_at_inverses(sums)
