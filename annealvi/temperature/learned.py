"""What temperatures that are learned from the data have in common."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from annealvi._validation import as_array
from annealvi.temperature.base import Temperature, whole_steps

#: log T relaxes by exp(-12) over the planned steps, unless another damping is given.
DEFAULT_RELAXATION = 12.0


class Learned(Temperature):
    """What temperatures learned from the data have in common: they learn, then T is 1.

    A subclass has the parameters `damping` and `final_fraction`.
    """

    damping: float | None
    final_fraction: float
    _step = 0
    _n_learning_steps = math.inf

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """As long as it learns."""
        return not self.settled(self._step)

    def _prepare_learning(
        self, n_steps: int | None, steps_per_pass: float, damping: float | None = None
    ) -> None:
        """Count steps and choose `damping`, unless one is given here or by the user."""
        planned = max(1, whole_steps(steps_per_pass) if n_steps is None else n_steps)
        self._n_learning_steps = math.inf
        #: The step after which T must have cooled, or the user is told.
        self._check_after: float = planned
        if n_steps is not None:
            self._n_learning_steps = n_steps - whole_steps(self.final_fraction * n_steps)
            self._check_after = self._n_learning_steps
        self._step = 0
        if damping is None:
            damping = -math.expm1(-DEFAULT_RELAXATION / planned)
        self._damping = damping if self.damping is None else self.damping

    def settled(self, step: int) -> bool:
        return step >= self._n_learning_steps

    def _learns(self) -> bool:
        """Whether the step just made is one to learn from; counts it."""
        self._step += 1
        return not self.settled(self._step - 1)


class Running:
    """Exponential averages of what minibatches say; of all data, what the last step said.

    Parameters
    ----------
    weight : float
        Of the newest minibatch.
    """

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.values: list[Any] = []

    def add(self, *values: Any, scale: float) -> list[Any]:
        """Average in sums over a batch, `scale` being the data it stands for over its own."""
        scaled = [scale * value for value in values]
        if not self.values or scale == 1:
            self.values = scaled
        else:
            pairs = zip(self.values, scaled, strict=True)
            self.values = [old + self.weight * (new - old) for old, new in pairs]
        return self.values


def check_prior_weights(value: ArrayLike | None, size: int, owner: str) -> None:
    """Raise unless a prior over temperatures is None or positive numbers, one for each.

    Parameters
    ----------
    value : array-like or None
    size : int
        How many there must be.
    owner : str
        Whose parameter it is, for the message.
    """
    if value is None:
        return
    prior = as_array(value)
    if prior.dtype.kind not in "fiu" or prior.shape != (size,):
        raise ValueError(
            f"The 'prior' parameter of {owner} must be None or an array of numbers of "
            f"shape ({size},), one for each temperature of the grid. Got shape "
            f"{prior.shape} and dtype {prior.dtype} instead."
        )
    wrong = prior[~(np.isfinite(prior) & (prior > 0))]
    if wrong.size:
        raise ValueError(
            f"The 'prior' parameter of {owner} must be positive and finite. Got {wrong[0]} instead."
        )
