"""Results of the end of a fit of TemperedLDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi.files import Node

#: Number of documents over which the log partition function of a word is averaged.
CORPUS_SAMPLE = 512


@dataclass
class Results:
    """Results of the end of `fit`.  `partial_fit` drops them; new topics drop `sample`.

    Parameters
    ----------
    bound, validation_score : float or None
    init_scores, document_temperatures : ndarray or None
        The estimator's attributes `bound_`, `validation_score_` and so on.
    sample : CSR matrix or None
        Some training documents, over which log C per word is averaged.
    """

    bound: float | None = None
    validation_score: float | None = None
    init_scores: NDArray[np.float64] | None = None
    document_temperatures: NDArray[np.float64] | None = None
    sample: sparse.csr_matrix | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the results as a tree, see :mod:`annealvi.files`."""
        sample = self.sample
        return {
            "bound": None if self.bound is None else float(self.bound),
            "validation_score": (
                None if self.validation_score is None else float(self.validation_score)
            ),
            "init_scores": self.init_scores,
            "document_temperatures": self.document_temperatures,
            "sample": None
            if sample is None
            else {
                "n_samples": sample.shape[0],
                "data": sample.data,
                "indices": sample.indices,
                "indptr": sample.indptr,
            },
        }

    @classmethod
    def of(cls, node: Node, n_features: int, dtype: np.dtype) -> Self:
        """Return the results of a tree that :meth:`state_dict` returned.

        Parameters
        ----------
        node : Node
        n_features : int
            V.
        dtype : dtype
            Of the counts.
        """
        bound, score = (
            None if node.is_none(name) else node.number(name, finite=False)
            for name in ("bound", "validation_score")
        )
        scores, temperatures = (
            None if node.is_none(name) else np.array(node.array(name, (None,), float, finite=False))
            for name in ("init_scores", "document_temperatures")
        )
        sample = None
        if not node.is_none("sample"):
            sample = _documents(node.node("sample"), n_features, dtype)
        return cls(bound, score, scores, temperatures, sample)


def _documents(node: Node, n_features: int, dtype: np.dtype) -> sparse.csr_matrix:
    """A corpus from a file, whose arrays are checked before SciPy or a kernel sees them."""
    n_samples = node.integer("n_samples", 0, CORPUS_SAMPLE)
    index = np.int64 if getattr(node.plain("indptr"), "dtype", None) == np.int64 else np.int32
    indptr = node.array("indptr", (n_samples + 1,), index)
    indices = node.array("indices", (None,), index)
    data = node.array("data", indices.shape, dtype)
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(indptr[1:] < indptr[:-1]):
        raise node.error("indptr", "where each row ends", indptr)
    within = np.ones(len(indices), dtype=bool)  # entries that follow another of their row
    within[indptr[:-1][indptr[:-1] < len(indices)]] = False
    ascending = indices[1:] > indices[:-1]
    if np.any(indices < 0) or np.any(indices >= n_features) or np.any(within[1:] & ~ascending):
        raise node.error("indices", f"ascending in each row, and in [0, {n_features})", indices)
    if np.any(data < 0):
        raise node.error("data", "counts", data)
    arrays = data.copy(), indices.copy(), indptr.copy()
    return sparse.csr_matrix(arrays, shape=(n_samples, n_features))


def some_documents(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """At most CORPUS_SAMPLE documents, evenly spaced.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, V)
    """
    return X[:: -(-X.shape[0] // CORPUS_SAMPLE)]
