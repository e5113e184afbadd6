"""Checkpoints: a callback that writes a fit to a file, so that a stopped fit can be resumed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

from annealvi.checks import Interval, checked
from annealvi.exceptions import BadParameter


class Checkpoint:
    """A callback that writes the whole state of a fit to a file from time to time.

    ``fit(X, resume=path)`` of an estimator with the same parameters, on the same X, resumes from
    the last checkpoint.  It ends identically to a fit that was never stopped, bit for bit; only the
    times in `history_` differ.

    A checkpoint is written after a step, if `seconds` have passed since the last one, and at the
    end of the fit.  If a signal to stop, SIGINT (Ctrl-C) or SIGTERM, arrives, the current step is
    finished first.  Then a checkpoint is written and the signal takes effect: SIGINT raises
    KeyboardInterrupt, SIGTERM ends the process.  A second signal takes effect at once.  This
    requires that `fit` runs in the main thread and the program does not ignore the signal.

    Parameters
    ----------
    path : path
        The file to write.  It is replaced only once a new checkpoint is complete.
    seconds : float, default=60
        Minimum time between two checkpoints.

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

    @checked
    def __init__(self, path: str | os.PathLike, seconds: float = 60) -> None:
        allowed = Interval(Real, 0, None, closed="left")
        if isinstance(seconds, bool) or not allowed.is_satisfied_by(seconds):
            raise BadParameter("seconds", str(allowed), seconds)
        self.path: str = os.fsdecode(path)
        self.seconds: float = seconds
        self._written: float | None = None  # when, during a fit
        self._signals = _Signals()

    def __call__(self, estimator: Any, monitor: Any) -> None:
        """Write a checkpoint if it is time; called after each step."""
        if self._written is None:
            raise ValueError(
                "A Checkpoint works only in `fit`. To keep a model between calls of "
                "`partial_fit`, use annealvi.save."
            )
        self._signals.catch()  # from the first step on: before it there is nothing to write
        if self._signals.received or time.monotonic() - self._written >= self.seconds:
            self._write(estimator)

    @contextmanager
    def during_fit(self, estimator: Any) -> Iterator[None]:
        """Return the context that `fit` runs in.

        Parameters
        ----------
        estimator : object
        """
        if self._written is not None:
            raise ValueError(
                "This Checkpoint is already in use by another fit: create one for each fit."
            )
        folder = os.path.dirname(os.path.realpath(self.path))
        if not os.path.isdir(folder):  # not after hours
            raise FileNotFoundError(f"There is no folder {folder!r} for the file {self.path!r}.")
        self._written = time.monotonic()
        try:
            yield
            self._write(estimator)
        finally:
            self._written = None
            self._signals.end()

    def _write(self, estimator: Any) -> None:
        estimator.save_state(self.path)
        self._written = time.monotonic()
        self._signals.deliver()

    def __reduce__(self) -> Any:
        return Checkpoint, (self.path, self.seconds)

    def __repr__(self) -> str:
        return f"Checkpoint({self.path!r}, seconds={self.seconds!r})"


class _Signals:
    """Signals to stop, which wait until a checkpoint is written."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}  # the program's handlers

    def catch(self) -> None:
        """Handle the signals from now on, in the main thread, which alone may do so."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):  # None: not set by Python
                self._before[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        second, self.received = self.received is not None, number
        if second:
            self.deliver()

    def deliver(self) -> None:
        """Let a signal that waits take effect, with the program's handlers.

        They are remembered until the end: another Checkpoint, which has noted this one's handler
        as the program's, may set it back after this.
        """
        number, self.received = self.received, None
        if number is None:
            return
        for each, handler in self._before.items():
            signal.signal(each, handler)
        signal.raise_signal(number)
        for each in self._before:  # the program's handler let the fit go on
            signal.signal(each, self._note)

    def end(self) -> None:
        """Set the program's handlers back, and let a signal that waits take effect."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
        self.deliver()
