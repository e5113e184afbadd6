"""Proximity penalties on belief networks
======================================

Compares proximity penalties on sigmoid belief networks, from a good start and from a bad start.

Prints a table of the ELBO and the log-likelihood of test images for each method.  Draws the ELBO of
validation images along each fit.

::

    python examples/proximity_belief_network.py [--data digits] [--layers 1] [--seeds 1]
        [--iterations 2500] [--average parameters] [--full]
        [--output FILE.png] [--results FILE.json]
    python examples/proximity_belief_network.py --data mnist_static_bin --full --device cuda

The script repeats Tables 1 and 2 of Altosaar, Ranganath, Blei (2018), *Proximity Variational
Inference*, at a smaller size.  Belief networks of one layer (Table 1) or of three layers
(``--layers 3``, Table 2) are fitted to binary digits.  The methods are plain variational inference
(VI), deterministic annealing with the temperature T = max(1, k), and proximity variational
inference (PVI).  PVI has a penalty k on changes of the entropy of q, of its KL divergence from the
prior, or of its mean and variance.  The penalty falls from k0 as gamma^(t / iterations).  On
digits, k0 is abs(ELBO) of the first minibatch with gamma = 1e-10, or 10 with gamma = 1e-5.  On
MNIST, k0 is always abs(ELBO), and several values of gamma are tried, as in the code of the paper.
A second table chooses gamma by the ELBO of the validation images.

The good start draws the weights as usual. In the bad start all weights of p are -10 and the prior
probabilities are 0.001, so p predicts black images for all draws of q.  (The code of the paper
starts from -100, and makes 4,000,000 iterations, which are enough to recover from the bad start.)

Options
-------
--data digits
    The 1,797 images of 8 x 8 pixels in scikit-learn.  A pixel is 1 if it has at least half of the
    greatest brightness.  Layers have 50 units. 80% of the images are for training, 10% for
    validation and 10% for the test.
--data mnist_static_bin
    This file in the folder that the environment variable ANNEALVI_DATA
    names (default ``../shared/data``).  Layers have 200 units.  The last 10,000 of the 60,000
    training images are for validation.
--full
    On digits, 10,000 iterations and 3 seeds.  On MNIST, the settings of the paper's code: 4,000,000
    iterations with learning rate 0.001, a bad start from -100, eight values of gamma, and 5,000
    draws for the log-likelihood.  These settings need a GPU.
--learning-rate, --gammas, --draws
    Adam's step size (default 0.003), values of gamma on MNIST (default 1e-10 and 1e-30), and the
    number of draws for the log-likelihood (default 100).
--average
    What is averaged: ``parameters``, as in the paper, or ``statistic``, as in its authors' code.
--results
    A file to which each finished run is written.  Runs that the file contains are not repeated.

The log-likelihood is estimated by importance weighting.  The table contains the mean and the
standard deviation over the seeds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
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
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from annealvi.datasets import load_images
from annealvi.deep import SigmoidBeliefNetwork

Images = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
STARTS: dict[str, dict[str, float]] = {
    "good": {},
    "bad": {"initial_weight": -10.0, "initial_prior": 0.001},
}
#: The settings of the paper's code.
PAPER_WEIGHT = -100.0
PAPER_RATE = 1e-3
PAPER_STEPS = 4_000_000
PAPER_DRAWS = 5000
PAPER_GAMMAS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-20, 1e-30)
#: Magnitudes on digits.
MAGNITUDES: Magnitudes = {"k0 = ELBO": (None, 1e-10), "k0 = 10": (10.0, 1e-5)}
STATISTICS = {
    "PVI, entropy": "entropy",
    "PVI, KL": "kl",
    "PVI, mean and variance": "mean_variance",
}
NAMES = [PLAIN, ANNEALED, *STATISTICS]
BATCH = 20
# scores along a fit, and validation images of each
POINTS = 25
N_WATCHED = 500


def load(name: str) -> Images:
    """Training, validation and test images as rows of 0 and 1."""
    if name == "digits":
        X = (load_digits().data >= 8).astype(np.float32)
    else:
        images = or_exit(load_images, name)
        return images.data[:-10_000], images.data[-10_000:], images.data_test
    X = X[np.random.RandomState(0).permutation(len(X))]
    tenth = len(X) // 10
    return X[: -2 * tenth], X[-2 * tenth : -tenth], X[-tenth:]


def grid(gammas: Iterable[float]) -> Magnitudes:
    """The magnitudes on MNIST: all start at the ELBO."""
    return {f"gamma = {gamma:g}": (None, gamma) for gamma in gammas}


def network(
    method: str,
    start: str,
    first_elbo: float,
    magnitudes: Magnitudes = MAGNITUDES,
    average: str = "parameters",
    **options: Any,
) -> SigmoidBeliefNetwork:
    """The estimator of a method; `first_elbo` is the ELBO of an image of the first minibatch."""
    options |= method_options(method, magnitudes, STATISTICS, BATCH * first_elbo, average)
    return SigmoidBeliefNetwork(batch_size=BATCH, **(STARTS[start] | options))


def run(
    images: Images,
    method: str,
    start: str,
    magnitudes: Magnitudes,
    draws: int,
    average: str,
    options: dict[str, Any],
) -> Run:
    """Fit once, and return what it reached in numbers that JSON can hold."""
    train, validation, test = images
    if start == "good":
        options = {name: value for name, value in options.items() if name != "initial_weight"}
    once = network(PLAIN, start, 0.0, **(options | {"max_iter": 1})).fit(train)
    sbn = network(method, start, once.history_["elbo"][0], magnitudes, average, **options)
    watched = validation[:N_WATCHED]
    n_steps = int(options["max_iter"])
    watch = watcher(n_steps, POINTS, lambda fitted: {"validation": fitted.score(watched)})
    sbn.set_params(callback=watch).fit(train)
    steps, curve = recorded(sbn.history_, "step", "validation")
    return {
        "elbo": sbn.score(test, n_draws=20),
        "log_p": float(np.mean(sbn.score_samples(test, n_draws=draws))),
        "validation": sbn.score(validation, n_draws=20),
        "seconds": float(sbn.history_["seconds"][-1]),
        "steps": steps,
        "curve": curve,
    }


def started(runs: list[Run]) -> list[str]:
    """The starts that were run."""
    return [start for start in STARTS if any(one["start"] == start for one in runs)]


def table(runs: list[Run], methods: Iterable[str]) -> str:
    """What the methods reached from each start."""
    starts = started(runs)
    head = ["method", "runs"]
    for start in starts:
        head += [f"{start} start: ELBO", "log p"]
    rows = []
    for method in methods:
        mine = [one for one in runs if one["method"] == method]
        cells = [
            mean_and_sd([one[name] for one in mine if one["start"] == start], 2)
            for start in starts
            for name in ("elbo", "log_p")
        ]
        counts = {sum(one["start"] == start for one in mine) for start in starts}
        seconds = np.mean([one["seconds"] for one in mine]) if mine else math.nan
        number = "/".join(str(count) for count in sorted(counts))
        rows.append([method, number, *cells, f"{seconds:.0f}"])
    return markdown([*head, "seconds"], rows)


def chosen(runs: list[Run], magnitudes: Magnitudes) -> str:
    """What each method reached with the magnitude that is best on the validation images."""
    head = ["method"]
    rows = []
    starts = started(runs)
    for start in starts:
        head += [f"{start} start", "ELBO", "log p"]
    for name in NAMES:
        cells: list[str] = []
        for start in starts:
            tried = {
                k: [one for one in of_method(runs, name, k) if one["start"] == start]
                for k in magnitudes
            }
            tried = {k: mine for k, mine in tried.items() if mine}
            if not tried:
                cells += ["–"] * 3
                continue
            best = max(tried, key=lambda k: float(np.mean([one["validation"] for one in tried[k]])))
            cells.append("" if name == PLAIN else best)
            cells += [mean_and_sd([one[x] for one in tried[best]], 2) for x in ("elbo", "log_p")]
        rows.append([name, *cells])
    return markdown(head, rows)


def draw(runs: list[Run], magnitudes: Magnitudes) -> Any:
    """Validation curves: one row per start, one column per k0, one colour per method."""
    starts = started(runs)
    figure, axes = pyplot.subplots(
        len(starts),
        len(magnitudes),
        figsize=(5.5 * len(magnitudes), 0.6 + 3.7 * len(starts)),
        layout="constrained",
        squeeze=False,
    )
    for row, start in zip(axes, starts, strict=True):
        mine = [one for one in runs if one["start"] == start]
        ends = [one["curve"][-1] for one in mine]
        for ax, k in zip(row, magnitudes, strict=True):
            for number, name in enumerate(NAMES):
                curves = of_method(mine, name, k)
                for i, one in enumerate(curves):
                    colour = f"C{number}"
                    ax.plot(one["steps"], one["curve"], color=colour, alpha=0.35, lw=1)
                    if i == 0:
                        mean = np.mean([c["curve"] for c in curves], axis=0)
                        ax.plot(one["steps"], mean, color=colour, lw=2, label=name)
            span = max(max(ends) - min(ends), 1.0)  # early values are far below
            ax.set_ylim(max(ends) - 2.5 * span, max(ends) + 0.15 * span)
            ax.set(xlabel="iteration", title=f"{start} start, {k}")
        row[0].set_ylabel("validation ELBO (nats an image)")
    legend_below(figure, axes.flat, ncols=5)
    return figure


def arguments_of(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; --full has other defaults on MNIST than on digits."""
    options = parser((__doc__ or "").partition("\n")[0], 2500, "proximity_belief_network.png")
    options.add_argument("--data", default="digits", help="digits or mnist_static_bin")
    options.add_argument("--layers", type=int, default=1, help="of bits")
    options.add_argument("--methods", nargs="+", metavar="METHOD", help="rows of the table")
    options.add_argument("--starts", nargs="+", default=list(STARTS), choices=list(STARTS))
    options.add_argument("--learning-rate", type=float, default=3e-3, help="of Adam")
    options.add_argument("--initial-weight", type=float, default=-10.0, help="of the bad start")
    options.add_argument("--gammas", nargs="+", type=float, default=[1e-10, 1e-30], help="on MNIST")
    options.add_argument("--draws", type=int, default=100, help="for the log-likelihood")
    with_average(options)
    options.add_argument("--device", default="cpu", help="cpu or cuda")
    options.add_argument("--full", action="store_true", help="the settings of the study")
    if options.parse_known_args(argv)[0].data != "digits":
        paper = {"initial_weight": PAPER_WEIGHT, "learning_rate": PAPER_RATE, "draws": PAPER_DRAWS}
        steps = {"iterations": PAPER_STEPS, "gammas": list(PAPER_GAMMAS), "seeds": 1}
        arguments = parse(options, argv, **paper, **steps)
    else:
        arguments = parse(options, argv, iterations=10_000, seeds=3)
    at_least_one(options, arguments, ("seeds", "iterations", "layers", "draws"))
    digits = arguments.data == "digits"
    arguments.magnitudes = MAGNITUDES if digits else grid(arguments.gammas)
    every = method_names(arguments.magnitudes, STATISTICS)
    unknown = sorted(set(arguments.methods or ()) - set(every))
    if unknown:
        options.error(f"--methods must be among {every}, not {unknown}")
    arguments.methods = arguments.methods or every
    return arguments


