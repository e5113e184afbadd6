"""Proximity penalties on belief networks
======================================

Proximity penalties on sigmoid belief networks, from a good start and from a bad one.

Prints a table of the ELBO and the log-likelihood of test images for each method, and draws how
the ELBO of validation images rises along each fit.

::

    python examples/proximity_belief_network.py [--data digits] [--layers 1] [--seeds 1]
        [--iterations 2500] [--full] [--output FILE.png] [--results FILE.json]

It repeats Tables 1 and 2 of Altosaar, Ranganath, Blei (2018), *Proximity Variational
Inference*, scaled down.  Belief networks of one layer (Table 1) or of three (``--layers 3``,
Table 2) are fitted to binary digits.  The methods are plain variational inference (VI),
deterministic annealing with the temperature T = max(1, k), and proximity variational inference
(PVI): a penalty k on changes of the entropy of q, of its KL divergence from the prior, or of
its mean and variance.  k falls from k0 as gamma^(t / iterations).  k0 is abs(ELBO) of the first
minibatch with gamma = 1e-10, as in the paper, or 10 with gamma = 1e-5.

The good start draws the weights as usual.  In the bad start all weights of p are -10 and the
prior probabilities are .001, so that p expects black whatever q draws.  (The paper's code
starts from -100 and makes 4,000,000 iterations, which is long enough to recover from it.)

Options
-------
--data digits
    Scikit-learn's 1,797 images of 8 x 8 pixels.  A pixel is 1 if it is at least half
    as bright as it can be.  Layers have 50 units; Adam's learning rate is .003.
--data mnist_static_bin
    This file in the folder that the environment variable ANNEALVI_DATA
    names (default ``../shared/data``).  Layers have 200 units; the learning rate is .001.
--full
    10,000 iterations and 3 seeds.
--results
    A file that keeps each run as it ends.  Runs that are in it are not repeated.

Images are split 8:1:1 into training, validation and test.  The log-likelihood is estimated by
importance weighting with 100 draws.  The table gives the mean and the standard deviation over
the seeds.
"""

from __future__ import annotations

import math
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
MAGNITUDES: Magnitudes = {"k0 = ELBO": (None, 1e-10), "k0 = 10": (10.0, 1e-5)}
STATISTICS = {
    "PVI, entropy": "entropy",
    "PVI, KL": "kl",
    "PVI, mean and variance": "mean_variance",
}
METHODS = method_names(MAGNITUDES, STATISTICS)
BATCH, DRAWS = 20, 100
POINTS, N_WATCHED = 25, 500  # scores along a fit, and validation images of each


def load(name: str) -> Images:
    """Training, validation and test images as rows of 0 and 1."""
    if name == "digits":
        X = (load_digits().data >= 8).astype(np.float32)
    else:
        X = or_exit(load_images, name).data
    X = X[np.random.RandomState(0).permutation(len(X))]
    tenth = len(X) // 10
    return X[: -2 * tenth], X[-2 * tenth : -tenth], X[-tenth:]


def network(method: str, start: str, first_elbo: float, **options: Any) -> SigmoidBeliefNetwork:
    """The estimator of a method; `first_elbo` is the ELBO of an image of the first minibatch."""
    options |= method_options(method, MAGNITUDES, STATISTICS, BATCH * first_elbo)
    return SigmoidBeliefNetwork(batch_size=BATCH, **STARTS[start], **options)


def run(images: Images, method: str, start: str, seed: int, options: dict[str, Any]) -> Run:
    """Fit once, and return what it reached in numbers that JSON can hold."""
    train, validation, test = images
    options = options | {"random_state": seed}
    once = network(PLAIN, start, 0.0, **(options | {"max_iter": 1})).fit(train)
    sbn = network(method, start, once.history_["elbo"][0], **options)
    watched, n_steps = validation[:N_WATCHED], int(options["max_iter"])
    watch = watcher(n_steps, POINTS, lambda fitted: {"validation": fitted.score(watched)})
    sbn.set_params(callback=watch).fit(train)
    steps, curve = recorded(sbn.history_, "step", "validation")
    return {
        "elbo": sbn.score(test, n_draws=20),
        "log_p": float(np.mean(sbn.score_samples(test, n_draws=DRAWS))),
        "validation": sbn.score(validation, n_draws=20),
        "seconds": float(sbn.history_["seconds"][-1]),
        "steps": steps,
        "curve": curve,
    }


def started(runs: list[Run]) -> list[str]:
    """The starts that were run."""
    return [start for start in STARTS if any(one["start"] == start for one in runs)]


def table(runs: list[Run]) -> str:
    """What the methods reached from each start."""
    starts = started(runs)
    head = ["method", "runs"]
    for start in starts:
        head += [f"{start} start: ELBO", "log p"]
    rows = []
    for method in METHODS:
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


def draw(runs: list[Run]) -> Any:
    """Validation curves: one row per start, one column per k0, one colour per method."""
    starts = started(runs)
    figure, axes = pyplot.subplots(
        len(starts),
        len(MAGNITUDES),
        figsize=(11, 0.6 + 3.7 * len(starts)),
        layout="constrained",
        squeeze=False,
    )
    for row, start in zip(axes, starts, strict=True):
        mine = [one for one in runs if one["start"] == start]
        ends = [one["curve"][-1] for one in mine]
        for ax, k in zip(row, MAGNITUDES, strict=True):
            for number, name in enumerate([PLAIN, ANNEALED, *STATISTICS]):
                curves = of_method(mine, name, k)
                for i, one in enumerate(curves):
                    colour = f"C{number}"
                    ax.plot(one["steps"], one["curve"], color=colour, alpha=0.35, lw=1)
                    if i == 0:
                        mean = np.mean([c["curve"] for c in curves], axis=0)
                        ax.plot(one["steps"], mean, color=colour, lw=2, label=name)
            room = max(max(ends) - min(ends), 1.0)  # early values are far below
            ax.set_ylim(max(ends) - 2.5 * room, max(ends) + 0.15 * room)
            ax.set(xlabel="iteration", title=f"{start} start, {k}")
        row[0].set_ylabel("validation ELBO (nats an image)")
    legend_below(figure, axes.flat, ncols=5)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    options = parser((__doc__ or "").partition("\n")[0], 2500, "proximity_belief_network.png")
    options.add_argument("--data", default="digits", help="digits or mnist_static_bin")
    options.add_argument("--layers", type=int, default=1, help="of bits")
    options.add_argument("--methods", nargs="+", default=METHODS, metavar="METHOD", choices=METHODS)
    options.add_argument("--starts", nargs="+", default=list(STARTS), choices=list(STARTS))
    options.add_argument("--full", action="store_true", help="10,000 iterations and 3 seeds")
    arguments = parse(options, argv, iterations=10_000, seeds=3)
    at_least_one(options, arguments, ("seeds", "iterations", "layers"))
    images = load(arguments.data)
    small = arguments.data == "digits"
    settings = {
        "hidden": ([50] if small else [200]) * arguments.layers,
        "learning_rate": 3e-3 if small else 1e-3,
        "max_iter": arguments.iterations,
    }
    runs = Runs(arguments.results)
    about = {name: getattr(arguments, name) for name in ("data", "layers", "iterations")}
    for seed in range(arguments.seeds):
        for start in arguments.starts:
            for method in arguments.methods:
                key = about | {"method": method, "start": start, "seed": seed}
                if key not in runs:
                    runs.add(key | run(images, method, start, seed, settings))
    print(table(runs.matching(about)))
    save(draw(runs.matching(about)), arguments.output, dpi=110)


if __name__ == "__main__":
    main()
