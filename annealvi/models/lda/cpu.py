"""The engine on the processor: its threads, the weights of words, word indices and scratch."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annealvi._kernels import lda as kernels
from annealvi._kernels import lda_topics
from annealvi._kernels.layout import aligned_empty, padded_rows, separate_rows
from annealvi.model import LocalStep
from annealvi.models.lda.engine import Engine, EStep
from annealvi.models.lda.model import (
    FORGOTTEN,
    LDA,
    TopicEstimate,
    log_of,
    move_rows,
)
from annealvi.threads import writing

#: Bytes for the weights of a document's words in the topics that it uses, as in the level 2 cache.
PACKED_BYTES = 1 << 19
#: Buffers are larger than the first block needs by one part in SPARE.
SPARE = 4
#: Most bytes of the word indices that are kept between passes over the documents.
MOST_BYTES = 1 << 26
#: If the statistics take more bytes than this, buffers are released while a fit is evaluated.
LARGE_BYTES = 1 << 25
#: Weights of words are kept for later inference if they take at most this many bytes.
SHARED_BYTES = 1 << 25
#: In training, weights are kept between blocks if they take at most KEPT_BYTES, or if they belong
#: to at most the share KEPT_SHARE of the vocabulary.
KEPT_BYTES = 1 << 25
KEPT_SHARE = 0.25
#: Logarithm of the sums of topics in the padding, so that padding never has the largest weight.
PADDED_LOG_SUM = 1e30
#: A step updates all rows if at least this share of the vocabulary occurs in the minibatch,
#: because the next minibatch would need nearly all of them.
DENSE_SHARE = 0.7
#: If the prior is this many times lambda, their difference has lost digits of lambda.
CANCELS = 1e6


class WordIndex(NamedTuple):
    """A transposed block of documents: its entries in the order of their words."""

    #: The words of the block, in ascending order.
    words: NDArray[np.int64]
    #: The index at which the entries of each word begin, and the end of the last word's entries.
    first: NDArray[np.int64]
    #: The document of each entry, and the index of the entry; both count from 0 in the block.
    document: NDArray[np.int64]
    position: NDArray[np.int64]
    #: The order in which threads fit the documents; the longest document comes first.
    order: NDArray[np.int64]
    #: Number of entries of the longest document.
    longest: int

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays of the index."""
        return sum(array.nbytes for array in self[:-1])

    def copy(self) -> Self:
        """Return an index that does not change with the next block."""
        return self._replace(
            # the arrays are views of buffers of the engine, which the next block overwrites
            words=self.words.copy(),
            first=self.first.copy(),
            document=self.document.copy(),
            position=self.position.copy(),
        )


class StepSums:
    """Sums over the documents of a step, which the step of the topics needs besides statistics."""

    def __init__(self) -> None:
        """Begin without sums."""
        self.forget_sums()

    def forget_sums(self) -> None:
        """Reset the sums at the beginning of a step."""
        #: The sums from which alpha is learned, or None.
        self.prior_sums: NDArray | None = None
        #: The energy of words at the topics of the local step.  If the topics make a full step, the
        #: energy of `local_step` becomes that at the new topics.
        self.of_words: float | None = None
        self.local_step: LocalStep | None = None
        #: The inverse temperature of the local step.
        self.b0 = 1.0


