"""Functions of Dirichlet and Gamma distributions that stay accurate for any parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches

from annealvi._kernels import partition as kernels
from annealvi._kernels import special

#: Stirling's series is accurate for arguments of at least this.
STIRLING = 16.0
#: Numbers whose terms of a divergence are in memory, and in the cache, at a time.
BLOCK = 1 << 14


def log_gamma_variates(
    rng: np.random.Generator, shape: NDArray[np.float64], size: tuple[int, ...]
) -> NDArray[np.float64]:
    """Draw logarithms of Gamma(shape, 1) variates, which are finite even for tiny shapes."""
    out = np.empty(size)
    state = rng.integers(1, 2**64 - 1, size=(4, 8), dtype=np.uint64, endpoint=True)
    same = np.all(shape == shape.flat[0])
    shapes = shape.ravel()[:1] if same else np.broadcast_to(shape, size).ravel()
    kernels.log_gamma_draws(state, shapes, out.reshape(-1))
    return out


def log_rising(a: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """Compute log Gamma(a + x) / Gamma(a) accurately for all a > 0 and x >= 0.

    The difference of the logarithms of two large Gamma functions would lose digits.  If a is
    large, their Stirling series are therefore subtracted term by term.
    """
    a = np.asarray(a, dtype=np.float64)
    x = np.asarray(x, dtype=np.float64)
    large = np.maximum(a, STIRLING)
    out = (large - 0.5) * special.log1p(x / large) + x * (special.log(large + x) - 1)
    out += _stirling_rest(large + x) - _stirling_rest(large)
    small = np.minimum(a, STIRLING)
    return np.where(a >= STIRLING, out, special.lgamma(small + x) - special.lgamma(small))


def _stirling_rest(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Gamma(a) minus (a - 1/2) log a - a + log(2 pi) / 2, with an error below 1e-14."""
    y = 1 / a
    return y * (1 / 12 - y * y * (1 / 360 - y * y * (1 / 1260 - y * y / 1680)))


def centre(prior: NDArray[np.float64], size: int | None = None) -> NDArray[np.float64]:
    """Return the mode of Dir(prior) if the mode is inside the simplex, else the mean."""
    excess = prior - 1.0 if np.all(prior > 1) else prior
    copies = 1.0 if size is None else size / len(prior)
    return excess / (excess.sum() * copies)


def divergence_terms(x: NDArray, prior: Any, psi_sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """(a - x) (psi(x) - psi(s)) + log Gamma(x), of which -KL(Dir(x) || Dir(a)) is the sum."""
    x = x.astype(np.float64)
    return (prior - x) * (special.digamma(x) - psi_sums) + special.lgamma(x)


def negative_kl(prior: NDArray[np.float64], gamma: NDArray) -> NDArray[np.float64]:
    """-KL(Dir(gamma_d) || Dir(prior)) of each row."""
    out = np.empty(len(gamma))
    sums = gamma.sum(axis=1, dtype=np.float64)
    psi_sums = special.digamma(sums)[:, None]
    for rows in gen_batches(len(gamma), max(1, BLOCK // len(prior))):
        out[rows] = divergence_terms(gamma[rows], prior, psi_sums[rows]).sum(axis=1)
    return out + (special.lgamma(prior.sum()) - special.lgamma(prior).sum() - special.lgamma(sums))
