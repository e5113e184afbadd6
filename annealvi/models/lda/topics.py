"""The topics of LDA, q(beta) = Dir(lambda): their storage, their steps and their bound."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from annealvi._kernels import bounds, special
from annealvi._kernels import lda_topics as kernels
from annealvi._kernels.layout import aligned_empty, padded_length, padded_rows, separate_rows
from annealvi.checks import check_written
from annealvi.files import Node
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.word_index import WordIndex
from annealvi.threads import Lender, brief_lock, is_lent, shallow


class FittedBlock(NamedTuple):
    """What the statistics of a block of documents follow from, once these are fitted."""

    entries: WordIndex
    #: The documents' results, see ``fit_documents`` of the kernels.
    ratio: NDArray
    t: NDArray
    active: NDArray[np.int32]
    n_active: NDArray[np.int32]
    #: b of each document.
    inverse: NDArray
    #: The power of the weights.
    b0: float
    weights: TopicWeights
    #: Whether to compute scikit-learn's numbers.
    exact: bool
    n_threads: int
    #: Buffers, of shape (n_threads, K padded) and (n_threads, 2 K padded or more).
    sums: NDArray[np.float64]
    scratch: NDArray


class Statistics:
    """sum_d b_d n_dv phi_dvk of the words that were seen, word-major.

    Words have rows in the order in which they were first seen; see :class:`TopicWeights`.

    If all documents of a step are in one block, their statistics are summed only when they are
    needed: row by row by :meth:`step_rows`, or all by :attr:`values`.
    """

    def __init__(self, n_features: int, width: int, dtype: DTypeLike) -> None:
        self._values = aligned_empty((n_features, width), dtype)
        self._deferred: FittedBlock | None = None
        self.row_of = np.full(n_features, -1, dtype=np.int32)
        self.n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts

    @property
    def values(self) -> NDArray:
        """The rows, of shape (V, K padded)."""
        if self._deferred is not None:
            block, self._deferred = self._deferred, None
            self.row_of[block.entries.words], self.n_rows[0] = -1, 0
            self.add(block)
        return self._values

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take, if all words are seen."""
        return self._values.nbytes

    def clear(self) -> None:
        """Forget all words."""
        self._deferred = None
        self.row_of[:] = -1
        self.n_rows[0] = 0

    def defer(self, block: FittedBlock) -> None:
        """Add a block that is the first of a step, and perhaps the only one."""
        self.row_of[block.entries.words] = np.arange(len(block.entries.words), dtype=np.int32)
        self.n_rows[0], self._deferred = len(block.entries.words), block

    def add(self, block: FittedBlock, word_energy: NDArray[np.float64] | None = None) -> None:
        """Add the statistics of a block of documents."""
        values, weights = self.values, block.weights
        kernels.accumulate_statistics(
            block.entries.words,
            block.entries.first,
            block.entries.document,
            block.entries.position,
            len(block.entries.words),
            block.ratio,
            block.t,
            block.active,
            block.n_active,
            block.inverse,
            block.b0,
            weights.place,
            weights.values,
            weights.logs,
            not block.exact,
            block.n_threads,
            weights.log_scale,
            self.row_of,
            self.n_rows,
            values,
            np.empty(0) if word_energy is None else word_energy,
            block.sums,
            block.scratch,
        )

    def step_rows(
        self,
        words: NDArray[np.int64],
        topics: Rows,
        amount: float,
        floor: float,
        whole: bool,
        n_threads: int,
    ) -> NDArray[np.float64]:
        """Move rows of lambda towards the prior, and add `amount` times their statistics."""
        lam, eta, decay, now = topics
        n_topics, block = eta.shape[1], self._deferred
        sums, partial = np.empty(n_topics), separate_rows(kernels.n_blocks(len(words)), n_topics)
        step = (amount, floor, whole)
        if block is None:
            kernels.step_topics(
                words,
                lam,
                eta,
                decay,
                now,
                self._values,
                self.row_of,
                *step,
                n_threads,
                partial,
                sums,
            )
            return sums
        kernels.accumulate_and_step(
            words,
            lam,
            eta,
            decay,
            now,
            block.entries.first,
            block.entries.document,
            block.entries.position,
            block.ratio,
            block.t,
            block.active,
            block.n_active,
            block.inverse,
            block.b0,
            block.weights.place,
            block.weights.values,
            block.weights.logs,
            not block.exact,
            self.row_of,
            *step,
            block.n_threads,  # which its buffers are for
            block.sums,
            block.scratch,
            partial,
            sums,
        )
        return sums

    def words(self) -> NDArray[np.int64]:
        """The words that were seen, ascending."""
        if self._deferred is not None:
            return self._deferred.entries.words
        return np.flatnonzero(self.row_of >= 0)

    def rows(self, words: NDArray[np.int64], n_topics: int) -> NDArray:
        """A copy of the rows of some words that were seen, without their padding."""
        return self.values[self.row_of[words], :n_topics]

    def seen(self, dense_share: float) -> tuple[NDArray[np.bool_], NDArray]:
        """Which words were seen, and a copy of their rows, with padding, in the order of words.

        If they are at least a share of the vocabulary, there are rows for all words.
        """
        values = self.values  # these settle the rows' places
        seen = self.row_of >= 0
        if np.count_nonzero(seen) < dense_share * len(seen):
            return seen, values[self.row_of[seen]]
        rows = values.take(self.row_of, axis=0, mode="clip")
        rows[~seen] = 0
        return seen, rows

    def put_seen(self, seen: NDArray[np.bool_], rows: NDArray) -> None:
        """Set the rows of words, of which none was seen before, as :meth:`seen` returns them."""
        words = np.flatnonzero(seen)
        own = self.n_rows[0] + np.arange(len(words))
        self.row_of[words] = own
        if len(rows) == len(seen):
            rows = rows[seen]
        self.values[self.n_rows[0] : self.n_rows[0] + len(words)] = rows
        self.n_rows[0] += len(words)

    def dense(self, n_topics: int) -> NDArray:
        """The statistics of all words, of shape (V, K); those not seen are 0."""
        out = np.zeros((len(self.row_of), n_topics), self.values.dtype)
        words = self.words()
        out[words] = self.rows(words, n_topics)
        return out

    def put(self, words: NDArray[np.int64], rows: NDArray) -> None:
        """Set the rows of words, of which none was seen before."""
        own = self.n_rows[0] + np.arange(len(words))
        self.row_of[words] = own
        self.values[own] = 0
        self.values[own, : rows.shape[1]] = rows
        self.n_rows[0] += len(words)