class Statistics(StepSums):
    """The statistics sum_d b_d n_dv phi_dvk, with a row for each word that occurs.

    Rows are in the order in which words first occurred; see :class:`TopicWeights`.

    If one block contains all documents of a step, its statistics are summed only when they are
    needed: row by row by :meth:`step_rows`, or all of them by :attr:`values`.
    """

    def __init__(self, n_features: int, width: int, dtype: DTypeLike) -> None:
        """Make empty statistics; `width` is the padded number of topics."""
        super().__init__()
        self.stored = aligned_empty((n_features, width), dtype)
        #: The only block of the step, if its statistics have not been summed yet.
        self.deferred: FittedBlock | None = None
        #: The row of each word, or -1 if it has not occurred.
        self.row_of = np.full(n_features, -1, dtype=np.int32)
        self.n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts

    @property
    def values(self) -> NDArray:
        """The rows, of shape (V, K padded); a deferred block is summed first."""
        block = self.deferred
        if block is not None:
            self.deferred = None
            # `defer` assigned rows to the words without values; `add` assigns them again
            self.row_of[block.entries.words] = -1
            self.n_rows[0] = 0
            self.add(block)
        return self.stored

    def clear(self) -> None:
        """Remove the statistics of all words."""
        self.deferred = None
        self.forget_sums()
        self.row_of[:] = -1
        self.n_rows[0] = 0

    def defer(self, block: FittedBlock) -> None:
        """Add the first block of a step, whose statistics are summed later."""
        n_words = len(block.entries.words)
        # rows in the order of the words, as the kernel assigns them
        self.row_of[block.entries.words] = np.arange(n_words, dtype=np.int32)
        self.n_rows[0] = n_words
        self.deferred = block

    def add(self, block: FittedBlock, word_energy: NDArray | None = None) -> None:
        """Add the statistics of a block of documents; add energies to `word_energy` if passed."""
        values = self.values  # sums a deferred block, which can change `row_of`
        lda_topics.accumulate_statistics(block, self.row_of, self.n_rows, values, word_energy)

    def words(self) -> NDArray[np.int64]:
        """The words that occurred, in ascending order."""
        if self.deferred is not None:
            return self.deferred.entries.words
        return np.flatnonzero(self.row_of >= 0)

    def rows(self, words: NDArray[np.int64], n_topics: int) -> NDArray:
        """A copy of the rows of some words that occurred, without padding."""
        return self.values[self.row_of[words], :n_topics]

    def seen(self, dense_share: float) -> tuple[NDArray[np.bool_], NDArray]:
        """Return which words occurred, and a copy of their rows with padding, in vocabulary order.

        If at least the share `dense_share` of all words occurred, there are rows for all words.
        """
        values = self.values  # sums a deferred block, which can change `row_of`
        seen = self.row_of >= 0
        if np.count_nonzero(seen) < dense_share * len(seen):
            return seen, values[self.row_of[seen]]
        # mode "clip" takes row 0 for words that did not occur (-1); they are set to 0 below
        rows = values.take(self.row_of, axis=0, mode="clip")
        rows[~seen] = 0
        return seen, rows

    def put_seen(self, seen: NDArray[np.bool_], rows: NDArray) -> None:
        """Set the rows of words to the results of :meth:`seen`; there must be no rows before."""
        words = np.flatnonzero(seen)
        self.row_of[words] = np.arange(len(words), dtype=np.int32)
        if len(rows) == len(seen):  # rows for all words
            rows = rows[seen]
        self.values[: len(words)] = rows
        self.n_rows[0] = len(words)


