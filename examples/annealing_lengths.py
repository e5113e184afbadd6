"""How long to anneal, and from how hot
====================================

Deterministic annealing of topic models: for how long, and from how hot.

Prints two tables of the held-out likelihood and the ELBO, and draws two panels of the held-out
likelihood along the fits: on the left for several lengths of the annealing, on the right for
several first temperatures.

::

    python examples/annealing_lengths.py [--seeds 2] [--jobs 2] [--output annealing_lengths.png]
    python examples/annealing_lengths.py --full [--documents 30000]

It redraws Figures 4 and 5 of Abrol et al. (2014), *Deterministic Annealing for Stochastic
Variational Inference*: the posterior is tempered (form="posterior"), alpha = .01 and eta = 1.
The lengths t_A are in passes over the documents, from T0 = 2.  The first temperatures run from
T0 = 1.5 to 5, over one length.  Plain inference (SVI) is in both panels.  The curves show the
log-likelihood per word of the hidden half of held-out documents, at T = 1 whatever the fit's
temperature.

Options
-------
default
    The 3,000 abstracts that come with the package, 300 of them held out (K = 30, 10 passes
    in minibatches of 32).

--full
    ``arxiv_100k`` (K = 100, minibatches of 100, 4 passes), its first --documents, read from
    the folder that the environment variable ANNEALVI_DATA names (default ``../shared/data``).
--offset
    Tau of the step sizes rho = (tau + t)^-.7.  A step of the posterior form keeps
    1 - rho T of the old topics, so rho T must stay below 1: from T0 = 5 this needs tau >= 9.
    The default, 1024, makes small steps that leave something to learn after the cooling.

docs/evidence.md has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _shared import markdown, mean_and_sd, save
from _topics import fit, held_out_limits, load, parser

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.plot import plot_learning_curves
from annealvi.temperature import Temperature

START = 2.0  # of the lengths
#: Parts of the fit: of 10 passes 1/10 to 6, of 4 passes 1/25 to 2.4.
LENGTHS = (0.01, 0.1, 0.3, 0.6)
STARTS = (1.5, 2.0, 3.0, 4.0, 5.0)
LENGTH = 0.3  # of the starts
POINTS = 40  # of a curve


def panels(n_passes: int) -> dict[str, dict[str, Temperature]]:
    """What the two figures compare."""

    def annealed(start: float, passes: float) -> Temperature:
        return Annealed(start, passes=passes, shape="linear", form="posterior")

    lengths = {f"$t_A$ = {n_passes * part:g}": annealed(START, n_passes * part) for part in LENGTHS}
    starts = {f"$T_0$ = {start:g}": annealed(start, n_passes * LENGTH) for start in STARTS}
    return {
        f"Lengths, $T_0$ = {START:g}": {"SVI": Fixed(1), **lengths},
        f"First temperatures, $t_A$ = {n_passes * LENGTH:g}": {"SVI": Fixed(1), **starts},
    }


def table(title: str, fits: dict[str, list[TemperedLDA]]) -> str:
    """What the fits reached."""
    plain = str.maketrans("", "", "$_")
    rows = []
    for name, estimators in fits.items():
        scores = [float(lda.history_["heldout"][-1]) for lda in estimators]
        bounds = [-float(np.log(lda.bound_)) for lda in estimators]
        rows.append([name.translate(plain), mean_and_sd(scores, 3), mean_and_sd(bounds, 3)])
    return markdown([title.translate(plain), "held out a word", "ELBO a word, T = 1"], rows)


def draw(found: dict[str, dict[str, list[TemperedLDA]]]) -> Any:
    """Held-out curves of both figures, on one scale."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    for ax, (title, fits) in zip(axes, found.items(), strict=True):
        plot_learning_curves(fits, ax=ax)
        ax.set(title=title, ylabel="")
        ax.legend(loc="lower right")
    axes[0].set_ylabel("held-out log-likelihood a word")
    all_fits = [lda for fits in found.values() for each in fits.values() for lda in each]
    axes[0].set_ylim(*held_out_limits(all_fits, 1.5, 0.1))
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    options = parser((__doc__ or "").partition("\n")[0], "annealing_lengths.png")
    options.add_argument("--offset", type=float, default=1024, help="tau of the step sizes")
    arguments = options.parse_args(argv)
    hottest = max(START, *STARTS)
    if (arguments.offset + 1) ** -0.7 * hottest >= 1:
        options.error(f"--offset must be larger, or the first step from T = {hottest:g} subtracts")
    problem = load(options, arguments)
    settings = dict(
        doc_topic_prior=0.01,
        topic_word_prior=1.0,
        learning_offset=arguments.offset,
        n_jobs=arguments.jobs,
    )
    found: dict[str, dict[str, list[TemperedLDA]]] = {}
    done: dict[Temperature, list[TemperedLDA]] = {}  # plain inference is in both panels
    for title, temperatures in panels(problem.settings["max_iter"]).items():
        for temperature in temperatures.values():
            if temperature not in done:
                done[temperature] = [
                    fit(problem, temperature, POINTS, **settings, random_state=seed)
                    for seed in range(arguments.seeds)
                ]
        found[title] = {name: done[temperature] for name, temperature in temperatures.items()}
        print(table(title, found[title]), end="\n\n")
    save(draw(found), arguments.output)


if __name__ == "__main__":
    main()
