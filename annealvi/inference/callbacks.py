"""The callbacks of an estimator: one or several, and what they do at the end of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Self

from annealvi.inference.algorithm import Monitor


class Callbacks:
    """The callbacks of an estimator, called one after another.

    A callback is called as ``callback(estimator, monitor)`` after each step.  It may also have
    a method ``during_fit(estimator)`` that returns a context manager.  `fit` runs inside it, so
    that the callback can act at the end, as :class:`annealvi.checkpoint.Checkpoint` does.
    Callbacks with this method are called last: they see what the others have recorded.

    Parameters
    ----------
    callback : callable or list of callables
        The `callback` parameter of the estimator.
    estimator : object

    Raises
    ------
    TypeError
        If one of them cannot be called.
    """

    def __init__(self, callback: Any, estimator: Any) -> None:
        several = callback if isinstance(callback, list | tuple) else [callback]
        for one in several:
            if not callable(one):
                raise TypeError(
                    f"The 'callback' parameter of {type(estimator).__name__} must be None, a "
                    f"callable or a list of callables. Got {one!r}."
                )
        self._callbacks = sorted(several, key=_watches)  # in their order otherwise
        self._estimator = estimator

    @classmethod
    def of(cls, callback: Any, estimator: Any) -> Self | None:
        """Return the callbacks of an estimator, or None if it has none."""
        if callback is None or (isinstance(callback, list | tuple) and not callback):
            return None
        return cls(callback, estimator)

    def __call__(self, monitor: Monitor) -> None:
        for callback in self._callbacks:
            callback(self._estimator, monitor)

    @contextmanager
    def during_fit(self) -> Iterator[None]:
        """Return the context that `fit` runs in."""
        with ExitStack() as stack:
            for callback in filter(_watches, self._callbacks):
                stack.enter_context(callback.during_fit(self._estimator))
            yield


def during_fit(callbacks: Callbacks | None) -> AbstractContextManager[None]:
    """Return the context that a fit with these callbacks, or without any, runs in.

    Parameters
    ----------
    callbacks : Callbacks or None
    """
    return nullcontext() if callbacks is None else callbacks.during_fit()


def _watches(callback: Any) -> bool:
    return hasattr(callback, "during_fit")
