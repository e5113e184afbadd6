"""The noise that a posterior of one mode teaches a model
======================================================

What a model learns of its data if its posterior can have one mode only.

Prints how well each way to learn fits the data, and how far the posteriors of the learned model
are from Gaussians.  Draws what each model learned of the data, and one of its posteriors beside
the one that was used to learn it.

::

    python examples/noise_process.py [--steps 3000] [--seeds 1] [--transitions 5] [--batch 128]
        [--annealing 0.5] [--full] [--output noise_process.png]

It is the experiment of section 5.1 of Huang, Tan, Lacoste, Courville (2018), *Improving
explorability in variational inference with annealed variational objectives*, Figures 1 and 2, on
data of our own: four modes of weights .1, .3, .4 and .2 in the plane.  The model has two latent
variables z ~ N(0, I) and a Gaussian likelihood, x ~ N(G(z), sigma^2 I), where the network G and
sigma are learned.  A family of posteriors q pulls the model towards posteriors that the family
can hold: the noise that the model learns is biased.

=============  ===========================================================================
IW, q = p      500 draws from the prior, the importance-weighted bound: hardly biased
VAE            a Gaussian q(z | x) and the ELBO
HVI            a chain of transitions after the Gaussian, and the ELBO
HVI, AVO       the same with annealed objectives in half of the steps
=============  ===========================================================================

Options
-------
--annealing
    The part of the steps over which beta, the weight of all terms but log p(x | z), rises from .01
    to 1 where there is a q.  Without it the chains learn to ignore z.
--full
    20,000 steps and 3 seeds.

All figures of the table but the gap are exact up to a grid over z.  ``log p(x)`` is the mean over
2,000 test points, and ``KL(data, model)`` is what it lacks to the data's own density.  ``not
Gaussian`` is KL(p(z | x), N), where N has the mean and the covariance of the posterior p(z | x),
averaged over 200 test points.  ``gap`` is log p(x) less the ELBO, with one draw for each point.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from _deep import BINS, grid, histogram, show
from _shared import at_least_one, markdown, mean_and_sd, save
from matplotlib import pyplot
from torch import Tensor, nn

from annealvi.deep.energies import ENERGIES
from annealvi.deep.hvi import (
    LEAST_SIGMA,
    Chain,
    gaussian_draws,
    gaussian_log_density,
    inverse_softplus,
    standard_log_density,
)
from annealvi.deep.objectives import hvi_elbo, importance_weighted, loss_calibrated
from annealvi.deep.training import Noise, Outcome, Training
from annealvi.schedules import Linear

DATA = ENERGIES["d"]  # the mixture that the data are from
WIDTH, DRAWS, TEST, POSTERIORS = 64, 500, 2000, 200
METHODS = ("IW, q = p", "VAE", "HVI", "HVI, AVO")
CALIBRATION = {"HVI": 0.0, "HVI, AVO": 0.5}
WARM_UP = Linear(0.01, 1.0)
#: b at the start: a standard deviation of 1.
SPREAD = inverse_softplus(1.0 - LEAST_SIGMA)
#: Cells of the grid over z, in each direction, and half its side.
CELLS, EXTENT = 121, 4.5
SHOWN = (0.0, 0.0)  # the point in the midst of the modes whose posterior is drawn


class Base(nn.Module):
    """q_0(z | x), a Gaussian that depends on features c of x: N(A c + a, softplus(B c + b)^2)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(WIDTH, 4) / math.sqrt(WIDTH))
        self.bias = nn.Parameter(torch.tensor([0.0, 0.0, SPREAD, SPREAD]))

    def forward(self, epsilon: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Draws of z_0 from standard normal numbers, and their log densities."""
        mean, spread = (context @ self.weight + self.bias).chunk(2, dim=-1)
        return gaussian_draws(epsilon, mean, nn.functional.softplus(spread) + LEAST_SIGMA)


class Model(nn.Module):
    """A decoder with Gaussian noise, and a posterior unless q = p."""

    def __init__(self, n_transitions: int | None) -> None:
        super().__init__()

        def network(n_out: int) -> nn.Sequential:
            return nn.Sequential(
                *(nn.Linear(2, WIDTH), nn.ELU(), nn.Linear(WIDTH, WIDTH), nn.ELU()),
                nn.Linear(WIDTH, n_out),
            )

        self.decoder = network(2)
        self.log_sigma = nn.Parameter(torch.zeros(()))
        self.encoder, self.chain = None, None
        if n_transitions is not None:
            self.encoder = network(WIDTH)
            start = dict(sigma=0.05, gate_bias=-4.0, activation="elu")
            self.chain = Chain(2, n_transitions, hidden=WIDTH, context=WIDTH, base=Base(), **start)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x, z), of the shape of z without its last axis."""
        sigma = self.log_sigma.exp().expand_as(x)
        return standard_log_density(z) + gaussian_log_density(x, self.decoder(z), sigma)

    @torch.no_grad()
    def on_grid(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log p(x), and p(z | x) of each cell of a grid over z."""
        z = latent_grid()
        sigma = self.log_sigma.exp()
        squares = torch.cdist(x, self.decoder(z)) ** 2
        log_p = -0.5 * squares / sigma**2 - 2 * self.log_sigma - math.log(2 * math.pi)
        log_p = log_p + standard_log_density(z) + 2 * math.log(2 * EXTENT / CELLS)
        total = log_p.logsumexp(dim=1)
        return total, (log_p - total[:, None]).exp()


def latent_grid() -> Tensor:
    """Centres of the cells of the grid over z, of shape (CELLS^2, 2)."""
    edges = torch.linspace(-EXTENT, EXTENT, CELLS + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    return torch.cartesian_prod(centres, centres)


def data(n: int, noise: Noise) -> Tensor:
    """Draws from the mixture."""
    means, weights = torch.tensor(DATA.modes), torch.tensor(DATA.weights)
    mode = torch.searchsorted(weights.cumsum(0), noise.uniform(n)).clamp(max=len(means) - 1)
    return means[mode] + math.sqrt(0.2) * noise.normal(n, 2)


def objective(
    method: str, model: Model, noise: Noise, options: argparse.Namespace
) -> Callable[[Tensor | None, int], Outcome]:
    """What a step minimises, on new data each time."""

    batch, warm = options.batch, options.annealing * options.steps

    def weighted(rows: Tensor | None, step: int) -> Outcome:
        x = data(batch, noise)
        z = noise.normal(DRAWS, batch, 2)
        log_p = model.log_joint(x, z) - standard_log_density(z)
        bound = importance_weighted(log_p).mean()
        return Outcome(-bound, bound)

    def layered(rows: Tensor | None, step: int) -> Outcome:
        x, chain, a = data(batch, noise), model.chain, CALIBRATION.get(method, 0.0)
        assert chain is not None
        assert model.encoder is not None
        bound, _ = loss_calibrated(
            chain,
            chain.draw_noise(batch, noise),
            lambda z: model.log_joint(x, z),
            calibration=float(a > 0 and noise.coin(a)),
            beta=WARM_UP(min(1.0, step / warm)) if warm else 1.0,
            context=model.encoder(x),
        )
        return Outcome(-bound.mean(), bound.mean())

    return weighted if method == METHODS[0] else layered


class Result(NamedTuple):
    """A model, and what the table says of it; the gap is NaN where there is no q."""

    model: Model
    log_p: float
    kl: float
    sigma: float
    not_gaussian: float
    gap: float


def not_gaussian(posterior: Tensor) -> Tensor:
    """KL of each posterior on the grid to the Gaussian with its mean and covariance."""
    z, n = latent_grid(), len(posterior)
    mean = posterior @ z
    apart = z[None] - mean[:, None]
    covariance = torch.einsum("nc,nci,ncj->nij", posterior, apart, apart)
    entropy = -(posterior * posterior.clamp_min(1e-30).log()).sum(dim=1)
    entropy = entropy + 2 * math.log(2 * EXTENT / CELLS)
    gaussian = 0.5 * torch.logdet(covariance) + math.log(2 * math.pi * math.e)
    return (gaussian - entropy).reshape(n)


def fit(method: str, seed: int, options: argparse.Namespace) -> Result:
    """Learn a model and look at it on the grid."""
    torch.manual_seed(seed)
    noise, test = Noise(seed), data(TEST, Noise(1000))
    n_transitions = {METHODS[0]: None, "VAE": 0}.get(method, options.transitions)
    model = Model(n_transitions)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    training = Training(model, optimiser, noise)
    training.run(objective(method, model, noise, options), options.steps)
    log_p, posterior = model.on_grid(test)
    gap = math.nan
    if model.chain is not None:
        with torch.no_grad():
            context, epsilon = model.encoder(test), model.chain.draw_noise(TEST, noise)
            path = model.chain(epsilon, context=context)
            elbo = hvi_elbo(model.chain, path, lambda z: model.log_joint(test, z))
        gap = float((log_p - elbo).mean())
    return Result(
        model,
        float(log_p.mean()),
        float((DATA(test) - log_p).mean()),
        float(model.log_sigma.detach().exp()),
        float(not_gaussian(posterior[:POSTERIORS]).mean()),
        gap,
    )


@torch.no_grad()
def used(model: Model) -> Tensor | None:
    """Draws of q(z | x) of the point that is drawn."""
    if model.chain is None:
        return None
    x = torch.tensor([SHOWN]).repeat(20_000, 1)
    return model.chain.layers(len(x), Noise(2), context=model.encoder(x))[-1, 0]


def draw(results: dict[str, Result]) -> Any:
    """A column for each way to learn: densities of x, a posterior, and the q that was used."""
    n_columns = len(results) + 1
    figure, axes = pyplot.subplots(
        3, n_columns, figsize=(2.2 * n_columns, 6.6), layout="constrained"
    )
    cells, latent = grid(DATA), dataclasses.replace(DATA, extent=EXTENT)
    density = DATA(cells).exp().numpy()
    show(axes[0, 0], density, DATA, density.max())
    axes[0, 0].set(title="data", ylabel="x")
    axes[0, 0].plot(*SHOWN, "k+")
    for ax, label in zip(axes[1:, 0], ("p(z | x = 0)", "q(z | x = 0)"), strict=True):
        ax.text(1, 0.5, label, ha="right", va="center", transform=ax.transAxes)
        ax.set_axis_off()
    for column, (method, result) in zip(axes[:, 1:].T, results.items(), strict=True):
        log_p, _ = result.model.on_grid(cells.reshape(-1, 2))
        show(column[0], log_p.exp().reshape(BINS, BINS).numpy(), DATA, density.max())
        column[0].set_title(method)
        _, posterior = result.model.on_grid(torch.tensor([SHOWN]))
        square = posterior.reshape(CELLS, CELLS).numpy() * (CELLS / (2 * EXTENT)) ** 2
        show(column[1], square, latent, square.max())
        drawn = used(result.model)
        if drawn is None:
            column[2].set_axis_off()
        else:
            show(column[2], histogram(drawn.numpy(), latent), latent, square.max())
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--transitions", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--annealing", type=float, default=0.5, help="part of the steps")
    parser.add_argument("--full", action="store_true", help="20,000 steps and 3 seeds")
    parser.add_argument("--output", default="noise_process.png")
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(steps=20_000, seeds=3)
    options = parser.parse_args(argv)
    at_least_one(parser, options, ("steps", "seeds", "transitions", "batch"))
    if not 0 <= options.annealing <= 1:
        parser.error("--annealing must be between 0 and 1")
    first, rows = {}, []
    for method in METHODS:
        results = [fit(method, seed, options) for seed in range(options.seeds)]
        first[method] = results[0]
        parts = ("log_p", "kl", "sigma", "not_gaussian", "gap")
        columns = [[getattr(result, part) for result in results] for part in parts]
        known = [column for column in columns if not np.isnan(column).any()]
        cells = [mean_and_sd(column, 3) for column in known]
        rows.append([method, *cells, *["-"] * (len(columns) - len(known))])
    head = ["learned by", "log p(x)", "KL(data, model)", "sigma", "not Gaussian", "gap"]
    print(markdown(head, rows))
    save(draw(first), options.output)


if __name__ == "__main__":
    main()
