"""Topics over time: how held-out likelihood rises while temperatures fall.

    python examples/learning_curves.py [--seeds 2] [--jobs 2] [--output learning_curves.png]
    python examples/learning_curves.py --full [--documents 30000]

Redraws Figure 2 of Mandt et al. (2016), *Variational Tempering*: plain stochastic inference
(SVI), deterministic annealing (DASVI, which tempers the posterior), annealed inference (AVI,
which tempers the likelihood) over a short, a middle and a long part of the fit, one
temperature learned from the data (VT) and one a document (LVT).  All start from the same
draws and see the same minibatches; a seed is another start.

By default on the 3,000 abstracts that come with the package, 300 of them held out (K = 30,
minibatches of 32, tau = 256, 10 passes).  With --full on ``arxiv_100k`` (the first
--documents, and 2,000 after them held out; K = 100, minibatches of 100, tau = 64, 4 passes),
which is read from the folder that the environment variable ANNEALVI_DATA names (default
``../shared/data``).  alpha = .1, eta = .01, kappa = .7.

The curves are of the log-likelihood of the hidden half of held-out documents, a word, by the
topics as they are, at T = 1.  The table gives it at the end, with the ELBO of a training word
at T = 1: the two do not put the methods in one order, because the longer it stays hot, the
smaller the steps that are left when T comes to 1.

The paper reports LVT above VT above AVI above SVI.  Here all annealed methods are above SVI,
and there is little between VT, LVT and the better of the schedules.  Held out with --full
--seeds 2: SVI -7.536, DASVI -7.478, AVI -7.410, -7.381 and -7.355, VT -7.367, LVT -7.380, in
the same order of ELBO -7.770, -7.707, -7.635, -7.646, -7.735, -7.650, -7.649.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split

from annealvi import Annealed, Fixed, LocalVariational, TemperedLDA, Variational
from annealvi.datasets import load_arxiv_abstracts, load_corpus
from annealvi.metrics import HeldOut, document_completion
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
N_HELD_OUT = 2000  # of the large corpus
POINTS = 40  # of a curve


class Problem(NamedTuple):
    """Documents and how they are fitted."""

    train: sparse.csr_matrix
    held_out: sparse.csr_matrix
    settings: dict[str, Any]


def load(full: bool, n_documents: int) -> Problem:
    """The bundled abstracts, or the first of the large corpus."""
    if not full:
        abstracts = load_arxiv_abstracts().data
        train, held_out = train_test_split(abstracts, test_size=300, random_state=0)
        settings = dict(n_components=30, learning_offset=256, batch_size=32, max_iter=10)
        return Problem(train, held_out, settings)
    try:
        X = load_corpus("arxiv_100k").data
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    settings = dict(n_components=100, learning_offset=64, batch_size=100, max_iter=4)
    return Problem(X[:n_documents], X[n_documents:][:N_HELD_OUT], settings)


def fit(problem: Problem, temperature: Temperature, seed: int, jobs: int) -> TemperedLDA:
    """One fit, with its learning curve in ``history_``."""
    n_passes = problem.settings["max_iter"]
    return TemperedLDA(
        **problem.settings,
        doc_topic_prior=0.1,
        topic_word_prior=0.01,
        learning_method="online",
        learning_decay=0.7,
        document_init="constant",
        preset="sklearn",  # the mean field, from random starts
        temperature=temperature,
        callback=HeldOut(problem.held_out, every=n_passes / POINTS),
        random_state=seed,
        n_jobs=jobs,
    ).fit(problem.train)


def table(fits: dict[str, list[TemperedLDA]], held_out: sparse.csr_matrix) -> str:
    """What the methods reached, in Markdown."""

    def spread(values: list[float]) -> str:
        deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        return f"{np.mean(values):.3f}{deviation}"

    lines = ["| method | ELBO a word, T = 1 | held out a word | seconds |", "|---|---|---|---|"]
    for method, estimators in fits.items():
        bounds = [-float(np.log(lda.bound_)) for lda in estimators]
        scores = [document_completion(lda, held_out) for lda in estimators]
        seconds = np.mean([lda.history_["seconds"][-1] for lda in estimators])
        lines.append(f"| {method} | {spread(bounds)} | {spread(scores)} | {seconds:.1f} |")
    return "\n".join(lines)


def draw(fits: dict[str, list[TemperedLDA]]) -> Any:
    """Held-out curves over passes and over seconds, and the first seed's temperatures."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    passes, seconds, temperatures = axes
    plot_learning_curves(fits, ax=passes)
    plot_learning_curves(fits, over="seconds", ax=seconds)
    heldout = [lda.history_["heldout"] for estimators in fits.values() for lda in estimators]
    best, worst = max(curve.max() for curve in heldout), min(curve[-1] for curve in heldout)
    for ax in (passes, seconds):  # the beginnings would hide the ends
        ax.set_ylim(worst - 2 * (best - worst), best + 0.2 * (best - worst))
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
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="fit arxiv_100k")
    parser.add_argument("--documents", type=int, default=30_000, help="of arxiv_100k")
    parser.add_argument("--topics", type=int, help="by default 30, with --full 100")
    parser.add_argument("--passes", type=int, help="by default 10, with --full 4")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", default="learning_curves.png")
    arguments = parser.parse_args(argv)
    for name in ("seeds", "documents", "topics", "passes"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1")
    problem = load(arguments.full, arguments.documents)
    if problem.held_out.shape[0] == 0:
        parser.error("--documents leaves none of the corpus to hold out")
    for name, value in (("n_components", arguments.topics), ("max_iter", arguments.passes)):
        if value is not None:
            problem.settings[name] = value
    fits: dict[str, list[TemperedLDA]] = {}
    for method, temperature in METHODS.items():
        fits[method] = [
            fit(problem, temperature, seed, arguments.jobs) for seed in range(arguments.seeds)
        ]
    print(table(fits, problem.held_out))
    draw(fits).savefig(arguments.output, dpi=120)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
