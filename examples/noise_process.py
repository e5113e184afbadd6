"""The noise that a posterior of one mode teaches a model
======================================================

What does a model learn about its data if its posterior can only have one mode?

Prints how well each method fits the data.  Draws the density of the data and of each model, and the
posterior of each model at an ambiguous point.

::

    python examples/noise_process.py [--steps 2000] [--seeds 1] [--transitions 10] [--batch 128]
        [--calibration 1] [--start usual] [--noise 0.1] [--full] [--output noise_process.png]

The script repeats the experiment of section 5.1 of Huang, Tan, Lacoste, Courville (2018),
*Improving explorability in variational inference with annealed variational objectives*, with
Figures 1 and 2.  The variable z ~ N(0, 1) runs along a circle, and both ends of z meet at x = (0,
-1):

    x_1 = sin(pi tanh(.75 z)) + e_1,    x_2 = cos(pi tanh(.75 z)) + e_2.

The means are fixed in the model.  The model learns the standard deviations of x, which a neural
network computes from z.  A posterior with one mode can explain a point near (0, -1) only by one end
of z, or by the middle.  So the model learns too much noise.

=======================  ===================================================================
IW, 500 draws            the importance-weighted bound with draws from the prior
IW, 100 draws            the same bound with fewer draws, in a fifth of the time
VAE                      a Gaussian q(z | x) and the ELBO
HVI                      a chain of transitions after the Gaussian, and the ELBO
AVO                      a chain of transitions after the Gaussian, and annealed objectives
AVO, decoder by ELBO     AVO in half of the steps; only the other half moves the model
=======================  ===================================================================

Options
-------
--calibration
    The share of AVO's steps that follow the annealed objectives.  The others follow the ELBO.
--start
    ``usual``, or ``identity`` for transitions that hardly change z at first.
--noise
    Standard deviation of e.  The paper does not print it.
--full
    5 seeds.

``KL(data, model)`` is the mean of log p_data(x) - log p(x) over 20,000 points of the data.  A grid
over z computes both densities.  ``gap`` is log p(x) minus the ELBO, with one draw for each of 2,000
points.  ``seconds`` is the CPU time of a fit.
"""

# sphinx_gallery_thumbnail_path = "record/noise_process.png"
from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from _shared import at_least_one, markdown, mean_and_sd, save
from matplotlib import pyplot
from torch import Tensor, nn

from annealvi.deep.hvi import (
    LEAST_SIGMA,
    NEAR_IDENTITY,
    Chain,
    gaussian_draws,
    gaussian_log_density,
    inverse_softplus,
    standard_log_density,
)
from annealvi.deep.objectives import hvi_elbo, importance_weighted, loss_calibrated
from annealvi.deep.training import Noise, Outcome, Trainer

WIDTH = 64
TEST = 20_000
SCORED = 2_000
#: With less noise of the data the grid over z is too coarse.
LEAST_NOISE = 0.005
DRAWS = {"IW, 500 draws": 500, "IW, 100 draws": 100}
ELBO_ONLY = "AVO, decoder by ELBO"
METHODS = (*DRAWS, "VAE", "HVI", "AVO", ELBO_ONLY)
STARTS: dict[str, dict[str, Any]] = {"usual": {}, "identity": NEAR_IDENTITY}
#: b at the start: a standard deviation of 1.
SPREAD = inverse_softplus(1.0 - LEAST_SIGMA)
#: Cells of the grid over z, and half its length.
CELLS = 2001
EXTENT = 5.0
#: Cells of the pictures of densities, in each direction, and half their side.
BINS = 100
SIDE = 1.6
POINT = (0.1, -1.0)  # the x whose posterior is drawn
# of the palette of Okabe and Ito
BLUE = "#0072B2"
ORANGE = "#D55E00"
TITLES = {
    "data": "the data",
    "IW, 500 draws": "importance weights,\n500 draws",
    "IW, 100 draws": "importance weights,\n100 draws",
    "VAE": "a Gaussian q,\nELBO (VAE)",
    "HVI": "a chain,\nELBO (HVI)",
    "AVO": "a chain, annealed\nobjectives (AVO)",
    ELBO_ONLY: "AVO, model fitted\nby the ELBO",
}


def circle(z: Tensor) -> Tensor:
    """The mean of x given z, of shape (..., 2)."""
    angle = math.pi * torch.tanh(0.75 * z[..., 0])
    return torch.stack([angle.sin(), angle.cos()], dim=-1)