def main(argv: Sequence[str] | None = None) -> None:
    arguments = arguments_of(argv)
    images = load(arguments.data)
    settings = {
        "hidden": ([50] if arguments.data == "digits" else [200]) * arguments.layers,
        "learning_rate": arguments.learning_rate,
        "max_iter": arguments.iterations,
        "initial_weight": arguments.initial_weight,
        "device": arguments.device,
    }
    kept = Runs(arguments.results)
    methods = arguments.methods
    magnitudes = arguments.magnitudes
    about = {name: getattr(arguments, name) for name in ("data", "layers", "iterations", "average")}
    for seed in range(arguments.seeds):
        for start in arguments.starts:
            for method in methods:
                key = about | {"method": method, "start": start, "seed": seed}
                if key not in kept:
                    options = settings | {"random_state": seed}
                    result = run(
                        images,
                        method,
                        start,
                        magnitudes,
                        arguments.draws,
                        arguments.average,
                        options,
                    )
                    kept.add(key | result)
    runs = kept.matching(about)
    print(table(runs, method_names(magnitudes, STATISTICS)))
    if magnitudes != MAGNITUDES:
        print(f"\nThe best gamma of each:\n\n{chosen(runs, magnitudes)}")
    save(draw(runs, magnitudes), arguments.output, dpi=110)


if __name__ == "__main__":
    main()
