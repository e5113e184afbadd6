"""What estimators of models of data share: temperature, penalty, objective and widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from annealvi.deep.penalties import ProximityPenalty, RunningPenalty, as_penalty
from annealvi.deep.statistics import FUNCTION, STATISTICS, Statistic
from annealvi.deep.training import Outcome
from annealvi.files import Node
from annealvi.schedules import Linear, Schedule
from annealvi.temperature import LocalVariational, Temperature, Variational, as_temperature

#: Adam's epsilon in Altosaar et al. (2018).
EPSILON = 1e-6


class Bound(NamedTuple):
    """What one minibatch says about a model of data.

    Attributes
    ----------
    tempered : Tensor, scalar
        The objective at the temperature of the step, whose gradient is followed uphill.  It
        may be a surrogate of which only the gradient means anything.
    elbo : Tensor, scalar
        The ELBO at T = 1, averaged over the data of the minibatch.
    statistic : callable
        ``statistic(f)`` returns the statistic f of q for a proximity penalty.
    """

    tempered: Tensor
    elbo: Tensor
    statistic: Callable[[Statistic], Tensor]


def penalised(
    bound: Callable[[Tensor, float], Bound],
    temperature: Temperature,
    penalty: RunningPenalty | None,
) -> Callable[[Any, int], Outcome]:
    """Return the objective of a model of data: minus its tempered bound, plus the penalty.

    Parameters
    ----------
    bound : callable
        ``bound(rows, temperature)`` returns the :class:`Bound` of a minibatch.
    temperature : Temperature
        Planned for this fit.
    penalty : RunningPenalty or None
        What q pays for moving away from its recent past.
    """

    def objective(rows: Tensor, step: int) -> Outcome:
        t = 1.0 / temperature.inverse(step)
        found = bound(rows, t)
        loss = -found.tempered
        if penalty is not None:
            value = found.statistic(penalty.statistic)
            loss = loss + penalty(value, step, found.elbo.detach() * len(rows))
        return Outcome(loss, found.elbo, t)

    return objective


def plan_parameters(
    estimator: Any, n_samples: int, statistics: Iterable[str] = STATISTICS
) -> tuple[Temperature, RunningPenalty | None]:
    """Check the parameters `temperature` and `proximity`, and plan both for a fit.

    Parameters
    ----------
    estimator : estimator
        With these parameters, `max_iter` and `batch_size`.
    n_samples : int
        Number of data.
    statistics : iterable of str
        Statistics that the estimator's q has.

    Returns
    -------
    temperature : Temperature
    penalty : RunningPenalty or None
    """
    owner, n_steps = type(estimator).__name__, int(estimator.max_iter)
    penalty = as_penalty(estimator.proximity, owner, statistics)
    steps_per_pass = n_samples / min(int(estimator.batch_size), n_samples)
    temperature = plan_temperature(estimator.temperature, n_steps, steps_per_pass, owner)
    return temperature, None if penalty is None else penalty.plan(n_steps)


def plan_beta(estimator: Any) -> list[float]:
    """Return beta of each step that is annealed; after these it is 1.

    Parameters
    ----------
    estimator : estimator
        With the parameters `annealing`, `schedule` and `max_iter`.

    Raises
    ------
    ValueError
        If the schedule gives a number that is not finite, or is negative.
    """
    given: Schedule | None = estimator.schedule
    schedule = Linear(0.01, 1.0) if given is None else given
    annealed = float(estimator.annealing) * int(estimator.max_iter)
    betas = [schedule(step / annealed) for step in range(math.ceil(annealed))]
    for step, beta in enumerate(betas):
        if not isinstance(beta, Real) or not 0 <= beta < math.inf:
            raise ValueError(
                f"The 'schedule' parameter of {type(estimator).__name__} must give finite floats "
                f"in the range [0, inf). Got {beta!r} at {step / annealed:.3g} of the way."
            )
    return [float(beta) for beta in betas]


def plan_temperature(value: Any, n_steps: int, steps_per_pass: float, owner: str) -> Temperature:
    """Return the temperature that a `temperature` parameter stands for, planned for a fit.

    Parameters
    ----------
    value : float, str or Temperature
    n_steps : int
        Steps of the fit.
    steps_per_pass : float
        Steps that make one pass over the data.
    owner : str
        Name of the estimator, for the error messages.

    Raises
    ------
    ValueError
        If the value is no temperature, or a temperature that is learned from log C(T), which
        deep models do not have.
    """
    temperature = as_temperature(value, owner)
    if isinstance(temperature, (Variational, LocalVariational)):
        raise ValueError(
            f"The 'temperature' parameter of {owner} must be one that follows a plan: a float, "
            f"'annealed', Fixed or Annealed. Learned temperatures need log C(T), which deep models "
            f"do not have. Got {value!r} instead."
        )
    return temperature.plan(n_steps, steps_per_pass, owner=owner)


def layer_widths(hidden: Any, owner: str) -> list[int]:
    """Check a `hidden` parameter, and return the width of each layer.

    Parameters
    ----------
    hidden : sequence of int
    owner : str
        Name of the estimator, for the error message.

    Raises
    ------
    ValueError
        If it is not a sequence of at least one positive integer.
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


def integers(node: Node, *names: str) -> dict[str, int]:
    """Sizes of a network from a file, each at least 1.

    Parameters
    ----------
    node : Node
    names : str
    """
    return {name: node.integer(name, 1) for name in names}


def penalty_name(penalty: RunningPenalty | None) -> str | None:
    """The statistic of a penalty as a part of the architecture.

    Parameters
    ----------
    penalty : RunningPenalty or None
    """
    return None if penalty is None else penalty.statistic.name


def saved_penalty(
    node: Node, estimator: Any, statistics: Iterable[str] = STATISTICS
) -> RunningPenalty | None:
    """The penalty of a network from a file, to take over what it remembers.

    Its settings do not matter: it has no further steps.

    Parameters
    ----------
    node : Node
        The architecture.
    estimator : estimator
        Its `proximity` has the statistic, if that is a function.
    statistics : iterable of str
        Statistics that q can have.

    Raises
    ------
    ValueError
        If the file was written with a function that `proximity` does not have.
    """
    if node.is_none("proximity"):
        return None
    name = node.string("proximity")
    if not name.startswith(FUNCTION):
        return ProximityPenalty(node.string("proximity", list(statistics))).plan(1)
    owner = type(estimator).__name__
    penalty = as_penalty(estimator.proximity, owner, statistics)
    if penalty is None or Statistic(penalty.statistic).name != name:
        raise ValueError(
            f"The file was written with a penalty of the statistic {name.removeprefix(FUNCTION)!r},"
            f" and the 'proximity' of this {owner} has another one. Got {estimator.proximity!r}."
        )
    return penalty.plan(1)


def _is_width(width: Any) -> bool:
    return isinstance(width, Integral) and not isinstance(width, bool) and int(width) >= 1
