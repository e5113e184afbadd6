"""The topics of LDA, q(beta) = Dir(lambda): their storage, their steps and their bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import gen_batches

from annealvi._kernels import gpu, special
from annealvi._kernels import lda_topics as kernels
from annealvi._kernels.layout import aligned_empty, padded_length, separate_rows
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Array, Number, Schema, damaged
from annealvi.models.dirichlet import BLOCK, divergence_terms
from annealvi.models.lda.device import DeviceTopics, device_of, used
from annealvi.models.lda.merging import NEIGHBOURS, groups_of
from annealvi.threads import shallow, writing


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


class FittedBlock(NamedTuple):
    """A block of fitted documents, from which its statistics can be computed."""

    entries: WordIndex
    weights: TopicWeights
    #: The workspace with the results of ``fit_documents``.
    work: Any
    #: Inverse temperature of each document.
    inverse: NDArray


class Statistics:
    """The statistics sum_d b_d n_dv phi_dvk, with a row for each word that occurs.

    Rows are in the order in which words first occurred; see :class:`TopicWeights`.

    If one block contains all documents of a step, its statistics are summed only when they are
    needed: row by row by :meth:`step_rows`, or all of them by :attr:`values`.
    """

    def __init__(self, n_features: int, width: int, dtype: DTypeLike) -> None:
        self.stored = aligned_empty((n_features, width), dtype)
        self.deferred: FittedBlock | None = None
        self.row_of = np.full(n_features, -1, dtype=np.int32)
        self.n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts

    @property
    def values(self) -> NDArray:
        """The rows, of shape (V, K padded)."""
        if self.deferred is not None:
            block, self.deferred = self.deferred, None
            self.row_of[block.entries.words], self.n_rows[0] = -1, 0
            self.add(block)
        return self.stored

    @property
    def nbytes(self) -> int:
        """The bytes that the rows take if all words occur."""
        return self.stored.nbytes

    def clear(self) -> None:
        """Remove the statistics of all words."""
        self.deferred = None
        self.row_of[:] = -1
        self.n_rows[0] = 0

    def defer(self, block: FittedBlock) -> None:
        """Add the first block of a step, whose statistics are summed later."""
        self.row_of[block.entries.words] = np.arange(len(block.entries.words), dtype=np.int32)
        self.n_rows[0], self.deferred = len(block.entries.words), block

    def add(self, block: FittedBlock, word_energy: NDArray[np.float64] | None = None) -> None:
        """Add the statistics of a block of documents."""
        values = self.values  # these settle the rows' places
        kernels.accumulate_statistics(block, self.row_of, self.n_rows, values, word_energy)

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
        values = self.values  # these settle the rows' places
        seen = self.row_of >= 0
        if np.count_nonzero(seen) < dense_share * len(seen):
            return seen, values[self.row_of[seen]]
        rows = values.take(self.row_of, axis=0, mode="clip")
        rows[~seen] = 0
        return seen, rows

    def put_seen(self, seen: NDArray[np.bool_], rows: NDArray) -> None:
        """Set the rows of words to the results of :meth:`seen`; there must be no rows before."""
        words = np.flatnonzero(seen)
        own = self.n_rows[0] + np.arange(len(words))
        self.row_of[words] = own
        if len(rows) == len(seen):
            rows = rows[seen]
        self.values[self.n_rows[0] : self.n_rows[0] + len(words)] = rows
        self.n_rows[0] += len(words)

    def dense(self, n_topics: int) -> NDArray:
        """The statistics of all words, of shape (V, K); words that did not occur have 0."""
        out = np.zeros((len(self.row_of), n_topics), self.values.dtype)
        words = self.words()
        out[words] = self.rows(words, n_topics)
        return out


#: Weights of words are kept between blocks if they take at most KEPT_BYTES, or if they belong to at
#: most the share KEPT_SHARE of the vocabulary.
KEPT_BYTES, KEPT_SHARE = 1 << 25, 0.25
#: Logarithm of the sums of topics in the padding, so that padding never has the largest weight.
PADDED_LOG_SUM = 1e30

TopicEstimate = Literal["map", "variational"]


def log_of(estimate: TopicEstimate) -> Callable[..., NDArray]:
    """The function f for which log E[beta] or E[log beta] is f(lambda_v) - f(sum_v lambda_v)."""
    return special.log if estimate == "map" else special.digamma


class Rows(NamedTuple):
    """The rows of lambda as they are stored; some rows may have pending steps.

    The pending steps of row v multiply ``values[v] - eta[v]`` by ``now / decay[v]``.
    """

    values: NDArray
    eta: NDArray
    #: The value of `now` when the row was last updated.
    decay: NDArray[np.float64]
    #: The product of 1 - rho over all steps.
    now: float


def sums_of_rows(lam: NDArray, n_topics: int, n_threads: int) -> NDArray[np.float64]:
    """Compute the sums of lambda over words, of shape (K,)."""
    sums = np.empty(n_topics)
    partial = separate_rows(kernels.n_blocks(len(lam)), n_topics)
    kernels.sum_topics(lam, n_threads, partial, sums)
    return sums


def move_rows(
    words: NDArray[np.int64],
    topics: Rows,
    n_threads: int,
    step: tuple[float, float, bool] = (0.0, 0.0, False),
    statistics: Statistics | None = None,
) -> NDArray[np.float64]:
    """Apply the pending steps to the rows of some words in place, and add statistics if given.

    `step` contains the factor by which statistics are multiplied, the minimum of lambda, and a
    flag: if it is true, the sums of the new rows are returned, otherwise those of the statistics.
    """
    n_topics, block = topics.eta.shape[1], None
    sums, partial = np.empty(n_topics), separate_rows(kernels.n_blocks(len(words)), n_topics)
    added: Any = topics.values, np.full(len(topics.decay), -1, dtype=np.int32)
    if statistics is not None:
        block, added = statistics.deferred, (statistics.stored, statistics.row_of)
    kernels.step_topics(words, *topics, *added, block, *step, n_threads, partial, sums)
    return sums


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
        self.values = aligned_empty((n_features, width), dtype)
        self.logs = np.empty((0, 0), dtype=dtype)
        self.log_scale = np.empty(n_features, dtype=dtype)
        self.row_sums = np.empty(n_features, dtype=dtype)
        self.place = np.full(n_features, -1, dtype=np.int32)
        self.n_rows = np.zeros(1, dtype=np.int64)  # an array, so that the kernel counts
        self._most = n_features
        if bounded:
            least = KEPT_BYTES // self.values[:1].nbytes
            self._most = min(n_features, max(least, int(KEPT_SHARE * n_features)))
        #: The inverse temperature at which the rows were computed.
        self.b0, self.exact = 0.0, False
        self._version = -1

    def outdate(self) -> None:
        """Drop all rows, because lambda has changed."""
        if self.n_rows[0]:
            self.n_rows[0] = 0
            self.place[:] = -1

    def match(self, version: int) -> None:
        """Drop the rows if they were computed from another version of the topics."""
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
        """Compute the rows of some words that have not been computed yet."""
        with writing(self):  # because threads that infer documents share weights
            if want_logs and not self.logs.size:
                self.logs = aligned_empty(self.values.shape, self.values.dtype)
                self.outdate()
            if (self.b0, self.exact) != (b, exact):
                self.b0, self.exact = b, exact
                self.outdate()
            n_new = np.count_nonzero(self.place[words] < 0) if self._most < len(self.place) else 0
            if self.n_rows[0] + n_new > self._most:
                self.outdate()
            width, dtype = self.values.shape[1], self.values.dtype
            log_sums = np.full(width, PADDED_LOG_SUM, dtype=dtype)
            log_sums[: len(topic_sums)] = log_of(estimate)(topic_sums)
            scratch = separate_rows(n_threads, 2 * width, dtype), np.empty(len(words), np.int64)
            kernels.refresh_weights(
                words, *topics, log_sums, estimate == "map", n_threads, *scratch, self
            )


#: The hint in errors about GPUs.
GPU_LIMITS = f"GPUs compute in float32, and fit {gpu.MOST_TOPICS:,} topics at most."
#: Number of words whose logarithms are computed together.
TOPIC_ROWS = 512
#: A step updates all rows if at least this share of the vocabulary occurs in the minibatch,
#: because the next minibatch would need nearly all of them.
DENSE_SHARE = 0.7
#: If the prior is this many times lambda, their difference has lost digits of lambda.
CANCELS = 1e6
#: Which topics are merged depends on words whose counts in a topic are above LEAST_COUNT, or above
#: the share LEAST_SHARE of the topic if that is less.
LEAST_COUNT, LEAST_SHARE = 0.1, 2.5e-4
#: Rows of added words start at this share of the prior, and steps move them to the whole prior.
#: Starting at the whole prior would change the sums of small topics, and so all shares, suddenly.
NEW_SHARE = 1e-3
#: Pending steps are applied when the product of 1 - rho falls below this.
FORGOTTEN = 1e-200


class Topics:
    """The parameters lambda of the topics, with a row for each word, and their prior.

    An online step updates only the rows of the words in the minibatch.  The other rows only move
    towards the prior, and are updated later, when they are needed (see :meth:`step`).

    Several threads may read the topics.  While a method changes them (`step`, `catch_up`, `assign`,
    or setting an attribute), no other thread may use them.  Methods that read do not apply pending
    steps in place, because the local step of another thread may read the rows.
    """

    STATE = Schema(
        stored=Array(("V", "width"), "dtype"),
        decay=Array(("V",), positive=True),
        now=Number(FORGOTTEN, 1.0),
        sums=Array(("K",), positive=True),
    )

    def __init__(
        self,
        n_topics: int,
        n_features: int,
        eta: ArrayLike,
        dtype: DTypeLike,
        n_threads: int = 1,
        estimate: TopicEstimate = "variational",
    ) -> None:
        self.n_topics = n_topics
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.n_threads = n_threads
        self.width = padded_length(n_topics, self.dtype)
        #: The topics on a GPU, or None, and whether only their lambda has the last steps.
        self.on_device: DeviceTopics | None = None
        self._moved_there = False
        self._stored = aligned_empty((n_features, self.width), self.dtype)
        self._room: NDArray | None = None  # `stored` is its first rows; see add_words
        self.decay, self.now = np.ones(n_features), 1.0
        self.eta = np.array(eta, dtype=np.float64)
        self._prior: tuple[NDArray, NDArray[np.float64]] | None = None  # rows, sums over words
        self._estimate: TopicEstimate = estimate
        self._sums: NDArray[np.float64] | None = None
        #: `version` changes with lambda, `replaced` only if lambda is set without a step.
        self.version = self.replaced = 0
        #: Weights that calls share; see :class:`annealvi.models.lda.documents.Documents`.
        self.weights: dict[Any, TopicWeights] = {}

    @property
    def shape(self) -> tuple[int, int, np.dtype]:
        """V, K padded and the dtype, for which buffers are made."""
        return self.n_features, self.width, self.dtype

    @property
    def stored(self) -> NDArray:
        """The values of :class:`Rows`, which are read-only if they are a part of a file."""
        if self._moved_there and self.on_device is not None:
            lam = aligned_empty(self._stored.shape, self.dtype)
            with used(self.on_device.device):
                self.on_device.lam.get(out=lam)
            self.stored = lam
        return self._stored

    @stored.setter
    def stored(self, value: NDArray) -> None:
        self._stored, self._moved_there = value, False

    def use(self, device: str) -> None:
        """Set the device, the processor or a GPU, for the next steps and documents."""
        found, before = device_of(device), self.on_device
        if found is (None if before is None else before.device):
            return
        if found is not None and (self.dtype != np.float32 or self.n_topics > gpu.MOST_TOPICS):
            wanted = f"'cpu' for {self.n_topics} topics in {self.dtype}"
            raise BadParameter("device", wanted, device, GPU_LIMITS)
        self._stay(found)

    def _stay(self, device: Any) -> None:
        """Move lambda from a GPU to the host, and compute on this device from now on."""
        self.stored, self.weights = self.stored, {}
        self.on_device = None if device is None else DeviceTopics(device)

    def leave(self) -> None:
        """Release the memory on a GPU until the topics are needed there again."""
        if self.on_device is not None:
            self._stay(self.on_device.device)

    def _changed(self, replaced: bool = False) -> None:
        """Mark values that were computed from lambda as outdated."""
        self.version += 1
        self.replaced += replaced
        self.weights = {}

    def copy(self) -> Self:
        """Return an independent copy."""
        copied = shallow(self)
        copied.stored, copied.decay, copied.weights = self._copied(), self.decay.copy(), {}
        copied._room = None
        copied.leave()
        return copied

    def _copied(self) -> NDArray:
        copied = aligned_empty(self.stored.shape, self.dtype)
        copied[:] = self.stored
        return copied

    def _own(self) -> None:
        """Before a change, copy arrays that are a part of a file."""
        if not self._stored.flags.writeable:  # then the topics have not been on a device
            self.stored, self.decay = self._copied(), self.decay.copy()

    @property
    def estimate(self) -> TopicEstimate:
        """The estimate of log beta that documents use."""
        return self._estimate

    @estimate.setter
    def estimate(self, value: TopicEstimate) -> None:
        if value != self._estimate:
            self._estimate = value
            self._changed(replaced=True)

    def set_eta(self, eta: ArrayLike) -> None:
        """Set the prior, of shape (), (V,) or (K, V), which the next step uses."""
        if not np.array_equal(self.eta, eta):
            self.catch_up()  # pending steps must use the old prior
            self.eta, self._prior = np.array(eta, dtype=np.float64), None

    # ------------------------------------------------------------------- lambda

    @property
    def lam(self) -> NDArray:
        """The present lambda, of shape (V, K padded), which is a copy if steps are pending."""
        if self.now == 1:
            return self.stored
        lam = self._copied()
        rows = self.rows()._replace(values=lam, decay=self.decay.copy())
        move_rows(np.arange(self.n_features), rows, self.n_threads)
        return lam

    @property
    def components(self) -> NDArray:
        """The present lambda as a view of shape (K, V)."""
        return self.lam[:, : self.n_topics].T

    def snapshot(self) -> NDArray:
        """The present lambda as an array of shape (K, V) that later steps do not change."""
        lam = self._copied() if self.now == 1 else self.lam  # `lam` is a copy if steps are pending
        return lam[:, : self.n_topics].T

    def counts(self) -> NDArray:
        """The counts of words in each topic, lambda minus the prior, as a new (K, V) array."""
        return np.maximum(self.components - self.eta_rows(self.dtype).T, 0, order="C")

    def merged(self, several: Sequence[NDArray]) -> NDArray:
        """Merge the `counts` of several fits, and return lambda; see `merging.py`.

        The counts of merged topics are added, and divided by the number of fits.
        """
        rows = [row for counts in several for row in counts]
        size = sum(float(row.sum(dtype=np.float64)) for row in rows) / len(rows)
        least = min(LEAST_COUNT, LEAST_SHARE * size)
        groups = groups_of(rows, self.n_topics, NEIGHBOURS, least)
        means = np.array([sum(rows[k] for k in group) / len(several) for group in groups])
        means += self.eta_rows(self.dtype)[:, 0]
        return means

    def some_rows(self, words: NDArray[np.int64]) -> NDArray:
        """Copies of the rows of some words, to which pending steps have been applied."""
        lam = self.stored[words]
        if self.now != 1:
            rows = Rows(lam, self.rows().eta[words], self.decay[words], self.now)
            move_rows(np.arange(len(words)), rows, self.n_threads)
        return lam[:, : self.n_topics]

    def rows(self) -> Rows:
        """The stored lambda, with its pending steps."""
        return Rows(self.stored, self._kept_prior()[0], self.decay, self.now)

    def _kept_prior(self) -> tuple[NDArray, NDArray[np.float64]]:
        """The rows of eta, and their sums over words, of shape (K,) or (1,)."""
        if self._prior is None:
            topics = self.eta if self.eta.ndim == 2 else self.eta.reshape(1, -1)
            of_words = self.n_features if self.eta.ndim == 0 else 1
            self._prior = self.eta_rows(self.dtype), of_words * topics.sum(axis=1)
        return self._prior

    def catch_up(self) -> None:
        """Apply the pending steps of all rows."""
        if self.now != 1:
            self._own()
            words = np.arange(self.n_features)
            self._sums = move_rows(words, self.rows(), self.n_threads, (0.0, 0.0, True))
            self.decay, self.now = np.ones(self.n_features), 1.0
            self._changed()  # because rows change by rounding errors

    def assign(self, components: ArrayLike) -> None:
        """Set lambda from an array of shape (K, V)."""
        with self.replaced_by() as own:
            own[:] = components

    @contextmanager
    def replaced_by(self) -> Iterator[NDArray]:
        """Return a context that sets lambda: the caller fills an array of shape (K, V)."""
        lam = aligned_empty((self.n_features, self.width), self.dtype)
        lam[:, self.n_topics :] = 0
        yield lam[:, : self.n_topics].T
        self.stored, self.decay, self.now = lam, np.ones(self.n_features), 1.0
        self._room = self._sums = None
        self._changed(replaced=True)

    def add_words(self, n: int) -> None:
        """Add n words, whose prior is the smallest prior of the other words in the same topic.

        The allocated number of rows doubles when it is too small, so that few calls copy lambda.
        """
        V, K, sums, room = self.n_features + n, self.n_topics, self.sums, self._room
        if room is None or self.stored.base is not room.base or len(room) < V:
            room = aligned_empty((2 * V, self.width), self.dtype)
            room[: self.n_features] = self.stored
        if self.eta.ndim:
            least = np.repeat(self.eta.min(axis=-1, keepdims=True), n, axis=-1)
            self.eta = np.concatenate([self.eta, least], axis=-1)
        self.decay = np.append(self.decay, np.full(n, self.now))
        self.n_features, self.stored, self._room, self._prior = V, room[:V], room, None
        new = self.stored[-n:]
        new[:, :K], new[:, K:] = NEW_SHARE * self.eta_rows(self.dtype)[-n:], 0
        self._sums = sums + new[:, :K].sum(axis=0, dtype=np.float64)
        self._changed(replaced=True)

    @property
    def sums(self) -> NDArray[np.float64]:
        """The sums of lambda over words, of shape (K,)."""
        if self._sums is None:
            self._sums = sums_of_rows(self.lam, self.n_topics, self.n_threads)
        return self._sums

    # ------------------------------------------------------ what follows from lambda

    def exp_e_log(self) -> NDArray:
        """Compute exp(E log beta), of shape (K, V)."""
        weights, words = TopicWeights(*self.shape), np.arange(self.n_features)
        weights.refresh(words, self.rows(), self.sums, "variational", 1.0, True, self.n_threads)
        return weights.values[:, : self.n_topics].T

    def logs(self, lam: NDArray, out: NDArray | None = None) -> NDArray[np.float64]:
        """Compute E log beta or, with the map estimate, log E beta."""
        log = log_of(self.estimate)
        logs = log(np.asarray(lam, dtype=np.float64), out=out)
        logs[:, : self.n_topics] -= log(self.sums)
        return logs

    def bound(self, b: float = 1.0) -> float:
        """Compute the contribution of the topics to the objective, where the prior is Dir(b eta).

        This contribution is -KL(q(beta) || p(beta)).  With the map estimate, it is the log density
        of the point E beta under the prior Dir(b eta + 1), minus its log density under the uniform
        prior Dir(1).
        """
        return self._negative_kl(b) if self.estimate == "variational" else self._log_density(b)

    def _negative_kl(self, b: float) -> float:
        """Compute -KL(Dir(lambda) || Dir(b eta)), summed over topics."""
        K, V, eta, sums = self.n_topics, self.n_features, self.eta * b, self.sums
        # its shape is (1, 1), (V, 1) or (V, K), so that equal terms of the prior are summed once
        eta = eta.reshape(-1, 1) if eta.ndim < 2 else eta.T
        of_words, of_topics = V // eta.shape[0], K // eta.shape[1]
        of_each, psi_sums = np.broadcast_to(eta, (V, eta.shape[1])), special.digamma(sums)
        total = np.zeros(K)
        for rows in gen_batches(V, max(1, BLOCK // K)):
            total += divergence_terms(self.lam[rows, :K], of_each[rows], psi_sums).sum(axis=0)
        of_prior = special.lgamma(of_words * eta.sum(axis=0))
        of_prior -= of_words * np.sum(special.lgamma(eta), axis=0)
        return float(np.sum(total - special.lgamma(sums)) + of_topics * np.sum(of_prior))

    def _log_density(self, b: float) -> float:
        """Compute the sum over k of log Dir(E beta_k; b eta_k + 1) - log Dir(E beta_k; 1)."""
        K, V, lam, eta = self.n_topics, self.n_features, self.lam, self.eta_rows(np.float64, b)
        total = np.zeros(K)
        for start in range(0, V, TOPIC_ROWS):  # the order is the same for any number of threads
            some = slice(start, start + TOPIC_ROWS)
            total += np.sum(eta[some] * self.logs(lam[some, :K]), axis=0)
        copies = V if self.eta.ndim == 0 else 1
        eta = eta[: V // copies]
        of_prior = special.lgamma(copies * eta.sum(axis=0) + V) - special.lgamma([float(V)])
        of_prior -= copies * np.sum(special.lgamma(eta + 1.0), axis=0)
        return float(np.sum(total + of_prior))

    def eta_rows(self, dtype: DTypeLike, b: float = 1.0) -> NDArray:
        """Return b eta as a (V, K) array; if eta is a number, it takes the memory of one row."""
        shape, eta = (self.n_features, self.n_topics), self.eta
        if eta.ndim == 0:
            return np.broadcast_to(np.full(shape[1], b * eta, dtype=dtype), shape)
        rows = (eta[:, None] if eta.ndim == 1 else eta.T) * b
        return np.ascontiguousarray(np.broadcast_to(rows, shape), dtype=dtype)

    # --------------------------------------------------------------------- steps

    def step(
        self, statistics: Any, rho: float, scale: float, floor: float = 0.0, b: float = 1.0
    ) -> None:
        """Set lambda to (1 - rho) lambda + rho (b eta + scale * statistics), at least `floor`.

        Only the rows of words with statistics must be updated immediately.  The other rows move
        towards the prior: lambda - eta is multiplied by 1 - rho.  These steps are pending until a
        row is needed, and are then applied together.  The sums of lambda over words are computed
        from the sums of the statistics.  All rows are updated if most words occur, if rho = 1, if
        `floor` is positive, or if b is not 1.
        """
        if self.on_device is not None:
            self._step_on_device(self.on_device, statistics, 1.0 - rho, rho * scale, floor, b)
            return
        words, amount, n = statistics.words(), rho * scale, self.n_threads
        self._changed()
        self._own()
        few = len(words) < DENSE_SHARE * self.n_features
        if few and rho < 1 and floor == 0 and b == 1:
            before, (_, eta_sums) = self.sums, self._kept_prior()
            # if the fit is interrupted here, lambda is that of a step without statistics
            self._sums, self.now = None, self.now * (1.0 - rho)
            sums = move_rows(words, self.rows(), n, (amount, 0.0, False), statistics)
            moved = eta_sums + (1.0 - rho) * (before - eta_sums)
            if np.any(eta_sums > CANCELS * before):
                moved = (1.0 - rho) * before + rho * eta_sums
            self._sums = moved + amount * sums
            if self.now < FORGOTTEN:
                self.catch_up()
            return
        self.catch_up()  # because pending steps use the old prior
        eta = self._kept_prior()[0] if b == 1 else self.eta_rows(self.dtype, b)
        rows = Rows(self._stored, eta, np.ones(self.n_features), 1.0 - rho)
        self._sums, words = None, np.arange(self.n_features)
        self._sums = move_rows(words, rows, n, (amount, floor, True), statistics)

    def _step_on_device(self, there: DeviceTopics, *step: Any) -> None:
        """Move all rows on a GPU."""
        self.catch_up()
        there.match(self)
        self._changed()
        # if the fit is interrupted from here on, lambda is the one on the device
        there.version, self._moved_there, self._sums = self.version, True, None
        self._sums = there.step(self, *step)

    # --------------------------------------------------------------------- files

    def state_dict(self) -> dict[str, Any]:
        """The stored lambda; applying pending steps would change the last digits of later steps."""
        return self.STATE.dump(self)

    @classmethod
    def read(
        cls, tree: Mapping[str, Any], K: int, V: int, dtype: np.dtype, way: str = ""
    ) -> dict[str, Any]:
        """Check what :meth:`state_dict` returned; lambda stays a part of the file's buffer."""
        sizes: Any = dict(K=K, V=V, width=padded_length(K, dtype), dtype=dtype)
        found = cls.STATE.load(tree, way, **sizes)
        for start in range(0, V, TOPIC_ROWS):
            some = found["stored"][start : start + TOPIC_ROWS]
            if np.any(some[:, :K] <= 0) or np.any(some[:, K:]):
                raise damaged(f"{way}.stored", "positive, and 0 in the padding", found["stored"])
        return found

    def restore(self, found: dict[str, Any]) -> None:
        """Set what :meth:`read` returned, for topics of the same size."""
        self.stored, self.decay, self.now, self._sums = found.values()
        self._changed(replaced=True)

    def __getstate__(self) -> dict[str, Any]:
        kept = {"_stored": self.stored, "_moved_there": False, "on_device": None}
        return vars(self) | kept | {"_prior": None, "_room": None, "weights": {}}
