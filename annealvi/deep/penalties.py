r"""Proximity penalties for networks: a cost for moving q fast away from its recent past.

A fit minimises the objective below, where f is a statistic of q, :math:`\tilde f` its moving
average and d a distance, usually the inverse Huber distance:

.. math::
   -L + k_t \sum_u d(f_u - \tilde f_u), \quad
   \tilde f \leftarrow \alpha \tilde f + (1 - \alpha) f, \quad
   d(u) = |u| \text{ for } |u| < 1, \text{ else } (u^2 + 1) / 2

(Altosaar, Ranganath, Blei 2018, *Proximity Variational Inference*, Algorithm 2 and its amortised
form).  In an amortised model the statistic is first averaged over the minibatch and the draws.
Each latent unit u then has one distance, and the penalty is their sum.  Only the parameters of q
get a gradient from it.  The statistics are in :mod:`annealvi.deep.statistics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

from annealvi.checks import Interval
from annealvi.deep.statistics import STATISTICS, Statistic, UnitStatistic, WeightStatistic
from annealvi.deep.training import TensorField
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Number, Optional, Schema
from annealvi.proximity.penalty import MAGNITUDES

#: d of each element of a Tensor.
Distance = Callable[[Tensor], Tensor]
#: Arguments at which a distance is tried; 0 is where every fit begins.
POINTS = (0.0, 0.13, -0.57, 0.93, -1.4, 2.6, -7.1)


def inverse_huber(distance: Tensor) -> Tensor:
    """Return d of each element: |x| up to 1, and (x^2 + 1) / 2 beyond."""
    size = distance.abs()
    return torch.where(size < 1, size, 0.5 * (distance.square() + 1))


#: The distances that have a name.
DISTANCES: dict[str, Distance] = {"inverse_huber": inverse_huber, "square": torch.square}


class ProximityPenalty(BaseEstimator):
    r"""A penalty on moving q away from its recent past.

    Parameters
    ----------
    statistic : str, callable or WeightStatistic, default="entropy"
        The statistic f of each latent unit: the entropy of q; ``"kl"``, KL(q || p) with the prior
        held fixed; the ``"mean"`` of q, its ``"variance"`` or both, ``"mean_variance"``; or
        ``"orthogonal"``, :math:`W W^T` of the layers of an encoder, which keeps their units from
        all turning in the same direction.  A function ``f(q, prior)`` of two PyTorch
        distributions returns a Tensor whose last axis is that of the units; axes before it are
        averaged.  A function of the encoder's weights is wrapped in a
        :class:`annealvi.deep.WeightStatistic`.
    distance : {"inverse_huber", "square"} or callable, default="inverse_huber"
        The distance d of each element of f from its past: :math:`|u|` up to 1 and
        :math:`(u^2 + 1) / 2` beyond; :math:`u^2`; or a function of a Tensor u that works on each
        element alone.  Its gradient at u = 0 must be finite, because every fit begins there.
    magnitude : float or None, default=None
        :math:`k_0 \ge 0`, the magnitude at the start.  None takes the absolute value of the
        ELBO, summed over the first minibatch before the first step.  Larger values hold q back
        for longer; choose a smaller one for short fits.
    shape : {"exponential", "linear"}, default="exponential"
        Whether k falls as :math:`k_0 \gamma^{t / T}` or as :math:`k_0 (1 - t / T)` over the T
        steps of a fit.
    gamma : float, default=1e-5
        :math:`\gamma`, in (0, 1]: the part of :math:`k_0` that is left at the end.  1 keeps the
        magnitude constant.  Not used with ``shape="linear"``.
    decay : float, default=0.9999
        :math:`\alpha`, in (0, 1]: the weight of the past in the moving average.  Smaller values
        forget the past sooner; 1 gives the mean of all steps.  The average is corrected for its
        start at zero.

    References
    ----------
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.

    Examples
    --------
    >>> from annealvi.deep.penalties import ProximityPenalty
    >>> penalty = ProximityPenalty("orthogonal", magnitude=0.01, gamma=1.0)
    >>> def spread(q, prior):  # how much the means of a minibatch differ, of each unit
    ...     return q.mean.reshape(-1, q.mean.shape[-1]).var(dim=0)
    >>> penalty = ProximityPenalty(spread, magnitude=10.0)
    """

    _parameter_constraints: ClassVar[dict] = {
        "statistic": [StrOptions(set(STATISTICS)), callable],
        "distance": [StrOptions(set(DISTANCES)), callable],
        "magnitude": [None, Interval(Real, 0, None, closed="left")],
        "shape": [StrOptions(set(MAGNITUDES))],
        "gamma": [Interval(Real, 0, 1, closed="right")],
        "decay": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        statistic: str | UnitStatistic | WeightStatistic = "entropy",
        *,
        distance: str | Distance = "inverse_huber",
        magnitude: float | None = None,
        shape: str = "exponential",
        gamma: float = 1e-5,
        decay: float = 0.9999,
    ) -> None:
        self.statistic = statistic
        self.distance = distance
        self.magnitude = magnitude
        self.shape = shape
        self.gamma = gamma
        self.decay = decay

    def plan(self, n_steps: int) -> RunningPenalty:
        """Return the penalty of one fit of so many steps."""
        self.check()
        return RunningPenalty(clone(self), n_steps)

    def check(self) -> None:
        """Raise a ValueError if a parameter is out of its range."""
        self._validate_params()
        if not isinstance(self.distance, str):
            check_distance(self.distance)


#: What the `proximity` parameter of an estimator can be.
ProximityLike = str | UnitStatistic | WeightStatistic | ProximityPenalty | None


def as_penalty(value: Any, statistics: Iterable[str] = STATISTICS) -> ProximityPenalty | None:
    """Return the penalty that a `proximity` parameter stands for; q has these statistics."""
    allowed = list(statistics)
    short = value in allowed if isinstance(value, str) else callable(value)
    penalty = ProximityPenalty(value) if short and not isinstance(value, type) else value
    if penalty is None:
        return None
    if not isinstance(penalty, ProximityPenalty):
        wanted = "a callable or an instance of 'annealvi.deep.ProximityPenalty'"
        raise BadParameter("proximity", f"None, a str among {allowed}, {wanted}", value)
    penalty.check()
    statistic = Statistic(penalty.statistic)
    if statistic.own and statistic.of_weights and "orthogonal" not in allowed:
        wanted = "without a WeightStatistic, because its q has no network"
        raise BadParameter("proximity", wanted, penalty.statistic)
    if not statistic.own and statistic.name not in allowed:
        wanted = f"a penalty with one of the statistics {allowed}"
        raise BadParameter("proximity", wanted, statistic.name)
    return penalty


def check_distance(distance: Distance) -> None:
    """Check that a distance works elementwise, with a finite gradient."""
    what = f"The 'distance' {getattr(distance, '__name__', type(distance).__name__)!r}"
    u = torch.tensor(POINTS, requires_grad=True)
    with torch.enable_grad():
        found = _as_distances(distance(u), u, what)
        if not found.requires_grad:
            raise ValueError(f"{what} has no gradient: compute it by operations of PyTorch.")
        (gradient,) = torch.autograd.grad(found.sum(), u)
    if not bool(torch.isfinite(gradient).all()):
        at = float(u.detach()[~torch.isfinite(gradient)][0])
        raise ValueError(f"The gradient of {what[0].lower()}{what[1:]} must be finite at u = {at}.")
    alone = [_as_distances(distance(x), x, what) for x in u.detach()[:, None]]
    if not torch.allclose(torch.cat(alone), found.detach(), rtol=1e-4, atol=1e-6):
        raise ValueError(f"{what} must work on each element alone: see 'distance'.")


def _as_distances(found: Any, u: Tensor, what: str) -> Tensor:
    """The distances of a function of the user's, if they can be."""
    if not isinstance(found, Tensor) or found.shape != u.shape:
        shown = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"{what} must return a Tensor of shape {tuple(u.shape)}. Got {shown}.")
    if not bool(torch.isfinite(found.detach()).all()):
        bad = u.detach()[~torch.isfinite(found.detach())].flatten()[0]
        raise ValueError(f"{what} must be finite. It is not at u = {float(bad):.6g}.")
    return found


