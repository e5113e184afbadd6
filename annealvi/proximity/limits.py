r"""Where a proximity statistic equals a given value: limits for the logits of q.

KL(Bern(sigmoid theta) || Bern(sigmoid c)) falls to 0 at theta = c and rises on both sides, to
log(1 + e^-c) above and log(1 + e^c) below.  The entropy is log 2 less the KL at c = 0.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from annealvi.proximity.statistics import Bernoulli, kl

Array = NDArray[np.float64]

#: What is left of the KL's way to its maximum falls to e^-REACH about that far from the centre;
#: further out is as good as infinite.  Lines between NODES miss by some 1e-6.  From centres beyond
#: FAR the KL sets out so slowly that nodes are spaced otherwise: they miss by 1e-5, or from 15 on
#: by what the KL itself loses to rounding.
NODES, REACH, FAR = 4096, 30.0, 2.0
#: Numbers looked up at a time: what lies between stays in the cache, and calls are few.
CHUNK = 4096


def kl_limits(values: Array, centre: Array) -> tuple[Array, Array]:
    """The logits on both sides of the centre at which the KL has given values.

    Parameters
    ----------
    values : ndarray of shape (K, n)
        Not negative.
    centre : ndarray of shape (K,)
        c, the logit of p.

    Returns
    -------
    lower, upper : ndarray of shape (K, n)
        Around the centre; infinite where the KL never comes to the value.
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
    """How far above c the KL has these values."""
    table, most = _table(c)
    place = _key(values / most, c) * ((NODES - 1) / _last_key(c))
    cell = np.minimum(place, NODES - 2.0).astype(np.intp)
    begin = table[cell]
    distance = begin + (np.minimum(place, NODES - 1.0) - cell) * (table[cell + 1] - begin)
    distance[place > NODES - 1] = np.inf
    return distance


def _key(done: Array, c: float) -> Array:
    """Of the part of the way to the maximum that is done: linear in the distance near the
    centre, and like its root far out; the fourth root of that about a centre beyond FAR."""
    with np.errstate(divide="ignore"):
        key = np.sqrt(-np.log1p(-np.minimum(done, 1.0)))
    return np.sqrt(np.sqrt(key)) if abs(c) > FAR else key


def _last_key(c: float) -> float:
    """The key of REACH."""
    return math.sqrt(REACH) if abs(c) <= FAR else REACH**0.125


@lru_cache(maxsize=256)
def _table(c: float) -> tuple[Array, float]:
    """Distances above c at evenly spaced keys, and the KL's maximum there."""
    most = float(np.logaddexp(0.0, -c))
    distances = (2 * REACH + 2 * abs(c)) * np.linspace(0.0, 1.0, 4 * NODES) ** 2
    keys = _key(kl(Bernoulli(c + distances), c)[0] / most, c)
    wanted = np.linspace(0.0, _last_key(c), NODES)
    return np.interp(wanted, keys, distances), most
