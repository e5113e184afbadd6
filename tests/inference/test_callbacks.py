"""Several callbacks of an estimator, and what they do around a fit."""

from contextlib import contextmanager

import pytest

from annealvi.inference import Callbacks, Monitor


class Watching:
    """A callback that also sees the beginning and the end of a fit."""

    def __init__(self, seen):
        self.seen = seen

    def __call__(self, estimator, monitor):
        self.seen.append(("step", estimator, monitor.step))

    @contextmanager
    def during_fit(self, estimator):
        self.seen.append(("begin", estimator))
        try:
            yield
            self.seen.append("end")
        finally:
            self.seen.append("finally")


def test_they_are_called_in_their_order_and_those_that_watch_last():
    seen, estimator = [], object()
    parts = [lambda *args: seen.append("first"), lambda *args: seen.append("second")]
    callbacks = Callbacks([Watching(seen), *parts], estimator)
    with callbacks.during_fit():
        callbacks(Monitor())
    step = ["first", "second", ("step", estimator, 0)]
    assert seen == [("begin", estimator), *step, "end", "finally"]


def test_an_error_ends_the_fit_but_not_by_its_end():
    seen, estimator = [], object()

    def fail(estimator, monitor):
        raise StopIteration

    callbacks = Callbacks([fail, Watching(seen)], estimator)
    with pytest.raises(ZeroDivisionError), callbacks.during_fit():
        with pytest.raises(StopIteration):
            callbacks(Monitor())
        raise ZeroDivisionError
    assert seen == [("begin", estimator), "finally"]


@pytest.mark.parametrize("none", [None, [], ()])
def test_none(none):
    assert not Callbacks(none, object())
    with Callbacks(none, object()).during_fit():
        pass
