"""Sums over shards of documents, the same wherever a shard is.

A minibatch is cut into shards of a given number of documents.  What a step needs of each shard is
computed from the topics and the shard alone.  It is then added up in float64, over a tree whose
shape follows from the number of shards.  So the bits do not depend on the process that has a shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi.model import Batch, Tempering
from annealvi.models.lda.document_step import DocumentStep
from annealvi.models.lda.inverses import of_rows
from annealvi.models.lda.learned_priors import Seen
from annealvi.models.lda.local_step import Parts, fit_batch
from annealvi.models.lda.sparse_documents import objective
from annealvi.scale.elsewhere import Task
from annealvi.scale.tree import TreeSum

T = TypeVar("T")
#: A shard with at least this share of the vocabulary has rows for all words.
DENSE_SHARE = 0.5


def total(task: Task[T], model: Any, X: Any, rows: slice, size: int) -> T:
    """Sum a task's results over the shards of some documents."""
    starts = range(rows.start, rows.stop, size)
    tree = TreeSum(len(starts), task.merged)
    for number, start in enumerate(starts):
        shard = slice(start, min(start + size, rows.stop))
        tree.add(number, task(model, X, shard, number))
    return tree.total()


class ShardSum(NamedTuple):
    """What the local step of some shards hands on."""

    #: Which words the shards have.
    seen_words: NDArray[np.bool_]
    #: Their statistics, in float64 if they are sums.  Shards with most words have rows for all,
    #: of zeros for the others: these are added faster.
    rows: NDArray
    #: Number of words in the documents, if energies are wanted.
    n_units: float | None = None
    #: The energy, and that of words alone at the topics of the step; in nats.
    energy: float | None = None
    energy_of_words: float | None = None
    log_partition: NDArray[np.float64] | None = None
    #: What priors are learned from.
    seen: Seen | None = None
    #: The inverse temperatures that a rule has found.
    inverse: NDArray | None = None


@dataclass(frozen=True)
class Fit:
    """The local step of training, as a task."""

    #: With one inverse temperature for all.
    tempering: Tempering
    moments: bool
    #: Seeds of the generators for ``start="random"``.
    seeds: NDArray[np.int64] | None = None

    def __call__(self, model: Parts, X: Any, rows: slice, number: int) -> ShardSum:
        rng = None if self.seeds is None else RandomState(int(self.seeds[number]))
        step = fit_batch(model, Batch(X, rows), self.tempering, self.moments, rng)
        learned = model.learned_priors
        seen_words, rows_of_words = step.statistics.seen(DENSE_SHARE)
        seen = None if learned is None else learned.seen
        if not isinstance(step, DocumentStep):
            return ShardSum(seen_words, rows_of_words, seen=seen)
        return ShardSum(
            seen_words,
            rows_of_words,
            step.n_units,
            None if step.energy is None else float(np.sum(step.energy)),
            step.energy_of_words,
            step.log_partition,
            seen,
            step.inverse,
        )

    def merged(self, one: ShardSum, other: ShardSum) -> ShardSum:
        seen_words, rows = _sum_of_rows(one, other)
        inverse = None
        if one.inverse is not None and other.inverse is not None:
            inverse = np.concatenate([one.inverse, other.inverse])
        seen = other.seen if one.seen is None else one.seen.plus(other.seen)
        added = {name: _sum(getattr(one, name), getattr(other, name)) for name in _ADDED}
        return ShardSum(seen_words, rows, seen=seen, inverse=inverse, **added)


#: Fields that are numbers or arrays to add up, or None.
_ADDED = ("n_units", "energy", "energy_of_words", "log_partition")


def _sum(one: Any, other: Any) -> Any:
    return None if one is None else one + other


def _sum_of_rows(one: ShardSum, other: ShardSum) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """The rows of all words, in float64."""
    seen_words = one.seen_words | other.seen_words
    n_words, longest = int(np.count_nonzero(seen_words)), max(len(one.rows), len(other.rows))
    if longest < len(seen_words):  # none has rows for all
        longest = n_words
    if len(one.rows) == len(other.rows) == longest:
        out = one.rows if one.rows.dtype == np.float64 else None
        return seen_words, np.add(one.rows, other.rows, out=out, dtype=np.float64)
    total = np.zeros((longest, one.rows.shape[1]))
    places = np.arange(longest) if longest == len(seen_words) else np.cumsum(seen_words) - 1
    for part in (one, other):
        own = len(part.rows) == longest
        total[slice(None) if own else places[part.seen_words]] += part.rows
    return seen_words, total


class Addition:
    """The sum of two results that are numbers, or arrays of one shape."""

    def merged(self, one: Any, other: Any) -> Any:
        return one + other


@dataclass(frozen=True)
class Bound(Addition):
    """The bound of documents whose gamma is inferred, as a task; in nats."""

    #: Of the fit, and of the bound.
    tempering: Tempering
    at: Tempering
    n_threads: int | None = None
    #: Output array, if the documents are in this process.
    gamma: NDArray | None = None

    def __call__(self, model: Parts, X: Any, rows: slice, number: int) -> float:
        return model.documents.inferred_bound(
            X[rows],
            of_rows(self.tempering, rows),
            of_rows(self.at, rows),
            n_threads=self.n_threads,
            gamma=_rows_of(self.gamma, rows),
        )


@dataclass(frozen=True)
class Objective(Addition):
    """The documents' part of the objective of training, as a task; in nats."""

    tempering: Tempering
    #: If the documents are in this process; by default that of their local step.
    gamma: NDArray | None = None

    def __call__(self, model: Parts, X: Any, rows: slice, number: int) -> float:
        gamma, tempering = _rows_of(self.gamma, rows), of_rows(self.tempering, rows)
        return float(np.sum(objective(model.documents, _some(X, rows), gamma, tempering)))


@dataclass(frozen=True)
class Moments(Addition):
    """The bound of documents, their energy and log C, all at one gamma, as a task; in nats.

    Its result is an array of these, 2 + M numbers.
    """

    tempering: Tempering
    #: Inverse temperatures of log C; there may be none.
    inverse: NDArray[np.float64]
    #: If the documents are in this process; by default it is inferred.
    gamma: NDArray | None = None

    def __call__(self, model: Parts, X: Any, rows: slice, number: int) -> NDArray[np.float64]:
        documents, some, tempering = model.documents, _some(X, rows), of_rows(self.tempering, rows)
        gamma = _rows_of(self.gamma, rows)
        if gamma is None:
            gamma = documents.infer(some, tempering)
        sums = [documents.bound(some, gamma, tempering), documents.energies(some, gamma, tempering)]
        log_c = np.zeros(0)
        if len(self.inverse):
            log_c = documents.posterior_log_partition(self.inverse, some, gamma)
        return np.concatenate([[np.sum(part) for part in sums], log_c])


def _some(X: Any, rows: slice) -> Any:
    """Some documents, without a copy if they are all."""
    return X if rows == slice(0, X.shape[0]) else X[rows]


def _rows_of(gamma: NDArray | None, rows: slice) -> NDArray | None:
    return None if gamma is None else gamma[rows]
