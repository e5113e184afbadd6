"""The callbacks of an estimator: one or several, and what they do around a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

from annealvi.inference.algorithm import Monitor


@dataclass(frozen=True)
class Start:
    """What is known of one start of a fit before its first step.

    Parameters
    ----------
    number, n_starts : int
        Which start it is, from 0, and how many the fit makes.
    n_done, n_steps : int
        Steps that were made before, if the fit is resumed, and the most that it can have at its
        end.
    steps_per_pass : int
    bound_name : str
        What `bound` computes, for people.
    bound : callable
        Computes the bound of the present fit, which does not change it.
    """

    number: int
    n_starts: int
    n_done: int
    n_steps: int
    steps_per_pass: int
    bound_name: str
    bound: Callable[[], float]


class Callbacks:
    """The callbacks of an estimator, called one after another.

    A callback is called as ``callback(estimator, monitor)`` after each step.  It may also have
    these methods:

    - ``during_fit(estimator)`` returns a context manager.  `fit` runs inside it, so that the
      callback can act at the end, as :class:`annealvi.checkpoint.Checkpoint` does.  Callbacks
      with this method are called last: they see what the others have recorded.
    - ``begin(estimator, start)`` is called before the first step of each start of `fit`, with a
      :class:`Start`.

    Parameters
    ----------
    callback : callable or list of callables
        The `callback` parameter of the estimator.
    estimator : object
    others : sequence of callables, default=()
        More callbacks, which the parameter does not hold.

    Raises
    ------
    TypeError
        If one of them cannot be called.
    """

    def __init__(self, callback: Any, estimator: Any, others: tuple = ()) -> None:
        several = as_list(callback)
        for one in several:
            if not callable(one):
                raise TypeError(
                    f"The 'callback' parameter of {type(estimator).__name__} must be None, a "
                    f"callable or a list of callables. Got {one!r}."
                )
        # in their order otherwise
        self._callbacks = sorted([*several, *others], key=_watches)
        self._estimator = estimator

    @classmethod
    def of(cls, callback: Any, estimator: Any, others: tuple = ()) -> Self | None:
        """Return the callbacks of an estimator, or None if it has none."""
        several = as_list(callback)
        return cls(several, estimator, others) if several or others else None

    def __call__(self, monitor: Monitor) -> None:
        for callback in self._callbacks:
            callback(self._estimator, monitor)

    def begin(self, start: Start) -> None:
        """Tell the callbacks of a start, before its first step."""
        for callback in self._callbacks:
            if hasattr(callback, "begin"):
                callback.begin(self._estimator, start)

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


def as_list(callback: Any) -> list[Any]:
    """Return the callbacks that a parameter `callback` holds."""
    if isinstance(callback, list | tuple):
        return list(callback)
    return [] if callback is None else [callback]


def _watches(callback: Any) -> bool:
    return hasattr(callback, "during_fit")
