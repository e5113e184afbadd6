"""Starts in turn and side by side: which is kept, and what an interrupt or an error leaves."""

import math

import pytest

from annealvi.inference import fit_starts


class Run:
    """A fit that makes one step, and ends with a goodness or an error."""

    def __init__(self, end, *, in_callback=False):
        self.end, self.in_callback, self.stopped, self.n_steps = end, in_callback, False, 0
        self.goodness = -math.inf

    @property
    def score(self):
        return -self.goodness

    def go(self):
        self.n_steps = 1
        if isinstance(self.end, BaseException):
            raise self.end
        self.goodness = self.end


def fit(runs, n_workers):
    kept = []
    starts = [lambda halt, run=run: run for run in runs]
    try:
        best, scores = fit_starts(starts, n_workers=n_workers, salvage=kept.append)
    except BaseException as error:
        return error, [runs.index(run) for run in kept]
    assert not kept
    return runs.index(best), scores


WORKERS = pytest.mark.parametrize("n_workers", [1, 2])


@WORKERS
@pytest.mark.parametrize(
    ("goodness", "best"),
    [([1.0, 3.0, 2.0], 1), ([2.0, 2.0], 0), ([math.nan, 1.0], 1), ([math.nan, math.nan], 0)],
)
def test_the_best_is_kept_and_of_equals_the_first(n_workers, goodness, best):
    found, scores = fit([Run(value) for value in goodness], n_workers)
    assert found == best
    assert [-score for score in scores] == pytest.approx(goodness, nan_ok=True)


@WORKERS
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interrupt_leaves_a_start(n_workers, error):
    raised, kept = fit([Run(error), Run(1.0)], n_workers)
    assert raised is error and len(kept) == 1


@WORKERS
def test_other_errors_leave_nothing(n_workers):
    error = ValueError("no")
    assert fit([Run(1.0), Run(error)], n_workers) == (error, [])


def test_an_error_of_the_callback_leaves_the_best_so_far():
    error = ValueError("of the user")
    assert fit([Run(1.0), Run(error, in_callback=True)], 1) == (error, [0])
    assert fit([Run(error, in_callback=True)], 1) == (error, [0])


def test_a_callback_that_stops_ends_the_starts():
    first = Run(1.0)
    first.stopped = True
    assert fit([first, Run(2.0)], 1) == (0, [-1.0])
