"""Fits from several starting points, one after another or in parallel; the best is kept."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Run(Protocol):
    """A fit from one starting point, which has begun."""

    #: Whether the callback raised StopIteration; no more starts then follow.
    stopped: bool
    #: Whether the user's callback is running; an error raised now comes from the user's code.
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


class Best(Generic[R]):
    """Keeps the best run it has seen."""

    def __init__(self) -> None:
        self.run: R | None = None
        self.number = 0
        self._goodness = -math.inf

    def show(self, run: R, number: int) -> None:
        goodness = -math.inf if math.isnan(run.goodness) else run.goodness
        if self.run is None or (goodness, -number) > (self._goodness, -self.number):
            self.run, self.number, self._goodness = run, number, goodness


@dataclass
class Progress(Generic[R]):
    """How far starts are that run one after another.

    Parameters
    ----------
    scores : list of float
        Scores of the starts that have ended, in their order.
    best : Best
        The best of these.
    run : Run or None
        The run under way.  Its start is the one after those that have ended.
    """

    scores: list[float] = field(default_factory=list)
    best: Best[R] = field(default_factory=Best)
    run: R | None = None


def fit_starts(
    starts: Sequence[Start[R]],
    *,
    n_workers: int,
    salvage: Callable[[R], None],
    on_begin: Callable[[R], None] | None = None,
    progress: Progress[R] | None = None,
) -> tuple[R, list[float]]:
    """Fit from each starting point and choose the best.

    Parameters
    ----------
    starts : sequence of callables
        Each begins a run.  With one worker a run begins only after the one before has ended,
        so that all runs may draw from the same generator.
    n_workers : int
        Number of runs at a time.
    salvage : callable
        Called before an interrupt or an error in the user's callback is raised again.  It gets
        the best run so far, of those that have ended or made a step; the goodness of an
        unfinished run may be -infinity.  It is not called if there is none.  After other
        errors nothing is kept.
    on_begin : callable, optional
        Called with each run before it is fitted; only used with one worker.
    progress : Progress, optional
        Where the fit begins, by default before the first start; only used with one worker.  It
        is kept up to date.

    Returns
    -------
    best : Run
        The best run; the earlier one of equally good runs.
    scores : list of float
        Scores of all starts that were made, in their order.
    """
    if n_workers == 1 or len(starts) == 1:
        return _in_turn(starts, salvage, on_begin, Progress() if progress is None else progress)
    return _side_by_side(starts, salvage, n_workers)


def _in_turn(
    starts: Sequence[Start[R]],
    salvage: Callable[[R], None],
    on_begin: Callable[[R], None] | None,
    progress: Progress[R],
) -> tuple[R, list[float]]:
    best, scores = progress.best, progress.scores
    for number in range(len(scores), len(starts)):
        run = progress.run
        try:
            if run is None:
                run = progress.run = starts[number](threading.Event())
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
        progress.run = None
        if run.stopped:
            break
    assert best.run is not None
    return best.run, scores


def _side_by_side(
    starts: Sequence[Start[R]], salvage: Callable[[R], None], n_workers: int
) -> tuple[R, list[float]]:
    """Fit each run in a Python thread; the kernels of all runs work at the same time.

    Unlike joblib's workers these threads are joined when the user interrupts, so none
    continues in the background.
    """
    changed = threading.Condition()
    halt = threading.Event()
    working: set[int] = set()
    unfinished: dict[int, R] = {}
    best: Best[R] = Best()

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
                with changed:  # the pool does not join a thread if interrupted while creating it
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
