"""What tests in many folders assert."""

import pytest


def refused(words, call, /, *arguments, error=ValueError, **options):
    """A call raises an error whose message has these words, a regular expression."""
    __tracebackhide__ = True
    with pytest.raises(error, match=words):
        call(*arguments, **options)
