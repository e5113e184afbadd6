r"""Proximity penalties for networks: a cost for moving q fast away from its recent past.

A fit minimises the objective below, where f is a statistic of q, :math:`\tilde f` its moving
average and d the inverse Huber distance:

.. math::
   -L + k_t \sum_u d(f_u - \tilde f_u), \quad
   \tilde f \leftarrow \alpha \tilde f + (1 - \alpha) f, \quad
   d(u) = |u| \text{ for } |u| < 1, \text{ else } (u^2 + 1) / 2

(Altosaar, Ranganath, Blei 2018, *Proximity Variational Inference*, Algorithm 2 and its amortised
form).  In an amortised model the statistic is first averaged over the minibatch and the draws.
Each latent unit u then has one distance, and the penalty is their sum.  Only the parameters of q
get a gradient from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn
from torch.distributions import Bernoulli, Distribution, Independent, Poisson, kl_divergence
from torch.nn.functional import softplus

from annealvi._validation import Interval
from annealvi.files import Node
from annealvi.proximity.penalty import MAGNITUDES

STATISTICS = ("entropy", "kl", "mean_variance", "orthogonal")
#: Above this rate the entropy of a Poisson variable is computed by its asymptotic series, whose
#: next term is then below 1e-7.  Below it a sum of so many terms leaves out less than 1e-7.
LARGE_RATE, TERMS = 30.0, 100


class ProximityPenalty(BaseEstimator):
    r"""A penalty on moving q away from its recent past.

    Parameters
    ----------
    statistic : {"entropy", "kl", "mean_variance", "orthogonal"}, default="entropy"
        The statistic f of each latent unit: the entropy of q; KL(q || p), with the prior held
        fixed; the mean and the variance of q; or :math:`W W^T` of the layers of an encoder,
        which keeps their units from all turning in the same direction.
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
    """

    _parameter_constraints: ClassVar[dict] = {
        "statistic": [StrOptions(set(STATISTICS))],
        "magnitude": [None, Interval(Real, 0, None, closed="left")],
        "shape": [StrOptions(set(MAGNITUDES))],
        "gamma": [Interval(Real, 0, 1, closed="right")],
        "decay": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        statistic: str = "entropy",
        *,
        magnitude: float | None = None,
        shape: str = "exponential",
        gamma: float = 1e-5,
        decay: float = 0.9999,
    ) -> None:
        self.statistic = statistic
        self.magnitude = magnitude
        self.shape = shape
        self.gamma = gamma
        self.decay = decay

    def plan(self, n_steps: int) -> RunningPenalty:
        """Return the penalty of one fit of so many steps."""
        self.check()
        return RunningPenalty(clone(self), n_steps)

    def check(self) -> None:
        """Raise an error if a parameter is out of its range."""
        self._validate_params()


def as_penalty(
    value: Any, owner: str, statistics: Iterable[str] = STATISTICS
) -> ProximityPenalty | None:
    """Return the penalty that a `proximity` parameter stands for, checked.

    Parameters
    ----------
    value : None, str or ProximityPenalty
        No penalty, the name of a statistic, or a penalty.
    owner : str
        Name of the estimator, for the error messages.
    statistics : iterable of str
        Statistics that the estimator's q has.

    Raises
    ------
    ValueError
        If the value is no penalty, or its statistic is not among `statistics`.
    """
    allowed = list(statistics)
    penalty = ProximityPenalty(value) if isinstance(value, str) and value in allowed else value
    if penalty is None:
        return None
    if not isinstance(penalty, ProximityPenalty):
        raise ValueError(
            f"The 'proximity' parameter of {owner} must be None, a str among {allowed} or an "
            f"instance of 'annealvi.deep.ProximityPenalty'. Got {value!r} instead."
        )
    penalty.check()
    if penalty.statistic not in allowed:
        raise ValueError(
            f"The 'proximity' parameter of {owner} can have the statistics {allowed}. "
            f"Got {penalty.statistic!r} instead."
        )
    return penalty


class RunningPenalty(nn.Module):
    """The penalty of one fit, a part of its network so that its memory is saved with it.

    Parameters
    ----------
    parameters : ProximityPenalty
    n_steps : int
        Steps of the fit.
    """

    def __init__(self, parameters: ProximityPenalty, n_steps: int) -> None:
        super().__init__()
        self.statistic = parameters.statistic
        self.n_steps = n_steps
        self._falls = MAGNITUDES[parameters.shape](parameters.gamma)
        self._alpha = parameters.decay
        self._given = parameters.magnitude is not None
        self._first = None if parameters.magnitude is None else float(parameters.magnitude)
        self._sum: Tensor | None = None  # of alpha^(t - s) f_s over the steps s before t
        self._weight = 0.0  # the sum of these weights alpha^(t - s)

    def forward(self, value: Tensor, step: int, total_elbo: Tensor | float) -> Tensor:
        """Return k_t times the distance of a value from the average, then update the average.

        Parameters
        ----------
        value : Tensor of shape (n,)
            f, with its gradient.
        step : int
            Number of steps made.
        total_elbo : Tensor or float
            The ELBO, summed over the minibatch.
        """
        if self._first is None:
            self._first = abs(float(total_elbo))
        penalty = self.magnitude(step) * inverse_huber(value - self.average(value)).sum()
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
            raise ValueError(
                f"The file is damaged: the average of a proximity statistic has shape "
                f"{tuple(self._sum.shape)}, the statistic {tuple(value.shape)}."
            )
        return (self._sum / self._weight).to(value)

    def get_extra_state(self) -> dict[str, Any]:
        return {"first": self._first, "sum": self._sum, "weight": self._weight}

    def checked_extra_state(self, node: Node) -> dict[str, Any]:
        """Return the memory of a penalty from a file; its length is checked when it is used."""
        total = None
        if not node.is_none("sum"):
            total = torch.from_numpy(node.array("sum", (None,), np.float64).copy())
        first = None if node.is_none("first") else node.number("first", 0.0)
        weight = node.number("weight", 0.0 if total is None else 1.0)
        return {"first": first, "sum": total, "weight": weight}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if not self._given:  # a magnitude given to the fit that continues has priority
            self._first = state["first"]
        self._sum, self._weight = state["sum"], state["weight"]


def inverse_huber(distance: Tensor) -> Tensor:
    """Return d of each element: |x| up to 1, and (x^2 + 1) / 2 beyond.

    Parameters
    ----------
    distance : Tensor
    """
    size = distance.abs()
    return torch.where(size < 1, size, 0.5 * (distance.square() + 1))


def statistic(name: str, q: Distribution, prior: Distribution | None = None) -> Tensor:
    """Return a statistic of each latent unit, averaged over all axes of q but the last.

    Parameters
    ----------
    name : {"entropy", "kl", "mean_variance"}
    q : Distribution
        Its batch shape ends in the units.
    prior : Distribution, optional
        p, for ``"kl"``.  Its parameters must be detached.

    Returns
    -------
    Tensor of shape (n_units,), or (2 n_units,) for the mean and the variance
    """
    if isinstance(q, Independent):
        raise TypeError("The statistic is of each unit: give the base of an Independent.")
    if name == "entropy":
        values = [poisson_entropy(q.rate) if isinstance(q, Poisson) else q.entropy()]
    elif name == "kl":
        assert prior is not None
        if isinstance(q, Bernoulli) and isinstance(prior, Bernoulli):
            values = [bernoulli_kl(q.logits, prior.logits)]
        else:
            values = [kl_divergence(q, prior.expand(q.batch_shape))]
    elif name == "mean_variance":
        values = [q.mean, q.variance]
    else:
        raise ValueError(f"No distribution has the statistic {name!r}.")
    return torch.cat([value.reshape(-1, value.shape[-1]).mean(dim=0) for value in values])


def gram(weights: Iterable[Tensor]) -> Tensor:
    """Return all elements of W W^T of each layer, in one row.

    Parameters
    ----------
    weights : iterable of Tensor
        Of shape (outputs, inputs).
    """
    return torch.cat([_Gram.apply(weight).flatten() for weight in weights])


class _Gram(torch.autograd.Function):
    """W W^T; as it is symmetric, its gradient needs one product instead of two."""

    @staticmethod
    def forward(context: Any, weight: Tensor) -> Tensor:
        context.save_for_backward(weight)
        return weight @ weight.T

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (weight,) = context.saved_tensors
        return (gradient + gradient.T) @ weight


def bernoulli_kl(logits: Tensor, prior_logits: Tensor) -> Tensor:
    r"""Return KL(q || p) of bits, elementwise, finite for all logits.

    .. math::
       \sigma(a)(a - b) - \log(1 + e^a) + \log(1 + e^b)

    PyTorch's own function returns infinity where a probability rounds to 0 or 1.

    Parameters
    ----------
    logits, prior_logits : Tensor
        a and b.
    """
    a, b = logits, prior_logits
    return a.sigmoid() * (a - b) - softplus(a) + softplus(b)


def poisson_entropy(rate: Tensor) -> Tensor:
    r"""Return the entropy of Poisson variables, elementwise.

    .. math::
       H = \lambda (1 - \log \lambda) + e^{-\lambda} \sum_{n \ge 2} \lambda^n \log(n!) / n!

    and for large rates :math:`\frac12 \log 2 \pi e \lambda - \frac1{12\lambda}
    - \frac1{24\lambda^2} - \frac{19}{360\lambda^3}`.

    Parameters
    ----------
    rate : Tensor
    """
    small = rate.clamp(torch.finfo(rate.dtype).tiny, LARGE_RATE)
    n = torch.arange(2, TERMS, dtype=rate.dtype, device=rate.device)
    log_factorial = torch.lgamma(n + 1)
    terms = torch.exp(n * small.log()[..., None] - small[..., None] - log_factorial)
    exact = small * (1 - small.log()) + (terms * log_factorial).sum(dim=-1)
    large = rate.clamp(min=LARGE_RATE)
    series = 0.5 * (2 * math.pi * math.e * large).log() - 1 / (12 * large)
    series = series - 1 / (24 * large.square()) - 19 / (360 * large**3)
    return torch.where(rate < LARGE_RATE, exact, series)
