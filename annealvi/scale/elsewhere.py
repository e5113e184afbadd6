"""The interface of documents in other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Elsewhere:
    """Documents in other processes, with known properties of their counts."""

    shape: tuple[int, int]
    dtype: np.dtype
    #: The sum of all counts, and the least positive count, which is infinity if there is none.
    n_words: float
    least: float
    #: Number of words that occur.
    n_used: int
    #: A hash of all counts.
    digest: str

    def __getitem__(self, rows: Any) -> Any:
        """Return documents as a CSR matrix; `rows` is a slice or an array of ascending numbers."""
        raise NotImplementedError

    def sum(self, *, dtype: Any = None) -> float:
        """Return the sum of the counts."""
        return self.n_words

    def total(
        self,
        task: Callable[..., T],
        merged: Callable[[T, T], T],
        model: Any,
        rows: slice,
        lent_engine: Callable[[int], Any],
    ) -> T:
        """Return the sum of a task's results over the shards of some documents.

        A worker calls ``task(engine, model, X, rows, number)`` for each shard X, with the engine of
        the context ``lent_engine(n_threads)``.  `merged` adds two results, and may change the
        first.
        """
        raise NotImplementedError
