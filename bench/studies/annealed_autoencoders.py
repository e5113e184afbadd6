"""Do annealed objectives improve an autoencoder, after a search over its settings?

::

    python -m bench.studies.annealed_autoencoders [--data mnist_static_bin] [--components 40]
        [--units gated-elu] [--decoder last] [--shares 0 .2 .5] [--width 300] [--transitions 5]
        [--steps 1500] [--search-steps 500] [--draws 1000] [--scored 500] [--seeds 1]
        [--device cpu] [--full] [--results FILE.json]
    python -m bench.studies.annealed_autoencoders --together --device cuda --steps 64000
        --scored 10000 --seeds 2 [--rates 1e-3 3e-4] [--start-free] [--results FILE.json]

The script repeats Table 1 of Huang, Tan, Lacoste, Courville (2018), *Improving explorability in
variational inference with annealed variational objectives*.  The posterior is a Gaussian (T = 0) or
a chain of T transitions.  It is trained by the ELBO (a = 0), or with annealed objectives in a share
a of the steps.  For each posterior the script first tries sizes of minibatches, learning rates and
warm-ups of beta in short fits, and keeps the setting with the best ELBO of validation images.  Then
it fits each posterior with this setting, and prints -log p of test images, which is estimated by
importance sampling.

Options
-------
--data
    ``mnist_static_bin`` or ``omniglot_small_28`` in the folder that ANNEALVI_DATA names.  Grey
    pixels above one half become 1.  The last sixth of the images is for the test.  A tenth of the
    other images is for validation during the search.
--units
    ``gated-elu`` is the network of the paper.  With ``gated`` the transitions are gated too.
--decoder
    Which draws update the decoder in an annealed step: those of the last state with ``last`` (the
    default), none with ``elbo``, and those of all states with ``every``, as in earlier versions.
--shares
    The shares a of annealed steps.  With 0 the Gaussian is fitted too.
--components
    Number of latent variables, which is 40 for MNIST and 200 for OMNIGLOT in the paper.
--search-steps
    Number of steps of each fit in the search.  With 0 there is no search, and fits have minibatches
    of 128, the learning rate 0.001 and a warm-up over 0.2 of the steps.
--together
    Fit all posteriors with all --rates and seeds in parallel, without a search.  Minibatches have
    128 images, and the warm-up takes 20,000 of 64,000 steps.  The fit is checked 32 times, and the
    state with the best ELBO of validation images is kept.  On a GPU each step is a CUDA graph.  If
    the file contains test images, these are scored.
--start-free
    With --together: leave J_0, which pulls q_0 to the prior, out of the annealed objectives.
--full
    Settings for a GPU: 200,000 steps, a search with 20,000 steps over more settings, 3 seeds and
    all test images.
--results
    A file to which each run is written when it ends.  Runs that the file contains are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from annealvi.datasets import load_images
from annealvi.deep import VariationalAutoencoder, objectives
from annealvi.deep.objectives import standard_log_density
from annealvi.deep.vae import AutoencoderNetwork
from bench.markdown import spread, table

#: The settings of the search: sizes of minibatches, learning rates, and shares of warm-up steps.
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
    """The parameters of the posteriors that are compared, by name."""
    parameters: dict[str, dict[str, Any]] = {"T = 0": dict(n_transitions=0)} if 0 in shares else {}
    for a in shares:
        parameters[f"T = {n_transitions}, a = {a:g}"] = dict(
            n_transitions=n_transitions, calibration=a
        )
    return parameters


def estimator(options: argparse.Namespace, seed: int, **others: Any) -> VariationalAutoencoder:
    """Make an autoencoder with the sizes of the options."""
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
    """Fit, and update the decoder in the way that --decoder selects."""
    every = patch("annealvi.deep.vae.log_densities", lambda path, f, *_, **__: f(path.z[1:]))
    with every if options.decoder == "every" else nullcontext():
        vae.fit(X)


class Kept:
    """The runs in a file, if there is one.  Each run is a dict that begins with its key."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.all = json.loads(path.read_text()) if path is not None and path.exists() else []

    def get(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """The run with this key."""
        return next((run for run in self.all if key.items() <= run.items()), None)

    def add(self, run: dict[str, Any]) -> dict[str, Any]:
        """Add a run to the file, and return it."""
        self.all.append(run)
        if self.path is not None:
            self.path.write_text(json.dumps(self.all, indent=1))
        return run


def search(
    name: str, kind: dict[str, Any], images: Images, kept: Kept, options: argparse.Namespace
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the setting with the best ELBO of validation images, and all tried settings."""
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
    """Fit one posterior, and return its scores."""
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
    """The settings that all runs of a table have in common."""
    names = ("data", "components", "units", "decoder", "width", "transitions")
    return {name: getattr(options, name) for name in names}


# ------------------------------------------------------------- all fits side by side

BATCH = 128
WARM_UP = 0.3125
CHECKS = 32


def terms(path: Any, log_f: Any, *, beta: Any = 1.0, prior_weight: Any = 1.0) -> Any:
    """J_1, ..., J_T as in `annealvi.deep.objectives`, for a beta that is computed on the device."""
    z = path.z[1:]
    n = len(path.log_forward)
    alpha = (torch.arange(1, n + 1, dtype=z.dtype, device=z.device) / n)[:, None, None]
    target = alpha * log_f + prior_weight * (1 - alpha) * standard_log_density(z)
    return target + beta * (path.log_reverse - path.log_forward)


def without_start(path: Any, log_f: Any, **weights: Any) -> Any:
    """The annealed objectives without J_0."""
    return terms(path, log_f, **weights).sum(dim=0)


class DeviceNoise:
    """Random numbers that are drawn on a device, and coins that are tossed before the step."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.device = device
        self.heads = False
        self.generator = torch.Generator(device).manual_seed(seed)

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=self.device, generator=self.generator)

    def coin(self, _: float) -> bool:
        return self.heads


class Running:
    """One of several fits that are computed in parallel, step by step."""

    def __init__(self, key: dict[str, Any], kind: dict[str, Any], X: torch.Tensor) -> None:
        self.key = key
        self.X = X
        device = X.device
        self.a = kind.get("calibration", 0.0)
        self.warm_up = WARM_UP * key["steps"]
        torch.manual_seed(key["seed"])
        self.net = AutoencoderNetwork(
            X.shape[1],
            key["components"],
            (key["width"],) * 2,
            n_transitions=kind["n_transitions"],
            transition_hidden=key["width"],
            units=key["units"],
        ).to(device)
        on_device = dict(capturable=True, fused=True) if device.type == "cuda" else {}
        parameters = list(self.net.parameters())
        self.adam = torch.optim.Adam(parameters, lr=key["learning_rate"], **on_device)
        self.noise = DeviceNoise(key["seed"], device)
        self.coins = np.random.default_rng(key["seed"])
        self.step = torch.zeros((), device=device)
        self.graphs = {}
        self.best: tuple[float, int, dict[str, Any]] = (-np.inf, 0, {})
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)

    def move(self, heads: bool) -> None:
        """Make one step of Adam, with the annealed objectives if `heads` is True."""
        self.step += 1
        for parameter in self.net.parameters():
            parameter.grad.zero_()
        beta = torch.clamp(0.01 + 0.99 * self.step / self.warm_up, max=1.0)
        noise = self.noise
        net = self.net
        rows = torch.randint(len(self.X), (BATCH,), device=noise.device, generator=noise.generator)
        x = self.X[rows]
        noise.heads = heads
        context = net.encoder(x)
        if net.chain is None:
            mean, sd = net.head.moments(context)
            kl = (0.5 * (mean * mean + sd * sd) - sd.log() - 0.5).sum(-1)
            z = mean + sd * noise.normal(*mean.shape)
            bound = (net.log_likelihood(x, z) - beta * kl).mean()
        else:
            bound = net.chain_bound(x, context, noise, 1.0, beta, 0.5 if heads else 0.0)[0]
        (-bound).backward()
        self.adam.step()

    def capture(self) -> None:
        """Capture both kinds of step as CUDA graphs."""
        self.stream = torch.cuda.Stream()
        for heads in {self.a > 0, self.a == 1}:
            with torch.cuda.stream(self.stream):
                for _ in range(3):
                    self.move(heads)
            torch.cuda.synchronize()
            self.graphs[heads] = torch.cuda.CUDAGraph()
            self.graphs[heads].register_generator_state(self.noise.generator)
            with torch.cuda.graph(self.graphs[heads], stream=self.stream):
                self.move(heads)

    def go(self) -> None:
        heads = bool(self.coins.random() < self.a)
        if not self.graphs:
            return self.move(heads)
        with torch.cuda.stream(self.stream):
            self.graphs[heads].replay()

    @torch.no_grad()
    def score(self, X: torch.Tensor, draws: int, size: int, log_p: bool = False) -> float:
        """Estimate the mean ELBO, or log p by importance sampling."""
        estimates = []
        for x in X.split(size):
            n_draws_of_blocks = [min(250, draws - i) for i in range(0, draws, 250)]
            log_w = torch.cat(
                [self.net.log_weights(x, n, self.noise)[1] for n in n_draws_of_blocks]
            )
            estimates.append(torch.logsumexp(log_w, 0) - np.log(draws) if log_p else log_w.mean(0))
        return float(torch.cat(estimates).mean())

    def check(self, step: int, validation: torch.Tensor) -> None:
        """Keep the weights if they have the best ELBO of validation images so far."""
        score = self.score(validation, 1, 5000)
        if score > self.best[0]:
            weights = {name: value.clone() for name, value in self.net.state_dict().items()}
            self.best = score, step, weights


