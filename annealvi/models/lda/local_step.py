"""The local step of LDA: gamma and phi of some documents, and sums of phi that update the topics.

**Sums over shards.**

A minibatch is cut into shards of a given number of documents.  The result of each shard depends
only on the topics and the shard.  Results are added up in float64, in an order that depends only on
the number of shards.  So it does not matter which process computes a shard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi.matrices import lengths
from annealvi.model import Batch, LocalStep, Tempering
from annealvi.models.lda.documents import BLOCK_BYTES, TRAINING_ENTRIES, Documents
from annealvi.models.lda.priors import DocumentPartition, LearnedPriors, Seen
from annealvi.models.lda.topics import Statistics, Topics
from annealvi.models.lda.workspace import Buffers, Call, Local, inverse_of_each, of_rows
from annealvi.scale.elsewhere import Task
from annealvi.scale.tree import TreeSum


class Parts(Protocol):
    """The parts of a model that the local step uses; see :class:`annealvi.models.lda.LDA`."""

    topics: Topics
    documents: Documents
    partition: DocumentPartition | None
    learned_priors: LearnedPriors | None
    buffers: Buffers

    @property
    def n_full_steps(self) -> int:
        """Number of steps of the topics with rho = 1."""


class DocumentStep(LocalStep):
    """A local step whose units are words; its energy is computed at the current topics."""

    unit = "word"

    def __init__(
        self,
        model: Parts,
        statistics: Statistics,
        n_units: float,
        energy: NDArray[np.float64] | float | None,
        log_partition: NDArray[np.float64] | None,
        inverse: NDArray | None,
        of_words: float | None,
        b: float,
    ) -> None:
        self.statistics, self.n_units = statistics, n_units
        self.log_partition, self.inverse = log_partition, inverse
        #: The part of words in the energy, at the topics of the step, or None if it is not needed.
        self.of_words = of_words
        self._model, self._b, self._made, self._energy = model, b, model.n_full_steps, energy

    @property
    def energy(self) -> NDArray[np.float64] | float | None:  # type: ignore[override]
        if self.of_words is None or self._energy is None or self._model.n_full_steps == self._made:
            return self._energy
        moved = energy_of_words(self.statistics, self._model.topics, self._b) - self.of_words
        return float(np.sum(self._energy)) + moved


def energy_of_words(statistics: Statistics, topics: Topics, b: float) -> float:
    """Compute sum_dkv n_dv phi_dvk E log beta_kv from statistics, at the current topics."""
    K, total, lam = topics.n_topics, 0.0, topics.lam
    words = statistics.words()
    for some in np.array_split(words, max(1, 8 * K * len(words) // BLOCK_BYTES)):
        logs = topics.logs(lam[some, :K])
        total += float(np.sum(statistics.rows(some, K) * logs))
    return total / b


def fit_batch(
    model: Parts, batch: Batch, tempering: Tempering, moments: bool, rng: RandomState | None
) -> LocalStep:
    """Fit gamma and phi of a batch of documents; see :meth:`annealvi.models.lda.LDA.local_step`.

    The energies, from which a temperature is learned, are computed if `moments` is true and no
    :class:`annealvi.model.LocalRule` computes the temperatures.  If log C is also computed and all
    documents have the same T, only the total energy of the batch is computed.  Its terms with theta
    are then computed from gamma without phi (see :meth:`DocumentPartition.of_batch`).
    """
    topics, documents, learned = model.topics, model.documents, model.learned_priors
    options, rule, partition = documents.options, tempering.rule, model.partition
    there = None if topics.on_device is None else topics.on_device.device
    weights, work, statistics = model.buffers.ready(*topics.shape, topics.n_threads, there)
    if weights is not None:
        weights.match(topics.version)
    statistics.clear()
    inverse = inverse_of_each(tempering, batch.rows.stop - batch.rows.start, topics.dtype)
    own = options.start == "random", options.sparsity(tempering), options.relaxation(tempering)
    alpha, b0 = documents.effective_alpha(tempering), float(inverse[0])
    call = Call(batch.data, topics, weights, work, b0, alpha, *own)
    if learned is not None:
        learned.begin(tempering)
    if rule is not None:
        if partition is None or not np.array_equal(partition.grid.inverses, rule.inverses):
            partition = DocumentPartition(rule.inverses)
    elif not moments:
        partition = None
    if partition is not None:
        partition.refresh(topics)
    energies = moments and rule is None
    uniform = energies and bool(np.all(inverse == inverse[0]))
    of_batch = uniform and partition is not None and options.max_iter > 0
    energy: Any = np.zeros(len(inverse)) if energies and not of_batch else None
    word_energy = np.empty(topics.n_features) if uniform else None
    n_words = lengths(batch.data, batch.rows)
    looked_at = options.start != "constant" or learned is not None or partition is not None
    log_c: Any = 0.0
    from_theta = 0.0
    for rows in documents.blocks(batch.rows, batch.data.indptr, TRAINING_ENTRIES):
        local = slice(rows.start - batch.rows.start, rows.stop - batch.rows.start)
        # on a GPU, gamma is not allocated here unless something on the host needs it
        gamma: Any = documents.start(rows, rng) if looked_at or there is None else None
        b = inverse[local]
        if rule is not None and partition is not None:
            documents.heat(call, rows, gamma, b, rule, partition)
        deferred = rule is None and not moments and rows == batch.rows
        of_documents = None if energy is None else energy[local]
        wanted = Local(statistics, None, of_documents, word_energy, deferred)
        documents.fit_block(call, rows, gamma, b, wanted)
        if learned is not None:
            learned.add(gamma, alpha)
        if moments and partition is not None:
            of_theta, theta = partition.of_batch(gamma, alpha, n_words[local], topics.n_threads)
            log_c, from_theta = log_c + of_theta, from_theta + theta
    if rule is None and not moments:
        return LocalStep(statistics)
    of_words = None if word_energy is None else float(word_energy[statistics.words()].sum())
    if of_batch and of_words is not None:
        energy, of_words = from_theta / b0 + of_words, None
    log_c = log_c if moments and partition is not None else None
    found = float(n_words.sum()), energy, log_c, inverse if rule is not None else None, of_words
    return DocumentStep(model, statistics, *found, b0)


T = TypeVar("T")
#: The result of a shard has rows for all words if at least this share of the words occurs in it.
DENSE_SHARE = 0.5


def total(task: Task[T], model: Any, X: Any, rows: slice, size: int) -> T:
    """Compute the sum of a task's results over the shards of some documents."""
    starts = range(rows.start, rows.stop, size)
    tree = TreeSum(len(starts), task.merged)
    for number, start in enumerate(starts):
        shard = slice(start, min(start + size, rows.stop))
        tree.add(number, task(model, X, shard, number))
    return tree.total()


