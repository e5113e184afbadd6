"""How long to anneal, and from how hot
====================================

How long should a topic model be annealed, and from which temperature?

Prints three tables of the held-out likelihood and the ELBO.  Draws the held-out likelihood along
the fits in three panels: for a linear and an exponential fall of the temperature, for several
lengths of the annealing, and for several first temperatures.

::

    python examples/annealing_lengths.py [--seeds 2] [--jobs 2] [--output annealing_lengths.png]
    python examples/annealing_lengths.py --full [--documents 30000] [--shape linear]
    python examples/annealing_lengths.py --full --corpus arxiv_big --documents 540000 --passes 1 \\
        --offset 1024 --shape linear --lengths 0.01 0.1 0.25 0.5 --starts 2

The script redraws Figures 3 to 5 of Abrol et al. (2014), *Deterministic Annealing for Stochastic
Variational Inference*.  The posterior is tempered (form="posterior"), alpha = 0.01 and eta = 1.
The lengths t_A of the annealing are measured in passes over the documents, and these fits start at
T0 = 2.  The first temperatures are T0 = 1.5 to 5, with t_A = 0.1.  With this length the paper
reports its best results, and with longer annealing it reports kinks in the curves.  (Mandt et al.
2016 temper the likelihood, and report that slow annealing is best.)  All panels include plain
inference (SVI).  The curves show the log-likelihood per word of the hidden half of held-out
documents, always at T = 1.

Options
-------
default
    The 3,000 abstracts of the package, of which 300 are held out (K = 30, 10 passes in minibatches
    of 32).

--full
    The first --documents of ``arxiv_100k`` or --corpus (K = 100, minibatches of 100, 4 passes),
    read from the folder that the environment variable ANNEALVI_DATA names (default
    ``../shared/data``).  In a larger corpus, the same part of a pass consists of more steps: 0.1
    pass is 30 steps with 30,000 documents, and 540 steps with the 540,000 of ``arxiv_big``.
--shape
    How T falls in the panels of lengths and of first temperatures: exponentially, as in the paper,
    or linearly.
--lengths, --length, --starts
    The lengths to compare, the length in the first and the third panel, and the first temperatures.
--offset
    Tau of the step sizes rho = (tau + t)^-0.7.  The default is 64, as for the small corpus of the
    paper; for its large corpora the paper uses about 1,000.  A step of the posterior form keeps the
    share 1 - rho T of the old topics, so rho T must be at most 1.  From T0 = 5 this needs tau >= 9.

docs/record/evidence.md contains the results.
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

START = 2.0  # of the shapes and lengths
LENGTH = 0.1  # of the shapes and first temperatures, in passes
LENGTHS = (0.04, 0.1, 0.25, 0.4, 1.2, 2.4)
SHAPES = ("linear", "exponential")
STARTS = (1.5, 2.0, 3.0, 4.0, 5.0)
POINTS = 40  # of a curve


def panels(
    lengths: Sequence[float], length: float, first: Sequence[float], shape: str
) -> dict[str, dict[str, Temperature]]:
    """What the three figures compare."""

    def annealed(start: float, passes: float, shape: str = shape) -> Temperature:
        return Annealed(start, passes=passes, shape=shape, form="posterior")

    plain: dict[str, Temperature] = {"SVI": Fixed(1)}
    shapes = {f"{shape}": annealed(START, length, shape) for shape in SHAPES}
    long = {f"$t_A$ = {passes:g}": annealed(START, passes) for passes in lengths}
    starts = {f"$T_0$ = {start:g}": annealed(start, length) for start in first}
    return {
        f"Shapes, $T_0$ = {START:g}, $t_A$ = {length:g}": plain | shapes,
        f"Lengths, $T_0$ = {START:g}, {shape}": plain | long,
        f"First temperatures, $t_A$ = {length:g}, {shape}": plain | starts,
    }


def table(title: str, fits: dict[str, list[TemperedLDA]]) -> str:
    """What the fits reached."""
    plain = str.maketrans("", "", "$_")
    rows = []
    for name, estimators in fits.items():
        scores = [float(lda.history_["held_out_log_likelihood"][-1]) for lda in estimators]
        bounds = [-float(np.log(lda.bound_)) for lda in estimators]
        rows.append([name.translate(plain), mean_and_sd(scores, 3), mean_and_sd(bounds, 3)])
    return markdown([title.translate(plain), "held out a word", "ELBO a word, T = 1"], rows)


def draw(fits_by_title: dict[str, dict[str, list[TemperedLDA]]]) -> Any:
    """Held-out curves of all figures, on one scale."""
    figure, axes = plt.subplots(1, 3, figsize=(16, 4.6), sharey=True, layout="constrained")
    for ax, (title, fits) in zip(axes, fits_by_title.items(), strict=True):
        plot_learning_curves(fits, ax=ax)
        ax.set(title=title, ylabel="")
        ax.legend(loc="lower right")
    axes[0].set_ylabel("held-out log-likelihood a word")
    all_fits = [lda for fits in fits_by_title.values() for each in fits.values() for lda in each]
    axes[0].set_ylim(*held_out_limits(all_fits, 1.5, 0.1))
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    options = parser((__doc__ or "").partition("\n")[0], "annealing_lengths.png")
    options.add_argument("--offset", type=float, default=64, help="tau of the step sizes")
    options.add_argument("--shape", choices=SHAPES, default="exponential", help="how T falls")
    options.add_argument("--lengths", type=float, nargs="+", default=LENGTHS, help="in passes")
    options.add_argument("--length", type=float, default=LENGTH, help="of other panels, in passes")
    options.add_argument("--starts", type=float, nargs="+", default=STARTS, help="first T")
    arguments = options.parse_args(argv)
    if min(arguments.starts) < 1:
        options.error("--starts must be at least 1")
    hottest = max(START, *arguments.starts)
    if (arguments.offset + 1) ** -0.7 * hottest >= 1:
        options.error(f"--offset must be larger, or the first step from T = {hottest:g} subtracts")
    problem = load(options, arguments)
    n_passes = problem.settings["max_iter"]
    if not all(0 < passes <= n_passes for passes in (arguments.length, *arguments.lengths)):
        options.error(f"--length and --lengths must lie between 0 and the {n_passes} passes")
    settings = dict(
        doc_topic_prior=0.01,
        topic_word_prior=1.0,
        learning_offset=arguments.offset,
        n_jobs=arguments.jobs,
    )
    fits_by_title: dict[str, dict[str, list[TemperedLDA]]] = {}
    done: dict[Temperature, list[TemperedLDA]] = {}  # plain inference is in all panels
    compared = panels(arguments.lengths, arguments.length, arguments.starts, arguments.shape)
    for title, temperatures in compared.items():
        for temperature in temperatures.values():
            if temperature not in done:
                done[temperature] = [
                    fit(problem, temperature, POINTS, **settings, random_state=seed)
                    for seed in range(arguments.seeds)
                ]
        fits_by_title[title] = {
            name: done[temperature] for name, temperature in temperatures.items()
        }
        print(table(title, fits_by_title[title]), end="\n\n")
    save(draw(fits_by_title), arguments.output)


if __name__ == "__main__":
    main()