def network(n_in: int, n_out: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(n_in, WIDTH),
        nn.ELU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ELU(),
        nn.Linear(WIDTH, n_out),
    )


class Base(nn.Module):
    """q_0(z | x), a Gaussian that depends on features c of x: N(A c + a, softplus(B c + b)^2)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(WIDTH, 2) / math.sqrt(WIDTH))
        self.bias = nn.Parameter(torch.tensor([0.0, SPREAD]))

    def forward(self, epsilon: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Draws of z_0 from standard normal numbers, and their log densities."""
        mean, spread = (context @ self.weight + self.bias).chunk(2, dim=-1)
        return gaussian_draws(epsilon, mean, nn.functional.softplus(spread) + LEAST_SIGMA)


class Model(nn.Module):
    """A decoder that learns its noise, and a posterior unless q = p."""

    def __init__(self, n_transitions: int | None, start: dict[str, Any]) -> None:
        super().__init__()
        self.spread = network(1, 2)
        self.encoder = None
        self.chain = None
        if n_transitions is not None:
            self.encoder = network(2, WIDTH)
            sizes = dict(hidden=WIDTH, context=WIDTH)
            self.chain = Chain(1, n_transitions, activation="elu", base=Base(), **sizes, **start)

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x | z), of the shape of z without its last axis."""
        sigma = nn.functional.softplus(self.spread(z)) + LEAST_SIGMA
        return gaussian_log_density(x, circle(z), sigma)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x, z)."""
        return standard_log_density(z) + self.log_likelihood(x, z)


def on_grid(log_likelihood: Callable[[Tensor, Tensor], Tensor], x: Tensor) -> Tensor:
    """log p(x, z) of points x and of all cells of a grid over z, with the cells' size."""
    z = torch.linspace(-EXTENT, EXTENT, CELLS)[:, None]
    with torch.no_grad():
        log_joint = log_likelihood(x[:, None], z) + standard_log_density(z)
    return log_joint + math.log(2 * EXTENT / (CELLS - 1))


def log_marginal(log_likelihood: Callable[[Tensor, Tensor], Tensor], x: Tensor) -> Tensor:
    """log p(x), a block of points at a time."""
    return torch.cat([on_grid(log_likelihood, rows).logsumexp(dim=1) for rows in x.split(1000)])


def of_data(noise: float) -> Callable[[Tensor, Tensor], Tensor]:
    """log p(x | z) of the data."""
    return lambda x, z: gaussian_log_density(x, circle(z), torch.tensor(noise))


def data(n: int, noise: Noise, sd: float) -> Tensor:
    """Draws of x."""
    return circle(noise.normal(n, 1)) + sd * noise.normal(n, 2)


def objective(
    method: str, model: Model, noise: Noise, options: argparse.Namespace
) -> Callable[[Tensor | None, int], Outcome]:
    """What a step minimises, on new data each time."""
    batch = options.batch
    a = {"AVO": options.calibration, ELBO_ONLY: 0.5}.get(method, 0.0)

    def weighted(rows: Tensor | None, step: int) -> Outcome:
        x = data(batch, noise, options.noise)
        z = noise.normal(DRAWS[method], batch, 1)
        bound = importance_weighted(model.log_likelihood(x, z)).mean()
        return Outcome(-bound, bound)

    def layered(rows: Tensor | None, step: int) -> Outcome:
        x = data(batch, noise, options.noise)
        chain = model.chain
        assert chain is not None
        assert model.encoder is not None
        annealed = a > 0 and noise.coin(a)
        model.spread.requires_grad_(not (annealed and method == ELBO_ONLY))
        bound, _ = loss_calibrated(
            chain,
            chain.draw_noise(batch, noise),
            lambda z: model.log_joint(x, z),
            calibration=float(annealed),
            context=model.encoder(x),
            model=model,
        )
        return Outcome(-bound.mean(), bound.mean())

    return weighted if method in DRAWS else layered


class Evaluated(NamedTuple):
    """A model, and what the table says of it; the gap is NaN where there is no q."""

    model: Model
    kl: float
    gap: float
    seconds: float


@cache
def of_test(noise: float) -> tuple[Tensor, Tensor]:
    """Points of the test, and log p of each under the process that made them."""
    test = data(TEST, Noise(1000), noise)
    return test, log_marginal(of_data(noise), test)


