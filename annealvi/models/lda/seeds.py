"""Choice of the documents that topics start from, spread over the corpus by k-means++."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

#: Seeds are chosen from at least LEAST_SAMPLE documents, or SAMPLE_A_TOPIC for each topic if
#: that is more.
LEAST_SAMPLE, SAMPLE_A_TOPIC = 2000, 10
#: A document this close to a seed (1 - cosine) counts as the same document.
SAME = 1e-9


def spread_documents(X: Any, n_topics: int, n_each: int, rng: RandomState) -> NDArray[np.int64]:
    r"""Choose groups of similar documents that are far from one another.

    Documents are unit vectors of log(1 + n_v) log(D / D_v), where D_v of the D documents
    contain word v.  A group is a centre and the documents with the largest cosines to it.
    Centres are drawn with probability proportional to the squared distance to the nearest
    earlier centre (k-means++, Arthur and Vassilvitskii 2007).

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features)
        Word counts.
    n_topics : int
        Number of groups that are wanted.
    n_each : int
        Number of documents in a group; fewer if there are fewer in all.
    rng : RandomState

    Returns
    -------
    ndarray of shape (n_groups, n_each)
        Row numbers, ascending in each group.  There are fewer groups than wanted if there
        are fewer different documents.
    """
    size = min(X.shape[0], max(LEAST_SAMPLE, SAMPLE_A_TOPIC * n_topics))
    sample = np.arange(X.shape[0])
    if size < X.shape[0]:
        sample = np.sort(rng.choice(X.shape[0], size, replace=False))
    vectors = _unit_vectors(X[sample])
    by_word = sparse.csr_matrix(vectors.T)
    n_each = min(n_each, size)
    # 1 - cosine, half the squared distance, to the nearest centre; documents without any word
    # that distinguishes them cannot become centres
    distance = (np.diff(vectors.indptr) > 0).astype(np.float64)
    groups: list[NDArray[np.int64]] = []
    while len(groups) < n_topics and np.any(distance > 0):
        reach = np.cumsum(distance)
        centre = int(np.searchsorted(reach, rng.random_sample() * reach[-1], side="right"))
        centre = min(centre, int(np.flatnonzero(distance)[-1]))  # in case of rounding errors
        # fast, because only the columns of this document's words are read
        cosine = (vectors[centre] @ by_word).toarray().ravel()
        # stable, so that ties go by row number on every machine
        nearest = np.argsort(-cosine, kind="stable")[:n_each]
        groups.append(np.sort(sample[nearest]))
        np.minimum(distance, 1.0 - cosine, out=distance)
        distance[distance < SAME] = 0
    return np.array(groups, dtype=np.int64).reshape(len(groups), n_each)


def _unit_vectors(X: Any) -> sparse.csr_matrix:
    """log(1 + n) idf of documents, scaled to norm 1, always in double precision."""
    vectors = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    vectors.eliminate_zeros()
    n_documents = np.bincount(vectors.indices, minlength=X.shape[1])
    idf = np.log(X.shape[0] / np.maximum(n_documents, 1))
    vectors.data = np.log1p(vectors.data) * idf[vectors.indices]
    vectors.eliminate_zeros()
    return normalize(vectors, copy=False)
