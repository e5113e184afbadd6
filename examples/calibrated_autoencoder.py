"""Annealed objectives in an autoencoder
=====================================

Compares annealed objectives in an autoencoder whose posterior is a chain of transitions.

Prints a table of the ELBO, the log-likelihood and two gaps for each share of annealed steps.  Draws
the test ELBO along the fits, both gaps, and the images that the decoder makes from each layer of
the chain.

::

    python examples/calibrated_autoencoder.py [--seeds 1] [--iterations 500] [--transitions 5]
        [--draws 50] [--full] [--output calibrated_autoencoder.png] [--results FILE.json]

The script repeats Table 1 of Huang, Tan, Lacoste, Courville (2018), *Improving explorability in
variational inference with annealed variational objectives*, at a smaller size.  A variational
autoencoder of binary digits has 40 latent variables, gated layers of 300 units, ELU transitions and
a warm-up of beta over a fifth of the fit.  The posterior is a Gaussian (T = 0), or a Gaussian
followed by T = 5 gated transitions.  With probability a, a step follows the annealed objectives,
whose targets are p(z) p(x | z)^(t / T).  Otherwise the step follows the ELBO.  The random seed
determines the first weights and all noise.

Options
-------
--transitions
    The number T of transitions.
--draws
    Number of draws of the importance sampling for each -log p.
--full
    20,000 iterations, 3 seeds and 500 draws.
--results
    A file to which each finished run is written.  Runs that the file contains are not repeated.

The digits are ``mnist_static_bin.npz`` in the folder that the environment variable ANNEALVI_DATA
names (default ``../shared/data``): 50,000 images for training and 10,000 for the test.

The table contains -ELBO of 10,000 training images and of the test images, and -log p of 1,000 test
images.  The generalisation gap is the difference between the two values of -ELBO.  The variational
gap is -ELBO minus -log p, both of the same 1,000 images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from _deep import Run, Runs, grouped, parse, parser, recorded, watcher
from _shared import at_least_one, markdown, mean_and_sd, or_exit, save
from matplotlib import pyplot
from numpy.typing import NDArray

from annealvi.datasets import load_images
from annealvi.deep import VariationalAutoencoder
from annealvi.deep.training import Noise

N_COMPONENTS = 40
#: The paper's layers, and a warm-up.
NETWORK: dict[str, Any] = dict(
    units="gated-elu", hidden=(300, 300), transition_hidden=300, annealing=0.2
)
N_TEST = 10_000
N_SCORED = 1000
POINTS = 20  # scores along a fit
SHOWN = 5  # test images whose chains are drawn


class Digits(NamedTuple):
    """Binary images as rows."""

    train: NDArray[np.float32]
    test: NDArray[np.float32]
    shape: tuple[int, int]


def load() -> Digits:
    """Read the digits, and hold out the last ones."""
    images = or_exit(load_images, "mnist_static_bin")
    n_test = min(N_TEST, len(images.data) // 6)
    return Digits(images.data[:-n_test], images.data[-n_test:], images.shape)


def configurations(n_transitions: int) -> dict[str, dict[str, float]]:
    """What is compared."""
    chains = {
        f"T = {n_transitions}, a = {a:g}": dict(n_transitions=n_transitions, calibration=a)
        for a in (0.0, 0.2, 0.5)
    }
    return {"T = 0": dict(n_transitions=0), **chains}


def layers(vae: VariationalAutoencoder, X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities of the pixels by a draw of each layer of the chain of each image."""
    network = vae.network_
    x = torch.as_tensor(X)
    with torch.no_grad():
        context = network.encoder(x)
        if network.chain is None:
            z = network.head(Noise(0).normal(len(x), N_COMPONENTS), context)[0][None]
        else:
            z = network.chain.layers(len(x), Noise(0), context=context)[:, 0]
        return network.logits(z).sigmoid().numpy()


def run(digits: Digits, kind: dict[str, Any], seed: int, n: int, n_draws: int) -> Run:
    """Fit n steps, and return what they reached in numbers that JSON can hold."""
    scored = digits.test[:N_SCORED]
    watch = watcher(n, POINTS, lambda vae: {"test": vae.score(scored)})
    vae = VariationalAutoencoder(
        N_COMPONENTS, max_iter=n, callback=watch, random_state=seed, **NETWORK, **kind
    ).fit(digits.train)
    steps, test_elbos = recorded(vae.history_, "step", "test")
    return {
        "train": float(vae.score(digits.train[:N_TEST])),
        "test": float(vae.score(digits.test)),
        "scored": float(np.mean(vae.elbo(scored, n_draws=20))),
        "log_p": float(np.mean(vae.score_samples(scored, n_draws=n_draws))),
        "seconds": float(vae.history_["seconds"][-1]),
        "curve": {"step": steps, "test": test_elbos},
        "layers": np.round(255 * layers(vae, digits.test[:SHOWN])).astype(int).tolist(),
    }


#: Columns of the table, and how each follows from the numbers of a run.
COLUMNS: dict[str, Callable[[Run], float]] = {
    "train -ELBO": lambda one: -one["train"],
    "test -ELBO": lambda one: -one["test"],
    "test -log p": lambda one: -one["log_p"],
    "generalisation gap": lambda one: one["train"] - one["test"],
    "variational gap": lambda one: one["log_p"] - one["scored"],
    "minutes": lambda one: one["seconds"] / 60,
}


def table(runs: list[Run]) -> str:
    """What the configurations reached."""
    rows = []
    for name, mine in grouped(runs, lambda one: one["name"]).items():
        cells = [mean_and_sd([of(one) for one in mine], 2) for of in COLUMNS.values()]
        rows.append([name, str(len(mine)), *cells])
    return markdown(["posterior", "runs", *COLUMNS], rows)


def draw(runs: list[Run], digits: Digits) -> Any:
    """Curves, the two gaps, and what the layers of the chains decode to."""
    methods = grouped(runs, lambda one: one["name"])
    figure = pyplot.figure(figsize=(11, 6.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.05])
    curves, bounds, gaps = above.subplots(1, 3)
    names = list(methods)
    last = []
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
    span = max(last) - min(last)
    curves.set_ylim(min(last) - 0.3 * span - 0.5, max(last) + 2 * span + 5)
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
    options = parser((__doc__ or "").partition("\n")[0], 500, "calibrated_autoencoder.png")
    options.add_argument("--transitions", type=int, default=5, help="of the chains")
    options.add_argument("--draws", type=int, default=50, help="for each -log p")
    options.add_argument("--full", action="store_true", help="20,000 iterations and 3 seeds")
    arguments = parse(options, argv, iterations=20_000, seeds=3, draws=500)
    at_least_one(options, arguments, ("seeds", "iterations", "draws", "transitions"))
    digits = load()
    iterations = arguments.iterations
    runs = Runs(arguments.results)
    about = {"iterations": iterations}
    for seed in range(arguments.seeds):
        for name, kind in configurations(arguments.transitions).items():
            key = about | {"name": name, "seed": seed}
            if key not in runs:
                runs.add(key | run(digits, kind, seed, iterations, arguments.draws))
    print(table(runs.matching(about)))
    save(draw(runs.matching(about), digits), arguments.output)


if __name__ == "__main__":
    main()
