r"""Hierarchical posteriors: a chain of gated stochastic transitions and its reverse.

.. math::
   q(z_0, \dots, z_T) = q_0(z_0) \prod_{t=1}^T q_t(z_t \mid z_{t-1}), \qquad
   r(z_0, \dots, z_{T-1} \mid z_T) = \prod_{t=1}^T r_t(z_{t-1} \mid z_t).

The posterior is the marginal of :math:`z_T`, which has no density in closed form; the
reverse chain r gives a bound of it (Ranganath, Tran, Blei 2016, *Hierarchical variational
models*; the gates are those of Huang et al. 2018).  Each transition, forward or reverse, is
a Gaussian.  A gate g decides how far its mean moves away from the previous state:

.. math::
   h = \mathrm{act}(W_h z + b_h), \quad
   \mu = g(h) \odot m(h) + (1 - g(h)) \odot z, \quad
   \sigma = \mathrm{softplus}(s(h)),

with linear m and s and a sigmoid g.

Shapes: T transitions; R independent runs side by side, which share no numbers; N draws, or N data
in an amortised chain; d dimensions.  Because small operations are slow in PyTorch, all runs are
computed together, and so are all transitions where none depends on another.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from annealvi.deep.gaussians import (
    LEAST_SIGMA,
    AmortisedGaussian,
    Base,
    StandardNormal,
    gaussian_log_density,
    inverse_softplus,
    standard_log_density,
)
from annealvi.deep.noise import Noise

#: :meth:`Chain.log_marginal` handles reverse draws in blocks of about this many numbers.
BLOCK = 2**16


class Transitions(nn.Module):
    r"""T gated Gaussian transitions in R runs, each with its own parameters.

    Parameters
    ----------
    dim, n_transitions : int
        d and T.
    n_runs : int, default=1
        R.
    hidden : int, default=64
        Width of h.
    sigma : float, default=1.0
        :math:`\sigma` at the start, for all z.
    gate_bias : float, default=-1.0
        Mean argument of the gate's sigmoid at the start.  Lower values make the transitions
        smaller.
    weight_scale : float, default=1.0
        Scale of the hidden biases, and of the weights out of the hidden layers, at the start.
    activation : {"relu", "elu"}, default="relu"
        Activation of the hidden layers.
    context : int, default=0
        Number of features of each datum in an amortised chain; 0 means that the chain is not
        amortised.  With a context the linear maps are weight-normalised, with scales and shifts
        linear in the context (Krueger et al. 2017, *Bayesian hypernetworks*):
        :math:`(a + A c) \odot \bar W z + B c + b`, where the columns of :math:`\bar W` have
        length one.
    """

    def __init__(
        self,
        dim: int,
        n_transitions: int,
        *,
        n_runs: int = 1,
        hidden: int = 64,
        sigma: float = 1.0,
        gate_bias: float = -1.0,
        weight_scale: float = 1.0,
        activation: str = "relu",
        context: int = 0,
    ) -> None:
        super().__init__()
        self.dim, self.activation = dim, activation
        many = (n_transitions, n_runs)

        def weights(n_in: int, n_out: int) -> Tensor:
            return torch.randn(*many, n_in, n_out) / math.sqrt(n_in)

        self.hidden_weight = nn.Parameter(weights(dim, hidden))
        self.hidden_bias = nn.Parameter(weight_scale * torch.randn(*many, 1, hidden))
        # one map for means, gates and sigmas; at the start sigma does not depend on z
        spread = slice(2 * dim, None)
        out, bias = weight_scale * weights(hidden, 3 * dim), torch.zeros(*many, 1, 3 * dim)
        bias[..., dim : 2 * dim] = gate_bias
        bias[..., spread] = inverse_softplus(sigma - LEAST_SIGMA)
        scale = torch.full_like(bias, weight_scale)
        self.conditioned = context > 0
        if self.conditioned:  # weights are normalised, so their scale starts at 0 instead
            scale[..., spread] = 0.0
        else:
            out[..., spread] = 0.0
        self.out_weight, self.out_bias = nn.Parameter(out), nn.Parameter(bias)
        if self.conditioned:
            self.hidden_scale = nn.Parameter(torch.ones(*many, 1, hidden))
            self.out_scale = nn.Parameter(scale)
            self.hidden_conditioner = nn.Parameter(0.1 * weights(context, 2 * hidden))
            self.out_conditioner = nn.Parameter(0.1 * weights(context, 6 * dim))

    def moments(
        self, z: Tensor, t: int | None = None, context: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of the next states.

        Parameters
        ----------
        z : Tensor of shape (R, N, d), or (T, R, N, d) for all transitions at once
            The states before the transition.
        t : int, optional
            Index of the transition, from 0; by default all of them.
        context : Tensor of shape (R, N, c) or (N, c), optional
            Features of each datum, in an amortised chain.

        Returns
        -------
        mean, sigma : Tensors of the shape of z
        """
        h = self._affine(z, "hidden", t, context)
        act = functional.relu if self.activation == "relu" else functional.elu
        h = act(h, inplace=True)
        m, gate, s = self._affine(h, "out", t, context).split(self.dim, dim=-1)
        return torch.lerp(z, m, gate.sigmoid()), functional.softplus(s) + LEAST_SIGMA

    def _affine(self, x: Tensor, name: str, t: int | None, context: Tensor | None) -> Tensor:
        """Apply the linear map of this name, of one transition or of all."""

        def of(kind: str) -> Tensor:
            parameter = getattr(self, f"{name}_{kind}")
            return (parameter if t is None else parameter[t]).flatten(0, -3)

        rows = x.flatten(0, -3)
        if self.conditioned:
            if context is None:
                raise ValueError("The transitions of an amortised chain need a context.")
            given = context.expand(*x.shape[:-1], context.shape[-1]).flatten(0, -3)
            scale, shift = torch.bmm(given, of("conditioner")).chunk(2, dim=-1)
            direction = functional.normalize(of("weight"), dim=-2)
            y = torch.bmm(rows, direction) * (of("scale") + scale) + (of("bias") + shift)
        else:
            y = torch.baddbmm(of("bias"), rows, of("weight"))
        return y.unflatten(0, x.shape[:-2])


