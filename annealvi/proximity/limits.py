r"""Limits for the logits of q: the logits at which a statistic has a given value.

KL(Bern(sigmoid theta) || Bern(sigmoid c)) is 0 at theta = c.  It rises on both sides, towards
log(1 + e^-c) above c and log(1 + e^c) below.  The entropy is log 2 less the KL for c = 0.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from annealvi.proximity.statistics import Bernoulli, kl

Array = NDArray[np.float64]

#: At a distance of about REACH from the centre the KL differs from its maximum by a fraction
#: e^-REACH; distances beyond are treated as infinite.  Linear interpolation between NODES has
#: an error of about 1e-6.  For centres beyond FAR the KL rises so slowly at first that nodes
#: are spaced differently.  The error is then 1e-5 or, for centres beyond 15, the rounding
#: error of the KL itself.
NODES, REACH, FAR = 4096, 30.0, 2.0
#: Numbers looked up at a time: few enough for temporary arrays to stay in the cache, and
#: enough to keep the number of calls low.
CHUNK = 4096


def kl_limits(values: Array, centre: Array) -> tuple[Array, Array]:
    """Find the logits on both sides of the centre at which the KL has given values.

    Parameters
    ----------
    values : ndarray of shape (K, n)
        Not negative.
    centre : ndarray of shape (K,)
        c, the logit of p.

    Returns
    -------
    lower, upper : ndarray of shape (K, n)
        On either side of the centre; infinite if the KL never reaches the value.
    """
    lower, upper = np.empty_like(values), np.empty_like(values)
    each = max(1, CHUNK // max(1, values.shape[1]))
    for c in np.unique(centre).tolist():
        same = np.flatnonzero(centre == c)
        for first in range(0, len(same), each):
            rows = same[first : first + each]
            above = _distance(values[rows], c)
            upper[rows] = c + above
            lower[rows] = c - (_distance(values[rows], -c) if c else above)  # the mirror image
    return lower, upper


def _distance(values: Array, c: float) -> Array:
    """The distance above c at which the KL has these values."""
    table, most = _table(c)
    place = _key(values / most, c) * ((NODES - 1) / _last_key(c))
    cell = np.minimum(place, NODES - 2.0).astype(np.intp)
    begin = table[cell]
    distance = begin + (np.minimum(place, NODES - 1.0) - cell) * (table[cell + 1] - begin)
    distance[place > NODES - 1] = np.inf
    return distance


def _key(done: Array, c: float) -> Array:
    """The key of KL values, given as fractions of the maximum.

    It is linear in the distance near the centre, and grows like its square root far out.  For
    centres beyond FAR it is the fourth root of that.
    """
    with np.errstate(divide="ignore"):
        key = np.sqrt(-np.log1p(-np.minimum(done, 1.0)))
    return np.sqrt(np.sqrt(key)) if abs(c) > FAR else key


def _last_key(c: float) -> float:
    """The key of REACH."""
    return math.sqrt(REACH) if abs(c) <= FAR else REACH**0.125


@lru_cache(maxsize=256)
def _table(c: float) -> tuple[Array, float]:
    """Distances above c at evenly spaced keys, and the maximum of the KL above c."""
    most = float(np.logaddexp(0.0, -c))
    distances = (2 * REACH + 2 * abs(c)) * np.linspace(0.0, 1.0, 4 * NODES) ** 2
    keys = _key(kl(Bernoulli(c + distances), c)[0] / most, c)
    wanted = np.linspace(0.0, _last_key(c), NODES)
    return np.interp(wanted, keys, distances), most
