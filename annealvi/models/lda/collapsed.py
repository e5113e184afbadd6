r"""Collapsed inference of documents at held topics (CVB0), which leaves a token's own share out.

At held topics beta the posterior of a document's topics z, with theta summed out, has

.. math::
   p(z_i = k \mid z_{-i}, w) \propto (\alpha_k + n_{-i,k}) \beta_{k w_i},

where n_{-i} counts the topics of all other tokens.  CVB0 (Asuncion, Welling, Smyth and Teh 2009)
puts the expected counts in the place of the counts,

.. math::
   \phi_{vk} \propto (\alpha_k + n_k - \phi_{vk}) \beta_{kv}, \quad n_k = \sum_v n_v \phi_{vk},
   \quad E[\theta_k] = \frac{\alpha_k + n_k}{\sum_j (\alpha_j + n_j)}.

The mean field has exp psi(alpha_k + n_k) there, which is about alpha_k + n_k - 1/2 for many tokens
and almost nothing for fewer than one.  So it drops topics that a document may well have, and the
exact posterior mean keeps them.  Sato and Nakagawa (2012) derive CVB0 as a projection that keeps
the mean of the posterior, where the mean field looks for its mode.  docs/record/inference.md
compares the two with the exact mean.

A count below 1 is a part of a token: then n_v phi_vk is left out.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._kernels import lda_collapsed as kernels
from annealvi._kernels.layout import aligned_empty, separate_rows
from annealvi.models.lda.documents import Documents
from annealvi.models.lda.topics import TopicWeights

#: How the topic proportions of documents are inferred.
Method = Literal["variational", "cvb0"]
METHODS: tuple[Method, ...] = ("variational", "cvb0")
#: A document stops when fewer than this share of its tokens change their topic in a sweep, or after
#: so many sweeps.  A fit has no say in it, so that all fits are compared alike.
TOLERANCE, MOST_SWEEPS = 0.01, 100


def infer_collapsed(
    documents: Documents,
    X: Any,
    *,
    alpha: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    max_iter: int = MOST_SWEEPS,
    n_threads: int | None = None,
) -> NDArray:
    """Infer alpha + n of documents, at E[beta] whatever the estimate of the topics."""
    topics = documents.topics
    n_threads = topics.n_threads if n_threads is None else n_threads
    gamma = np.empty((X.shape[0], topics.n_topics), dtype=topics.dtype)
    prior = np.zeros(topics.width, dtype=topics.dtype)
    prior[: topics.n_topics] = documents.alpha if alpha is None else alpha
    weights = TopicWeights(*topics.shape, bounded=True)
    longest = int(np.diff(X.indptr).max(initial=0))
    rows = separate_rows(n_threads, longest + 1, np.int64)
    scratch = aligned_empty((n_threads, (longest + 3) * topics.width), topics.dtype)
    for block in documents.blocks(slice(0, X.shape[0])):
        entries = X.indices[X.indptr[block.start] : X.indptr[block.stop]]
        words = np.flatnonzero(np.bincount(entries, minlength=topics.n_features))
        weights.refresh(words, topics.rows(), topics.sums, "map", 1.0, False, n_threads)
        given = X.data, X.indices, X.indptr, block.start, block.stop, weights, prior
        n_iter = np.empty(block.stop - block.start, dtype=np.int32)
        kernels.collapse_documents(
            *given, tolerance, max_iter, n_threads, rows, scratch, gamma[block], n_iter
        )
    return gamma
