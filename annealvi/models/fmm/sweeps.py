"""Sweeps over the factors of a factorial mixture, and the statistics after a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import entr

from annealvi._kernels import fmm as kernels
from annealvi._kernels import gemm
from annealvi._kernels.layout import aligned_empty, separate_rows
from annealvi.files import Node
from annealvi.model import FactorLimits

#: Most samples: BLAS has 32-bit indices.
MOST_SAMPLES = 2**31 - kernels.BLOCK


@dataclass
class Factors:
    """The statistics of the data at the nu of a local step, not weighted by b."""

    #: A = nu^T X.
    data: NDArray[np.float64]
    #: R = sum_n E[z_n z_n^T].
    pairs: NDArray[np.float64]
    #: Entropy of all factors.
    entropy: float

    @classmethod
    def restored(cls, node: Node, n_components: int, n_features: int) -> Self:
        """The statistics that a file has."""
        shapes = {"data": (n_components, n_features), "pairs": (n_components, n_components)}
        arrays = {name: np.array(node.array(name, shapes[name], np.float64)) for name in shapes}
        return cls(**arrays, entropy=node.number("entropy"))


class Field(NamedTuple):
    """The quadratic energy of one datum as a function of its factors."""

    #: G / sigma_n, with 0 on the diagonal.
    coupling: NDArray
    #: logit pi - G_kk / (2 sigma_n).
    offset: NDArray
    #: 1 / sigma_n, the factor of P.
    scale: float


def component_major(n_components: int, n_samples: int, dtype: DTypeLike) -> NDArray:
    """Make an array with a row for each component, whose padding is 0."""
    width = -(-n_samples // kernels.BLOCK) * kernels.BLOCK
    if width > MOST_SAMPLES:
        raise ValueError(
            f"At most {MOST_SAMPLES} samples can be taken at once, as BLAS counts in 32 bits. "
            f"Got {n_samples}."
        )
    room = aligned_empty((n_components, width), dtype)
    room[:, n_samples:] = 0
    return room


def sweep(field: Field, projection: NDArray, nu: NDArray, b: float, n_threads: int) -> None:
    """Update all factors of all data once, in place."""
    inverse = np.full((1, 1), b, dtype=nu.dtype)
    kernels.sweep(projection, *field, inverse, n_threads, nu)


def held_sweep(
    field: Field,
    projection: NDArray,
    nu: NDArray,
    limits: FactorLimits,
    n_samples: int,
    n_threads: int,
) -> NDArray:
    """Update all factors of all data once, within limits and in place."""
    inverse = np.empty_like(nu)
    centre, lower, upper = (np.ascontiguousarray(array, dtype=nu.dtype) for array in limits[1:])
    if not centre.shape == nu.shape[:1] or not lower.shape == upper.shape == nu.shape:
        raise ValueError(
            f"Limits of factors must have the shapes {nu.shape[:1]}, {nu.shape} and "
            f"{nu.shape}, padding too. Got {centre.shape}, {lower.shape} and {upper.shape}."
        )
    kernels.held_sweep(
        projection, *field, limits.inverse, centre, lower, upper, n_threads, nu, inverse
    )
    # b is a ratio of differences, which may vanish near the centre
    return np.maximum(inverse[:, :n_samples], limits.inverse)


def factors_at(probability: NDArray[np.float64], X: NDArray) -> Factors:
    """The statistics of data at nu = pi, computed without matrix products."""
    n, pi = X.shape[0], probability
    pairs = n * (np.outer(pi, pi) + np.diag(pi * (1 - pi)))
    entropy = n * float(np.sum(entr(pi) + entr(1 - pi)))
    return Factors(np.outer(pi, X.sum(axis=0, dtype=np.float64)), pairs, entropy)


def collect(nu: NDArray, X: NDArray, n_threads: int) -> Factors:
    """The statistics of data."""
    (n, D), K = X.shape, len(nu)
    tile = separate_rows(n_threads, gemm.tile_size(K, max(D, K)), nu.dtype)
    data, pairs = np.empty((K, D)), np.empty((K, K))
    for right, gram, out in ((X, False, data), (nu, True, pairs)):
        partial = np.empty((gemm.n_groups(n, out.shape[1]), *out.shape))
        gemm.inner(nu, right, gram, n, n_threads, tile, partial, out)
    # on the diagonal E[z^2] = nu, while nu^T nu has nu^2
    np.fill_diagonal(pairs, nu[:, :n].sum(axis=1, dtype=np.float64))
    entropy = np.zeros(nu.shape[1])
    kernels.entropy(nu, n_threads, entropy)
    return Factors(data, pairs, float(np.sum(entropy[:n])))
