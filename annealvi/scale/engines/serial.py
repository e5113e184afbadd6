"""The engine that computes everything at once, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from annealvi._kernels import instruction_set


class SerialEngine:
    """Computes in this process."""

    n_workers = 1

    def __init__(self, n_threads: int = 1) -> None:
        self._n_threads = n_threads
        self.instruction_set = instruction_set()
        self.n_losses = 0

    def threads(self) -> int:
        """Return the number of threads of a task."""
        return self._n_threads

    def put(self, value: Any) -> Any:
        """Return the value."""
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any, slot: int | None = None) -> Any:
        """Return the result of a function."""
        return function(*arguments)

    def is_lost(self, handle: Any) -> bool:
        """Return False: a result can be made again anywhere."""
        return False

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results."""
        return list(handles)
