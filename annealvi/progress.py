"""Progress: a line that shows how far something is that takes long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Self, TypeVar

Item = TypeVar("Item")

#: Seconds between two changes of a line in a terminal.
PAUSE = 0.5
#: What takes fewer seconds is not shown, unless the user has asked for a bar.
QUICK = 2.0
#: The time left is shown when this share of the steps is done.
LEAST_SHARE = 0.05


class Progress:
    """A line that says what is being done, how far it is and how long it has taken.

    A terminal or a notebook shows one line, which changes twice a second.  Other files get a new
    line each 1 to 4 seconds.  The time left is computed from the time that has passed, and is shown
    when a twentieth of the steps is done.

    Parameters
    ----------
    what : str
        What is being done.
    total : int, default=0
        The number of steps, which take about the same time, or 0 if it is unknown.
    file : file-like, default=None
        Where the line is written.  None means standard error.
    delay : float, default=2.0
        Nothing is written before this number of seconds.
    shown : bool, default=True
        Whether anything is written.
    timed : bool, default=True
        Whether the time left is written.
    """

    def __init__(
        self,
        what: str,
        total: int = 0,
        *,
        file: Any = None,
        delay: float = QUICK,
        shown: bool = True,
        timed: bool = True,
    ) -> None:
        self.total = total
        self.n_done = 0
        #: The number of steps that were done before the beginning.
        self.n_before = 0
        #: What is shown after the times.
        self.note = ""
        self._what = what
        self._file = sys.stderr if file is None else file
        self._delay = delay
        self._shown = shown
        self._timed = timed
        # a new line can replace the last one
        self._is_live = "ipykernel" in sys.modules or bool(getattr(self._file, "isatty", bool)())
        self._begin = time.monotonic()
        self._width = 0  # of the last line
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if self._shown:
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        if self._shown:
            self._thread.join()
            if self._width or not self._delay:
                self._write("\n")

    def each(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield items, which are the steps."""
        self.total = len(items)
        for item in items:
            yield item
            self.n_done += 1

    def __str__(self) -> str:
        seconds = time.monotonic() - self._begin
        passed = timedelta(seconds=int(seconds))
        if not self.total:
            return f"{self._what} [{passed}]"
        share = min(self.n_done / self.total, 1.0)
        left = "?"
        n_new = self.n_done - self.n_before
        if self._timed and n_new >= LEAST_SHARE * (self.total - self.n_before) and n_new:
            left = str(timedelta(seconds=int(seconds / n_new * (self.total - self.n_done))))
        return (
            f"{self._what}: {share:4.0%}|{'#' * round(10 * share):<10}| "
            f"{self.n_done}/{self.total} [{passed}<{left}{self.note}]"
        )

    def _watch(self) -> None:
        """Write the line again and again."""
        pause = self._delay or PAUSE
        while not self._ended.wait(pause):
            self._write("" if self._is_live else "\n")
            seconds = time.monotonic() - self._begin
            pause = PAUSE if self._is_live else min(max(seconds / 10, 1.0), 4.0)

    def _write(self, end: str) -> None:
        """Write the line, over the last one if that is possible."""
        line = str(self)
        start = "\r" if self._is_live else ""
        with suppress(OSError, ValueError):  # the file is closed
            self._file.write(f"{start}{line:<{self._width}}{end}")
            self._file.flush()
        self._width = len(line)