class TopicWeights:
    """The array exp(b E log beta); the row of a word is computed when a document first needs it.

    Rows are in the order in which words were first needed.  So a minibatch takes memory only for
    the words that it contains.

    With the ``"map"`` estimate of topics log E beta replaces E log beta everywhere.

    If `exact` is false, row v is divided by exp(b log_scale_v), which is about the largest element
    of the row.  So the elements do not overflow, and do not all underflow.

    Several threads may read rows while another thread adds rows, because existing rows are not
    written again.
    """

    def __init__(
        self, n_features: int, width: int, dtype: DTypeLike, bounded: bool = False
    ) -> None:
        """Make empty weights; `width` is the padded number of topics.

        If `bounded`, the number of rows is limited by KEPT_BYTES and KEPT_SHARE.
        """
        self.values = aligned_empty((n_features, width), dtype)
        # the logarithms of the weights at T = 1, allocated when they are first needed
        self.logs = np.empty((0, 0), dtype=dtype)
        self.log_scale = np.empty(n_features, dtype=dtype)
        self.row_sums = np.empty(n_features, dtype=dtype)
        #: The row of each word, or -1 if it has not been computed.
        self.place = np.full(n_features, -1, dtype=np.int32)
        self.n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts
        self._capacity = n_features  # the number of rows at which all rows are dropped
        if bounded:
            n_rows = max(KEPT_BYTES // self.values[:1].nbytes, int(KEPT_SHARE * n_features))
            self._capacity = min(n_features, n_rows)
        #: The inverse temperature at which the rows were computed.
        self.b0 = 0.0
        #: Whether rows are not divided by exp(b log_scale).
        self.exact = False
        self._version: object = None  # of the lambda that the rows were computed from

    def outdate(self) -> None:
        """Drop all rows, because lambda has changed."""
        if self.n_rows[0]:
            self.n_rows[0] = 0
            self.place[:] = -1

    def refresh(
        self,
        model: LDA,
        words: NDArray[np.int64],
        b: float,
        *,
        exact: bool = False,
        want_logs: bool = False,
        estimate: TopicEstimate | None = None,
        n_threads: int = 1,
    ) -> None:
        """Compute the rows of `words` that have not been computed yet, at inverse temperature b.

        Earlier rows are dropped if lambda, b or `exact` differ, or if there are too many rows.
        """
        estimate = model.estimate if estimate is None else estimate
        with writing(self):  # because threads that infer documents share weights
            if self._version is not model.version:
                self._version = model.version
                self.outdate()
            if want_logs and not self.logs.size:
                self.logs = aligned_empty(self.values.shape, self.values.dtype)
                self.outdate()
            if self.b0 != b or self.exact != exact:
                self.b0 = b
                self.exact = exact
                self.outdate()
            n_new = np.count_nonzero(self.place[words] < 0)
            if self.n_rows[0] + n_new > self._capacity:
                self.outdate()
            width = self.values.shape[1]
            dtype = self.values.dtype
            log_sums = np.full(width, PADDED_LOG_SUM, dtype=dtype)
            log_sums[: model.n_topics] = log_of(estimate)(model.sums)
            # the kernel writes rows to this object, and reads the scratch array of each thread
            lda_topics.refresh_weights(
                words,
                model.lam,
                model.prior()[0],
                model.decay,
                model.now,
                log_sums,
                estimate == "map",
                n_threads,
                separate_rows(n_threads, 2 * width, dtype),
                np.empty(len(words), np.int64),
                self,
            )


def exp_e_log(model: LDA) -> NDArray:
    """Compute exp(E log beta), of shape (K, V)."""
    weights = TopicWeights(*model.shape)
    # with exact=True, rows are in the order of the words passed, and not scaled
    weights.refresh(model, model.words, b=1.0, exact=True, estimate="variational")
    return weights.values[:, : model.n_topics].T


class FittedBlock(NamedTuple):
    """A block of fitted documents, from which its statistics can be computed."""

    entries: WordIndex
    weights: TopicWeights
    #: The engine with the results of ``fit_documents``.
    work: Any
    #: Inverse temperature of each document.
    inverse: NDArray


class CPUEngine(Engine):
    """Computes on the processor.  The kernels write to its buffers.

    Only one thread may use an engine.  The contents of buffers never change a result, because each
    step computes everything that it reads.  Keeping buffers saves the time to allocate memory.

    The words of a block of documents are indexed.  If the fit makes several passes, an index is
    kept after its first use, otherwise after its second use.  All kept indices together take at
    most MOST_BYTES.  When a pass over other documents begins, they are released.  An index is used
    again only if its documents still have the same words, because a callback may have changed them.
    """

    def __init__(self, n_threads: int = 1, *, repeated: bool = False) -> None:
        """Make an engine without buffers; `repeated` is true if a fit makes several passes."""
        self.n_threads = n_threads
        self.repeated = repeated
        self.release()

    def release(self) -> None:
        """Release all buffers; see `_prepare` and `_reserve`, which make them."""
        self._shape: tuple[Any, ...] | None = None
        self._weights: TopicWeights | None = None
        self._statistics: Statistics | None = None
        #: Numbers of documents, entries, and entries of a document for which there are buffers.
        self._capacity: tuple[int, ...] = (0, 0, 0)
        self.ratio: Any = None
        self.t: Any = None
        self.active: Any = None
        self.n_active: Any = None
        self.scratch: Any = None
        self.raised: Any = None
        self.forget_documents()

    def release_large(self) -> None:
        """Release all buffers if the statistics take more than LARGE_BYTES."""
        if self._statistics is not None and self._statistics.stored.nbytes > LARGE_BYTES:
            self.release()

    def forget_documents(self) -> None:
        """Release the word indices, because the documents may change from now on."""
        self._corpus: weakref.ref[Any] | None = None
        #: By the first and last row of a block: a digest of its words, and its index if kept.
        self._kept: dict[tuple[int, int], tuple[int, WordIndex | None]] = {}
        self._kept_bytes = 0

    def _prepare(self, model: LDA) -> None:
        """Make the buffers for the size of a model and the number of threads."""
        shape = *model.shape, self.n_threads
        if self._shape == shape:
            return
        self.release()
        self._shape = shape
        n_features, width, dtype = model.shape
        # scratch of the kernels; separate rows, so that threads share no cache line
        self.sums = separate_rows(self.n_threads, width)
        self.summed = separate_rows(self.n_threads, 2 * width, dtype)
        # the last alpha, and its padded copy
        self._alpha: tuple[NDArray, NDArray] = np.empty(0), np.empty(0, dtype=dtype)
        # the arrays of WordIndex, and a counter for each word
        self._counter = np.empty(n_features, dtype=np.int64)
        self._words = np.empty(n_features, dtype=np.int64)
        self._first = np.empty(n_features + 1, dtype=np.int64)
        self._document = np.empty(0, dtype=np.int64)
        self._position = np.empty(0, dtype=np.int64)

    def begin(self, model: LDA) -> Statistics:
        """Begin a training step; return the statistics, which are empty."""
        self._prepare(model)
        if self._statistics is None:
            self._weights = TopicWeights(*model.shape, bounded=True)
            self._statistics = Statistics(*model.shape)
        self._statistics.clear()
        return self._statistics

    def for_inference(self, model: LDA, step: EStep, want_logs: bool) -> CPUEngine:
        """Return another engine, whose weights are shared by all threads if they are small."""
        engine = type(self)(self.n_threads)
        engine._prepare(model)
        if want_logs or model.n_features * model.width * model.dtype.itemsize > SHARED_BYTES:
            engine._weights = TopicWeights(*model.shape, bounded=True)
            return engine
        # all threads share small weights, and later calls use them again
        shared = model.derived  # emptied when lambda changes
        key = "weights", step.b0, step.exact
        engine._weights = shared.get(key)
        if engine._weights is None:
            for name in list(shared):
                # at most two are kept: the weights of transform and of score
                if name[0] == "weights" and name[1] != step.b0:
                    shared.pop(name, None)
            # setdefault, because another thread may have added the weights
            engine._weights = shared.setdefault(key, TopicWeights(*model.shape))
        return engine

    def fit_block(
        self,
        model: LDA,
        step: EStep,
        X: Any,
        rows: slice,
        gamma: Any,
        b: NDArray,
        *,
        log_normalizer: NDArray | None = None,
        energy: NDArray | None = None,
        statistics: Any = None,
        word_energy: NDArray | None = None,
        deferred: bool = False,
    ) -> None:
        """Fit gamma of a block of documents in place; see :meth:`Engine.fit_block`."""
        weights: Any = self._weights
        # whether documents have different temperatures
        mixed = bool(np.any(b != step.b0))
        index = self._index(X, rows)
        self._reserve(model, index, mixed)
        weights.refresh(
            model,
            index.words,
            step.b0,
            exact=step.exact,
            # of which weights at other temperatures and energies are computed
            want_logs=mixed or energy is not None,
            n_threads=self.n_threads,
        )
        # writes gamma, log_normalizer and energy (unless None), and the arrays t and ratio of this
        # engine, from which statistics are computed
        kernels.fit_documents(
            X.data,
            X.indices,
            X.indptr,
            rows.start,
            rows.stop,
            index.order,
            weights,
            b,
            self._padded(step.alpha, model.dtype),
            step,
            gamma,
            self,
            log_normalizer,
            energy,
        )
        if statistics is None:
            return
        block = FittedBlock(index, weights, self, b)
        if deferred:
            statistics.defer(block)
        else:
            statistics.add(block, word_energy)

    def step_topics(
        self, model: LDA, statistics: Any, rho: float, scale: float, floor: float, b: float
    ) -> None:
        """Set lambda to (1 - rho) lambda + rho (b eta + scale * statistics), at least `floor`.

        Only the rows of words with statistics must be updated immediately.  The other rows move
        towards the prior: lambda - eta is multiplied by 1 - rho.  These steps are pending until a
        row is needed, and are then applied together.  The sums of lambda over words are computed
        from the sums of the statistics.  All rows are updated if most words occur, if rho = 1, if
        `floor` is positive, or if b is not 1.
        """
        words = statistics.words()
        amount = rho * scale
        model.changed()
        model.copy_if_read_only()
        few = len(words) < DENSE_SHARE * model.n_features
        if few and rho < 1 and floor == 0 and b == 1:
            before = model.sums
            eta, eta_sums = model.prior()
            # if the fit is interrupted here, lambda is that of a step without statistics
            model.sums = None
            model.now *= 1.0 - rho  # makes the step pending for all rows
            sums = move_rows(  # of the statistics
                words,
                model.lam,
                eta,
                model.decay,
                model.now,
                n_threads=self.n_threads,
                amount=amount,
                statistics=statistics,
            )
            moved = eta_sums + (1.0 - rho) * (before - eta_sums)
            # equal, but without the difference, which would lose digits
            if np.any(eta_sums > CANCELS * before):
                moved = (1.0 - rho) * before + rho * eta_sums
            model.sums = moved + amount * sums
            if model.now < FORGOTTEN:
                model.catch_up(self.n_threads)
            return
        model.catch_up(self.n_threads)  # because pending steps use the old prior
        model.sums = None  # in case the fit is interrupted in the next call
        model.sums = move_rows(
            model.words,
            model.lam,
            model.prior()[0] if b == 1 else model.eta_rows(model.dtype, b),
            # not the decay of the model: this step is applied, and does not become pending
            decay=np.ones(model.n_features),
            now=1.0 - rho,
            n_threads=self.n_threads,
            amount=amount,
            floor=floor,
            whole=True,
            statistics=statistics,
        )

    # ----------------------------------------------------------------- details

    def _padded(self, alpha: NDArray, dtype: np.dtype) -> NDArray:
        """The prior of the documents' topics in the form that kernels read; it is kept."""
        if not np.array_equal(alpha, self._alpha[0]):
            # padded with a positive number, whose logarithms are finite
            self._alpha = alpha.copy(), padded_rows(alpha[None, :], dtype, fill=alpha[0])[0]
        return self._alpha[1]

    def _reserve(self, model: LDA, index: WordIndex, mixed: bool) -> None:
        """Make the buffers large enough for a block of documents.

        `mixed` is true if documents have different temperatures.
        """
        # a thread fits several documents at the same time
        n_slots = self.n_threads * kernels.TOGETHER_DOCUMENTS
        width = model.width
        needed = len(index.order), len(index.position), index.longest
        if np.any(np.greater(needed, self._capacity)):  # as in the first block
            # somewhat more than needed, because blocks of a stream have similar numbers of words;
            # this takes no memory until it is used
            sizes = zip(needed, self._capacity, strict=True)
            self._capacity = tuple(max(1, n + n // SPARE, size) for n, size in sizes)
            n_samples, n_entries, self.longest = self._capacity
            itemsize = model.dtype.itemsize
            self.ratio = np.empty(n_entries, dtype=model.dtype)
            self.t = aligned_empty((n_samples, width), model.dtype)
            self.active = np.empty((n_samples, width), dtype=np.int32)
            self.n_active = np.empty(n_samples, dtype=np.int32)
            # how many weights of a document are packed in scratch
            self.room = min(self.longest * width, PACKED_BYTES // itemsize)
            n_bytes = kernels.scratch_bytes(width, self.longest, self.room, itemsize)
            self.scratch = aligned_empty((n_slots, n_bytes), np.uint8)
            self.raised = np.empty((1, 1), model.dtype)  # kernels do not accept None
        if mixed and self.raised.size == 1:  # for documents with their own temperatures
            self.raised = np.empty((n_slots, self.longest * width), dtype=model.dtype)

    def _index(self, X: Any, rows: slice) -> WordIndex:
        """The words of a block of documents, which are valid until the next call."""
        key = rows.start, rows.stop
        # another pass over a part of the documents, for example in minibatches of another size
        begins = rows.start == 0 and key not in self._kept
        if begins or self._corpus is None or self._corpus() is not X:
            self.forget_documents()
            self._corpus = weakref.ref(X)
        digest = kernels.digest_of_block(X.indices, X.indptr, *key)
        before, kept = self._kept.get(key, (None, None))
        if kept is not None and before == digest:
            return kept
        index = self._transposed(X, rows)
        if before != digest:  # the block is new, or has changed
            self._kept[key] = digest, None
            self._kept_bytes -= 0 if kept is None else kept.nbytes
            if not self.repeated:
                return index
        # kept if there is enough space; of a much larger corpus, too small a part could be kept
        n_bytes = self._kept_bytes + index.nbytes
        if n_bytes <= MOST_BYTES and len(X.indices) <= MOST_BYTES:
            index = index.copy()
            self._kept[key] = digest, index
            self._kept_bytes = n_bytes
        return index

    def _transposed(self, X: Any, rows: slice) -> WordIndex:
        """Index the words of a block; the arrays are views of buffers of this engine."""
        ends = X.indptr[rows.start : rows.stop + 1]
        lengths = np.diff(ends)
        n_entries = int(ends[-1] - ends[0])
        if len(self._document) < n_entries:
            self._document = np.empty(n_entries, dtype=np.int64)
            self._position = np.empty(n_entries, dtype=np.int64)
        n_words = kernels.index_words(  # writes to the five buffers
            X.indices,
            X.indptr,
            rows.start,
            rows.stop,
            self._counter,
            self._words,
            self._first,
            self._document,
            self._position,
        )
        order = np.arange(len(lengths), dtype=np.int64)
        if self.n_threads > 1:
            # the longest first, so that no thread begins a long document at the end
            order = np.argsort(-lengths, kind="stable")
        return WordIndex(
            words=self._words[:n_words],
            first=self._first[: n_words + 1],
            document=self._document[:n_entries],
            position=self._position[:n_entries],
            order=order,
            longest=int(lengths.max(initial=0)),
        )


#: Engines of this process's tasks that no task is using; the last used engine is at the end.
_free: list[CPUEngine] = []


@contextmanager
def lent_engine(n_threads: int) -> Iterator[CPUEngine]:
    """Lend an engine to a task in this worker process; later tasks get the same buffers."""
    try:
        engine = _free.pop()
    except IndexError:  # all engines of the process are in use
        engine = CPUEngine()
    engine.n_threads = n_threads  # tasks can have different numbers of threads
    yield engine  # after an error the engine is not used again
    engine.forget_documents()
    _free.append(engine)
