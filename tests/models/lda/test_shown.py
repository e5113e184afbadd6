"""The array of topics that the user sees, where it is lambda itself and where it is a copy."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi._kernels.layout import aligned_empty
from annealvi.models.lda import LDA
from annealvi.models.lda.topics import Shown, Statistics
from tests.models.lda.streams import K, V

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
BOTH = [(SINGLE, DOUBLE), (DOUBLE, SINGLE)]


def make(dtype, shown):
    model = LDA(K, V, alpha=0.2, eta=0.3, dtype=dtype)
    model.initialize(np.random.RandomState(0))
    model.topics.shown_dtype = shown
    return model.topics


def few_words(topics):
    statistics = Statistics(V, topics.width, topics.dtype)
    statistics.put(np.arange(4), np.ones((4, K)))
    return statistics


@pytest.mark.parametrize(("dtype", "shown"), [*BOTH, (SINGLE, SINGLE), (DOUBLE, DOUBLE)])
def test_a_copy_only_where_the_dtypes_differ(dtype, shown):
    topics = make(dtype, shown)
    array = topics.show()
    assert array.dtype == shown
    assert np.shares_memory(array, topics.lam) == (dtype == shown)
    assert np.shares_memory(array, topics.show())
    assert_array_equal(array, topics.components.astype(shown))
    assert topics.exp_e_log().dtype == shown


@pytest.mark.parametrize(("dtype", "shown"), BOTH)
def test_a_copy_goes_with_the_next_step(dtype, shown):
    topics = make(dtype, shown)
    array = topics.show()
    array[1, :3] = 5
    topics.notice_writes()
    for rho, words in ((0.5, few_words(topics)), (1.0, few_words(topics))):
        before = array.copy()
        topics.step(words, rho, 1.0)
        assert_array_equal(array, before)  # a step writes to no array of the user's
        newer = topics.show()
        assert not np.shares_memory(array, newer)
        assert_array_equal(newer, topics.components.astype(shown))  # pending steps as well
        array = newer


@pytest.mark.parametrize(("dtype", "shown"), BOTH)
def test_what_is_written_takes_effect_in_the_dtype_of_lambda(dtype, shown):
    topics = make(dtype, shown)
    topics.step(few_words(topics), 0.5, 1.0)  # rows of other words have a pending step
    before, array, version = topics.components.copy(), topics.show(), topics.version
    topics.notice_writes()
    assert topics.version == version
    array[2, 7] = 1 / 3
    topics.notice_writes()
    assert topics.version > version
    expected = before.copy()
    expected[2, 7] = shown.type(1 / 3)
    assert_array_equal(topics.components, expected)  # all others to the last bit
    assert_array_equal(topics.lam[:, K:], 0)
    assert array[2, 7] == topics.components[2, 7].astype(shown)
    assert_array_equal(topics.show(), topics.components.astype(shown))
    assert topics.show().base is array.base  # still the user's: he may go on
    version = topics.version
    topics.notice_writes()
    assert topics.version == version


@pytest.mark.parametrize("wrong", [1e300, 1e-300, np.nan, np.inf, -1.0, 0.0])
def test_what_cannot_be_used_is_said_until_it_is_mended(wrong):
    topics = make(SINGLE, DOUBLE)
    before, array = topics.components.copy(), topics.show()
    array[1, 2] = wrong
    for _ in range(2):
        with pytest.raises(ValueError, match=r"'components_' parameter must .* Got"):
            topics.notice_writes()
    array[1, 2] = 7
    topics.notice_writes()
    before[1, 2] = 7
    assert_array_equal(topics.components, before)


@pytest.mark.parametrize("number", [1e300, 1e-300])
def test_numbers_that_float32_cannot_hold_are_shown_in_float64(number):
    topics = make(DOUBLE, SINGLE)
    components = topics.components.copy()
    components[0, 0] = number
    topics.assign(components)
    array = topics.show()
    assert array.dtype == DOUBLE and array[0, 0] == number
    array[0, 0] = 3
    topics.notice_writes()
    components[0, 0] = 3
    assert_array_equal(topics.components, components)
    topics.assign(components)
    assert topics.show().dtype == SINGLE


@pytest.mark.parametrize(("dtype", "shown"), BOTH)
def test_copies_pickles_and_views(dtype, shown):
    topics = make(dtype, shown)
    topics.show()[0, 0] = 4
    for other in (copy.deepcopy(topics), pickle.loads(pickle.dumps(topics)), topics.copy()):
        assert other.shown_dtype == other.show().dtype == shown
        assert_array_equal(other.show(), topics.show())
        assert not np.shares_memory(other.show(), topics.show())
        other.show()[0, 0] = 9
        other.notice_writes()
        assert other.components[0, 0] == 9
    topics.notice_writes()
    assert topics.components[0, 0] == 4
    view = topics.copy()
    topics.show()[0, 0] = 5
    topics.notice_writes()
    assert view.components[0, 0] == 4 and topics.components[0, 0] == 5


def test_another_dtype_from_now_on():
    topics = make(SINGLE, SINGLE)
    array = topics.show()
    array[0, 0] = 4
    topics.shown_dtype = DOUBLE
    assert topics.components[0, 0] == 4  # written before
    array[0, 0] = 6
    topics.notice_writes()
    assert topics.components[0, 0] == 4  # nobody looks at the old array
    assert topics.show().dtype == DOUBLE


def test_nothing_was_written_to_what_nobody_has():
    shown = Shown(2, DOUBLE)
    assert shown.rows is None and not shown.written(1)
    lam = aligned_empty((5, 16), SINGLE)
    lam[:] = 1
    shown.show(lam, 1)
    assert not shown.written(1)
    assert shown.fresh().rows is None
    assert shown.fresh().dtype == DOUBLE
