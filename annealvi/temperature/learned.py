"""The common base of temperatures that are learned from the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from annealvi.checks import as_array
from annealvi.files import Node
from annealvi.temperature.base import Temperature, whole_steps

#: Over the planned steps log T relaxes by a factor exp(-12), unless `damping` is given.
DEFAULT_RELAXATION = 12.0


class Learned(Temperature):
    """Base class of temperatures that first learn T from the data and then run at T = 1.

    A subclass has the parameters `damping` and `final_fraction`.
    """

    damping: float | None
    final_fraction: float
    _step = 0
    _n_learning_steps = math.inf

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """True as long as T is still learned."""
        return not self.settled(self._step)

    def _prepare_learning(
        self, n_steps: int | None, steps_per_pass: float, damping: float | None = None
    ) -> None:
        """Plan the learning steps, and choose a damping.

        The user's damping is used if there is one, else the argument.  If both are None, the
        damping follows from the number of steps.
        """
        planned = max(1, whole_steps(steps_per_pass) if n_steps is None else n_steps)
        self._n_learning_steps = math.inf
        #: If T has not cooled after this step, a warning is given.
        self._check_after: float = planned
        if n_steps is not None:
            self._n_learning_steps = n_steps - whole_steps(self.final_fraction * n_steps)
            self._check_after = self._n_learning_steps
        self._step = 0
        if damping is None:
            damping = -math.expm1(-DEFAULT_RELAXATION / planned)
        self._damping = damping if self.damping is None else self.damping

    def _learning_state(self) -> dict[str, Any]:
        """The plan and the step, as a tree."""
        return {
            "learning_steps": self._n_learning_steps,
            "check_after": self._check_after,
            "step": self._step,
            "damping": self._damping,
        }

    def _load_learning(self, node: Node) -> None:
        """Take over what :meth:`_learning_state` returned."""
        steps = node.number("learning_steps", 0.0, finite=False)
        if not steps >= 0:
            raise node.error("learning_steps", "a number of steps", steps)
        self._n_learning_steps = steps
        self._check_after = node.number("check_after", 0.0)
        self._step = node.integer("step")
        self._damping = node.number("damping", 0.0, 1.0)

    def settled(self, step: int) -> bool:
        return step >= self._n_learning_steps

    def _learns(self) -> bool:
        """Count the step just made; return whether it is a learning step."""
        self._step += 1
        return not self.settled(self._step - 1)


class Running:
    """Exponential averages over minibatches.

    A step that sees all data replaces the averages by its own values.
    """

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.values: list[Any] = []

    def add(self, *values: Any, scale: float) -> list[Any]:
        """Add sums over a batch and return the averages, scaled to the population.

        `scale` is the number of data in the population over the number in the batch.
        """
        scaled = [scale * value for value in values]
        if not self.values or scale == 1:
            self.values = scaled
        else:
            pairs = zip(self.values, scaled, strict=True)
            self.values = [old + self.weight * (new - old) for old, new in pairs]
        return self.values

    def state_dict(self) -> dict[str, Any]:
        """The averages, as a tree."""
        return {str(number): value for number, value in enumerate(self.values)}

    def load_state_dict(self, node: Node, *shapes: tuple[int, ...]) -> None:
        """Take over averages."""
        self.values = []
        if "0" in node:
            self.values = [
                node.array(str(i), shape, np.float64).copy() if shape else node.number(str(i))
                for i, shape in enumerate(shapes)
            ]


def check_prior_weights(value: ArrayLike | None, size: int, owner: str) -> None:
    """Raise ValueError unless a prior is None or has a positive number for each temperature."""
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
