"""Correlations between the shares of topics: which topics occur in the same documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils import check_random_state

from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter
from annealvi.topics.described import DescribedDocuments
from annealvi.topics.shares import variance_of

#: Correlations nearer to -1 or 1 are treated as this number, whose Fisher transformation is finite.
_LARGEST = 1 - 1e-9


def together(
    documents: DescribedDocuments, labels: Sequence[str], n_draws: int, random_state: Any
) -> Any:
    """Correlate the shares of all pairs of topics; see `TopicSummary.together`."""
    pandas = import_optional("pandas", "TopicSummary.together")
    known = documents.lengths > 0
    n_documents = int(known.sum())
    if n_documents < 4:
        raise BadParameter("documents", "at least 4 documents with words", n_documents)
    # all pairs of topics
    first, second = np.triu_indices(documents.shares.shape[1], k=1)

    def transformed(shares: NDArray) -> NDArray:
        """Return Fisher's transformation of the correlations, 0 for a topic of constant shares."""
        with np.errstate(invalid="ignore", divide="ignore"):
            correlations = np.nan_to_num(np.corrcoef(shares, rowvar=False)[first, second])
        return np.arctanh(np.clip(correlations, -_LARGEST, _LARGEST))

    # the parameters of the Dirichlet posterior of shares; draws are gamma variables by their sum
    gamma = (documents.shares * documents.concentration[:, None])[known]
    rng = check_random_state(random_state)
    sizes = (rng.standard_gamma(gamma) for _ in range(n_draws))
    draws = np.array([transformed(size / size.sum(axis=1, keepdims=True)) for size in sizes])
    variance = np.full(len(first), 1 / (n_documents - 3))  # within a draw
    variance += variance_of(draws, np.ones(draws.shape, bool))
    if documents.refits is not None:
        of_refits = np.array([transformed(shares[known]) for shares in documents.refits.shares])
        # whether a refit found both topics
        both = documents.refits.found[:, first] & documents.refits.found[:, second]
        variance += variance_of(of_refits, both)
    margin = stats.norm.isf(0.025) * np.sqrt(variance)  # half the width of a 95% interval
    names = np.array(labels, dtype=object)
    middle = draws.mean(axis=0)
    table = pandas.DataFrame(
        {
            "topic": first,
            "label": names[first],
            "other": second,
            "other_label": names[second],
            "correlation": np.tanh(middle),
            "low": np.tanh(middle - margin),
            "high": np.tanh(middle + margin),
        }
    )
    return table.sort_values("correlation", ascending=False, kind="stable", ignore_index=True)
