"""What an engine offers to the loop of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

#: A result that stays where it was computed as long as somebody holds this object.
Handle = Any


class WorkersLostError(Exception):
    """Results cannot be had because workers have died; the step is to be done again."""


class Engine(Protocol):
    """Computes functions somewhere, and keeps the results there.

    Attributes
    ----------
    n_workers : int
        Workers that there are now: into so many parts a step is cut.
    instruction_set : str
        That of the kernels, the same for all workers.
    n_losses : int
        How often workers were found to have gone.
    """

    instruction_set: str
    n_losses: int

    @property
    def n_workers(self) -> int:
        """See above."""

    def threads(self) -> int:
        """Return the number of threads that a task should use."""

    def put(self, value: Any) -> Handle:
        """Send a value that the tasks of a step need.

        Parameters
        ----------
        value : object
        """

    def submit(
        self, function: Callable[..., Any], *arguments: Any, slot: int | None = None
    ) -> Handle:
        """Compute a function of values and of other results.

        Parameters
        ----------
        function : callable
        *arguments : objects, handles or lists of handles
        slot : int, optional
            Tasks of the same slot should have the same worker.
        """

    def is_lost(self, handle: Handle) -> bool:
        """Return whether a result went with its worker, and must be submitted again.

        Parameters
        ----------
        handle : Handle
        """

    def gather(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for results and return them.

        Parameters
        ----------
        handles : sequence of Handle

        Raises
        ------
        WorkersLostError
            If results are lost with their workers.
        """
