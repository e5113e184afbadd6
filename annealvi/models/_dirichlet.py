"""Draws from Dirichlet distributions, as logarithms: small concentrations underflow."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Concentrations below this are drawn by rejection from exponentials.
SMALL = 0.45
#: Stands for logarithms out of the range of doubles.
LEAST_LOG = -1.7e308
#: exp(-exp(x)) is 1 below this.
NEVER_REJECTED = -37.0


def log_gamma_variates(
    rng: np.random.Generator, shape: NDArray[np.float64], size: tuple[int, ...]
) -> NDArray[np.float64]:
    """Logarithms of Gamma(shape, 1) variates, finite for any shape that is a normal number.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : ndarray
        Positive; of any shape that can be broadcast to `size`.
    size : tuple of int
    """
    first = shape.flat[0]
    if first < SMALL and np.all(shape == first):
        out = _log_small_gamma(rng, float(first), math.prod(size)).reshape(size)
    else:
        # Gamma(a) = Gamma(a + 1) U^(1/a)
        out = np.log(rng.standard_gamma(np.broadcast_to(shape + 1.0, size)))
        out -= rng.standard_exponential(size) / np.broadcast_to(shape, size)
    if np.min(shape) < 1e-290:
        np.maximum(out, LEAST_LOG, out=out)
    return out


def _log_small_gamma(rng: np.random.Generator, a: float, size: int) -> NDArray[np.float64]:
    """x = log Gamma(a) for a < 1, by rejection in x (Liu, Martin and Syring 2017).

    The density of x is that of exp(a x - e^x).  The envelope is e^(a x) for x < 0, which is
    tight as all but a fraction of about a of them lie far below 0, and e^(-(1 - a) x - 1)
    for x > 0; its two parts have masses 1 / a and 1 / (e (1 - a)).
    """
    below = 1.0 / (1.0 + a / (math.e * (1.0 - a)))
    u = rng.random(size)
    np.subtract(1.0, u, out=u)  # log 0 is out of the question
    x = np.log(u)
    x -= math.log(below)
    with np.errstate(over="ignore"):
        x /= a
    above = np.flatnonzero(u > below)
    x[above] = -np.log((u[above] - below) / (1.0 - below)) / (1.0 - a)
    doubtful = np.flatnonzero(x > NEVER_REJECTED)
    if 2 * len(doubtful) > size:  # then looking them up costs more than all
        rejected = _rejected(rng, x)
    else:
        rejected = doubtful[_rejected(rng, x[doubtful])]
    if len(rejected):
        x[rejected] = _log_small_gamma(rng, a, len(rejected))
    return x


def _rejected(rng: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.intp]:
    """Which of some x are not kept: the density over the envelope says how likely."""
    chance = np.exp(x)
    np.negative(chance, out=chance)
    above = np.flatnonzero(x > 0)
    chance[above] += 1.0 + x[above]
    np.exp(chance, out=chance)
    return np.flatnonzero(rng.random(len(x)) >= chance)


def centre(prior: NDArray[np.float64], size: int | None = None) -> NDArray[np.float64]:
    """The mode of Dir(prior) where it is inside the simplex, else the mean.

    Parameters
    ----------
    prior : ndarray of shape (n,)
    size : int, optional
        How many numbers `prior` stands for, by repetition; n by default.
    """
    excess = prior - 1.0 if np.all(prior > 1) else prior
    copies = 1.0 if size is None else size / len(prior)
    return excess / (excess.sum() * copies)
