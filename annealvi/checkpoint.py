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
    """A callback that regularly writes the whole state of a fit to a file.

    To resume from the last checkpoint, call ``fit(X, resume=path)`` on an estimator with the same
    parameters and with the same X.  The result is bit for bit identical to the result of a fit that
    was never stopped; only the times in `history_` differ.

    A checkpoint is written at the end of the fit, and after each step that ends at least `seconds`
    after the last checkpoint.  If the process receives SIGINT (Ctrl-C) or SIGTERM, the fit first
    completes the current step and writes a checkpoint.  Then SIGINT raises KeyboardInterrupt, and
    SIGTERM ends the process.  A second signal takes effect immediately.  Signals are handled only
    if `fit` runs in the main thread and the program does not ignore the signal.

    Parameters
    ----------
    path : path
        The file to write.  An existing file is replaced only when the new checkpoint is complete.
    seconds : float, default=60
        Minimum time between two checkpoints, in seconds.

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
        self._written: float | None = None  # time of the last checkpoint; None outside of a fit
        self._signals = _Signals()

    def __call__(self, estimator: Any, monitor: Any) -> None:
        """Write a checkpoint if enough time has passed; the fit calls this after each step."""
        if self._written is None:
            raise ValueError(
                "A Checkpoint works only in `fit`. To save a model between calls of "
                "`partial_fit`, use annealvi.save."
            )
        self._signals.catch()  # only now: before the first step there is nothing to write
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
                "This Checkpoint is already used by another fit. Create a Checkpoint for each fit."
            )
        folder = os.path.dirname(os.path.realpath(self.path))
        if not os.path.isdir(folder):  # checked now, not at the first write, hours later
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
    """Delays signals that stop the process until a checkpoint is written."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}  # the program's handlers

    def catch(self) -> None:
        """Handle the signals from now on.  Only the main thread may set signal handlers."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):  # None: not set by Python
                self._before[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        second = self.received is not None
        self.received = number
        if second:
            self.deliver()

    def deliver(self) -> None:
        """Call the program's own handler of a delayed signal.

        `_before` is kept until the end of the fit, because a second Checkpoint of the same fit may
        call this object's handler later.
        """
        number = self.received
        self.received = None
        if number is None:
            return
        for each, handler in self._before.items():
            signal.signal(each, handler)
        signal.raise_signal(number)
        for each in self._before:  # the program's handler returned, and the fit continues
            signal.signal(each, self._note)

    def end(self) -> None:
        """Restore the program's handlers, and let them handle a delayed signal."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
        self.deliver()
