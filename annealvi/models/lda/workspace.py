"""The fit of a block of documents by the kernels of LDA, and the buffers that it needs."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import le
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annealvi._kernels import lda as kernels
from annealvi._kernels.layout import aligned_empty, padded_rows, separate_rows
from annealvi.files.schema import Flag, Integer, Number, Optional, Schema, Text
from annealvi.model import Tempering
from annealvi.models.lda.device import DeviceStatistics, DeviceWork
from annealvi.models.lda.topics import FittedBlock, Statistics, Topics, TopicWeights, WordIndex

#: Bytes for the weights of a document's words in the topics that it uses, as in the level 2 cache.
PACKED_BYTES = 1 << 19

#: Buffers are larger than the first block needs by one part in SPARE.
SPARE = 4

Start = Literal["random", "warm", "constant"]
DocumentEstimate = Literal["variational", "sparse"]
#: The sparsity kappa of the ``"sparse"`` estimate at T = 1, and the T below which kappa is not 0.
SPARSITY, SPARSE_BELOW = 0.5, 1.5
#: The values of :meth:`LocalOptions.relaxation`.
RELAXATION, RELAXED_BELOW = (1.5, 2.0), 1.2
#: The :meth:`LocalOptions.least_share` in float64, in float32 after training, and in training.
LEAST_SHARE, SINGLE_SHARE, TRAINING_SHARE = 1e-9, 1e-4, 1e-2
#: The :meth:`LocalOptions.least_share` with scikit-learn's arithmetic.
EXACT_SHARE = 1e-12
#: The kernels count iterations in 32 bits.
MOST_ITERATIONS = 2**31 - 1
#: The least normal number of float64.
TINY = float(np.finfo(np.float64).tiny)


def inverse_of_each(tempering: Tempering, n_samples: int, dtype: np.dtype) -> NDArray:
    """The inverse temperature of each document, in a new array."""
    inverse = np.asarray(tempering.inverse, dtype=np.float64)
    least = float(inverse.min())
    if least < TINY:
        got = 1 / least if least else np.inf
        raise ValueError(f"The temperature must be at most {1 / TINY:.3g}. Got {got:.3g}.")
    return held(np.broadcast_to(inverse, (n_samples,)), dtype)


def held(inverse: NDArray[np.float64], dtype: np.dtype) -> NDArray:
    """Convert inverse temperatures to `dtype`, with its smallest normal number as the minimum.

    Even the minimum of float32 is so small that the likelihood has no effect.
    """
    return np.maximum(inverse, np.finfo(dtype).tiny).astype(dtype, order="C")


def of_rows(tempering: Tempering, rows: slice) -> Tempering:
    """The tempering of the documents in `rows`."""
    if np.ndim(tempering.inverse) == 0:
        return tempering
    return tempering._replace(inverse=np.asarray(tempering.inverse)[rows])


@dataclass(frozen=True)
class LocalOptions:
    """Options of the local step of a document."""

    #: Largest number of iterations for a document.
    max_iter: int = 100
    #: A document stops when mean_k |change of gamma_dk| falls below this.  With more topics it
    #: stops earlier.
    tolerance: float = 1e-3
    #: Start of gamma in training.  ``"random"`` is the local step of scikit-learn, with new
    #: Gamma(100, 0.01) draws and with the dtype's eps added to the normaliser of phi.  The other
    #: starts add no eps, and subtract the largest exponent, so that float32 does not underflow.
    start: Start = "constant"
    #: If this is set, a document stops when sum_k |change of gamma_dk| falls below it times the
    #: document's number of tokens.  This test does not depend on K.
    token_tolerance: float | None = None
    #: Largest number of iterations outside training, if it differs from `max_iter`.  In float32
    #: the result of a document that stops before convergence may vary.
    inference_iter: int | None = None
    #: Whether later iterations skip topics with a small share in the document, if that saves
    #: time; see :meth:`least_share`.
    prune: bool = True
    #: Whether training uses E log theta, or the estimate with fewer topics when T is low.
    document_estimate: DocumentEstimate = "variational"
    #: Whether training makes longer steps, and may stop earlier, when T is low; see
    #: :meth:`relaxation`.
    over_relaxed: bool = False
    #: Number of documents in a shard, if training sums over shards; see
    #: :mod:`annealvi.models.lda.local_step`.
    shard_size: int | None = None

    def least_share(self, dtype: DTypeLike, training: bool) -> float:
        """Return a threshold: topics with less than this share of a word may be skipped.

        With 0 no topic is skipped.  In float64, skipping topics changes gamma by less than 1e-6, or
        by less than 1e-10 with ``start="random"``.
        """
        if not self.prune:
            return 0.0
        if self.start == "random":
            return EXACT_SHARE
        if np.dtype(dtype) == np.float64:
            return LEAST_SHARE
        return TRAINING_SHARE if training else SINGLE_SHARE

    def relaxation(self, tempering: Tempering) -> tuple[float, float]:
        """Return the step length omega of gamma in training, and a factor for gamma's tolerance.

        With ``over_relaxed`` and T below 1.2, each step of gamma after the first is omega = 1.5
        times as long as the step to the coordinate optimum.  Short steps then mean that gamma is
        nearer to convergence, so the tolerance is doubled.  Otherwise omega and the factor are 1.
        """
        if self.over_relaxed and tempering.mean * RELAXED_BELOW > 1:
            return RELAXATION
        return 1.0, 1.0

    def sparsity(self, tempering: Tempering) -> float:
        """Return kappa, which makes topic shares sparse; see :mod:`annealvi.models.lda.documents`.

        With ``"sparse"``, kappa rises linearly from 0 at T = 1.5 to 0.5 at T = 1.
        """
        if self.document_estimate == "variational":
            return 0.0
        T = 1.0 / tempering.mean
        return SPARSITY * max(0.0, (SPARSE_BELOW - T) / (SPARSE_BELOW - 1.0))


OPTIONS = Schema(
    LocalOptions,
    max_iter=Integer(0, MOST_ITERATIONS),
    tolerance=Number(0.0),
    start=Text(*get_args(Start)),
    token_tolerance=Optional(Number(0.0)),
    inference_iter=Optional(Integer(0, MOST_ITERATIONS)),
    prune=Flag(),
    document_estimate=Text(*get_args(DocumentEstimate)),
    over_relaxed=Flag(),
    shard_size=Optional(Integer(1)),
)


class Workspace:
    """The buffers that the kernels write to, which are kept as long as they are large enough.

    Only one call may use a workspace at a time.  All training steps of a model use one workspace,
    and every other call makes its own.
    """

    def __init__(self, n_features: int, width: int, dtype: DTypeLike, n_threads: int) -> None:
        self.n_threads = n_threads  # the buffers are for this number of threads
        self._width, self._dtype = width, dtype
        self._capacity = (0, 0, 0)
        self.indices = WordIndices(n_features, n_threads)
        self.sums = separate_rows(n_threads, width)
        self.summed = separate_rows(n_threads, 2 * width, dtype)
        self._alpha = np.empty(0), np.empty(0, dtype=dtype)

    def padded(self, alpha: NDArray[np.float64]) -> NDArray:
        """The prior of the documents' topics in the form that kernels read; it is kept."""
        if not np.array_equal(alpha, self._alpha[0]):
            self._alpha = alpha.copy(), padded_rows(alpha[None, :], self._dtype, fill=alpha[0])[0]
        return self._alpha[1]

    def reserve(self, index: WordIndex) -> None:
        """Make the buffers large enough for a block of documents."""
        needed = len(index.order), len(index.position), index.longest
        if self._capacity != (0, 0, 0) and all(map(le, needed, self._capacity)):
            return
        # somewhat more than needed, because blocks of a stream have similar numbers of words; this
        # takes no memory until it is used
        sizes = zip(needed, self._capacity, strict=True)
        n_samples, n_entries, longest = (max(1, n + n // SPARE, room) for n, room in sizes)
        self._capacity = (n_samples, n_entries, longest)
        self.ratio = np.empty(n_entries, dtype=self._dtype)
        self.t = aligned_empty((n_samples, self._width), self._dtype)
        self.active = np.empty((n_samples, self._width), dtype=np.int32)
        self.n_active = np.empty(n_samples, dtype=np.int32)
        self.longest, each = longest, np.dtype(self._dtype).itemsize
        self.room = min(longest * self._width, PACKED_BYTES // each)
        size = kernels.scratch_bytes(self._width, longest, self.room, each)
        n_slots = self.n_threads * kernels.TOGETHER_DOCUMENTS
        self.scratch = aligned_empty((n_slots, size), np.uint8)
        self.raised = np.empty((1, 1), self._dtype)

    def fit_block(
        self, call: Call, rows: slice, gamma: NDArray, b: NDArray, rule: Any, wanted: Local
    ) -> None:
        """Fit gamma of a block of documents in place, and write the other wanted outputs."""
        X, weights, topics, mixed = call.X, call.weights, call.topics, bool(np.any(b != call.b0))
        index = self.indices.of_block(X, rows)
        self.reserve(index)
        if mixed and self.raised.size == 1:  # for documents with their own temperatures
            n_slots = self.n_threads * kernels.TOGETHER_DOCUMENTS
            self.raised = np.empty((n_slots, self.longest * self._width), dtype=self._dtype)
        weights.refresh(
            *(index.words, topics.rows(), topics.sums, topics.estimate, call.b0, call.exact),
            *(self.n_threads, mixed or wanted.energy is not None),
        )
        kernels.fit_documents(
            *(X.data, X.indices, X.indptr, rows.start, rows.stop, index.order, weights, b),
            *(self.padded(call.alpha), rule, gamma, self, wanted.log_normalizer, wanted.energy),
        )
        if wanted.statistics is None:
            return
        block = FittedBlock(index, weights, self, b)
        if wanted.deferred:
            wanted.statistics.defer(block)
        else:
            wanted.statistics.add(block, wanted.word_energy)


#: Most bytes of the blocks that are kept between passes over the documents.
MOST_BYTES = 1 << 26


class WordIndices:
    """Transposes blocks of documents, and keeps the results for the next pass over these documents.

    If the fit makes several passes, a transposed block is kept after its first use, otherwise after
    its second use.  All kept blocks together take at most MOST_BYTES.  Nothing is kept of a stream,
    because its documents are used once.  When a pass over other documents begins, the blocks in
    memory are released.  A block is used again only if its documents still have the same words,
    because a callback may have changed them.
    """

    def __init__(self, n_features: int, n_threads: int = 1) -> None:
        self._n_threads, self.repeated = n_threads, False
        self._counter = np.empty(n_features, dtype=np.int64)
        self._room = tuple(np.empty(n, dtype=np.int64) for n in (n_features, n_features + 1, 0, 0))
        self._corpus: weakref.ref[Any] | None = None
        self._kept: dict[tuple[int, int], tuple[int, WordIndex | None]] = {}
        self._bytes = 0

    def forget(self) -> None:
        """Release the kept blocks, because the documents may change in place from now on."""
        self._corpus, self._kept, self._bytes = None, {}, 0

    def of_block(self, X: Any, rows: slice) -> WordIndex:
        """The transposed block, which is valid until the next call."""
        key = rows.start, rows.stop
        begins = rows.start == 0 and key not in self._kept
        if begins or self._corpus is None or self._corpus() is not X:
            self.forget()
            self._corpus = weakref.ref(X)
        digest = kernels.digest_of_block(X.indices, X.indptr, *key)
        before, kept = self._kept.get(key, (None, None))
        if kept is not None and before == digest:
            return kept
        index = self._transposed(X, rows)
        if before != digest:  # the block is new, or has changed
            self._kept[key] = digest, None
            self._bytes -= 0 if kept is None else _n_bytes(kept)
            if not self.repeated:
                return index
        # of a much larger corpus, too small a part could be kept
        n_bytes = self._bytes + _n_bytes(index)
        if n_bytes <= MOST_BYTES and len(X.indices) <= MOST_BYTES:
            index = WordIndex._make([*map(np.ndarray.copy, index[:-1]), index.longest])
            self._kept[key], self._bytes = (digest, index), n_bytes
        return index

    def _transposed(self, X: Any, rows: slice) -> WordIndex:
        ends = X.indptr[rows.start : rows.stop + 1]
        lengths, n_entries = np.diff(ends), int(ends[-1] - ends[0])
        words, first, document, position = self._room
        if len(document) < n_entries:
            document, position = (np.empty(n_entries, dtype=np.int64) for _ in range(2))
            self._room = words, first, document, position
        given = X.indices, X.indptr, rows.start, rows.stop
        n_words = kernels.index_words(*given, self._counter, *self._room)
        order = np.arange(len(lengths))
        if self._n_threads > 1:
            order = np.argsort(-lengths, kind="stable")
        found = words[:n_words], first[: n_words + 1], document[:n_entries], position[:n_entries]
        return WordIndex(*found, order, int(lengths.max(initial=0)))


def _n_bytes(index: WordIndex) -> int:
    return 8 * sum(map(len, index[:-1]))


class Local(NamedTuple):
    """The outputs that are wanted from the local step of a block, besides gamma."""

    #: The object to which the statistics of the block are added.
    statistics: Any = None
    #: Arrays that are written to: sum_v n_v log sum_k exp b (E log theta + E log beta), and the
    #: energy sum_v n_v E[log theta + log beta] of each document.
    log_normalizer: NDArray[np.float64] | None = None
    energy: NDArray[np.float64] | None = None
    #: An array for sum_d n_dv E[log beta] of the words in the block, which is written with the
    #: statistics if all documents have the same b.
    word_energy: NDArray[np.float64] | None = None
    #: Whether the block is the only block of a step, and its statistics are summed later.
    deferred: bool = False


class Call(NamedTuple):
    """The arguments of a call that are the same for all blocks, and values that depend on T."""

    X: Any
    topics: Topics
    #: The TopicWeights, or None for a GPU.
    weights: Any
    work: Workspace | DeviceWork
    #: The inverse temperature of the weights.
    b0: float
    #: Prior of the documents' topic proportions, or (alpha + T - 1)/T with ``form="posterior"``.
    alpha: NDArray[np.float64]
    #: Whether to compute scikit-learn's numbers, which include its eps.
    exact: bool
    #: The kappa of :mod:`annealvi.models.lda.documents`, which is 0 for mean-field inference.
    sparsity: float = 0.0
    #: The result of :meth:`LocalOptions.relaxation`.
    relaxation: tuple[float, float] = (1.0, 1.0)


#: If buffers of training take more bytes than this, they are released while a fit is evaluated.
LARGE_BYTES = 1 << 25


class Training(NamedTuple):
    """The objects that training steps write to."""

    #: The TopicWeights, or None for a GPU, whose weights are a part of its topics.
    weights: Any
    work: Workspace | DeviceWork
    #: A Statistics or a DeviceStatistics.
    statistics: Any


class Buffers:
    """The buffers of a model's training steps, kept from the first step until they are released.

    Only the thread that makes the training steps may use the buffers.  Copies and pickles of a
    model have empty buffers.  The contents of buffers never change a result, because each step
    computes everything that it reads.  Keeping buffers saves the time to allocate memory.
    """

    def __init__(self) -> None:
        self.training: Training | None = None
        self._shape: tuple[int, int, np.dtype, Any] | None = None
        self._process: int | None = None  # the process in which steps are being made
        self._repeated = False

    def ready(
        self, n_features: int, width: int, dtype: DTypeLike, n_threads: int, device: Any = None
    ) -> Training:
        """The buffers for a step; new ones are made if the sizes or the device have changed."""
        shape = n_features, width, np.dtype(dtype)
        if self.training is None or self._shape != (*shape, device):
            self._shape = *shape, device
            if device is not None:
                work = DeviceWork(device, n_threads, by_word=True)
                self.training = Training(None, work, DeviceStatistics(device, shape[:2]))
            else:
                weights = TopicWeights(*shape, bounded=True)
                self.training = Training(weights, Workspace(*shape, n_threads), Statistics(*shape))
        elif device is None and self.training.work.n_threads != n_threads:
            self.training = self.training._replace(work=Workspace(*shape, n_threads))
        self.training.work.indices.repeated = self._repeated
        return self.training

    @property
    def in_use(self) -> bool:
        """Whether a fit is running in this process."""
        return self._process == os.getpid()

    @contextmanager
    def used(self, *, keep: bool = False, repeated: bool = False) -> Iterator[None]:
        """Return a context manager for a fit, which releases the buffers at the end of the fit.

        A fit inside a callback keeps small buffers for the outer fit, unless it ends with an error.
        """
        before, self._repeated = self._repeated, repeated
        outer = self._process if self.in_use else None  # set if a callback makes another fit
        if outer is None and self._process is not None:
            self.release()  # in a forked child, these are the buffers of a step of the parent
        kept = False
        if self.training is not None and self.training.weights is not None:
            self.training.weights.outdate()  # they may belong to other topics
        try:
            self._process = os.getpid()
            yield
            kept = keep or outer is not None
        finally:
            self._process, self._repeated = outer, before
            if not kept:
                self.release()
            elif outer is not None:
                self.release_large()
            elif self.training is not None:
                self.training.work.indices.forget()  # the documents in X may change before the next

    def release(self) -> None:
        """Release the buffers.  The next step makes new ones."""
        self.training = None

    def release_large(self) -> None:
        """Release the buffers between two steps if they are large."""
        if self.training is not None and self.training.statistics.nbytes > LARGE_BYTES:
            self.release()

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        return Buffers, ()


#: Buffers of this process's tasks that no task is using; the last used buffers are at the end.
_free: deque[Buffers] = deque()


@contextmanager
def lent_buffers() -> Iterator[Buffers]:
    """Lend buffers to a task in this worker process; later tasks get the same buffers."""
    try:
        buffers = _free.pop()
    except IndexError:
        buffers = Buffers()
    try:
        with buffers.used(keep=True):
            yield buffers
    finally:
        _free.append(buffers)
