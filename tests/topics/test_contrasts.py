"""Words that groups use differently within a topic."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from annealvi.topics import contrasts, describe
from tests.asserts import refused
from tests.topics.models import COMPONENTS, COUNTS, SHARES, WORDS, Given

GROUPS = ["a", "b", "b", "a", "a"]
COLUMNS = "group word log_odds std_error z low high count share others"


@pytest.fixture
def summary():
    return describe(Given(), COUNTS, WORDS)


def expected(k):
    """Counts of documents times the responsibilities of a topic, word by word."""
    topics = COMPONENTS / COMPONENTS.sum(axis=1, keepdims=True)
    found = np.zeros(COUNTS.shape)
    for d, row in enumerate(COUNTS):
        for w, n in enumerate(row):
            joint = SHARES[d] * topics[:, w]
            found[d, w] = n * joint[k] / joint.sum() if n else 0
    return found


def naive(c, inside, prior):
    """The two formulas of the docstring."""
    alpha = prior * c.sum(axis=0) / c.sum()
    log_odds, variance = [], []
    for own in (c[inside], c[~inside]):
        y, n, m = own.sum(axis=0), own.sum(), own.sum(axis=1)
        log_odds.append(np.log((y + alpha) / (n + prior - y - alpha)))
        squares = ((own - np.outer(m, y / n)) ** 2).sum(axis=0)
        slope = (n + prior) / ((y + alpha) * (n + prior - y - alpha))
        variance.append((alpha + squares) * slope**2)
    return log_odds[0] - log_odds[1], np.sqrt(variance[0] + variance[1])


@pytest.mark.parametrize("topic", [0, 2])
def test_the_formulas(summary, topic):
    c = expected(topic)
    table = summary.words_by_group(topic, GROUPS, n=None, prior=20.0)
    assert " ".join(table) == COLUMNS
    there = c.sum(axis=0) > 0
    for name in "ab":
        inside = np.array(GROUPS) == name
        difference, std_error = naive(c[:, there], inside, 20.0)
        own = table[table.group == name].set_index("word").loc[WORDS[there]]
        assert len(own) == there.sum()
        assert_allclose(own["count"], c[inside].sum(axis=0)[there])
        assert_allclose(own.log_odds, difference, atol=1e-12)
        assert_allclose(own.std_error, std_error)
        assert_allclose(own.z, difference / std_error, atol=1e-12)
        assert_allclose(own.low, difference - 1.96 * std_error, atol=1e-3)
        assert_allclose(own.high, difference + 1.96 * std_error, atol=1e-3)
        assert_allclose(own["count"], c[inside][:, there].sum(axis=0))
        assert_allclose(own.share, own["count"] / own["count"].sum())
        assert_allclose(own.others, c[~inside][:, there].sum(axis=0) / c[~inside].sum())


def test_the_order_and_the_number_of_words(summary):
    documents = describe(Given(), COUNTS * 5, WORDS)
    table = documents.words_by_group("orbit, the, comet", GROUPS, n=2)
    assert table.group.tolist() == sorted(table.group) and len(table) > 1
    assert table.index.tolist() == list(range(len(table)))
    whole = documents.words_by_group(0, GROUPS, n=None)
    for name in "ab":
        own = whole[whole.group == name]
        assert own.z.is_monotonic_decreasing
        own = own[(own.z > 0) & (own["count"] >= contrasts.LEAST_COUNT)]
        assert own.word.tolist()[:2] == table.word[table.group == name].tolist()


def test_groups_are_read_as_by_reads_them(summary):
    left_out = summary.words_by_group(0, ["a", "b", None, "a", np.nan], n=None)
    kept = describe(Given(shares=SHARES[[0, 1, 3]]), COUNTS[[0, 1, 3]], WORDS)
    pd.testing.assert_frame_equal(left_out, kept.words_by_group(0, ["a", "b", "a"], n=None))
    frame = pd.DataFrame(COUNTS, index=list("vwxyz"))
    indexed = describe(Given(), frame, WORDS)
    series = pd.Series(GROUPS, index=list("vwxyz"), dtype="category")[::-1]
    expected_table = summary.words_by_group(0, GROUPS)
    pd.testing.assert_frame_equal(indexed.words_by_group(0, series), expected_table)
    for groups in (["a"] * 5, ["a", None, None, None, None]):
        refused(r"'groups' parameter .* at least two groups", summary.words_by_group, 0, groups)
    refused("'groups'", summary.words_by_group, 0, ["a", "b"])


@pytest.mark.parametrize("parameter", [{"n": 0}, {"prior": 0}, {"prior": -1.0}, {"n": 1.5}])
def test_bad_parameters(summary, parameter):
    refused(f"'{next(iter(parameter))}' parameter", summary.words_by_group, 0, GROUPS, **parameter)


def test_a_group_or_a_topic_without_words(summary):
    table = summary.words_by_group(1, ["a", "b", "a", "b", "c"], n=None)  # the last has no words
    alone = table[table.group == "c"]
    assert np.isfinite(table.select_dtypes("number")).all().all() and (alone["count"] == 0).all()
    nowhere = describe(Given(shares=np.tile([0.5, 0.5, 0.0], (5, 1))), COUNTS, WORDS)
    assert nowhere.words_by_group(2, GROUPS).empty
    one_word = describe(Given(np.ones((1, 1)), np.ones((5, 1))), COUNTS[:, :1] + 1)
    assert_allclose(one_word.words_by_group(0, GROUPS)[["log_odds", "z"]], 0, atol=1e-6)


def planted(rng, more, bursts):
    """Documents of one topic: the first group has `more` of the first five words.

    With `bursts` a document has each word that it draws several times.
    """
    p = rng.dirichlet(np.full(40, 5.0))
    changed = p * np.where(np.arange(40) < 5, more, 1)
    first = changed / changed.sum()
    rows = [rng.multinomial(30, first if d < 150 else p) * (1 + 4 * bursts) for d in range(300)]
    return sparse.csr_matrix(np.array(rows)), p, ["first"] * 150 + ["second"] * 150


def test_planted_differences_are_found():
    X, p, groups = planted(np.random.RandomState(0), 2.0, 0)
    table = describe(Given(p[np.newaxis], np.ones((300, 1))), X).words_by_group(0, groups, n=5)
    first = table[table.group == "first"]
    assert sorted(first.word.astype(int)) == [0, 1, 2, 3, 4] and (first.low > 0).all()
    odds = 2 * p[:5] / (1 + p[:5].sum())
    truth = np.log(odds / (1 - odds)) - np.log(p[:5] / (1 - p[:5]))
    first = first.assign(word=first.word.astype(int)).sort_values("word")
    assert ((first.low < truth) & (truth < first.high)).all()


@pytest.mark.statistical
@pytest.mark.parametrize("bursts", [0, 1])
def test_without_a_difference_one_interval_of_twenty_excludes_0(bursts):
    rng, outside = np.random.RandomState(1), []
    for _ in range(15):
        X, p, groups = planted(rng, 1.0, bursts)
        summary = describe(Given(p[np.newaxis], np.ones((300, 1))), X)
        table = summary.words_by_group(0, groups, n=None)
        table = table[table.group == "first"]
        outside.append(((table.low > 0) | (table.high < 0)).mean())
    assert 0.02 < np.mean(outside) < 0.08  # by the formula for independent words .4 with bursts
