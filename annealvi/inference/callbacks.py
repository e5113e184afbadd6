"""The callbacks of an estimator: those of annealvi, and those of scikit-learn 1.9 or later.

In scikit-learn's callbacks a fit is a tree of tasks: a fit contains runs, and each run contains
steps (:mod:`sklearn.callback`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from annealvi.inference.algorithm import Monitor


@dataclass(frozen=True)
class Run:
    """Facts about one run of a fit, known before its first step.

    Parameters
    ----------
    number, n_runs : int
        The number of the run, counted from 0, and the number of runs in the fit.
    n_done, n_steps : int
        The number of steps made before the fit was resumed (or 0), and the maximum number of steps.
    steps_per_pass : int
    n_before, n_all : int
        The number of steps of the runs before this one, and of the whole fit, where a pass over all
        data counts as `steps_per_pass` steps.
    bound_name : str
        The name of the value that `bound` returns, for example ``"perplexity"``.
    bound : callable
        Computes the perplexity or ELBO of the current fit, without changing the fit.
    """

    number: int
    n_runs: int
    n_done: int
    n_steps: int
    steps_per_pass: int
    n_before: int
    n_all: int
    bound_name: str
    bound: Callable[[], float]


class Callbacks:
    """The callbacks of an estimator, which are called one after another.

    A callback is called as ``callback(estimator, monitor)`` after each step.  A callback may also
    have these methods:

    - ``during_fit(estimator)`` returns a context manager in which `fit` runs, so that the callback
      can act at the end of the fit, as :class:`annealvi.callbacks.Checkpoint` does.  Callbacks
      with this method are called last, so that they can read the records of the other callbacks.
    - ``begin(estimator, run)`` is called with a :class:`Run` before the first step of each run of
      `fit`.

    Parameters
    ----------
    callback : callable or list of callables
        The `callback` parameter of the estimator.
    estimator : object
    others : sequence of callables, default=()
        Additional callbacks.

    Raises
    ------
    TypeError
        If a callback is not callable.
    """

    def __init__(self, callback: Any, estimator: Any, others: tuple = ()) -> None:
        """Check the user's callbacks, and add `others`."""
        callbacks = as_list(callback)
        for user_callback in callbacks:
            if not callable(user_callback):
                raise TypeError(
                    f"The 'callback' parameter of {type(estimator).__name__} must be None, a "
                    f"callable or a list of callables. Got {user_callback!r}."
                )
        # callbacks with `during_fit` come last; otherwise the order is not changed
        self._callbacks = sorted([*callbacks, *others], key=_has_during_fit)
        self._estimator = estimator

    def __len__(self) -> int:
        """The number of callbacks, by which an object without callbacks is false."""
        return len(self._callbacks)

    def __call__(self, monitor: Monitor) -> None:
        """Call the callbacks after a step."""
        for callback in self._callbacks:
            callback(self._estimator, monitor)

    def begin(self, run: Run) -> None:
        """Inform the callbacks about a run, before its first step."""
        for callback in self._callbacks:
            if hasattr(callback, "begin"):
                callback.begin(self._estimator, run)

    @contextmanager
    def during_fit(self) -> Iterator[None]:
        """Return the context that `fit` runs in."""
        with ExitStack() as stack:
            # ExitStack leaves all contexts in reverse order, even after an error
            for callback in filter(_has_during_fit, self._callbacks):
                stack.enter_context(callback.during_fit(self._estimator))
            yield


def as_list(callback: Any) -> list[Any]:
    """Return the callbacks of a parameter that may be None, a callback, a list or a tuple."""
    if isinstance(callback, list | tuple):
        return list(callback)
    return [] if callback is None else [callback]


def _has_during_fit(callback: Any) -> bool:
    """Whether a callback must be informed of the end of a fit."""
    return hasattr(callback, "during_fit")


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9
    CallbackSupport = object

    def with_callbacks(method: Callable) -> Callable:
        """Return the method itself, because there are no callbacks to tear down."""
        return method


