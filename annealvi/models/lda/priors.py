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

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.utils import gen_batches

from annealvi._kernels import special
from annealvi._kernels.layout import padded_length, padded_rows
from annealvi.checks import TINY
from annealvi.files.schema import Array, Number, Optional, Schema
from annealvi.model import Tempering
from annealvi.partition.estimate import SUMMED_ROWS, PowerGrid

#: Priors are learned if T is at most this.
COLD = 1.1
#: alpha_k and eta stay within these factors of the prior that is recommended for K topics.
ALPHA_RANGE = 100.0
ETA_RANGE = 10.0
#: Number of words whose logarithms are computed together.
ROWS = 512


def usual_prior(n_topics: int) -> float:
    """Return the default priors: 1/K up to ten topics, 0.1 up to thirty topics, otherwise 3/K."""
    return min(max(0.1, 1.0 / n_topics), 3.0 / n_topics)


def prior_sums(gamma: NDArray, alpha: NDArray) -> NDArray:
    """Sums over documents that have been fitted with the prior alpha, from which alpha is learned.

    For each topic, sum_d psi(gamma_dk) - psi(alpha_k); the last number is the sum over d of
    psi(sum_k gamma_dk) - psi(sum_k alpha_k).
    """
    totals = gamma.sum(axis=1, dtype=float)
    # the prior is rounded as in gamma, so that the difference is 0 for topics without words
    rounded = alpha.astype(gamma.dtype)
    # the order of the sum is that of the documents, for any number of threads
    with np.errstate(over="ignore"):  # a prior near the largest float may overflow
        by_topic = np.sum(_digamma(gamma) - _digamma(rounded), axis=0)
        total = np.sum(_digamma(totals) - _digamma(rounded.sum(dtype=float)))
    return np.append(by_topic, total)


def learns_at(tempering: Tempering) -> bool:
    """Whether priors are learned at a temperature."""
    return tempering.rule is None and bool(np.min(tempering.inverse) >= 1 / COLD)


def learned_alpha(alpha: NDArray, sums: NDArray, rho: float, b: float) -> NDArray:
    """Return alpha after a step of size rho, or the same object if it does not change.

    `sums` are the :func:`prior_sums` of the documents.
    b is the power of the priors; see :attr:`annealvi.model.Tempering.of_priors`.
    """
    centre = usual_prior(len(alpha))
    lowest = centre / ALPHA_RANGE
    highest = centre * ALPHA_RANGE
    inside = np.clip(alpha, lowest, highest)
    if not np.array_equal(inside, alpha):
        return inside  # the user assigned an alpha outside the limits
    if not sums[-1] > 0:
        return alpha  # there were no words
    used = b * alpha + (1.0 - b)  # the prior in the objective at inverse temperature b
    # Minka's fixed point
    best = used * np.maximum(sums[:-1], 0.0) / sums[-1]
    # a step towards it, solved for alpha
    moved = (used + rho * (best - used) - (1.0 - b)) / b
    return np.clip(moved, lowest, highest)


def learned_eta(
    eta: float, mean: float, shape: tuple[int, int], rho: float, b: float, point: float
) -> float:
    """Return eta after a step of size rho, for topics of `shape`, (K, V).

    `mean` is the mean of E log beta over topics and words, and b the power of the priors.
    `point` is 1 if topics are point estimates, and otherwise 0.
    """
    n_topics, n_features = shape
    centre = usual_prior(n_topics)
    lowest = centre / ETA_RANGE
    highest = centre * ETA_RANGE
    used = b * min(max(eta, lowest), highest) + point  # in the objective
    before = float(_digamma(used) - _digamma(n_features * used))
    target = (1.0 - rho) * before + rho * mean
    moved = symmetric_from_mean(
        target, size=n_features, lowest=b * lowest + point, highest=b * highest + point
    )
    return float(np.clip((moved - point) / b, lowest, highest))


def mean_of_logs(model: Any) -> float:
    """Compute the mean of an LDA's E log beta, block after block and always in the same order."""
    means = []
    sizes = []
    for rows in gen_batches(model.n_features, ROWS):
        block = model.logs(model.lam[rows, : model.n_topics])
        means.append(float(block.mean()))
        sizes.append(len(block))
    return float(np.average(means, weights=sizes))  # the last block may be shorter


