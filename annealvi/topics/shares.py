"""Shares of topics in groups of documents and in periods of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter
from annealvi.topics.described import DescribedDocuments
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


def certainty_of(shares: NDArray, lengths: NDArray) -> NDArray:
    r"""Compute each topic's mean share in documents, weighted by its words in each document.

    .. math::
        \sum_d n_d \theta_{dk}^2 \Big/ \sum_d n_d \theta_{dk}
    """
    words = np.einsum("d,dk->k", lengths, shares)
    squares = np.einsum("d,dk,dk->k", lengths, shares, shares)
    with np.errstate(invalid="ignore"):  # 0 / 0 of a topic without words
        return squares / words


def in_order(values: Any, index: Any, name: str) -> Any:
    """Return values in the order of the documents; a Series is matched by the index.

    `index` is the pandas index of the documents, or None; `name` is for messages.
    """
    # lists and arrays have no index
    if index is None or not hasattr(values, "iloc") or values.index.equals(index):
        return values
    are_unique = values.index.is_unique and index.is_unique
    are_alike = are_unique and values.index.nlevels == index.nlevels
    if len(values) != len(index) or not are_alike or not values.index.isin(index).all():
        raise BadParameter(
            name,
            "a Series with the index of the documents",
            values.index,
            "If the values are in the order of the documents, pass them as a list.",
        )
    return values.reindex(index)


def cluster_numbers(clusters: Any, n: int, used: NDArray) -> NDArray[np.intp]:
    """Return the numbers of the clusters of the documents in `used`; n documents in all."""
    pandas = import_optional("pandas", "clusters")
    listed = of_each(clusters, n, "clusters")
    try:
        numbers = pandas.factorize(pandas.Series(listed, dtype=object))[0][used]
    except TypeError:
        raise BadParameter("clusters", "names or numbers of clusters", clusters) from None
    for document in used[numbers < 0]:
        raise BadParameter(f"clusters[{document}]", "the name or number of a cluster", None)
    return numbers


def read_groups(documents: DescribedDocuments, groups: Any, pandas: Any) -> Any:
    """Check the groups of documents, and return them as a Series in the order of documents."""
    groups = in_order(groups, documents.index, "groups")
    name = getattr(groups, "name", None) or "group"
    # a categorical dtype keeps the order of the groups
    dtype = groups.dtype if isinstance(groups, pandas.Series | pandas.Categorical) else None
    listed = of_each(groups, len(documents.lengths), "groups")
    for document, group in enumerate(listed):
        if not pandas.api.types.is_hashable(group):
            raise BadParameter(f"groups[{document}]", "a group, such as a str or a number", group)
    keys = pandas.Series(listed, dtype=dtype, name=name)
    if keys.isna().all():
        raise BadParameter("groups", "a sequence with at least one group that is not missing", None)
    unique = keys.dropna().unique()
    try:
        sorted(unique)
    except TypeError:  # the groups have different types, or no order
        unique = sorted(unique, key=lambda group: (type(group).__name__, str(group)))
        keys = keys.astype(
            pandas.CategoricalDtype(pandas.Index(unique, dtype=object, tupleize_cols=False))
        )
    return keys


def by_group(
    documents: DescribedDocuments,
    labels: Sequence[str],
    groups: ArrayLike,
    *,
    value: str = "share",
) -> Any:
    """Compute the share of each topic in each group; see `TopicSummary.by_group`."""
    pandas = import_optional("pandas", "TopicSummary.by_group")
    keys = read_groups(documents, groups, pandas)

    def sums(frame: Any) -> Any:
        """Sum the rows of the documents of each group."""
        return frame.groupby(keys, observed=True).sum()

    return _shares(documents, labels, sums, value)


def over_time(
    documents: DescribedDocuments,
    labels: Sequence[str],
    times: ArrayLike,
    freq: Any = "year",
    *,
    value: str = "share",
) -> Any:
    """Compute the share of each topic in each period; see `TopicSummary.over_time`."""
    times = in_order(times, documents.index, "times")
    sums = sums_of_periods(of_each(times, len(documents.lengths), "times"), freq)
    return _shares(documents, labels, sums, value)


def sums_of_periods(times: Any, freq: Any) -> Callable[[Any], Any]:
    """Check times and the length of periods; return a function that sums the rows of periods."""
    pandas = import_optional("pandas", "TopicSummary.over_time")
    index = read_times(times, pandas)
    offset = None  # if pandas cannot read `freq`
    with suppress(ValueError, TypeError):
        words = _IN_WORDS.fullmatch(freq) if isinstance(freq, str) else None
        # such as "5YE" for "5 years"; other texts and objects are passed to pandas unchanged
        pandas_freq = (words[1] or "") + _CODES[words[2].lower()] if words else freq
        offset = pandas.tseries.frequencies.to_offset(pandas_freq)
    if offset is None:
        raise BadParameter("freq", _PERIODS, freq)
    known_times = index.dropna()
    first_time = known_times.min()
    last_time = known_times.max()
    # the starts of later periods: adding DateOffset(month=3) a second time has no effect
    second, third, end = (_later(first_time, n, offset, pandas) for n in (1, 2, MOST_PERIODS))
    if not first_time < second < third or end < last_time:
        raise BadParameter(
            "freq",
            f"a positive length of time, with at most {MOST_PERIODS} periods from {first_time} to "
            f"{last_time}",
            freq,
        )

    def sums(frame: Any) -> Any:
        """Sum the rows of the documents of each period; documents without a time are left out."""
        frame = frame.set_axis(index)[index.notna()].sort_index(kind="stable")
        try:
            totals = frame.resample(offset).sum()
        except NotImplementedError:  # pandas has no name for this offset
            totals = _sums_from_beginnings(frame, offset, pandas)
        except ValueError as error:  # for example business hours, with times at night
            raise BadParameter(
                "freq", "a period into which these times can be divided", freq, f"{error}."
            ) from error
        return totals.rename_axis("period")

    return sums


def read_periods(
    documents: DescribedDocuments, times: ArrayLike, freq: Any
) -> tuple[NDArray[np.intp], Any]:
    """Return the number of each document's period, or -1 without a time, and their beginnings."""
    pandas = import_optional("pandas", "TopicSummary.words_over_time")
    listed = of_each(in_order(times, documents.index, "times"), len(documents.lengths), "times")
    # of each period, by summing a 1 for each document
    n_documents = sums_of_periods(listed, freq)(pandas.DataFrame({"n": [1] * len(listed)}))["n"]
    index = read_times(listed, pandas)
    known = index.argsort()[: n_documents.sum()]  # in order of time, where missing times are last
    numbers = np.full(len(listed), -1)
    numbers[known] = np.repeat(np.arange(len(n_documents), dtype=np.intp), n_documents)
    labels = n_documents.index
    if (labels[numbers[known]] > index[known]).any():  # these periods are named by their last day
        labels = labels[:1].append(labels[:-1] + pandas.Timedelta(days=1))
    return numbers, labels