#: Weights of words are kept from block to block up to so many bytes, or up to those of this share
#: of the vocabulary if that is more.
KEPT_BYTES, KEPT_SHARE = 1 << 25, 0.25
#: Logarithm of the sums of topics in the padding, which is then no row's largest weight.
PADDED_LOG_SUM = 1e30

TopicEstimate = Literal["map", "variational"]


def log_of(estimate: TopicEstimate) -> Callable[..., NDArray]:
    """Return the function f in log beta_v = f(lambda_v) - f(sum_v lambda_v).

    log gives log E[beta]; digamma gives E[log beta].
    """
    return special.log if estimate == "map" else special.digamma


class Rows(NamedTuple):
    """lambda as it is stored: the updates of some rows may be pending.

    Row v of the present lambda is eta_v + now / decay_v (values_v - eta_v).
    """

    values: NDArray
    eta: NDArray
    #: Value of `now` when the row was last updated.
    decay: NDArray[np.float64]
    #: The product of 1 - rho over all steps.
    now: float


def sums_of_rows(lam: NDArray, n_topics: int, n_threads: int) -> NDArray[np.float64]:
    """The sums of lambda over words, of shape (K,)."""
    sums = np.empty(n_topics)
    partial = separate_rows(kernels.n_blocks(len(lam)), n_topics)
    kernels.sum_topics(lam, n_threads, partial, sums)
    return sums


def fingerprint(lam: NDArray, n_topics: int, n_threads: int) -> NDArray[np.float64]:
    """Checksum that detects what a user writes to the topics: sums over words and over topics."""
    with np.errstate(over="ignore", invalid="ignore"):  # whatever the user has written
        sums = sums_of_rows(lam, n_topics, n_threads)
        return np.concatenate([sums, lam.sum(axis=1, dtype=np.float64)])


def move_rows(
    words: NDArray[np.int64], topics: Rows, floor: float, whole: bool, n_threads: int
) -> NDArray[np.float64]:
    """Apply the pending steps of some words' rows, in place."""
    lam, eta, decay, now = topics
    sums = np.empty(eta.shape[1])
    partial = separate_rows(kernels.n_blocks(len(words)), eta.shape[1])
    none = np.full(len(decay), -1, dtype=np.int32)
    kernels.step_topics(
        words, lam, eta, decay, now, lam, none, 0.0, floor, whole, n_threads, partial, sums
    )
    return sums


