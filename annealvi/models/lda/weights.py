"""exp(b log beta) of the words that documents need, computed from lambda."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annealvi._kernels import lda_topics as kernels
from annealvi._kernels import special
from annealvi._kernels.layout import aligned_empty, separate_rows

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
