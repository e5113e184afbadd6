r"""Posteriors with several layers: chains of gated random transitions, and chains of flows.

.. math::
   q(z_0, \dots, z_T) = q_0(z_0) \prod_{t=1}^T q_t(z_t \mid z_{t-1}), \qquad
   r(z_0, \dots, z_{T-1} \mid z_T) = \prod_{t=1}^T r_t(z_{t-1} \mid z_t).

The posterior is the marginal distribution of :math:`z_T`.  The density of :math:`z_T` has no closed
form, but a reverse chain r gives a lower bound of the ELBO (Ranganath, Tran, Blei 2016,
*Hierarchical variational models*; the gates are those of Huang et al. 2018).  Each forward or
reverse transition is a Gaussian.  If the gate g is near 0, the mean is near the previous state:

.. math::
   h = \mathrm{act}(W_h z + b_h), \quad
   \mu = g(h) \odot m(h) + (1 - g(h)) \odot z, \quad
   \sigma = \mathrm{softplus}(s(h)),

where m and s are linear and g is a sigmoid.

A chain of flows, :class:`FlowPosterior`, has deterministic transitions instead.  A flow maps
z_{t-1} to z_t one to one, so the density of z_t has a closed form and no reverse chain is needed.
z_{t,i} is an increasing function of z_{t-1,i}.  The function's parameters depend on the coordinates
of z_{t-1} before i (Huang, Krueger, Lacoste, Courville 2018, *Neural autoregressive flows*):

.. math::
   z_{t,i} = \mathrm{logit}\Big(\sum_{k=1}^K w_{ik}\,
   \mathrm{sigmoid}(a_{ik} z_{t-1,i} + b_{ik})\Big), \quad
   (w_i, a_i, b_i) = c_i(z_{t-1,1}, \dots, z_{t-1,i-1}),

with weights w that sum to 1 and slopes a > 0.  One masked network computes all functions c_i
(Germain, Gregor, Murray, Larochelle 2015, *MADE*).  Every second transition takes the coordinates
in reverse order.

In shapes, T is the number of transitions, R the number of independent runs, N the number of draws
(or of data in an amortised chain), and d the number of dimensions.  Small operations are slow in
PyTorch, so all runs are computed together.  So are transitions that are independent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import Module, Parameter, functional

from annealvi.deep.training import Noise

#: Added to softplus, because softplus alone can underflow to a standard deviation of 0.
LEAST_SIGMA = 1e-4
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
#: :meth:`Chain.log_marginal` handles reverse draws in blocks of about this many numbers.
BLOCK = 2**16
#: The number K of sigmoids for each coordinate.
SIGMOIDS = 16
#: How often an interval is halved to invert a transition.
HALVINGS = 60
#: Added to the slopes, so that no transition becomes flat.
LEAST_SLOPE = 1e-3


def gaussian_log_density(x: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    """Return log N(x; mean, diag(sigma^2)), summed over the last axis."""
    return (-0.5 * ((x - mean) / sigma) ** 2 - sigma.log() - _HALF_LOG_2PI).sum(dim=-1)


def gaussian_draws(epsilon: Tensor, mean: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Return reparametrised draws from a Gaussian, and their log densities."""
    return mean + sigma * epsilon, standard_log_density(epsilon) - sigma.log().sum(dim=-1)


def standard_log_density(x: Tensor) -> Tensor:
    """Return log N(x; 0, I), summed over the last axis."""
    return (-0.5 * x**2 - _HALF_LOG_2PI).sum(dim=-1)


def inverse_softplus(value: float) -> float:
    """Return the number x for which softplus(x) = value."""
    return value + math.log(-math.expm1(-value))


#: Options of a :class:`Chain` whose transitions are nearly the identity at the start.  In many
#: dimensions an amortised chain learns only with these options.  In one or two dimensions it finds
#: several modes only without them (docs/record/deep_models.md).
NEAR_IDENTITY: dict[str, Any] = {"sigma": 0.05, "gate_bias": -4.0}


