"""The LDA kernels' fit of a block of documents, and the buffers it needs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annealvi._kernels import lda as kernels
from annealvi._kernels.layout import aligned_empty, padded_length, padded_rows, separate_rows
from annealvi.model import Tempering
from annealvi.models.lda.topics import FittedBlock, Statistics, TopicWeights
from annealvi.models.lda.word_index import WordIndex, WordIndices

#: Bytes for a document's rows of the topics that it still uses: about the level 2 cache.
PACKED_BYTES = 1 << 19

#: A workspace has room for this share more than the first rows need: one part in so many.
SPARE = 4

Start = Literal["random", "warm", "constant"]
DocumentEstimate = Literal["variational", "sparse"]
#: Sparsity at T = 1 of the ``"sparse"`` estimate, and the temperature below which it sets in.
SPARSITY, SPARSE_BELOW = 0.5, 1.5
#: See :meth:`LocalOptions.relaxation`.
RELAXATION, RELAXED_BELOW = (1.5, 2.0), 1.2
#: See :meth:`LocalOptions.least_share`: in float64, and in float32 after and in training.
LEAST_SHARE, SINGLE_SHARE, TRAINING_SHARE = 1e-9, 1e-4, 1e-2
#: The same with scikit-learn's arithmetic.
EXACT_SHARE = 1e-12


@dataclass(frozen=True)
class LocalOptions:
    """Options of the local step of a document."""

    #: Largest number of iterations for a document.
    max_iter: int = 100
    #: A document stops when mean_k |change of gamma_dk| falls below this.  The more topics there
    #: are, the looser the test.
    tolerance: float = 1e-3
    #: Start of gamma in training.  ``"random"`` is scikit-learn's local step in every detail: new
    #: Gamma(100, 0.01) draws, and the dtype's eps added to the normaliser of phi.  The others add
    #: no eps and take exponents relative to their maximum, so float32 does not underflow.
    start: Start = "constant"
    #: If given, a document stops instead when sum_k |change of gamma_dk| falls below this times
    #: its number of tokens.  This test does not depend on K.
    token_tolerance: float | None = None
    #: Largest number of iterations outside training, if it differs from `max_iter`.  In float32
    #: the result of a document that is stopped before convergence may vary.
    inference_iter: int | None = None
    #: Whether later iterations skip topics with a small share in the document, if that saves
    #: time; see :meth:`least_share`.
    prune: bool = True
    #: Whether training uses E log theta, or documents of fewer topics once T is low.
    document_estimate: DocumentEstimate = "variational"
    #: Whether training takes longer steps, and may stop earlier, once T is low; see
    #: :meth:`relaxation`.
    over_relaxed: bool = False
    #: Number of documents in a shard, if training sums over these; see
    #: :mod:`annealvi.models.lda.local_step`.
    shard_size: int | None = None

    def least_share(self, dtype: DTypeLike, training: bool) -> float:
        """Return the share of a word below which a document's topic may be skipped; 0 for none.

        In float64 gamma changes by less than 1e-6, and by less than 1e-10 with
        ``start="random"``.
        """
        if not self.prune:
            return 0.0
        if self.start == "random":
            return EXACT_SHARE
        if np.dtype(dtype) == np.float64:
            return LEAST_SHARE
        return TRAINING_SHARE if training else SINGLE_SHARE

    def relaxation(self, tempering: Tempering) -> tuple[float, float]:
        """Return omega and a factor of the tolerance for documents in training.

        With ``over_relaxed``, once T is below 1.2, gamma moves omega = 1.5 times as far as to the
        coordinate optimum, from the second iteration on.  As it is then closer to its limit, the
        tolerance is twice as large.  Otherwise both are 1.
        """
        if self.over_relaxed and tempering.mean * RELAXED_BELOW > 1:
            return RELAXATION
        return 1.0, 1.0

    def sparsity(self, tempering: Tempering) -> float:
        """Return the kappa of :mod:`annealvi.models.lda.documents` at a temperature.

        Under ``"sparse"`` it rises from 0 at T = 1.5 to 0.5 at T = 1, linearly in T.
        """
        if self.document_estimate == "variational":
            return 0.0
        T = 1.0 / tempering.mean
        return SPARSITY * max(0.0, (SPARSE_BELOW - T) / (SPARSE_BELOW - 1.0))


class Workspace:
    """The buffers that the kernels write to; they are kept as long as they are large enough.

    A workspace is used by one call at a time: that of the training steps by the thread that
    makes them, and each other call makes its own.
    """

    def __init__(self, n_features: int, width: int, dtype: DTypeLike, n_threads: int) -> None:
        self.n_threads = n_threads  # the buffers are for this number of threads
        self._width, self._dtype = width, dtype
        self._capacity = (0, 0, 0)
        self.indices = WordIndices(n_features, n_threads)
        self.sums = separate_rows(n_threads, width)
        self._alpha = np.empty(0), np.empty(0, dtype=dtype)

    def padded(self, alpha: NDArray[np.float64]) -> NDArray:
        """The prior of the documents' topics as the kernels read it; the last one is kept."""
        if not np.array_equal(alpha, self._alpha[0]):
            self._alpha = alpha.copy(), padded_rows(alpha[None, :], self._dtype, fill=alpha[0])[0]
        return self._alpha[1]

    def reserve(self, index: WordIndex) -> None:
        """Make room for a block of documents."""
        needed = len(index.order), len(index.position), index.longest
        if self._capacity != (0, 0, 0) and all(
            n <= room for n, room in zip(needed, self._capacity, strict=True)
        ):
            return
        # some more than needed, which takes no memory until it is used: portions of a stream have
        # about as many words each
        n_samples, n_entries, longest = (
            max(1, n + n // SPARE, room) for n, room in zip(needed, self._capacity, strict=True)
        )
        self._capacity = (n_samples, n_entries, longest)
        block = kernels.SWEEP_BLOCK
        self._padded = -(-longest // block) * block
        self.ratio = np.empty(n_entries, dtype=self._dtype)
        self.t = aligned_empty((n_samples, self._width), self._dtype)
        n_slots = self.n_threads * kernels.TOGETHER_DOCUMENTS
        size = padded_length(kernels.scratch_size(self._width, self._padded), self._dtype)
        self.scratch = aligned_empty((n_slots, size), self._dtype)
        size = kernels.pointers_size(self._width, self._padded)
        self.rows = np.empty((n_slots, size), dtype=np.int64)
        self.active = np.empty((n_samples, self._width), dtype=np.int32)
        self.n_active = np.empty(n_samples, dtype=np.int32)
        room = min(self._padded * self._width, PACKED_BYTES // np.dtype(self._dtype).itemsize)
        size = kernels.columns_size(self._padded)
        self.columns = aligned_empty((n_slots, size), self._dtype)
        self.packed = aligned_empty((n_slots, room), self._dtype)

    def raised(self, needed: bool) -> NDArray:
        """A buffer for the rows of a document that has its own temperature."""
        n_slots = self.n_threads * kernels.TOGETHER_DOCUMENTS
        shape = (n_slots, self._padded * self._width) if needed else (1, 1)
        return np.empty(shape, dtype=self._dtype)


class Local(NamedTuple):
    """The outputs that are wanted from the local step of a block, besides gamma."""

    #: The statistics of the block are added to these.
    statistics: Statistics | None = None
    #: These are written: sum_v n_v log sum_k exp b (E log theta + E log beta), and the energy
    #: sum_v n_v E[log theta + log beta], with this sign.
    log_normalizer: NDArray[np.float64] | None = None
    energy: NDArray[np.float64] | None = None
    #: Written along with statistics if all documents have the same b: sum_d n_dv E[log beta] of
    #: the words in the block.
    word_energy: NDArray[np.float64] | None = None
    #: Whether the block is the only one of a step, and its statistics are summed later.
    deferred: bool = False


class Call(NamedTuple):
    """The arguments that all blocks of one call share."""

    X: Any
    weights: TopicWeights
    work: Workspace
    #: Inverse temperature that the weights are raised to.
    b0: float
    #: Prior of the documents' topic proportions, or (alpha + T - 1)/T in the posterior form.
    alpha: NDArray[np.float64]
    #: Whether to compute scikit-learn's numbers, its eps included.
    exact: bool
    #: kappa, see :mod:`annealvi.models.lda.documents`; 0 for the mean field.
    sparsity: float = 0.0
    #: See :meth:`LocalOptions.relaxation`.
    relaxation: tuple[float, float] = (1.0, 1.0)


def run_kernels(
    X: Any,
    rows: slice,
    gamma: NDArray,
    inverse: NDArray,
    b0: float,
    alpha: NDArray[np.float64],
    index: WordIndex,
    weights: TopicWeights,
    work: Workspace,
    wanted: Local,
    options: LocalOptions,
    *,
    exact: bool,
    mixed: bool,
    refresh: Callable[[], None],
    sparsity: float = 0.0,
    relaxation: tuple[float, float] = (1.0, 1.0),
    max_iter: int | None = None,
) -> None:
    """Fit gamma of a block of documents in place, and write the other outputs that are wanted."""
    dtype = gamma.dtype
    work.reserve(index)
    by_topic = options.token_tolerance is None
    tolerance = options.tolerance if options.token_tolerance is None else options.token_tolerance
    nothing, alpha, raised = np.empty(0), work.padded(alpha), work.raised(mixed)
    least_share = options.least_share(dtype, wanted.statistics is not None)
    refresh()
    kernels.fit_documents(
        X.data,
        X.indices,
        X.indptr,
        rows.start,
        rows.stop,
        index.order,
        weights.place,
        weights.values,
        weights.log_scale,
        weights.row_sums,
        weights.logs,
        b0,
        inverse,
        alpha,
        np.finfo(dtype).eps if exact else 0.0,
        sparsity,
        relaxation[0],
        relaxation[1] * tolerance,
        by_topic,
        options.max_iter if max_iter is None else max_iter,
        least_share,
        wanted.statistics is not None,
        wanted.log_normalizer is not None,
        wanted.energy is not None,
        work.n_threads,
        gamma,
        work.t,
        work.active,
        work.n_active,
        work.ratio,
        nothing if wanted.log_normalizer is None else wanted.log_normalizer,
        nothing if wanted.energy is None else wanted.energy,
        work.scratch,
        work.rows,
        work.packed,
        work.columns,
        raised,
    )
    if wanted.statistics is None:
        return
    block = FittedBlock(
        index,
        work.ratio,
        work.t,
        work.active,
        work.n_active,
        inverse,
        b0,
        weights,
        exact,
        work.n_threads,
        work.sums,
        work.scratch,
    )
    if wanted.deferred:
        wanted.statistics.defer(block)
    else:
        wanted.statistics.add(block, wanted.word_energy)


def lengths(X: Any, rows: slice) -> NDArray[np.float64]:
    """Number of words of each document."""
    ends = X.indptr[rows.start : rows.stop + 1]
    written = ends[1:] > ends[:-1]
    sums = np.zeros(len(written))
    if written.any():  # reduceat returns the first number of an empty stretch
        counts = X.data[ends[0] : ends[-1]]
        sums[written] = np.add.reduceat(counts, ends[:-1][written] - ends[0], dtype=np.float64)
    return sums


#: Buffers of training are released while the fit is evaluated, if they take more bytes than this.
LARGE_BYTES = 1 << 25


class Training(NamedTuple):
    """What training steps write to."""

    weights: TopicWeights
    work: Workspace
    statistics: Statistics


class Buffers:
    """The buffers of a model's training steps, kept from the first step until they are released.

    They belong to the one thread that makes these steps.  Copies and pickles of a model have
    empty ones.  What they hold never changes a result: each step computes all that it reads.
    Kept, they spare a stream of small portions the time in which the system hands out memory,
    page by page.
    """

    def __init__(self) -> None:
        self.training: Training | None = None
        self._shape: tuple[int, int, np.dtype] | None = None
        self._process: int | None = None  # the one in which steps are being made
        self._repeated = False

    def ready(self, n_features: int, width: int, dtype: DTypeLike, n_threads: int) -> Training:
        """The buffers for a step, made if there are none for this number of threads."""
        shape = n_features, width, np.dtype(dtype)
        if self.training is None or self._shape != shape:
            self._shape = shape
            weights = TopicWeights(*shape, bounded=True)
            self.training = Training(weights, Workspace(*shape, n_threads), Statistics(*shape))
        elif self.training.work.n_threads != n_threads:
            self.training = self.training._replace(work=Workspace(*shape, n_threads))
        self.training.work.indices.repeated = self._repeated
        return self.training

    @property
    def in_use(self) -> bool:
        """Whether a fit is under way, in this process."""
        return self._process == os.getpid()

    @contextmanager
    def used(self, *, keep: bool = False, repeated: bool = False) -> Iterator[None]:
        """Return the context of a fit, which releases the buffers at its end."""
        before, self._repeated = self._repeated, repeated
        outer = self._process if self.in_use else None  # of a callback that fits once more
        if outer is None and self._process is not None:
            self.release()  # in a forked child, of a step of the parent's that was not its own
        kept = False
        try:
            self._process = os.getpid()
            yield
            kept = keep
        finally:
            self._process, self._repeated = outer, before
            if not kept:
                self.release()
            elif self.training is not None:  # the next call may bring other documents in this X
                self.training.work.indices.forget()

    def release(self) -> None:
        """Give the memory back.  The next step makes new ones."""
        self.training = None

    def release_large(self) -> None:
        """Give the memory back between two steps if it is much."""
        if self.training is not None and self.training.statistics.nbytes > LARGE_BYTES:
            self.release()

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        return Buffers, ()


#: Buffers of this process' tasks that no task uses now, the last used at the end.
_free: deque[Buffers] = deque()


@contextmanager
def lent_buffers() -> Iterator[Buffers]:
    """Return the context of tasks for another process: buffers, kept for later tasks.

    One call after the other gets the same ones.
    """
    try:
        buffers = _free.pop()
    except IndexError:
        buffers = Buffers()
    try:
        with buffers.used(keep=True):
            if buffers.training is not None:
                buffers.training.weights.outdate()  # they may be of other topics
            yield buffers
    finally:
        _free.append(buffers)
