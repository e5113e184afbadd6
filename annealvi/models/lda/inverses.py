"""The inverse temperatures of documents, as the kernels take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annealvi.model import Tempering

#: The least normal number of float64.
TINY = float(np.finfo(np.float64).tiny)


def of_documents(tempering: Tempering, n_samples: int, dtype: np.dtype) -> NDArray:
    """The inverse temperature of each document, in a new array."""
    inverse = np.asarray(tempering.inverse, dtype=np.float64)
    least = float(inverse.min())
    if least < TINY:
        got = 1 / least if least else np.inf
        raise ValueError(f"The temperature must be at most {1 / TINY:.3g}. Got {got:.3g}.")
    if inverse.ndim == 0:
        return np.full(n_samples, held(inverse, dtype))
    return held(np.broadcast_to(inverse, (n_samples,)), dtype)


def held(inverse: NDArray[np.float64], dtype: np.dtype) -> NDArray:
    """Inverse temperatures in a dtype, in a new array; none is below its least normal number.

    At that number of float32 nothing is left of the likelihood, as at any number below it.
    """
    return np.maximum(inverse, np.finfo(dtype).tiny).astype(dtype, order="C")


def of_rows(tempering: Tempering, rows: slice) -> Tempering:
    """The tempering of some of the documents."""
    if np.ndim(tempering.inverse) == 0:
        return tempering
    return tempering._replace(inverse=np.asarray(tempering.inverse)[rows])