@dataclass(frozen=True)
class Trajectory:
    """Draws along a chain, with the log densities that objectives need.

    Parameters
    ----------
    z : Tensor of shape (T + 1, R, N, d)
        z_0, ..., z_T.
    log_base : Tensor of shape (R, N)
        log q_0(z_0).
    log_forward : Tensor of shape (T, R, N)
        log q_t(z_t | z_{t-1}), t = 1, ..., T.
    log_reverse : Tensor of shape (T, R, N)
        log r_t(z_{t-1} | z_t).
    """

    z: Tensor
    log_base: Tensor
    log_forward: Tensor
    log_reverse: Tensor


class Chain(nn.Module):
    """A hierarchical posterior of T transitions, in R independent runs.

    Parameters
    ----------
    dim, n_transitions : int
        d and T; with T = 0 the chain is its base.
    n_runs, hidden, sigma, gate_bias, weight_scale, activation, context
        See :class:`Transitions`.  For amortised chains use ``activation="elu"`` and
        ``sigma=0.05``; with .5 they do not learn.
    base : Base, optional
        q_0; by default :class:`AmortisedGaussian` where there is a context, else
        :class:`StandardNormal`.
    """

    def __init__(
        self,
        dim: int,
        n_transitions: int,
        *,
        n_runs: int = 1,
        hidden: int = 64,
        sigma: float = 1.0,
        gate_bias: float = -1.0,
        weight_scale: float = 1.0,
        activation: str = "relu",
        context: int = 0,
        base: Base | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.n_transitions, self.n_runs = dim, n_transitions, n_runs
        if base is None and context:
            base = AmortisedGaussian(dim, context, n_runs=n_runs)
        self.base: Base = StandardNormal() if base is None else base
        self.forwards, self.reverses = (
            Transitions(
                dim,
                n_transitions,
                n_runs=n_runs,
                hidden=hidden,
                sigma=sigma,
                gate_bias=gate_bias,
                weight_scale=weight_scale,
                activation=activation,
                context=context,
            )
            for _ in range(2)
        )

    @torch.no_grad()
    def single(self, run: int) -> Chain:
        """Return a copy of one run, as a chain with a single run."""
        one = copy.deepcopy(self)
        if self.n_runs == 1:
            return one  # its base may have any parameters
        one.n_runs = 1
        for parameter in one.parameters():
            # shapes are (T, R, ., .) in transitions and (R, ., .) in a base
            axis = parameter.dim() - 3
            parameter.grad = None
            parameter.data = parameter.narrow(axis, run, 1).clone()
        return one

    def draw_noise(self, n: int, noise: Noise) -> Tensor:
        """Return the random numbers of n draws of each run, of shape (T + 1, R, n, d)."""
        return noise.normal(self.n_transitions + 1, self.n_runs, n, self.dim)

    def forward(
        self, epsilon: Tensor, *, context: Tensor | None = None, detach: bool = False
    ) -> Trajectory:
        """Draw along the chain by reparametrisation.

        Parameters
        ----------
        epsilon : Tensor of shape (T + 1, R, N, d)
            Standard normal numbers, see :meth:`draw_noise`.
        context : Tensor of shape (R, N, c) or (N, c), optional
        detach : bool, default=False
            Whether transition t takes z_{t-1} as a constant.  Then the terms of t have no
            gradient in the parameters of other transitions, and all transitions are computed
            in one pass.

        Returns
        -------
        Trajectory
        """
        z, log_base = self.base(epsilon[0], context)
        if detach:
            with torch.no_grad():
                states = torch.stack(list(self._steps(z.detach(), epsilon, context)))
            before = states[:-1]
            mean, sigma = self.forwards.moments(before, context=context)
            after = torch.addcmul(mean, sigma, epsilon[1:])
            states = torch.cat([z.unsqueeze(0), after])
            log_sigma = sigma.log().sum(dim=-1)
        else:
            sigmas: list[Tensor] = []
            states = torch.stack(list(self._steps(z, epsilon, context, sigmas)))
            before, after = states[:-1], states[1:]
            log_sigma = torch.stack(sigmas).log().sum(dim=-1) if sigmas else before.sum(dim=-1)
        log_forward = standard_log_density(epsilon[1:]) - log_sigma
        log_reverse = gaussian_log_density(before, *self.reverses.moments(after, context=context))
        return Trajectory(states, log_base, log_forward, log_reverse)

    def _steps(
        self,
        z: Tensor,
        epsilon: Tensor,
        context: Tensor | None,
        sigmas: list[Tensor] | None = None,
    ) -> Iterator[Tensor]:
        """Yield z_0, ..., z_T; append the standard deviations to the list, if there is one."""
        yield z
        for t in range(self.n_transitions):
            mean, sigma = self.forwards.moments(z, t, context)
            z = torch.addcmul(mean, sigma, epsilon[t + 1])
            if sigmas is not None:
                sigmas.append(sigma)
            yield z

    @torch.no_grad()
    def layers(self, n: int, noise: Noise, *, context: Tensor | None = None) -> Tensor:
        """Return draws of z_0, ..., z_T, of shape (T + 1, R, n, d), without gradients."""
        epsilon = self.draw_noise(n, noise)
        z, _ = self.base(epsilon[0], context)
        return torch.stack(list(self._steps(z, epsilon, context)))

    def log_weight(self, path: Trajectory) -> Tensor:
        """Return log q(z_0, ..., z_T) - log r(z_0, ..., z_{T-1} | z_T), of shape (R, N)."""
        return path.log_base + (path.log_forward - path.log_reverse).sum(dim=0)

    @torch.no_grad()
    def log_marginal(
        self,
        z: Tensor,
        n_draws: int,
        noise: Noise,
        *,
        context: Tensor | None = None,
    ) -> Tensor:
        r"""Estimate log q(z_T) by importance sampling with the reverse chain.

        .. math::
           \log \hat q(z_T) = \log \frac1K \sum_{k=1}^K \frac{q(z_{<T}^k, z_T)}
           {r(z_{<T}^k \mid z_T)}, \quad z_{<T}^k \sim r.

        In expectation it is a lower bound (Burda, Grosse, Salakhutdinov 2016) that becomes tight
        as K grows.  If z_T was drawn from the chain itself, counting the path that led to it
        among the draws gives an *upper* bound (Sobolev, Vetrov 2019, *Importance weighted
        hierarchical variational inference*), see
        :func:`annealvi.deep.objectives.log_evidence_bounds`.

        Parameters
        ----------
        z : Tensor of shape (R, N, d)
            z_T.
        n_draws : int
            K.
        noise : Noise
        context : Tensor of shape (R, N, c) or (N, c), optional

        Returns
        -------
        Tensor of shape (R, N)
        """
        n_rows = z.shape[1]
        total = z.new_full(z.shape[:2], -math.inf)
        block = max(1, BLOCK // max(1, z.numel()))
        for start in range(0, n_draws, block):
            n = min(block, n_draws - start)
            state = z.repeat_interleave(n, dim=1)
            given = None if context is None else context.repeat_interleave(n, dim=-2)
            weight = torch.zeros_like(state[..., 0])
            for t in reversed(range(self.n_transitions)):
                mean, sigma = self.reverses.moments(state, t, given)
                epsilon = noise.normal(*state.shape)
                before = torch.addcmul(mean, sigma, epsilon)
                weight -= standard_log_density(epsilon) - sigma.log().sum(dim=-1)
                weight += gaussian_log_density(state, *self.forwards.moments(before, t, given))
                state = before
            weight += self.base.log_density(state, given)
            total = torch.logaddexp(total, weight.unflatten(1, (n_rows, n)).logsumexp(dim=-1))
        return total - math.log(n_draws)
