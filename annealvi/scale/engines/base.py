"""What an engine offers to the loop of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

#: A result that stays where it was computed as long as somebody holds this object.
Handle = Any


class WorkersLostError(Exception):
    """Results cannot be had because workers have died; the step is to be done again."""


class Engine(Protocol):
    """Computes functions somewhere, and keeps the results there."""

    #: That of the kernels, the same for all workers.
    instruction_set: str
    #: How often workers were found to have gone.
    n_losses: int

    @property
    def n_workers(self) -> int:
        """See above."""

    def threads(self) -> int:
        """Return the number of threads that a task should use."""

    def put(self, value: Any) -> Handle:
        """Send a value that the tasks of a step need."""

    def submit(
        self, function: Callable[..., Any], *arguments: Any, slot: int | None = None
    ) -> Handle:
        """Compute a function of values and of other results."""

    def is_lost(self, handle: Handle) -> bool:
        """Return whether a result went with its worker, and must be submitted again."""

    def gather(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for results and return them."""
