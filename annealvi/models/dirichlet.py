"""Functions of Dirichlet and Gamma distributions that stay accurate for any parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._kernels import bounds, special
from annealvi._kernels import partition as kernels
from annealvi._kernels.layout import separate_rows

#: Stirling's series is accurate for arguments of at least this.
STIRLING = 16.0


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
    a, x = np.asarray(a, dtype=np.float64), np.asarray(x, dtype=np.float64)
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


def negative_kl(
    prior: NDArray[np.float64], gamma: NDArray, n_threads: int = 1
) -> NDArray[np.float64]:
    """Compute -KL(Dir(gamma_d) || Dir(prior)) for each row d of gamma."""
    out = np.empty(len(gamma))
    prior = np.ascontiguousarray(prior)
    sums = gamma.sum(axis=1, dtype=np.float64)
    scratch = separate_rows(n_threads, 2 * len(prior))
    bounds.row_terms(gamma, prior, special.digamma(sums), n_threads, scratch, out)
    return out + (special.lgamma(prior.sum()) - special.lgamma(prior).sum() - special.lgamma(sums))