class ShardSum(NamedTuple):
    """The results of the local step for one or more shards."""

    #: Which words occur in the shards.
    seen_words: NDArray[np.bool_]
    #: The statistics of these words, in float64 if they are sums.  If most words occur, there are
    #: rows for all words, because such arrays are added faster.
    rows: NDArray
    #: Number of words in the documents, if energies are wanted.
    n_units: float | None = None
    #: The energy, and the part of words in it at the topics of the step, both in nats.
    energy: float | None = None
    of_words: float | None = None
    log_partition: NDArray[np.float64] | None = None
    #: The sums from which priors are learned.
    seen: Seen | None = None
    #: The inverse temperatures of documents that a rule has computed.
    inverse: NDArray | None = None


@dataclass(frozen=True)
class FitShard:
    """The local step of training, as a task for shards."""

    #: The tempering, with one inverse temperature for all documents.
    tempering: Tempering
    moments: bool
    #: The random seed for each shard, with ``start="random"``.
    seeds: NDArray[np.int64] | None = None

    def __call__(self, model: Parts, X: Any, rows: slice, number: int) -> ShardSum:
        rng = None if self.seeds is None else RandomState(int(self.seeds[number]))
        step = fit_batch(model, Batch(X, rows), self.tempering, self.moments, rng)
        learned = model.learned_priors
        seen_words, rows_of_words = step.statistics.seen(DENSE_SHARE)
        seen = None if learned is None else learned.seen
        if not isinstance(step, DocumentStep):
            return ShardSum(seen_words, rows_of_words, seen=seen)
        energy = None if step.energy is None else float(np.sum(step.energy))
        sums = step.n_units, energy, step.of_words, step.log_partition
        return ShardSum(seen_words, rows_of_words, *sums, seen, step.inverse)

    def merged(self, one: ShardSum, other: ShardSum) -> ShardSum:
        seen_words, rows = _sum_of_rows(one, other)
        inverse = None
        if one.inverse is not None and other.inverse is not None:
            inverse = np.concatenate([one.inverse, other.inverse])
        seen = other.seen if one.seen is None else one.seen.plus(other.seen)
        known = [name for name in _ADDED if getattr(one, name) is not None]
        added = {name: getattr(one, name) + getattr(other, name) for name in known}
        return ShardSum(seen_words, rows, seen=seen, inverse=inverse, **added)


#: The fields that are added up; they are numbers, arrays or None.
_ADDED = ("n_units", "energy", "of_words", "log_partition")


def _sum_of_rows(one: ShardSum, other: ShardSum) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Add the statistics of two results, in float64."""
    seen_words = one.seen_words | other.seen_words
    n_words, longest = int(np.count_nonzero(seen_words)), max(len(one.rows), len(other.rows))
    if longest < len(seen_words):  # both lack rows for some words
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


@dataclass(frozen=True)
class Summed:
    """The sum of the results of a method of :class:`Documents`, as a task for shards."""

    method: Callable[..., Any]
    temperings: tuple[Tempering, ...]
    #: The gamma of all documents, if the documents are in this process.
    gamma: NDArray | None = None
    given: dict[str, Any] = field(default_factory=dict)

    def __call__(self, model: Parts, X: Any, rows: slice, number: int) -> Any:
        some = X if rows == slice(0, X.shape[0]) else X[rows]  # without copying all documents
        temperings = (of_rows(tempering, rows) for tempering in self.temperings)
        gamma = None if self.gamma is None else self.gamma[rows]
        return self.method(model.documents, some, *temperings, gamma=gamma, **self.given)

    def merged(self, one: Any, other: Any) -> Any:
        return one + other
