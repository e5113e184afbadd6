"""Gaussians with independent coordinates: densities, draws, and the bases of chains."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

#: Added to softplus, which alone can underflow to a standard deviation of 0.
LEAST_SIGMA = 1e-4
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def gaussian_log_density(x: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    """Return log N(x; mean, diag(sigma^2)), summed over the last axis.

    Parameters
    ----------
    x, mean, sigma : Tensors of shape (..., d)

    Returns
    -------
    Tensor of shape (...)
    """
    return (-0.5 * ((x - mean) / sigma) ** 2 - sigma.log() - _HALF_LOG_2PI).sum(dim=-1)


def gaussian_draws(epsilon: Tensor, mean: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Draw from a Gaussian by reparametrisation.

    Parameters
    ----------
    epsilon : Tensor of shape (..., d)
        Standard normal numbers.
    mean, sigma : Tensors that broadcast to the shape of epsilon

    Returns
    -------
    x : Tensor of shape (..., d)
    log_density : Tensor of shape (...)
        log N(x; mean, diag(sigma^2)).
    """
    return mean + sigma * epsilon, standard_log_density(epsilon) - sigma.log().sum(dim=-1)


def standard_log_density(x: Tensor) -> Tensor:
    """Return log N(x; 0, I), summed over the last axis.

    Parameters
    ----------
    x : Tensor of shape (..., d)

    Returns
    -------
    Tensor of shape (...)
    """
    return (-0.5 * x**2 - _HALF_LOG_2PI).sum(dim=-1)


def inverse_softplus(value: float) -> float:
    """Return the x with softplus(x) = value.

    Parameters
    ----------
    value : float
        Positive.
    """
    return value + math.log(-math.expm1(-value))


class Base(Protocol):
    """The density q_0 that a chain starts from, which is a module."""

    def __call__(self, epsilon: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Draw z_0, and return the draws with their log densities.

        Parameters
        ----------
        epsilon : Tensor of shape (R, N, d)
            Standard normal numbers.
        context : Tensor of shape (R, N, c) or (N, c), optional
            Features of each datum, where the base is amortised.

        Returns
        -------
        z : Tensor of shape (R, N, d)
        log_density : Tensor of shape (R, N)
        """
        raise NotImplementedError

    def log_density(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        """Return log q_0(z_0), of shape (R, N), for z of shape (R, N, d)."""
        raise NotImplementedError


class StandardNormal(nn.Module):
    """The base of a chain that is not amortised: N(0, I), without parameters."""

    def forward(self, epsilon: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return epsilon, standard_log_density(epsilon)

    def log_density(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        return standard_log_density(z)


class AmortisedGaussian(nn.Module):
    r"""A Gaussian whose mean and standard deviation are linear in a context.

    :math:`q_0(z_0 \mid x) = N(A c(x) + a, \mathrm{diag}\,\mathrm{softplus}(B c(x) + b)^2)`.

    Parameters
    ----------
    dim, context : int
        d, and the number of features of the context.
    n_runs : int, default=1
    sigma : float, default=1.0
        The approximate standard deviation at the start.
    """

    def __init__(self, dim: int, context: int, *, n_runs: int = 1, sigma: float = 1.0) -> None:
        super().__init__()
        weight = 0.1 * torch.randn(n_runs, context, 2 * dim) / math.sqrt(context)
        self.weight = nn.Parameter(weight)
        bias = torch.zeros_like(weight[:, :1])
        bias[..., dim:] = inverse_softplus(sigma - LEAST_SIGMA)
        self.bias = nn.Parameter(bias)

    def moments(self, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of z_0.

        Parameters
        ----------
        context : Tensor of shape (..., c)
        """
        if context is None:
            raise ValueError("The base of an amortised chain needs a context.")
        mean, s = (context @ self.weight + self.bias).chunk(2, dim=-1)
        return mean, functional.softplus(s) + LEAST_SIGMA

    def forward(self, epsilon: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return gaussian_draws(epsilon, *self.moments(context))

    def log_density(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        return gaussian_log_density(z, *self.moments(context))
