"""Results of the end of a fit of TemperedLDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi.files import Node
from annealvi.matrices import check_csr

#: Number of documents over which the log partition function of a word is averaged.
CORPUS_SAMPLE = 512


@dataclass
class Results:
    """Results of the end of `fit`.  `partial_fit` drops them; new topics drop `sample`."""

    bound: float | None = None
    validation_score: float | None = None
    #: The estimator's attributes `bound_`, `validation_score_` and so on.
    init_scores: NDArray[np.float64] | None = None
    document_temperatures: NDArray[np.float64] | None = None
    #: Some training documents, over which log C per word is averaged.
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
        """Return the results of a tree that :meth:`state_dict` returned."""
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
    """A corpus from a file."""
    X = sparse.csr_matrix((node.integer("n_samples", 0, CORPUS_SAMPLE), n_features), dtype=dtype)
    X.data = node.array("data", (None,), dtype)
    X.indices, X.indptr = node.plain("indices"), node.plain("indptr")
    X = check_csr(X, dtype=dtype, name=f"{node.way} of the file")
    if np.any(X.data < 0):
        raise node.error("data", "counts", X.data)
    return X


def some_documents(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """At most CORPUS_SAMPLE documents, evenly spaced."""
    return X[:: -(-X.shape[0] // CORPUS_SAMPLE)]
