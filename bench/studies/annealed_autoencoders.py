"""Do annealed objectives help an autoencoder, after a search over its settings?

::

    python -m bench.studies.annealed_autoencoders [--data mnist_static_bin] [--components 40]
        [--units gated-elu] [--decoder last] [--shares 0 .2 .5] [--width 300] [--transitions 5]
        [--steps 1500] [--search-steps 500] [--draws 1000] [--scored 500] [--seeds 1]
        [--device cpu] [--full] [--results FILE.json]

It repeats Table 1 of Huang, Tan, Lacoste, Courville (2018), *Improving explorability in
variational inference with annealed variational objectives*.  The posterior is a Gaussian (T = 0) or
a chain of T transitions, trained by the ELBO (a = 0) or with annealed objectives in a share a of
the steps.  For each posterior the script first tries sizes of minibatches, learning rates and
warm-ups of beta in short fits, and keeps the setting with the best ELBO of validation images.
Then it fits each posterior with its own setting and prints -log p of test images, by importance
sampling.

Options
-------
--data
    ``mnist_static_bin`` or ``omniglot_small_28`` in the folder that ANNEALVI_DATA names.  Grey
    pixels become 1 above one half.  The last sixth of the images is for the test, and a tenth of
    the rest for validation during the search.
--units
    ``gated-elu`` is the paper's network; ``gated`` has gated transitions too.
--decoder
    What moves the decoder in an annealed step: ``last``, the draws of the last state (default);
    ``elbo``, nothing; ``every``, the draws of all states, as in earlier versions.
--shares
    The shares a of annealed steps; with 0 the Gaussian is fitted too.
--components
    Latent variables: 40 for MNIST and 200 for OMNIGLOT in the paper.
--search-steps
    Steps of each fit of the search; 0 takes minibatches of 128, .001 and a warm-up over .2.
--full
    For a GPU: 200,000 steps, a search with 20,000 over more settings, 3 seeds, all test images.
--results
    A file that keeps each run as it ends.  Runs that are in it are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from annealvi.datasets import load_images
from annealvi.deep import VariationalAutoencoder
from bench.markdown import spread, table

#: What is tried: sizes of minibatches, learning rates, shares of the fit that warm up.
GRID = ((128,), (1e-3, 3e-4), (0.0, 0.5))
FULL_GRID = ((64, 128, 256), (1e-3, 3e-4, 1e-4), (0.0, 0.1, 0.5))
FULL = dict(steps=200_000, search_steps=20_000, seeds=3, scored=10_000)
NAMES = ("batch_size", "learning_rate", "annealing")
USUAL = dict(zip(NAMES, (128, 1e-3, 0.2), strict=True))


class Images(NamedTuple):
    """Binary images as rows."""

    train: NDArray[np.float32]
    test: NDArray[np.float32]


def load(name: str) -> Images:
    """Read images, make them binary, and hold out the last sixth."""
    X = (load_images(name).data > 0.5).astype(np.float32)
    n_test = len(X) // 6
    return Images(X[:-n_test], X[-n_test:])


def posteriors(n_transitions: int, shares: Sequence[float]) -> dict[str, dict[str, Any]]:
    """What is compared."""
    found: dict[str, dict[str, Any]] = {"T = 0": dict(n_transitions=0)} if 0 in shares else {}
    for a in shares:
        found[f"T = {n_transitions}, a = {a:g}"] = dict(n_transitions=n_transitions, calibration=a)
    return found


def estimator(options: argparse.Namespace, seed: int, **others: Any) -> VariationalAutoencoder:
    """An autoencoder with the sizes of the options."""
    return VariationalAutoencoder(
        options.components,
        hidden=(options.width, options.width),
        transition_hidden=options.width,
        units=options.units,
        decoder_steps="elbo" if options.decoder == "elbo" else "all",
        device=options.device,
        random_state=seed,
        **others,
    )


def fit(vae: VariationalAutoencoder, X: NDArray[np.float32], options: argparse.Namespace) -> None:
    """Fit with the decoder moved as --decoder says."""
    every = patch("annealvi.deep.vae.log_densities", lambda path, f, *_, **__: f(path.z[1:]))
    with every if options.decoder == "every" else nullcontext():
        vae.fit(X)


class Kept:
    """Runs in a file, if there is one: a dict each, which begins with its key."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.all = json.loads(path.read_text()) if path is not None and path.exists() else []

    def get(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """The run with this key."""
        return next((run for run in self.all if key.items() <= run.items()), None)

    def add(self, run: dict[str, Any]) -> dict[str, Any]:
        """Keep a run."""
        self.all.append(run)
        if self.path is not None:
            self.path.write_text(json.dumps(self.all, indent=1))
        return run


def search(
    name: str, kind: dict[str, Any], images: Images, kept: Kept, options: argparse.Namespace
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the setting with the best ELBO of validation images, and all that was tried."""
    n = len(images.train) // 10
    rows = []
    for values in product(*(FULL_GRID if options.full else GRID)):
        setting = dict(zip(NAMES, values, strict=True))
        key = about(options) | {"name": name, "search": options.search_steps, **setting}
        run = kept.get(key)
        if run is None:
            vae = estimator(options, 0, max_iter=options.search_steps, **kind, **setting)
            fit(vae, images.train[:-n], options)
            run = kept.add(key | {"validation": vae.score(images.train[-n:])})
        rows.append(run)
    best = max(rows, key=lambda run: run["validation"])
    return {name: best[name] for name in NAMES}, rows


def final(
    kind: dict[str, Any],
    key: dict[str, Any],
    setting: dict[str, Any],
    images: Images,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Fit one posterior, and return what it reached."""
    vae = estimator(options, key["seed"], max_iter=options.steps, **kind, **setting)
    fit(vae, images.train, options)
    scored = images.test[: options.scored]
    return key | {
        "train": vae.score(images.train[: len(images.test)]),
        "test": vae.score(images.test),
        "log_p": float(np.mean(vae.score_samples(scored, n_draws=options.draws))),
        "minutes": float(vae.history_["seconds"][-1]) / 60,
    }


def about(options: argparse.Namespace) -> dict[str, Any]:
    """What all runs of a table have in common."""
    names = ("data", "components", "units", "decoder", "width", "transitions")
    return {name: getattr(options, name) for name in names}


def rows_of(name: str, setting: dict[str, Any], runs: list[dict[str, Any]]) -> list[str]:
    """The row of a posterior in the last table."""
    numbers = (
        [-run["train"] for run in runs],
        [-run["test"] for run in runs],
        [-run["log_p"] for run in runs],
        [run["train"] - run["test"] for run in runs],
        [run["minutes"] for run in runs],
    )
    return [
        name,
        *(f"{setting[part]:g}" for part in NAMES),
        *(spread(values, digits=2) for values in numbers),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="mnist_static_bin")
    parser.add_argument("--units", default="gated-elu", choices=["relu", "gated", "gated-elu"])
    parser.add_argument("--decoder", default="last", choices=["last", "elbo", "every"])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.2, 0.5])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--components", type=int, default=40)
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--transitions", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--search-steps", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--scored", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=1)
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(**FULL)
    options = parser.parse_args(argv)
    images, kept = load(options.data), Kept(options.results)
    tried, rows = [], []
    for name, kind in posteriors(options.transitions, options.shares).items():
        setting = USUAL
        if options.search_steps:
            setting, found = search(name, kind, images, kept, options)
            tried += [
                [name, *(f"{run[part]:g}" for part in NAMES), f"{-run['validation']:.2f}"]
                for run in found
            ]
        runs = []
        for seed in range(options.seeds):
            key = about(options) | {"name": name, "seed": seed, "steps": options.steps, **setting}
            key |= {"draws": options.draws, "scored": options.scored}
            run = kept.get(key)
            runs.append(run or kept.add(final(kind, key, setting, images, options)))
        rows.append(rows_of(name, setting, runs))
    settings = ["posterior", "minibatch", "learning rate", "warm-up"]
    if tried:
        print(table([*settings, "validation -ELBO"], tried))
    reached = ["train -ELBO", "test -ELBO", "test -log p", "generalisation gap", "minutes"]
    print(table([*settings, *reached], rows))


if __name__ == "__main__":
    main()
