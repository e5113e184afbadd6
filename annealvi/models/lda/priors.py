r"""Learning the priors of LDA together with the topics.

Keep phi fixed, and let gamma_d = alpha + n_d change with alpha.  As a function of alpha, the terms
of documents in the bound are then the likelihood of Dirichlet-multinomial counts n_d, and

.. math::
   \alpha^*_k = \alpha_k \frac{\sum_d \psi(\gamma_{dk}) - \psi(\alpha_k)}
       {\sum_d \psi(\sum_j \gamma_{dj}) - \psi(\sum_j \alpha_j)}

maximises a lower bound of this likelihood, which equals the likelihood at alpha (Minka 2000, Eq.
55).  The lower bound is a sum of one term for each topic, which is concave in log alpha_k.
Therefore a step of size rho from alpha to alpha* never lowers the likelihood, even if the step is
cut off because alpha would become too small or too large.  With minibatches, rho is the step size
of the topics.  (Hoffman, Blei and Bach 2010 use this rho too, but their Newton step fixes gamma
instead of phi.  If gamma is fixed, alpha hardly moves: E log theta mostly reflects the old alpha.)

eta is one number.  -KL(q(beta) || Dir(eta)) has its maximum where psi(eta) - psi(V eta) equals
the mean of E log beta_kv over topics and words.  A step moves psi(eta) - psi(V eta) by the fraction
rho of the way to this mean, along the natural gradient in the mean parameter of Dir(eta).  With the
``"map"`` estimate the objective contains sum_k log Dir(beta_k; eta + 1) for the topics, so eta + 1
replaces eta, and log beta replaces E log beta.

At high temperatures every document has shares of all topics.  If alpha were learned at such a
temperature, documents would keep all topics until the end.  Therefore priors are learned only when
T is low.

**log C(T) of documents at the current q.**

For document d, the tempered likelihood of one word sums to

.. math::
   S_d(b) = \sum_k \exp(b E \log\theta_{dk}) \sum_v \exp(b E \log\beta_{kv}),

and log C_d(b) = N_d log S_d(b).  This normaliser matches the updates of LDA, because both temper
the words together with their assignments to topics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from annealvi._kernels import special
from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.files.schema import Array, Number, Optional, Schema
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.topics import TopicEstimate, Topics
from annealvi.partition.estimate import SUMMED_ROWS, PowerGrid

#: Priors are learned if T is at most this.
COLD = 1.1
#: alpha_k and eta stay within these factors of the prior that is recommended for K topics.
ALPHA_RANGE, ETA_RANGE = 100.0, 10.0
#: Number of words whose logarithms are computed together.
ROWS = 512


class Seen(NamedTuple):
    """Sums over documents from which alpha is learned."""

    #: For each topic, sum_d psi(gamma_dk) - psi(alpha_k).
    by_topic: NDArray[np.float64]
    #: The sum over d of psi(sum_k gamma_dk) - psi(sum_k alpha_k).
    total: float

    def plus(self, other: Seen | None) -> Seen:
        """The sums over these and other documents; None means no other documents."""
        if other is None:
            return self
        return Seen(self.by_topic + other.by_topic, self.total + other.total)


class LearnedPriors:
    """Which priors are learned, and the sums from which alpha is learned."""

    def __init__(self, centre: float) -> None:
        self.centre = centre
        self.alpha = self.eta = False
        self._tempering = UNTEMPERED
        #: The sums of the last local step; None if alpha is not learned from it.
        self.seen: Seen | None = None

    def begin(self, tempering: Tempering, seen: Seen | None = None) -> None:
        """Begin a local step, or set the sums of a step that other processes have made."""
        self._tempering, self.seen = tempering, seen

    def add(self, gamma: NDArray, prior: NDArray[np.float64]) -> None:
        """Add the sums over documents that have been fitted."""
        if not self.alpha or len(prior) == 1 or not self._learns():
            return
        sums = gamma.sum(axis=1, dtype=np.float64)
        # the prior is rounded as in gamma, so that the difference is 0 for topics without words
        rounded = prior.astype(gamma.dtype)
        # the order of the sum is that of the documents, for any number of threads
        with np.errstate(over="ignore"):  # a prior near the largest float may overflow
            by_topic = np.sum(_digamma(gamma) - _digamma(rounded), axis=0)
            total = float(np.sum(_digamma(sums) - _digamma(rounded.sum(dtype=np.float64))))
        seen = Seen(by_topic, total)
        self.seen = seen if self.seen is None else self.seen.plus(seen)

    def step(
        self,
        alpha: NDArray[np.float64],
        eta: NDArray[np.float64],
        rho: float,
        mean_log_topics: Callable[[], float],
        n_features: int,
        estimate: TopicEstimate,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return alpha and eta after a step, or the same objects if they do not change."""
        if not self._learns():
            return alpha, eta
        b = self._tempering.of_priors  # see annealvi.models.lda
        if self.seen is not None:
            alpha = self._alpha(alpha, self.seen, rho, b)
        if self.eta and eta.ndim == 0 and n_features > 1:
            point = 1.0 if estimate == "map" else 0.0
            eta = np.array(self._eta(float(eta), mean_log_topics(), n_features, rho, b, point))
        self.seen = None
        return alpha, eta

    def _learns(self) -> bool:
        tempering = self._tempering
        return tempering.rule is None and bool(np.min(tempering.inverse) >= 1 / COLD)

    def _alpha(
        self, alpha: NDArray[np.float64], seen: Seen, rho: float, b: float
    ) -> NDArray[np.float64]:
        least, most = self.centre / ALPHA_RANGE, self.centre * ALPHA_RANGE
        inside = np.clip(alpha, least, most)
        if not np.array_equal(inside, alpha):
            return inside  # the user assigned an alpha outside the limits
        if not seen.total > 0:
            return alpha  # there were no words
        used = b * alpha + (1.0 - b)
        best = used * np.maximum(seen.by_topic, 0.0) / seen.total
        found = (used + rho * (best - used) - (1.0 - b)) / b
        return np.clip(found, least, most)

    def _eta(
        self, eta: float, mean: float, n_features: int, rho: float, b: float, point: float
    ) -> float:
        least, most = self.centre / ETA_RANGE, self.centre * ETA_RANGE
        used = b * min(max(eta, least), most) + point
        before = float(_digamma(used) - _digamma(n_features * used))
        target = (1.0 - rho) * before + rho * mean
        found = symmetric_from_mean(target, n_features, b * least + point, b * most + point)
        return float(np.clip((found - point) / b, least, most))


