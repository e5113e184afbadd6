r"""Deterministic transitions: deep sigmoidal flows.

A flow maps z_{t-1} to z_t one to one, so its density has a closed form and there is no reverse
chain.  Coordinate i is an increasing function whose parameters depend on the coordinates before it
(Huang, Krueger, Lacoste, Courville 2018, *Neural autoregressive flows*):

.. math::
   z_{t,i} = \mathrm{logit}\Big(\sum_{k=1}^K w_{ik}\,
   \mathrm{sigmoid}(a_{ik} z_{t-1,i} + b_{ik})\Big), \quad
   (w_i, a_i, b_i) = c_i(z_{t-1,1}, \dots, z_{t-1,i-1}),

with weights w that sum to one and slopes a > 0.  The conditioners c are one masked network
(Germain, Gregor, Murray, Larochelle 2015, *MADE*).  Every second transition takes the coordinates
in reverse order.  Shapes are those of :mod:`annealvi.deep.hvi`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from annealvi.deep.hvi import LayeredPosterior, StandardNormal, Trajectory, inverse_softplus
from annealvi.deep.noise import Noise

#: K, the sigmoids of each coordinate.
SIGMOIDS = 16
#: Halvings of an interval when a transition is inverted.
HALVINGS = 60
#: Added to the slopes, so that no transition becomes flat.
LEAST_SLOPE = 1e-3


class SigmoidalTransitions(nn.Module):
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
        super().__init__()
        self.dim, self.n_transitions, self.n_sigmoids = dim, n_transitions, n_sigmoids
        many, n_out = (n_transitions, n_runs), 3 * n_sigmoids * dim

        def weights(n_in: int, n_out: int) -> Tensor:
            return torch.randn(*many, n_in, n_out) / math.sqrt(n_in)

        self.hidden_weight = nn.Parameter(weights(dim, hidden))
        self.hidden_bias = nn.Parameter(weight_scale * torch.randn(*many, 1, hidden))
        self.out_weight = nn.Parameter(weight_scale * 0.1 * weights(hidden, n_out))
        bias = torch.zeros(*many, 1, 3, dim, n_sigmoids)
        bias[..., 1, :, :] = inverse_softplus(1.0 - LEAST_SLOPE)
        bias[..., 2, :, :] = torch.randn(*many, 1, dim, n_sigmoids)
        self.out_bias = nn.Parameter(bias.flatten(-3))
        self._masks: tuple[Tensor, Tensor] | None = None

    def forward(self, z: Tensor, t: int | None = None) -> tuple[Tensor, Tensor]:
        """Return the next states and the log determinants of their derivatives."""
        return increase(z, *self.parameters_of(z, t))

    def masks(self) -> tuple[Tensor, Tensor]:
        """Which inputs a hidden unit sees, and which units a parameter; made at the first use."""
        # not in __init__: a network that is read from a file is built without memory
        like = self.hidden_weight
        made = self._masks
        if made is None or (made[0].device, made[0].dtype) != (like.device, like.dtype):
            # coordinate i has rank i, or d - 1 - i in every second transition; a hidden unit of
            # degree m sees the ranks up to m, and parameters of rank i see the degrees below i
            ranks = torch.arange(self.dim, device=like.device).repeat(self.n_transitions, 1)
            ranks[1::2] = ranks[1::2].flip(1)
            degrees = torch.arange(like.shape[-1], device=like.device) % max(1, self.dim - 1)
            sees = ranks[:, :, None] <= degrees
            used = (degrees[:, None] < ranks[:, None, :]).repeat(1, 1, 3)
            used = used.repeat_interleave(self.n_sigmoids, dim=2)
            made = self._masks = sees[:, None].to(like.dtype), used[:, None].to(like.dtype)
        return made

    def parameters_of(self, z: Tensor, t: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return log w, log a and b of each sigmoid, of the shape of z with an axis for k."""
        index = slice(None) if t is None else slice(t, t + 1)
        sees, used = self.masks()
        hidden = (self.hidden_weight[index] * sees[index]).flatten(0, 1)
        out = (self.out_weight[index] * used[index]).flatten(0, 1)
        hidden_bias, out_bias = (
            part[index].flatten(0, 1) for part in (self.hidden_bias, self.out_bias)
        )
        h = torch.baddbmm(hidden_bias, z.flatten(0, -3), hidden).relu_()
        found = torch.baddbmm(out_bias, h, out).unflatten(-1, (3, self.dim, self.n_sigmoids))
        w, a, b = found.unflatten(0, z.shape[:-2]).unbind(-3)
        slopes = functional.softplus(a) + LEAST_SLOPE
        return w.log_softmax(dim=-1), slopes.log(), b

    @torch.no_grad()
    def inverse(self, z: Tensor, t: int) -> Tensor:
        """Return the states before a transition, coordinate by coordinate, by halving intervals."""
        before = torch.zeros_like(z)
        order = range(self.dim) if t % 2 == 0 else reversed(range(self.dim))
        for i in order:
            parameters = [part[..., i : i + 1, :] for part in self.parameters_of(before, t)]
            _, log_a, b = parameters
            # all sigmoids are below the target at the least of these, and above at the largest
            roots = (z[..., i : i + 1, None] - b) * torch.exp(-log_a)
            low, high = roots.amin(dim=-1), roots.amax(dim=-1)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                above = increase(middle, *parameters)[0] > z[..., i : i + 1]
                low, high = torch.where(above, low, middle), torch.where(above, middle, high)
            before[..., i : i + 1] = 0.5 * (low + high)
        return before


