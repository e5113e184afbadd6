"""Shares of topics: in groups of documents, in periods of time, and how sure they are."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from datetime import datetime
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi.topics.vectorizer import of_each

#: Most periods that times may be cut into.
MOST_PERIODS = 100_000
_ALLOWED_TIMES = "datetimes, ISO 8601 strings such as '2020-01-31', or years such as 2020"
#: Numbers that are years.
_YEARS = (1000, 9999)


def certainty_of(shares: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute the share that each topic has, on average, in the documents of its words.

    .. math::
        \sum_d n_d \theta_{dk}^2 \Big/ \sum_d n_d \theta_{dk}
    """
    words = lengths @ shares
    squares = np.einsum("d,dk,dk->k", lengths, shares, shares)
    with np.errstate(invalid="ignore"):
        return squares / words


def by_group(
    shares: NDArray[np.float64],
    lengths: NDArray[np.float64],
    labels: list[str],
    groups: Any,
    pandas: Any,
) -> Any:
    """See :meth:`annealvi.topics.TopicSummary.by`."""
    name = getattr(groups, "name", None) or "group"
    dtype = groups.dtype if isinstance(groups, pandas.Series | pandas.Categorical) else None
    groups = of_each(groups, len(lengths), "groups")
    for document, group in enumerate(groups):
        if not pandas.api.types.is_hashable(group):
            raise TypeError(
                "'groups' must hold one group for each document, such as a str or a number. "
                f"Got {group!r} for document {document}."
            )
    keys = pandas.Series(groups, dtype=dtype, name=name)
    if keys.isna().all():
        raise ValueError("'groups' must name the group of a document at least once. Got only None.")
    sums = _words_of_topics(shares, lengths, labels, pandas).groupby(keys, observed=True).sum()
    return _means(sums)


def over_time(
    shares: NDArray[np.float64],
    lengths: NDArray[np.float64],
    labels: list[str],
    times: Any,
    freq: Any,
    pandas: Any,
) -> Any:
    """See :meth:`annealvi.topics.TopicSummary.over`."""
    index = _parsed(of_each(times, len(lengths), "times"), pandas)
    offset = _offset(freq, pandas)
    known = np.flatnonzero(index.notna())
    first, last = index[known].min(), index[known].max()
    try:
        forward = first + offset > first
    except (ValueError, OverflowError):
        raise ValueError(f"'freq' must be a shorter period. Got {freq!r}.") from None
    try:  # DateOffset(month=3) goes forward once: to March of the same year
        forward = forward and first + 2 * offset > first + offset
        too_many = first + MOST_PERIODS * offset < last
    except (ValueError, OverflowError):  # far beyond what pandas knows, so beyond the last
        too_many = False
    if not forward:
        raise ValueError(f"'freq' must be a period of positive length. Got {freq!r} instead.")
    if too_many:
        raise ValueError(
            f"'freq' must cut the times into at most {MOST_PERIODS} periods. Got {freq!r}, for "
            f"times from {first} to {last}."
        )
    frame = _words_of_topics(shares[known], lengths[known], labels, pandas)
    frame.index = index[known]
    frame = frame.sort_index(kind="stable")
    try:
        sums = frame.resample(offset).sum()
    except NotImplementedError:  # pandas has no name for this offset
        sums = _sums_of_periods(frame, offset, pandas)
    except ValueError as error:  # such as business hours, and times at night
        raise ValueError(f"'freq' cannot cut these times. Got {freq!r}: {error}.") from error
    sums.index.name = "period"
    return _means(sums)


def _sums_of_periods(frame: Any, offset: Any, pandas: Any) -> Any:
    """Sums over periods that follow one another, named by their beginnings."""
    origin, last = frame.index[0].normalize(), frame.index[-1]
    begin, beginnings = origin, []
    while begin <= last:
        beginnings.append(begin)
        try:  # from the origin: a month after 28 February would not be the end of March again
            begin = origin + len(beginnings) * offset
        except (ValueError, OverflowError):  # beyond what pandas knows, so beyond the last
            break
    index = pandas.DatetimeIndex(beginnings)
    periods = index.searchsorted(frame.index, side="right") - 1
    return frame.groupby(periods).sum().reindex(range(len(index)), fill_value=0).set_axis(index)