class StandardNormal(Module):
    """The base distribution N(0, I), which has no parameters."""

    def forward(self, epsilon: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return standard normal numbers as draws, with their log densities."""
        return epsilon, standard_log_density(epsilon)


@dataclass(frozen=True)
class Trajectory:
    """Draws of all states z_0, ..., z_T, with the log densities that objectives need."""

    z: Tensor  # z_0, ..., z_T, of shape (T + 1, R, N, d)
    log_base: Tensor  # log q_0(z_0), of shape (R, N)
    #: log q_t(z_t | z_{t-1}), of shape (T, R, N).  In a flow it is minus the log determinant of the
    #: transition.
    log_forward: Tensor
    log_reverse: Tensor  # log r_t(z_{t-1} | z_t), which is 0 in a flow


class LayeredPosterior(Module, ABC):
    """A base distribution that T transitions turn into a posterior, in R independent runs."""

    # Parameters of transitions have the shape (T, R, ., .), and of a base (R, ., .).

    def __init__(self, dim: int, n_transitions: int, n_runs: int, base: Module) -> None:
        """Make a posterior of z in `dim` dimensions; `base` draws z_0 from standard normals."""
        super().__init__()
        self.dim = dim
        self.n_transitions = n_transitions
        self.n_runs = n_runs
        self.base: Any = base

    @abstractmethod
    def move(
        self, z: Tensor, epsilon: Tensor, t: int | None, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Make transition t (None: all); return the new states and their scales.

        The scales are the standard deviations of Gaussian transitions, and the log determinants of
        flows.
        """

    @abstractmethod
    def log_transitions(
        self, before: Tensor, after: Tensor, scales: Tensor, epsilon: Tensor, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the log densities of all transitions, forward and reverse."""

    def forward(
        self, epsilon: Tensor, *, context: Tensor | None = None, detach: bool = False
    ) -> Trajectory:
        """Return reparametrised draws of all states, from standard normal numbers `epsilon`."""
        # with `detach` z_{t-1} is a constant in transition t: the terms of t have no gradient with
        # respect to other transitions' parameters, and all transitions are computed together
        z, log_base = self.base(epsilon[0], context)
        if detach or not self.n_transitions:
            with torch.no_grad():
                before = torch.stack([z for z, _ in self.steps(z.detach(), epsilon, context)])[:-1]
            # again, now with gradients and all transitions together
            after, scales = self.move(before, epsilon, t=None, context=context)
            states = torch.cat([z.unsqueeze(0), after])
        else:
            zs, scales_of_zs = zip(*self.steps(z, epsilon, context), strict=True)
            states = torch.stack(zs)
            scales = torch.stack(scales_of_zs[1:])  # z_0 has none
            before = states[:-1]
            after = states[1:]
        log_densities = self.log_transitions(before, after, scales, epsilon, context)
        return Trajectory(states, log_base, *log_densities)

    def steps(
        self, z: Tensor, epsilon: Tensor, context: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield z_0, ..., z_T, each with the scales that :meth:`move` returned with it."""
        yield z, None
        for t in range(self.n_transitions):
            z, scales = self.move(z, epsilon, t, context)
            yield z, scales

    @abstractmethod
    def log_marginal(self, z: Tensor, n_draws: int, noise: Noise) -> Tensor:
        """Return log q(z_T) or an estimate of it, of shape (R, N), without a context."""

    @abstractmethod
    def log_marginal_bounds(
        self, path: Trajectory, n_draws: int, noise: Noise
    ) -> tuple[Tensor, Tensor]:
        """Return a lower and an upper bound of log q(z_T) at draws of the posterior itself."""

    @torch.no_grad()
    def single(self, run: int) -> Self:
        """Return a posterior with a single run, a copy of one of the runs."""
        posterior = deepcopy(self)
        if self.n_runs == 1:
            return posterior  # its base may have parameters of any shape
        posterior.n_runs = 1
        for parameter in posterior.parameters():
            axis_of_runs = parameter.dim() - 3
            parameter.grad = None  # it has the old shape
            parameter.data = parameter.narrow(axis_of_runs, start=run, length=1).clone()
        return posterior

    def draw_noise(self, n: int, noise: Noise) -> Tensor:
        """Return the random numbers for n draws of each run, of shape (T + 1, R, n, d)."""
        return noise.normal(self.n_transitions + 1, self.n_runs, n, self.dim)

    @torch.no_grad()
    def layers(self, n: int, noise: Noise, *, context: Tensor | None = None) -> Tensor:
        """Return draws of z_0, ..., z_T, of shape (T + 1, R, n, d), without gradients."""
        epsilon = self.draw_noise(n, noise)
        z, _ = self.base(epsilon[0], context)
        return torch.stack([z for z, _ in self.steps(z, epsilon, context)])

    def log_weight(self, path: Trajectory) -> Tensor:
        """Return log q(z_0, ..., z_T) - log r(z_0, ..., z_{T-1} | z_T), of shape (R, N)."""
        return path.log_base + (path.log_forward - path.log_reverse).sum(dim=0)


def random_weights(n_transitions: int, n_runs: int, n_in: int, n_out: int) -> Tensor:
    """Return weights of linear maps, drawn from N(0, 1 / n_in)."""
    return torch.randn(n_transitions, n_runs, n_in, n_out) / math.sqrt(n_in)


class Transitions(Module):
    """T gated Gaussian transitions in R runs, each with its own parameters."""

    # In an amortised chain the context c contains the features of a datum.  The linear maps are
    # then (a + A c) * W z + B c + b, where the columns of W have length 1 (Krueger et al. 2017,
    # Bayesian hypernetworks).  With "gated" units, (W z + b) * sigmoid(V z + c), the context is
    # first scaled to mean 0 and variance 1, because gated features can be arbitrarily large.

    def __init__(
        self,
        dim: int,
        n_transitions: int,
        *,
        n_runs: int = 1,
        hidden: int = 64,
        sigma: float = 1.0,  # standard deviation of each state at the start, for all z
        gate_bias: float = -1.0,  # mean argument of the gate's sigmoid at the start
        weight_scale: float = 1.0,  # scale of hidden biases, and of weights after hidden layers
        activation: str = "relu",  # or "elu" or "gated"
        context: int = 0,  # number of features of a datum; 0: not amortised
    ) -> None:
        """Make the parameters; a comment explains each option above."""
        # parameters are drawn in a fixed order, because a random seed must give the same network
        super().__init__()
        self.dim = dim
        self.activation = activation
        weights = partial(random_weights, n_transitions, n_runs)
        wide = 2 * hidden if activation == "gated" else hidden  # outputs of the hidden maps
        self.hidden_weight = Parameter(weights(dim, wide))
        self.hidden_bias = Parameter(weight_scale * weights(1, wide))
        # one map computes means, gates and sigmas; at the start sigma does not depend on z
        spread = slice(2 * dim, None)  # the columns of sigmas; those of means and gates come first
        out = weight_scale * weights(hidden, 3 * dim)
        bias = torch.zeros(n_transitions, n_runs, 1, 3 * dim)
        bias[..., dim : 2 * dim] = gate_bias
        bias[..., spread] = inverse_softplus(sigma - LEAST_SIGMA)
        self.out_weight = Parameter(out)
        self.out_bias = Parameter(bias)
        self.conditioned = context > 0
        if not self.conditioned:
            out[..., spread] = 0.0
        else:  # weights are normalised, so their scale starts at 0 instead
            scale = torch.full_like(bias, weight_scale)
            scale[..., spread] = 0.0
            self.hidden_scale = Parameter(torch.ones_like(self.hidden_bias))
            self.out_scale = Parameter(scale)
            self.hidden_conditioner = Parameter(0.1 * weights(context, 2 * wide))
            self.out_conditioner = Parameter(0.1 * weights(context, 6 * dim))

    def moments(
        self, z: Tensor, t: int | None = None, context: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of the states after z, (R, N, d) or (T, R, N, d).

        The transition is t, or all transitions if t is None.
        """
        h = self._affine(z, "hidden", t, context)
        if self.activation == "gated":
            h = functional.glu(h, dim=-1)
        else:
            act = functional.relu if self.activation == "relu" else functional.elu
            h = act(h, inplace=True)
        m, gate, s = self._affine(h, "out", t, context).split(self.dim, dim=-1)
        # lerp returns (1 - g) z + g m
        return torch.lerp(z, m, gate.sigmoid()), functional.softplus(s) + LEAST_SIGMA

    def _affine(self, x: Tensor, name: str, t: int | None, context: Tensor | None) -> Tensor:
        """Apply the linear map called `name`, of transition t or of all (None)."""

        def parameter(kind: str) -> Tensor:
            """Return a parameter of the map, with transitions and runs on one axis, as in bmm."""
            values = getattr(self, f"{name}_{kind}")
            return (values if t is None else values[t]).flatten(0, -3)

        rows = x.flatten(0, -3)
        if self.conditioned:
            assert context is not None  # the features of each datum, with a row for each
            if self.activation == "gated":  # whose features can be arbitrarily large
                context = functional.layer_norm(context, context.shape[-1:])
            features = context.expand(*x.shape[:-1], -1).flatten(0, -3)
            # a datum's features scale and shift the outputs of a map with columns of length 1
            scale, shift = torch.bmm(features, parameter("conditioner")).chunk(2, dim=-1)
            scale = parameter("scale") + scale
            direction = functional.normalize(parameter("weight"), dim=-2)
            y = torch.bmm(rows, direction) * scale + (parameter("bias") + shift)
        else:
            y = torch.baddbmm(parameter("bias"), rows, parameter("weight"))
        return y.unflatten(0, x.shape[:-2])


class Chain(LayeredPosterior):
    """A chain of T Gaussian transitions with its reverse chain, in R independent runs.

    The `options` are passed to :class:`Transitions`.  Amortised chains need ``activation="elu"`` or
    ``"gated"``.  In many dimensions they also need ``**NEAR_IDENTITY``, to start near the identity.
    """

    def __init__(
        self,
        dim: int,
        n_transitions: int,
        *,
        n_runs: int = 1,
        context: int = 0,
        base: Module | None = None,
        **options: Any,
    ) -> None:
        """Make the forward and the reverse transitions; `context` is the number of features."""
        super().__init__(dim, n_transitions, n_runs, base or StandardNormal())
        # q_t and r_t have the same form
        transitions = partial(Transitions, dim, n_transitions, n_runs=n_runs, context=context)
        self.forwards = transitions(**options)
        self.reverses = transitions(**options)

    def move(
        self, z: Tensor, epsilon: Tensor, t: int | None, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Draw the next states; return them and their standard deviations."""
        mean, sigma = self.forwards.moments(z, t, context)
        # mean + sigma * epsilon; epsilon[0] has made z_0
        return torch.addcmul(mean, sigma, epsilon[1:] if t is None else epsilon[t + 1]), sigma

    def log_transitions(
        self, before: Tensor, after: Tensor, scales: Tensor, epsilon: Tensor, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return log q_t(z_t | z_{t-1}) and log r_t(z_{t-1} | z_t)."""
        log_forward = standard_log_density(epsilon[1:]) - scales.log().sum(dim=-1)
        reverse = self.reverses.moments(after, context=context)
        return log_forward, gaussian_log_density(before, *reverse)

    @torch.no_grad()
    def log_marginal(self, z: Tensor, n_draws: int, noise: Noise) -> Tensor:
        """Estimate log q(z_T) by importance sampling with the reverse chain."""
        # the estimate is log (1/K) sum_k q(z_<T^k, z_T) / r(z_<T^k | z_T) with z_<T^k ~ r; its
        # expectation is a lower bound that rises to log q(z_T) with K (Burda et al. 2016)
        n_rows = z.shape[1]
        total = z.new_full(z.shape[:2], -math.inf)  # the log of the sum over draws so far
        block = max(1, BLOCK // max(1, z.numel()))  # number of draws computed together
        for start in range(0, n_draws, block):
            n = min(block, n_draws - start)
            state = z.repeat_interleave(n, dim=1)
            weight = torch.zeros_like(state[..., 0])
            for t in reversed(range(self.n_transitions)):
                mean, sigma = self.reverses.moments(state, t)
                epsilon = noise.normal(*state.shape)
                # a draw from r_t, whose log density is subtracted and that of q_t added
                before = torch.addcmul(mean, sigma, epsilon)
                weight -= standard_log_density(epsilon) - sigma.log().sum(dim=-1)
                weight += gaussian_log_density(state, *self.forwards.moments(before, t))
                state = before
            weight += standard_log_density(state)  # log q_0(z_0)
            total = torch.logaddexp(total, weight.unflatten(1, (n_rows, n)).logsumexp(dim=-1))
        return total - math.log(n_draws)

    def log_marginal_bounds(
        self, path: Trajectory, n_draws: int, noise: Noise
    ) -> tuple[Tensor, Tensor]:
        """Return two estimates of log q(z_T), whose expectations are a lower and an upper bound."""
        # z_T was drawn from the chain: if the states before it are included in the draws, the
        # estimate is an upper bound (Sobolev, Vetrov 2019, Importance weighted hierarchical
        # variational inference)
        lower = self.log_marginal(path.z[-1], n_draws, noise)
        # with K reverse draws and these states it is log (K e^lower + w) / (K + 1)
        log_sum = torch.logaddexp(lower + math.log(n_draws), self.log_weight(path))
        return lower, log_sum - math.log1p(n_draws)


# ------------------------------------------------------------------------------- flows


class SigmoidalTransitions(Module):
    """T sigmoidal transitions in R runs, each with its own parameters."""

    def __init__(
        self,
        dim: int,
        n_transitions: int,
        *,
        n_runs: int = 1,
        hidden: int = 64,
        n_sigmoids: int = SIGMOIDS,
        weight_scale: float = 1.0,
    ) -> None:
        """Make the parameters of all transitions; `hidden` is the number of hidden units."""
        super().__init__()
        self.dim = dim
        self.n_transitions = n_transitions
        self.n_sigmoids = n_sigmoids
        weights = partial(random_weights, n_transitions, n_runs)
        self.hidden_weight = Parameter(weights(dim, hidden))
        self.hidden_bias = Parameter(weight_scale * weights(1, hidden))
        # outputs for each coordinate and sigmoid: the logit of w, a before its softplus, and b
        self.out_weight = Parameter(weight_scale * 0.1 * weights(hidden, 3 * n_sigmoids * dim))
        bias = torch.zeros(n_transitions, n_runs, 1, 3, dim, n_sigmoids)
        bias[..., 1, :, :] = inverse_softplus(1.0 - LEAST_SLOPE)  # slopes of about 1 at the start
        bias[..., 2, :, :] = torch.randn(n_transitions, n_runs, 1, dim, n_sigmoids)
        self.out_bias = Parameter(bias.flatten(-3))
        # masks of 0 and 1 for the weights, made at the first use
        self._hidden_mask = torch.empty(0)
        self._out_mask = torch.empty(0)

    def forward(self, z: Tensor, t: int | None = None) -> tuple[Tensor, Tensor]:
        """Return the next states and the log determinants of their derivatives."""
        return mixture_logit(z, *self.parameters_of(z, t))

    def _make_masks(self) -> None:
        """Make masks with which the function of a coordinate depends only on earlier coordinates.

        They are made again if the network has moved to another device or dtype.
        """
        # they are not made in __init__, because a network for a file is built without memory
        like = self.hidden_weight
        if not len(self._hidden_mask) or (self._hidden_mask.device, self._hidden_mask.dtype) != (
            like.device,
            like.dtype,
        ):
            # coordinate i has rank i, or d - 1 - i in every second transition; a hidden unit of
            # degree m uses the ranks up to m, and the parameters of rank i use degrees below i
            ranks = torch.arange(self.dim, device=like.device).repeat(self.n_transitions, 1)
            ranks[1::2] = ranks[1::2].flip(1)
            degrees = torch.arange(like.shape[-1], device=like.device) % max(1, self.dim - 1)
            hidden_mask = ranks[:, None, :, None] <= degrees  # (T, 1, d, hidden)
            # (T, 1, hidden, 3 d n_sigmoids); the 3 outputs of a sigmoid are its w, a and b
            out_mask = (degrees[:, None] < ranks[:, None, None, :]).repeat(1, 1, 1, 3)
            out_mask = out_mask.repeat_interleave(self.n_sigmoids, dim=-1)
            self._hidden_mask = hidden_mask.to(like.dtype)
            self._out_mask = out_mask.to(like.dtype)

    def parameters_of(self, z: Tensor, t: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return log w, log a and b of each sigmoid, of the shape of z and a last axis for k.

        The transition is t, or all transitions if t is None.
        """
        index = slice(None) if t is None else slice(t, t + 1)  # a slice keeps the axis
        self._make_masks()
        # products need transitions and runs on one axis
        hidden_weight = (self.hidden_weight[index] * self._hidden_mask[index]).flatten(0, 1)
        out_weight = (self.out_weight[index] * self._out_mask[index]).flatten(0, 1)
        hidden_bias = self.hidden_bias[index].flatten(0, 1)
        out_bias = self.out_bias[index].flatten(0, 1)
        h = torch.baddbmm(hidden_bias, z.flatten(0, -3), hidden_weight).relu_()
        outputs = torch.baddbmm(out_bias, h, out_weight)
        outputs = outputs.unflatten(-1, (3, self.dim, self.n_sigmoids))
        w, a, b = outputs.unflatten(0, z.shape[:-2]).unbind(-3)
        # slopes are positive, and weights sum to 1
        slopes = functional.softplus(a) + LEAST_SLOPE
        return w.log_softmax(dim=-1), slopes.log(), b

    @torch.no_grad()
    def inverse(self, z: Tensor, t: int) -> Tensor:
        """Return the states before a transition; each coordinate is found by bisection."""
        # coordinates in their order, because parameters of one depend on those before it; those
        # that are not computed yet have no influence
        before = torch.zeros_like(z)
        order = range(self.dim) if t % 2 == 0 else reversed(range(self.dim))
        for i in order:
            target = z[..., i : i + 1]
            log_w, log_a, b = (p[..., i : i + 1, :] for p in self.parameters_of(before, t))
            # at the least of these numbers all sigmoids are below the target, at the largest above
            roots = (target.unsqueeze(-1) - b) * torch.exp(-log_a)
            low = roots.amin(dim=-1)
            high = roots.amax(dim=-1)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                above = mixture_logit(middle, log_w, log_a, b)[0] > target
                low = torch.where(above, low, middle)
                high = torch.where(above, middle, high)
            before[..., i : i + 1] = 0.5 * (low + high)
        return before


def mixture_logit(z: Tensor, log_w: Tensor, log_a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logit of a mixture of sigmoids, and the logarithms of its derivatives, summed."""
    # of shape (..., K): log sigmoid and log (1 - sigmoid) of each sigmoid's argument
    inner = log_a.exp() * z.unsqueeze(-1) + b
    log_sigmoid = functional.logsigmoid(inner)
    log_complement = functional.logsigmoid(-inner)
    log_x = (log_w + log_sigmoid).logsumexp(dim=-1)  # log of the mixture x
    log_rest = (log_w + log_complement).logsumexp(dim=-1)  # log (1 - x)
    log_slope = (log_w + log_a + log_sigmoid + log_complement).logsumexp(dim=-1)
    # the derivative of logit(x) is 1 / (x (1 - x)); the sum over coordinates is the logarithm of
    # the determinant, because each coordinate depends on its own z only
    return log_x - log_rest, (log_slope - log_x - log_rest).sum(dim=-1)


class FlowPosterior(LayeredPosterior):
    """A posterior of T flows, in R runs, with the options of :class:`SigmoidalTransitions`."""

    def __init__(self, dim: int, n_transitions: int, *, n_runs: int = 1, **options: Any) -> None:
        """Make the flows; the `options` are passed to SigmoidalTransitions."""
        super().__init__(dim, n_transitions, n_runs, base=StandardNormal())
        self.forwards = SigmoidalTransitions(dim, n_transitions, n_runs=n_runs, **options)

    def draw_noise(self, n: int, noise: Noise) -> Tensor:
        """Return the random numbers for n draws of z_0 in each run, of shape (1, R, n, d)."""
        return noise.normal(1, self.n_runs, n, self.dim)

    def move(
        self, z: Tensor, epsilon: Tensor, t: int | None, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the next states, and the log determinants of the transitions."""
        return self.forwards(z, t)

    def log_transitions(
        self, before: Tensor, after: Tensor, scales: Tensor, epsilon: Tensor, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return minus the log determinants (forward), and zeros (reverse)."""
        return -scales, torch.zeros_like(scales)

    @torch.no_grad()
    def log_marginal(self, z: Tensor, n_draws: int, noise: Noise) -> Tensor:
        """Return log q(z_T), of shape (R, N), which is exact up to rounding and needs no draws."""
        total = torch.zeros_like(z[..., 0])
        for t in reversed(range(self.n_transitions)):
            z = self.forwards.inverse(z, t)
            _, log_determinants = self.forwards(z, t)
            total -= log_determinants
        return total + standard_log_density(z)

    def log_marginal_bounds(
        self, path: Trajectory, n_draws: int, noise: Noise
    ) -> tuple[Tensor, Tensor]:
        """Return log q(z_T) of the draws as both bounds, because it is exact."""
        exact = self.log_weight(path)
        return exact, exact
