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
    X = expected_counts(summary.counts, summary.shares, summary.topics, k)
    period_numbers, periods = periods_of(summary, times, freq, pandas)
    numbers = np.unique(period_numbers[period_numbers >= 0])
    if len(numbers) < 2:
        raise BadParameter("times", "times in at least two periods", "times in one period")
    everything = _Sums.of(X[period_numbers >= 0])
    words = np.flatnonzero(everything.counts)
    prior_counts = (prior * everything.counts / max(everything.length, _TINY))[words]
    least = min(_LEAST_DOCUMENTS, _documents(everything.length, everything.length_squares) / 4)
    changes = []
    evidence = []
    later = everything
    for number, since in pairwise(numbers):
        later = later.without(_Sums.of(X[period_numbers == number]))
        earlier = everything.without(later)
        change = later.against(earlier, words, prior_counts)
        changes.append(pandas.DataFrame({"since": periods[since], **change}))
        spread = [_documents(side.counts, side.squares)[words] for side in (later, earlier)]
        supported = np.where(change["z"] > 0, *spread) >= LEAST_COUNT
        sizes = [_documents(side.length, side.length_squares) for side in (later, earlier)]
        evidence.append(np.abs(change["z"]) * supported * (min(sizes) >= least))
    best = np.argmax(evidence, axis=0)
    table = pandas.concat(changes).iloc[best * len(words) + np.arange(len(words))]
    table.insert(0, "word", summary.feature_names[words])
    n_changes = np.any(evidence, axis=1).sum()
    width = stats.norm.isf(_LEVEL / (2 * max(n_changes, 1)))
    table["low"] = table["log_odds"] - width * table["std_error"]
    table["high"] = table["log_odds"] + width * table["std_error"]
    largest = np.max(evidence, axis=0)
    order = np.argsort(-largest, kind="stable")
    if n is not None:
        changed = (largest > width) & (everything.counts[words] >= LEAST_COUNT)
        order = order[changed[order]][:n]
    return table.iloc[order].reset_index(drop=True)


def _documents(counts: Any, squares: Any) -> Any:
    """Return the number of documents of equal counts that have these sums."""
    return counts**2 / np.maximum(squares, _TINY)
