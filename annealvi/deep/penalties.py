r"""Penalties on the distance between q and its average over past steps, for PyTorch models.

A fit minimises the objective below.  Here f is a statistic of q, :math:`\tilde\lambda` is the
moving average of q's parameters, and d is a distance, usually the inverse Huber distance:

.. math::
   -L + k_t \sum_u d(f_u(\lambda) - f_u(\tilde\lambda)), \quad
   \tilde\lambda \leftarrow \alpha \tilde\lambda + (1 - \alpha) \lambda, \quad
   d(u) = |u| \text{ for } |u| < 1, \text{ else } (u^2 + 1) / 2

(Altosaar, Ranganath, Blei 2018, *Proximity Variational Inference*, Algorithm 2).  In an amortised
model :math:`\lambda` stands for the weights of the networks, and :math:`f_u` is the statistic of
the latent unit u, averaged over the minibatch and the draws.  Only the parameters of q get a
gradient from the penalty.  By default, unlike in this objective, f is averaged over the steps
instead of the parameters.

A statistic is a function ``f(q, prior)``: q is the distribution of a layer's units, and `prior` is
their prior, with detached parameters.  The function returns one Tensor or several.  The last axis
of a Tensor has one element for each unit; the axes of draws and of data before it are averaged.  To
use a function of the encoder's weights, wrap it in a :class:`WeightStatistic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions
from torch import Tensor
from torch.distributions import Bernoulli, Distribution, Poisson, kl_divergence
from torch.nn.functional import softplus

from annealvi.checks import checked
from annealvi.deep.training import TensorField
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Number, Optional, Schema
from annealvi.proximity.penalty import CONSTRAINTS, MAGNITUDES, POINTS, name_of

#: A function of q and of the prior.
UnitStatistic = Callable[[Distribution, Distribution], Tensor | tuple[Tensor, ...]]
#: Pairs of q and the prior, one pair for each layer.
Layers = Iterable[tuple[Distribution, Distribution]]
#: The function d, applied to each element of a Tensor.
Distance = Callable[[Tensor], Tensor]
#: Above LARGE_RATE the entropy of a Poisson variable is computed by an asymptotic series, whose
#: error is then below 1e-7.  For smaller rates a sum of TERMS terms has an error below 1e-7.
LARGE_RATE = 30.0
TERMS = 100
#: Files contain this word before the name of a user's function, so that it is not read as the name
#: of a built-in statistic.
FUNCTION = "function "


# ------------------------------------------------------------- functions of the user's


def check_values(
    what: str, value: Any, shape: Sequence[int] | None = None, at: Tensor | None = None
) -> None:
    """Check that a function returned finite floats of a shape; `at` contains its arguments.

    `what` is the name of the function in messages.
    """
    got = type(value).__name__
    if isinstance(value, Tensor):
        value = value.detach()
        got = f"{value.dtype} of shape {tuple(value.shape)}"
    has_floats = isinstance(value, Tensor) and value.is_floating_point() and value.numel()
    if not has_floats or (shape is not None and value.shape != shape):
        raise ValueError(
            f"{what} must return a Tensor of floats"
            f"{'' if shape is None else f' of shape {tuple(shape)}'}. Got {got}."
        )
    wrong = ~torch.isfinite(value)
    if wrong.any():
        raise ValueError(
            f"{what} must be finite. Got {float(value[wrong][0]):g}"
            f"{'' if at is None else f' at {_points(at, wrong)}'}."
        )


def check_gradient(what: str, value: Tensor, inputs: Sequence[Tensor]) -> None:
    """Check that a function's `value` has a finite gradient with respect to some of its `inputs`.

    `what` is the name of the value in messages.
    """
    gradients: Sequence[Tensor | None] = ()  # none if the value does not depend on the inputs
    if value.requires_grad:
        gradients = torch.autograd.grad(value.sum(), inputs, retain_graph=True, allow_unused=True)
    if all(gradient is None for gradient in gradients):
        raise ValueError(
            f"{what} has no gradient. Compute its value with PyTorch's operations on its "
            "arguments, and do not detach them."
        )
    for gradient, at in zip(gradients, inputs, strict=True):
        if gradient is None:  # the value does not depend on this input
            continue
        wrong = ~torch.isfinite(gradient.reshape(len(gradient), -1)).all(dim=1)
        if wrong.any():
            raise ValueError(
                # `what` begins a sentence elsewhere
                f"The gradient of {what[0].lower()}{what[1:]} must be finite. It is not finite at "
                f"{_points(at, wrong)}."
            )


def _points(at: Tensor, wrong: Tensor) -> str:
    """Say how many rows of `at` are wrong (a mask of rows), and show one of them."""
    wrong_point = str(at.detach()[wrong][0].tolist())
    return f"{int(wrong.sum())} of {len(at)} points, one of them {wrong_point:.80}"


# -------------------------------------------------------------------------- statistics


class WeightStatistic:
    """A statistic that is computed from the encoder's weights instead of from q.

    Parameters
    ----------
    function : callable
        ``function(weights)`` returns a Tensor.  `weights` is a list of the weights of all layers
        from x to q, each of shape (outputs, inputs).

    Raises
    ------
    TypeError
        If `function` is not callable.

    Examples
    --------
    >>> from annealvi.deep import ProximityPenalty, WeightStatistic
    >>> lengths = WeightStatistic(lambda weights: weights[0].norm(dim=1))
    >>> penalty = ProximityPenalty(lengths, magnitude=0.1)
    """

    @checked
    def __init__(self, function: Callable[[list[Tensor]], Tensor]) -> None:
        """Store the function; see the class for its argument."""
        if not callable(function):
            raise BadParameter("function", "callable", function)
        self.function = function

    def __call__(self, weights: Iterable[Tensor]) -> Tensor:
        """Return the statistic of these weights."""
        return self.function(list(weights))

    def __repr__(self) -> str:
        return f"WeightStatistic({name_of(self.function)})"


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
    """Return all elements of W W^T of all layers, in one row."""
    return torch.cat([_Gram.apply(weight).flatten() for weight in weights])


class _Gram(torch.autograd.Function):
    """The product W W^T.  As it is symmetric, its gradient needs one product instead of two."""

    @staticmethod
    def forward(context: Any, weight: Tensor) -> Tensor:
        """Return W W^T, and store W in autograd's `context` for `backward`."""
        context.save_for_backward(weight)
        return weight @ weight.T

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        """Return the gradient with respect to W, from the gradient with respect to W W^T."""
        (weight,) = context.saved_tensors
        return (gradient + gradient.T) @ weight


