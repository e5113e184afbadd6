r"""Where a proximity statistic equals a given value: limits for the logits of q.

KL(Bern(sigmoid theta) || Bern(sigmoid c)) falls to 0 at theta = c and rises on both sides, to
log(1 + e^-c) above and log(1 + e^c) below.  The entropy is log 2 less the KL at c = 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annealvi.proximity.statistics import Bernoulli, kl

Array = NDArray[np.float64]

#: Nodes of a table from the centre to REACH away, where what is left of a tail, e^-36, is
#: as small as roundings; one Newton step from the line between nodes gives all digits.
NODES, REACH = 2048, 36.0
DISTANCES = REACH * np.linspace(0.0, 1.0, NODES) ** 2


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
    for k, c in enumerate(centre):
        upper[k] = _distance(values[k], float(c))
        if c == 0:
            np.negative(upper[k], out=lower[k])
            continue
        upper[k] += c
        lower[k] = c - _distance(values[k], -float(c))  # the mirror image
    return lower, upper


def _distance(values: Array, c: float) -> Array:
    """How far above c the KL has these values."""
    # its root is linear near the centre
    table = np.sqrt(kl(Bernoulli(c + DISTANCES), c)[0])
    distance = np.interp(np.sqrt(values), table, DISTANCES, right=np.inf)
    # a step no longer than a cell of the table, and none where the KL is flat
    near = (distance > 1e-6) & (distance < REACH)
    start = distance[near]
    value, slope = kl(Bernoulli(c + start), c)
    cell = 2 * np.sqrt(REACH * start) / NODES
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.nan_to_num((value - values[near]) / slope, posinf=0.0, neginf=0.0)
    distance[near] = start - np.clip(step, -cell, cell)
    return distance