def increase(z: Tensor, log_w: Tensor, log_a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logit of a mixture of sigmoids, and the log of its derivative."""
    inner = log_a.exp() * z.unsqueeze(-1) + b
    below, above = functional.logsigmoid(inner), functional.logsigmoid(-inner)
    log_x, log_rest = ((log_w + part).logsumexp(dim=-1) for part in (below, above))
    log_slope = (log_w + log_a + below + above).logsumexp(dim=-1)
    return log_x - log_rest, (log_slope - log_x - log_rest).sum(dim=-1)


class FlowPosterior(LayeredPosterior):
    """A posterior of T transitions, in R runs; options are of :class:`SigmoidalTransitions`."""

    def __init__(self, dim: int, n_transitions: int, *, n_runs: int = 1, **options: Any) -> None:
        super().__init__(dim, n_transitions, n_runs, StandardNormal())
        self.forwards = SigmoidalTransitions(dim, n_transitions, n_runs=n_runs, **options)

    def draw_noise(self, n: int, noise: Noise) -> Tensor:
        """Return the random numbers of n draws of z_0 of each run, of shape (1, R, n, d)."""
        return noise.normal(1, self.n_runs, n, self.dim)

    def move(
        self, z: Tensor, epsilon: Tensor, t: int | None, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the next states, and the log determinants."""
        return self.forwards(z, t)

    def log_transitions(
        self,
        before: Tensor,
        after: Tensor,
        parts: Tensor,
        epsilon: Tensor,
        context: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return minus the log determinants, and zeros."""
        return -parts, torch.zeros_like(parts)

    @torch.no_grad()
    def log_marginal(
        self, z: Tensor, n_draws: int, noise: Noise, *, context: Tensor | None = None
    ) -> Tensor:
        """Return log q(z_T), of shape (R, N): exact, without draws, up to rounding."""
        total = torch.zeros_like(z[..., 0])
        for t in reversed(range(self.n_transitions)):
            z = self.forwards.inverse(z, t)
            total -= self.forwards(z, t)[1]
        return total + self.base.log_density(z, context)

    def log_marginal_bounds(
        self, path: Trajectory, n_draws: int, noise: Noise
    ) -> tuple[Tensor, Tensor]:
        """Return log q(z_T) of the draws twice, as it is exact."""
        exact = self.log_weight(path)
        return exact, exact