#: The statistics of q that can be passed by name.
OF_UNITS: dict[str, UnitStatistic] = {
    "entropy": entropy,
    "kl": kl,
    "mean": mean,
    "variance": variance,
    "mean_variance": mean_variance,
}
#: All statistics that can be passed by name.
STATISTICS: dict[str, UnitStatistic | WeightStatistic] = {
    **OF_UNITS,
    "orthogonal": WeightStatistic(gram),
}


class Statistic:
    """A statistic with the name that files and messages use; its values are checked in use."""

    def __init__(self, statistic: str | UnitStatistic | WeightStatistic) -> None:
        """Look up a built-in statistic by name, or take the user's own function."""
        # a built-in statistic may be passed by its name or as the function itself
        names = [name for name, known in STATISTICS.items() if statistic in (name, known)]
        function: Any = STATISTICS[names[-1]] if names else statistic
        self._function = function
        self.of_weights = isinstance(function, WeightStatistic)
        self.custom = not names  # the user's own, which must be checked
        unwrapped = function.function if self.of_weights else function
        self.name = names[-1] if names else f"{FUNCTION}{name_of(unwrapped)}"
        self._gradient_is_checked = False  # the gradient of a user's function is checked once

    def __call__(self, layers: Layers, weights: Iterable[Tensor] = ()) -> Tensor:
        """Return f of all layers in one row, averaged over all axes except the last."""
        rows: list[Tensor] = []
        if self.of_weights:
            inputs = list(weights)
            value = self._function(inputs)
            self._check(value, inputs)
            row = value.flatten()
        else:
            for q, prior in layers:
                # a user's function may need a prior of the shape of q
                values = self._function(q, prior.expand(q.batch_shape) if self.custom else prior)
                # the parameters that q was made from: a Bernoulli has logits or probabilities
                inputs = [vars(q)[name] for name in q.arg_constraints if name in vars(q)]
                for value in values if isinstance(values, tuple) else (values,):
                    self._check(value, inputs)
                    n_units = value.shape[-1] if value.ndim else 1  # units are on the last axis
                    rows.append(value.reshape(-1, n_units).mean(dim=0))
            row = torch.cat(rows)
        # `_check` has now checked the gradient, unless gradients were disabled
        self._gradient_is_checked = self._gradient_is_checked or torch.is_grad_enabled()
        return row

    def _check(self, value: Any, inputs: Sequence[Tensor]) -> None:
        """Check a value of the user's function, and once its gradient; `inputs` made the value."""
        # without finite inputs the fit has diverged, and will raise an error itself
        if self.custom and all(torch.isfinite(tensor.detach()).all() for tensor in inputs):
            what = f"The statistic {self.name.removeprefix(FUNCTION)!r}"
            check_values(what, value)
            if torch.is_grad_enabled() and not self._gradient_is_checked:
                check_gradient(what, value, [tensor for tensor in inputs if tensor.requires_grad])


