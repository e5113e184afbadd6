"""The local step of LDA: gamma and phi of some documents, and the statistics of the topics.

**Sums over shards.**

A minibatch is cut into shards of a given number of documents.  What a step needs of each shard is
computed from the topics and the shard alone.  It is then added up in float64, over a tree whose
shape follows from the number of shards.  So the bits do not depend on the process that has a shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi.model import Batch, LocalRule, LocalStep, Tempering
from annealvi.models.lda import inverses
from annealvi.models.lda.documents import Documents, DocumentStep, energy_of_words, objective
from annealvi.models.lda.inverses import of_rows
from annealvi.models.lda.priors import DocumentPartition, LearnedPriors, Seen
from annealvi.models.lda.topics import Statistics, Topics
from annealvi.models.lda.workspace import Buffers, Call, Local, lengths
from annealvi.scale.elsewhere import Task
from annealvi.scale.tree import TreeSum


class Parts(Protocol):
    """What the local step needs of a model; :class:`annealvi.models.lda.LDA` describes them."""

    topics: Topics
    documents: Documents
    partition: DocumentPartition | None
    learned_priors: LearnedPriors | None
    buffers: Buffers

    @property
    def n_full_steps(self) -> int:
        """Number of steps of the topics with rho = 1."""


def fit_batch(
    model: Parts, batch: Batch, tempering: Tempering, moments: bool, rng: RandomState | None
) -> LocalStep:
    """Fit gamma and phi of a batch of documents; see :meth:`annealvi.models.lda.LDA.local_step`."""
    step = _Step(model, batch, tempering, rng)
    if tempering.rule is not None:
        return step.under_rule(tempering.rule, moments)
    if moments:
        return step.with_moments()
    return step.plain()


class _Step:
    """The buffers of a step, the arguments that its blocks share, and b of each document."""

    def __init__(
        self, model: Parts, batch: Batch, tempering: Tempering, rng: RandomState | None
    ) -> None:
        self.model, self.batch, self.tempering, self.rng = model, batch, tempering, rng
        topics = model.topics
        topics.notice_writes()
        _ = topics.sums  # computing these may change the version
        shape = (topics.n_features, topics.width, topics.dtype)
        self.statistics: Statistics
        weights, work, self.statistics = model.buffers.ready(*shape, topics.n_threads)
        weights.match(topics.version)
        self.statistics.clear()
        n_samples = batch.rows.stop - batch.rows.start
        self.inverse = inverses.of_documents(tempering, n_samples, topics.dtype)
        if model.learned_priors is not None:
            model.learned_priors.begin(tempering)
        documents = model.documents
        alpha, options = documents.effective_alpha(tempering), documents.options
        own = options.start == "random", options.sparsity(tempering), options.relaxation(tempering)
        self.call = Call(batch.data, weights, work, float(self.inverse[0]), alpha, *own)

    def plain(self) -> LocalStep:
        """The step without energies."""
        for rows, _, gamma, b in self._blocks():
            wanted = Local(self.statistics, deferred=rows == self.batch.rows)
            self._fit(rows, gamma, b, wanted)
        return LocalStep(self.statistics)

    def with_moments(self) -> LocalStep:
        """The step with the energies that a learned temperature needs, and log C(T).

        If log C is computed, only the batch's total energy is needed, which is cheaper.  It is
        computed from gamma - alpha = b sum_v n_v phi_v, so documents must be fitted first.
        """
        model, batch, statistics, call = self.model, self.batch, self.statistics, self.call
        inverse, partition = self.inverse, model.partition
        if partition is not None:
            partition.refresh(model.topics)
        uniform = bool(np.all(inverse == inverse[0]))
        of_batch = uniform and partition is not None and model.documents.options.max_iter > 0
        n_words = lengths(batch.data, batch.rows)
        energy = None if of_batch else np.zeros(len(inverse))
        word_energy = np.empty(model.topics.n_features) if uniform else None
        log_partition: Any = 0.0
        from_theta = 0.0
        gammas = []
        for rows, local, gamma, b in self._blocks():
            own = None if energy is None else energy[local]
            self._fit(rows, gamma, b, Local(statistics, energy=own, word_energy=word_energy))
            if partition is not None:
                log_c, theta = partition.of_batch(
                    gamma, call.alpha, n_words[local], model.topics.n_threads
                )
                log_partition, from_theta = log_partition + log_c, from_theta + theta
            gammas.append(gamma)
        of_words = 0.0 if word_energy is None else float(word_energy[statistics.words()].sum())
        step = DocumentStep(statistics, float(n_words.sum()))
        if partition is not None:
            step.log_partition = log_partition
        if energy is None:
            step.energy = from_theta / call.b0 + of_words
            return step
        step.energy = energy
        step.inverse_used = inverse
        step.bound = lambda: model.documents.bound(
            batch.data[batch.rows],
            np.concatenate(gammas),
            Tempering(inverse, self.tempering.form),
        )
        if uniform:
            step.energy_of_words = of_words
            made = model.n_full_steps
            step.moved = lambda: (
                None
                if model.n_full_steps == made
                else energy_of_words(statistics, model.topics, call.b0) - of_words
            )
        return step

    def under_rule(self, rule: LocalRule, moments: bool) -> LocalStep:
        """The step in which a rule gives each document its own temperature."""
        model, call = self.model, self.call
        partition = model.partition
        if partition is None or not np.array_equal(partition.grid.inverses, rule.inverses):
            partition = DocumentPartition(rule.inverses)
        partition.refresh(model.topics)
        n_words = lengths(self.batch.data, self.batch.rows)
        log_partition: Any = 0.0
        for rows, local, gamma, b in self._blocks():
            model.documents.heat(call, rows, gamma, b, rule, partition)
            self._fit(rows, gamma, b, Local(self.statistics))
            if moments:
                log_c, _ = partition.of_batch(
                    gamma, call.alpha, n_words[local], model.topics.n_threads
                )
                log_partition = log_partition + log_c
        step = DocumentStep(self.statistics, float(n_words.sum()))
        step.inverse = self.inverse
        if moments:
            step.log_partition = log_partition
        return step

    def _blocks(self) -> Iterator[tuple[slice, slice, NDArray, NDArray]]:
        """Yield the blocks of the batch: rows, rows in the batch, gamma at its start, and b."""
        documents, begin = self.model.documents, self.batch.rows.start
        for rows in documents.blocks(self.batch.rows):
            local = slice(rows.start - begin, rows.stop - begin)
            yield rows, local, documents.start(rows, self.rng), self.inverse[local]

    def _fit(self, rows: slice, gamma: NDArray, b: NDArray, wanted: Local) -> None:
        self.model.documents.fit_block(self.call, rows, gamma, b, wanted)
        if self.model.learned_priors is not None:
            self.model.learned_priors.add(gamma, self.call.alpha)


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
