"""What pictures show are the numbers of the summary."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import plot
from annealvi.metrics import topic_stability
from annealvi.plot import pictures
from tests.asserts import refused
from tests.marks import cases

LENGTHS = {"days": 7}, {"days": 371}, {"months": 30}


def test_topics_are_the_largest_or_those_that_are_named(summary):
    largest = np.argsort(-summary.topic_shares).tolist()
    assert pictures.choose_topics(summary, None, 2) == largest[:2]
    assert pictures.choose_topics(summary, 1, 2) == [1]
    assert pictures.choose_topics(summary, [summary.labels[2], 0], 2) == [2, 0]
    for wrong in (3, [0, 3], -1, [1.5], "nothing"):
        refused("from 0 to 2 or the label of a topic", pictures.choose_topics, summary, wrong, 2)
    for wrong in ([], np.array(1), 1.5, {1}):
        with pytest.raises(ValueError, match="'topics' parameter must be a list of numbers"):
            pictures.choose_topics(summary, wrong, 2)


def test_years_are_drawn_where_they_begin(summary, documents):
    drawn = pictures.over_time(summary, documents[3], "YE", [2])
    assert [str(day)[:10] for day in drawn.labels] == [f"{y}-01-01" for y in range(2000, 2005)]
    assert_array_equal(drawn.values[:, 0], summary.over_time(documents[3]).iloc[:, 3])
    assert_array_equal(drawn.n_documents, 12)


@cases("freq, first", ("QE", "04-01"), ("ME", "05-01"), ("W", "05-01"), ("D", "05-03"))
def test_periods_are_drawn_where_they_begin(summary, freq, first):
    drawn = pictures.over_time(summary, ["2000-05-03"] * 60, freq, [0])
    assert [str(day)[:10] for day in drawn.labels] == [f"2000-{first}"]


@cases("freq", pd.offsets.SemiMonthEnd(), *(pd.DateOffset(**length) for length in LENGTHS))
def test_periods_that_pandas_has_no_name_for(summary, documents, freq):
    drawn = pictures.over_time(summary, documents[3], freq, [0])
    assert list(drawn.labels) == list(summary.over_time(documents[3], freq).index)


def test_matches_are_on_the_diagonal(summary, fit):
    other = fit(1)
    drawn = pictures.matches(summary, other)
    diagonal = np.diag(drawn.values)
    assert_array_equal(drawn.values.max(axis=1), diagonal)
    assert (np.diff(diagonal) <= 0).all()
    mean = topic_stability(summary.topics, other.topics, matching="one_to_one")
    assert_allclose(diagonal.mean(), mean)


def test_fits_of_other_words_have_no_matches(summary):
    class Other:
        topics, labels, topic_shares = np.eye(2), ("a", "b"), np.ones(2) / 2
        feature_names = np.array(["a", "b"])
        similar = weights = None

    refused("same vocabulary, in the same order", pictures.matches, summary, Other())
    Other.topics = np.eye(1)
    refused("at least two topics", plot.plot_topic_dendrogram, Other())


@pytest.mark.parametrize("wrong", [None, 3, "summary", np.eye(3), dict])
def test_what_is_no_summary(wrong):
    refused("'summary' must be a TopicSummary", pictures.bars, wrong, None, 3, 0.5, error=TypeError)
    refused(
        "'second' must be a TopicSummary", pictures.check_summary, wrong, "second", error=TypeError
    )


def test_names_are_cut_to_one_line():
    assert pictures.shorten("a\n b ,  " + "c" * 50, 10) == "a b , ccc…"
    assert pictures.shorten("short", 10) == "short"


def test_periods_of_few_documents_are_left_out(summary):
    drawn = pictures.over_time(summary, [1997] * 3 + [1999] * 57, "YE", [0])
    assert drawn.n_documents.tolist() == [3, 0, 57]
    assert np.isnan(drawn.values[:2]).all() and np.isfinite(drawn.values[2]).all()
    few = pictures.over_time(summary, range(1960, 2020), "YE", [0])  # all of them are
    assert np.isfinite(few.values).all()


@pytest.mark.parametrize("kind", [list, iter, lambda groups: pd.Series(groups, dtype="category")])
def test_small_groups_are_one_group(summary, kind):
    groups = ["b"] * 20 + ["a"] * 30 + [f"c{number}" for number in range(9)] + [None]
    drawn = pictures.by_group(summary, kind(groups), None)
    assert drawn.labels == ["a", "b", "9 others"] and drawn.n_documents.tolist() == [30, 20, 9]
    words = summary.lengths[50:59] @ summary.shares[50:59]
    assert_allclose(drawn.values[2], (words / words.sum())[drawn.topics])
    assert pictures.by_group(summary, ["a"] * 59 + ["b"], None).labels == ["a", "b"]
    many = pictures.by_group(summary, range(60), None)
    assert len(many.labels) == pictures.N_GROUPS + 1 and many.labels[-1] == "20 others"
    assert pictures.by_group(summary, list(range(20)) * 3, None).n_documents.tolist() == [3] * 20
