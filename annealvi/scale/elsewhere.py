"""Documents in other processes, as a fit uses them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

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


class Counted:
    """Documents of which the counts have been looked through."""

    shape: tuple[int, int]
    dtype: np.dtype
    #: The sum of all counts, and the least positive one; infinity if there is none.
    n_words: float
    least: float
    #: Number of words that occur.
    n_used: int
    #: A hash of all counts.
    digest: str


class Elsewhere(Counted):
    """Documents in other processes."""

    def __getitem__(self, rows: Any) -> Any:
        """Return documents as a CSR matrix; `rows` is a slice or an array of ascending numbers."""
        raise NotImplementedError

    def sum(self, *, dtype: Any = None) -> float:
        """The sum of the counts."""
        return self.n_words

    def total(self, task: Task[T], model: Shared, rows: slice) -> T:
        """The sum of a task's results over the shards of some documents."""
        raise NotImplementedError