def symmetric_from_mean(mean: float, size: int, lowest: float, highest: float) -> float:
    """Find the x in [lowest, highest] for which psi(x) - psi(size x) is nearest to `mean`.

    psi(x) - psi(size x) increases with x.
    """

    def excess(log_x: float) -> float:
        """By how much psi(x) - psi(size x) exceeds `mean`."""
        x = special.exp(log_x)
        return float(_digamma(x) - _digamma(size * x) - mean)

    low = special.log(lowest)
    high = special.log(highest)
    if excess(low) >= 0:
        return lowest
    if excess(high) <= 0:
        return highest
    return float(special.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-13)))


def _digamma(x: Any) -> NDArray:
    """Compute the digamma function of numbers in float64."""
    return special.digamma(np.asarray(x, dtype=float))


#: The sums of topics over the vocabulary take as long as a step.  So they are used until the sum of
#: the step sizes has reached this.  Older sums belong to topics that were less distinct: the model
#: then seems less certain than it is, and T falls too early.
MOVED = 1.0
#: Number of words whose logarithms are computed together.
PIECE = 16 * SUMMED_ROWS


class DocumentPartition:
    """Computes log C_d(b) of documents at given inverse temperatures."""

    SCHEMA = Schema(sums=Optional(Array(("points", "width"))), moved=Number(0.0))

    def __init__(self, inverses: NDArray) -> None:
        """Prepare the sums at M inverse temperatures."""
        self.grid = PowerGrid(inverses)
        #: Sums of topics over the vocabulary, or None if they must be computed again, and the sum
        #: of the step sizes since they were computed.
        self.sums: NDArray | None = None
        self.moved = 0.0

    def outdate(self, rho: float) -> None:
        """Count a step of the topics of size rho; drop the sums if they are too old."""
        self.moved += rho
        if self.moved >= MOVED:
            self.sums = None

    def state_dict(self) -> dict[str, Any]:
        """Return the sums of topics that are kept between steps, as a tree for a file."""
        return self.SCHEMA.dump(self)

    def load_state_dict(self, tree: Mapping[str, Any], n_topics: int, path: str = "") -> None:
        """Set the sums that :meth:`state_dict` returned, for the present topics."""
        width = padded_length(n_topics, np.float64)
        self.SCHEMA.restore(self, tree, path, points=self.grid.n_points, width=width)

    def refresh(self, model: Any, n_threads: int) -> None:
        """Compute the sums of an LDA's topics over the vocabulary again if they are outdated."""
        if self.sums is not None:
            return
        sums = np.zeros((self.grid.n_points, padded_length(model.n_topics, np.float64)))
        for rows in gen_batches(model.n_features, PIECE):
            words = np.arange(rows.start, rows.stop, dtype=np.int64)
            logs = padded_rows(model.rows_of(words), np.float64)
            model.logs(logs, out=logs)  # -infinity in the padding
            self.grid.column_sums(logs, sums, n_threads=n_threads)  # adds to `sums`
        self.moved = 0.0
        # stored last, because another thread may pickle this object meanwhile
        self.sums = sums

    def __call__(self, gamma: NDArray, n_words: NDArray, n_threads: int) -> NDArray:
        """Compute log C_d for each document, of shape (n_samples, M)."""
        rows = self._e_log_theta(gamma)
        # S_d at the points of the grid, from which it is interpolated at the inverse temperatures
        sums = self.grid.row_sums(rows, self.sums, n_threads=n_threads)
        return n_words[:, None] * special.log(np.maximum(self.grid.at_inverses(sums), TINY))

    def of_batch(
        self, gamma: NDArray, alpha: NDArray, n_words: NDArray, n_threads: int
    ) -> tuple[NDArray, float]:
        """Return sums over documents: of log C_d, shape (M,), and of the theta terms of b * energy.

        A document's theta terms are b sum_k E log theta_k sum_v n_v phi_vk.  After a converged
        local step, sum_v b n_dv phi_dvk = gamma_dk - alpha_k, so phi is not needed to compute them.
        """
        e_log_theta = self._e_log_theta(gamma)
        sums = self.grid.row_sums(e_log_theta, self.sums, n_threads=n_threads)
        # summed over documents before it is interpolated, which takes less time
        total = np.sum(n_words[:, None] * special.log(np.maximum(sums, TINY)), axis=0)
        log_c = self.grid.at_inverses(total)
        energy = np.sum((gamma - alpha) * e_log_theta[:, : gamma.shape[1]])
        return log_c, float(energy)

    def _e_log_theta(self, gamma: NDArray) -> NDArray:
        """Compute E log theta in padded rows."""
        logs = padded_rows(gamma, np.float64)
        totals = logs.sum(axis=1)
        special.digamma(logs, out=logs)  # -infinity in the padding
        logs -= special.digamma(totals)[:, None]
        return logs
