"""A progress bar for a fit: the steps done, the time left, and how well the model fits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from annealvi._optional import import_optional

#: Minimum seconds between two evaluations of the bound, and the share of time they may take.
PAUSE = 0.5
SHARE = 0.02


class ProgressBar:
    """A callback that shows the progress of `fit` as a tqdm progress bar.

    The bar counts the steps of all runs, and shows the time left, the temperature and a measure of
    the fit.  For LDA the measure is the perplexity of up to 200 training documents, for a mixture
    the ELBO per sample, and for a deep model the ELBO of the last step.  This measure is computed
    at most twice a second, in about two percent of the time of the fit.  A fit with a progress bar
    has the same result, bit for bit, as a fit without one.

    With scikit-learn 1.9 or later, ``estimator.set_callbacks(sklearn.callback.ProgressBar())``
    shows scikit-learn's own bars instead, which require the package rich.  `partial_fit` shows no
    bar.  To see one, wrap the loop that calls `partial_fit` in ``tqdm.tqdm``.

    Parameters
    ----------
    desc : str, default=None
        The text in front of the bar.  None means the name of the estimator.
    file : file-like, default=None
        Where the bar is drawn.  None means standard error, or a widget in a notebook.

    Raises
    ------
    ImportError
        If tqdm is not installed.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.progress import ProgressBar
    >>> lda = TemperedLDA(n_components=20, callback=ProgressBar())
    """

    def __init__(self, desc: str | None = None, file: Any = None) -> None:
        if not isinstance(desc, str | None):
            raise TypeError(
                f"The 'desc' parameter of ProgressBar must be a str or None. Got {desc!r} instead."
            )
        if file is not None and not callable(getattr(file, "write", None)):
            raise TypeError(
                "The 'file' parameter of ProgressBar must be None or have a method 'write'. "
                f"Got {file!r} instead."
            )
        import_optional("tqdm", "ProgressBar")  # an error now, not after the data have been read
        self.desc = desc
        self.file = file
        self._outside_a_fit()

    def _outside_a_fit(self) -> None:
        self._in_use = False
        self._bar: Any = None
        self._start: Any = None
        self._monitor: Any = None
        self._due = 0.0
        self._before = 0  # number of steps of earlier runs

    def begin(self, estimator: Any, run: Any) -> None:
        """Draw the bar before the first step of the first run; update it before the other runs.

        Parameters
        ----------
        estimator : object
        run : annealvi.inference.Run
        """
        if self._bar is None:
            tqdm = import_optional("tqdm.auto", "ProgressBar").tqdm
            name = type(estimator).__name__ if self.desc is None else self.desc
            self._bar = tqdm(total=0, desc=name, unit="step", file=self.file)
        if self._start is None:
            self._before = run.n_steps * run.number
        else:  # the last part of a fit may have fewer steps
            self._before += self._start.n_steps
        self._bar.total = self._before + run.n_steps * (run.n_runs - run.number)
        done = self._before + run.n_done
        self._bar.initial += done - self._bar.n  # skipped steps of a run that ended early
        self._bar.n = done
        self._bar.refresh()
        self._start = run
        self._due = time.monotonic()

    def __call__(self, estimator: Any, monitor: Any) -> None:
        """Show that one more step is done; the fit calls this after each step."""
        if self._bar is None:  # in partial_fit
            return
        self._monitor = monitor
        now = time.monotonic()
        if now >= self._due:
            self._describe()
            self._due = now + max(PAUSE, (time.monotonic() - now) / SHARE)
        self._bar.update()

    @contextmanager
    def during_fit(self, estimator: Any) -> Iterator[None]:
        """Return a context manager in which `fit` runs, and which closes the bar afterwards.

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
            if self._bar is not None and self._monitor is not None:
                self._describe()
        finally:
            if self._bar is not None:
                self._bar.close()
            self._outside_a_fit()

    def _describe(self) -> None:
        run = self._start
        T = self._monitor.temperature
        text = f"T {T:.3g}, {run.bound_name} {run.bound():.6g}"
        if run.n_runs > 1:
            text = f"run {run.number + 1} of {run.n_runs}, {text}"
        self._bar.set_postfix_str(text, refresh=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"desc": self.desc, "file": self.file}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.desc = state["desc"]
        self.file = state["file"]
        self._outside_a_fit()

    def __repr__(self) -> str:
        return f"ProgressBar(desc={self.desc!r})"