@with_callbacks
def _teardown(estimator: Any) -> None:
    """Tear down the callbacks; `with_callbacks` does it when the decorated method returns."""


class Tasks:
    """Informs callbacks that were passed to ``set_callbacks`` about the tasks of a fit.

    The root task is the fit, its subtasks are the runs (if there are several), and the leaves are
    the steps.  Callbacks can get a fitted estimator after each pass and after the fit.
    """

    def __init__(
        self,
        estimator: Any,
        open_root_task: Callable[..., Any],
        X: Any,
        y: Any,
        fitted_attributes: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        """Prepare the tasks of a fit to X and y.

        `open_root_task` makes the root task.  `fitted_attributes` returns the attributes by which
        callbacks can make a fitted copy of the estimator.
        """
        self._estimator = estimator
        self._open_root_task = open_root_task
        self._fitted_attributes = fitted_attributes
        self._data_for_callbacks = {"X": X, "y": y}
        if y is None and X is not None:
            # scikit-learn's callbacks may require a y; a function, so that zeros are made if needed
            self._data_for_callbacks["y"] = lambda: np.zeros(
                X.shape[0] if hasattr(X, "shape") else len(X)
            )
        self._open_tasks: list[Any] = []  # from the root to the innermost task
        self._n_steps_left = 0  # after the open step
        self._steps_per_pass = 1

    @contextmanager
    def during_fit(self, estimator: Any) -> Iterator[None]:
        """Return the context that `fit` runs in."""
        try:
            yield
            # after an error, tasks are not ended, only torn down
            while self._open_tasks:
                # from the innermost task; the last is the root, after which the model is fitted
                self._end(is_fitted=len(self._open_tasks) == 1)
        finally:
            self._open_tasks = []
            # scikit-learn then informs its callbacks that the fit is over
            _teardown(self._estimator)

    def begin(self, estimator: Any, run: Run) -> None:
        """Open the task of a run, and its first step."""
        self._n_steps_left = run.n_steps - run.n_done
        self._steps_per_pass = run.steps_per_pass
        has_runs = run.n_runs > 1  # otherwise the steps are subtasks of the fit itself
        while len(self._open_tasks) > 1:  # tasks of the previous run
            self._end(is_fitted=False)
        if not self._open_tasks:
            # a fit that was resumed has only the runs from run.number on
            n_subtasks = run.n_runs - run.number if has_runs else self._n_steps_left
            self._begin(self._open_root_task(max_subtasks=n_subtasks))
        if has_runs:
            self._begin(self._open_tasks[-1].subcontext("run", max_subtasks=self._n_steps_left))
        self._open_step()

    def __call__(self, estimator: Any, monitor: Monitor) -> None:
        """Close the task of a step, and open the task of the next step."""
        if not self._open_tasks:
            return  # a step of `partial_fit`, which has no tasks
        # a fitted model is passed after each pass
        if self._end(is_fitted=monitor.step % self._steps_per_pass == 0):
            raise StopIteration  # the fit stops, because a callback requests it
        self._open_step()

    def _open_step(self) -> None:
        """Open the task of the next step, unless all steps were made."""
        if self._n_steps_left:
            self._n_steps_left -= 1
            self._begin(self._open_tasks[-1].subcontext("step", max_subtasks=0))

    def _begin(self, task: Any) -> None:
        """Open a task in the innermost open task, and inform the callbacks."""
        self._open_tasks.append(task)
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data_for_callbacks)

    def _end(self, is_fitted: bool) -> bool:
        """End the innermost task; return whether a callback requests that the fit stops.

        If `is_fitted`, callbacks can make a fitted copy of the estimator, from attributes that
        scikit-learn calls reconstruction attributes.
        """
        attributes = {"reconstruction_attributes": self._fitted_attributes} if is_fitted else {}
        task = self._open_tasks.pop()
        return task.call_on_fit_task_end(
            estimator=self._estimator, **self._data_for_callbacks, **attributes
        )
