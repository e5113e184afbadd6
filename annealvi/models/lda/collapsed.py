r"""Collapsed inference of documents at fixed topics (CVB0).

At fixed topics beta, the posterior of a document's topics z, with theta integrated out, is

.. math::
   p(z_i = k \mid z_{-i}, w) \propto (\alpha_k + n_{-i,k}) \beta_{k w_i},

where n_{-i} are the numbers of other tokens with each topic.  CVB0 (Asuncion, Welling, Smyth and
Teh 2009) replaces these numbers by their expectations,

.. math::
   \phi_{vk} \propto (\alpha_k + n_k - \phi_{vk}) \beta_{kv}, \quad n_k = \sum_v n_v \phi_{vk},
   \quad E[\theta_k] = \frac{\alpha_k + n_k}{\sum_j (\alpha_j + n_j)}.

In mean-field inference exp psi(alpha_k + n_k) replaces alpha_k + n_k - phi_vk in this update.  The
exponential is about alpha_k + n_k - 1/2 if topic k has many tokens, and almost 0 if topic k has
fewer than one token.  So mean-field inference drops topics that the exact posterior mean keeps.
Sato and Nakagawa (2012) derive CVB0 as a projection that keeps the posterior mean, while mean-field
inference finds a mode.  docs/record/inference.md compares both with the exact mean.

If a count n_v is below 1, n_v phi_vk is subtracted instead of phi_vk.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import lda_collapsed as kernels
from annealvi._kernels.layout import aligned_empty, padded_rows, separate_rows
from annealvi.models.lda.cpu import TopicWeights
from annealvi.models.lda.engine import Engine
from annealvi.models.lda.model import LDA

#: How the topic proportions of documents are inferred.
Method = Literal["variational", "cvb0"]
METHODS: tuple[Method, ...] = ("variational", "cvb0")
#: A document stops when less than the share TOLERANCE of its tokens changes topics in a sweep (an
#: update of all its words), or after MOST_SWEEPS.  The values are the same for all fits, so that
#: fits can be compared.
TOLERANCE = 0.01
MOST_SWEEPS = 100


def infer_collapsed(
    engine: Engine,
    model: LDA,
    X: Any,
    *,
    tolerance: float = TOLERANCE,
    max_iter: int = MOST_SWEEPS,
) -> NDArray:
    """Infer alpha + n of documents at E[beta], for both estimates of the topics.

    Here n_k is the expected number of tokens of topic k in a document.
    """
    n_threads = engine.n_threads
    gamma = np.empty((X.shape[0], model.n_topics), dtype=model.dtype)
    alpha = padded_rows(model.alpha_row[None], model.dtype)[0]  # padded like the rows of weights
    weights = TopicWeights(*model.shape, bounded=True)
    # scratch for each thread, enough for the document with the most words
    longest = int(np.diff(X.indptr).max(initial=0))
    pointers = separate_rows(n_threads, longest + 1, np.int64)
    scratch = aligned_empty((n_threads, (longest + 3) * model.width), model.dtype)
    for rows in engine.blocks(model, slice(0, X.shape[0])):
        entries = X.indices[X.indptr[rows.start] : X.indptr[rows.stop]]
        # only the words of this block, because rows of weights are computed when they are needed
        words = np.flatnonzero(np.bincount(entries, minlength=model.n_features))
        # weights of log E[beta], even if the fit uses E[log beta]
        weights.refresh(model, words, b=1.0, estimate="map", n_threads=n_threads)
        kernels.collapse_documents(
            X.data,
            X.indices,
            X.indptr,
            rows.start,
            rows.stop,
            weights,
            alpha,
            tolerance,
            max_iter,
            n_threads,
            pointers,
            scratch,
            gamma=gamma[rows],  # written
            n_iter=np.empty(rows.stop - rows.start, dtype=np.int32),  # written, but not needed
        )
    return gamma