def check_times(times: Any, freq: Any) -> None:
    """Raise the error that `over_time` would raise because of times or periods."""
    pandas = import_optional("pandas", "TopicSummary.over_time")
    # the sums themselves are not used
    sums_of_periods(times, freq)(pandas.DataFrame({"n_documents": np.ones(len(times))}))


def _later(time: Any, n: int, offset: Any, pandas: Any) -> Any:
    """Return the time n offsets later, or the last time that pandas can represent."""
    try:
        return time + n * offset
    except (ValueError, OverflowError):
        return pandas.Timestamp.max


def _sums_from_beginnings(frame: Any, offset: Any, pandas: Any) -> Any:
    """Compute sums over consecutive periods, whose index is their beginnings.

    The index of the frame contains times in increasing order.
    """
    origin = frame.index[0].normalize()  # midnight
    begin = origin
    beginnings = []
    while begin <= frame.index[-1] and begin < pandas.Timestamp.max:
        beginnings.append(begin)
        # counted from the origin: otherwise months after 28 February would end on day 28
        begin = _later(origin, len(beginnings), offset, pandas)
    index = pandas.DatetimeIndex(beginnings)
    periods = index.searchsorted(frame.index, side="right") - 1  # the period of each row
    # periods without documents have the sum 0
    return frame.groupby(periods).sum().reindex(range(len(index)), fill_value=0).set_axis(index)


