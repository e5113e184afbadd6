"""Proximity's temperatures by bisection, as docs/record/proximity.md has them."""

import numpy as np
from scipy.special import entr, expit


def divergence(logit, centre):
    """KL(Bern(sigmoid(logit)) || Bern(sigmoid(centre))); log 2 less the entropy at centre 0."""
    q = expit(logit)
    return np.logaddexp(0, centre) - q * centre - entr(q) - entr(expit(-logit))


def bisected(a, centre, average, hottest):
    """T of each element: 1 where KL(a) is at most its average, `hottest` where no T is enough."""
    cold, hot = np.ones_like(a), np.full_like(a, hottest)
    for _ in range(80):
        T = (cold + hot) / 2
        too_cold = divergence(centre + (a - centre) / T, centre) > average
        cold, hot = np.where(too_cold, T, cold), np.where(too_cold, hot, T)
    T = np.where(divergence(centre + (a - centre) / hottest, centre) > average, hottest, T)
    return np.where(divergence(a, centre) <= average, 1.0, T)
