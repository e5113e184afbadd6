"""What tests in many folders assert."""

import copy

import pytest

from annealvi import _kernels
from bench.speed.same_bits import digest


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


def same_bits(compute, *numbers):
    """A function gives the same for any number of threads, with each instruction set there is."""
    before, expected = _kernels.instruction_set(), None
    try:
        for name in _kernels.available_instruction_sets():
            _kernels.use_instruction_set(name)
            for n_threads in numbers or (1, 2, 3):
                found = digest(compute(n_threads))
                expected = expected or found
                assert found == expected, (name, n_threads)
    finally:
        _kernels.use_instruction_set(before)


def with_topics(lda):
    """An estimator whose scores include the topics' KL, as the bound of a fit does."""
    return copy.copy(lda).set_params(preset="sklearn")
