r"""What deep posteriors of several layers have in common: draws z_0, ..., z_T and their densities.

Shapes: T transitions; R independent runs side by side, which share no numbers; N draws, or N data
where the posterior is amortised; d dimensions.
"""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from annealvi.deep.gaussians import Base
from annealvi.deep.noise import Noise


@dataclass(frozen=True)
class Trajectory:
    """Draws along a layered posterior, with the log densities that objectives need.

    Parameters
    ----------
    z : Tensor of shape (T + 1, R, N, d)
        z_0, ..., z_T.
    log_base : Tensor of shape (R, N)
        log q_0(z_0).
    log_forward : Tensor of shape (T, R, N)
        log q_t(z_t | z_{t-1}), t = 1, ..., T; minus the log determinant where z_t is a function
        of z_{t-1}.
    log_reverse : Tensor of shape (T, R, N)
        log r_t(z_{t-1} | z_t); 0 where z_{t-1} is a function of z_t.
    """

    z: Tensor
    log_base: Tensor
    log_forward: Tensor
    log_reverse: Tensor


class LayeredPosterior(nn.Module, abc.ABC):
    """A posterior that leads from a base through T transitions, in R independent runs.

    Parameters of transitions have the shape (T, R, ., .), those of a base (R, ., .).

    Parameters
    ----------
    dim, n_transitions, n_runs : int
        d, T and R.
    base : Base
        q_0.
    """

    def __init__(self, dim: int, n_transitions: int, n_runs: int, base: Base) -> None:
        super().__init__()
        self.dim, self.n_transitions, self.n_runs = dim, n_transitions, n_runs
        self.base = base

    @abc.abstractmethod
    def move(
        self, z: Tensor, epsilon: Tensor, t: int | None, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Make transition t, or all of them at once.

        Parameters
        ----------
        z : Tensor of shape (R, N, d), or (T, R, N, d) for all transitions
            The states before.
        epsilon : Tensor of shape (., R, N, d)
            See :meth:`draw_noise`.
        t : int or None
            Index of the transition, from 0; None means all.
        context : Tensor of shape (R, N, c) or (N, c), optional

        Returns
        -------
        z : Tensor
            The states after.
        part : Tensor
            What :meth:`log_transitions` needs.
        """

    @abc.abstractmethod
    def log_transitions(
        self,
        before: Tensor,
        after: Tensor,
        parts: Tensor,
        epsilon: Tensor,
        context: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the log densities of all transitions, forward and reverse.

        Parameters
        ----------
        before, after : Tensors of shape (T, R, N, d)
            z_{t-1} and z_t.
        parts : Tensor of shape (T, ...)
            From :meth:`move`.
        epsilon, context
            See :meth:`move`.

        Returns
        -------
        log_forward, log_reverse : Tensors of shape (T, R, N)
        """

    def forward(
        self, epsilon: Tensor, *, context: Tensor | None = None, detach: bool = False
    ) -> Trajectory:
        """Draw along the layers by reparametrisation.

        Parameters
        ----------
        epsilon : Tensor of shape (., R, N, d)
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
        if detach or not self.n_transitions:
            with torch.no_grad():
                before = torch.stack([z for z, _ in self.steps(z.detach(), epsilon, context)])[:-1]
            after, parts = self.move(before, epsilon, None, context)
            states = torch.cat([z.unsqueeze(0), after])
        else:
            steps = list(self.steps(z, epsilon, context))
            states = torch.stack([z for z, _ in steps])
            parts = torch.stack([part for _, part in steps if part is not None])
            before, after = states[:-1], states[1:]
        log_densities = self.log_transitions(before, after, parts, epsilon, context)
        return Trajectory(states, log_base, *log_densities)

    def steps(
        self, z: Tensor, epsilon: Tensor, context: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield z_0, ..., z_T, each with the part of :meth:`move` that led to it.

        Parameters
        ----------
        z : Tensor of shape (R, N, d)
            z_0, which no transition led to.
        epsilon, context
            See :meth:`move`.
        """
        yield z, None
        for t in range(self.n_transitions):
            z, part = self.move(z, epsilon, t, context)
            yield z, part

    @abc.abstractmethod
    def log_marginal(
        self, z: Tensor, n_draws: int, noise: Noise, *, context: Tensor | None = None
    ) -> Tensor:
        """Return log q(z_T), or an estimate, of shape (R, N).

        Parameters
        ----------
        z : Tensor of shape (R, N, d)
            z_T.
        n_draws : int
            Draws for each point, where it is an estimate.
        noise : Noise
        context : Tensor of shape (R, N, c) or (N, c), optional
        """

    @abc.abstractmethod
    def log_marginal_bounds(
        self, path: Trajectory, n_draws: int, noise: Noise
    ) -> tuple[Tensor, Tensor]:
        """Return bounds of log q(z_T) at draws of the posterior itself, below and above.

        Parameters
        ----------
        path : Trajectory
            Draws that are not amortised.
        n_draws : int
            Draws for each of them, where the density is estimated.
        noise : Noise

        Returns
        -------
        below, above : Tensors of shape (R, N)
            In expectation.
        """

    @torch.no_grad()
    def single(self, run: int) -> Self:
        """Return a copy of one run, as a posterior with a single run."""
        one = copy.deepcopy(self)
        if self.n_runs == 1:
            return one  # its base may have any parameters
        one.n_runs = 1
        for parameter in one.parameters():
            axis = parameter.dim() - 3
            parameter.grad = None
            parameter.data = parameter.narrow(axis, run, 1).clone()
        return one

    def draw_noise(self, n: int, noise: Noise) -> Tensor:
        """Return the random numbers of n draws of each run, of shape (T + 1, R, n, d)."""
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