class RunningPenalty(nn.Module):
    """The penalty of one fit, a part of its network so that its memory is saved with it.

    A loop of your own adds it to the loss: ``value = penalty.statistic([(q, prior)])`` and
    ``loss = -elbo + penalty(value, step, elbo)``.
    """

    #: The memory in files; the length of the sum is checked when it is used.
    MEMORY = Schema(
        first=Optional(Number(0.0)),
        sum=Optional(TensorField((None,), np.float64)),
        weight=Number(0.0),
    )

    def __init__(self, parameters: ProximityPenalty, n_steps: int) -> None:
        super().__init__()
        self.statistic = Statistic(parameters.statistic)
        given = parameters.distance
        self._distance = DISTANCES[given] if isinstance(given, str) else given
        self._own_distance = not isinstance(given, str)
        self.n_steps = n_steps
        self._falls = MAGNITUDES[parameters.shape](parameters.gamma)
        self._alpha = parameters.decay
        self._given = parameters.magnitude is not None
        self._first = None if parameters.magnitude is None else float(parameters.magnitude)
        self._sum: Tensor | None = None  # of alpha^(t - s) f_s over the steps s before t
        self._weight = 0.0  # the sum of these weights alpha^(t - s)

    def forward(self, value: Tensor, step: int, total_elbo: Tensor | float) -> Tensor:
        """Return k_t times the distance of a value from the average, then update the average."""
        if self._first is None:
            self._first = abs(float(total_elbo))
        moved = value - self.average(value)
        distances = self._distance(moved)
        if self._own_distance:
            distances = _as_distances(distances, moved, "The 'distance' of the penalty")
        penalty = self.magnitude(step) * distances.sum()
        now = value.detach().double()
        if self._sum is not None:  # one operation without copies: W W^T is large
            now = torch.add(now, self._sum.to(now), alpha=self._alpha)
        self._sum = now
        self._weight = self._alpha * self._weight + 1.0
        return penalty

    def magnitude(self, step: int) -> float:
        """Return k_t; 0 if it is unknown because no step was made yet."""
        first = 0.0 if self._first is None else self._first
        return first * self._falls(step / self.n_steps)

    def average(self, value: Tensor) -> Tensor:
        """Return the moving average, or the value itself if there is none yet."""
        if self._sum is None:
            return value.detach()
        if self._sum.shape != value.shape:
            if self.statistic.own:
                raise ValueError(
                    f"The statistic of a penalty must keep its shape. It had "
                    f"{len(self._sum)} values, and now has {len(value)}."
                )
            raise ValueError(
                f"The file is damaged: the average of a proximity statistic has shape "
                f"{tuple(self._sum.shape)}, the statistic {tuple(value.shape)}."
            )
        return (self._sum / self._weight).to(value)

    def get_extra_state(self) -> dict[str, Any]:
        return {"first": self._first, "sum": self._sum, "weight": self._weight}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if not self._given:  # a magnitude given to the fit that continues has priority
            self._first = state["first"]
        self._sum, self._weight = state["sum"], state["weight"]
