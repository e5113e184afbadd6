"""Learning curves of tempered topics
==================================

How does the held-out likelihood rise while temperatures fall?

Prints a table of the ELBO and the held-out likelihood that each method reaches.  Draws the
held-out likelihood along the fits, over passes and over seconds, and the temperatures.

::

    python examples/learning_curves.py [--seeds 2] [--jobs 2] [--output learning_curves.png]
    python examples/learning_curves.py --full [--documents 30000]
    python examples/learning_curves.py --full --corpus arxiv_big --documents 541000 --topics 500 \\
        --passes 5 --jobs 1

The script redraws Figure 2 of Mandt et al. (2016), *Variational Tempering*, with the methods of the
paper.  The methods are plain stochastic inference (SVI), annealed inference (AVI) whose T falls
linearly from 3.9 to 1 over t_A passes, a temperature that is learned from the data (VT), and a
learned temperature for each document (LVT).  The figure shows VT and LVT twice: as printed in the
paper, and with the damping that annealvi uses by default.  With each seed, all methods start from
the same random topics and read the same minibatches.

Options
-------
default
    The 3,000 abstracts of the package, of which 300 are held out (K = 30, minibatches of 32, tau =
    256, 10 passes).

--full
    The step sizes of the paper: minibatches of 100, tau = 1024.  The first --documents of
    ``arxiv_100k`` or --corpus are fitted, and the next 2,000 are held out (K = 100, 4 passes).  The
    corpus is read from the folder that the environment variable ANNEALVI_DATA names (default
    ``../shared/data``).  The last command above fits 500 topics, as the paper, to 541,000
    abstracts.

alpha = eta = 1/K and kappa = 0.7, as in the paper.  The curves show the log-likelihood per word of
the hidden half of held-out documents, with the current topics at T = 1.  The table contains its
final value, and the ELBO per training word at T = 1.  These two measures rank the methods
differently: the longer the temperature stays high, the smaller are the remaining steps when T
reaches 1. docs/record/evidence.md contains the results of larger comparisons.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _shared import markdown, mean_and_sd, save
from _topics import fit, held_out_limits, load, parser
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, Fixed, LocalVariational, TemperedLDA, Variational
from annealvi.metrics import document_completion
from annealvi.plot import plot_learning_curves, plot_temperature
from annealvi.temperature import Temperature

#: The first T of annealing: the mean of 100 temperatures from 1 to 10, even in log T.
START = float(np.geomspace(1, 10, 100).mean())
LENGTHS = (0.01, 0.1, 1.0)  # t_A, in passes
METHODS: dict[str, Temperature] = {
    "plain (SVI)": Fixed(1),
    **{
        f"annealed, {t:g} pass{'' if t == 1 else 'es'} (AVI)": Annealed(
            START, passes=t, shape="linear"
        )
        for t in LENGTHS
    },
    "learned T as printed (VT)": Variational.as_printed(),
    "learned T (VT)": Variational(),
    "T per document as printed (LVT)": LocalVariational(undamped=True, final_fraction=0.0),
    "T per document (LVT)": LocalVariational(),
}
POINTS = 40  # of a curve


def table(fits: dict[str, list[TemperedLDA]], held_out: sparse.csr_matrix) -> str:
    """What the methods reached."""
    rows = []
    for method, estimators in fits.items():
        bounds = [-float(np.log(lda.bound_)) for lda in estimators]
        scores = [document_completion(lda, held_out) for lda in estimators]
        seconds = np.mean([lda.history_["seconds"][-1] for lda in estimators])
        rows.append([method, mean_and_sd(bounds, 3), mean_and_sd(scores, 3), f"{seconds:.1f}"])
    return markdown(["method", "ELBO a word, T = 1", "held out a word", "seconds"], rows)


def draw(fits: dict[str, list[TemperedLDA]]) -> Any:
    """Held-out curves over passes and over seconds, and the first seed's temperatures."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    passes, seconds, temperatures = axes
    plot_learning_curves(fits, ax=passes)
    plot_learning_curves(fits, over="seconds", ax=seconds)
    all_fits = [lda for estimators in fits.values() for lda in estimators]
    for ax in (passes, seconds):
        ax.set_ylim(*held_out_limits(all_fits, 0.1, 0.1))
        ax.get_legend().remove()
    passes.set_ylabel("held-out log-likelihood a word")
    passes.set_title("Over passes")
    seconds.set(ylabel="", xscale="log", title="Over seconds")
    for method, estimators in fits.items():
        plot_temperature(estimators[0], ax=temperatures, label=method)
    temperatures.lines[4].set_alpha(0.4)  # as printed, T jumps in each step
    for ax in axes:
        ax.lines[-1].set_linestyle("--")  # because it hides the line of the learned T
    temperatures.set(yscale="log", title="Temperatures")
    temperatures.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    temperatures.minorticks_off()
    handles, labels = passes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    options = parser((__doc__ or "").partition("\n")[0], "learning_curves.png")
    arguments = options.parse_args(argv)
    problem = load(options, arguments)
    settings = dict(
        learning_offset=1024 if arguments.full else 256,
        n_jobs=arguments.jobs,
    )
    # VT as printed ends hot, and says so
    warnings.simplefilter("ignore", ConvergenceWarning)
    fits = {
        method: [
            fit(problem, temperature, POINTS, **settings, random_state=seed)
            for seed in range(arguments.seeds)
        ]
        for method, temperature in METHODS.items()
    }
    print(table(fits, problem.held_out))
    save(draw(fits), arguments.output)


if __name__ == "__main__":
    main()
