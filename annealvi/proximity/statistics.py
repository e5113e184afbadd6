r"""Proximity statistics f of a Bernoulli q, and their derivatives with respect to its logit.

A proximity statistic is a function of q that is kept from changing quickly during the fit.  For
each element, q(z) = Bern(lambda) with lambda = sigmoid(theta).  The statistics with names are

.. math::
   \text{entropy:}\quad f &= H(\lambda), & f' &= -\theta \lambda (1 - \lambda) \\
   \text{kl:}\quad f &= \mathrm{KL}(q \| \mathrm{Bern}(\pi)),
       & f' &= (\theta - \mathrm{logit}\, \pi) \lambda (1 - \lambda) \\
   \text{mean:}\quad f &= \lambda, & f' &= \lambda (1 - \lambda) \\
   \text{variance:}\quad f &= \lambda (1 - \lambda),
       & f' &= \lambda (1 - \lambda) (1 - 2 \lambda)

The prior in ``kl`` does not change.  All derivatives are with respect to theta.

Each statistic is a function ``f(q, prior_logit)`` of a :class:`Bernoulli` and of the logit of the
prior probability pi.  The function returns f and a derivative.  Usually the derivative is an array
of the shape of theta: element i is the derivative of f_i with respect to theta_i.  If the
derivative has another structure, as for ``mean_variance``, it is a function.  This function maps an
array c of the shape of f to :math:`\sum_j c_j \, \partial f_j / \partial \theta`, an array of the
shape of theta.  You can use your own statistic (Altosaar, Ranganath, Blei 2018, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._kernels import special

#: The numbers of all runs, components and data.
Floats = NDArray[np.float64]


class Bernoulli:
    r"""Independent Bernoulli distributions q(z) = Bern(lambda), given by their logits.

    Parameters
    ----------
    logit : ndarray of any shape
        The logits theta.

    Attributes
    ----------
    probability : ndarray
        The probabilities lambda.
    variance : ndarray
        The variances lambda (1 - lambda), accurate even if lambda is close to 0 or 1.
    """

    def __init__(self, logit: Floats) -> None:
        """Compute probabilities and variances without cancellation."""
        self.logit = logit
        size = np.abs(logit)
        self._tail = special.exp(-size)  # odds of the less likely value
        likely = 1.0 / (1.0 + self._tail)
        unlikely = self._tail * likely
        self._size = size  # for the entropy
        self._unlikely = unlikely
        self.probability = np.where(logit >= 0, likely, unlikely)
        self.variance = likely * unlikely

    @cached_property
    def entropy(self) -> Floats:
        r"""The entropy in nats: log(1 + e^-\|theta\|) + \|theta\| min(lambda, 1 - lambda)."""
        return special.log1p(self._tail) + self._size * self._unlikely


#: The derivative of f: an array, or a function of an array of the shape of f.
Derivative = Floats | Callable[[Floats], Floats]
#: A function of q and of the logit of the prior's pi that returns f and its derivative.
Statistic = Callable[[Bernoulli, Floats], tuple[Floats, Derivative]]


def entropy(q: Bernoulli, prior_logit: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """Return H(q) and its derivative."""
    return q.entropy, -q.logit * q.variance


def kl(q: Bernoulli, prior_logit: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """Return KL(q || p) and its derivative."""
    # E_q[log p] = lambda logit pi + log (1 - pi)
    c = np.asarray(prior_logit, dtype=float)
    value = np.logaddexp(0.0, c) - q.probability * c - q.entropy
    return np.maximum(value, 0.0), (q.logit - c) * q.variance


def mean(q: Bernoulli, prior_logit: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """Return lambda and its derivative."""
    return q.probability, q.variance


def variance(q: Bernoulli, prior_logit: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """Return lambda (1 - lambda) and its derivative."""
    return q.variance, q.variance * (1.0 - 2.0 * q.probability)


def mean_variance(
    q: Bernoulli, prior_logit: ArrayLike = 0.0
) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return lambda and lambda (1 - lambda) as one array, and a function for the derivative."""
    probability, probability_slope = mean(q)
    variances, variance_slope = variance(q)
    return np.stack(
        [probability, variances]
    ), lambda c: c[0] * probability_slope + c[1] * variance_slope