def together(options: argparse.Namespace, kept: Kept) -> None:
    """Make all fits in parallel, and print the scores of each fit."""
    data = load_images(options.data)
    device = torch.device(options.device)
    X = (data.data > 0.5).astype(np.float32)
    n = len(X) // 6
    test = (data.data_test > 0.5).astype(np.float32) if "data_test" in data else X[-n:]
    train, validation, test = (torch.as_tensor(a, device=device) for a in (X[:-n], X[-n:], test))
    about_all = about(options) | {"together": True, "steps": options.steps}
    about_all["start_free"] = options.start_free
    fits = [
        Running(about_all | dict(name=name, seed=seed, learning_rate=rate), kind, train)
        for rate, seed in product(options.rates, range(options.seeds))
        for name, kind in posteriors(options.transitions, options.shares).items()
    ]
    with patch.object(objectives, "avo_terms", terms), ExitStack() as stack:
        if options.start_free:
            stack.enter_context(patch("annealvi.deep.vae.avo", without_start))
        if device.type == "cuda":
            for one in fits:
                one.capture()
        for step in range(1, options.steps + 1):
            for one in fits:
                one.go()
            if step % max(1, options.steps // CHECKS) == 0 or step == options.steps:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                for one in fits:
                    one.check(step, validation)
    rows = []
    for one in fits:
        one.net.load_state_dict(one.best[2] or one.net.state_dict())
        bounds = [one.score(images, 4, 5000) for images in (train[: len(test)], validation, test)]
        run = one.key | dict(zip(("train", "validation", "test"), bounds, strict=True))
        scored = test[: options.scored]
        run["log_p"] = one.score(scored, options.draws, 100, log_p=True)
        run["elbo_of_scored"] = one.score(scored, 4, 5000)
        kept.add(run | {"best_step": one.best[1], "scored": options.scored})
        rows.append(
            [
                one.key["name"],
                f"{one.key['learning_rate']:g}",
                one.key["seed"],
                one.best[1],
                f"{-run['test']:.2f}",
                f"{-run['log_p']:.2f}",
                f"{run['log_p'] - run['elbo_of_scored']:.2f}",
                f"{run['train'] - run['test']:.2f}",
            ]
        )
    gaps = ["variational gap", "generalisation gap"]
    header = ["posterior", "learning rate", "seed", "best at", "test -ELBO", "test -log p", *gaps]
    print(table(header, rows))


def rows_of(name: str, setting: dict[str, Any], runs: list[dict[str, Any]]) -> list[str]:
    """Format the row of a posterior in the last table."""
    numbers = (
        [-run["train"] for run in runs],
        [-run["test"] for run in runs],
        [-run["log_p"] for run in runs],
        [run["train"] - run["test"] for run in runs],
        [run["minutes"] for run in runs],
    )
    return [
        name,
        *(f"{setting[name_of_setting]:g}" for name_of_setting in NAMES),
        *(spread(values, digits=2) for values in numbers),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="mnist_static_bin")
    parser.add_argument("--units", default="gated-elu", choices=["relu", "gated", "gated-elu"])
    parser.add_argument("--decoder", default="last", choices=["last", "elbo", "every"])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.2, 0.5])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--start-free", action="store_true")
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 3e-4])
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
    kept = Kept(options.results)
    if options.together:
        return together(options, kept)
    images = load(options.data)
    tried = []
    rows = []
    for name, kind in posteriors(options.transitions, options.shares).items():
        setting = USUAL
        if options.search_steps:
            setting, searched = search(name, kind, images, kept, options)
            for run in searched:
                settings = [f"{run[name_of_setting]:g}" for name_of_setting in NAMES]
                tried.append([name, *settings, f"{-run['validation']:.2f}"])
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
