"""Learning curves of tempered topics
==================================

Topics over time: how held-out likelihood rises while temperatures fall.

Prints a table of the ELBO and the held-out likelihood that each method reaches.  Draws the
held-out likelihood along the fits, over passes and over seconds, and the temperatures.

::

    python examples/learning_curves.py [--seeds 2] [--jobs 2] [--output learning_curves.png]
    python examples/learning_curves.py --full [--documents 30000]

It redraws Figure 2 of Mandt et al. (2016), *Variational Tempering*.  The methods are plain
stochastic inference (SVI), deterministic annealing (DASVI, which tempers the posterior), annealed
inference (AVI, which tempers the likelihood) over a short, a middle and a long part of the fit,
one temperature learned from the data (VT) and one per document (LVT).  All start from the same
draws and see the same minibatches; each seed is another start.

Options
-------
default
    The 3,000 abstracts that come with the package, 300 of them held out (K = 30,
    minibatches of 32, tau = 256, 10 passes).

--full
    ``arxiv_100k``, its first --documents, and the next 2,000 held out (K = 100, minibatches
    of 100, tau = 64, 4 passes).  It is read from the folder that the environment variable
    ANNEALVI_DATA names (default ``../shared/data``).

alpha = .1, eta = .01 and kappa = .7.  The curves show the log-likelihood per word of the hidden
half of held-out documents, under the current topics at T = 1.  The table gives it at the end,
with the ELBO per training word at T = 1.  The two do not rank the methods alike: the longer a fit
stays hot, the smaller are the steps that are left when T reaches 1.  docs/evidence.md has the
results of larger comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _shared import markdown, mean_and_sd, save
from _topics import fit, held_out_limits, load, parser
from scipy import sparse

from annealvi import Annealed, Fixed, LocalVariational, TemperedLDA, Variational
from annealvi.metrics import document_completion
from annealvi.plot import plot_learning_curves, plot_temperature
from annealvi.temperature import Temperature

METHODS: dict[str, Temperature] = {
    "SVI": Fixed(1),
    "DASVI": Annealed(2, form="posterior"),
    "AVI, 1/10 of the fit": Annealed(length=1 / 10),
    "AVI, 1/3": Annealed(length=1 / 3),
    "AVI, 9/10": Annealed(length=9 / 10),
    "VT": Variational(),
    "LVT": LocalVariational(),
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
        ax.set_ylim(*held_out_limits(all_fits, 2, 0.2))
        ax.get_legend().remove()
    passes.set_ylabel("held-out log-likelihood a word")
    passes.set_title("Over passes")
    shortest = min(estimators[0].history_["seconds"][-1] for estimators in fits.values())
    seconds.set(ylabel="", xscale="log", title="Over seconds")
    seconds.set_xlim(left=shortest / POINTS)
    for method, estimators in fits.items():
        plot_temperature(estimators[0], ax=temperatures, label=method)
    temperatures.set(yscale="log", title="Temperatures")
    temperatures.set_yticks([1, 1.5, 2, 3, 4], ["1", "1.5", "2", "3", "4"])
    temperatures.minorticks_off()
    handles, labels = temperatures.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    options = parser((__doc__ or "").partition("\n")[0], "learning_curves.png")
    arguments = options.parse_args(argv)
    problem = load(options, arguments)
    settings = dict(
        doc_topic_prior=0.1,
        topic_word_prior=0.01,
        learning_offset=64 if arguments.full else 256,
        n_jobs=arguments.jobs,
    )
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
