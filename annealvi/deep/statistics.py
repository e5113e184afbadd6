r"""Proximity statistics: what a penalty keeps near its past.

A statistic of q is a function ``f(q, prior)`` of the distribution of a layer's units and of their
prior, whose parameters are detached.  It returns a Tensor, or several, whose last axis is that of
the units; the axes before it, of draws and of data, are averaged.  A statistic of the weights of
q's networks is a :class:`WeightStatistic`.  Gradients come from PyTorch.  The statistics with a
name, in :data:`STATISTICS`, are such functions, and any other can stand in their place (Altosaar,
Ranganath, Blei 2018, *Proximity Variational Inference*, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Distribution, Independent, Poisson, kl_divergence
from torch.nn.functional import softplus

from annealvi.checks import checked
from annealvi.exceptions import BadParameter

#: A function of q and of the prior.
UnitStatistic = Callable[[Distribution, Distribution], Tensor | tuple[Tensor, ...]]
#: q and the prior of each layer.
Layers = Iterable[tuple[Distribution, Distribution]]
#: Above this rate the entropy of a Poisson variable is computed by its asymptotic series, whose
#: next term is then below 1e-7.  Below it a sum of so many terms leaves out less than 1e-7.
LARGE_RATE, TERMS = 30.0, 100
#: How the names of functions begin in files, so that they are no names of statistics.
FUNCTION = "function "


class WeightStatistic:
    """A statistic of the weights of q's networks.

    Parameters
    ----------
    function : callable
        ``function(weights)`` returns a Tensor.  `weights` is a list of the weights of all layers
        from x to q, each of shape (outputs, inputs).

    Raises
    ------
    TypeError
        If the function cannot be called.

    Examples
    --------
    >>> from annealvi.deep import ProximityPenalty, WeightStatistic
    >>> lengths = WeightStatistic(lambda weights: weights[0].norm(dim=1))
    >>> penalty = ProximityPenalty(lengths, magnitude=0.1)
    """

    @checked
    def __init__(self, function: Callable[[list[Tensor]], Tensor]) -> None:
        if not callable(function):
            raise BadParameter("function", "callable", function)
        self.function = function

    def __call__(self, weights: Iterable[Tensor]) -> Tensor:
        """Return the statistic."""
        return self.function(list(weights))

    def __repr__(self) -> str:
        return f"WeightStatistic({_name(self.function)})"


def entropy(q: Distribution, prior: Distribution | None = None) -> Tensor:
    """Return the entropy of each unit."""
    return poisson_entropy(q.rate) if isinstance(q, Poisson) else q.entropy()


def kl(q: Distribution, prior: Distribution) -> Tensor:
    """Return KL(q || p) of each unit."""
    if isinstance(q, Bernoulli) and isinstance(prior, Bernoulli):
        return bernoulli_kl(q.logits, prior.logits)
    return kl_divergence(q, prior.expand(q.batch_shape))


def mean(q: Distribution, prior: Distribution | None = None) -> Tensor:
    """Return the mean of each unit."""
    return q.mean


def variance(q: Distribution, prior: Distribution | None = None) -> Tensor:
    """Return the variance of each unit."""
    return q.variance


def mean_variance(q: Distribution, prior: Distribution | None = None) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of each unit."""
    return q.mean, q.variance


def gram(weights: Iterable[Tensor]) -> Tensor:
    """Return all elements of W W^T of each layer, in one row."""
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


#: Statistics of q that have a name.
OF_UNITS: dict[str, UnitStatistic] = {
    "entropy": entropy,
    "kl": kl,
    "mean": mean,
    "variance": variance,
    "mean_variance": mean_variance,
}
#: All that have a name.
STATISTICS: dict[str, UnitStatistic | WeightStatistic] = {
    **OF_UNITS,
    "orthogonal": WeightStatistic(gram),
}


