"""Gamma(100, 0.01) draws of a RandomState, as scikit-learn starts topics and documents.

There are K of them for each document of a minibatch, so they take up to a fifth of a step.  The
kernel makes the numbers of ``RandomState.gamma``, which NumPy has promised not to change, from the
generator's state in half the time.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi._kernels import draws as kernels
from annealvi.threads import writing

SHAPE, SCALE = 100.0, 0.01
#: With fewer numbers NumPy is as fast, because reading and setting its state takes .1 ms.
WORTH = 1 << 14


class _Turn:
    """What threads lock that draw from generators with the same place among the turns."""


_TURNS = tuple(_Turn() for _ in range(16))
for _turn in _TURNS:
    writing(_turn)  # made here, because it must not be made while a brief lock is held


def gamma_draws(rng: RandomState, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return ``rng.gamma(100.0, 0.01, shape)``, and leave `rng` as that does."""
    with writing(_TURNS[id(rng) // 64 % len(_TURNS)]):
        if math.prod(shape) < WORTH or type(rng) is not RandomState or not as_numpy():
            return rng.gamma(SHAPE, SCALE, shape)
        return _draw(rng, shape)


def _draw(rng: RandomState, shape: tuple[int, ...]) -> NDArray[np.float64]:
    found = rng.get_state(legacy=False)
    if found["bit_generator"] != "MT19937":
        return rng.gamma(SHAPE, SCALE, shape)
    out, key = np.empty(shape), np.ascontiguousarray(found["state"]["key"])
    pos, has_gauss, gauss = kernels.legacy_gamma(
        key,
        found["state"]["pos"],
        found["has_gauss"],
        found["gauss"],
        SHAPE,
        SCALE,
        out.reshape(-1),
    )
    after = {"state": {"key": key, "pos": pos}, "has_gauss": has_gauss, "gauss": gauss}
    rng.set_state(found | after)
    return out


@cache
def as_numpy() -> bool:
    """Whether the kernel's numbers are NumPy's on this machine, whose logarithm both use."""
    ours, theirs = RandomState(0), RandomState(0)
    same = np.array_equal(_draw(ours, (5000,)), theirs.gamma(SHAPE, SCALE, 5000))
    return same and ours.normal() == theirs.normal()
