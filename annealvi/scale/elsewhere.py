"""Documents in other processes, as a fit uses them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

T = TypeVar("T")


class Task(Protocol[T]):
    """What is computed of each shard of the documents, and how two results are added."""

    def __call__(self, model: Any, X: Any, rows: slice, number: int) -> T:
        """Return the result of a shard."""

    def merged(self, one: T, other: T) -> T:
        """Return the sum of two results; it may change the first."""


class Shared(Protocol):
    """A model that other processes get a copy of."""

    def working(self, n_threads: int) -> AbstractContextManager[Any]:
        """Return the context of some tasks, with a model that one thread may use."""


@runtime_checkable
class Counted(Protocol):
    """Documents of which the counts have been looked through."""

    @property
    def shape(self) -> tuple[int, int]:
        """See above, as for the others."""

    @property
    def dtype(self) -> np.dtype:
        """See above."""

    @property
    def n_words(self) -> float:
        """See above."""

    @property
    def least(self) -> float:
        """See above."""

    @property
    def n_used(self) -> int:
        """See above."""

    @property
    def digest(self) -> str:
        """See above."""


@runtime_checkable
class Elsewhere(Counted, Protocol):
    """Documents in other processes."""

    def __getitem__(self, rows: Any) -> Any:
        """Return documents as a CSR matrix; `rows` is a slice or an array of ascending numbers."""

    def sum(self, *, dtype: Any = None) -> float:
        """The sum of the counts."""

    def total(self, task: Task[T], model: Shared, rows: slice) -> T:
        """The sum of a task's results over the shards of some documents."""
