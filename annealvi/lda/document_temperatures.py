"""How unusual documents are, as the temperature that each would choose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.utils import gen_batches

from annealvi.lda.results import some_documents
from annealvi.lda.state import LDAState
from annealvi.temperature.local import SCORE_GRID

#: Number of documents scored at a time.
SCORE_BLOCK = 4096


def document_temperatures(
    state: LDAState,
    X: sparse.csr_matrix,
    gamma: NDArray | None = None,
    *,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """See :meth:`annealvi.TemperedLDA.document_temperatures`."""
    sample = some_documents(X) if state.results.sample is None else state.results.sample
    corpus = _mean_log_partition(state, sample, n_threads)
    temperatures = np.empty(X.shape[0])
    for rows in gen_batches(X.shape[0], SCORE_BLOCK):
        some = X[rows]
        energy = state.model.documents.energies(
            some,
            state.infer(some, n_threads=n_threads) if gamma is None else gamma[rows],
            n_threads=n_threads,
        )
        n_words = np.asarray(some.sum(axis=1, dtype=np.float64)).ravel()
        scores = energy[:, None] * SCORE_GRID - n_words[:, None] * corpus
        # no matrix product: its roundings depend on how many documents there are
        mean = np.sum(softmax(scores, axis=1) * SCORE_GRID, axis=1)
        temperatures[rows] = np.where(n_words > 0, 1.0 / mean, np.nan)
    return temperatures


def _mean_log_partition(
    state: LDAState, X: sparse.csr_matrix, n_threads: int | None
) -> NDArray[np.float64]:
    """log C(b) per word, averaged over documents."""
    log_c = state.model.documents.posterior_log_partition(
        SCORE_GRID, X, state.infer(X, n_threads=n_threads), n_threads=n_threads
    )
    return log_c / (X.sum(dtype=np.float64) or 1.0)
