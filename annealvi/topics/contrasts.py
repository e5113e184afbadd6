"""Comparison of the words that groups of documents use within a topic."""

from __future__ import annotations

from itertools import pairwise
from operator import sub
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.sparse import csr_matrix

from annealvi._optional import import_optional
from annealvi.checks import TINY
from annealvi.exceptions import BadParameter
from annealvi.matrices import summed
from annealvi.metrics.held_out import rows_of_entries
from annealvi.topics.described import DescribedDocuments, Topics, probabilities_in
from annealvi.topics.shares import read_groups, read_periods

#: Half the width of a 95% interval, in standard errors.
WIDTH = 1.959963984540054
#: A word is listed if a group uses it at least this often: otherwise its interval is too narrow.
LEAST_COUNT = 5
#: The probability that a word's interval excludes 0 in `words_over_time` though nothing changes.
LEVEL = 0.05
#: A change is considered if the documents before it, and those after it, have as many words of the
#: topic as this number of documents of equal lengths: variances from fewer are uncertain.
LEAST_DOCUMENTS = 50.0
#: The lower limit of the share of other words in a topic, which is a divisor.
_LEAST_OTHERS = 1e-9


class _Sums(NamedTuple):
    """Sums over documents, where document d has m_d words of a topic, and c_dw of them are w."""

    counts: NDArray  # c
    squares: NDArray  # c²
    products: NDArray  # c m
    length: float  # m
    length_squares: float  # m²

    @classmethod
    def of(cls, X: csr_matrix, words: NDArray) -> _Sums:
        """Sum over the rows of X, which contain the counts c of documents; `words` are columns."""
        lengths = summed(X, axis=1)  # m of each document
        return cls(
            counts=summed(X, axis=0)[words],
            squares=summed(X.multiply(X), axis=0)[words],
            products=(X.T @ lengths)[words],
            length=lengths.sum(),
            length_squares=lengths @ lengths,
        )

    def without(self, group: _Sums) -> _Sums:
        """Return the sums over the documents that are not in the group."""
        differences = map(sub, self, group)
        # a rounding error may be negative
        return _Sums._make(np.maximum(difference, 0.0) for difference in differences)

    def log_odds(self, prior: NDArray) -> tuple[NDArray, NDArray]:
        """Return the log-odds of words, each with a `prior` count, and their variance.

        The formula is in `TopicSummary.words_by_group`.
        """
        y = self.counts
        counts = y + prior
        total = self.length + prior.sum()
        # counts of all other words, as a divisor not 0
        others = np.maximum(total - counts, _LEAST_OTHERS * total)
        p = np.minimum(y / max(self.length, TINY), 1.0)  # rounding errors, if there are no words
        # the sum of (c - p m)^2 over documents, multiplied out
        residuals = self.squares - 2 * p * self.products + p**2 * self.length_squares
        variance = (np.maximum(residuals, 0.0) + prior) * (total / (counts * others)) ** 2
        return np.log(counts / others), variance

    def against(self, rest: _Sums, prior: NDArray) -> dict[str, NDArray]:
        """Compare words with those in other documents (`rest`), in columns of a table.

        `prior` contains the prior counts of the words.
        """
        log_odds, variance = self.log_odds(prior)
        log_odds_of_others, variance_of_others = rest.log_odds(prior)
        difference = log_odds - log_odds_of_others
        std_error = np.sqrt(variance + variance_of_others)
        return {
            "log_odds": difference,
            "std_error": std_error,
            "z": difference / std_error,
            "low": difference - WIDTH * std_error,  # of a 95% interval
            "high": difference + WIDTH * std_error,
            "count": self.counts,
            "share": self.counts / max(self.length, TINY),
            "others": rest.counts / max(rest.length, TINY),
        }


