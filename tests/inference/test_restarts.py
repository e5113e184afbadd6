"""Several starts: the best kept, in turn or side by side, and what an interrupt leaves."""

import threading

import numpy as np
import pytest

from annealvi.inference.restarts import fit_starts


class Run:
    """A run that ends as it is told to."""

    def __init__(self, number, goodness, *, n_steps=3, stopped=False, error=None, own=False):
        self.number, self.n_steps, self.stopped = number, n_steps, stopped
        self.score, self.goodness = goodness, goodness
        self.error, self.own, self.in_callback = error, own, False

    def go(self):
        if self.error is not None:
            self.in_callback = self.own
            raise self.error


def fit(runs, n_workers, **options):
    """fit_starts of runs, and the numbers of what was salvaged."""
    salvaged = []
    starts = [lambda halt, run=run: run for run in runs]
    try:
        best, scores = fit_starts(
            starts, n_workers=n_workers, salvage=lambda run: salvaged.append(run.number), **options
        )
    except BaseException as error:
        return type(error), salvaged
    assert not salvaged
    return best.number, scores


BOTH = pytest.mark.parametrize("n_workers", [1, 2])


@BOTH
def test_the_best_is_kept(n_workers):
    assert fit([Run(i, g) for i, g in enumerate([1.0, 3.0, 2.0])], n_workers) == (
        1,
        [1.0, 3.0, 2.0],
    )


@BOTH
def test_of_equals_the_earlier_start(n_workers):
    assert fit([Run(i, 2.0) for i in range(4)], n_workers)[0] == 0


@BOTH
def test_what_is_no_number_is_the_worst(n_workers):
    assert fit([Run(0, np.nan), Run(1, -5.0), Run(2, np.nan)], n_workers)[0] == 1
    assert fit([Run(0, np.nan), Run(1, np.nan)], n_workers)[0] == 0


def test_a_callback_may_end_all_starts():
    runs = [Run(0, 1.0), Run(1, 0.0, stopped=True), Run(2, 9.0)]
    assert fit(runs, 1) == (0, [1.0, 0.0])


def test_a_run_is_shown_before_it_goes():
    shown = []
    fit([Run(i, i) for i in range(3)], 1, on_begin=lambda run: shown.append(run.number))
    assert shown == [0, 1, 2]


def test_starts_begin_one_after_the_other():
    """So that they may draw from the same random numbers."""
    log = []

    def start(number, halt):
        log.append(("begins", number))
        run = Run(number, 0.0)
        run.go = lambda: log.append(("goes", number))
        return run

    starts = [lambda halt, i=i: start(i, halt) for i in range(2)]
    fit_starts(starts, n_workers=1, salvage=lambda run: None)
    assert log == [("begins", 0), ("goes", 0), ("begins", 1), ("goes", 1)]


@pytest.mark.parametrize(
    ("error", "own"), [(KeyboardInterrupt(), False), (RuntimeError("mine"), True)]
)
def test_an_interrupt_or_the_users_error_leaves_the_best_so_far(error, own):
    unfinished = {"error": error, "own": own}
    assert fit([Run(0, 1.0), Run(1, -np.inf, **unfinished)], 1) == (type(error), [0])
    # one that is not finished may be known to be better, as that of a mixture
    assert fit([Run(0, 1.0), Run(1, 5.0, **unfinished)], 1) == (type(error), [1])
    assert fit([Run(0, -np.inf, **unfinished)], 1) == (type(error), [0])
    assert fit([Run(0, -np.inf, n_steps=0, **unfinished)], 1) == (type(error), [])


@BOTH
def test_other_errors_leave_nothing(n_workers):
    assert fit([Run(0, 1.0), Run(1, 2.0, error=ValueError("wrong"))], n_workers) == (ValueError, [])


def test_an_error_side_by_side_halts_the_others():
    began = threading.Event()

    class Waiting(Run):
        def __init__(self, halt):
            super().__init__(0, 1.0)
            self.halt = halt

        def go(self):
            began.set()
            assert self.halt.wait(20)

    def failing(halt):
        assert began.wait(20)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fit_starts([Waiting, failing], n_workers=2, salvage=lambda run: None)


def test_an_interrupt_side_by_side_keeps_what_had_ended():
    """The main thread is interrupted while it waits for the second start."""
    ended = threading.Event()

    class Second(Run):
        def __init__(self, halt):
            super().__init__(1, -np.inf)
            self.halt = halt

        def go(self):
            assert ended.wait(20)
            raise KeyboardInterrupt

    class First(Run):
        def __init__(self, halt):
            super().__init__(0, 1.0)

        def go(self):
            # ends after go has returned; the second start needs longer than that
            threading.Timer(0.2, ended.set).start()

    salvaged = []
    with pytest.raises(KeyboardInterrupt):
        fit_starts([First, Second], n_workers=2, salvage=lambda run: salvaged.append(run.number))
    assert salvaged == [0]


@BOTH
def test_an_exit_leaves_the_best_so_far(n_workers):
    assert fit([Run(0, 1.0, error=SystemExit(1))] * 2, n_workers) == (SystemExit, [0])
