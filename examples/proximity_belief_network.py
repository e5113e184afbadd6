"""Proximity penalties on a sigmoid belief network, from a good start and from a bad one.

    python examples/proximity_belief_network.py [--data digits] [--layers 1] [--seeds 1]
        [--iterations 2500] [--full] [--output FILE.png] [--results FILE.json]

Repeats Tables 1 and 2 of Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*,
scaled down: belief networks of one layer (Table 1) and of three (``--layers 3``, Table 2) on
binary digits, fitted by variational inference (VI), by deterministic annealing
(T = max(1, k)) and with penalties k on moving the entropy of q, its KL from the prior, or its
mean and variance.  k falls from k0 as gamma^(t / iterations); k0 is |ELBO| of the first
minibatch, as in the paper (gamma = 1e-10), or 10 (gamma = 1e-5).

The good start draws weights as usual.  In the bad one all weights of p are -10 and the prior's
probabilities .001, so that whatever q says p expects black (the paper's code takes -100 and
4,000,000 iterations, which have the time to come back from there).

``--data digits`` are scikit-learn's 1,797 images of 8 x 8 pixels, set where at least half as
bright as can be, 50 units a layer, Adam at .003.  ``--full`` is 10,000 iterations and 3 seeds.
``--data mnist_static_bin`` reads that file from the folder that the environment variable
ANNEALVI_DATA names (default ``../shared/data``), 200 units a layer, Adam at .001.  Images are
split 8:1:1 into training, validation and test.

The table gives the test images' ELBO and their log-likelihood by importance weighting with 100
draws: mean and standard deviation over the seeds.  With --results, runs are kept in a file as
they end, and those in it are not redone.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from annealvi import Annealed
from annealvi.datasets import load_images
from annealvi.deep import ProximityPenalty, SigmoidBeliefNetwork
from annealvi.inference import Monitor

Images = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
STARTS: dict[str, dict[str, float]] = {
    "good": {},
    "bad": {"initial_weight": -10.0, "initial_prior": 0.001},
}
#: k0 (None: |ELBO| of the first minibatch) and gamma.
MAGNITUDES: dict[str, tuple[float | None, float]] = {
    "k0 = ELBO": (None, 1e-10),
    "k0 = 10": (10.0, 1e-5),
}
ANNEALED = "annealing"
STATISTICS = {
    "PVI, entropy": "entropy",
    "PVI, KL": "kl",
    "PVI, mean and variance": "mean_variance",
}
METHODS = ["VI"] + [f"{name}, {k}" for k in MAGNITUDES for name in (ANNEALED, *STATISTICS)]
BATCH, DRAWS = 20, 100
POINTS, N_WATCHED = 25, 500  # records along a fit, and validation images they are of


def load(name: str) -> Images:
    """Training, validation and test images as rows of 0 and 1."""
    if name == "digits":
        X = (load_digits().data >= 8).astype(np.float32)
    else:
        try:
            X = load_images(name).data
        except FileNotFoundError as error:
            raise SystemExit(str(error)) from None
    X = X[np.random.RandomState(0).permutation(len(X))]
    tenth = len(X) // 10
    return X[: -2 * tenth], X[-2 * tenth : -tenth], X[-tenth:]


def network(method: str, start: str, first_elbo: float, **options: Any) -> SigmoidBeliefNetwork:
    """The estimator of a method.

    Annealing needs k0 before the fit: `first_elbo` is what the penalties find for themselves.
    """
    name, _, k = method.rpartition(", ")
    if name:
        k0, gamma = MAGNITUDES[k]
        if name == ANNEALED:
            first = max(1.0, BATCH * abs(first_elbo) if k0 is None else k0)
            length = min(1.0, math.log(first) / -math.log(gamma)) or None
            options["temperature"] = Annealed(first, length, shape="exponential")
        else:
            options["proximity"] = ProximityPenalty(STATISTICS[name], magnitude=k0, gamma=gamma)
    return SigmoidBeliefNetwork(batch_size=BATCH, **STARTS[start], **options)


def watcher(
    validation: NDArray, iterations: int
) -> Callable[[SigmoidBeliefNetwork, Monitor], None]:
    """A callback that records the validation score."""
    every = max(1, iterations // POINTS)

    def watch(sbn: SigmoidBeliefNetwork, monitor: Monitor) -> None:
        if monitor.step % every == 0:
            monitor.record(validation=sbn.score(validation[:N_WATCHED]))

    return watch


def run(images: Images, method: str, start: str, seed: int, options: dict[str, Any]) -> dict:
    """What a fit reached, in numbers that JSON can hold."""
    train, validation, test = images
    options = options | {"random_state": seed}
    once = network("VI", start, 0.0, **(options | {"max_iter": 1})).fit(train)
    sbn = network(method, start, once.history_["elbo"][0], **options)
    sbn.set_params(callback=watcher(validation, int(options["max_iter"]))).fit(train)
    history = sbn.history_
    at = ~np.isnan(history["validation"])
    return {
        "elbo": sbn.score(test, n_draws=20),
        "log_p": float(np.mean(sbn.score_samples(test, n_draws=DRAWS))),
        "validation": sbn.score(validation, n_draws=20),
        "seconds": float(history["seconds"][-1]),
        "steps": history["step"][at].tolist(),
        "curve": history["validation"][at].tolist(),
    }


def started(runs: list[dict[str, Any]]) -> list[str]:
    """The starts that were run."""
    return [start for start in STARTS if any(one["start"] == start for one in runs)]


def table(runs: list[dict[str, Any]]) -> str:
    """What the methods reached from each start, in Markdown."""
    starts = started(runs)
    head = "| method | runs | " + " | ".join(f"{start} start: ELBO | log p" for start in starts)
    lines = [head + " | seconds |", "|---" * (2 * len(starts) + 3) + "|"]
    for method in METHODS:
        mine = [one for one in runs if one["method"] == method]
        cells = [
            _mean_and_sd([one[name] for one in mine if one["start"] == start])
            for start in starts
            for name in ("elbo", "log_p")
        ]
        counts = {sum(one["start"] == start for one in mine) for start in starts}
        seconds = np.mean([one["seconds"] for one in mine]) if mine else math.nan
        number = "/".join(str(count) for count in sorted(counts))
        lines.append(f"| {method} | {number} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines)


def _mean_and_sd(values: list[float]) -> str:
    if not values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{spread}"


def draw(runs: list[dict[str, Any]]) -> Any:
    """Validation curves: a row a start, a column a k0, a colour a method."""
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
            for number, name in enumerate(["VI", ANNEALED, *STATISTICS]):
                method = name if name == "VI" else f"{name}, {k}"
                curves = [one for one in mine if one["method"] == method]
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
    drawn = [ax.get_legend_handles_labels() for ax in axes.flat]
    lines = {label: line for each in drawn for line, label in zip(*each, strict=True)}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=5)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="digits or mnist_static_bin")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=2500)
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="METHOD", choices=METHODS)
    parser.add_argument("--starts", nargs="+", default=list(STARTS), choices=list(STARTS))
    parser.add_argument("--full", action="store_true", help="10,000 iterations and 3 seeds")
    parser.add_argument("--output", default="proximity_belief_network.png")
    parser.add_argument("--results", type=Path, help="JSON file of runs")
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(iterations=10_000, seeds=3)
    arguments = parser.parse_args(argv)
    iterations, seeds = arguments.iterations, arguments.seeds
    if min(iterations, seeds, arguments.layers) < 1:
        parser.error("--seeds, --iterations and --layers must be at least 1")
    images = load(arguments.data)
    small = arguments.data == "digits"
    options = {
        "hidden": ([50] if small else [200]) * arguments.layers,
        "learning_rate": 3e-3 if small else 1e-3,
        "max_iter": iterations,
    }
    kept = arguments.results
    runs = json.loads(kept.read_text()) if kept is not None and kept.exists() else []
    about = {"data": arguments.data, "layers": arguments.layers, "iterations": iterations}
    for seed in range(seeds):
        for start in arguments.starts:
            for method in arguments.methods:
                key = about | {"method": method, "start": start, "seed": seed}
                if not any(key.items() <= one.items() for one in runs):
                    runs.append(key | run(images, method, start, seed, options))
                    if kept is not None:
                        kept.write_text(json.dumps(runs))
    runs = [one for one in runs if about.items() <= one.items()]
    print(table(runs))
    draw(runs).savefig(arguments.output, dpi=110)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