def bernoulli_kl(logits: Tensor, prior_logits: Tensor) -> Tensor:
    """Return KL(q || p) of bits, elementwise.  The KL is finite for all logits."""
    # with logits a of q and b of p it is s(a) (a - b) - log(1 + e^a) + log(1 + e^b); PyTorch's own
    # function returns infinity if a probability is rounded to 0 or 1
    weighted = logits.sigmoid() * (logits - prior_logits)
    return weighted - softplus(logits) + softplus(prior_logits)


def poisson_entropy(rate: Tensor) -> Tensor:
    """Return the entropy of Poisson variables, elementwise."""
    # it is lambda (1 - log lambda) + e^-lambda sum_{n >= 2} lambda^n log(n!) / n!, for large rates
    # 1/2 log(2 pi e lambda) - 1/(12 lambda) - 1/(24 lambda^2) - 19/(360 lambda^3)
    # each rate is clamped to the range of each formula, so that the formula that is not used for
    # it is finite too: otherwise its gradient would be NaN
    small = rate.clamp(torch.finfo(rate.dtype).tiny, LARGE_RATE)
    n = torch.arange(2, TERMS, dtype=rate.dtype, device=rate.device)
    log_factorial = torch.lgamma(n + 1)
    terms = torch.exp(n * small.log()[..., None] - small[..., None] - log_factorial)
    exact = small * (1 - small.log()) + (terms * log_factorial).sum(dim=-1)
    large = rate.clamp(min=LARGE_RATE)
    series = 0.5 * (2 * math.pi * math.e * large).log() - 1 / (12 * large)
    series = series - 1 / (24 * large.square()) - 19 / (360 * large**3)
    return torch.where(rate < LARGE_RATE, exact, series)


# --------------------------------------------------------------------------- penalties


def inverse_huber(distance: Tensor) -> Tensor:
    """Return d of each element x, which is |x| if |x| < 1, else (x^2 + 1) / 2."""
    size = distance.abs()
    return torch.where(size < 1, size, 0.5 * (distance.square() + 1))


#: The distances that can be passed by name.
DISTANCES: dict[str, Distance] = {"inverse_huber": inverse_huber, "square": torch.square}


