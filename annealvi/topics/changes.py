"""Words whose share of a topic changes over time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter
from annealvi.topics.contrasts import _TINY, LEAST_COUNT, _Sums, expected_counts
from annealvi.topics.described import Described
from annealvi.topics.periods import periods_of
from annealvi.topics.shares import in_order
from annealvi.topics.times import read_times
from annealvi.topics.vectorizer import of_each

#: The probability that the interval of a word excludes 0 although its share does not change.
_LEVEL = 0.05
#: A change is considered if the documents before and after it have at least as many words of the
#: topic as this number of documents of equal lengths; the variances of fewer are uncertain.
_LEAST_DOCUMENTS = 50.0


def words_over_time(
    summary: Described, topic: int | str, times: ArrayLike, freq: Any, n: int | None, prior: float
) -> Any:
    """Find words whose share of a topic changes; see `TopicSummary.words_over_time`."""
    pandas = import_optional("pandas", "TopicSummary.words_over_time")
    k = summary.labels.number(topic)
    listed = of_each(in_order(times, summary.index, "times"), len(summary.lengths), "times")
    period_numbers, periods = periods_of(read_times(listed, pandas), freq, pandas)
    X = expected_counts(summary, k)
    rows = [np.flatnonzero(period_numbers == number) for number in range(len(periods))]
    known = [number for number, documents in enumerate(rows) if len(documents)]
    if len(known) < 2:
        raise BadParameter("times", "times in at least two periods", "times in one period")
    everything = _Sums.of(X[np.concatenate(rows)])
    of_words = np.flatnonzero(everything.counts)
    prior_counts = (prior * everything.counts / max(everything.length, _TINY))[of_words]
    n_documents = _documents(everything.length, everything.length_squares)
    columns: dict[str, Any] = {}
    evidence = np.full(len(of_words), -1.0)
    later = everything
    n_changes = 0
    for earlier_number, number in pairwise(known):
        later = later.without(_Sums.of(X[rows[earlier_number]]))
        earlier = everything.without(later)
        after, variance_after = later.log_odds(of_words, prior_counts)
        before, variance_before = earlier.log_odds(of_words, prior_counts)
        std_error = np.sqrt(variance_after + variance_before)
        change = {
            "since": np.full(len(of_words), number),
            "log_odds": after - before,
            "std_error": std_error,
            "z": (after - before) / std_error,
            "count": later.counts[of_words],
            "share": later.counts[of_words] / max(later.length, _TINY),
            "before": earlier.counts[of_words] / max(earlier.length, _TINY),
        }
        both = (later, earlier)
        least = min(_documents(side.length, side.length_squares) for side in both)
        enough = least >= min(_LEAST_DOCUMENTS, n_documents / 4)
        n_changes += enough
        spread = [_documents(side.counts, side.squares)[of_words] for side in both]
        supported = np.where(after > before, *spread) >= LEAST_COUNT
        z = np.abs(change["z"]) * (supported & enough)
        better = z > evidence
        evidence[better] = z[better]
        for name, values in change.items():
            columns[name] = np.where(better, values, columns.get(name, values))
    width = stats.norm.isf(_LEVEL / (2 * max(n_changes, 1)))
    table = pandas.DataFrame({"word": summary.feature_names[of_words], **columns})
    table["since"] = periods[table["since"]]
    table.insert(5, "low", table["log_odds"] - width * table["std_error"])
    table.insert(6, "high", table["log_odds"] + width * table["std_error"])
    order = np.argsort(-evidence, kind="stable")
    if n is not None:
        changed = (evidence > width) & (everything.counts[of_words] >= LEAST_COUNT)
        order = order[changed[order]][:n]
    return table.iloc[order].reset_index(drop=True)


def _documents(counts: Any, squares: Any) -> Any:
    """Return the number of documents of equal counts that have these sums."""
    return counts**2 / np.maximum(squares, _TINY)
