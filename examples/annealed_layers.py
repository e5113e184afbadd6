"""What each layer of a deep posterior learns
==========================================

What does each layer of a deep posterior learn?  Compares the ELBO with annealed objectives.

Prints how far each posterior is from its target and which modes it found.  Draws the density of
about every second layer for both objectives, below the targets.

::

    python examples/annealed_layers.py [--energy d] [--transitions 10] [--steps 2000]
        [--runs 1] [--seed 0] [--annealing 0] [--full] [--output annealed_layers.png]

The script redraws Figure 3 of Huang et al. (2018), *Improving explorability in variational
inference with annealed variational objectives*.  A chain of gated Gaussian transitions leads from
N(0, I) to a mixture of four Gaussians with weights 0.1, 0.3, 0.4 and 0.2.  Under the ELBO, only the
end of the chain has a target.  Under annealed variational objectives (AVO), each transition has a
target, f^(t/T) N(0, I)^(1 - t/T), which the first row shows.  With ``--annealing 0.8``, beta rises
from 0.01 to 1 over the first 80% of the steps, as in Figure 6 of the paper.

Options
-------
--energy
    The target density, by its letter in the paper's figure.
--transitions, --steps, --runs
    The number T of transitions, of steps of a fit, and of independent fits with each objective.
--annealing
    The share of the steps over which beta rises.
--full
    5 runs of 10,000 steps.

The table contains -KL(q || p), with its mean and standard deviation over the runs, and the number
of modes that have draws near them.  -KL is estimated with 2,000 draws of the reverse chain, which
overestimates it.  The figure shows the first run.
"""

# sphinx_gallery_thumbnail_path = "record/annealed_layers.png"
from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from _deep import cell, grid, histogram, show
from _shared import markdown, mean_and_sd, save
from matplotlib import pyplot
from numpy.typing import NDArray

from annealvi.deep import HierarchicalPosterior
from annealvi.deep.energies import ENERGIES, Energy, modes_found
from annealvi.deep.hvi import standard_log_density
from annealvi.deep.training import Noise

OBJECTIVES = {"ELBO": "elbo", "AVO": "avo"}
DRAWS = 100_000
EVALUATION = dict(n_draws=500, n_reverse=2000)


def densities(energy: Energy, transitions: Sequence[int], n_transitions: int) -> list[NDArray]:
    """The targets of these transitions on a grid, normalised."""
    z = grid(energy)
    masses_by_layer = []
    for t in transitions:
        alpha = t / n_transitions
        log_f = alpha * energy(z) + (1 - alpha) * standard_log_density(z)
        mass = log_f.flatten().softmax(dim=0).reshape(log_f.shape)
        masses_by_layer.append((mass / cell(energy)).numpy())
    return masses_by_layer


def table(fits: dict[str, HierarchicalPosterior], energy: Energy) -> str:
    """What the objectives reached."""
    rows = []
    for name, posterior in fits.items():
        _, above = posterior.evidence_bounds(**EVALUATION)
        kl = above - energy.log_partition
        modes = "-"
        if energy.modes:
            draws = posterior.network_.layers(10_000, Noise(1))[-1]
            modes = ", ".join(str(int(n)) for n in modes_found(draws, energy))
        rows.append([name, mean_and_sd(kl, 3), modes, f"{posterior.n_iter_}"])
    return markdown(["objective", "-KL", "modes found, each run", "steps"], rows)


def draw(fits: dict[str, HierarchicalPosterior], energy: Energy, n_transitions: int) -> Any:
    """One column for each of some transitions: targets above, what was learned below."""
    shown = sorted({round(t) for t in np.linspace(0, n_transitions, min(n_transitions, 5) + 1)})
    rows = {"target": densities(energy, shown, n_transitions)}
    for name, posterior in fits.items():
        layers = posterior.network_.layers(DRAWS, Noise(2))[shown, 0].numpy()
        rows[name] = [histogram(layer, energy) for layer in layers]
    figure, axes = pyplot.subplots(
        len(rows), len(shown), figsize=(2 * len(shown), 2 * len(rows)), layout="constrained"
    )
    for column, t in enumerate(shown):
        largest = float(np.max(rows["target"][column]))  # a column has one scale
        for ax, (name, images) in zip(axes[:, column], rows.items(), strict=True):
            show(ax, images[column], energy, largest)
            if column == 0:
                ax.set_ylabel(name, fontsize=12)
        axes[0, column].set_title(f"$z_{{{t}}}$")
    title = f"Energy ({energy.name}), {energy.title}: marginals of {n_transitions} transitions"
    figure.suptitle(title)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--energy", choices=list(ENERGIES), default="d")
    parser.add_argument("--transitions", type=int, default=10)
    parser.add_argument("--steps", type=int, help="of a fit, by default 2,000")
    parser.add_argument("--runs", type=int, help="of each objective, by default 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--annealing", type=float, default=0.0, help="part of the steps")
    parser.add_argument("--full", action="store_true", help="5 runs of 10,000 steps")
    parser.add_argument("--output", default="annealed_layers.png")
    arguments = parser.parse_args(argv)
    steps = arguments.steps if arguments.steps is not None else 10_000 if arguments.full else 2000
    runs = arguments.runs if arguments.runs is not None else 5 if arguments.full else 1
    if min(steps, runs, arguments.transitions) < 1:
        parser.error("--transitions, --steps and --runs must be at least 1")
    if not 0 <= arguments.annealing <= 1:
        parser.error("--annealing must be between 0 and 1")
    energy = ENERGIES[arguments.energy]
    fits = {
        name: HierarchicalPosterior(
            energy,
            dim=2,
            n_transitions=arguments.transitions,
            objective=objective,
            annealing=arguments.annealing,
            max_iter=steps,
            n_init=runs,
            random_state=arguments.seed,
        ).fit()
        for name, objective in OBJECTIVES.items()
    }
    print(table(fits, energy))
    save(draw(fits, energy, arguments.transitions), arguments.output)


if __name__ == "__main__":
    main()