def _words_of_topics(shares: NDArray, lengths: NDArray, labels: list[str], pandas: Any) -> Any:
    """Numbers of words of each topic in each document, and of documents with words, first."""
    frame = pandas.DataFrame(shares * lengths[:, np.newaxis], columns=labels)
    frame.insert(0, "n_documents", (lengths > 0).astype(np.int64), allow_duplicates=True)
    return frame


def _means(sums: Any) -> Any:
    """Divide sums of words of topics by those of all topics; NaN where there are no words."""
    topics = sums.iloc[:, 1:]
    words = topics.sum(axis=1)
    means = topics.div(words.where(words > 0), axis=0)
    means.insert(0, "n_documents", sums.iloc[:, 0], allow_duplicates=True)
    return means


def _parsed(times: list, pandas: Any) -> Any:
    """A DatetimeIndex of times in UTC, of periods their start; NaT where one is missing."""
    values = pandas.Series([getattr(time, "start_time", time) for time in times], dtype=object)
    missing = values.isna().to_numpy()
    if missing.all():
        raise ValueError("'times' must hold the time of a document at least once. Got only None.")
    if all(isinstance(v, Real) for v in values[~missing]):
        values = values.map(_of_year, na_action="ignore")
    result = _read_times(values, pandas)
    wrong = np.flatnonzero(result.isna() & ~missing)
    if len(wrong):
        raise ValueError(
            f"'times' must hold {_ALLOWED_TIMES}; read others with pandas.to_datetime and its "
            f"format. Got {times[wrong[0]]!r} for document {wrong[0]}."
        )
    return result.tz_localize(None)


def _read_times(values: Any, pandas: Any) -> Any:
    try:
        return pandas.DatetimeIndex(pandas.to_datetime(values, format="ISO8601", utc=True))
    except (ValueError, TypeError, OverflowError):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it reads them one by one
            ways = [
                pandas.DatetimeIndex(
                    pandas.to_datetime(values, errors="coerce", utc=True, dayfirst=dayfirst)
                )
                for dayfirst in (False, True)
            ]
        _check_same(values, *ways)
        return ways[0]


def _check_same(values: Any, monthfirst: Any, dayfirst: Any) -> None:
    """Raise ValueError for 03/04/2020, which is a day of March or of April."""
    missing = values.isna().to_numpy()
    either = all((way.notna() | missing).all() for way in (monthfirst, dayfirst))
    open_ones = np.flatnonzero((monthfirst != dayfirst) & ~missing)
    if either and len(open_ones):
        first = open_ones[0]
        raise ValueError(
            "'times' must tell days from months, as ISO 8601 strings such as '2020-01-31' do; read "
            f"others with pandas.to_datetime and its format. Got {values[first]!r} for document "
            f"{first}, which may be {monthfirst[first]:%Y-%m-%d} or {dayfirst[first]:%Y-%m-%d}."
        )


def _of_year(number: Any) -> Any:
    """The first day of a year; other numbers stay."""
    is_year = not isinstance(number, bool) and number == number // 1
    if not (is_year and _YEARS[0] <= number <= _YEARS[1]):
        raise ValueError(f"'times' must hold {_ALLOWED_TIMES}. Got the number {number!r}.")
    return datetime(int(number), 1, 1)


#: Old names of periods, and those since pandas 2.2.
RENAMED = {"Y": "YE", "Q": "QE", "M": "ME", "SM": "SME", "AS": "YS", "BM": "BME"}


def _offset(freq: Any, pandas: Any) -> Any:
    """The offset of an alias, by its name since pandas 2.2 or before."""
    alias = freq
    if isinstance(freq, str) and (match := re.fullmatch(r"(-?\d*)([A-Z]+)(-.*)?", freq)):
        number, name, rest = match.groups("")
        alias = f"{number}{RENAMED.get(name, name)}{rest}"
    with suppress(ValueError, TypeError):
        offset = pandas.tseries.frequencies.to_offset(alias)
        if offset is not None:
            return offset
    raise ValueError(
        "'freq' must be a period by a name of pandas, such as 'YE', 'QE', 'ME', 'W' or 'D', or one "
        f"of its offsets. Got {freq!r} instead."
    )
