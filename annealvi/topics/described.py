"""Protocols with the attributes of summaries that functions in other files use."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi.topics.words import Labels


class Judged(Protocol):
    """Topics with measures of their reliability; TopicSummary documents the attributes."""

    topics: NDArray[np.float64]
    coherence: NDArray[np.float64]
    support: NDArray[np.float64] | None
    similarity: NDArray[np.float64]
    refits: Any
    facts: dict[str, Any]

    @property
    def labels(self) -> Labels: ...


class Described(Judged, Protocol):
    """Topics with documents; TopicSummary documents the attributes."""

    shares: NDArray[np.float64]
    clusters: NDArray[np.int64]
    counts: sparse.csr_matrix
    lengths: NDArray[np.float64]
    concentration: NDArray[np.float64]
    feature_names: NDArray
    index: Any
    checksum: str
    quality: dict[str, float]
