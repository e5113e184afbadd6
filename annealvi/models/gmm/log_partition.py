"""The part of log C(T) of a Gaussian mixture that is due to learned weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from annealvi.models.dirichlet import log_rising


def log_mean_power(
    alpha: NDArray[np.float64], n: int, b: float, log_c: NDArray[np.float64]
) -> float:
    r"""Compute log E[(sum_k w_k^b c_k)^n] for w ~ Dir(alpha), exactly.

    The multinomial theorem and the moments of the Dirichlet distribution give

        n! Gamma(A) / Gamma(A + b n) [t^n] prod_k f_k(t),
        f_k(t) = sum_i Gamma(alpha_k + b i) / (Gamma(alpha_k) i!) (c_k t)^i,

    with A = sum_k alpha_k.  The series are multiplied by FFT.  All terms are positive, and t
    is chosen so that the product, as a distribution over powers, has its mean at n.  This
    avoids a loss of digits.
    """
    if len(alpha) == 1:
        return float(n * log_c[0])
    powers = np.arange(n + 1)
    kinds, kind = np.unique(np.stack([alpha, log_c], axis=1), axis=0, return_inverse=True)
    kind = kind.ravel()
    series = log_rising(kinds[:, :1], b * powers)
    series += powers * kinds[:, 1:] - gammaln(powers + 1)

    def tilted(log_t: float) -> tuple[NDArray, NDArray, float]:
        """Each series as a distribution, the log sums, and the sum of the components' means."""
        terms = series + log_t * powers
        totals = logsumexp(terms, axis=1, keepdims=True)
        masses = np.exp(terms - totals)
        return masses, totals[kind, 0], float(np.sum((masses @ powers)[kind]))

    low, high = -1.0, 1.0
    while tilted(low)[2] > n:
        low *= 2
    while tilted(high)[2] < n:
        high *= 2
    for _ in range(60):
        log_t = 0.5 * (low + high)
        masses, totals, mean = tilted(log_t)
        if abs(mean - n) < 1:
            break
        low, high = (log_t, high) if mean < n else (low, log_t)
    from scipy.signal import fftconvolve  # a sixth of the time of importing annealvi

    product = masses[kind[0]]
    for k in kind[1:]:
        product = fftconvolve(product, masses[k])[: n + 1]
    outside = gammaln(n + 1) - log_rising(alpha.sum(), b * n)
    return float(outside + np.log(product[n]) + totals.sum() - n * log_t)


def log_distortions(
    covariances: NDArray[np.float64] | None, b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """log c_k at each b: the factors of components due to their different variances."""
    if covariances is None:
        raise ValueError(
            "C(T) of a Gaussian mixture with learned precisions is infinite at high T, so "
            "its temperature cannot be learned. Give 'covariances', or use "
            "temperature='annealed'."
        )
    log_sigma = 0.5 * np.log(covariances)
    return np.sum(log_sigma - log_sigma.mean(axis=0), axis=1) * (1 - b[:, None])
