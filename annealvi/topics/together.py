"""Correlations between the shares of topics: which topics occur in the same documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter
from annealvi.topics.described import Described
from annealvi.topics.shares import covariance_of

#: Correlations are kept away from -1 and 1, whose Fisher transformation is infinite.
_LARGEST = 1 - 1e-9


def together(summary: Described, n_draws: int, random_state: Any) -> Any:
    """Correlate the shares of all pairs of topics; see `TopicSummary.together`."""
    pandas = import_optional("pandas", "TopicSummary.together")
    known = summary.lengths > 0
    n_documents = int(known.sum())
    K = len(summary.topics)
    if n_documents < 4 or K < 2:
        raise BadParameter(
            "documents",
            "at least 4 documents with words and at least 2 topics",
            f"{n_documents} documents and {K} topics",
        )
    first, second = np.triu_indices(K, k=1)

    def transformed(shares: Any) -> Any:
        with np.errstate(invalid="ignore"):  # a share may be the same in all documents
            correlations = np.corrcoef(shares, rowvar=False)[first, second]
        return np.arctanh(np.clip(np.nan_to_num(correlations), -_LARGEST, _LARGEST))

    gamma = (summary.shares * summary.concentration[:, np.newaxis])[known]
    rng = check_random_state(random_state)
    draws = []
    for _ in range(n_draws):
        sizes = rng.standard_gamma(gamma)
        draws.append(transformed(sizes / sizes.sum(axis=1, keepdims=True)))
    estimates = np.array(draws)
    estimate = estimates.mean(axis=0)
    every = np.ones(estimates.shape, bool)
    variance = np.full(len(first), 1 / (n_documents - 3))
    if n_draws > 1:
        variance += covariance_of(estimates[:, :, np.newaxis], every)[:, 0, 0]
    if summary.refits is not None:
        of_refits = np.array([transformed(shares[known]) for shares in summary.refits.shares])
        both = summary.refits.found[:, first] & summary.refits.found[:, second]
        variance += covariance_of(of_refits[:, :, np.newaxis], both)[:, 0, 0]
    margin = stats.norm.isf(0.025) * np.sqrt(variance)
    labels = np.array(list(summary.labels), dtype=object)
    table = pandas.DataFrame(
        {
            "topic": first,
            "label": labels[first],
            "other": second,
            "other_label": labels[second],
            "correlation": np.tanh(estimate),
            "low": np.tanh(estimate - margin),
            "high": np.tanh(estimate + margin),
        }
    )
    return table.sort_values("correlation", ascending=False, kind="stable", ignore_index=True)