@dataclass(eq=False, repr=False)
class ProximityPenalty(BaseEstimator):
    r"""A penalty on the distance between q and its average over past steps.

    Parameters
    ----------
    statistic : str, callable or WeightStatistic, default="entropy"
        The statistic f of each latent unit.  ``"entropy"``, ``"mean"`` and ``"variance"`` are
        computed from q; ``"mean_variance"`` means both the mean and the variance.  ``"kl"`` is KL(q
        || p), with a fixed prior p.  ``"orthogonal"`` is :math:`W W^T` for the weights W of each
        layer of the encoder.  A function ``f(q, prior)`` of two PyTorch distributions must return a
        Tensor with an element for each unit on its last axis; other axes are averaged.  Wrap a
        function of the encoder's weights in a :class:`annealvi.deep.WeightStatistic`.
    distance : {"inverse_huber", "square"} or callable, default="inverse_huber"
        The distance d between an element of f and its past average, as a function of their
        difference u.  ``"inverse_huber"`` is :math:`|u|` if it is below 1, else :math:`(u^2 + 1) /
        2`.  ``"square"`` is :math:`u^2`.  A function must work elementwise on a Tensor, with a
        finite gradient at u = 0.
    magnitude : float or None, default=None
        The magnitude :math:`k_0 \ge 0` of the penalty at the start.  None means the absolute value
        of the ELBO, summed over the first minibatch before the first step.  Larger values slow q
        down for longer.  Use a smaller value for short fits.
    shape : {"exponential", "linear"}, default="exponential"
        Whether k falls as :math:`k_0 \gamma^{t / T}` or as :math:`k_0 (1 - t / T)` over the T
        steps of a fit.
    gamma : float, default=1e-5
        The fraction of :math:`k_0` that remains at the end, in (0, 1].  With 1 the magnitude is
        constant.  ``shape="linear"`` does not use `gamma`.
    decay : float, default=0.9999
        The weight :math:`\alpha` of the past in the moving average, in (0, 1].  With smaller values
        the average forgets earlier steps sooner.  With 1 it is the mean of all steps.  The average
        is corrected for its start at zero.
    average : {"statistic", "parameters"}, default="statistic"
        What is averaged over past steps.  ``"statistic"`` averages f, as in the code that made the
        tables of the paper.  ``"parameters"`` averages all parameters of the model, as in the text
        of the paper, and computes f from the average in each step.

    References
    ----------
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.

    Examples
    --------
    >>> from annealvi.deep import ProximityPenalty
    >>> penalty = ProximityPenalty("orthogonal", magnitude=0.01, gamma=1.0)
    >>> def spread(q, prior):  # how much the means of a minibatch differ, of each unit
    ...     return q.mean.reshape(-1, q.mean.shape[-1]).var(dim=0, unbiased=False)
    >>> penalty = ProximityPenalty(spread, magnitude=10.0)
    """

    _parameter_constraints: ClassVar[dict] = {
        "statistic": [StrOptions(set(STATISTICS)), callable],
        "distance": [StrOptions(set(DISTANCES)), callable],
        **CONSTRAINTS,
    }

    statistic: str | UnitStatistic | WeightStatistic = "entropy"
    _: KW_ONLY
    distance: str | Distance = "inverse_huber"
    magnitude: float | None = None
    shape: str = "exponential"
    gamma: float = 1e-5
    decay: float = 0.9999
    average: Literal["parameters", "statistic"] = "statistic"

    def plan(self, n_steps: int) -> RunningPenalty:
        """Return the penalty for one fit of `n_steps` steps."""
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
    """Return the penalty that a `proximity` parameter means; q has the given statistics."""
    allowed = list(statistics)
    is_statistic = value in allowed if isinstance(value, str) else callable(value)
    # a class is callable too, but is probably a ProximityPenalty that was not called
    penalty = ProximityPenalty(value) if is_statistic and not isinstance(value, type) else value
    if penalty is None:
        return None
    if not isinstance(penalty, ProximityPenalty):
        raise BadParameter(
            "proximity",
            f"None, a str among {allowed}, a callable or an instance of "
            "'annealvi.deep.ProximityPenalty'",
            value,
        )
    penalty.check()
    statistic = Statistic(penalty.statistic)
    # without "orthogonal" among them, q has no network, and so no weights
    needs_weights = statistic.of_weights and "orthogonal" not in allowed
    if needs_weights or not (statistic.custom or statistic.name in allowed):
        raise BadParameter(
            "proximity",
            f"a penalty whose statistic is one of {allowed} or a function of q",
            penalty.statistic,
        )
    return penalty


def check_distance(distance: Distance) -> None:
    """Check that a distance works elementwise, with a finite gradient."""
    what = f"The 'distance' {name_of(distance)!r}"
    u = torch.tensor(POINTS, requires_grad=True)
    with torch.enable_grad():  # the caller may have disabled gradients
        values = distance(u)
        check_values(what, values, shape=u.shape, at=u)
        check_gradient(what, values, [u])
    one_by_one = torch.cat([distance(x) for x in u.detach()[:, None]])
    if not torch.allclose(one_by_one, values.detach(), rtol=1e-4, atol=1e-6):
        raise ValueError(f"{what} must treat each element of its argument separately.")


