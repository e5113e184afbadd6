"""Adam, the optimiser of proximity ascents.

References
----------
Kingma, Ba (2015), *Adam: a method for stochastic optimization*, ICLR.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Adam:
    """Adam: steps along the gradient, each element scaled by a running average of its size.

    Parameters
    ----------
    rate : float
        About the size of a step.
    decays : tuple of float, default=(0.9, 0.999)
        Decays of the averages of the gradient and of its square.
    eps : float, default=1e-8
        Gradients well below this lead to almost no step.
    """

    def __init__(
        self, rate: float, decays: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        self.rate = rate
        self.eps = eps
        self._decays = decays
        self._averages: tuple[Array, Array] | None = None
        self._left = [1.0, 1.0]

    def __call__(self, gradient: Array) -> Array:
        """Return the step along this gradient, of the same shape."""
        if self._averages is None:
            self._averages = np.zeros_like(gradient), np.zeros_like(gradient)
        for i, (average, decay) in enumerate(zip(self._averages, self._decays, strict=True)):
            average *= decay
            average += (1.0 - decay) * (gradient if i == 0 else gradient * gradient)
            self._left[i] *= decay
        first, second = self._averages
        scale = np.sqrt(second / (1.0 - self._left[1]))
        scale += self.eps
        return self.rate / (1.0 - self._left[0]) * first / scale
