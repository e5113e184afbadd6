r"""Proximity penalties for networks: q may not leave where it has been too fast.

With a statistic f of q, its moving average and the inverse Huber distance d, a fit descends

.. math::
   -L + k_t \sum_u d(f_u - \tilde f_u), \quad
   \tilde f \leftarrow \alpha \tilde f + (1 - \alpha) f, \quad
   d(u) = |u| \text{ for } |u| < 1, \text{ else } (u^2 + 1) / 2

(Altosaar, Ranganath, Blei 2018, *Proximity Variational Inference*, Algorithm 2 and its amortised
form).  An amortised statistic is averaged over the batch and the draws first; then comes one
distance a latent unit u, and their sum.  The gradient goes to q's parameters alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn
from torch.distributions import Bernoulli, Distribution, Independent, Poisson, kl_divergence
from torch.nn.functional import softplus

from annealvi.proximity.penalty import MAGNITUDES

STATISTICS = ("entropy", "kl", "mean_variance", "orthogonal")
#: Above this rate the entropy of a Poisson variable is taken from its asymptotic series, whose
#: next term is then below 1e-7; below it terms beyond TERMS weigh less than 1e-7.
LARGE_RATE, TERMS = 30.0, 100


class ProximityPenalty(BaseEstimator):
    r"""What a fit pays for moving q faster than its recent past.

    Parameters
    ----------
    statistic : {"entropy", "kl", "mean_variance", "orthogonal"}, default="entropy"
        f, of each latent unit: the entropy of q; KL(q || p), the prior held fixed; its mean and
        its variance; or :math:`W W^T` of the layers of an encoder, whose units then cannot
        all turn the same way.
    magnitude : float or None, default=None
        :math:`k_0 \ge 0`; None means the absolute value of the ELBO, summed over the first
        minibatch, before the first step.
    shape : {"exponential", "linear"}, default="exponential"
        Whether k falls as :math:`k_0 \gamma^{t / T}` or as :math:`k_0 (1 - t / T)`.
    gamma : float, default=1e-5
        :math:`\gamma`, in (0, 1]: what is left of k in the end; 1 keeps it constant.  Not used
        with ``shape="linear"``.
    decay : float, default=0.9999
        :math:`\alpha`, in (0, 1]: the weight of the past in the moving average, which is
        debiased from its start at zero; at 1 it is the plain mean of all steps.

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
        """The penalty of one fit of so many steps."""
        self.check()
        return RunningPenalty(clone(self), n_steps)

    def check(self) -> None:
        """Raise an error if a parameter is out of its range."""
        self._validate_params()


def as_penalty(
    value: Any, owner: str, statistics: Iterable[str] = STATISTICS
) -> ProximityPenalty | None:
    """The penalty that a `proximity` parameter stands for, checked.

    Parameters
    ----------
    value : None, str or ProximityPenalty
        No penalty, the name of a statistic, or an object.
    owner : str
        The estimator, for the messages.
    statistics : iterable of str
        Those that its q has.
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
    """The penalty of a fit under way: a part of what is trained, as it is saved with it.

    Parameters
    ----------
    parameters : ProximityPenalty
    n_steps : int
        Of the fit.
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
        self._weight = 0.0  # and the sum of its weights

    def forward(self, value: Tensor, step: int, total_elbo: Tensor | float) -> Tensor:
        """k_t times the distance from the average, which then takes in the value.

        Parameters
        ----------
        value : Tensor of shape (n,)
            f, with its gradient.
        step : int
            Steps done.
        total_elbo : Tensor or float
            Of the minibatch, its sum.
        """
        if self._first is None:
            self._first = abs(float(total_elbo))
        penalty = self.magnitude(step) * inverse_huber(value - self.average(value)).sum()
        now = value.detach().double()
        if self._sum is not None:  # an encoder's weights have many products: no more copies
            now = torch.add(now, self._sum.to(now), alpha=self._alpha)
        self._sum = now
        self._weight = self._alpha * self._weight + 1.0
        return penalty

    def magnitude(self, step: int) -> float:
        """k_t; nothing before the first step is seen."""
        first = 0.0 if self._first is None else self._first
        return first * self._falls(step / self.n_steps)

    def average(self, value: Tensor) -> Tensor:
        """The debiased moving average; the value itself where there is none yet."""
        if self._sum is None:
            return value.detach()
        return (self._sum / self._weight).to(value)

    def get_extra_state(self) -> dict[str, Any]:
        return {"first": self._first, "sum": self._sum, "weight": self._weight}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if not self._given:  # what a fit is resumed with holds, as its learning rate does
            self._first = state["first"]
        self._sum, self._weight = state["sum"], state["weight"]


def inverse_huber(distance: Tensor) -> Tensor:
    """d, elementwise: the absolute value up to 1, half the square plus a half beyond.

    Parameters
    ----------
    distance : Tensor
    """
    size = distance.abs()
    return torch.where(size < 1, size, 0.5 * (distance.square() + 1))


def statistic(name: str, q: Distribution, prior: Distribution | None = None) -> Tensor:
    """A statistic of each latent unit, averaged over all axes of q but the last.

    Parameters
    ----------
    name : {"entropy", "kl", "mean_variance"}
    q : Distribution
        With a batch shape that ends in the units.
    prior : Distribution, optional
        p, for ``"kl"``; what its parameters come from must be detached.

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
    """W W^T of each layer, all their elements in a row.

    Parameters
    ----------
    weights : iterable of Tensor
        Of shape (outputs, inputs).
    """
    return torch.cat([_Gram.apply(weight).flatten() for weight in weights])


class _Gram(torch.autograd.Function):
    """W W^T, which is symmetric: its gradient is one product, not two."""

    @staticmethod
    def forward(context: Any, weight: Tensor) -> Tensor:
        context.save_for_backward(weight)
        return weight @ weight.T

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (weight,) = context.saved_tensors
        return (gradient + gradient.T) @ weight


def bernoulli_kl(logits: Tensor, prior_logits: Tensor) -> Tensor:
    r"""KL(q || p) of bits, elementwise, finite for all logits.

    .. math::
       \sigma(a)(a - b) - \log(1 + e^a) + \log(1 + e^b);

    PyTorch's has infinity where a probability rounds to 0 or 1.

    Parameters
    ----------
    logits, prior_logits : Tensor
        a and b.
    """
    a, b = logits, prior_logits
    return a.sigmoid() * (a - b) - softplus(a) + softplus(b)


def poisson_entropy(rate: Tensor) -> Tensor:
    r"""The entropy of Poisson variables, elementwise.

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
