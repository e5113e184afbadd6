"""The engine that computes everything at once, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from annealvi._kernels import instruction_set


class SerialEngine:
    """Computes in this process.

    Parameters
    ----------
    n_threads : int, default=1
        Threads of a task.
    """

    n_workers = 1

    def __init__(self, n_threads: int = 1) -> None:
        self._n_threads = n_threads
        self.instruction_set = instruction_set()
        self.n_losses = 0

    def threads(self) -> int:
        """Return the number of threads of a task."""
        return self._n_threads

    def put(self, value: Any) -> Any:
        """Return the value.

        Parameters
        ----------
        value : object
        """
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any, slot: int | None = None) -> Any:
        """Return the result of a function.

        Parameters
        ----------
        function : callable
        *arguments : objects
        slot : int, optional
            Makes no difference.
        """
        return function(*arguments)

    def is_lost(self, handle: Any) -> bool:
        """Return False: a result can be made again anywhere.

        Parameters
        ----------
        handle : object
        """
        return False

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results.

        Parameters
        ----------
        handles : sequence
        """
        return list(handles)
