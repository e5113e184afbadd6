"""What the estimators of deep models of data share: temperature, penalty and optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch

from annealvi.deep.estimators.base import DeepEstimator
from annealvi.deep.penalties import STATISTICS, RunningPenalty, as_penalty
from annealvi.temperature import LocalVariational, Temperature, Variational, as_temperature

#: Adam's epsilon, as Altosaar et al. have it.
EPSILON = 1e-6


class DataEstimator(DeepEstimator):
    """A model of data that can be annealed and can pay for moving q faster than its past.

    Parameters
    ----------
    proximity : None, str or ProximityPenalty
    temperature : float, str or Temperature
    """

    proximity: Any
    temperature: Any
    #: What `proximity` can be a penalty on.
    _statistics: ClassVar[Sequence[str]] = STATISTICS

    def _plan(self, n_samples: int) -> None:
        """Check penalty and temperature, and say how a fit of so many data goes."""
        owner = type(self).__name__
        self._penalty = as_penalty(self.proximity, owner, self._statistics)
        steps_per_pass = n_samples / min(int(self.batch_size), n_samples)
        self._temperature = plan_temperature(
            self.temperature, int(self.max_iter), steps_per_pass, owner
        )

    def _running_penalty(self) -> RunningPenalty | None:
        """The penalty of this fit, to be a part of its network."""
        return None if self._penalty is None else self._penalty.plan(int(self.max_iter))

    def _statistic(self) -> str | None:
        """What the penalty is on, which a saved state must agree with."""
        return None if self._penalty is None else self._penalty.statistic

    def _optimiser(self, network: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(
            network.parameters(), lr=self.learning_rate, eps=EPSILON, fused=True
        )


def plan_temperature(value: Any, n_steps: int, steps_per_pass: float, owner: str) -> Temperature:
    """What a `temperature` parameter means for a fit of so many steps.

    Parameters
    ----------
    value : float, str or Temperature
    n_steps : int
    steps_per_pass : float
    owner : str
        The estimator, for the messages.

    Raises
    ------
    ValueError
        If it is no temperature, or one that is learned from log C(T), which deep models do
        not have.
    """
    temperature = as_temperature(value, owner)
    if isinstance(temperature, (Variational, LocalVariational)):
        raise ValueError(
            f"The 'temperature' parameter of {owner} must be one that follows a plan, a float, "
            f"'annealed', Fixed or Annealed: what is learned needs log C(T) of the model. Got "
            f"{value!r} instead."
        )
    return temperature.plan(n_steps, steps_per_pass, owner=owner)


def layer_widths(hidden: Any, owner: str) -> list[int]:
    """A `hidden` parameter, checked.

    Parameters
    ----------
    hidden : sequence of int
    owner : str
        The estimator, for the message.
    """
    if isinstance(hidden, np.ndarray):
        listed = hidden.ndim == 1
    else:
        listed = isinstance(hidden, Sequence) and not isinstance(hidden, str)
    if not (listed and len(hidden) and all(_is_width(width) for width in hidden)):
        raise ValueError(
            f"The 'hidden' parameter of {owner} must be a sequence of ints in the range "
            f"[1, inf), one a layer. Got {hidden!r} instead."
        )
    return [int(width) for width in hidden]


def _is_width(width: Any) -> bool:
    return isinstance(width, Integral) and not isinstance(width, bool) and int(width) >= 1
