"""Interfaces of documents in other processes, and of tasks that are computed there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np

T = TypeVar("T")


class Task(Protocol[T]):
    """A function that is computed for each shard of the documents, and a sum of two results."""

    def __call__(self, model: Any, X: Any, rows: slice, number: int) -> T:
        """Return the result of a shard."""

    def merged(self, one: T, other: T) -> T:
        """Return the sum of two results; it may change the first."""


class Shared(Protocol):
    """A model that can be copied to other processes."""

    def working(self, n_threads: int) -> AbstractContextManager[Any]:
        """Return a context for tasks, with a copy of the model that one thread may use."""


class Counted:
    """Documents with known properties of their counts."""

    shape: tuple[int, int]
    dtype: np.dtype
    #: The sum of all counts, and the least positive count, which is infinity if there is none.
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
        """Return the sum of the counts."""
        return self.n_words

    def total(self, task: Task[T], model: Shared, rows: slice) -> T:
        """Return the sum of a task's results over the shards of some documents."""
        raise NotImplementedError
