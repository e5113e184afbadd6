"""Callbacks that come with annealvi: checkpoints, a progress bar and the held-out likelihood.

A callback is a function that `fit` calls after each step, set by the parameter `callback` of an
estimator.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from os import PathLike, fsdecode
from typing import Any

from scipy.sparse import issparse
from sklearn.utils._param_validation import validate_parameter_constraints

from annealvi.checks import Interval, as_float, checked
from annealvi.exceptions import BadParameter
from annealvi.inference import Monitor
from annealvi.matrices import sound_csr
from annealvi.metrics.held_out import SPLIT, document_completion
from annealvi.progress import PAUSE, Progress

#: The share of time that evaluations of the bound of a progress bar may take.
SHARE = 0.02
#: The signals that stop a process; only Windows has SIGBREAK, for Ctrl-Break.
STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
]


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
    >>> from annealvi.callbacks import Checkpoint
    >>> lda = TemperedLDA(callback=Checkpoint("run.safetensors", seconds=60))
    """

    @checked
    def __init__(self, path: str | PathLike, seconds: float = 60) -> None:
        allowed = Interval(Real, 0, None, closed="left")
        if isinstance(seconds, bool) or not allowed.is_satisfied_by(seconds):
            raise BadParameter("seconds", str(allowed), seconds)
        self.path: str = fsdecode(path)
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
        for number in STOPPING:
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


class ProgressBar:
    """A callback that shows the progress of `fit` on standard error.

    The bar counts the steps of all runs, and shows the time that has passed and that is left, the
    temperature and a measure of the fit.  A pass over all data counts as the steps of a pass over
    minibatches.  For LDA the measure is the perplexity of up to 200 training documents, for a
    mixture the ELBO per sample, and for a deep model the ELBO of the last step.  This measure is
    computed at most twice a second, in about two percent of the time of the fit.  A fit with a
    progress bar has the same result, bit for bit, as a fit without one.

    With scikit-learn 1.9 or later, ``estimator.set_callbacks(sklearn.callback.ProgressBar())``
    shows scikit-learn's own bars instead, which require the package rich.  `partial_fit` shows no
    bar.

    Parameters
    ----------
    desc : str, default=None
        The text in front of the bar.  None means the name of the estimator.
    file : file-like, default=None
        Where the bar is drawn.  None means standard error.
    delay : float, default=0.0
        Nothing is drawn before this number of seconds.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.callbacks import ProgressBar
    >>> lda = TemperedLDA(n_components=20, callback=ProgressBar())
    """

    def __init__(self, desc: str | None = None, file: Any = None, delay: float = 0.0) -> None:
        if not isinstance(desc, str | None):
            raise TypeError(
                f"The 'desc' parameter of ProgressBar must be a str or None. Got {desc!r} instead."
            )
        if file is not None and not callable(getattr(file, "write", None)):
            raise TypeError(
                "The 'file' parameter of ProgressBar must be None or have a method 'write'. "
                f"Got {file!r} instead."
            )
        seconds: Any = delay  # of any type
        if not isinstance(seconds, Real) or not 0 <= as_float(seconds) < threading.TIMEOUT_MAX:
            raise TypeError(
                "The 'delay' parameter of ProgressBar must be a number of seconds, at least 0. "
                f"Got {delay!r} instead."
            )
        self.desc = desc
        self.file = file
        self.delay = float(delay)
        self._outside_a_fit()

    def _outside_a_fit(self) -> None:
        self._in_use = False
        self._line: Progress | None = None
        self._run: Any = None
        self._monitor: Any = None
        self._due = 0.0

    def begin(self, estimator: Any, run: Any) -> None:
        """Draw the bar before the first step of the first run; update it before the other runs.

        Parameters
        ----------
        estimator : object
        run : annealvi.inference.Run
        """
        n_done = run.n_before + run.n_done
        if self._line is None:
            name = type(estimator).__name__ if self.desc is None else self.desc
            self._line = Progress(name, run.n_all, file=self.file, delay=self.delay)
            self._line.n_before = n_done
            self._line.__enter__()
        # without the steps that runs left out because they ended early
        self._line.n_before += n_done - max(self._line.n_done, self._line.n_before)
        self._line.n_done = n_done
        self._run = run
        self._due = time.monotonic()

    def __call__(self, estimator: Any, monitor: Any) -> None:
        """Show that one more step is done; the fit calls this after each step."""
        if self._line is None:  # in partial_fit
            return
        self._monitor = monitor
        now = time.monotonic()
        if now >= self._due:
            self._describe()
            self._due = now + max(PAUSE, (time.monotonic() - now) / SHARE)
        self._line.n_done += max(round(monitor.last_advance * self._run.steps_per_pass), 1)

    @contextmanager
    def during_fit(self, estimator: Any) -> Iterator[None]:
        """Return a context manager in which `fit` runs, and which ends the bar afterwards.

        Parameters
        ----------
        estimator : object
        """
        if self._in_use:
            raise ValueError(
                "This ProgressBar is already used by another fit. "
                "Create a ProgressBar for each fit."
            )
        self._in_use = True
        try:
            yield
            if self._monitor is not None:  # only if there is a line
                self._describe()
        finally:
            if self._line is not None:
                self._line.__exit__()
            self._outside_a_fit()

    def _describe(self) -> None:
        run = self._run
        T = self._monitor.temperature
        text = f"T {T:.3g}, {run.bound_name} {run.bound():.6g}"
        if run.n_runs > 1:
            text = f"run {run.number + 1} of {run.n_runs}, {text}"
        if self._line is not None:
            self._line.note = text

    def __reduce__(self) -> Any:
        return type(self), (self.desc, self.file, self.delay)

    def __repr__(self) -> str:
        return f"ProgressBar(desc={self.desc!r})"


class HeldOut:
    """A callback that records the held-out likelihood during a fit.

    The values are stored in the estimator's ``history_["held_out_log_likelihood"]``.  For a
    learning curve, plot them over ``history_["pass"]`` or ``history_["seconds"]``.  The seconds do
    not include the evaluations.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Word counts of held-out documents.  X is not copied, so do not change it.
    every : float, default=1.0
        Number of passes between two evaluations.
    observed, random_state
        See :func:`annealvi.metrics.document_completion`.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> from annealvi.callbacks import HeldOut
    >>> X = load_arxiv_abstracts().data
    >>> lda = TemperedLDA(5, max_iter=2, n_init=1, temperature=1, random_state=0,
    ...                   callback=HeldOut(X[2700:]))
    >>> lda.fit(X[:2700]).history_["held_out_log_likelihood"].shape
    (2,)
    """

    def __init__(
        self, X: Any, *, every: float = 1.0, observed: float = 0.5, random_state: Any = 0
    ) -> None:
        constraints = SPLIT | {"every": [Interval(Real, 0, None, closed="neither")]}
        validate_parameter_constraints(
            constraints,
            {"every": every, "observed": observed, "random_state": random_state},
            "HeldOut",
        )
        if issparse(X):
            sound_csr(X)  # an error now, not after a pass of the fit
        self.X = X
        self.every = every
        self.observed = observed
        self.random_state = random_state

    def __call__(self, estimator: Any, monitor: Monitor) -> None:
        before = monitor.passes - monitor.last_advance
        # with a small tolerance, because passes are sums of fractions
        every = max(float(self.every), 1e-9)
        if int((monitor.passes + 1e-9) / every) > int((before + 1e-9) / every):
            score = document_completion(
                estimator, self.X, observed=self.observed, random_state=self.random_state
            )
            monitor.record(held_out_log_likelihood=float(score))
