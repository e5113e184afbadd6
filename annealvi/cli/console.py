"""What a command says while it works, on stderr."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

#: Documents that the bound is computed on.
_SAMPLE = 200
#: Seconds between two reports of progress: to a terminal, and to a file.
_OFTEN, _SELDOM = 0.2, 5.0
#: The part of a fit after which the time that is left can be told.
_ENOUGH = 0.02


class Console:
    """Writes lines to stderr; a line of progress on a terminal is replaced by the next."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._shown = 0
        self.interval = _OFTEN if self._is_terminal() else _SELDOM

    def say(self, line: str) -> None:
        """Write a line that stays."""
        if not self._quiet:
            self._replace(line + "\n")
            self._shown = 0

    def progress(self, line: str) -> None:
        """Write a line that the next one replaces."""
        if self._quiet:
            return
        if self._is_terminal():
            self._replace(line)
            self._shown = len(line)
        else:
            self._replace(line + "\n")

    def clear(self) -> None:
        """Take the line of progress away."""
        if self._shown:
            self._replace("")
            self._shown = 0

    def _replace(self, text: str) -> None:
        rub = f"\r{' ' * self._shown}\r" if self._shown else ""
        sys.stderr.write(rub + text)
        sys.stderr.flush()

    def _is_terminal(self) -> bool:
        return bool(getattr(sys.stderr, "isatty", lambda: False)())


class FitProgress:
    """A callback of TemperedLDA: how far the fit is, what time is left, and the bound."""

    def __init__(self, console: Console, X: Any, what: str) -> None:
        self._console, self._what = console, what
        self._sample = X[:: max(1, X.shape[0] // _SAMPLE)]
        self._begin = self._last = time.monotonic()
        self._bound = ""
        self._pass = 0

    def __call__(self, estimator: Any, monitor: Any) -> None:
        now = time.monotonic()
        settings = estimator.settings_
        n_passes = settings["max_iter"] + settings["finish_iter"]
        done = monitor.passes / n_passes
        at = min(int(monitor.passes) + 1, n_passes)
        if now - self._last < self._console.interval or done >= 1:
            return
        self._last = now
        if at != self._pass:  # the bound changes little within a pass
            self._pass = at
            bound = -np.log(estimator.perplexity(self._sample, sub_sampling=True))
            self._bound = f", bound {bound:.3f} nats a word"
        left = ""
        if done >= _ENOUGH:
            left = f", {duration((now - self._begin) * (1 - done) / done)} left"
        self._console.progress(f"{self._what}: pass {at} of {n_passes}{left}{self._bound}")


def duration(seconds: float) -> str:
    """A length of time for people: ``12 s``, ``3 min``, ``1 h 05 min``."""
    whole = max(1, round(seconds))
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def size_of(n_bytes: int) -> str:
    """The size of a file for people."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{max(1, round(n_bytes / 1e3))} kB"
