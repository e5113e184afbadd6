"""Proximity penalties on a Poisson family
=======================================

Compares proximity penalties on a Poisson deep exponential family of topics.

Prints a table of the perplexity and the ELBO of held-out articles for each method, and the
topics of plain inference and of the best other method.  Draws the training ELBO and the
perplexity along each fit.

::

    python examples/proximity_poisson_def.py [--seeds 1] [--iterations 1000] [--full]
        [--average parameters] [--corpus reuters395] [--topics 20]
        [--output FILE.png] [--results FILE.json]

The script repeats Tables 4 and 5 of Altosaar, Ranganath, Blei (2018), *Proximity Variational
Inference*, at a smaller size.  A Poisson deep exponential family with one layer and K = 20 topics
is fitted to 395 news articles.  The methods are plain variational inference (VI), deterministic
annealing with the temperature T = max(1, k), and proximity variational inference (PVI).  PVI has a
penalty k on changes of the entropy of q, or of its mean and variance, averaged over a minibatch.
The penalty falls from k0 as gamma^(t / iterations), where k0 is abs(ELBO) of the first minibatch
with gamma = 1e-10, or 100 with gamma = 1e-5.

Options
-------
--full
    1,500 iterations and 3 seeds.
--average
    What is averaged: ``parameters``, as in the paper, or ``statistic``, as in its authors' code.
--corpus, --topics
    Another corpus in the folder of the data, and the number of topics, K.
--results
    A file to which each finished run is written.  Runs that the file contains are not repeated.

The articles are ``reuters395.npz`` in the folder that the environment variable ANNEALVI_DATA names
(default ``../shared/data``).  A fifth of the articles is held out.  The topics of a held-out
article are inferred from a random tenth of its words, and the perplexity is computed for its other
words (Eq. 12, see PoissonDEF.perplexity).  The row "frequencies" contains the perplexity under the
word frequencies of the training articles.  The ELBO is that of whole articles.  The table contains
the mean and the standard deviation over the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _deep import (
    ANNEALED,
    PLAIN,
    Magnitudes,
    Run,
    Runs,
    legend_below,
    method_names,
    method_options,
    of_method,
    parse,
    parser,
    recorded,
    watcher,
    with_average,
)
from _shared import at_least_one, markdown, mean_and_sd, or_exit, save
from matplotlib import pyplot
from scipy import sparse

from annealvi.datasets import load_corpus
from annealvi.deep import PoissonDEF

BATCH = 64
MAGNITUDES: Magnitudes = {"k0 = ELBO": (None, 1e-10), "k0 = 100": (100.0, 1e-5)}
STATISTICS = {"PVI, entropy": "entropy", "PVI, mean and variance": "mean_variance"}
METHODS = method_names(MAGNITUDES, STATISTICS)
POINTS = 6  # perplexities along a fit


def estimator(
    method: str, first_elbo: float, average: str = "parameters", **options: Any
) -> PoissonDEF:
    """The estimator of a method; `first_elbo` is the ELBO of an article of the first minibatch."""
    options |= method_options(method, MAGNITUDES, STATISTICS, BATCH * first_elbo, average)
    return PoissonDEF(batch_size=BATCH, **options)


def run(
    train: sparse.csr_matrix,
    test: sparse.csr_matrix,
    words: Any,
    method: str,
    average: str,
    options: dict[str, Any],
) -> Run:
    """Fit once, and return what it reached in numbers and words that JSON can hold."""
    once = estimator(PLAIN, 0.0, **(options | {"max_iter": 1})).fit(train)
    topics = estimator(method, once.history_["elbo"][0], average, **options)
    n_steps = int(options["max_iter"])
    watch = watcher(n_steps, POINTS, lambda fitted: {"perplexity": fitted.perplexity(test)})
    history = topics.set_params(callback=watch).fit(train).history_
    steps, curve = recorded(history, "step", "perplexity")
    return {
        "perplexity": topics.perplexity(test),
        "elbo": topics.score(test),
        "train_elbo": float(np.mean(history["elbo"][-50:])),
        "seconds": float(history["seconds"][-1]),
        "steps": steps,
        "curve": curve,
        "elbos": [history["step"].tolist(), history["elbo"].tolist()],
        "words": topics.top_words(8, words),
    }


def frequencies(train: sparse.csr_matrix, test: sparse.csr_matrix) -> float:
    """Perplexity where words are drawn from the training articles, each counted half more."""
    total = np.asarray(train.sum(axis=0)).ravel() + 0.5
    return float(np.exp(-np.sum(test @ np.log(total / total.sum())) / test.sum()))


def table(runs: list[Run], plain: float) -> str:
    """What the methods reached."""
    head = ["method", "runs", "perplexity", "test ELBO", "training ELBO", "seconds"]
    rows = [["frequencies", "", f"{plain:.0f}", "", "", ""]]
    for method in METHODS:
        mine = [one for one in runs if one["method"] == method]
        cells = [
            mean_and_sd([one[name] for one in mine], 0)
            for name in ("perplexity", "elbo", "train_elbo", "seconds")
        ]
        rows.append([method, str(len(mine)), *cells])
    return markdown(head, rows)


def draw(runs: list[Run], plain: float) -> Any:
    """Training ELBO above and perplexity of held-out articles below, one column per k0."""
    figure, axes = pyplot.subplots(
        2, len(MAGNITUDES), figsize=(11, 8), sharey="row", layout="constrained"
    )
    for (above, below), k in zip(axes.T, MAGNITUDES, strict=True):
        for number, name in enumerate([PLAIN, ANNEALED, *STATISTICS]):
            mine = of_method(runs, name, k)
            for i, one in enumerate(mine):
                style = dict(color=f"C{number}", alpha=0.8 if len(mine) == 1 else 0.45)
                steps, elbos = (np.array(values) for values in one["elbos"])
                width = max(1, len(steps) // 50)  # minibatches differ
                n = len(steps) // width * width
                smooth = [values[:n].reshape(-1, width).mean(axis=1) for values in (steps, elbos)]
                above.plot(*smooth, label=name if i == 0 else None, **style)
                below.plot(one["steps"], one["curve"], marker=".", **style)
        below.axhline(plain, color="0.5", ls=":")
        place = dict(xycoords=("axes fraction", "data"), ha="right", va="bottom", color="0.4")
        below.annotate("frequencies", (0.98, plain), **place)
        above.set(xlabel="iteration", title=k)
        below.set(xlabel="iteration")
    last = [one["curve"][-1] for one in runs]
    axes[1, 0].set_ylim(min(last) - 100, max(plain, *last) + 200)
    axes[0, 0].set_ylabel("training ELBO (nats an article)")
    axes[1, 0].set_ylabel("perplexity of held-out articles")
    legend_below(figure, axes[0], ncols=4)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    options = parser((__doc__ or "").partition("\n")[0], 1000, "proximity_poisson_def.png")
    options.add_argument("--methods", nargs="+", default=METHODS, metavar="METHOD", choices=METHODS)
    with_average(options)
    options.add_argument("--corpus", default="reuters395", help="of the folder of corpora")
    options.add_argument("--topics", type=int, default=20, help="K")
    options.add_argument("--full", action="store_true", help="1,500 iterations and 3 seeds")
    arguments = parse(options, argv, iterations=1500, seeds=3)
    at_least_one(options, arguments, ("seeds", "iterations", "topics"))
    corpus = or_exit(load_corpus, arguments.corpus)
    X = corpus.data[np.random.RandomState(0).permutation(corpus.data.shape[0])]
    train = X[: X.shape[0] * 4 // 5]
    test = X[X.shape[0] * 4 // 5 :]
    kept = Runs(arguments.results)
    average = arguments.average
    about = {name: getattr(arguments, name) for name in ("corpus", "topics", "iterations")}
    about["average"] = average
    for seed in range(arguments.seeds):
        for method in arguments.methods:
            key = about | {"method": method, "seed": seed}
            if key not in kept:
                settings = {"n_components": arguments.topics, "max_iter": arguments.iterations}
                settings["random_state"] = seed
                kept.add(key | run(train, test, corpus.feature_names, method, average, settings))
    runs = kept.matching(about)
    plain = frequencies(train, test)
    print(table(runs, plain))
    for plainly in (True, False):
        mine = [one for one in runs if (one["method"] == PLAIN) == plainly]
        if mine:
            best = min(mine, key=lambda one: one["perplexity"])
            print(f"\nTopics of {best['method']}, perplexity {best['perplexity']:.0f}:")
            for words in best["words"]:
                print(" ", *words)
    save(draw(runs, plain), arguments.output, dpi=110)


if __name__ == "__main__":
    main()
