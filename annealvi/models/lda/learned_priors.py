r"""Learning the priors of LDA together with the topics.

Keep phi fixed, and let gamma_d = alpha + n_d change with alpha.  Then the documents' part of
the bound depends on alpha like the likelihood of Dirichlet-multinomial counts n_d, and

.. math::
   \alpha^*_k = \alpha_k \frac{\sum_d \psi(\gamma_{dk}) - \psi(\alpha_k)}
       {\sum_d \psi(\sum_j \gamma_{dj}) - \psi(\sum_j \alpha_j)}

maximises a lower bound of it that is tight at alpha (Minka 2000, Eq. 55).  This lower bound is
a sum of one term for each topic, concave in log alpha_k.  Therefore a step of size rho from
alpha to alpha* never lowers the bound, even if it is cut off at a limit.  Minibatches use the
rho of the topics.  (Hoffman, Blei and Bach 2010 do so too, but their Newton step keeps gamma
fixed instead of phi.  Most of E log theta is then due to alpha itself, and alpha hardly moves.)

eta is one number.  -KL(q(beta) || Dir(eta)) is largest where psi(eta) - psi(V eta) equals the
mean of E log beta_kv over topics and words.  A step moves psi(eta) - psi(V eta) to
(1 - rho) (psi(eta) - psi(V eta)) + rho mean, along the natural gradient in the mean parameter
of Dir(eta).  Under the ``"map"`` estimate the topics' part of the objective is
sum_k log Dir(beta_k; eta + 1), so eta + 1 replaces eta, and log beta replaces E log beta.

At high temperatures every document has all topics.  An alpha learned there would keep it that
way for the rest of the fit.  Therefore priors are only learned once T is low.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import psi

from annealvi._kernels import special
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.topics import TopicEstimate

#: Priors are learned at this temperature and below.
COLD = 1.1
#: alpha_k and eta stay within these factors of the prior that is recommended for K topics.
ALPHA_RANGE, ETA_RANGE = 100.0, 10.0
#: Number of words whose logarithms are computed at a time.
ROWS = 512


class Seen(NamedTuple):
    """Sums over documents from which alpha is learned."""

    #: sum_d psi(gamma_dk) - psi(alpha_k).
    by_topic: NDArray[np.float64]
    #: sum_d psi(sum_k gamma_dk) - psi(sum_k alpha_k).
    total: float

    def plus(self, other: Seen | None) -> Seen:
        """The sums over these documents and others, of which there may be none."""
        if other is None:
            return self
        return Seen(self.by_topic + other.by_topic, self.total + other.total)


class LearnedPriors:
    """Which priors are learned, and the sums from which alpha is learned."""

    def __init__(self, centre: float) -> None:
        self.centre = centre
        self.alpha = self.eta = False
        self._tempering = UNTEMPERED
        #: Of the last local step; None if alpha is not learned from it.
        self.seen: Seen | None = None

    def begin(self, tempering: Tempering, seen: Seen | None = None) -> None:
        """Begin a local step; or take over one of which others have seen the documents."""
        self._tempering, self.seen = tempering, seen

    def add(self, gamma: NDArray, prior: NDArray[np.float64]) -> None:
        """Add documents that have been fitted."""
        if not self.alpha or len(prior) == 1 or not self._learns():
            return
        sums = gamma.sum(axis=1, dtype=np.float64)
        # rounded as in gamma, so that the difference is 0 for topics without words
        rounded = prior.astype(gamma.dtype)
        # summed in the order of documents, for any number of threads
        with np.errstate(over="ignore"):  # of a prior at the end of the range
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
        """Return alpha and eta after a step; the same objects if they do not change."""
        if not self._learns():
            return alpha, eta
        # the posterior form's priors, see annealvi.models.lda
        b = 1.0
        if self._tempering.form == "posterior":
            b = self._tempering.mean
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
            return inside  # the user assigned one outside the limits: move it there first
        if not seen.total > 0:
            return alpha  # no words
        used = b * alpha + (1.0 - b)
        best = used * np.maximum(seen.by_topic, 0.0) / seen.total
        found = (used + rho * (best - used) - (1.0 - b)) / b
        return np.clip(found, least, most)

    def _eta(
        self, eta: float, mean: float, n_features: int, rho: float, b: float, point: float
    ) -> float:
        least, most = self.centre / ETA_RANGE, self.centre * ETA_RANGE
        used = b * min(max(eta, least), most) + point
        target = (1.0 - rho) * (psi(used) - psi(n_features * used)) + rho * mean
        found = symmetric_from_mean(target, n_features, b * least + point, b * most + point)
        return float(np.clip((found - point) / b, least, most))


def mean_of_logs(logs: Callable[[slice], NDArray[np.float64]], n_features: int) -> float:
    """Compute the mean of E log beta, some rows at a time and always in the same order."""
    means, sizes = [], []
    for start in range(0, n_features, ROWS):
        some = logs(slice(start, start + ROWS))
        means.append(float(some.mean()))
        sizes.append(len(some))
    return float(np.average(means, weights=sizes))


def symmetric_from_mean(mean: float, size: int, least: float, most: float) -> float:
    """Find the x in [least, most] whose psi(x) - psi(size x) is nearest to `mean`.

    This function of x is increasing.
    """

    def excess(log_x: float) -> float:
        x = np.exp(log_x)
        return float(psi(x) - psi(size * x) - mean)

    low, high = np.log(least), np.log(most)
    if excess(low) >= 0:
        return least
    if excess(high) <= 0:
        return most
    return float(np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-13)))


def _digamma(x: Any) -> NDArray[np.float64]:
    return special.digamma(np.asarray(x, dtype=np.float64))
