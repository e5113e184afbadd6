"""Dead units of an autoencoder: variational inference against the orthogonal penalty.

    python examples/dead_relus.py [--seeds 1] [--iterations 2000] [--magnitude 1e-5] [--full]
                                  [--choose] [--output dead_relus.png] [--results FILE.json]

Repeats Table 3 of Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*: a
variational autoencoder of 784-200-200-100 units on binary digits, minibatches of 128, Adam at
1e-3, by plain variational inference (VI) and with a penalty of constant magnitude k on moving
W W^T of the encoder's layers away from its running average (PVI).  --full is the paper's
size: 50,000 iterations and 3 seeds.  --choose first tries k = 1, .1, ..., 1e-5 with one seed
and a tenth of the iterations on validation data.  A seed draws weights and all noise.

The digits are read from ``mnist_static_bin.npz`` and ``mnist.npz`` in the folder that the
environment variable ANNEALVI_DATA names (default ``../shared/data``): 50,000 training and
10,000 validation images of one binarisation of MNIST's 60,000, and MNIST's 10,000 test images,
each pixel of which is 1 where a uniform number lies below its brightness, as in the former.

The table gives -ELBO of the test images, -log p of the first 1,000 of them by importance
sampling with 500 draws, and the rectified units that are positive on none of the training
images.  With --results, runs are kept in a file as they end, and those in it are not redone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import pyplot
from numpy.typing import NDArray

from annealvi.datasets import load_images
from annealvi.deep import ProximityPenalty, VariationalAutoencoder
from annealvi.inference import Monitor

N_TRAIN, N_WATCHED, TEST_SEED = 50_000, 1000, 12_346
MAGNITUDES = [1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5]
POINTS = 25  # records along a fit
SIDE = 4  # samples are shown in a square
PLAIN, PENALISED = "VI", "PVI, orthogonal"


class Digits(NamedTuple):
    """Binary images as rows."""

    train: NDArray[np.float32]
    validation: NDArray[np.float32]
    test: NDArray[np.float32]
    shape: tuple[int, int]


def load() -> Digits:
    """Read the digits, and binarise MNIST's test images."""
    try:
        binary, grey = load_images("mnist_static_bin"), load_images("mnist")
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    uniform = np.random.RandomState(TEST_SEED).random_sample(grey.data_test.shape)
    test = (uniform < grey.data_test).astype(np.float32)
    n_train = min(N_TRAIN, len(binary.data) * 5 // 6)
    return Digits(binary.data[:n_train], binary.data[n_train:], test, binary.shape)


def watcher(digits: Digits, iterations: int) -> Callable[[VariationalAutoencoder, Monitor], None]:
    """A callback that records the validation score and the dead units."""
    every = max(1, iterations // POINTS)
    validation, train = digits.validation[:N_WATCHED], digits.train[: 10 * N_WATCHED]

    def watch(vae: VariationalAutoencoder, monitor: Monitor) -> None:
        if monitor.step % every == 0:
            dead = np.concatenate(list(vae.dead_units(train).values()))
            monitor.record(validation=vae.score(validation), dead=float(np.mean(dead)))

    return watch


def fit(digits: Digits, k: float, seed: int, iterations: int) -> VariationalAutoencoder:
    """One fit; k = 0 is plain variational inference."""
    return VariationalAutoencoder(
        proximity=ProximityPenalty("orthogonal", magnitude=k, gamma=1.0) if k else None,
        max_iter=iterations,
        callback=watcher(digits, iterations),
        random_state=seed,
    ).fit(digits.train)


def run(digits: Digits, k: float, seed: int, iterations: int) -> dict[str, Any]:
    """What a fit reached, in numbers that JSON can hold."""
    vae = fit(digits, k, seed, iterations)
    history = vae.history_
    at = ~np.isnan(history["validation"])
    probabilities = vae.inverse_transform(vae.sample(SIDE**2)[1])
    return {
        "k": k,
        "seed": seed,
        "iterations": iterations,
        "elbo": float(np.mean(vae.elbo(digits.test, n_draws=5))),
        "train_elbo": float(np.mean(vae.elbo(digits.train[: len(digits.test)], n_draws=5))),
        "log_p": float(np.mean(vae.score_samples(digits.test[:1000], n_draws=500))),
        "dead": {name: float(np.mean(d)) for name, d in vae.dead_units(digits.train).items()},
        "seconds": float(history["seconds"][-1]),
        "curve": {name: history[name][at].tolist() for name in ("step", "validation", "dead")},
        "samples": np.round(255 * probabilities).astype(int).tolist(),
    }


def choose(digits: Digits, iterations: int) -> float:
    """The magnitude of the best validation score after a short fit."""
    print(f"| k | validation -ELBO after {iterations} iterations | dead units |\n|---|---|---|")
    scores = []
    for k in MAGNITUDES:
        vae = fit(digits, k, 0, iterations)
        scores.append(vae.score(digits.validation))
        print(f"| {k:g} | {-scores[-1]:.2f} | {vae.history_['dead'][-1]:.3f} |", flush=True)
    return MAGNITUDES[int(np.argmax(scores))]


def table(runs: list[dict[str, Any]]) -> str:
    """What the two methods reached, in Markdown."""
    layers = list(runs[0]["dead"])
    names = [f"dead, {name}" for name in layers]
    head = ["method", "runs", "test -ELBO", "test -log p", "train -ELBO", *names, "minutes"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for method, mine in grouped(runs).items():
        cells = [
            f"{len(mine)}",
            *(_mean_and_sd([-one[name] for one in mine], 2) for name in ("elbo", "log_p")),
            _mean_and_sd([-one["train_elbo"] for one in mine], 2),
            *(_mean_and_sd([one["dead"][name] for one in mine], 3) for name in layers),
            f"{np.mean([one['seconds'] for one in mine]) / 60:.1f}",
        ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def grouped(runs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The runs of each method, plain inference first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(runs, key=lambda one: one["k"]):
        name = f"{PENALISED}, k = {one['k']:g}" if one["k"] else PLAIN
        found.setdefault(name, []).append(one)
    return found


def _mean_and_sd(values: list[float], digits: int) -> str:
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def draw(runs: list[dict[str, Any]], shape: tuple[int, int]) -> Any:
    """Curves over iterations, dead units of each layer, and the first seed's samples."""
    methods = grouped(runs)
    figure = pyplot.figure(figsize=(11, 7.5), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.25])
    curves, dead, bars = above.subplots(1, 3)
    last = []
    for number, (method, mine) in enumerate(methods.items()):
        for i, one in enumerate(mine):
            curve, style = one["curve"], dict(color=f"C{number}", label=method if i == 0 else None)
            curves.plot(curve["step"], -np.array(curve["validation"]), **style)
            dead.plot(curve["step"], 100 * np.array(curve["dead"]), **style)
            last.append(-curve["validation"][-1])
        layers = list(mine[0]["dead"])
        heights = 100 * np.array([[one["dead"][layer] for layer in layers] for one in mine])
        places = np.arange(len(layers)) + 0.4 * (number - 0.5)
        bars.bar(places, heights.mean(axis=0), 0.38, color=f"C{number}")
        for run_heights in heights:
            bars.plot(places, run_heights, "k.", markersize=4)
        bars.set_xticks(range(len(layers)), [layer.replace(" ", "\n") for layer in layers])
    curves.set_ylim(min(last) - 2, max(last) + 15)
    curves.set(xlabel="iteration", ylabel="validation -ELBO (nats)", title="Validation, each seed")
    curves.legend()
    for ax in (curves, dead):
        ax.locator_params(axis="x", nbins=4)
    dead.set(
        xlabel="iteration", ylabel="dead units (%)", ylim=(0, None), title="Dead units, all layers"
    )
    bars.set(ylabel="dead units (%)", title="Dead units of each layer, at the end")
    panels = below.subfigures(1, len(methods), squeeze=False)[0]
    for panel, (method, mine) in zip(panels, methods.items(), strict=True):
        images = 255 - np.array(mine[0]["samples"]).reshape(SIDE, SIDE, *shape)
        rows = images.transpose(0, 2, 1, 3).reshape(SIDE * shape[0], SIDE * shape[1])
        ax = panel.subplots()
        ax.imshow(rows, cmap="gray", vmin=0, vmax=255)
        ax.set(xticks=[], yticks=[])
        panel.suptitle(f"{method}: samples (probabilities), first seed", fontsize="medium")
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--magnitude", type=float, default=1e-5, help="k")
    parser.add_argument("--full", action="store_true", help="50,000 iterations and 3 seeds")
    parser.add_argument("--choose", action="store_true", help="try magnitudes first")
    parser.add_argument("--output", default="dead_relus.png")
    parser.add_argument("--results", type=Path, help="JSON file of runs")
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(iterations=50_000, seeds=3)
    arguments = parser.parse_args(argv)
    iterations, seeds = arguments.iterations, arguments.seeds
    if min(iterations, seeds) < 1 or arguments.magnitude <= 0:
        parser.error("--seeds and --iterations must be at least 1, --magnitude positive")
    digits = load()
    k = choose(digits, max(1, iterations // 10)) if arguments.choose else arguments.magnitude
    kept = arguments.results
    runs = json.loads(kept.read_text()) if kept is not None and kept.exists() else []
    done = [(one["k"], one["seed"], one["iterations"]) for one in runs]
    for seed in range(seeds):
        for magnitude in (0.0, k):
            if (magnitude, seed, iterations) not in done:
                runs.append(run(digits, magnitude, seed, iterations))
                if kept is not None:
                    kept.write_text(json.dumps(runs))
    runs = [one for one in runs if one["iterations"] == iterations]
    print(table(runs))
    draw(runs, digits.shape).savefig(arguments.output, dpi=120)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
