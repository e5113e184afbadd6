"""Annealed objectives in an autoencoder whose posterior is a chain of transitions.

    python examples/calibrated_autoencoder.py [--seeds 1] [--iterations 500] [--transitions 5]
                                              [--draws 50] [--full] [--results FILE.json]
                                              [--output calibrated_autoencoder.png]

Repeats Table 1 of Huang, Tan, Lacoste, Courville (2018), *Improving explorability in
variational inference with annealed variational objectives*, scaled down: a variational
autoencoder of binary digits with 40 latent variables and a posterior of T = 0 or 5 gated
transitions on top of the Gaussian one.  With probability a a step follows the annealed
objectives, whose targets are p(z) p(x | z)^(t / T), and otherwise the ELBO.  A seed draws
weights and all noise.  --full makes 20,000 iterations of 3 seeds, and 500 draws.

The digits are read from ``mnist_static_bin.npz`` in the folder that the environment variable
ANNEALVI_DATA names (default ``../shared/data``): 50,000 images to train on and 10,000 to test.

The table gives -ELBO of 10,000 training images and of the test images, -log p of 1,000 of
these by importance sampling with --draws draws, the generalisation gap (the two -ELBO apart) and
the variational gap (the test -ELBO less -log p, of the same images).  The figure shows what
the decoder makes of each layer of the chain.  With --results, runs are kept in a file as they
end, and those in it are not redone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib import pyplot
from numpy.typing import NDArray

from annealvi.datasets import load_images
from annealvi.deep import VariationalAutoencoder
from annealvi.deep.noise import Noise
from annealvi.inference import Monitor

N_COMPONENTS = 40
N_TEST, N_SCORED = 10_000, 1000
POINTS = 20  # records along a fit
SHOWN = 5  # test images whose chains are drawn


class Digits(NamedTuple):
    """Binary images as rows."""

    train: NDArray[np.float32]
    test: NDArray[np.float32]
    shape: tuple[int, int]


def load() -> Digits:
    """Read the digits and hold the last out."""
    try:
        images = load_images("mnist_static_bin")
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    n_test = min(N_TEST, len(images.data) // 6)
    return Digits(images.data[:-n_test], images.data[-n_test:], images.shape)


def configurations(n_transitions: int) -> dict[str, dict[str, float]]:
    """What is compared."""
    chains = {
        f"T = {n_transitions}, a = {a:g}": dict(n_transitions=n_transitions, calibration=a)
        for a in (0.0, 0.2, 0.5)
    }
    return {"T = 0": dict(n_transitions=0), **chains}


def watcher(digits: Digits, iterations: int) -> Callable[[VariationalAutoencoder, Monitor], None]:
    """A callback that records the score of some test images."""
    every = max(1, iterations // POINTS)

    def watch(vae: VariationalAutoencoder, monitor: Monitor) -> None:
        if monitor.step % every == 0:
            monitor.record(test=vae.score(digits.test[:N_SCORED]))

    return watch


def layers(vae: VariationalAutoencoder, X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities of the pixels by a draw of each layer of the chain of each image."""
    network, x = vae.network_, torch.as_tensor(X)
    with torch.no_grad():
        context = network.encoder(x)
        if network.chain is None:
            z = network.head(Noise(0).normal(len(x), N_COMPONENTS), context)[0][None]
        else:
            z = network.chain.layers(len(x), Noise(0), context=context)[:, 0]
        return network.logits(z).sigmoid().numpy()


def run(
    digits: Digits, name: str, kind: dict[str, Any], seed: int, n: int, n_draws: int
) -> dict[str, Any]:
    """What a fit of n iterations reached, in numbers that JSON can hold."""
    vae = VariationalAutoencoder(
        N_COMPONENTS, max_iter=n, callback=watcher(digits, n), random_state=seed, **kind
    ).fit(digits.train)
    scored, history = digits.test[:N_SCORED], vae.history_
    at = ~np.isnan(history["test"])
    return {
        "name": name,
        "seed": seed,
        "iterations": n,
        "train": float(vae.score(digits.train[:N_TEST])),
        "test": float(vae.score(digits.test)),
        "scored": float(np.mean(vae.elbo(scored, n_draws=20))),
        "log_p": float(np.mean(vae.score_samples(scored, n_draws=n_draws))),
        "seconds": float(history["seconds"][-1]),
        "curve": {key: history[key][at].tolist() for key in ("step", "test")},
        "layers": np.round(255 * layers(vae, digits.test[:SHOWN])).astype(int).tolist(),
    }


#: Columns of the table: of a run's numbers.
COLUMNS: dict[str, Callable[[dict[str, Any]], float]] = {
    "train -ELBO": lambda one: -one["train"],
    "test -ELBO": lambda one: -one["test"],
    "test -log p": lambda one: -one["log_p"],
    "generalisation gap": lambda one: one["train"] - one["test"],
    "variational gap": lambda one: one["log_p"] - one["scored"],
    "minutes": lambda one: one["seconds"] / 60,
}


