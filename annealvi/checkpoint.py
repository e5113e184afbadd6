"""Checkpoints: a callback that writes a fit to a file, so that a stopped fit can be resumed."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from types import FrameType
from typing import Any


class Checkpoint:
    """A callback that writes the whole state of a fit to a file from time to time.

    ``fit(X, resume=path)`` of an estimator with the same parameters, on the same X, goes on from
    the last checkpoint.  It ends with the same result as a fit that was never stopped, to the
    last bit; only the times in `history_` differ.

    A checkpoint is written after a step, if `seconds` have passed since the last one, and at the
    end of the fit.  A signal to stop, SIGINT (Ctrl-C) or SIGTERM, waits for the step under way.
    Then a checkpoint is written and the signal takes effect: SIGINT raises KeyboardInterrupt,
    SIGTERM ends the process.  A second signal takes effect at once.  This is so if `fit` runs in
    the main thread and the program does not ignore the signal.

    Parameters
    ----------
    path : path
        The file to write.  It is replaced only once a new checkpoint is complete.
    seconds : float, default=60
        Least time between two checkpoints.

    Raises
    ------
    ValueError
        If `seconds` is not a finite number >= 0.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.checkpoint import Checkpoint
    >>> lda = TemperedLDA(callback=Checkpoint("run.safetensors", seconds=60))
    """

    def __init__(self, path: str | os.PathLike, seconds: float = 60) -> None:
        if (
            not isinstance(seconds, Real)
            or isinstance(seconds, bool)
            or not 0 <= seconds < math.inf
        ):
            raise ValueError(
                "The 'seconds' parameter of Checkpoint must be a float in the range [0.0, inf). "
                f"Got {seconds!r} instead."
            )
        self.path: str = os.fsdecode(path)
        self.seconds: float = seconds
        self._outside_a_fit()

    def __call__(self, estimator: Any, monitor: Any) -> None:
        """Write a checkpoint if it is time; called after each step."""
        if self._written is None:
            raise ValueError(
                "A Checkpoint works in `fit`. Write a stream of `partial_fit` with annealvi.save "
                "after a portion."
            )
        self._signals.catch()  # from the first step on: before it there is nothing to write
        if self._signals.received is not None or self._now() - self._written >= self.seconds:
            self._write(estimator)
            self._signals.deliver()

    def _outside_a_fit(self) -> None:
        self._written: float | None = None  # when, during a fit
        self._signals = _Signals()

    @contextmanager
    def during_fit(self, estimator: Any) -> Iterator[None]:
        """Return the context that `fit` runs in.

        Parameters
        ----------
        estimator : object
        """
        if self._written is not None:
            raise ValueError(
                "This Checkpoint is already in use by another fit: give each fit one of its own."
            )
        folder = os.path.dirname(os.path.realpath(self.path))
        if not os.path.isdir(folder):  # not after hours
            raise FileNotFoundError(f"There is no folder {folder!r} for the file {self.path!r}.")
        self._written = self._now()
        try:
            yield
            self._write(estimator)
            self._signals.deliver()
        finally:
            self._written = None
            self._signals.end()

    def _write(self, estimator: Any) -> None:
        estimator.save_state(self.path)
        self._written = self._now()

    @staticmethod
    def _now() -> float:
        return time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "seconds": self.seconds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path, self.seconds = state["path"], state["seconds"]
        self._outside_a_fit()

    def __repr__(self) -> str:
        return f"Checkpoint({self.path!r}, seconds={self.seconds!r})"


class _Signals:
    """Signals to stop, which wait until a checkpoint is written."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}  # the program's handlers

    def catch(self) -> None:
        """Handle the signals from now on, in the main thread."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in self.NUMBERS:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):  # None: not set by Python
                self._before[number] = handler
                signal.signal(number, self._note)

    def end(self) -> None:
        """Set the program's handlers back, and let a signal that waits take effect."""
        self._set_back()
        self._before = {}
        number, self.received = self.received, None
        if number is not None:
            signal.raise_signal(number)

    def deliver(self) -> None:
        """Let a signal that waits take effect, with the program's handlers."""
        if self.received is not None:
            self._act(self.received)

    def _act(self, number: int) -> None:
        """Let a signal take effect now.

        The program's handlers are still remembered: another Checkpoint, which has noted this one's
        as the program's, may set them back after this.
        """
        self._set_back()
        self.received = None
        signal.raise_signal(number)
        for caught in self._before:  # the program's handler let the fit go on
            signal.signal(caught, self._note)

    def _set_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = number
        else:
            self._act(number)  # the second one
