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
    generator_state = rng.integers(1, 2**64 - 1, size=(4, 8), dtype=np.uint64, endpoint=True)
    all_shapes_equal = np.all(shape == shape.flat[0])
    # the kernel uses a single shape for all variates
    shapes = shape.ravel()[:1] if all_shapes_equal else np.broadcast_to(shape, size).ravel()
    kernels.log_gamma_draws(generator_state, shapes, out.reshape(-1))
    return out


def log_rising(a: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """Compute log Gamma(a + x) / Gamma(a) accurately for all a > 0 and x >= 0.

    The difference of the logarithms of two large Gamma functions would lose digits.  If a is
    large, their Stirling series are therefore subtracted term by term.
    """
    a = np.asarray(a, dtype=float)
    x = np.asarray(x, dtype=float)
    # both formulas are computed for all a; clipping avoids errors where a result is not used
    large_a = np.maximum(a, STIRLING)
    log_ratio_if_large = (large_a - 0.5) * special.log1p(x / large_a) + x * (
        special.log(large_a + x) - 1
    )
    log_ratio_if_large += _stirling_rest(large_a + x) - _stirling_rest(large_a)
    small_a = np.minimum(a, STIRLING)
    return np.where(
        a >= STIRLING, log_ratio_if_large, special.lgamma(small_a + x) - special.lgamma(small_a)
    )


def _stirling_rest(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Gamma(a) minus (a - 1/2) log a - a + log(2 pi) / 2, with an error below 1e-14."""
    y = 1 / a
    return y * (1 / 12 - y * y * (1 / 360 - y * y * (1 / 1260 - y * y / 1680)))


def centre(prior: NDArray[np.float64], size: int | None = None) -> NDArray[np.float64]:
    """Return the mode of Dir(prior) if the mode is inside the simplex, else the mean.

    If `size` is given, `prior` is repeated to `size` numbers, and the result is not repeated.
    """
    parameters_of_mode_or_mean = prior - 1.0 if np.all(prior > 1) else prior
    copies = 1.0 if size is None else size / len(prior)
    return parameters_of_mode_or_mean / (parameters_of_mode_or_mean.sum() * copies)


def divergence_terms(x: NDArray, prior: Any, psi_sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """(a - x) (psi(x) - psi(s)) + log Gamma(x), of which -KL(Dir(x) || Dir(a)) is the sum.

    a is `prior`, s the sum of x over a row, and `psi_sums` psi(s) of each row.  Terms that depend
    only on a or s are left out.
    """
    x = x.astype(float)
    return (prior - x) * (special.digamma(x) - psi_sums) + special.lgamma(x)


def negative_kl(prior: NDArray[np.float64], gamma: NDArray) -> NDArray[np.float64]:
    """-KL(Dir(gamma_d) || Dir(prior)) of each row."""
    sums_of_terms = np.empty(len(gamma))
    sums = gamma.sum(axis=1, dtype=float)
    psi_sums = special.digamma(sums)[:, None]
    # in blocks of rows whose terms stay in the cache
    for rows in gen_batches(len(gamma), max(1, BLOCK // len(prior))):
        sums_of_terms[rows] = divergence_terms(gamma[rows], prior, psi_sums[rows]).sum(axis=1)
    return sums_of_terms + (
        special.lgamma(prior.sum()) - special.lgamma(prior).sum() - special.lgamma(sums)
    )
