"""Shares of topics in groups of documents and in periods of time."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._optional import import_optional
from annealvi.checks import check_flag
from annealvi.exceptions import BadParameter
from annealvi.topics.described import Described
from annealvi.topics.times import read_times
from annealvi.topics.vectorizer import of_each

#: Maximum number of periods.
MOST_PERIODS = 100_000
_PERIODS = (
    "a period such as 'year', '5 years', 'quarter', 'month', 'week' or 'day', a pandas name such "
    "as 'YE', or a pandas offset"
)
#: Periods in words, and their names in pandas.
_IN_WORDS = re.compile(r"(?:(\d+) +)?(year|quarter|month|week|day)s?", re.IGNORECASE)
_CODES = {"year": "YE", "quarter": "QE", "month": "ME", "week": "W", "day": "D"}


def certainty_of(shares: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute each topic's mean share in documents, weighted by its words in each document.

    .. math::
        \sum_d n_d \theta_{dk}^2 \Big/ \sum_d n_d \theta_{dk}
    """
    words = np.einsum("d,dk->k", lengths, shares)
    squares = np.einsum("d,dk,dk->k", lengths, shares, shares)
    with np.errstate(invalid="ignore"):
        return squares / words


def in_order(values: Any, index: Any, name: str) -> Any:
    """Return values in the order of the documents; a Series is matched by the index."""
    if index is None or not hasattr(values, "iloc") or values.index.equals(index):
        return values
    unique = values.index.is_unique and index.is_unique
    if len(values) != len(index) or not unique or not values.index.isin(index).all():
        wanted = "a Series with the index of the documents"
        hint = "If the values are in the order of the documents, pass them as a list."
        raise BadParameter(name, wanted, values.index, hint)
    return values.reindex(index)


def read_groups(summary: Described, groups: Any, pandas: Any) -> Any:
    """Check the groups of documents, and return them as a Series in the order of documents."""
    groups = in_order(groups, summary.index, "groups")
    name = getattr(groups, "name", None) or "group"
    dtype = groups.dtype if isinstance(groups, pandas.Series | pandas.Categorical) else None
    listed = of_each(groups, len(summary.lengths), "groups")
    for document, group in enumerate(listed):
        if not pandas.api.types.is_hashable(group):
            raise BadParameter(f"groups[{document}]", "a group, such as a str or a number", group)
    keys = pandas.Series(listed, dtype=dtype, name=name)
    if keys.isna().all():
        raise BadParameter("groups", "a sequence with at least one group that is not missing", None)
    return keys


def by_group(summary: Described, groups: ArrayLike, *, return_std: bool = False) -> Any:
    """Compute the share of each topic in each group; see `TopicSummary.by_group`."""
    pandas = import_optional("pandas", "TopicSummary.by_group")
    keys = read_groups(summary, groups, pandas)
    return _shares(summary, lambda frame: frame.groupby(keys, observed=True).sum(), return_std)


def over_time(
    summary: Described, times: ArrayLike, freq: Any = "year", *, return_std: bool = False
) -> Any:
    """Compute the share of each topic in each period; see `TopicSummary.over_time`."""
    pandas = import_optional("pandas", "TopicSummary.over_time")
    times = in_order(times, summary.index, "times")
    index = read_times(of_each(times, len(summary.lengths), "times"), pandas)
    offset = None
    with suppress(ValueError, TypeError):
        words = _IN_WORDS.fullmatch(freq) if isinstance(freq, str) else None
        code = (words[1] or "") + _CODES[words[2].lower()] if words else freq
        offset = pandas.tseries.frequencies.to_offset(code)
    if offset is None:
        raise BadParameter("freq", _PERIODS, freq)
    known = index[index.notna()].sort_values()
    first, last = known[0], known[-1]
    # adding DateOffset(month=3) repeatedly has no effect after the first time
    one, two, end = (_later(first, n, offset, pandas) for n in (1, 2, MOST_PERIODS))
    if not first < one < two or end < last:
        wanted = (
            f"a positive length of time, with at most {MOST_PERIODS} periods from {first} to {last}"
        )
        raise BadParameter("freq", wanted, freq)

    def sums(frame: Any) -> Any:
        frame = frame.set_axis(index)[index.notna()].sort_index(kind="stable")
        try:
            found = frame.resample(offset).sum()
        except NotImplementedError:  # pandas has no name for this offset
            found = _sums_of_periods(frame, offset, pandas)
        except ValueError as error:  # for example business hours, with times at night
            wanted = "a period into which these times can be divided"
            raise BadParameter("freq", wanted, freq, f"{error}.") from error
        found.index.name = "period"
        return found

    return _shares(summary, sums, return_std)