def _shares(
    documents: DescribedDocuments,
    labels: Sequence[str],
    sums: Callable[[Any], Any],
    value: str,
) -> Any:
    """Compute shares of topics in groups, or their errors; `sums` adds up rows of each group.

    The formula of the errors is in `TopicSummary.by_group`.
    """
    pandas = import_optional("pandas", "Shares of groups")
    refits = documents.refits
    if value not in ("share", "std_error", "refits"):
        raise BadParameter("value", "'share', 'std_error' or 'refits'", value)
    if value == "refits" and refits is None:
        raise BadParameter("value", "'share' or 'std_error' without refits", value)
    n = documents.lengths[:, None]
    shares = documents.shares

    def summed(values: NDArray) -> NDArray:
        """Sum an array with a row for each document over the documents of each group."""
        return sums(pandas.DataFrame(values)).to_numpy(float)

    def framed(values: NDArray) -> Any:
        """Make the table, from values of shape (n_groups, K)."""
        frame = pandas.DataFrame(values, counts.index, labels)
        # a label may also be "n_documents"
        frame.insert(0, "n_documents", counts["n_documents"], allow_duplicates=True)
        return frame

    counts = sums(pandas.DataFrame({"n_documents": documents.lengths > 0}))
    words = summed(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = summed(n * shares) / words  # NaN where there are no words
        means /= means.sum(axis=1, keepdims=True)  # without rounding errors
        if value == "share":
            return framed(means)
        # sum of n^2 (theta - mean)^2 in each group, multiplied out; not below 0 by rounding errors
        spread = summed((n * shares) ** 2) - 2 * means * summed(n**2 * shares)
        spread = np.maximum(spread + means**2 * summed(n**2), 0.0)
        m = counts["n_documents"].to_numpy(float)[:, None]
        # the variance of a share under the Dirichlet posterior of a document
        noise = shares * (1 - shares) / (documents.concentration[:, None] + 1)
        # a single document has no spread
        factor = np.where(m > 1, m / (m - 1), np.nan)
        variance = (factor * spread + 2 * summed(n**2 * noise)) / words**2
        if refits is not None:
            means_of_refits = np.array([summed(n * shares) / words for shares in refits.shares])
            is_match = np.broadcast_to(refits.compared[:, None], means_of_refits.shape)
            between = variance_of(means_of_refits, is_match)
            if value == "refits":
                return framed(np.sqrt(between))
            variance += between
    return framed(np.sqrt(variance))


def variance_of(estimates: NDArray, is_valid: NDArray) -> NDArray:
    """Compute the variance of each number alone, as in `covariance_of`, from n estimates of all.

    Both arrays have the shape (n, ...).
    """
    n = len(estimates)
    variances = covariance_of(estimates.reshape(n, -1, 1), is_valid.reshape(n, -1))
    return variances.reshape(estimates.shape[1:])


def covariance_of(estimates: NDArray, is_valid: NDArray) -> NDArray:
    """Compute the covariance matrix of P numbers for each of K topics, from n estimates of them.

    An estimate is ignored where `is_valid`, of shape (n, K), is False.  If m estimates of a topic
    are left, their covariance is multiplied by 1 + 1 / m (Rubin's rules), or is NaN if m < 2.
    """
    m = is_valid.sum(axis=0)  # of each topic
    used = is_valid[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):  # if m < 2
        means = np.where(used, estimates, 0.0).sum(axis=0) / m[:, None]
        deviations = np.where(used, estimates - means, 0.0)
        sums = np.einsum("mkp,mkq->kpq", deviations, deviations)
        factor = np.where(m > 1, (1 + 1 / m) / (m - 1), np.nan)
    return sums * factor[:, None, None]
