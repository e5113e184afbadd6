r"""Priors of LDA that are learned with the topics.

Both are natural-gradient steps of size rho on the priors' part of the objective.  The mean
parameters of p(theta) = Dir(alpha) are

.. math::
   m_k(\alpha) = E \log\theta_k = \psi(\alpha_k) - \psi(\textstyle\sum_j \alpha_j),

and alpha maximises the documents' part of the bound where they equal the mean of
E_q[log theta_dk] over documents (Minka 2000).  A minibatch moves them to

.. math::
   m' = (1 - \rho)\, m(\alpha) + \rho\, \tfrac{1}{B} \sum_d E_q \log\theta_d,
   \qquad \alpha \leftarrow m^{-1}(m'),

to first order the Newton step of Hoffman, Blei and Bach (2010).  It never lowers the part of
the bound that it is a step on, and rho = 1 is the maximum.  eta is one number, and the same
with the mean of E log beta_kv over topics and words, psi(eta) - psi(V eta) being its
expectation.  Under the ``"map"`` estimate the topics' part of the objective is
sum_k log Dir(beta_k; eta + 1), so eta + 1 and log beta stand in its place.

Heat makes documents of all topics, and so do topics that have not left their start: alpha
learned there would keep them so.  Priors wait until both are over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import psi, zeta

from annealvi._kernels import special
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models._lda_blocks import TopicEstimate

#: Priors are learned at this temperature and below.
COLD = 1.1
#: And once the sizes of the steps before sum to this: topics have left their start then.
#: Three steps of a batch fit, 37 of an online fit with the default step sizes.
STARTED = 3.0
#: alpha_k and eta stay within these factors of the prior that is recommended for K topics.
ALPHA_RANGE, ETA_RANGE = 100.0, 10.0
#: Words whose logarithms are worked out at a time.
ROWS = 512


class LearnedPriors:
    """What is learned, and what has been seen for it.

    Parameters
    ----------
    centre : float
        The prior that bounds are factors of.
    """

    def __init__(self, centre: float) -> None:
        self.centre = centre
        self.alpha = self.eta = False
        self._made = 0.0  # sum of the step sizes
        self._tempering = UNTEMPERED
        self._sum: NDArray[np.float64] | None = None
        self._n_samples = 0

    def begin(self, tempering: Tempering) -> None:
        """A local step begins."""
        self._tempering, self._sum, self._n_samples = tempering, None, 0

    def add(self, gamma: NDArray) -> None:
        """Documents have been fitted."""
        if not self.alpha or not self._learns():
            return
        sums = gamma.sum(axis=1, dtype=np.float64)
        logs = special.digamma(np.asarray(gamma, dtype=np.float64))
        # in the order of documents, whatever the threads
        total = logs.sum(axis=0) - special.digamma(sums).sum()
        self._sum = total if self._sum is None else self._sum + total
        self._n_samples += len(gamma)

    def step(
        self,
        alpha: NDArray[np.float64],
        eta: NDArray[np.float64],
        rho: float,
        mean_log_topics: Callable[[], float],
        n_features: int,
        estimate: TopicEstimate,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """alpha and eta after a step; the same objects where they stay.

        Parameters
        ----------
        alpha : ndarray of shape (K,)
        eta : ndarray of shape (), (V,) or (K, V)
            Arrays stay as they are.
        rho : float
            Size of the topics' step, which has been made.
        mean_log_topics : callable
            Gives the mean of E log beta over topics and words.
        n_features : int
            V.
        estimate : {"variational", "map"}
        """
        learns = self._learns()
        self._made += rho
        if not learns:
            return alpha, eta
        # the posterior form's priors, see annealvi.models.lda
        b = 1.0
        if self._tempering.form == "posterior":
            b = float(np.mean(self._tempering.inverse))
        if self._sum is not None and len(alpha) > 1:
            means = self._sum / self._n_samples
            alpha = self._alpha(alpha, means, rho, b)
        if self.eta and eta.ndim == 0 and n_features > 1:
            point = 1.0 if estimate == "map" else 0.0
            eta = np.array(self._eta(float(eta), mean_log_topics(), n_features, rho, b, point))
        self._sum, self._n_samples = None, 0
        return alpha, eta

    def _learns(self) -> bool:
        tempering = self._tempering
        cold = tempering.rule is None and bool(np.min(tempering.inverse) >= 1 / COLD)
        return cold and self._made >= STARTED

    def _alpha(
        self, alpha: NDArray[np.float64], means: NDArray[np.float64], rho: float, b: float
    ) -> NDArray[np.float64]:
        least, most = self.centre / ALPHA_RANGE, self.centre * ALPHA_RANGE
        used = b * alpha + (1.0 - b)
        target = (1.0 - rho) * (psi(used) - psi(used.sum())) + rho * means
        if not np.all(np.isfinite(target)):
            return alpha  # an assigned prior at the end of the range
        found = dirichlet_from_means(target, b * least + (1.0 - b), b * most + (1.0 - b))
        return np.clip((found - (1.0 - b)) / b, least, most)

    def _eta(
        self, eta: float, mean: float, n_features: int, rho: float, b: float, point: float
    ) -> float:
        least, most = self.centre / ETA_RANGE, self.centre * ETA_RANGE
        used = b * eta + point
        target = (1.0 - rho) * (psi(used) - psi(n_features * used)) + rho * mean
        if not np.isfinite(target):
            return eta
        found = symmetric_from_mean(target, n_features, b * least + point, b * most + point)
        return float(np.clip((found - point) / b, least, most))


def mean_of_logs(logs: Callable[[slice], NDArray[np.float64]], n_features: int) -> float:
    """The mean of E log beta, some rows at a time and always in the same order.

    Parameters
    ----------
    logs : callable
        Gives E log beta of some words, of shape (n, K).
    n_features : int
    """
    means, sizes = [], []
    for start in range(0, n_features, ROWS):
        some = logs(slice(start, start + ROWS))
        means.append(float(some.mean()))
        sizes.append(len(some))
    return float(np.average(means, weights=sizes))


def dirichlet_from_means(
    means: NDArray[np.float64], least: float, most: float
) -> NDArray[np.float64]:
    r"""The maximum over alpha in a box of log Gamma(A) - sum_k log Gamma(alpha_k) + alpha . m.

    A is the sum of alpha.  The function is concave, and its gradient is psi(A) -
    psi(alpha_k) + m_k, so at the maximum alpha_k = clip(psi^-1(m_k + psi(A))), which leaves
    an equation for A alone.

    Parameters
    ----------
    means : ndarray of shape (K,)
        m.
    least, most : float
        0 < least < most.

    Returns
    -------
    ndarray of shape (K,)
    """
    K = len(means)

    def given(total: float) -> NDArray[np.float64]:
        return np.clip(inverse_digamma(means + psi(total)), least, most)

    def excess(log_total: float) -> float:
        return float(np.log(given(np.exp(log_total)).sum()) - log_total)

    low, high = np.log(K * least), np.log(K * most)
    # rounding may put the sign of a maximum in a corner of the box wrong
    if excess(low) <= 0:
        return np.full(K, least)
    if excess(high) >= 0:
        return np.full(K, most)
    return given(np.exp(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)))


def symmetric_from_mean(mean: float, size: int, least: float, most: float) -> float:
    """x in [least, most] whose psi(x) - psi(size x) is nearest to `mean`; it rises with x.

    Parameters
    ----------
    mean : float
    size : int
    least, most : float
        0 < least < most.
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


def inverse_digamma(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """psi^-1 by Newton's method from Minka's start: five steps give all digits.

    Parameters
    ----------
    y : ndarray
    """
    with np.errstate(over="ignore"):
        x = np.where(y >= -2.22, np.exp(np.minimum(y, 300.0)) + 0.5, -1.0 / (y - psi(1.0)))
    for _ in range(5):
        x -= (psi(x) - y) / zeta(2.0, x)  # zeta(2, x) is the trigamma function
    return x