def prior_rows(
    eta: NDArray[np.float64], shape: tuple[int, int], b: float, dtype: DTypeLike
) -> NDArray:
    """b eta as an array of shape (V, K); a scalar takes the memory of one row."""
    if eta.ndim == 0:
        return np.broadcast_to(np.full(shape[1], b * eta, dtype=dtype), shape)
    rows = (eta[:, None] if eta.ndim == 1 else eta.T) * b
    return np.ascontiguousarray(np.broadcast_to(rows, shape), dtype=dtype)


def exp_e_log(rows: Rows, sums: NDArray[np.float64], n_threads: int) -> NDArray:
    """exp(E log beta) of all words, of shape (V, K padded)."""
    n_features, width = rows.values.shape
    weights = TopicWeights(n_features, width, rows.values.dtype)
    weights.refresh(np.arange(n_features), rows, sums, "variational", 1.0, True, n_threads)
    return weights.values


class TopicWeights:
    """exp(b E log beta), word-major; a row is computed when a document first needs it.

    Words have rows in the order in which they were first needed.  So only as much of the arrays
    is ever written to, and takes memory, as there are words in a minibatch.

    Under the ``"map"`` estimate of topics log E beta replaces E log beta everywhere.

    Unless `exact`, row v is divided by exp(b log_scale_v), which is about its largest element,
    so that its elements do not overflow and do not all underflow.

    Several threads may read rows while another one adds some, because rows that are there are
    not written again.
    """

    def __init__(
        self, n_features: int, width: int, dtype: DTypeLike, bounded: bool = False
    ) -> None:
        self._lock = threading.Lock()  # taken under the topics' own, for which a fork waits
        self.values = aligned_empty((n_features, width), dtype)
        self.logs = np.empty((0, 0), dtype=dtype)
        self.log_scale = np.empty(n_features, dtype=dtype)
        self.row_sums = np.empty(n_features, dtype=dtype)
        self.place = np.full(n_features, -1, dtype=np.int32)
        self._n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts
        self._most = n_features
        if bounded:
            least = KEPT_BYTES // self.values[:1].nbytes
            self._most = min(n_features, max(least, int(KEPT_SHARE * n_features)))
        self._made_for: tuple[float, bool] | None = None
        self._version = -1

    def outdate(self) -> None:
        """Drop all rows, because lambda has changed."""
        if self._n_rows[0]:
            self._n_rows[0] = 0
            self.place[:] = -1

    def match(self, version: int) -> None:
        """Outdate the rows unless they were computed from this version of the topics."""
        if version != self._version:
            self._version = version
            self.outdate()

    def refresh(
        self,
        words: NDArray[np.int64],
        topics: Rows,
        topic_sums: NDArray[np.float64],
        estimate: TopicEstimate,
        b: float,
        exact: bool,
        n_threads: int,
        want_logs: bool = False,
    ) -> None:
        """Bring the rows of some words up to date."""
        with self._lock:
            self._refresh(words, topics, topic_sums, estimate, b, exact, n_threads, want_logs)

    def _refresh(
        self,
        words: NDArray[np.int64],
        topics: Rows,
        topic_sums: NDArray[np.float64],
        estimate: TopicEstimate,
        b: float,
        exact: bool,
        n_threads: int,
        want_logs: bool,
    ) -> None:
        if want_logs and not self.logs.size:
            self.logs = aligned_empty(self.values.shape, self.values.dtype)
            self.outdate()
        if self._made_for != (b, exact):
            self._made_for = (b, exact)
            self.outdate()
        if self._most < len(self.place):
            n_new = int(np.count_nonzero(self.place[words] < 0))
            if self._n_rows[0] + n_new > self._most:
                self.outdate()
        width, dtype = self.values.shape[1], self.values.dtype
        log_sums = np.full(width, PADDED_LOG_SUM, dtype=dtype)
        log_sums[: len(topic_sums)] = log_of(estimate)(topic_sums)
        kernels.refresh_weights(
            words,
            len(words),
            topics.values,
            topics.eta,
            topics.decay,
            topics.now,
            log_sums,
            len(topic_sums),
            estimate == "map",
            b,
            not exact,
            n_threads,
            separate_rows(n_threads, 2 * width, dtype),
            np.empty(len(words), dtype=np.int64),
            self.place,
            self._n_rows,
            self.values,
            self.log_scale,
            self.row_sums,
            self.logs,
        )


