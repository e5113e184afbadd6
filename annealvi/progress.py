"""Progress: a line that shows how far something is that takes long."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar

Item = TypeVar("Item")

#: Seconds between two changes of a line in a terminal.
PAUSE = 0.5
#: What takes fewer seconds is not shown, unless the user has asked for a bar.
QUICK = 2.0
#: The time left is shown when this share of the steps is done.
LEAST_SHARE = 0.05
#: Formats of tqdm: of an unknown number of steps, and with and without the time left.
UNKNOWN = "{desc} [{elapsed}]"
UNTIMED = "{desc}: {percentage:3.0f}%|{bar:10}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
TIMED = UNTIMED.replace("{elapsed}", "{elapsed}<{remaining}")


class Progress:
    """A line that says what is being done, how far it is and how long it has taken.

    The line is tqdm's.  A thread draws it, because a single step can take minutes.  A terminal or a
    notebook shows one line, which changes twice a second.  Other files get a new line each 1 to 4
    seconds.  The time left is computed from the time that has passed, and is shown when a twentieth
    of the steps is done.

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
        self._is_live = "ipykernel" in sys.modules or getattr(self._file, "isatty", bool)()
        self._bar: Any = None
        self._is_drawn = not delay
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if self._shown:
            from tqdm.std import tqdm  # here, because it is not always needed

            self._bar = tqdm(
                desc=self._what,
                total=self.total or None,
                file=self._file if self._is_live else io.StringIO(),
                delay=self._delay,
                bar_format=UNKNOWN,
            )
            if (self._bar.ncols or 1) < 1:  # if a terminal does not tell its size
                self._bar.ncols = None
                self._bar.nrows = None
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        if self._shown:
            self._thread.join()
            if self._is_drawn:
                self._draw()
            self._bar.close()

    def each(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield items, which are the steps."""
        self.total = len(items)
        for item in items:
            yield item
            self.n_done += 1

    def _watch(self) -> None:
        """Draw the line again and again."""
        pause = self._delay or PAUSE
        while not self._ended.wait(pause):
            self._is_drawn = True
            self._draw()
            seconds = self._bar.format_dict["elapsed"]
            pause = PAUSE if self._is_live else min(max(seconds / 10, 1.0), 4.0)

    def _draw(self) -> None:
        """Draw the line as it is now."""
        bar = self._bar
        bar.total = self.total or None
        bar.n = min(self.n_done, self.total) if self.total else self.n_done
        bar.initial = self.n_before
        bar.set_postfix_str(self.note, refresh=False)
        if self.total:
            share = (self.n_done - self.n_before) / max(self.total - self.n_before, 1)
            bar.bar_format = TIMED if self._timed and share >= LEAST_SHARE else UNTIMED
        with suppress(OSError, ValueError):  # the file is closed
            if self._is_live:
                bar.refresh()
                bar.last_print_t = bar.start_t + bar.delay  # so that `close` keeps the line
            else:
                self._file.write(f"{bar}\n")
                self._file.flush()
