"""Comparison of the words that groups of documents use within a topic."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter
from annealvi.metrics.held_out import word_probabilities
from annealvi.topics.described import DescribedDocuments, Topics
from annealvi.topics.shares import read_groups

#: Half the width of a 95% interval, in standard errors.
WIDTH = 1.959963984540054
#: A word is listed if a group uses it at least this often: otherwise its interval is too narrow.
LEAST_COUNT = 5
#: Lower limits of divisors that could be 0: of sums, and of the share of other words in a topic.
_TINY, _LEAST_OTHERS = np.finfo(np.float64).tiny, 1e-9


class _Sums(NamedTuple):
    """Sums over documents, where document d has m_d words of a topic, and c_dw of them are w."""

    counts: NDArray  # c
    squares: NDArray  # c²
    products: NDArray  # c m
    length: float  # m
    length_squares: float  # m²

    @classmethod
    def of(cls, X: sparse.csr_matrix) -> _Sums:
        """Sum over the rows of X, which contain the counts c of documents."""
        lengths = np.asarray(X.sum(axis=1)).ravel()
        return cls(
            counts=np.asarray(X.sum(axis=0)).ravel(),
            squares=np.asarray(X.multiply(X).sum(axis=0)).ravel(),
            products=X.T @ lengths,
            length=lengths.sum(),
            length_squares=lengths @ lengths,
        )

    def without(self, group: _Sums) -> _Sums:
        """Return the sums over the documents that are not in the group."""
        sums: Any = zip(self, group, strict=True)
        differences = (total - of_group for total, of_group in sums)
        # a rounding error may be negative
        return _Sums._make(np.maximum(difference, 0.0) for difference in differences)

    def log_odds(self, words: NDArray, prior: NDArray) -> tuple[NDArray, NDArray]:
        """Return the log-odds of words, each with a `prior` count, and their variance.

        `words` are columns.  The formula is in `TopicSummary.words_by_group`.
        """
        y = self.counts[words]
        counts = y + prior
        total = self.length + prior.sum()
        # counts of all other words, as a divisor not 0
        others = np.maximum(total - counts, _LEAST_OTHERS * total)
        p = y / max(self.length, _TINY)
        # the sum of (c - p m)^2 over documents, multiplied out
        residuals = self.squares[words] - 2 * p * self.products[words] + p**2 * self.length_squares
        variance = (np.maximum(residuals, 0.0) + prior) * (total / (counts * others)) ** 2
        return np.log(counts / others), variance


def expected_counts(topics: Topics, documents: DescribedDocuments, k: int) -> sparse.csr_matrix:
    """Return the expected number of times that each word in each document is from topic k."""
    X = documents.counts
    components = topics.components
    # p(w | d) of each entry of X; each topic sums to 1
    p = word_probabilities(
        X,
        documents.shares,
        topics=components.T.__getitem__,
        sums=np.ones(len(components)),
    )
    of_topic = np.repeat(documents.shares[:, k], np.diff(X.indptr)) * components[k, X.indices]
    counts = X.data * of_topic / np.maximum(p, _TINY)  # p(k | w, d) by Bayes' rule
    return sparse.csr_matrix((counts, X.indices, X.indptr), shape=X.shape)


def words_by_group(
    topics: Topics,
    documents: DescribedDocuments,
    k: int,
    groups: ArrayLike,
    n: int | None,
    prior: float,
) -> Any:
    """Find the words that groups use differently; see `TopicSummary.words_by_group`."""
    pandas = import_optional("pandas", "TopicSummary.words_by_group")
    keys = read_groups(documents, groups, pandas)
    X = expected_counts(topics, documents, k)
    # the row numbers of each group; documents without a group are left out
    grouped = pandas.Series(range(len(keys))).groupby(keys, observed=True)
    rows = {name: positions.to_numpy() for name, positions in grouped}
    if len(rows) < 2:
        raise BadParameter("groups", "at least two groups", list(rows))
    all_sums = _Sums.of(X[np.concatenate(list(rows.values()))])
    used = np.flatnonzero(all_sums.counts)  # the columns of words that occur in the topic
    # `prior` in total, divided among words by their share of the topic
    prior_counts = (prior * all_sums.counts / max(all_sums.length, _TINY))[used]
    tables = []
    for name, group_rows in rows.items():
        in_group = _Sums.of(X[group_rows])
        in_others = all_sums.without(in_group)
        log_odds, variance = in_group.log_odds(used, prior_counts)
        log_odds_of_others, variance_of_others = in_others.log_odds(used, prior_counts)
        difference = log_odds - log_odds_of_others
        std_error = np.sqrt(variance + variance_of_others)
        table = pandas.DataFrame(
            {
                "group": [name] * len(used),
                "word": topics.words[used],
                "log_odds": difference,
                "std_error": std_error,
                "z": difference / std_error,
                "low": difference - WIDTH * std_error,
                "high": difference + WIDTH * std_error,
                "count": in_group.counts[used],
                "share": in_group.counts[used] / max(in_group.length, _TINY),
                "others": in_others.counts[used] / max(in_others.length, _TINY),
            }
        ).sort_values("z", ascending=False, kind="stable")
        if n is not None:
            is_used_more = (table["log_odds"] > 0) & (table["count"] >= LEAST_COUNT)
            table = table[is_used_more].head(n)
        tables.append(table)
    return pandas.concat(tables, ignore_index=True)