def grouped(runs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The runs of each configuration."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in runs:
        found.setdefault(one["name"], []).append(one)
    return found


def table(runs: list[dict[str, Any]]) -> str:
    """What the configurations reached, in Markdown."""
    lines = [f"| posterior | runs | {' | '.join(COLUMNS)} |", "|---" * (2 + len(COLUMNS)) + "|"]
    for name, mine in grouped(runs).items():
        cells = []
        for of in COLUMNS.values():
            values = [of(one) for one in mine]
            spread = f" ± {np.std(values, ddof=1):.2f}" if len(mine) > 1 else ""
            cells.append(f"{np.mean(values):.2f}{spread}")
        lines.append(f"| {name} | {len(mine)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(runs: list[dict[str, Any]], digits: Digits) -> Any:
    """Curves, the two gaps, and what the layers of the chains decode to."""
    methods = grouped(runs)
    figure = pyplot.figure(figsize=(11, 6.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.05])
    curves, bounds, gaps = above.subplots(1, 3)
    names, last = list(methods), []
    for number, (name, mine) in enumerate(methods.items()):
        color = f"C{number}"
        for one in mine:
            label = name if one is mine[0] else None
            test = -np.array(one["curve"]["test"])
            curves.plot(one["curve"]["step"], test, color=color, label=label)
            last.append(test[-1])
            bounds.plot([-one["scored"], -one["log_p"]], [number] * 2, color=color, alpha=0.5)
            bounds.plot(-one["scored"], number, "o", color=color)
            bounds.plot(-one["log_p"], number, "|", color=color, markersize=14)
            gaps.plot(one["train"] - one["test"], number, "o", color=color)
    room = max(last) - min(last)
    curves.set_ylim(min(last) - 0.3 * room - 0.5, max(last) + 2 * room + 5)
    curves.set(xlabel="iteration", ylabel="test -ELBO (nats)", title="Each seed")
    curves.legend(loc="upper right")
    for ax, title in ((bounds, "Test: -log p (bars), -ELBO (dots)"), (gaps, "Generalisation gap")):
        ax.set_yticks(range(len(names)), names if ax is bounds else [])
        ax.set(xlabel="nats", title=title, ylim=(len(names) - 0.5, -0.5))
    gaps.locator_params(axis="x", nbins=5)
    height, width = digits.shape
    pictures = {"x": 1 - digits.test[None, :SHOWN]}
    for name, mine in methods.items():
        pictures[name] = 1 - np.array(mine[0]["layers"]) / 255
    n_layers = [len(values) for values in pictures.values()]
    axes = below.subplots(1, len(pictures), gridspec_kw=dict(width_ratios=n_layers))
    for ax, (name, values) in zip(axes, pictures.items(), strict=True):
        tiles = values.reshape(len(values), -1, height, width).transpose(1, 2, 0, 3)
        ax.imshow(tiles.reshape(-1, len(values) * width), cmap="gray", vmin=0, vmax=1)
        places = (np.arange(len(values)) + 0.5) * width
        labels = [f"$z_{t}$" for t in range(len(values))] if name != "x" else ["image"]
        ax.set_xticks(places, labels)
        ax.tick_params(length=0)
        ax.set(yticks=[], title=name if name != "x" else "")
        ax.spines[:].set_visible(False)
    below.suptitle("Test images, decoded from each layer of a draw of the chain; first seed")
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--transitions", type=int, default=5, help="of the chains")
    parser.add_argument("--draws", type=int, default=50, help="for each -log p")
    parser.add_argument("--full", action="store_true", help="20,000 iterations and 3 seeds")
    parser.add_argument("--output", default="calibrated_autoencoder.png")
    parser.add_argument("--results", type=Path, help="JSON file of runs")
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(iterations=20_000, seeds=3, draws=500)
    arguments = parser.parse_args(argv)
    iterations, seeds, draws = arguments.iterations, arguments.seeds, arguments.draws
    if min(iterations, seeds, draws, arguments.transitions) < 1:
        parser.error("--seeds, --iterations, --draws and --transitions must be at least 1")
    digits, kept = load(), arguments.results
    runs = json.loads(kept.read_text()) if kept is not None and kept.exists() else []
    done = [(one["name"], one["seed"], one["iterations"]) for one in runs]
    for seed in range(seeds):
        for name, kind in configurations(arguments.transitions).items():
            if (name, seed, iterations) not in done:
                runs.append(run(digits, name, kind, seed, iterations, draws))
                if kept is not None:
                    kept.write_text(json.dumps(runs))
    runs = [one for one in runs if one["iterations"] == iterations]
    print(table(runs))
    draw(runs, digits).savefig(arguments.output, dpi=120)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
