"""Topics with and without cooling
===============================

How does cooling change the prediction, coherence and stability of topics, and the time of a fit?

Fits LDA to the bundled abstracts with annealvi's default, without cooling, with
``preset="sklearn"``, and once with scikit-learn.  Prints a table.  Draws the temperatures and the
learning curves over passes and over seconds.

::

    python examples/temperatures.py [--seeds 3] [--output temperatures.png]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _shared import at_least_one, markdown, mean_and_sd, save
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import train_test_split

from annealvi import TemperedLDA
from annealvi.callbacks import HeldOut
from annealvi.datasets import load_arxiv_abstracts
from annealvi.metrics import document_completion, topic_coherence, topic_stability
from annealvi.plot import plot_learning_curves, plot_temperature

TOPICS = 30
DEFAULT = "annealvi, the default"
#: Rows of the table, and the parameters of TemperedLDA besides the number of topics.
METHODS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "one start": {"n_init": 1},
    "one start without cooling": {"n_init": 1, "temperature": 1},
    'preset="sklearn"': {"preset": "sklearn", "learning_method": "online"},
}


class Watch:
    """A callback that records the learning curve and counts its own time."""

    def __init__(self, held_out: Any) -> None:
        self.curve = HeldOut(held_out)
        self.seconds = 0.0

    def __call__(self, estimator: TemperedLDA, monitor: Any) -> None:
        start = time.perf_counter()
        self.curve(estimator, monitor)
        self.seconds += time.perf_counter() - start


def fit(estimator: Any, train: Any, held_out: Any, watch: Watch | None = None) -> dict[str, float]:
    """Fit, and measure the topics; seconds are those of the fit alone."""
    start = time.perf_counter()
    estimator.fit(train)
    seconds = time.perf_counter() - start - (watch.seconds if watch else 0.0)
    return {
        "held out": float(document_completion(estimator, held_out)),
        "NPMI": float(topic_coherence(estimator, train).mean()),
        "seconds": seconds,
    }


def row(name: str, fits: Sequence[Any], scores: Sequence[dict[str, float]]) -> list[str]:
    """A row of the table."""
    pairs = [topic_stability(*pair) for pair in combinations(fits, 2)]
    held_out, npmi = ([one[measure] for one in scores] for measure in ("held out", "NPMI"))
    seconds = f"{np.mean([one['seconds'] for one in scores]):.2f}"
    stability = f"{np.mean(pairs):.2f}" if pairs else "–"
    return [name, mean_and_sd(held_out, 3), mean_and_sd(npmi, 3), stability, seconds]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="fits of each method")
    parser.add_argument("--output", default="temperatures.png")
    options = parser.parse_args(arguments)
    at_least_one(parser, options, ["seeds"])
    train, held_out = train_test_split(load_arxiv_abstracts().data, test_size=300, random_state=0)

    fits: dict[str, list[TemperedLDA]] = {}
    rows = []
    ends = {}
    for name, parameters in METHODS.items():
        scores = []
        fits[name] = []
        for seed in range(options.seeds):
            watch = Watch(held_out)
            lda = TemperedLDA(TOPICS, **parameters, random_state=seed, callback=watch)
            scores.append(fit(lda, train, held_out, watch))
            fits[name].append(lda)
        rows.append(row(name, fits[name], scores))
        ends[name] = [np.mean([one[what] for one in scores]) for what in ("seconds", "held out")]
    theirs = LatentDirichletAllocation(TOPICS, learning_method="online", random_state=0)
    rival = fit(theirs, train, held_out)
    rows.append(row("scikit-learn, one seed", [theirs], [rival]))
    head = ["", "held out, nats a word", "NPMI", "stability", "seconds a fit"]
    print(markdown(head, rows))

    several = fits.pop(DEFAULT)  # has passes of many starts, and the curve of one would mislead
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    for name, estimators in fits.items():
        plot_temperature(estimators[0], ax=left, label=name)
    left.set_title("Temperature")
    left.legend()
    plot_learning_curves(fits, ax=middle)
    middle.set_title("Over passes")
    plot_learning_curves(fits, over="seconds", ax=right)
    right.plot(rival["seconds"], rival["held out"], "k*", ms=10, label="scikit-learn, end of fit")
    right.plot(
        *ends[DEFAULT], "r*", ms=10, label=f"{DEFAULT} ({several[0].settings_['n_init']} starts)"
    )
    right.set_xscale("log")
    right.set_title("Over seconds")
    right.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