#: The statistics that can be passed by name.
STATISTICS: dict[str, Statistic] = {
    "entropy": entropy,
    "kl": kl,
    "mean": mean,
    "variance": variance,
    "mean_variance": mean_variance,
}


#: At a distance of about REACH from the centre the KL differs from its maximum by a fraction
#: e^-REACH.  Larger distances are treated as infinite.  Linear interpolation between NODES
#: points has an error of about 1e-6.  If the centre is above FAR, the KL rises so slowly at first
#: that the points are spaced differently.  The error is then 1e-5 or, for centres above 15, the
#: rounding error of the KL itself.
NODES = 4096
REACH = 30.0
FAR = 2.0
#: How many numbers are looked up together: few enough that temporary arrays stay in the cache,
#: and enough that the number of calls is low.
CHUNK = 4096


# KL(Bern(sigmoid theta) || Bern(sigmoid c)) is 0 at theta = c.  It rises on both sides, towards
# log(1 + e^-c) above c and log(1 + e^c) below.  The entropy is log 2 minus the KL for c = 0.


def kl_limits(values: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Find the logits on both sides of the centre at which the KL has given values.

    `values` has shape (K, n), and `centre`, the logit of each row, shape (K,).
    """
    lower = np.empty_like(values)
    upper = np.empty_like(values)
    rows_at_once = max(1, CHUNK // max(1, values.shape[1]))
    for c in np.unique(centre).tolist():
        rows_with_centre = np.flatnonzero(centre == c)
        for first_row in range(0, len(rows_with_centre), rows_at_once):
            rows = rows_with_centre[first_row : first_row + rows_at_once]
            distance_above = _distance(values[rows], c)
            upper[rows] = c + distance_above
            lower[rows] = c - (_distance(values[rows], -c) if c else distance_above)  # by symmetry
    return lower, upper


def _distance(values: Floats, c: float) -> Floats:
    """The distances above c at which the KL has these values."""
    # linear interpolation in a table of distances at evenly spaced keys
    table, kl_limit = _table(c)
    position_in_table = _key(values / kl_limit, c) * ((NODES - 1) / _last_key(c))
    cell = np.minimum(position_in_table, NODES - 2.0).astype(np.intp)
    distance_of_cell = table[cell]
    distance = distance_of_cell + (np.minimum(position_in_table, NODES - 1.0) - cell) * (
        table[cell + 1] - distance_of_cell
    )
    distance[position_in_table > NODES - 1] = np.inf  # beyond REACH
    return distance


def _key(fraction: Floats, c: float) -> Floats:
    """The keys for the table at KL values, which are a `fraction` of the maximum for centre c.

    Distances are almost linear in these keys, so that interpolation is accurate.
    """
    key = np.sqrt(-special.log1p(-np.minimum(fraction, 1.0)))
    return np.sqrt(np.sqrt(key)) if abs(c) > FAR else key


def _last_key(c: float) -> float:
    """The key for the table at the distance REACH."""
    return math.sqrt(REACH) if abs(c) <= FAR else REACH**0.125


@lru_cache(maxsize=256)
def _table(c: float) -> tuple[Floats, float]:
    """A table of distances above c at evenly spaced keys, and the maximum of the KL above c."""
    kl_limit = np.logaddexp(0.0, -c)
    # denser near 0, where the key changes fast
    distances = (2 * REACH + 2 * abs(c)) * np.linspace(0.0, 1.0, 4 * NODES) ** 2
    keys = _key(kl(Bernoulli(c + distances), c)[0] / kl_limit, c)
    even_keys = np.linspace(0.0, _last_key(c), NODES)
    return np.interp(even_keys, keys, distances), kl_limit
