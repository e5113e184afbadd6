r"""Six densities in the plane that are hard to fit with a variational posterior.

Each density p is given up to a constant, as log f = log p + log Z.  All six densities are from
Huang et al. (2018), Figure 5 and Table 2.  (a), (b), (e) and (f) are variants of densities of
Rezende and Mohamed (2015).  Density (b) has the factor
:math:`\exp(-((\|z/2\|^2 - 2) / 0.5)^2 / 2)`, which is our reading of Table 2 of Huang et al.  The
values of log Z were computed on grids in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

#: A mode counts as found if the share of draws near it is at least SHARE times its weight.
SHARE = 0.5


@dataclass(frozen=True)
class Energy:
    r"""A density in the plane that is known up to its normaliser.

    Parameters
    ----------
    name : str
        The letter of the density in the paper.
    title : str
        A description of the shape.
    log_density : callable
        The function log f, which takes a tensor of shape (..., 2) and returns one of shape (...).
    log_partition : float
        The normaliser :math:`\log Z = \log \int f(z)\,dz`.
    modes : tuple of pairs of floats, default=()
        The means of the modes, if the modes are well separated.
    weights : tuple of float, default=()
        The probability of each mode.
    reach : float, default=1.0
        Most of the probability of a mode is within this distance of its mean.
    extent : float, default=4.0
        Figures show the square from -extent to extent, which contains nearly all probability.
    """

    name: str
    title: str
    log_density: Callable[[Tensor], Tensor]
    log_partition: float
    modes: tuple[tuple[float, float], ...] = ()
    weights: tuple[float, ...] = ()
    reach: float = 1.0
    extent: float = 4.0

    def __call__(self, z: Tensor) -> Tensor:
        """Return log f, so that an Energy can be passed as ``log_density``."""
        return self.log_density(z)


def modes_found(z: Tensor, energy: Energy, *, share: float = SHARE) -> Tensor:
    """Count the modes of a density that have draws near them.

    Parameters
    ----------
    z : Tensor of shape (..., n, 2)
        Random draws.
    energy : Energy
        A density with separate modes.
    share : float, default=0.5
        A mode of probability w counts as found if at least the proportion `share` * w of the draws
        is within ``energy.reach`` of the mode's mean.

    Returns
    -------
    Tensor of shape (...), int64

    Raises
    ------
    ValueError
        If the density has no separate modes.
    """
    if not energy.modes:
        raise ValueError(f"Energy ({energy.name}) has no separate modes to count.")
    means = z.new_tensor(energy.modes)
    weights = z.new_tensor(energy.weights)
    # of shape (..., n, n_modes): whether each draw is near each mode
    near = torch.linalg.vector_norm(z.unsqueeze(-2) - means, dim=-1) <= energy.reach
    return (near.to(z.dtype).mean(dim=-2) >= share * weights).sum(dim=-1)


def _square(x: Tensor, scale: float) -> Tensor:
    """Return -(x / scale)^2 / 2, the log density of a Gaussian up to a constant."""
    return -0.5 * (x / scale) ** 2


def _arcs(z: Tensor) -> Tensor:
    """Return log f of density (a), two arcs of a ring of radius 2."""
    x = z[..., 0]
    # vector_norm has gradient 0 at the origin, where the square root of squares would give NaN
    ring = _square(torch.linalg.vector_norm(z, dim=-1) - 2.0, 0.4)
    return ring + torch.logaddexp(_square(x - 2.0, 0.6), _square(x + 2.0, 0.6))


def _three_arcs(z: Tensor) -> Tensor:
    """Return log f of density (b), three arcs of a ring."""
    x, y = z.unbind(-1)
    ring = _square((z**2).sum(dim=-1) / 4 - 2.0, 0.5)
    arcs = (_square(x - 2.0, 0.6), _square(torch.sin(x), 0.5), _square(x + y + 2.5, 0.6))
    return ring + torch.logsumexp(torch.stack(arcs), dim=0)


def _ellipse(z: Tensor) -> Tensor:
    """Return log f of density (c), an ellipse."""
    scale = z.new_tensor([1.0, math.sqrt(0.5)])
    return -((2.0 - torch.linalg.vector_norm(z * scale, dim=-1)) ** 2)


_MODES = ((-2.0, 0.0), (2.0, 0.0), (0.0, 2.0), (0.0, -2.0))
_WEIGHTS = (0.1, 0.3, 0.4, 0.2)
_VARIANCE = 0.2


def _four_modes(z: Tensor) -> Tensor:
    """Return log f of density (d), a mixture of four Gaussians with equal variances."""
    means = z.new_tensor(_MODES)
    weights = z.new_tensor(_WEIGHTS)
    squares = ((z.unsqueeze(-2) - means) ** 2).sum(dim=-1)
    log_densities = weights.log() - 0.5 * squares / _VARIANCE - math.log(2 * math.pi * _VARIANCE)
    return torch.logsumexp(log_densities, dim=-1)


def _wave(z: Tensor) -> Tensor:
    """Return log f of density (e), a wave."""
    return _square(_above_sine(z), 0.4) - 0.1 * z[..., 0] ** 2


def _split_wave(z: Tensor) -> Tensor:
    """Return log f of density (f), a wave that splits into two branches near x = 2."""
    x = z[..., 0]
    above = _above_sine(z)
    below = above + 3.0 * torch.exp(-0.5 * (x - 2.0) ** 2)
    return torch.logaddexp(_square(above, 0.35), _square(below, 0.35)) - 0.05 * x**2


def _above_sine(z: Tensor) -> Tensor:
    """Return y - sin(pi x / 2)."""
    x, y = z.unbind(-1)
    return y - torch.sin(0.5 * math.pi * x)


#: The six energies of the paper, by their letters.
ENERGIES: dict[str, Energy] = {
    energy.name: energy
    for energy in (
        Energy("a", "two arcs", _arcs, 1.877502, ((-2.0, 0.0), (2.0, 0.0)), (0.5, 0.5), reach=1.5),
        Energy("b", "three arcs", _three_arcs, 2.651945, extent=5.0),
        Energy("c", "an ellipse", _ellipse, 3.450207, extent=5.0),
        Energy("d", "four modes", _four_modes, 0.0, _MODES, _WEIGHTS),
        Energy("e", "a wave", _wave, 1.726305, extent=6.0),
        Energy("f", "a split wave", _split_wave, 2.632495, extent=8.0),
    )
}
