"""Dead units of an autoencoder
============================

Dead units of an autoencoder: compares plain variational inference with the orthogonal penalty.

Prints a table of the test ELBO, the test log-likelihood and the dead units of each layer for both
methods.  Draws validation curves, the dead units along the fits, and images that the models
generate.

::

    python examples/dead_relus.py [--seeds 1] [--iterations 2000] [--magnitude 1e-5] [--full]
        [--choose] [--output dead_relus.png] [--results FILE.json]

The script repeats Table 3 of Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*: a
variational autoencoder of 784-200-200-100 units on binary digits, with minibatches of 128 and Adam
at 1e-3.  The first method is plain variational inference (VI).  The second (PVI) has a penalty of
constant magnitude k, which keeps W W^T of the encoder's layers near its running average.  The
random seed determines the first weights and all noise.

Options
-------
--full
    The size of the paper: 50,000 iterations, with 3 seeds.
--choose
    First try k = 1, 0.1, ..., 1e-5 with one seed and a tenth of the iterations, and use the k with
    the best score on the validation images.
--average
    What is averaged: ``parameters``, as in the paper, or ``statistic``, as in its authors' code.
--results
    A file to which each finished run is written.  Runs that the file contains are not repeated.

The digits are ``mnist_static_bin.npz`` and ``mnist.npz`` in the folder that the environment
variable ANNEALVI_DATA names (default ``../shared/data``).  The first file contains a binarisation
of MNIST's 60,000 images: 50,000 for training and 10,000 for validation.  The second file contains
MNIST's 10,000 test images.  A pixel is set to 1 if its brightness is above a uniform random number,
as in the first file.

The table contains -ELBO of the test images, and -log p of the first 1,000 test images by importance
sampling with 500 draws.  A unit is dead if it is not positive on any training image; the table
contains the share of dead units.  The measure of the paper is also shown for the encoder's layers:
the share of the units' inputs that are below zero.  A latent variable is in use if its mean has a
variance above 0.01 over the test images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from _deep import PLAIN, Run, Runs, grouped, parse, parser, recorded, watcher, with_average
from _shared import markdown, mean_and_sd, or_exit, save
from matplotlib import pyplot
from numpy.typing import NDArray

from annealvi.datasets import load_images
from annealvi.deep import ProximityPenalty, VariationalAutoencoder

N_TRAIN = 50_000
N_WATCHED = 1000
TEST_SEED = 12_346
MAGNITUDES = [1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5]
POINTS = 25  # scores along a fit
SIDE = 4  # samples are shown in a square
PENALISED = "PVI, orthogonal"


class Digits(NamedTuple):
    """Binary images as rows."""

    train: NDArray[np.float32]
    validation: NDArray[np.float32]
    test: NDArray[np.float32]
    shape: tuple[int, int]


def load() -> Digits:
    """Read the digits, and binarise MNIST's test images."""
    binary, grey = (or_exit(load_images, name) for name in ("mnist_static_bin", "mnist"))
    uniform = np.random.RandomState(TEST_SEED).random_sample(grey.data_test.shape)
    test = (uniform < grey.data_test).astype(np.float32)
    n_train = min(N_TRAIN, len(binary.data) * 5 // 6)
    return Digits(binary.data[:n_train], binary.data[n_train:], test, binary.shape)


def fit(
    digits: Digits, k: float, seed: int, iterations: int, average: str
) -> VariationalAutoencoder:
    """Fit once; k = 0 is plain variational inference."""
    validation = digits.validation[:N_WATCHED]
    train = digits.train[: 10 * N_WATCHED]

    def measure(vae: VariationalAutoencoder) -> dict[str, float]:
        dead = np.concatenate(list(vae.dead_units(train).values()))
        return {"validation": vae.score(validation), "dead": float(np.mean(dead))}

    penalty = ProximityPenalty("orthogonal", magnitude=k, gamma=1.0, average=average)
    return VariationalAutoencoder(
        proximity=penalty if k else None,
        max_iter=iterations,
        callback=watcher(iterations, POINTS, measure),
        random_state=seed,
    ).fit(digits.train)


def below_zero(vae: VariationalAutoencoder, X: NDArray[np.float32]) -> list[float]:
    """Share of inputs of rectified units that are not positive, of each layer of the encoder."""
    with torch.no_grad():
        layers = vae.network_.encoder.activations(torch.as_tensor(X))
    return [float((layer == 0).float().mean()) for layer in layers]


def run(digits: Digits, k: float, seed: int, iterations: int, average: str) -> Run:
    """Fit once, and return what it reached in numbers that JSON can hold."""
    vae = fit(digits, k, seed, iterations, average)
    names = ("step", "validation", "dead")
    probabilities = vae.inverse_transform(vae.sample(SIDE**2)[1])
    return {
        "elbo": float(np.mean(vae.elbo(digits.test, n_draws=5))),
        "train_elbo": float(np.mean(vae.elbo(digits.train[: len(digits.test)], n_draws=5))),
        "log_p": float(np.mean(vae.score_samples(digits.test[:1000], n_draws=500))),
        "dead": {name: float(np.mean(d)) for name, d in vae.dead_units(digits.train).items()},
        "below_zero": below_zero(vae, digits.test),
        "used": int(np.sum(vae.transform(digits.test).var(axis=0) > 0.01)),
        "seconds": float(vae.history_["seconds"][-1]),
        "curve": dict(zip(names, recorded(vae.history_, *names), strict=True)),
        "samples": np.round(255 * probabilities).astype(int).tolist(),
    }


def choose(digits: Digits, iterations: int, average: str) -> float:
    """The magnitude of the best validation score after a short fit."""
    print(f"| k | validation -ELBO after {iterations} iterations | dead units |\n|---|---|---|")
    scores = []
    for k in MAGNITUDES:
        vae = fit(digits, k, 0, iterations, average)
        scores.append(vae.score(digits.validation))
        print(f"| {k:g} | {-scores[-1]:.2f} | {vae.history_['dead'][-1]:.3f} |", flush=True)
    return MAGNITUDES[int(np.argmax(scores))]


def table(runs: list[Run]) -> str:
    """What the two methods reached."""
    layers = list(runs[0]["dead"])
    names = [f"dead, {name}" for name in layers]
    n_encoder = len(runs[0]["below_zero"])
    names += [f"below zero, {name}" for name in layers[:n_encoder]]
    head = ["method", "runs", "test -ELBO", "test -log p", "train -ELBO", *names, "used", "minutes"]
    rows = []
    for method, mine in by_method(runs).items():
        losses = ("elbo", "log_p", "train_elbo")
        row = [
            method,
            f"{len(mine)}",
            *(mean_and_sd([-one[name] for one in mine], 2) for name in losses),
            *(mean_and_sd([one["dead"][name] for one in mine], 3) for name in layers),
            *(mean_and_sd([one["below_zero"][i] for one in mine], 3) for i in range(n_encoder)),
            mean_and_sd([one["used"] for one in mine], 1),
            f"{np.mean([one['seconds'] for one in mine]) / 60:.1f}",
        ]
        rows.append(row)
    return markdown(head, rows)


def by_method(runs: list[Run]) -> dict[str, list[Run]]:
    """The runs of each method, plain inference first."""
    ordered = sorted(runs, key=lambda one: one["k"])
    return grouped(ordered, lambda one: f"{PENALISED}, k = {one['k']:g}" if one["k"] else PLAIN)


def draw(runs: list[Run], shape: tuple[int, int]) -> Any:
    """Curves over iterations, dead units of each layer, and the first seed's samples."""
    methods = by_method(runs)
    figure = pyplot.figure(figsize=(11, 7.5), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.25])
    curves, dead, bars = above.subplots(1, 3)
    last = []
    for number, (method, mine) in enumerate(methods.items()):
        for i, one in enumerate(mine):
            curve = one["curve"]
            style = dict(color=f"C{number}", label=method if i == 0 else None)
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
    options = parser((__doc__ or "").partition("\n")[0], 2000, "dead_relus.png")
    options.add_argument("--magnitude", type=float, default=1e-5, help="k")
    options.add_argument("--choose", action="store_true", help="try magnitudes first")
    with_average(options)
    options.add_argument("--full", action="store_true", help="50,000 iterations and 3 seeds")
    arguments = parse(options, argv, iterations=50_000, seeds=3)
    if min(arguments.seeds, arguments.iterations) < 1 or arguments.magnitude <= 0:
        options.error("--seeds and --iterations must be at least 1, --magnitude positive")
    digits = load()
    iterations = arguments.iterations
    k = arguments.magnitude
    average = arguments.average
    if arguments.choose:
        k = choose(digits, max(1, iterations // 10), average)
    runs = Runs(arguments.results)
    about = {"iterations": iterations, "average": average}
    for seed in range(arguments.seeds):
        for magnitude in (0.0, k):
            key = about | {"k": magnitude, "seed": seed}
            if key not in runs:
                runs.add(key | run(digits, magnitude, seed, iterations, average))
    print(table(runs.matching(about)))
    save(draw(runs.matching(about), digits.shape), arguments.output)


if __name__ == "__main__":
    main()