def mean_of_logs(logs: Callable[[slice], NDArray[np.float64]], n_features: int) -> float:
    """Compute the mean of E log beta, block after block and always in the same order."""
    means, sizes = [], []
    for start in range(0, n_features, ROWS):
        some = logs(slice(start, start + ROWS))
        means.append(float(some.mean()))
        sizes.append(len(some))
    return float(np.average(means, weights=sizes))


def symmetric_from_mean(mean: float, size: int, least: float, most: float) -> float:
    """Find the x in [least, most] for which psi(x) - psi(size x) is nearest to `mean`.

    psi(x) - psi(size x) increases with x.
    """

    def excess(log_x: float) -> float:
        x = math.exp(log_x)
        return float(_digamma(x) - _digamma(size * x) - mean)

    low, high = math.log(least), math.log(most)
    if excess(low) >= 0:
        return least
    if excess(high) <= 0:
        return most
    return math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-13))


def _digamma(x: Any) -> NDArray[np.float64]:
    return special.digamma(np.asarray(x, dtype=np.float64))


#: The sums of topics over the vocabulary take as long as a step.  So they are used until the sum of
#: the step sizes has reached this.  Older sums belong to topics that were less distinct: the model
#: then seems less certain than it is, and T falls too early.
MOVED = 1.0
#: Number of words whose logarithms are computed together.
PIECE = 16 * SUMMED_ROWS
TINY = np.finfo(np.float64).tiny


