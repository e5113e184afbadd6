"""Periods of time, such as years, into which the times of documents are divided."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi.exceptions import BadParameter
from annealvi.topics.described import Described
from annealvi.topics.shares import in_order
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


def periods_of(
    summary: Described, times: ArrayLike, freq: Any, pandas: Any
) -> tuple[NDArray[np.intp], Any]:
    """Return the number of each document's period, -1 without a time, and the periods."""
    listed = of_each(in_order(times, summary.index, "times"), len(summary.lengths), "times")
    index = read_times(listed, pandas)
    offset = None
    with suppress(ValueError, TypeError):
        words = _IN_WORDS.fullmatch(freq) if isinstance(freq, str) else None
        code = (words[1] or "") + _CODES[words[2].lower()] if words else freq
        offset = pandas.tseries.frequencies.to_offset(code)
    if offset is None:
        raise BadParameter("freq", _PERIODS, freq)
    known = np.flatnonzero(index.notna())
    known_times = index[known]
    first = known_times.min()
    last = known_times.max()
    # adding DateOffset(month=3) repeatedly has no effect after the first time
    one, two, end = (_later(first, n, offset, pandas) for n in (1, 2, MOST_PERIODS))
    if not first < one < two or end < last:
        raise BadParameter(
            "freq",
            f"a positive length of time, with at most {MOST_PERIODS} periods from {first} to "
            f"{last}",
            freq,
        )
    numbers = np.full(len(index), -1)
    grouper = pandas.Series(0, known_times).groupby(pandas.Grouper(freq=offset))
    try:
        numbers[known] = grouper.ngroup()
        return numbers, grouper.size().index
    except NotImplementedError:  # pandas has no name for this offset
        periods = _beginnings(first.normalize(), last, offset, pandas)
        numbers[known] = periods.searchsorted(known_times, side="right") - 1
        return numbers, periods
    except ValueError as error:  # for example business hours, with times at night
        raise BadParameter(
            "freq", "a period into which these times can be divided", freq, f"{error}."
        ) from error


def _later(time: Any, n: int, offset: Any, pandas: Any) -> Any:
    """Return the time n offsets later, or the last time that pandas can represent."""
    try:
        return time + n * offset
    except (ValueError, OverflowError):
        return pandas.Timestamp.max


def _beginnings(origin: Any, last: Any, offset: Any, pandas: Any) -> Any:
    """Return the beginnings of consecutive periods from `origin` until they include `last`."""
    beginnings = []
    begin = origin
    while begin <= last and begin < pandas.Timestamp.max:
        beginnings.append(begin)
        # counted from the origin: otherwise months after 28 February would end on day 28
        begin = _later(origin, len(beginnings), offset, pandas)
    return pandas.DatetimeIndex(beginnings)
