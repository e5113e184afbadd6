"""Fits from several starting points: in turn or side by side, the best of them kept."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar


class Run(Protocol):
    """One fit from one starting point, which has begun.

    Attributes
    ----------
    score : float
        What the user is told of it, once it has ended.
    goodness : float
        What runs are compared by, the higher the better; -infinity as long as it is not
        known.
    stopped : bool
        Whether the callback has ended the fit, further starts included.
    in_callback : bool
        Whether the user's callback is running, so that an error is the user's.
    """

    stopped: bool
    in_callback: bool

    @property
    def score(self) -> float:
        """See above."""

    @property
    def goodness(self) -> float:
        """See above."""

    @property
    def n_steps(self) -> int:
        """Steps made."""

    def go(self) -> None:
        """Fit to the end."""


R = TypeVar("R", bound=Run)
#: Begins a run.  The event tells the run to end: another has failed or was interrupted.
Start = Callable[[threading.Event], R]


def fit_starts(
    starts: Sequence[Start[R]],
    *,
    n_workers: int,
    salvage: Callable[[R], None],
    on_begin: Callable[[R], None] | None = None,
) -> tuple[R, list[float]]:
    """Fit from each starting point and choose the best.

    Parameters
    ----------
    starts : sequence of callables
        Each begins a run.  In turn, one begins when the one before has ended, so that they
        may draw from the same random numbers.
    n_workers : int
        Runs at a time.
    salvage : callable
        Called with the best run so far before an interrupt, or an error of the user's
        callback, is raised again: the best that has ended or else one that has made a step.
        Not called if there is none.  After other errors nothing is kept.
    on_begin : callable, optional
        Called with each run before it goes; for runs in turn.

    Returns
    -------
    best : Run
        Of equally good ones the earlier start.
    scores : list of float
        Of all starts that were made, in their order.
    """
    if n_workers == 1 or len(starts) == 1:
        return _in_turn(starts, salvage, on_begin)
    return _side_by_side(starts, salvage, n_workers)


class _Best(Generic[R]):
    """The best run of those that were shown."""

    def __init__(self) -> None:
        self.run: R | None = None
        self._key = (-math.inf, 0)

    def show(self, run: R, number: int) -> None:
        goodness = -math.inf if math.isnan(run.goodness) else run.goodness
        if self.run is None or (goodness, -number) > self._key:
            self.run, self._key = run, (goodness, -number)


def _in_turn(
    starts: Sequence[Start[R]],
    salvage: Callable[[R], None],
    on_begin: Callable[[R], None] | None,
) -> tuple[R, list[float]]:
    best: _Best[R] = _Best()
    scores = []
    for number, start in enumerate(starts):
        run = None
        try:
            run = start(threading.Event())
            if on_begin is not None:
                on_begin(run)
            run.go()
        except BaseException as error:
            if not isinstance(error, Exception) or (run is not None and run.in_callback):
                if run is not None and run.n_steps:
                    best.show(run, number)
                if best.run is not None:
                    salvage(best.run)
            raise
        scores.append(run.score)
        best.show(run, number)
        if run.stopped:
            break
    assert best.run is not None
    return best.run, scores


def _side_by_side(
    starts: Sequence[Start[R]], salvage: Callable[[R], None], n_workers: int
) -> tuple[R, list[float]]:
    """Each run in a thread of Python; their work in the kernels goes on at the same time.

    Unlike joblib's workers these threads are joined when the user interrupts, so none goes
    on unseen.
    """
    changed = threading.Condition()
    halt = threading.Event()
    working: set[int] = set()
    unfinished: dict[int, R] = {}
    best: _Best[R] = _Best()

    def fit(number: int) -> float:
        run = starts[number](halt)
        unfinished[number] = run
        run.go()
        with changed:
            if not halt.is_set():
                del unfinished[number]
                best.show(run, number)
        return run.score

    def work(number: int) -> float:
        with changed:
            if halt.is_set():
                return math.nan
            working.add(number)
        try:
            return fit(number)
        except BaseException:
            halt.set()
            raise
        finally:
            with changed:
                working.remove(number)
                changed.notify_all()

    try:
        with ThreadPoolExecutor(n_workers) as pool:
            try:
                jobs = [pool.submit(work, number) for number in range(len(starts))]
                scores = [job.result() for job in jobs]
            except BaseException:
                halt.set()
                with changed:  # a thread that was interrupted in its making is not joined
                    changed.wait_for(lambda: not working)
                raise
    except BaseException as error:
        if isinstance(error, Exception):
            raise
        if best.run is None:
            for number in sorted(unfinished):
                if unfinished[number].n_steps:
                    best.show(unfinished[number], number)
        if best.run is not None:
            salvage(best.run)
        raise
    assert best.run is not None
    return best.run, scores
