"""scikit-learn's callbacks, which see a fit as a tree of tasks: starts, and steps in them.

scikit-learn has them since version 1.9, see :mod:`sklearn.callback`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from annealvi.inference.algorithm import Monitor
from annealvi.inference.callbacks import Start

if TYPE_CHECKING:

    class CallbackSupport:
        """What the estimator has of scikit-learn."""

        def _init_callback_context(self, *, max_subtasks: int) -> Any: ...

    def with_callbacks(method: Callable) -> Callable: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
        from sklearn.callback import with_callbacks
    except ImportError:  # scikit-learn before 1.9
        CallbackSupport = object

        def with_callbacks(method):
            """Return the method itself: there are no callbacks to end."""
            return method


@with_callbacks
def _teardown(estimator: Any) -> None:
    """Let the callbacks end; `with_callbacks` does it when a method returns."""


class Tasks:
    """Tells the callbacks that were given to ``set_callbacks`` of a fit.

    The root task is the fit, and its leaves are the steps.  If there are several starts, each is
    a task in between.  A fitted estimator is offered after each pass and at the end of the fit.
    """

    def __init__(
        self,
        estimator: Any,
        open_root: Callable[..., Any],
        X: Any,
        y: Any,
        fitted: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._estimator, self._open_root, self._fitted = estimator, open_root, fitted
        if y is None and X is not None:
            self._shown = {"X": X, "y": lambda: np.zeros(len_of(X))}
        else:
            self._shown = {"X": X, "y": y}
        self._path: list[Any] = []  # the open tasks, from the root
        self._n_left = 0  # steps after the open one
        self._steps_per_pass = 1

    @contextmanager
    def during_fit(self, estimator: Any) -> Iterator[None]:
        """Return the context that `fit` runs in."""
        try:
            yield
            while self._path:
                self._end(fitted=len(self._path) == 1)
        finally:
            self._path = []
            _teardown(self._estimator)

    def begin(self, estimator: Any, start: Start) -> None:
        """Open the task of a start, and its first step."""
        n_left = start.n_steps - start.n_done
        several = start.n_starts > 1
        self._steps_per_pass = start.steps_per_pass
        while len(self._path) > 1:  # of the start before
            self._end(fitted=False)
        if not self._path:
            size = start.n_starts - start.number if several else n_left
            self._begin(self._open_root(max_subtasks=size))
        if several:
            self._open("start", n_left)
        self._n_left = n_left
        if n_left:
            self._open_step()

    def __call__(self, estimator: Any, monitor: Monitor) -> None:
        """Close the task of a step, and open the next; called after each step."""
        if not self._path:
            return  # a portion of `partial_fit`
        whole = monitor.step % self._steps_per_pass == 0
        stop = self._end(fitted=whole)
        if stop:
            raise StopIteration
        if self._n_left:
            self._open_step()

    def _open_step(self) -> None:
        self._n_left -= 1
        self._open("step")

    def _open(self, name: str, n_tasks: int = 0) -> None:
        self._begin(self._path[-1].subcontext(name, max_subtasks=n_tasks))

    def _begin(self, task: Any) -> None:
        self._path.append(task)
        task.call_on_fit_task_begin(estimator=self._estimator, **self._shown)

    def _end(self, fitted: bool) -> bool:
        """End the innermost task; return whether a callback wants to stop."""
        made = {"reconstruction_attributes": self._fitted} if fitted else {}
        task = self._path.pop()
        return task.call_on_fit_task_end(estimator=self._estimator, **self._shown, **made)


def len_of(X: Any) -> int:
    """Number of rows of data, which may be sparse."""
    return X.shape[0] if hasattr(X, "shape") else len(X)
