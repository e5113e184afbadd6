"""What tests in many folders assert."""

import copy

import pytest
from numpy.testing import assert_equal


def refused(words, call, /, *arguments, error=ValueError, **options):
    """A call raises an error whose message has these words, a regular expression."""
    __tracebackhide__ = True
    with pytest.raises(error, match=words):
        call(*arguments, **options)


def refusals(call, *rows, error=ValueError):
    """A test of each row: the arguments of a call, and last the words of the error it raises."""

    @pytest.mark.parametrize("row", rows, ids=[row[-1] for row in rows])
    def test(row):
        *arguments, words = row
        refused(words, call, *arguments, error=error)

    return test


def same_for_any_threads(compute, *numbers):
    """What a function of the number of threads gives has the same bits for all of them."""
    expected = compute(1)
    for n_threads in numbers or (2, 3, 7):
        assert_equal(compute(n_threads), expected)


def with_topics(lda):
    """An estimator whose scores include the topics' KL, as the bound of a fit does."""
    return copy.copy(lda).set_params(preset="sklearn")
