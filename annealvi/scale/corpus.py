"""A corpus that is cut into shards, which an engine keeps on its workers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import getitem
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.utils.validation import check_non_negative

from annealvi.checks import least_positive
from annealvi.corpus.cells import open_corpus
from annealvi.exceptions import BadParameter
from annealvi.matrices import check_csr, csr_of, digest
from annealvi.scale.elsewhere import Elsewhere
from annealvi.scale.engines import Handle, SerialEngine, WorkersLostError
from annealvi.scale.tree import Place, TreeSum


class PartitionProperties(NamedTuple):
    """The properties of a partition that a fit needs."""

    n_documents: int
    n_features: int
    dtype: np.dtype
    #: See :class:`annealvi.scale.elsewhere.Elsewhere`.
    n_words: float
    least: float
    #: A bit for each word, which is 1 if the word occurs; see :func:`numpy.packbits`.
    used: NDArray[np.uint8]
    digest: str


class Piece(NamedTuple):
    """Consecutive documents of a partition."""

    partition: int
    start: int
    stop: int


def load(source: Any, name: str) -> csr_matrix:
    """Return a partition, a sparse matrix or the path of a corpus on disk, as a CSR matrix."""
    if isinstance(source, str | PathLike):
        source = open_corpus(source)
    if not issparse(source):
        raise TypeError(
            f"{name} must be a sparse matrix, or the path of a corpus on disk. Got "
            f"{type(source).__name__}. Convert it with scipy.sparse.csr_matrix."
        )
    if not source.shape[0]:
        raise ValueError(f"{name} must have at least one document. Got shape {source.shape}.")
    X = check_csr(source, name=name)
    check_non_negative(X, name)
    return X


def properties_of(X: csr_matrix) -> PartitionProperties:
    """Compute the properties of a partition."""
    used = np.zeros(X.shape[1], dtype=bool)
    used[X.indices] = True
    n_words = float(X.data.sum(dtype=float))
    return PartitionProperties(
        n_documents=X.shape[0],
        n_features=X.shape[1],
        dtype=X.dtype,
        n_words=n_words,
        least=least_positive(X.data),
        used=np.packbits(used),
        digest=digest(X),
    )


def take(dtype: np.dtype, pieces: Sequence[Piece], *partitions: csr_matrix) -> Any:
    """Join pieces (consecutive documents of a partition) in one matrix of `dtype`, called a shard.

    If there is only one piece and its partition has this dtype, the shard is a view, not a copy.
    """
    blocks = [view(X, piece.start, piece.stop) for piece, X in zip(pieces, partitions, strict=True)]
    shard = blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")
    if shard.dtype != dtype:
        shard = csr_of(shard.data.astype(dtype), shard.indices, shard.indptr, shard.shape)
    shard.has_canonical_format = True  # as in the partitions; SciPy would check it again
    return shard


def view(X: csr_matrix, start: int, stop: int) -> csr_matrix:
    """Return consecutive rows of a CSR matrix without copying their entries."""
    ends = X.indptr[start : stop + 1]
    entries = slice(int(ends[0]), int(ends[-1]))
    shape = stop - start, X.shape[1]
    return csr_of(X.data[entries], X.indices[entries], ends - ends[0], shape)


def minibatch_order(
    lengths: Sequence[int], shard_size: int, shards_per_batch: int
) -> list[list[Piece]]:
    """Return the pieces of each shard, so that each minibatch has shards of many partitions.

    The corpus consists of partitions, whose documents are put into shards of `shard_size`.  First
    come the shards whose documents are all from one partition.  Partitions are put into groups of
    `shards_per_batch` that are far apart in the corpus, and a minibatch has one shard of each
    partition of a group.  If there are fewer partitions than `shards_per_batch`, each is cut into
    parts, which are treated as partitions.  The remaining documents come last, in shards of the
    same size; the very last shard may be smaller.  The order depends only on the arguments.
    """
    n_parts = -(-shards_per_batch // len(lengths))  # rounded up
    full_shards: list[list[Piece]] = []  # of each partition, or of each part of a partition
    remaining_pieces: list[Piece] = []
    for partition, length in enumerate(lengths):
        n_full = length // shard_size
        part_ends = [n_full * i // n_parts for i in range(n_parts + 1)]
        for first_shard, end_shard in pairwise(part_ends):
            starts = range(first_shard * shard_size, end_shard * shard_size, shard_size)
            full_shards.append([Piece(partition, row, row + shard_size) for row in starts])
        if n_full * shard_size < length:
            remaining_pieces.append(Piece(partition, n_full * shard_size, length))
    shards: list[list[Piece]] = []
    n_groups = -(-len(full_shards) // shards_per_batch)
    for first_of_group in range(n_groups):
        # not neighbours, which are on the same worker
        group = full_shards[first_of_group::n_groups]
        for n in range(max(map(len, group))):  # the n-th shards of a group are a minibatch
            shards += [[pieces[n]] for pieces in group if n < len(pieces)]
    return shards + _cut(remaining_pieces, shard_size)


def numbers_of(shards: Sequence[Sequence[Piece]], lengths: Sequence[int]) -> NDArray[np.int64]:
    """The numbers that documents have if partitions are numbered one after another."""
    first_numbers = np.cumsum([0, *lengths])
    documents = [
        np.arange(piece.start, piece.stop, dtype=np.int64) + first_numbers[piece.partition]
        for pieces in shards
        for piece in pieces
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *documents])


def _cut(pieces: Sequence[Piece], size: int) -> list[list[Piece]]:
    """Cut a sequence of pieces into shards of `size` documents."""
    shards: list[list[Piece]] = []
    n_missing = 0
    for piece in pieces:
        start = piece.start
        while start < piece.stop:
            if not n_missing:  # the last shard is full
                shards.append([])
                n_missing = size
            stop = min(piece.stop, start + n_missing)
            shards[-1].append(piece._replace(start=start, stop=stop))
            n_missing -= stop - start
            start = stop
    return shards


T = TypeVar("T")
#: How often a sum is started again after workers have died.
TRIES = 20
#: Most seconds between two attempts.
LONGEST_PAUSE = 5.0


class Partitions(Elsewhere):
    """The partitions of a corpus; each partition is checked by the worker that loads it."""

    def __init__(self, engine: SerialEngine, sources: Sequence[Any]) -> None:
        """Load `sources` (matrices, paths or handles) on the workers of `engine`."""
        if not len(sources):
            raise BadParameter("X", "at least one partition", sources)
        self.engine = engine
        self._sources = sources
        n_workers = engine.n_workers
        #: The worker of each partition; partitions that follow each other have the same worker.
        self.slots = [number * n_workers // len(sources) for number in range(len(sources))]
        self.handles = [self._load(number) for number in range(len(sources))]

        def submit() -> list[Handle]:
            """Start a task for each partition; called again if workers have died."""
            self.mend()
            handles_and_slots = zip(self.handles, self.slots, strict=True)
            return [
                engine.submit(properties_of, handle, slot=slot)
                for handle, slot in handles_and_slots
            ]

        properties: list[PartitionProperties] = gather(engine, submit)
        widths = [partition.n_features for partition in properties]
        for number, width in enumerate(widths):
            if width != widths[0]:
                raise ValueError(
                    f"All partitions of X must have the same number of words. Partition 0 has "
                    f"{widths[0]}, and partition {number} has {width}."
                )
        self.lengths = [partition.n_documents for partition in properties]
        self.shape = sum(self.lengths), widths[0]
        #: float32 if all partitions have this dtype, otherwise float64.
        self.dtype = np.dtype(np.result_type(*(partition.dtype for partition in properties)))
        self.n_words = float(sum(partition.n_words for partition in properties))
        self.least = min(partition.least for partition in properties)
        used = np.bitwise_or.reduce([partition.used for partition in properties])
        self.n_used = int(np.unpackbits(used, count=widths[0]).sum())
        self.digest = hashlib.sha256(
            "".join(partition.digest for partition in properties).encode()
        ).hexdigest()

    def _load(self, number: int) -> Handle:
        """Load a partition on its worker; return its handle."""
        name = f"partition {number} of X"  # for errors
        return self.engine.submit(load, self._sources[number], name, slot=self.slots[number])

    def mend(self) -> None:
        """Load partitions again whose workers have died."""
        for number, handle in enumerate(self.handles):
            if self.engine.is_lost(handle):
                self.handles[number] = self._load(number)


class ShardedCorpus(Elsewhere):
    """The documents on workers, in the order of a fit's minibatches."""

    def __init__(
        self,
        partitions: Partitions,
        dtype: np.dtype,
        shard_size: int,
        shards_per_batch: int,
        n_threads: int | None = None,
    ) -> None:
        """Make the shards on the workers; `n_threads` is for each task, None leaves it to them."""
        self._engine = partitions.engine
        self._partitions = partitions  # needed if shards must be made again
        self.shape = partitions.shape
        self.dtype = np.dtype(dtype)
        self.n_words = partitions.n_words
        self.least = partitions.least
        self.n_used = partitions.n_used
        self.digest = partitions.digest
        self.shard_size = shard_size
        self._n_threads = n_threads
        self.pieces = minibatch_order(partitions.lengths, shard_size, shards_per_batch)
        self._n_losses = self._engine.n_losses
        self._shards: list[Handle] = [self._shard(pieces) for pieces in self.pieces]

    def _shard(self, pieces: Sequence[Piece]) -> Handle:
        """Make a shard on the worker of its first documents; return its handle."""
        partitions = self._partitions
        partition_handles = [partitions.handles[piece.partition] for piece in pieces]
        slot = partitions.slots[pieces[0].partition]
        return self._engine.submit(take, self.dtype, list(pieces), *partition_handles, slot=slot)

    def _mend(self) -> None:
        """Make shards again whose workers have died."""
        if self._n_losses == self._engine.n_losses:
            return
        self._n_losses = self._engine.n_losses
        self._partitions.mend()
        for number, handle in enumerate(self._shards):
            if self._engine.is_lost(handle):
                self._shards[number] = self._shard(self.pieces[number])

    def __getitem__(self, rows: Any) -> csr_matrix:
        """Return the documents of a slice or of an array of numbers, in the same order."""
        if isinstance(rows, slice):
            rows = np.arange(self.shape[0], dtype=np.int64)[rows]
        rows = np.asarray(rows, dtype=np.int64)
        ascending_order = np.argsort(rows, kind="stable")
        # all shards but the last have `shard_size` documents
        shard, row_in_shard = np.divmod(rows[ascending_order], self.shard_size)
        shard_numbers, first_of_shard = np.unique(shard, return_index=True)
        rows_of_shards = np.split(row_in_shard, first_of_shard[1:])

        def submit() -> list[Handle]:
            """Start a task for each shard; called again if workers have died."""
            self._mend()
            return [
                self._engine.submit(getitem, self._shards[number], rows_of_shard)
                for number, rows_of_shard in zip(shard_numbers, rows_of_shards, strict=True)
            ]

        if not len(rows):
            return csr_matrix((0, self.shape[1]), dtype=self.dtype)
        documents = vstack(gather(self._engine, submit), format="csr", dtype=self.dtype)
        if np.all(np.diff(ascending_order) == 1):
            return documents
        return documents[np.argsort(ascending_order, kind="stable")]  # the inverse permutation

    def total(
        self,
        task: Callable[..., T],
        merged: Callable[[T, T], T],
        model: Any,
        rows: slice,
        lent_engine: Callable[[int], Any],
    ) -> T:
        """Return the sum of a task's results; see :meth:`Elsewhere.total`."""
        engine = self._engine
        first_shard = rows.start // self.shard_size
        n_leaves = -(-rows.stop // self.shard_size) - first_shard  # the shards of these rows

        def submit() -> list[Handle]:
            """Start a task for each worker; called again if workers have died."""
            n_groups = max(1, min(engine.n_workers, n_leaves))
            self._mend()
            model_handle = engine.put(model)
            threads = engine.threads() if self._n_threads is None else self._n_threads
            ends = [n_leaves * i // n_groups for i in range(n_groups + 1)]
            return [
                engine.submit(
                    sum_of_shards,
                    model_handle,
                    task,
                    merged,
                    lent_engine,
                    self._shards[first_shard + begin : first_shard + end],
                    begin,  # the number of the first of these shards in the sum
                    n_leaves,
                    threads,
                    slot=slot,
                )
                for slot, (begin, end) in enumerate(pairwise(ends))
            ]

        tree_sum = TreeSum(n_leaves, merged)
        for nodes in gather(engine, submit):
            tree_sum.update(nodes)
        return tree_sum.total()


def sum_of_shards(
    model: Any,
    task: Callable[..., T],
    merged: Callable[[T, T], T],
    lent_engine: Callable[[int], Any],
    shards: Sequence[csr_matrix],
    first_leaf: int,
    n_leaves: int,
    n_threads: int,
) -> dict[Place, T]:
    """Compute a task's results for consecutive shards, and sum them as far as the tree allows."""
    tree_sum: TreeSum[T] = TreeSum(n_leaves, merged)
    with lent_engine(n_threads) as engine:
        for number, X in enumerate(shards, start=first_leaf):
            tree_sum.add(number, task(engine, model, X, slice(0, X.shape[0]), number))
    return tree_sum.nodes


def gather(engine: SerialEngine, submit: Any) -> list[Any]:
    """Submit tasks and gather their results; start again if workers have died."""
    for n_failed in range(TRIES):
        try:
            return engine.gather(submit())
        except WorkersLostError as error:
            last_error = error
            time.sleep(min(0.05 * 2**n_failed, LONGEST_PAUSE))  # until new workers have started
    raise RuntimeError(
        f"Workers died in {TRIES} attempts at the same step, perhaps because they ran out of "
        "memory. Use a smaller 'shard_size', or fewer threads or tasks for each worker."
    ) from last_error
