"""Shares of topics in groups and periods, against sums by hand."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi.topics import describe, shares
from tests.asserts import refusals
from tests.marks import cases
from tests.topics.models import Given

SHARES = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.4, 0.6], [0.5, 0.5]])
LENGTHS = np.array([10.0, 30, 20, 5, 0])
LABELS = ["space", "goal"]
FIRST_TWO = (10 * SHARES[0] + 30 * SHARES[1]) / 40


def described(index=None):
    """A summary of documents of these lengths and shares."""
    counts = pd.DataFrame(LENGTHS[:, np.newaxis] / [2, 2], index)
    model = Given(np.array([[3.0, 1], [1, 3]]), SHARES)
    summary = describe(model, counts.to_numpy() if index is None else counts)
    summary.labels = LABELS
    return summary


SUMMARY = described()


def by(groups):
    return SUMMARY.by_group(groups)


def over(times, freq="YE"):
    return SUMMARY.over_time(times, freq)


def test_certainty_is_the_mean_share_where_the_words_are():
    found = shares.certainty_of(SHARES, LENGTHS)
    assert_allclose(found, [(LENGTHS * t**2).sum() / (LENGTHS * t).sum() for t in SHARES.T])
    assert_allclose(shares.certainty_of(np.eye(2), np.array([1.0, 7])), 1)
    assert np.isnan(shares.certainty_of(np.array([[1.0, 0]]), np.array([2.0]))[1])


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, tuple])
def test_groups(kind):
    frame = by(kind(["b", "b", "a", "c", "c"]))
    assert frame.index.tolist() == ["a", "b", "c"] and frame.index.name == "group"
    assert frame.columns.tolist() == ["n_documents", *LABELS]
    assert frame.n_documents.tolist() == [1, 2, 1]  # the fifth has no words
    assert_allclose(frame.loc["b", LABELS].astype(float), FIRST_TWO)
    assert_allclose(frame[LABELS].sum(axis=1), 1)


def test_groups_without_a_name_or_words_and_of_several_types():
    frame = by([1, None, "x", "x", "none"])
    assert set(frame.index) == {1, "x", "none"} and frame.n_documents[1] == 1
    assert frame.n_documents["none"] == 0 and frame.loc["none", LABELS].isna().all()


def test_without_an_index_of_documents_values_are_in_their_order():
    index = [4, 3, 2, 1, 0]
    groups = pd.Series(["b", "b", "a", "c", "c"], index=index)
    pd.testing.assert_frame_equal(by(groups), by(groups.tolist()))
    times = pd.Series(pd.to_datetime(["2001", "2001", "2002", "2003", "2003"]), index=index)
    pd.testing.assert_frame_equal(over(times), over(times.tolist()))


def test_a_series_is_read_by_the_index_of_the_documents():
    index = pd.Index([7, 3, 9, 1, 5])
    summary = described(index)
    groups = pd.Series(["b", "b", "a", "c", "c"], index, name="class")
    times = pd.Series([2001, 2001, 2002, 2003, 2003], index)
    for shuffled in ([3, 1, 4, 0, 2], [0, 1, 2, 3, 4]):
        by_group = summary.by_group(groups.iloc[shuffled])
        over_time = summary.over_time(times.iloc[shuffled], "YE")
        pd.testing.assert_frame_equal(by_group, by(groups.array).rename_axis("class"))
        pd.testing.assert_frame_equal(over_time, over(times.tolist()))
    pd.testing.assert_frame_equal(summary.by_group(groups.tolist()), by(groups.tolist()))
    for other in (range(5), [7, 3, 9, 1, 1], pd.MultiIndex.from_product([[7], range(5)])):
        with pytest.raises(ValueError, match=r"'groups' .* a Series with the index of the doc"):
            summary.by_group(groups.set_axis(other))


def test_groups_keep_the_order_of_their_categories_and_their_name():
    groups = pd.Series(list("aabbb"), name="class", dtype=pd.CategoricalDtype(["b", "z", "a"]))
    assert by(groups).index.tolist() == ["b", "a"] and by(groups).index.name == "class"


@cases(
    "times",
    [2001, 2001.0, 2003, None, 2003],
    ["2001-05-06", "2001", "2003-01-01T12:00:00Z", None, "2003-12-31"],
    [date(2001, 1, 1), datetime(2001, 12, 31, 23), date(2003, 1, 1), None, date(2003, 1, 1)],
    np.array(["2001-05-06", "2001-07-01", "2003-01-01", "NaT", "2003-12-31"], "M8[D]"),
    pd.to_datetime(pd.Series(["2001-05-06", "2001-07-01", "2003-01-01", None, "2003-12-31"])),
    pd.PeriodIndex(["2001", "2001", "2003", None, "2003"], freq="Y"),
)
def test_times_of_all_kinds(times):
    frame = over(times)
    assert frame.index.year.tolist() == [2001, 2002, 2003] and frame.index.name == "period"
    assert_allclose(frame[LABELS].iloc[0], FIRST_TWO)
    assert over(["2001-12-31T23:30:00-02:00"] * 5).index.year.tolist() == [2002]  # in UTC
    assert frame.n_documents.iloc[1] == 0 and frame[LABELS].iloc[1].isna().all()
    assert frame.n_documents.sum() == 3 + (times[3] is not None and not pd.isna(times[3]))


@cases(
    "freq, n",
    *(("ME", 3), ("month", 3), ("QE", 2), ("quarters", 2)),
    *(("YE", 1), ("2YE", 1), ("2 years", 1), ("W", 9), ("Week", 9)),
)
def test_periods(freq, n):
    frame = over(["2001-02-01", "2001-02-28", "2001-03-05", "2001-04-01", "2001-04-01"], freq)
    assert len(frame) == n and frame.n_documents.sum() == 4


ENDS = ["2001-08-31", "2001-09-30", "2001-10-31", "2001-11-30", "2001-12-31", "2002-01-31"]
MONTHS = ["2001-08-31", "2001-09-29", "2001-10-01", "2002-01-31T23:00", "2002-01-31"]


@cases(
    "offset, beginnings, n_documents",
    (pd.DateOffset(months=1), ENDS, [2, 1, 0, 0, 0, 1]),
    (pd.DateOffset(months=30), ["2001-08-31"], [4]),
    (2 * pd.DateOffset(months=1, days=1), ["2001-08-31", "2001-11-02", "2002-01-04"], [3, 0, 1]),
    (pd.DateOffset(n=60, hours=24), ["2001-08-31", "2001-10-30", "2001-12-29"], [3, 0, 1]),
)
def test_offsets_that_pandas_has_no_name_for(offset, beginnings, n_documents):
    if pd.Timestamp("2001-08-31") + 2 * pd.DateOffset(months=1) != pd.Timestamp("2001-10-31"):
        beginnings = [day.replace("10-31", "10-30").replace("12-31", "12-30") for day in beginnings]
        beginnings = [day.replace("01-31", "01-30") for day in beginnings]  # months one by one
    frame = over(MONTHS, offset)
    assert frame.index.tolist() == [pd.Timestamp(begin) for begin in beginnings]
    assert frame.index.name == "period" and frame.n_documents.tolist() == n_documents
    assert_allclose(frame[LABELS].iloc[0] if len(frame) == 6 else FIRST_TWO, FIRST_TWO)
    assert_array_equal(frame[LABELS].isna().all(axis=1), frame.n_documents == 0)


@cases(
    "freq",
    *(pd.Timedelta("90D"), pd.offsets.YearEnd(2), pd.offsets.BusinessDay()),
    *(pd.offsets.Easter(), "SME-20", "WOM-2TUE", "B", "D", "5YS-MAR", "C"),
)
def test_every_other_offset_of_pandas(freq):
    assert over(MONTHS, freq).n_documents.sum() == 4


YEAR, UNCLEAR = ["2001"] * 5, ["01/03/2001", None, "01/04/2001", None, "01/05/2001"]


test_times_that_cannot_be = refusals(
    over,
    (YEAR[1:], "YE", r"'times' .* one entry for each of the 5 documents. Got '4 entries"),
    ([*YEAR[1:], "later"], "YE", r"'times\[4\]' .* Got 'later'"),
    (["x"] * 5, "YE", r"'times\[0\]' .* must be a datetime, an ISO 8601 string .* Got 'x'"),
    (
        UNCLEAR,
        "ME",
        r"times\[0\]' .* Got '01/03/2001' instead. This may mean 2001-01-03 or 2001-03-01",
    ),
    *(([2001] * 4 + [n], "YE", f"year such as .* Got {n} ") for n in (1577836800, 2001.5)),
    *(([value] * 5, "YE", f"year such as .* Got {value} ") for value in (True, float("inf"))),
    ([None] * 5, "YE", "that is not missing. Got None"),
    (YEAR, "era", r"'freq' .* must be .* 'month', .* Got 'era'"),
    (YEAR, "0.5 years", r"'freq' .* must be .* 'month', .* Got '0.5 years'"),
    (YEAR, None, r"'freq' .* must be .* Got None"),
    (["2001", *["2005"] * 4], pd.DateOffset(month=3), "positive length .* Got <DateOffset: mo"),
    (YEAR, pd.DateOffset(years=9000), "'freq' .* positive length .* Got <DateO"),
    (["2001"] * 4 + ["2001-01-01T23"], "bh", "these times can be divided. Got 'bh' .* Valu"),
    (YEAR, pd.DateOffset(months=-3), "'freq' .* must be a positive length of time"),
    (YEAR, "-1YE", r"'freq' .* must be a positive length .* Got '-1YE'"),
    (["2001", *["2031"] * 4], "s", r"at most 100000 periods from 2001.* to 2031.* Got 's'"),
)


test_groups_that_cannot_be = refusals(
    by,
    (["a"] * 6, r"'groups' .* one entry for each of the 5 documents. Got '6 entries"),
    ([None] * 5, "that is not missing. Got None"),
    ("abcde", r"'groups' .* must be a sequence .* Got 'abcde'"),
    (3, r"'groups' .* must be a sequence .* Got 3"),
    ([*"abcd", ["e"]], r"'groups\[4\]' .* such as a str or a number. Got \['e'\]"),
)