def expected_counts(topics: Topics, documents: DescribedDocuments, k: int) -> csr_matrix:
    """Return the expected number of times that each word in each document is from topic k."""
    X = documents.counts
    components = topics.components
    p = probabilities_in(documents, components)
    of_topic = documents.shares[rows_of_entries(X), k] * components[k, X.indices]
    counts = X.data * of_topic / np.maximum(p, TINY)  # p(k | w, d) by Bayes' rule
    return csr_matrix((counts, X.indices, X.indptr), shape=X.shape)


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
    rows = keys.groupby(keys, observed=True).indices
    if len(rows) < 2:
        raise BadParameter("groups", "at least two groups", keys.dropna().unique().tolist())
    grouped = X[np.concatenate(list(rows.values()))]
    used = np.flatnonzero(summed(grouped, axis=0))  # the columns of words that occur in the topic
    all_sums = _Sums.of(grouped, used)
    # `prior` in total, divided among words by their share of the topic
    prior_counts = prior * all_sums.counts / max(all_sums.length, TINY)
    tables = []
    for name, group_rows in rows.items():
        in_group = _Sums.of(X[group_rows], used)
        contrast = in_group.against(all_sums.without(in_group), prior_counts)
        table = pandas.DataFrame(
            {"group": [name] * len(used), "word": topics.words[used], **contrast}
        )
        table = table.sort_values("z", ascending=False, kind="stable")
        if n is not None:
            is_used_more = (table["log_odds"] > 0) & (table["count"] >= LEAST_COUNT)
            table = table[is_used_more].head(n)
        tables.append(table)
    return pandas.concat(tables, ignore_index=True)


def words_over_time(
    topics: Topics,
    documents: DescribedDocuments,
    k: int,
    times: ArrayLike,
    freq: Any,
    n: int | None,
    prior: float,
) -> Any:
    """Find the words whose share of a topic changes; see `TopicSummary.words_over_time`."""
    pandas = import_optional("pandas", "TopicSummary.words_over_time")
    X = expected_counts(topics, documents, k)
    # the number of each document's period, or -1, and the beginnings of all periods
    period_of, periods = read_periods(documents, times, freq)
    numbers = np.unique(period_of[period_of >= 0])
    if len(numbers) < 2:
        raise BadParameter("times", "times in at least two periods", "times in one period")
    dated = X[period_of >= 0]
    used = np.flatnonzero(summed(dated, axis=0))
    all_sums = _Sums.of(dated, used)
    prior_counts = prior * all_sums.counts / max(all_sums.length, TINY)
    # documents that each side of a change needs
    n_needed = min(LEAST_DOCUMENTS, _documents(all_sums.length, all_sums.length_squares) / 4)
    tables = []  # of all words for each possible change
    evidence = []  # |z| of each word for each possible change, 0 if it does not count
    later = all_sums
    for before, since in pairwise(numbers):
        later = later.without(_Sums.of(X[period_of == before], used))
        earlier = all_sums.without(later)
        contrast = later.against(earlier, prior_counts)
        table = pandas.DataFrame({"word": topics.words[used], "since": periods[since], **contrast})
        tables.append(table)
        # in how many documents each word occurs on both sides; the side of the larger share counts
        spread = [_documents(side.counts, side.squares) for side in (later, earlier)]
        is_supported = np.where(table["z"] > 0, *spread) >= LEAST_COUNT
        sizes = [_documents(side.length, side.length_squares) for side in (later, earlier)]
        evidence.append(np.abs(table["z"]) * is_supported * (min(sizes) >= n_needed))
    best = np.argmax(evidence, axis=0)  # the clearest change of each word
    clearest = np.max(evidence, axis=0)
    # the row of each word in the table of its clearest change
    table = pandas.concat(tables).iloc[best * len(used) + np.arange(len(used), dtype=np.intp)]
    # the level is divided by the number of changes that were compared (Bonferroni)
    n_changes = max(np.any(evidence, axis=1).sum(), 1)
    width = stats.norm.isf(LEVEL / 2 / n_changes)
    table["low"] = table["log_odds"] - width * table["std_error"]
    table["high"] = table["log_odds"] + width * table["std_error"]
    order = np.argsort(-clearest, kind="stable")
    if n is not None:
        is_changed = (clearest > width) & (all_sums.counts >= LEAST_COUNT)
        order = order[is_changed[order]][:n]
    return table.iloc[order].rename(columns={"others": "before"}).reset_index(drop=True)


def _documents(counts: Any, squares: Any) -> Any:
    """Return the number of documents of equal counts that have these sums of counts and squares."""
    return counts**2 / np.maximum(squares, TINY)