# ------------------------------------------------------------------- one fit's penalty


class Memory(NamedTuple):
    """The numbers that a penalty keeps from one step to the next."""

    first: float | None  # the magnitude k_0
    sum: Tensor | None  # sum of alpha^(t - s) f_s (or parameters) over the steps s up to t
    weight: float  # the sum of alpha^(t - s) over these steps


class RunningPenalty:
    """The penalty of one fit.

    In your own training loop, compute ``value = penalty.statistic([(q, prior)])`` and add the
    penalty to the loss, ``loss = -elbo + penalty(value, step, elbo)``.  These calls average the
    statistic over the steps.  To average the parameters instead, compute `past`, the statistic at
    the average ``penalty.update_average(parameters)``, and call
    ``penalty(value, step, elbo, past)``.
    """

    #: The fields of the memory in files.  The length of `sum` is checked when it is used.
    MEMORY = Schema(
        Memory,
        first=Optional(Number(0.0)),
        sum=Optional(TensorField((None,), np.float64)),
        weight=Number(0.0),
    )

    def __init__(self, parameters: ProximityPenalty, n_steps: int) -> None:
        """Start the penalty of a fit of `n_steps` steps."""
        self.statistic = Statistic(parameters.statistic)
        distance = parameters.distance
        self._checks_distance = not isinstance(distance, str)
        self._distance = DISTANCES[distance] if isinstance(distance, str) else distance
        self.n_steps = n_steps
        # the function of t / T that gives k_t / k_0
        self.decrease = MAGNITUDES[parameters.shape](parameters.gamma)
        self.of_parameters = parameters.average == "parameters"
        self._alpha = parameters.decay
        self._magnitude = parameters.magnitude
        first_magnitude = None if self._magnitude is None else float(self._magnitude)
        # without a magnitude of the user, that of the first step is stored
        self.memory = Memory(first_magnitude, sum=None, weight=0.0)

    def __call__(
        self, value: Tensor, step: int, total_elbo: Tensor | float, past: Tensor | None = None
    ) -> Tensor:
        """Return k_t times the distance of f (`value`) from `past`, by default its average.

        `total_elbo` is the ELBO of the minibatch, whose absolute value is the default k_0.
        """
        if past is None:
            past = self.update_average(value)  # the average includes this value
        if self.memory.first is None:
            self.memory = self.memory._replace(first=abs(float(total_elbo)))
        return self.magnitude(step) * self.distances(value - past).sum()

    def distances(self, moved: Tensor) -> Tensor:
        """Return the distance d of each element of `moved`, the differences from the past."""
        values = self._distance(moved)
        if self._checks_distance:
            check_values("The 'distance' of the penalty", values, shape=moved.shape, at=moved)
        return values

    def magnitude(self, step: int) -> float:
        """Return the magnitude k_t, or 0 if no step was made and k_0 is unknown."""
        return (self.memory.first or 0.0) * self.decrease(step / self.n_steps)

    def update_average(self, now: Tensor) -> Tensor:
        """Include a vector in the moving average, and return the average.

        The average is the sum of alpha^(t - s) times the vector of each step s, divided by the sum
        of these weights.
        """
        past_sum = self.memory.sum  # None before the first step
        total = now.detach().double()  # float32 would lose small changes
        if past_sum is not None:
            if past_sum.shape != now.shape:
                raise ValueError(
                    f"The statistic of a penalty has {len(now)} values now, but had "
                    f"{len(past_sum)} before. Keep its shape and the parameter 'average', even "
                    "if you resume a fit."
                )
            # one operation without copies, because W W^T is large
            total = torch.add(total, past_sum.to(total), alpha=self._alpha)
        weight = self._alpha * self.memory.weight + 1.0
        self.memory = self.memory._replace(sum=total, weight=weight)
        return (total / weight).to(now)  # in the dtype and on the device of `now`

    def resume(self, memory: Memory) -> None:
        """Set the memory of a fit that continues, but keep a magnitude that the user passed."""
        # without a magnitude of the user, k_0 was measured in the first step of that fit
        first_magnitude = memory.first if self._magnitude is None else self.memory.first
        self.memory = memory._replace(first=first_magnitude)
