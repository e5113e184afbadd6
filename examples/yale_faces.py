"""Faces by a factorial mixture
============================

How well does a factorial mixture of faces predict held-out pixels while temperatures fall?

Prints a table of the held-out likelihood and the ELBO that each method reaches.  Draws the
held-out likelihood and the temperatures along the fits, and the components as faces.

::

    python examples/yale_faces.py [--seeds 1] [--iterations 200] [--full]
        [--start random|prior|data] [--covariance diag|full] [--t-max 100] [--jobs 2]
        [--output yale_faces.png]

The script redraws Figure 3 (middle and right) of Mandt et al. (2016), *Variational Tempering*, on
the Extended Yale B faces.  The methods are plain variational inference (VI), annealing from T = 6
linearly over 5 and over 50 iterations (AVI), and a temperature that is learned from the data (VT).
VT is shown with annealvi's default and as printed in the paper.

Options
-------
default
    ``yaleb_48x42.npz`` in the folder that the environment variable ANNEALVI_DATA names
    (default ``../shared/data``).

--full
    ``yaleb_96x84.npz`` in the same folder.
--start
    By default all fits start from the same small components (init="random"), whose expected squared
    norm is twice the noise variance.  In a draw from the prior it is a thousand times as large,
    which costs D/2 nats in every image.  The first sweep then switches all factors off, and no
    method ever finds a component.

There are 2,414 images, which is too few for 2,000 training images and 500 held-out images.  So
2,000 images are drawn at random: 1,500 for training, and 500 are held out.  Pixels are standardised
by the mean and the standard deviation of all pixels of the 2,000 images.  The model has K = 40 and
pi = 0.3, and its noise variance and component variance are 0.5.  The score is the log-likelihood
per pixel of a random half of the pixels of a held-out image, given the other half.  All fits use
the same images, held-out images and hidden pixels.  A seed draws the start.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _shared import markdown, mean_and_sd, save
from matplotlib import pyplot
from numpy.typing import NDArray

from annealvi import Annealed, Fixed, TemperedFMM, Variational
from annealvi.datasets import DATA_VARIABLE, DEFAULT_DATA
from annealvi.inference import Monitor
from annealvi.plot import plot_components, plot_learning_curves, plot_temperature
from annealvi.temperature import Temperature

N_IMAGES = 2000
N_HELD_OUT = 500
SPLIT_SEED = 0
K = 40
VARIANCE = 0.5
LONGEST = 50  # iterations of annealing
EVERY = 4  # iterations from one held-out score to the next
DEAD = 0.05  # the root mean square pixel below which a component counts as empty


class Faces(NamedTuple):
    """Images as rows, in float32, and which of their pixels are observed when held out."""

    train: NDArray[np.float32]
    held_out: NDArray[np.float32]
    observed: NDArray[np.bool_]
    shape: tuple[int, int]


def load(name: str) -> Faces:
    """Read, choose, standardise and split the images."""
    path = Path(os.environ.get(DATA_VARIABLE, DEFAULT_DATA), f"{name}.npz")
    if not path.is_file():
        raise SystemExit(
            f"There is no {path}: set the environment variable {DATA_VARIABLE} to the folder "
            f"that holds {path.name}, the Extended Yale B faces as uint8 images 'X'."
        )
    with np.load(path) as stored:
        images = stored["X"]
    rng = np.random.RandomState(SPLIT_SEED)
    chosen = images[rng.permutation(len(images))[:N_IMAGES]].reshape(N_IMAGES, -1)
    pixels = ((chosen - chosen.mean()) / chosen.std()).astype(np.float32)
    observed = np.zeros(pixels.shape[1], dtype=bool)
    observed[rng.permutation(len(observed))[: len(observed) // 2]] = True
    return Faces(pixels[N_HELD_OUT:], pixels[:N_HELD_OUT], observed, images.shape[1:])


def methods(t_max: float) -> dict[str, Temperature]:
    """What is compared."""
    return {
        "VI": Fixed(1),
        "AVI, 5 iterations": Annealed(6, passes=5, shape="linear"),
        f"AVI, {LONGEST} iterations": Annealed(6, passes=LONGEST, shape="linear"),
        "VT": Variational(t_max=t_max),
        "VT as printed": Variational.as_printed(),
    }


def held_out_score(fmm: TemperedFMM, faces: Faces) -> float:
    """Log-likelihood of a hidden pixel of the held-out images."""
    score = fmm.predictive_score(faces.held_out, faces.observed)
    return float(score) / int(np.count_nonzero(~faces.observed))


def recorder(faces: Faces, last: int) -> Callable[[TemperedFMM, Monitor], None]:
    """A callback that records the held-out score."""

    def record(fmm: TemperedFMM, monitor: Monitor) -> None:
        if monitor.step == 1 or monitor.step % EVERY == 0 or monitor.step == last:
            monitor.record(held_out_log_likelihood=held_out_score(fmm, faces))

    return record


def fit(
    faces: Faces, temperature: Temperature, seed: int, arguments: argparse.Namespace
) -> TemperedFMM:
    """One fit, with the held-out scores in its history."""
    return TemperedFMM(
        K,
        prior_probability=0.3,
        noise_variance=VARIANCE,
        component_variance=VARIANCE,
        temperature=temperature,
        init=arguments.start,
        covariance=arguments.covariance,
        max_iter=arguments.iterations,
        tol=0,
        callback=recorder(faces, arguments.iterations),
        random_state=seed,
        n_jobs=arguments.jobs,
    ).fit(faces.train)


def is_empty(components: NDArray) -> NDArray[np.bool_]:
    """Whether a component is empty: it explains nothing."""
    return np.sqrt(np.mean(components**2, axis=1)) < DEAD


def table(fits: dict[str, list[TemperedFMM]]) -> str:
    """What the methods reached."""
    head = ["method", "held out, a hidden pixel", "ELBO an image", "final T", "empty of 40"]
    rows = [
        [
            method,
            mean_and_sd([fmm.history_["held_out_log_likelihood"][-1] for fmm in fmms], 4),
            mean_and_sd([fmm.lower_bound_ for fmm in fmms], 1),
            f"{np.mean([fmm.temperature_ for fmm in fmms]):.2f}",
            f"{np.mean([is_empty(fmm.components_).sum() for fmm in fmms]):.1f}",
            f"{np.mean([fmm.history_['seconds'][-1] for fmm in fmms]):.1f}",
        ]
        for method, fmms in fits.items()
    ]
    return markdown([*head, "seconds"], rows)


def draw(fits: dict[str, list[TemperedFMM]], shape: tuple[int, int]) -> Any:
    """Held-out curves and temperatures, and the first seed's components."""
    n_columns = K // 2
    figure = pyplot.figure(figsize=(11, 3.6 + 1.6 * len(fits)), layout="constrained")
    panels = figure.subfigures(1 + len(fits), 1, height_ratios=[3.6] + [1.6] * len(fits))

    curves, temperatures = panels[0].subplots(1, 2)
    plot_learning_curves(fits, over="step", ax=curves)
    ends = [fmm.history_["held_out_log_likelihood"][-1] for fmms in fits.values() for fmm in fmms]
    span = max(max(ends) - min(ends), 0.01)
    curves.set_ylim(min(ends) - span, max(ends) + 0.5 * span)
    curves.set(xlabel="iteration", ylabel="log-likelihood a hidden pixel", title="Held-out faces")
    curves.get_legend().remove()  # the one beside it has the same colours
    for method, fmms in fits.items():
        plot_temperature(fmms[0], ax=temperatures, label=method)
    temperatures.set(xlabel="iteration", yscale="log", title="Temperatures, first seed")
    temperatures.set_yticks([1, 2, 3, 4, 6], ["1", "2", "3", "4", "6"])
    temperatures.minorticks_off()
    temperatures.legend()

    components_by_method = {method: fmms[0].components_ for method, fmms in fits.items()}
    limit = float(np.quantile(np.abs(np.stack(list(components_by_method.values()))), 0.995)) or 1.0
    for panel, (method, components) in zip(panels[1:], components_by_method.items(), strict=True):
        longest_first = np.argsort(-np.sum(components**2, axis=1))
        axes = panel.subplots(2, n_columns, gridspec_kw=dict(wspace=0.02, hspace=0.02))
        plot_components(components[longest_first], shape, axes=axes, limit=limit)
        score = fits[method][0].history_["held_out_log_likelihood"][-1]
        n_empty = int(is_empty(components).sum())
        panel.suptitle(
            f"{method}: {K - n_empty} components and {n_empty} empty, held out {score:.3f}",
            fontsize="medium",
        )
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--full", action="store_true", help="images of 96 x 84 pixels")
    parser.add_argument("--start", choices=["random", "prior", "data"], default="random")
    parser.add_argument("--covariance", choices=["diag", "full"], default="diag")
    parser.add_argument("--t-max", type=float, default=100.0, help="of VT")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", default="yale_faces.png")
    arguments = parser.parse_args(argv)
    if arguments.seeds < 1:
        parser.error("--seeds must be at least 1")
    if arguments.iterations <= LONGEST:
        parser.error(f"--iterations must be more than {LONGEST}, or nothing is left at T = 1")
    faces = load("yaleb_96x84" if arguments.full else "yaleb_48x42")
    fits: dict[str, list[TemperedFMM]] = {}
    for method, temperature in methods(arguments.t_max).items():
        fits[method] = [fit(faces, temperature, seed, arguments) for seed in range(arguments.seeds)]
    print(table(fits))
    save(draw(fits, faces.shape), arguments.output)


if __name__ == "__main__":
    main()