class Statistic:
    """A statistic under the name that files and messages have for it, checked as it is used."""

    def __init__(self, given: str | UnitStatistic | WeightStatistic) -> None:
        named = given if isinstance(given, str) else None
        for name, statistic in STATISTICS.items():
            named = name if statistic is given else named
        self._function: Any = given if named is None else STATISTICS[named]
        self.own = named is None
        self.of_weights = isinstance(self._function, WeightStatistic)
        inner: Any = self._function
        if self.of_weights:
            inner = inner.function
        self.name = named or f"{FUNCTION}{_name(inner)}"
        self._checked = not self.own

    def __call__(self, layers: Layers, weights: Iterable[Tensor] = ()) -> Tensor:
        """Return f, of each layer after the other, averaged over all axes but the last."""
        if self.of_weights:
            given = list(weights)
            value = self._function(given)
            if self.own:
                self._check(value, given)
                value = value.flatten()
            return value
        parts: list[Tensor] = []
        for q, prior in layers:
            if isinstance(q, Independent):
                raise TypeError("The statistic is of each unit: give the base of an Independent.")
            found = self._function(q, prior.expand(q.batch_shape) if self.own else prior)
            several = found if isinstance(found, tuple) else (found,)
            for part in several:
                if self.own:
                    self._check(part, _parameters(q))
                size = part.shape[-1] if part.ndim else 1
                parts.append(part.reshape(-1, size).mean(dim=0))
        self._checked = True
        return torch.cat(parts)

    def _check(self, value: Any, parameters: Sequence[Tensor]) -> None:
        what = f"The statistic {self.name.removeprefix(FUNCTION)!r}"
        if not isinstance(value, Tensor) or not value.is_floating_point() or not value.numel():
            shown = value.dtype if isinstance(value, Tensor) else type(value).__name__
            shown = "an empty Tensor" if isinstance(value, Tensor) and not value.numel() else shown
            raise ValueError(f"{what} must return a Tensor of floats. Got {shown}.")
        if not _finite(value):
            if not all(_finite(parameter) for parameter in parameters):
                return  # the fit has diverged, and says so itself
            bad = value.detach()[~torch.isfinite(value.detach())].flatten()[0]
            raise ValueError(f"{what} must be finite where q is. Got {float(bad)}.")
        if self._checked or not torch.is_grad_enabled():
            return
        gradients: Sequence[Tensor | None] = [None]
        if value.requires_grad:
            weights = torch.linspace(0.5, 1.5, value.numel()).to(value).reshape(value.shape)
            wanted = [parameter for parameter in parameters if parameter.requires_grad]
            gradients = torch.autograd.grad(
                (weights * value).sum(), wanted, retain_graph=True, allow_unused=True
            )
        there = [gradient for gradient in gradients if gradient is not None]
        if not there:
            raise ValueError(
                f"{what} has no gradient with respect to q: compute it by operations of PyTorch "
                "on q's parameters (on the weights, for a WeightStatistic), without detaching them."
            )
        if not all(_finite(gradient) for gradient in there):
            raise ValueError(f"The gradient of {what[0].lower()}{what[1:]} must be finite.")


def _parameters(q: Distribution) -> list[Tensor]:
    """What q was made of: a Bernoulli has logits or probabilities, and derives the others."""
    return [value for name, value in vars(q).items() if name in q.arg_constraints]


def _finite(value: Tensor) -> bool:
    return bool(torch.isfinite(value.detach()).all())


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def bernoulli_kl(logits: Tensor, prior_logits: Tensor) -> Tensor:
    """Return KL(q || p) of bits, elementwise, finite for all logits."""
    # s(a) (a - b) - log(1 + e^a) + log(1 + e^b) with logits a of q and b of p; PyTorch's own
    # function returns infinity where a probability rounds to 0 or 1
    a, b = logits, prior_logits
    return a.sigmoid() * (a - b) - softplus(a) + softplus(b)


def poisson_entropy(rate: Tensor) -> Tensor:
    """Return the entropy of Poisson variables, elementwise."""
    # lambda (1 - log lambda) + e^-lambda sum_{n >= 2} lambda^n log(n!) / n!, and for large rates
    # 1/2 log(2 pi e lambda) - 1/(12 lambda) - 1/(24 lambda^2) - 19/(360 lambda^3)
    small = rate.clamp(torch.finfo(rate.dtype).tiny, LARGE_RATE)
    n = torch.arange(2, TERMS, dtype=rate.dtype, device=rate.device)
    log_factorial = torch.lgamma(n + 1)
    terms = torch.exp(n * small.log()[..., None] - small[..., None] - log_factorial)
    exact = small * (1 - small.log()) + (terms * log_factorial).sum(dim=-1)
    large = rate.clamp(min=LARGE_RATE)
    series = 0.5 * (2 * math.pi * math.e * large).log() - 1 / (12 * large)
    series = series - 1 / (24 * large.square()) - 19 / (360 * large**3)
    return torch.where(rate < LARGE_RATE, exact, series)
