"""The engine that sums over shards, and the choice among the three engines.

A minibatch is cut into shards of a given number of documents.  The result of each shard depends
only on the topics and the shard.  Results are added up in float64, in an order that depends only on
the number of shards.  So it does not matter which process computes a shard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi._kernels import gpu
from annealvi.exceptions import BadParameter
from annealvi.model import UNTEMPERED, Batch, LocalStep, Tempering
from annealvi.models.lda.cpu import CPUEngine, lent_engine
from annealvi.models.lda.engine import Engine, inverse_of_each, of_rows
from annealvi.models.lda.gpu import GPUEngine, device_of
from annealvi.models.lda.model import LDA
from annealvi.scale.elsewhere import Elsewhere
from annealvi.scale.tree import TreeSum

T = TypeVar("T")
#: The result of a shard has rows for all words if at least this share of the words occurs in it.
DENSE_SHARE = 0.5


def engine_of(
    device: str,
    n_threads: int,
    n_topics: int,
    dtype: np.dtype,
    *,
    X: Any = None,
    shard_size: int | None = None,
    repeated: bool = False,
    kept: Any = None,
) -> Engine:
    """Return an engine for models of this size and documents X.

    Its buffers are those of the engine `kept` if that is of the same class and on the same device.
    """
    card = device_of(device)  # the GPU, or None for the processor
    if card is not None and (dtype != np.float32 or n_topics > gpu.MOST_TOPICS):
        raise BadParameter(
            "device",
            f"'cpu' for {n_topics} topics in {dtype}",
            device,
            f"GPUs compute in float32, and fit {gpu.MOST_TOPICS:,} topics at most.",
        )
    engine: Any = CPUEngine() if card is None else GPUEngine(card)
    before = getattr(kept, "inner", kept)  # the inner engine of a ShardEngine
    if type(before) is type(engine) and before.device is card:
        engine = before
    engine.n_threads = n_threads
    engine.repeated = repeated
    if shard_size is not None or isinstance(X, Elsewhere):
        return ShardEngine(engine, shard_size)
    return engine


class ShardSum(NamedTuple):
    """The results of the local step for one or more shards."""

    #: Which words occur in the shards.
    seen_words: NDArray[np.bool_]
    #: The statistics of these words, in float64 if they are sums.  If most words occur, there are
    #: rows for all words, because such arrays are added faster.
    rows: NDArray
    #: Number of words in the documents.
    n_units: float | None = None
    #: The energy, and the part of words in it at the topics of the step, both in nats.
    energy: float | None = None
    of_words: float | None = None
    log_partition: NDArray | None = None
    #: The sums from which priors are learned.
    prior_sums: NDArray | None = None
    #: The inverse temperatures of documents that a rule has computed.
    inverse: NDArray | None = None

    def plus(self, second: ShardSum) -> ShardSum:
        """Add the results of other shards; this may change the arrays of the first."""
        seen_words, rows = _sum_of_rows(self, second)
        inverse = None  # of each document, so these are joined instead of added
        if self.inverse is not None and second.inverse is not None:
            inverse = np.concatenate([self.inverse, second.inverse])
        # both results have the same fields
        known = [name for name in ADDED if getattr(self, name) is not None]
        added = {name: getattr(self, name) + getattr(second, name) for name in known}
        return ShardSum(seen_words=seen_words, rows=rows, inverse=inverse, **added)


#: The fields that are added up; they are numbers, arrays or None.
ADDED = ("n_units", "energy", "of_words", "log_partition", "prior_sums")


def _sum_of_rows(first: ShardSum, second: ShardSum) -> tuple[NDArray[np.bool_], NDArray]:
    """Return which words occur in two results, and the sum of their statistics, in float64.

    A result has rows either for all words, or only for the words that occur in it.
    """
    seen_words = first.seen_words | second.seen_words
    n_words = int(np.count_nonzero(seen_words))
    n_rows = max(len(first.rows), len(second.rows))
    if n_rows < len(seen_words):  # both lack rows for some words
        n_rows = n_words
    if len(first.rows) == len(second.rows) == n_rows:
        out = first.rows if first.rows.dtype == np.float64 else None  # in place if possible
        return seen_words, np.add(first.rows, second.rows, out=out, dtype=float)
    total = np.zeros((n_rows, first.rows.shape[1]))
    whole = n_rows == len(seen_words)  # a row for each word
    for shard in (first, second):
        if len(shard.rows) == n_rows:  # its rows have the same places as in the sum
            total += shard.rows
        else:
            total[shard.seen_words if whole else shard.seen_words[seen_words]] += shard.rows
    return seen_words, total


def fit_shard(
    engine: CPUEngine,
    model: LDA,
    X: Any,
    rows: slice,
    number: int,
    *,
    tempering: Tempering,
    moments: bool,
    seeds: NDArray[np.int64] | None,
) -> ShardSum:
    """Make the local step of a shard, with one of the random `seeds` if gamma starts at random.

    The shard consists of `rows` of X, and `number` is its number, counted from 0.
    """
    rng = None if seeds is None else RandomState(int(seeds[number]))
    step = engine.e_step(model, Batch(X, rows), tempering, moments, rng)
    statistics = step.statistics
    # copies, because the next shard overwrites the statistics
    seen_words, rows_of_words = statistics.seen(DENSE_SHARE)
    return ShardSum(
        seen_words=seen_words,
        rows=rows_of_words,
        n_units=step.n_units,
        energy=None if step.energy is None else float(np.sum(step.energy)),
        # the energy of words only if `m_step` replaces it after a full step
        of_words=None if statistics.local_step is None else statistics.of_words,
        log_partition=step.log_partition,
        prior_sums=statistics.prior_sums,
        inverse=step.inverse,
    )


def evaluate_shard(
    engine: CPUEngine,
    model: LDA,
    X: Any,
    rows: slice,
    number: int,
    *,
    method: str,
    temperings: tuple[Tempering, ...],
    options: dict[str, Any],
    gamma: NDArray | None = None,
) -> Any:
    """Call a method of the engine for the documents of a shard.

    If the documents are in this process, `gamma` has rows for all of them.
    """
    documents = X if rows == slice(0, X.shape[0]) else X[rows]  # without copying all documents
    options = options.copy()
    if gamma is not None:
        options["gamma"] = gamma[rows]
    return getattr(engine, method)(
        model, documents, *[of_rows(tempering, rows) for tempering in temperings], **options
    )


#: The methods that :class:`ShardEngine` has from its inner engine.
INNER = ("begin", "for_inference", "step_topics", "release", "release_large", "forget_documents")


class ShardEngine(Engine):
    """Sums over shards, which another engine or the workers of an :class:`Elsewhere` compute.

    Parameters
    ----------
    inner : CPUEngine
    shard_size : int, optional
        Number of documents in a shard in this process; by default all.
    """

    def __init__(self, inner: CPUEngine, shard_size: int | None = None) -> None:
        """Sum over shards that the engine `inner` computes; see the class."""
        self.inner = inner
        self.shard_size = shard_size
        # the inner engine has the buffers, and computes whatever is no sum over shards
        for name in INNER:
            setattr(self, name, getattr(inner, name))

    @property
    def n_threads(self) -> int:  # type: ignore[override]
        """The number of threads of the inner engine."""
        return self.inner.n_threads

    def e_step(
        self,
        model: LDA,
        batch: Batch,
        tempering: Tempering,
        moments: bool = False,
        rng: RandomState | None = None,
    ) -> LocalStep:
        """Sum the local steps of the shards of a batch; see :meth:`Engine.e_step`."""
        seeds = None
        rows = batch.rows
        if model.options.exact and model.rng is not None:
            n_samples = rows.stop - rows.start
            n_shards = -(-n_samples // (self.shard_size or n_samples))
            # one for each shard, so that results do not depend on which process fits it
            seeds = model.rng.randint(2**31 - 1, size=n_shards)
        if moments or tempering.rule is not None:
            self._partition(model, tempering)  # its sums are used for several shards
        task = partial(fit_shard, tempering=tempering, moments=moments, seeds=seeds)
        total = self._total(task, ShardSum.plus, model, batch.data, rows)
        statistics = self.begin(model)  # empty
        statistics.put_seen(total.seen_words, total.rows)
        statistics.prior_sums = total.prior_sums
        step = LocalStep(
            statistics=statistics,
            energy=total.energy,
            log_partition=total.log_partition,
            n_units=total.n_units,
            inverse=total.inverse,
            unit="word",
        )
        if total.of_words is not None:
            # after a full step, `m_step` replaces the energy of words in the step
            statistics.of_words = total.of_words
            statistics.local_step = step
            statistics.b0 = float(inverse_of_each(tempering, n_samples=1, dtype=model.dtype)[0])
        return step

    def document_bound(
        self,
        model: LDA,
        X: Any,
        tempering: Tempering = UNTEMPERED,
        at: Tempering = UNTEMPERED,
        *,
        gamma: NDArray | None = None,
    ) -> float:
        """Sum the bounds of the shards; see :meth:`Engine.document_bound`."""
        if not X.shape[0]:
            return 0.0
        return self._sum("document_bound", model, X, tempering, at, gamma=gamma)

    def objective(
        self, model: LDA, X: Any, tempering: Tempering, *, gamma: NDArray | None = None
    ) -> float:
        """Sum the objectives of the shards; see :meth:`Engine.objective`."""
        return self._sum("objective", model, X, tempering, gamma=gamma)

    def moments(self, model: LDA, X: Any, tempering: Tempering, inverse: NDArray) -> NDArray:
        """Sum the moments of the shards; see :meth:`Engine.moments`."""
        return self._sum("moments", model, X, tempering, inverse=inverse)

    def _sum(
        self,
        method: str,
        model: LDA,
        X: Any,
        *temperings: Tempering,
        gamma: NDArray | None = None,
        **options: Any,
    ) -> Any:
        """Sum the results of an engine's method, by name, over the shards of all documents.

        The method gets the `temperings` of the documents, rows of `gamma`, and the `options`.
        """
        task = partial(
            evaluate_shard, method=method, temperings=temperings, gamma=gamma, options=options
        )
        return self._total(task, add, model, X, slice(0, X.shape[0]))

    def _total(
        self,
        task: Callable[..., T],
        merged: Callable[[T, T], T],
        model: LDA,
        X: Any,
        rows: slice,
    ) -> T:
        """Sum a task's results over the shards of some documents; `merged` adds two results."""
        if isinstance(X, Elsewhere):
            return X.total(task, merged, model, rows, lent_engine)
        size = self.shard_size or max(1, rows.stop - rows.start)
        starts = range(rows.start, rows.stop, size)
        tree = TreeSum(len(starts), merged)
        for number, start in enumerate(starts):
            shard = slice(start, min(start + size, rows.stop))
            tree.add(number, task(self.inner, model, X, shard, number))
        return tree.total()
