"""Words of a topic that change over time."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from annealvi.plot import plot_words_over_time
from annealvi.topics import describe
from tests.asserts import refused
from tests.topics.models import COUNTS, WORDS, Given

COLUMNS = "word since log_odds std_error z low high count share before"


def described(rng, more=1.0, n=300):
    """Documents of one topic and ten years; from the sixth on, five words are more frequent."""
    p = rng.dirichlet(np.full(40, 5.0))
    changed = p * np.where(np.arange(40) < 5, more, 1)
    years = 2001 + np.arange(n) * 10 // n
    later = changed / changed.sum()
    X = np.array([rng.multinomial(30, later if year > 2005 else p) for year in years])
    return describe(Given(p[np.newaxis], np.ones((n, 1))), X), years


def test_planted_changes_are_found_with_their_year():
    summary, years = described(np.random.RandomState(0), more=3.0)
    table = summary.words_over_time(0, years, n=5)
    assert " ".join(table) == COLUMNS
    assert sorted(table.word.astype(int)) == [0, 1, 2, 3, 4]
    assert (table.since == pd.Timestamp("2006-01-01")).all() and (table.low > 0).all()
    assert (table.share > 2 * table.before).all()
    assert table.z.abs().is_monotonic_decreasing
    assert_allclose(table.z, table.log_odds / table.std_error)
    assert len(plot_words_over_time(summary, 0, years, n_words=5).texts) == 5


def test_the_change_is_that_of_two_groups():
    summary, years = described(np.random.RandomState(1), more=2.0)
    table = summary.words_over_time(0, years, n=None)
    assert len(table) == 40
    for row in table[:3].itertuples():
        groups = np.where(years >= row.since.year, "later", "earlier")
        whole = summary.words_by_group(0, groups, n=None).set_index(["group", "word"])
        change = whole.loc["later", row.word]
        assert_allclose([row.log_odds, row.std_error], [change.log_odds, change.std_error])
        assert_allclose([row.share, row.before], [change.share, change.others])
        assert row.low < change.low < change.high < row.high  # there are nine possible changes


@pytest.mark.statistical
def test_without_a_change_few_words_are_listed():
    rng = np.random.RandomState(2)
    found = [len(s.words_over_time(0, y, n=40)) for s, y in (described(rng) for _ in range(20))]
    assert np.mean(found) / 40 < 0.05


def test_times_are_read_as_over_time_reads_them():
    summary, years = described(np.random.RandomState(3), more=3.0)
    expected = summary.words_over_time(0, years)
    dates = pd.Series([f"{year}-07-01" for year in years])
    pd.testing.assert_frame_equal(summary.words_over_time(0, dates), expected)
    some = summary.words_over_time(0, [None, *years[1:]], "5 years")
    # the periods end in 2001, 2006 and 2011
    assert set(some.since) <= {pd.Timestamp("2002-01-01"), pd.Timestamp("2007-01-01")}
    months = summary.words_over_time(0, dates, pd.DateOffset(months=60))
    assert set(months.since) == {pd.Timestamp("2006-07-01")}
    refused("at least two periods", summary.words_over_time, 0, [2001] * 300)
    refused("'times'", summary.words_over_time, 0, [2001] * 3)
    refused("'freq'", summary.words_over_time, 0, years, "no")
    refused("'prior' parameter", summary.words_over_time, 0, years, prior=0)
    refused("'n' parameter", summary.words_over_time, 0, years, n=0)
    few = describe(Given(), COUNTS, WORDS)
    assert few.words_over_time(0, [2001, 2002, 2003, 2004, 2005]).empty