def fit(method: str, seed: int, options: argparse.Namespace) -> Evaluated:
    """Learn a model and look at it on the grid."""
    torch.manual_seed(seed)
    noise = Noise(seed)
    test, log_p_data = of_test(options.noise)
    n_transitions = {**dict.fromkeys(DRAWS), "VAE": 0}.get(method, options.transitions)
    model = Model(n_transitions, STARTS[options.start])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    begun = time.process_time()
    Trainer(model, optimiser, noise).run(objective(method, model, noise, options), options.steps)
    seconds = time.process_time() - begun
    log_p = log_marginal(model.log_likelihood, test)
    kl = float((log_p_data - log_p).mean())
    gap = math.nan
    if model.chain is not None:
        x = test[:SCORED]
        with torch.no_grad():
            path = model.chain(model.chain.draw_noise(SCORED, noise), context=model.encoder(x))
            elbo = hvi_elbo(model.chain, path, lambda z: model.log_joint(x, z))
        gap = float((log_p[:SCORED] - elbo).mean())
    return Evaluated(model, kl, gap, seconds)


def draw(results: dict[str, Evaluated], noise: float) -> Any:
    """The density that each method learned, and its posterior at a point beside the true one."""
    known = {"data": of_data(noise)}
    known |= {method: result.model.log_likelihood for method, result in results.items()}
    figure, axes = pyplot.subplots(
        2, len(known), figsize=(2 * len(known), 4.8), layout="constrained", sharey="row"
    )
    centres = SIDE * (2 * torch.arange(BINS) + 1 - BINS) / BINS
    cells = torch.cartesian_prod(centres, centres)
    z = np.linspace(-EXTENT, EXTENT, CELLS)
    for (above, below), (name, of) in zip(axes.T, known.items(), strict=True):
        density = log_marginal(of, cells).exp().reshape(BINS, BINS).numpy()
        joint = on_grid(of, torch.tensor([POINT]))[0]
        posterior = torch.softmax(joint, dim=0).numpy() * (CELLS - 1) / (2 * EXTENT)
        if name == "data":
            largest = density.max()
            truth = posterior
        extent = (-SIDE, SIDE, -SIDE, SIDE)
        above.imshow(density.T, origin="lower", extent=extent, vmax=largest, cmap="Blues")
        above.plot(*POINT, "o", color=ORANGE, markersize=5)
        above.set(title=TITLES.get(name, name), xticks=[], yticks=[])
        below.fill_between(z, truth, color="0.8", linewidth=0)
        if name != "data":
            below.plot(z, posterior, color=BLUE)
        below.set(xlabel="z", xlim=(-EXTENT, EXTENT), xticks=[-4, 0, 4])
        below.grid(color="0.9")
    axes[0, 0].set_ylabel("density of x")
    axes[1, 0].set(ylabel="p(z | x) at the dot", yticks=[])
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--transitions", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--calibration", type=float, default=1.0, help="part of annealed steps")
    parser.add_argument("--start", choices=STARTS, default="usual", help="of transitions")
    parser.add_argument("--noise", type=float, default=0.1, help="standard deviation of e")
    parser.add_argument("--full", action="store_true", help="5 seeds")
    parser.add_argument("--output", default="noise_process.png")
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(seeds=5)
    options = parser.parse_args(argv)
    at_least_one(parser, options, ("steps", "seeds", "transitions", "batch"))
    if not 0 < options.calibration <= 1:
        parser.error("--calibration must be in (0, 1]")
    if not options.noise >= LEAST_NOISE:
        parser.error(f"--noise must be at least {LEAST_NOISE:g}, for the grid over z")
    first: dict[str, Evaluated] = {}
    rows = []
    for method in METHODS:
        results = [fit(method, seed, options) for seed in range(options.seeds)]
        first[method] = results[0]
        gaps = [result.gap for result in results]
        gap = "-" if np.isnan(gaps).any() else mean_and_sd(gaps, 3)
        seconds = np.mean([result.seconds for result in results])
        kl = mean_and_sd([result.kl for result in results], 4)
        rows.append([method, kl, gap, f"{seconds:.0f}"])
    print(markdown(["learned by", "KL(data, model)", "gap", "seconds"], rows))
    save(draw(first, options.noise), options.output)


if __name__ == "__main__":
    main()