def _later(time: Any, n: int, offset: Any, pandas: Any) -> Any:
    """Return the time n offsets later, or the last time that pandas can represent."""
    try:
        return time + n * offset
    except (ValueError, OverflowError):
        return pandas.Timestamp.max


def _sums_of_periods(frame: Any, offset: Any, pandas: Any) -> Any:
    """Compute sums over consecutive periods, whose index is their beginnings."""
    origin, beginnings = frame.index[0].normalize(), []
    begin = origin
    while begin <= frame.index[-1] and begin < pandas.Timestamp.max:
        beginnings.append(begin)
        # counted from the origin: otherwise months after 28 February would end on day 28
        begin = _later(origin, len(beginnings), offset, pandas)
    index = pandas.DatetimeIndex(beginnings)
    periods = index.searchsorted(frame.index, side="right") - 1
    return frame.groupby(periods).sum().reindex(range(len(index)), fill_value=0).set_axis(index)


def _shares(summary: Described, sums: Callable[[Any], Any], return_std: bool) -> Any:
    """Compute shares of topics in groups and their errors; `sums` adds up rows of each group."""
    pandas = import_optional("pandas", "Shares of groups")
    check_flag(return_std, "return_std")
    n, shares = summary.lengths[:, np.newaxis], summary.shares
    labels = list(summary.labels)

    def summed(values: NDArray) -> NDArray:
        return np.asarray(sums(pandas.DataFrame(values)).to_numpy(np.float64))

    def framed(values: NDArray) -> Any:
        found = pandas.DataFrame(values, table.index, labels)
        found.insert(0, "n_documents", table["n_documents"], allow_duplicates=True)
        return found

    table = sums(pandas.DataFrame({"n_documents": (summary.lengths > 0).astype(np.int64)}))
    words = summed(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = summed(n * shares) / words  # NaN where there are no words
        means /= means.sum(axis=1, keepdims=True)
        if not return_std:
            return framed(means)
        spread = summed((n * shares) ** 2) - 2 * means * summed(n**2 * shares)
        spread = np.maximum(spread + means**2 * summed(n**2), 0.0)
        m = table["n_documents"].to_numpy(np.float64)[:, np.newaxis]
        noise = shares * (1 - shares) / (summary.concentration[:, np.newaxis] + 1)
        variance = (m / (m - 1) * spread + 2 * summed(n**2 * noise)) / words**2
        variance[(m < 2)[:, 0]] = np.nan
        if summary.refits is not None:
            of_refits = np.array([summed(n * own) / words for own in summary.refits.shares])
            # each group is treated alone: covariances between groups are not needed
            found = np.broadcast_to(summary.refits.found[:, np.newaxis], of_refits.shape)
            flat = (len(found), -1)
            between = covariance_of(of_refits.reshape(*flat, 1), found.reshape(flat))
            variance += between.reshape(variance.shape)
    return framed(means), framed(np.sqrt(variance))


def covariance_of(estimates: NDArray[np.float64], found: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Compute the covariance matrix of P numbers for each of K topics, from n estimates of them.

    An estimate is ignored where `found`, of shape (n, K), is False.  If m estimates of a topic are
    left, their covariance is multiplied by 1 + 1 / m (Rubin's rules), or is NaN if m < 2.
    """
    m = found.sum(axis=0).astype(np.float64)
    there = found[:, :, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(there, estimates, 0.0).sum(axis=0) / m[:, np.newaxis]
        deviations = np.where(there, estimates - means, 0.0)
        sums = np.einsum("mkp,mkq->kpq", deviations, deviations)
        factor = np.where(m > 1, (1 + 1 / m) / (m - 1), np.nan)
    return sums * factor[:, np.newaxis, np.newaxis]