class DocumentPartition:
    """Computes log C_d(b) of documents at given inverse temperatures."""

    STATE = Schema(sums=Optional(Array(("points", "width"))), moved=Number(0.0))

    def __init__(self, inverses: NDArray[np.float64]) -> None:
        self.grid = PowerGrid(inverses)
        self._topics: NDArray[np.float64] | None = None
        self._replaced = -1  # the value of `Topics.replaced` when the sums were computed
        self._logs = np.empty((0, 0))  # buffer for E log beta
        self._rows = np.empty((0, 0))  # buffer for E log theta
        self._moved = 0.0

    def outdate(self, rho: float) -> None:
        """Count a step of the topics of size rho; drop the sums if they are too old."""
        self._moved += rho
        if self._moved >= MOVED:
            self._topics = None

    def release_buffers(self) -> None:
        """Release everything except what the next steps of a stream can use."""
        self._logs = self._rows = np.empty((0, 0))

    def state_dict(self, topics: Topics) -> dict[str, Any]:
        """Return the sums of topics that are kept between steps, as a tree for a file."""
        sums = self._topics if self._replaced == topics.replaced else None
        return self.STATE.dump({"sums": sums, "moved": self._moved})

    def load_state_dict(self, tree: Mapping[str, Any], topics: Topics, way: str = "") -> None:
        """Set the sums that :meth:`state_dict` returned, for the present topics."""
        sizes: Any = {"points": self.grid.n_points}
        sizes["width"] = padded_length(topics.n_topics, np.float64)
        self._topics, self._moved = self.STATE.load(tree, way, **sizes).values()
        self._replaced = topics.replaced

    def refresh(self, topics: Topics) -> None:
        """Compute the sums of topics over the vocabulary again if they are outdated."""
        if self._topics is not None and self._replaced == topics.replaced:
            return
        V, K = topics.n_features, topics.n_topics
        shape = min(V, PIECE), padded_length(K, np.float64)
        if self._logs.shape != shape:
            self._logs = aligned_empty(shape, np.float64)
        sums = np.zeros((self.grid.n_points, shape[1]))
        for start in range(0, V, PIECE):
            words = np.arange(start, min(start + PIECE, V))
            logs = self._logs[: len(words)]
            logs[:, :K], logs[:, K:] = topics.some_rows(words), 0
            topics.logs(logs, out=logs)  # -infinity in the padding
            self.grid.column_sums(logs, sums, n_threads=topics.n_threads)
        self._topics = sums
        self._moved, self._replaced = 0.0, topics.replaced

    def __call__(
        self, gamma: NDArray, n_words: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Compute log C_d for each document, of shape (n_samples, M)."""
        rows = self._e_log_theta(gamma)
        sums = self.grid.row_sums(rows, self._topics, n_threads=n_threads)
        return n_words[:, None] * special.log(np.maximum(self.grid.at_inverses(sums), TINY))

    def of_batch(
        self, gamma: NDArray, alpha: NDArray, n_words: NDArray[np.float64], n_threads: int
    ) -> tuple[NDArray[np.float64], float]:
        """Return sums over documents: of log C_d, shape (M,), and of the theta terms of b * energy.

        A document's theta terms are b sum_k E log theta_k sum_v n_v phi_vk.  After a converged
        local step, sum_v b n_dv phi_dvk = gamma_dk - alpha_k, so phi is not needed to compute them.
        """
        e_log_theta = self._e_log_theta(gamma)
        sums = self.grid.row_sums(e_log_theta, self._topics, n_threads=n_threads)
        total = np.sum(n_words[:, None] * special.log(np.maximum(sums, TINY)), axis=0)
        log_c = self.grid.at_inverses(total)
        energy = np.sum((gamma - alpha) * e_log_theta[:, : gamma.shape[1]])
        return log_c, float(energy)

    def _e_log_theta(self, gamma: NDArray) -> NDArray[np.float64]:
        """Compute E log theta in padded rows, which are valid until the next call."""
        n, K = gamma.shape
        width = padded_length(K, np.float64)
        if len(self._rows) < n or self._rows.shape[1] != width:
            self._rows = aligned_empty((n, width), np.float64)
        logs = self._rows[:n]
        logs[:, :K], logs[:, K:] = gamma, 0
        totals = logs.sum(axis=1)
        special.digamma(logs, out=logs)  # -infinity in the padding
        logs -= special.digamma(totals)[:, None]
        return logs
