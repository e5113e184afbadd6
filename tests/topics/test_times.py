"""Dates as people write them, in shares over time and in formulas."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from annealvi.topics import estimate_effects
from annealvi.topics.times import read_times
from tests.asserts import refused
from tests.marks import cases

READ = {
    "2020": "2020-01-01",
    "2020-03": "2020-03-01",
    "20200305": "2020-03-05",
    "2020-03-05T10:30:00+02:00": "2020-03-05T08:30:00",
    "2020/3/5": "2020-03-05",
    "2020.03.05 10:00": "2020-03-05T10:00:00",
    "25/03/2021": "2021-03-25",
    "03/25/2021": "2021-03-25",
    "25.3.2021": "2021-03-25",
    "5 March 2021": "2021-03-05",
    "Mar 2021": "2021-03-01",
    "March 5, 2021": "2021-03-05",
    "05-Mar-2021": "2021-03-05",
    "Fri, 05 Mar 2021 10:00:00 +0000": "2021-03-05T10:00:00",
    " 2021-03-05 ": "2021-03-05",
    "2019.0": "2019-01-01",
    "1984-12-31 23:59": "1984-12-31T23:59:00",
    datetime.date(2020, 5, 1): "2020-05-01",
    pd.Period("2020-05", "M"): "2020-05-01",
    np.datetime64("2020-05-01"): "2020-05-01",
    2019: "2019-01-01",
}


@pytest.mark.parametrize("given", READ, ids=str)
def test_what_is_read(given):
    assert read_times([given, None], pd)[0] == pd.Timestamp(READ[given])


REFUSED = ["12/19", "03/20", "20-04-13", "11/12/13", "May", "12 May", "10:30", "now", "today"]
REFUSED += ["Q1 2020", "Mon", "1", "85", "12.2019", "31/31/2020", "2020-13-01", "5 marzo 2021"]
REFUSED += ["05/03/2021", "yesterday", "noon", "Monday 10:30", "2020-02-30", "", "１２月"]


@pytest.mark.parametrize("given", REFUSED)
@pytest.mark.parametrize("first", [True, False])
def test_what_is_refused(given, first):
    times = [given, "2019-06-01"] if first else ["2019-06-01", given]
    refused(rf"'times\[{1 - first}\]' .* Got '{given}' instead", read_times, times, pd)


@cases("dates", ["05/03/2021", "06/03/2021", "25/03/2021"], ["3.4.2020", "30.4.2020"])
def test_the_whole_column_decides_whether_days_come_first(dates):
    found = {tuple(sorted(read_times(order, pd).month)) for order in (dates, dates[::-1])}
    assert len(found) == 1 and found.pop() in {(3, 3, 3), (4, 4)}
    contradicts = [*dates, "04/31/2021".replace("/", dates[0][-5])]
    refused("The day comes first here, but second in", read_times, contradicts, pd)


WHEN = pd.date_range("2020-01-01", periods=60, freq="7D")
COLUMNS = {
    "datetimes": WHEN,
    "with a zone": WHEN.tz_localize("UTC"),
    "dates": list(WHEN.date),
    "ISO": list(WHEN.strftime("%Y-%m-%d")),
    "days first": list(WHEN.strftime("%d/%m/%Y")),
    "in words": list(WHEN.strftime("%d %B %Y")),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("formula", ["~ when", "~ bs(when, df=3)", "~ C(when)"])
def test_dates_in_a_formula(kind, formula):
    rng, years = np.random.default_rng(0), np.arange(60) * 7 / 365.2425
    share = 0.4 + 0.2 * years + rng.normal(scale=0.01, size=60)
    data = {"when": COLUMNS[kind] if formula != "~ C(when)" else list(COLUMNS[kind])[::30] * 30}
    if formula == "~ C(when)":
        effects = estimate_effects(np.column_stack([share, 1 - share]), formula, data)
        assert effects.terms[1] == "C(when)[T.2020-07-29]"
        return
    with pytest.warns(UserWarning, match="'when' contains dates, which are converted to years"):
        effects = estimate_effects(np.column_stack([share, 1 - share]), formula, data)
    if formula == "~ when":
        assert_allclose(effects.table.estimate[1], 0.2, atol=0.02)


@pytest.mark.parametrize("mark", ["NA", " ", "n/a", None])
def test_a_mark_of_a_missing_date_is_a_missing_date(mark):
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    dates = [*WHEN.strftime("%Y-%m-%d")]
    message = "" if mark is None else f". '{mark}' is a missing date"
    with pytest.warns(UserWarning, match=f"to treat dates as categories{message}"):
        effects = estimate_effects(shares, "~ when", {"when": [mark, *dates[1:]]})
    assert effects.n_documents == 59 and effects.terms == ["Intercept", "when"]
    several = {"when": [mark or "NA", *dates[:2]] * 20}
    assert len(estimate_effects(shares, "~ C(when)", several).terms) == 3


@pytest.mark.parametrize("unit", ["D", "s", None])
def test_durations_are_converted_to_days(unit):
    shares, days = np.random.default_rng(0).dirichlet(np.ones(3), 60), np.arange(60) ** 2
    durations = pd.to_timedelta(days, unit="D")
    data = {"age": list(durations) if unit is None else durations.to_numpy(f"m8[{unit}]")}
    with pytest.warns(UserWarning, match="'age' contains durations, which are converted to days"):
        effects = estimate_effects(shares, "~ age", data)
    expected = estimate_effects(shares, "~ age", {"age": days})
    assert_allclose(effects.table.estimate, expected.table.estimate)


def test_durations_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    shares, days = np.random.default_rng(0).dirichlet(np.ones(3), 60), np.arange(60)
    seconds = pd.Series(pd.to_timedelta(days, unit="D")).astype(
        pd.ArrowDtype(pyarrow.duration("s"))
    )
    with pytest.warns(UserWarning, match="'age' contains durations"):
        assert len(estimate_effects(shares, "~ age", {"age": seconds}).terms) == 2


def test_years_as_texts_and_other_words_are_categories():
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    for levels in (
        ["2019", "2020"],
        ["May", "June"],
        ["2020-01-31", "never"],
        ["2010-14", "2015-19"],
    ):
        assert len(estimate_effects(shares, "~ x", {"x": levels * 30}).terms) == 2


@pytest.mark.parametrize("row", [[0.2, 0.3, 0.5], [0.1, 0.2, 0.7], [0.3, 0.7]])
@pytest.mark.parametrize("formula", ["~ party", "~ bs(x, df=4)", "~ party * x"])
@pytest.mark.parametrize("clusters", [None, np.arange(60) % 7])
def test_shares_that_are_constant_have_no_effects(row, formula, clusters):
    data = {"party": ["left", "right"] * 30, "x": np.arange(60.0) ** 2}
    table = estimate_effects(np.tile(row, (60, 1)), formula, data, clusters=clusters).table
    assert (table[table.term != "Intercept"].p_value > 0.05).all()