#: Number of words whose logarithms are computed at a time.
TOPIC_ROWS = 512


def negative_kl_of_topics(
    lam: NDArray,
    eta: NDArray[np.float64],
    sums: NDArray[np.float64],
    n_topics: int,
    n_threads: int,
) -> float:
    """-KL(Dir(lambda) || Dir(eta)), summed over topics."""
    K, V = n_topics, len(lam)
    # (1, 1), (V, 1) or (V, K): terms that are equal for all words or topics are summed once
    eta = np.ascontiguousarray(eta.reshape(-1, 1) if eta.ndim < 2 else eta.T)
    of_words, of_topics = V // eta.shape[0], K // eta.shape[1]
    total = np.empty(K)
    bounds.column_terms(
        lam,
        eta,
        special.digamma(sums),
        n_threads,
        separate_rows(n_threads, K),
        separate_rows(bounds.n_vocabulary_blocks(V), K),
        total,
    )
    of_prior = special.lgamma(of_words * eta.sum(axis=0)) - of_words * np.sum(
        special.lgamma(eta), axis=0
    )
    return float(np.sum(total - special.lgamma(sums)) + of_topics * np.sum(of_prior))


def log_density_of_mean(
    logs: Callable[[slice], NDArray[np.float64]], eta: NDArray[np.float64], symmetric: bool
) -> float:
    """sum_k log Dir(E beta_k; eta_k + 1) - log Dir(E beta_k; 1)."""
    V, K = eta.shape
    total = np.zeros(K)
    for start in range(0, V, TOPIC_ROWS):  # in this order for any number of threads
        some = slice(start, start + TOPIC_ROWS)
        total += np.einsum("vk,vk->k", eta[some], logs(some))
    copies = V if symmetric else 1
    eta = eta[: V // copies]
    of_prior = special.lgamma(copies * eta.sum(axis=0) + V) - special.lgamma([float(V)])
    of_prior -= copies * np.sum(special.lgamma(eta + 1.0), axis=0)
    return float(np.sum(total + of_prior))


class Shown:
    """The array of topics that the user has got, and whether anything was written to it.

    It is the model's own lambda if that has the dtype that is shown.  Otherwise it is a copy in
    the other dtype, made when somebody asks for it.
    """

    def __init__(self, n_topics: int, dtype: DTypeLike) -> None:
        self.n_topics = n_topics
        self.dtype = np.dtype(dtype)
        self.rows: NDArray | None = None
        self._sums = np.empty(0)

    def fresh(self) -> Shown:
        """The same for other topics, of which the user has no array yet."""
        return Shown(self.n_topics, self.dtype)

    @property
    def components(self) -> NDArray:
        """The array as a (K, V) view."""
        assert self.rows is not None
        return self.rows[:, : self.n_topics].T

    def show(self, lam: NDArray, n_threads: int) -> None:
        """Take an array to show; one of another dtype is copied.

        If the dtype cannot hold the numbers, the copy has that of lambda.
        """
        if lam.dtype != self.dtype:
            own = lam[:, : self.n_topics]
            lam = padded_rows(own, self.dtype if _holds(self.dtype, own) else lam.dtype)
        self.rows = lam
        self._sums = fingerprint(lam, self.n_topics, n_threads)

    def written(self, n_threads: int) -> bool:
        """Whether the user has written to the array since it was last looked at."""
        if self.rows is None:
            return False
        return not np.array_equal(fingerprint(self.rows, self.n_topics, n_threads), self._sums)

    def taken_over(self, lam: NDArray) -> NDArray:
        """What the user has written, as an array that may take the place of lambda.

        The numbers that were not written to stay as they are, to the last bit.
        """
        assert self.rows is not None
        check_written(self.components, "components_", lam.dtype)
        if self.rows.dtype == lam.dtype:
            return self.rows
        own, written = lam[:, : self.n_topics], self.rows[:, : self.n_topics]
        taken = padded_rows(own, lam.dtype)
        changed = written != own.astype(written.dtype)
        np.copyto(taken[:, : self.n_topics], written, where=changed, casting="same_kind")
        return taken

    def agree(self, lam: NDArray, n_threads: int) -> None:
        """Note that the array was taken over; it shows what was written as lambda holds it."""
        assert self.rows is not None
        if lam is not self.rows:
            self.components[:] = lam[:, : self.n_topics].T
        self._sums = fingerprint(self.rows, self.n_topics, n_threads)


def _holds(dtype: np.dtype, lam: NDArray) -> bool:
    """Whether a dtype has numbers as large and as small as those of lambda."""
    limits = np.finfo(dtype)
    least, most = np.float64(lam.min()), np.float64(lam.max())
    return bool(least >= np.float64(limits.tiny) and most <= np.float64(limits.max))


#: Sums that are kept from step to step may differ by rounding errors from those of the rows.
CLOSE = 1e-2


def read_rows(
    node: Node, shape: tuple[int, int], dtype: np.dtype, least: float
) -> tuple[NDArray, NDArray[np.float64], float]:
    """Read the values, `decay` and `now` of :class:`Rows`."""
    rows = node.array("rows", shape, dtype, finite=False)
    now, decay = node.number("now", least, 1.0), np.ones(shape[0])
    if now == 1:
        if not node.is_none("decay"):
            raise node.error("decay", "None", node.plain("decay"))
        return rows, decay, now
    decay = node.array("decay", shape[:1], np.float64)
    if np.any(decay < now) or np.any(decay > 1):
        raise node.error("decay", f"in the range [{now}, 1]", decay)
    return rows, decay, now


def checked_sums(node: Node, rows: Rows, n_topics: int) -> NDArray[np.float64] | None:
    """Check rows that were read, and return their sums over words if the file has them."""
    least, total = np.finfo(rows.values.dtype).tiny, np.zeros(n_topics)
    for start in range(0, len(rows.values), TOPIC_ROWS):
        some = slice(start, start + TOPIC_ROWS)
        values, padding = rows.values[some, :n_topics], rows.values[some, n_topics:]
        if not np.all(np.isfinite(values)) or np.any(values < least) or np.any(padding):
            raise node.error("rows", "positive and finite, and 0 in the padding", rows.values)
        prior = rows.eta[some].astype(np.float64)
        share = rows.now / rows.decay[some, None]
        with np.errstate(over="ignore"):
            total += np.sum(prior + share * (values - prior), axis=0)
    if not np.all(np.isfinite(total)):
        raise node.error("rows", "finite in their sums", rows.values)
    if node.is_none("sums"):
        return None
    sums = node.array("sums", (n_topics,), np.float64, positive=True)
    if not np.allclose(sums, total, rtol=CLOSE):
        raise node.error("sums", "the sums of 'rows' over words", sums)
    return sums


def read_shown_dtype(node: Node, dtype: np.dtype) -> np.dtype:
    """The dtype in which topics are shown to the user, by default their own."""
    if "shown" not in node:  # files before there was another
        return dtype
    return np.dtype(node.string("shown", ("float32", "float64")))


#: A step updates all rows if at least this share of the vocabulary occurs in the minibatch,
#: because the next minibatch would need nearly all of them.
DENSE_SHARE = 0.7
#: If the prior is so many times lambda, their difference has lost digits of lambda.
CANCELS = 1e6
#: Pending steps are applied when the product of 1 - rho falls below this.
FORGOTTEN = 1e-200


class Topics:
    """lambda, word-major, and its prior.

    An online step updates only the rows of the words in the minibatch.  The other rows would
    merely move towards the prior.  They are updated later, when they are needed (see
    :meth:`step`).

    One thread at a time makes steps.  Others read a :meth:`copy`, which shares the arrays; a
    change leaves these to the copies, if there are any, and goes on in new ones.
    """

    def __init__(
        self,
        n_topics: int,
        n_features: int,
        eta: ArrayLike,
        dtype: DTypeLike,
        n_threads: int = 1,
        estimate: TopicEstimate = "variational",
    ) -> None:
        self.lock = brief_lock()
        self._lender = Lender()
        self.n_topics = n_topics
        self.n_features = n_features
        self.eta = np.array(eta, dtype=np.float64)
        self.dtype = np.dtype(dtype)
        self.n_threads = n_threads
        self.width = padded_length(n_topics, self.dtype)
        self._lam = aligned_empty((n_features, self.width), self.dtype)
        #: See :class:`Rows`; one attribute, so that an interrupt finds both or neither changed.
        self._steps = (np.ones(n_features), 1.0)
        self._eta_kept: NDArray | None = None
        self._eta_sums = np.empty(0)  # over words, of shape (K,) or (1,)
        self._estimate: TopicEstimate = estimate
        self._sums: NDArray[np.float64] | None = None
        self.version = self.replaced = 0
        self.weights: dict[Any, TopicWeights] = {}
        self._shown = Shown(n_topics, self.dtype)

    def _changed(self) -> None:
        """Mark the values that follow from single rows of lambda as outdated."""
        self.version += 1
        self.weights = {}

    def _was_replaced(self) -> None:
        """Mark all values derived from lambda as outdated."""
        self._sums = None
        self._changed()
        self.replaced += 1

    def copy(self, *, lasting: bool = False) -> Self:
        """Return the topics as they are now; arrays are shared until one of the two changes.

        The user may write to the array that :meth:`show` returned.  It is shared too, unless the
        copy is `lasting`.
        """
        with self.lock:
            self.notice_writes()
            _ = self.sums, self.rows()  # computed once for all copies
            copied, lend = shallow(self), self._lender.lend
            copied.lock, copied._lender = brief_lock(), Lender()
            copied._shown = self._shown.fresh()
            copied._lam, copied._steps = lend(self._lam), (lend(self._steps[0]), self._steps[1])
            if lasting and self._lam is self._shown.rows:
                copied._own_arrays()
            return copied

    @property
    def estimate(self) -> TopicEstimate:
        """The estimate of log beta that documents use."""
        return self._estimate

    @estimate.setter
    def estimate(self, value: TopicEstimate) -> None:
        if value != self._estimate:
            self._estimate = value
            self._changed()
            self.replaced += 1

    def set_eta(self, eta: ArrayLike) -> None:
        """Use another prior, of shape (), (V,) or (K, V), from the next step on."""
        with self.lock:
            if not np.array_equal(self.eta, eta):
                self.catch_up()  # pending steps use the old prior
                self._eta_kept = None
                self.eta = np.array(eta, dtype=np.float64)

    # ------------------------------------------------------------------- lambda

    @property
    def lam(self) -> NDArray:
        with self.lock:
            decay, now = self._steps
            if now == 1:
                return self._lam
            lam = self._copied()
            self._move_rows(lam, decay.copy(), now, np.arange(self.n_features))
            return lam

    @property
    def components(self) -> NDArray:
        """lambda as a (K, V) view."""
        self.notice_writes()
        return self.lam[:, : self.n_topics].T

    def copy_of_components(self) -> NDArray:
        """:attr:`components` in an array of its own."""
        with self.lock:
            self.notice_writes()
            lam = self.lam
            return (lam.copy() if lam is self._lam else lam)[:, : self.n_topics].T

    def some_rows(self, words: NDArray[np.int64]) -> NDArray:
        """Copies of some words' rows of lambda, with their pending steps applied."""
        with self.lock:
            (decay, now), lam = self._steps, self._lam[words]
            if now != 1:
                eta = self.rows().eta[words]
                self._move_rows(lam, decay[words], now, np.arange(len(words)), eta=eta)
            return lam[:, : self.n_topics]

    def rows(self) -> Rows:
        """lambda as it is stored, with its pending steps."""
        with self.lock:
            if self._eta_kept is None:
                topics = self.eta if self.eta.ndim == 2 else self.eta.reshape(1, -1)
                of_words = self.n_features if self.eta.ndim == 0 else 1
                self._eta_sums = of_words * topics.sum(axis=1)
                self._eta_kept = self.eta_rows(self.dtype)  # last, in case of an interrupt
            return Rows(self._lam, self._eta_kept, *self._steps)

    def catch_up(self) -> None:
        """Apply the pending steps of all rows."""
        with self.lock:
            if self._steps[1] != 1:
                self._own_arrays()
                words = np.arange(self.n_features)
                self._sums = self._move_rows(self._lam, *self._steps, words, whole=True)
                self._all_current()
                self._changed()  # rows change by rounding errors

    @property
    def shown_dtype(self) -> np.dtype:
        """The dtype of the array that :meth:`show` returns, which is a copy if it is another."""
        return self._shown.dtype

    @shown_dtype.setter
    def shown_dtype(self, dtype: DTypeLike) -> None:
        with self.lock:
            if dtype != self._shown.dtype:
                self.notice_writes()
                if self._lam is self._shown.rows:
                    self._own_arrays()
                self._shown = Shown(self.n_topics, dtype)

    def show(self) -> NDArray:
        """:attr:`components` for a user, who may keep the array and write to it.

        What the user writes before the topics' next step takes effect.  An array obtained
        before a step may not show later updates.  If its dtype is another than that of lambda,
        the array is a copy, which is kept until the next step.
        """
        with self.lock:
            if self._shown.rows is None:
                # the user may write to lambda itself
                own = self._shown.dtype == self.dtype
                if own and (is_lent(self._lam) or self._lender.has_lent):
                    self._own_arrays()
                self._shown.show(self.lam, self.n_threads)
            return self._shown.components

    def notice_writes(self) -> None:
        """Use what the user wrote to the array that :meth:`show` returned."""
        with self.lock:
            if self._shown.written(self.n_threads):
                self._lam = self._shown.taken_over(self.lam)
                self._all_current()
                self._was_replaced()
                self._shown.agree(self._lam, self.n_threads)

    def assign(self, components: ArrayLike) -> None:
        """Set lambda from an array of shape (K, V)."""
        with self.replaced_by() as own:
            own[:] = components

    @contextmanager
    def replaced_by(self) -> Iterator[NDArray]:
        """Set lambda by writing to all of an array of shape (K, V)."""
        with self.lock:
            self._own_arrays(keep=False)
            self._shown = self._shown.fresh()
            self._lam[:, self.n_topics :] = 0
            yield self._lam[:, : self.n_topics].T
            self._all_current()
            self._was_replaced()

    def _all_current(self) -> None:
        """Record that no row has pending steps."""
        self._steps = (np.ones(self.n_features), 1.0)

    @property
    def sums(self) -> NDArray[np.float64]:
        """sum_v lambda_kv, of shape (K,)."""
        with self.lock:
            if self._sums is None:
                self.catch_up()
                self._sums = sums_of_rows(self._lam, self.n_topics, self.n_threads)
            return self._sums

    # ------------------------------------------------------ what follows from lambda

    def exp_e_log(self) -> NDArray:
        """exp(E log beta) for a user, as a (K, V) array of :attr:`shown_dtype`."""
        topics = self.copy()
        weights = exp_e_log(topics.rows(), topics.sums, topics.n_threads)
        return weights[:, : self.n_topics].T.astype(self.shown_dtype, copy=False)

    def logs(self, lam: NDArray, out: NDArray | None = None) -> NDArray[np.float64]:
        """E log beta or, under the map estimate, log E beta."""
        log = log_of(self.estimate)
        logs = log(np.asarray(lam, dtype=np.float64), out=out)
        logs[:, : self.n_topics] -= log(self.sums)
        return logs

    def bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """The topics' part of the objective.

        This is -KL(q(beta) || p(beta)).  In the map estimate beta is a point, so there is no KL.
        The prior Dir(eta + 1) of the point is then compared with the uniform prior:
        log Dir(E beta; eta + 1) - log Dir(E beta; 1).
        """
        self.notice_writes()
        b = tempering.mean if tempering.form == "posterior" else 1.0
        if self.estimate == "variational":
            return negative_kl_of_topics(
                self.lam, self.eta * b, self.sums, self.n_topics, self.n_threads
            )
        lam, K = self.lam, self.n_topics
        eta = self.eta_rows(np.float64, tempering)
        return log_density_of_mean(lambda some: self.logs(lam[some, :K]), eta, self.eta.ndim == 0)

    # --------------------------------------------------------------------- steps

    def step(
        self,
        statistics: Statistics,
        rho: float,
        scale: float,
        *,
        floor: float = 0.0,
        tempering: Tempering = UNTEMPERED,
    ) -> None:
        """lambda <- (1 - rho) lambda + rho (eta + scale * statistics).

        Only the rows of words in the statistics must be updated now.  The others move towards
        the prior, lambda - eta <- (1 - rho) (lambda - eta).  These steps are pending until the
        row is needed, and are then applied all at once.  The sums over words follow from those
        of the statistics.  All rows are updated if most words occur, if rho = 1, or if the
        step has another prior or a floor.
        """
        with self.lock:
            eta = self.rows().eta
            if tempering.form == "posterior":
                eta = self.eta_rows(self.dtype, tempering)
            self._changed()
            words = statistics.words()
            amount = rho * scale
            lazily = len(words) < DENSE_SHARE * self.n_features and rho < 1
            if lazily and eta is self._eta_kept and floor == 0:
                before, eta_sums = self.sums, self._eta_sums
                self._own_arrays()
                self._shown = self._shown.fresh()
                steps = (self._steps[0], self._steps[1] * (1.0 - rho))
                # if interrupted here, it was a step without statistics
                self._sums, self._steps = None, steps
                sums = self._move_rows(self._lam, *steps, words, statistics, amount)
                moved = eta_sums + (1.0 - rho) * (before - eta_sums)
                if np.any(eta_sums > CANCELS * before):
                    moved = (1.0 - rho) * before + rho * eta_sums
                self._sums = moved + amount * sums
                if steps[1] < FORGOTTEN:
                    self.catch_up()
            else:
                self.catch_up()  # pending steps use the old prior
                self._own_arrays()
                self._shown, self._sums = self._shown.fresh(), None
                self._sums = self._move_rows(
                    self._lam,
                    np.ones(self.n_features),  # `_steps` stay, so an interrupt does no harm
                    1.0 - rho,
                    np.arange(self.n_features),
                    statistics,
                    amount,
                    eta=eta,
                    floor=floor,
                    whole=True,
                )

    def _own_arrays(self, keep: bool = True) -> None:
        """Before a change, copy arrays that are not its own, or that others have too.

        Without `keep` the copy of lambda has no values yet.
        """
        shared = self._lender.has_lent
        if shared or self._lam is self._shown.rows or not self._lam.flags.writeable:
            self._lam = self._copied() if keep else aligned_empty(self._lam.shape, self.dtype)
        if shared or not self._steps[0].flags.writeable:
            self._steps = (self._steps[0].copy(), self._steps[1])
            self._lender = Lender()

    def _copied(self) -> NDArray:
        copied = aligned_empty(self._lam.shape, self.dtype)
        copied[:] = self._lam
        return copied

    def _move_rows(
        self,
        lam: NDArray,
        decay: NDArray[np.float64],
        now: float,
        words: NDArray[np.int64],
        statistics: Statistics | None = None,
        amount: float = 0.0,
        *,
        eta: NDArray | None = None,
        floor: float = 0.0,
        whole: bool = False,
    ) -> NDArray[np.float64]:
        """Apply the pending steps of some words' rows, up to `now`."""
        rows = Rows(lam, self.rows().eta if eta is None else eta, decay, now)
        if statistics is None:
            return move_rows(words, rows, floor, whole, self.n_threads)
        return statistics.step_rows(words, rows, amount, floor, whole, self.n_threads)

    def eta_rows(self, dtype: Any, tempering: Tempering = UNTEMPERED) -> NDArray:
        """eta as a (V, K) array with contiguous rows; a scalar takes the memory of one row."""
        b = tempering.mean if tempering.form == "posterior" else 1.0
        return prior_rows(self.eta, (self.n_features, self.n_topics), b, dtype)

    def state_dict(self) -> dict[str, Any]:
        """Return lambda as a tree, see :mod:`annealvi.files`: as it is stored, steps pending.

        Applying pending steps would change the bits of later steps.
        """
        with self.lock:
            self.notice_writes()
            decay, now = self._steps
            decay_of_rows = None if now == 1 else decay
            return {
                "rows": self._lam,
                "decay": decay_of_rows,
                "now": now,
                "sums": self._sums,
                "shown": self.shown_dtype.name,
            }

    def load_state_dict(self, node: Node) -> None:
        """Take over what :meth:`state_dict` returned; lambda stays a view of the file."""
        shape = self.n_features, self.width
        rows, decay, now = read_rows(node, shape, self.dtype, FORGOTTEN)
        shown = read_shown_dtype(node, self.dtype)
        with self.lock:
            self._lam, self._steps = rows, (decay, now)
            self._shown = Shown(self.n_topics, shown)
            self._was_replaced()
            self._sums = checked_sums(node, self.rows(), self.n_topics)

    def __getstate__(self) -> dict[str, Any]:
        self.notice_writes()
        kept = {name: value for name, value in vars(self).items() if name not in _NOT_PICKLED}
        return kept | {"_shown": self._shown.fresh()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fresh = dict(_lender=Lender(), lock=brief_lock(), weights={}, _eta_kept=None)
        vars(self).update(state, **fresh)


#: Attributes that a copy computes again.
_NOT_PICKLED = ("_eta_kept", "weights", "lock", "_lender")
