"""A deep posterior after a cold start
===================================

Does a deep posterior recover from a cold start?  Compares the ELBO with annealed objectives.

Prints how far each posterior is from its target and how many modes it found.  Draws each target,
the density that each objective learned, and -KL against the length of the annealing.

::

    python examples/beta_annealing.py [--energies d] [--fractions 0 0.8] [--steps 2000]
        [--runs 5] [--seed 0] [--transition gaussian] [--learning-rate .001] [--full]
        [--output beta_annealing.png]

The script redraws Figure 4 of Huang et al. (2018), *Improving explorability in variational
inference with annealed variational objectives*.  The entropy terms have a weight beta, which rises
from 0.01 to 1 over a fraction of the fit.  This is usual if a model is learned together with the
posterior.  While beta is small, the posterior moves to the best mode only.  Annealed variational
objectives (AVO) are meant to recover the other modes.

Options
-------
--energies
    The target densities, by their letters in the paper's figure.
--fractions
    The shares of the fit over which beta rises.
--transition
    ``gaussian`` or ``flow``.  Flows are deep sigmoidal flows, the deterministic transitions of
    Figure 7 of the paper.  Their -KL is an average over draws, without a reverse chain.
--full
    All six energies, and the fractions 0, 0.2, 0.4, 0.6 and 0.8.

The table contains -KL(q || p), with its mean and standard deviation over the runs, and a lower
bound of -KL.  The estimate uses 2,000 draws of the reverse chain, and is too high on average.  If
the energy has separate modes, the table also contains the number of modes in which each run has
draws.  The figure shows draws of the first run with the longest annealing, and -KL of each run
(dots) with the mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from _deep import grid, histogram, show
from _shared import mean_and_sd, save
from matplotlib import pyplot
from numpy.typing import NDArray

from annealvi.deep import HierarchicalPosterior
from annealvi.deep.energies import ENERGIES, Energy, modes_found
from annealvi.deep.training import Noise

OBJECTIVES = {"ELBO": "elbo", "AVO": "avo"}
COLOURS = {"ELBO": "C1", "AVO": "C4"}
FULL = (0.0, 0.2, 0.4, 0.6, 0.8)
DRAWS = 50_000
EVALUATION = dict(n_draws=200, n_reverse=2000)


class Result(NamedTuple):
    """What the runs of one fit reached: -KL from above and from below, modes, draws."""

    above: NDArray
    below: NDArray
    modes: list[int]
    draws: NDArray
    seconds: float


def fit(energy: Energy, objective: str, fraction: float, options: Any) -> Result:
    """Fit and evaluate some runs side by side."""
    posterior = HierarchicalPosterior(
        energy,
        dim=2,
        n_transitions=10,
        transition=options.transition,
        objective=objective,
        annealing=fraction,
        learning_rate=options.learning_rate,
        max_iter=options.steps,
        n_init=options.runs,
        random_state=options.seed,
    ).fit()
    below, above = (b - energy.log_partition for b in posterior.evidence_bounds(**EVALUATION))
    draws = posterior.network_.layers(DRAWS, Noise(1))[-1]
    modes = modes_found(draws, energy).tolist() if energy.modes else []
    return Result(above, below, modes, draws[0].numpy(), posterior.history_["seconds"][-1])


def row(energy: Energy, fraction: float, name: str, result: Result) -> str:
    """A row of the table."""
    modes = f"{', '.join(map(str, result.modes))} of {len(energy.modes)}" if result.modes else "-"
    return (
        f"| ({energy.name}) {energy.title} | {fraction:g} | {name} | "
        f"{mean_and_sd(result.above, 3)} | {result.below.mean():.3f} | {modes} | "
        f"{result.seconds:.0f} |"
    )


def draw(results: dict[tuple[str, float, str], Result], fractions: Sequence[float]) -> Any:
    """One row per energy: the target, what was learned of it, and how well."""
    names = list(dict.fromkeys(name for name, _, _ in results))
    figure, axes = pyplot.subplots(
        len(names), 4, figsize=(11, 2.6 * len(names)), layout="constrained", squeeze=False
    )
    longest = max(fractions)
    for (image, left, right, curves), name in zip(axes, names, strict=True):
        energy = ENERGIES[name]
        density = (energy(grid(energy)) - energy.log_partition).exp().numpy()
        shown = {f"({name}) {energy.title}": (image, density)}
        for ax, objective in ((left, "ELBO"), (right, "AVO")):
            draws = results[name, longest, objective].draws
            shown[f"{objective}, annealed over {longest:g}"] = (ax, histogram(draws, energy))
        for title, (ax, values) in shown.items():
            show(ax, values, energy, density.max())
            ax.set(title=title)
        for objective, colour in COLOURS.items():
            kl = np.array([results[name, fraction, objective].above for fraction in fractions])
            curves.plot(fractions, kl.mean(axis=1), color=colour, label=objective)
            curves.plot(fractions, kl, ".", color=colour, alpha=0.5)
        curves.axhline(0, color="0.7", linewidth=0.8, zorder=0)
        curves.set(xlabel="fraction of the fit annealed", ylabel="-KL")
        curves.legend()
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--energies", help="letters; by default d, or abcdef with --full")
    parser.add_argument("--fractions", type=float, nargs="+", help="by default 0 and 0.8")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--transition", choices=["gaussian", "flow"], default="gaussian")
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--full", action="store_true", help="all energies, five fractions")
    parser.add_argument("--output", default="beta_annealing.png")
    arguments = parser.parse_args(argv)
    energies = arguments.energies or ("".join(ENERGIES) if arguments.full else "d")
    fractions = arguments.fractions or (list(FULL) if arguments.full else [0.0, 0.8])
    if min(arguments.steps, arguments.runs) < 1:
        parser.error("--steps and --runs must be at least 1")
    if not set(energies) <= set(ENERGIES):
        parser.error(f"--energies must be letters of {''.join(ENERGIES)}")
    if not all(0 <= fraction <= 1 for fraction in fractions):
        parser.error("--fractions must lie in [0, 1]")
    results = {}
    print("| energy | annealed over | objective | -KL | at least | modes, each run | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name in energies:
        for fraction in fractions:
            for label, objective in OBJECTIVES.items():
                result = fit(ENERGIES[name], objective, fraction, arguments)
                results[name, fraction, label] = result
                print(row(ENERGIES[name], fraction, label, result), flush=True)
    save(draw(results, fractions), arguments.output, dpi=100)


if __name__ == "__main__":
    main()
