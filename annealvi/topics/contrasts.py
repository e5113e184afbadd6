"""Comparison of the words that groups of documents use within a topic."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter
from annealvi.metrics.held_out import word_probabilities
from annealvi.topics.described import Described
from annealvi.topics.shares import read_groups

#: Half the width of a 95% interval, in standard errors.
WIDTH = 1.959963984540054
#: A word is listed if a group uses it at least this often: otherwise its interval is too narrow.
LEAST_COUNT = 5
#: Lower limits of divisors that could be 0: of sums, and of the share of other words in a topic.
_TINY, _LEAST_OTHERS = np.finfo(np.float64).tiny, 1e-9


class _Sums(NamedTuple):
    """Sums over documents, where document d has m_d words of a topic, and c_dw of them are w."""

    counts: NDArray[np.float64]  # c
    squares: NDArray[np.float64]  # c²
    products: NDArray[np.float64]  # c m
    length: float  # m
    length_squares: float  # m²

    @classmethod
    def of(cls, X: sparse.csr_matrix) -> _Sums:
        lengths = np.asarray(X.sum(axis=1)).ravel()
        counts, squares = (np.asarray(each.sum(axis=0)).ravel() for each in (X, X.multiply(X)))
        return cls(counts, squares, X.T @ lengths, lengths.sum(), lengths @ lengths)

    def without(self, other: _Sums) -> _Sums:
        """The sums over the other documents."""
        pairs: Any = zip(self, other, strict=True)
        return _Sums(*(np.maximum(a - b, 0.0) for a, b in pairs))

    def log_odds(self, words: NDArray, prior: NDArray) -> tuple[NDArray, NDArray]:
        """Return the log-odds of words, each with a prior count, and their variance."""
        y, total = self.counts[words], self.length + prior.sum()
        counts = y + prior
        others = np.maximum(total - counts, _LEAST_OTHERS * total)
        p = y / max(self.length, _TINY)
        residuals = self.squares[words] - 2 * p * self.products[words] + p**2 * self.length_squares
        variance = (np.maximum(residuals, 0.0) + prior) * (total / (counts * others)) ** 2
        return np.log(counts / others), variance

    def against(self, other: _Sums, words: NDArray, prior: NDArray) -> dict[str, NDArray]:
        """Compare the shares of words with those in other documents."""
        log_odds, variance = self.log_odds(words, prior)
        log_odds_of_others, variance_of_others = other.log_odds(words, prior)
        difference = log_odds - log_odds_of_others
        std_error = np.sqrt(variance + variance_of_others)
        return {
            "log_odds": difference,
            "std_error": std_error,
            "z": difference / std_error,
            "low": difference - WIDTH * std_error,
            "high": difference + WIDTH * std_error,
            "count": self.counts[words],
            "share": self.counts[words] / max(self.length, _TINY),
            "others": other.counts[words] / max(other.length, _TINY),
        }


def expected_counts(
    X: sparse.csr_matrix, shares: NDArray, topics: NDArray, k: int
) -> sparse.csr_matrix:
    """Return the expected number of times that each word in each document is from topic k."""
    p = word_probabilities(X, shares, topics.T.__getitem__, np.ones(len(topics)))
    own = np.repeat(shares[:, k], np.diff(X.indptr)) * topics[k, X.indices]
    counts = X.data * own / np.maximum(p, _TINY)
    return sparse.csr_matrix((counts, X.indices, X.indptr), shape=X.shape)


def words_by_group(
    summary: Described, topic: int | str, groups: ArrayLike, n: int | None, prior: float
) -> Any:
    """Find the words that groups use differently; see `TopicSummary.words_by_group`."""
    pandas = import_optional("pandas", "TopicSummary.words_by_group")
    k, keys = summary.labels.number(topic), read_groups(summary, groups, pandas)
    X = expected_counts(summary.counts, summary.shares, summary.topics, k)
    grouped = pandas.Series(range(len(keys))).groupby(keys, observed=True)
    rows = {name: places.to_numpy() for name, places in grouped}
    if len(rows) < 2:
        raise BadParameter("groups", "at least two groups", list(rows))
    everything = _Sums.of(X[np.concatenate(list(rows.values()))])
    there = np.flatnonzero(everything.counts)
    words = summary.feature_names[there]
    prior_counts = prior * everything.counts / max(everything.length, _TINY)
    frames, named = [], []
    for name, own_rows in rows.items():
        own = _Sums.of(X[own_rows])
        rest = everything.without(own)
        columns = own.against(rest, there, prior_counts[there])
        best = np.argsort(-columns["z"], kind="stable")
        if n is not None:
            more = (columns["log_odds"] > 0) & (columns["count"] >= LEAST_COUNT)
            best = best[more[best]][:n]
        frames.append(pandas.DataFrame({"word": words, **columns}).iloc[best])
        named += [name] * len(best)
    table = pandas.concat(frames, ignore_index=True)
    table.insert(0, "group", named)
    return table
