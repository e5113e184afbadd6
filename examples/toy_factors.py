"""Shapes found by a factorial mixture
===================================

How many of eight shapes does a factorial mixture find with each kind of temperature?

Prints a table of the ELBO and the number of shapes that each method finds.  Draws the ELBO and the
temperatures along the fits, and the components of each method below the true shapes.

::

    python examples/toy_factors.py [--seeds 3] [--samples 10000] [--output toy_factors.png]

The script redraws Figures 3 (left) and 4 of Mandt et al. (2016), *Variational Tempering*.  Images
of 4 x 4 pixels are sums of some of eight shapes plus noise.  A factorial mixture model has to find
the shapes.  The model uses the true K = 8, pi = 0.3, noise variance 0.1 and component variance
0.35, and starts from draws of the prior.  The methods are plain variational inference (VI),
annealing (AVI), and a temperature that is learned from the data (VT).  Annealing takes 10 or 100
iterations, linearly as in the paper or exponentially.  VT is shown as printed in the paper and with
annealvi's default.  All methods start from the same draws and make 200 iterations.  A seed draws
the data and the start.

The table contains the ELBO per datum at T = 1 (mean and standard deviation over the seeds), the
number of shapes that were found (cosine above 0.95) and the seconds of a fit.  The figure shows the
temperatures and the components of the first seed, in the order of the true shapes that they match.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from _shared import markdown, mean_and_sd, save
from matplotlib import pyplot
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import normalize

from annealvi import Annealed, Fixed, TemperedFMM, Variational
from annealvi.datasets import make_shape_mixture
from annealvi.metrics import component_recovery
from annealvi.plot import plot_components, plot_learning_curves, plot_temperature
from annealvi.temperature import Temperature

SHAPE = (4, 4)
ITERATIONS = 200
FOUND = 0.95  # the cosine above which a shape counts as found
METHODS: dict[str, Temperature] = {
    "VI": Fixed(1),
    "AVI, 10 iterations": Annealed(10, passes=10, shape="linear"),
    "AVI, 100 iterations": Annealed(10, passes=100, shape="linear"),
    "AVI, exponential": Annealed(10, passes=100, shape="exponential"),
    "VT": Variational(t_max=100),
    "VT as printed": Variational.as_printed(),
}


def fit(X: NDArray, temperature: Temperature, seed: int) -> TemperedFMM:
    """Fit the toy's model, with the ELBO of a datum in its history."""
    return TemperedFMM(
        8,
        prior_probability=0.3,
        noise_variance=0.1,
        component_variance=0.35,
        temperature=temperature,
        init="prior",
        max_iter=ITERATIONS,
        tol=0,
        callback=lambda fmm, monitor: monitor.record(lower_bound=fmm.lower_bound_),
        random_state=seed,
    ).fit(X)


def matched(components: NDArray, truth: NDArray) -> NDArray:
    """The found components in the order of the true ones."""
    cosine = normalize(truth) @ normalize(components).T
    return components[linear_sum_assignment(-cosine)[1]]


def table(fits: dict[str, list[TemperedFMM]], recovered: dict[str, list[int]]) -> str:
    """What the methods reached."""
    rows = []
    for method, fmms in fits.items():
        elbo = mean_and_sd([fmm.lower_bound_ for fmm in fmms], 3)
        seconds = np.mean([fmm.history_["seconds"][-1] for fmm in fmms])
        rows.append([method, elbo, f"{np.mean(recovered[method]):.2f}", f"{seconds:.2f}"])
    return markdown(["method", "ELBO a datum", "shapes found of 8", "seconds"], rows)


def draw(fits: dict[str, list[TemperedFMM]], truth: NDArray) -> Any:
    """Curves over iterations, and the first seed's components under the truth."""
    figure = pyplot.figure(figsize=(10, 10), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1, 2])

    curves, temperatures = above.subplots(1, 2)
    plot_learning_curves(fits, value="lower_bound", over="step", ax=curves)
    ends = [fmm.lower_bound_ for fmms in fits.values() for fmm in fmms]
    span = max(ends) - min(ends)
    curves.set_ylim(min(ends) - 0.6 * span, max(ends) + 0.1 * span)
    curves.set(
        xlabel="iteration", ylabel="ELBO a datum at T = 1", title="Each seed (thin) and their mean"
    )
    curves.get_legend().remove()  # the one beside it has the same colours
    for method, fmms in fits.items():
        plot_temperature(fmms[0], ax=temperatures, label=method)
    temperatures.set(xlabel="iteration", yscale="log", title="Temperatures, first seed")
    ticks = [1, 2, 3, 5, 10]
    temperatures.set_yticks(ticks, [f"{tick}" for tick in ticks])
    temperatures.minorticks_off()
    temperatures.legend()

    axes = below.subplots(1 + len(fits), len(truth))
    labels = ["truth"]
    rows = [truth]
    for method, fmms in fits.items():
        n_found, _ = component_recovery(truth, fmms[0].components_, threshold=FOUND)
        bound = f"ELBO {fmms[0].lower_bound_:.2f}"
        labels.append(f"{method}\n{n_found} of {len(truth)} found\n{bound}")
        rows.append(matched(fmms[0].components_, truth))
    limit = float(np.max(np.abs(truth)))
    for row, label, components in zip(axes, labels, rows, strict=True):
        plot_components(components, SHAPE, axes=row, limit=limit, cmap="RdBu_r")
        row[0].set_ylabel(label, rotation=0, ha="right", va="center")
        _, cosines = component_recovery(truth, components)
        for ax, cosine in zip(row, cosines, strict=True):
            if cosine > FOUND:
                ax.spines[:].set_color("0.7")
            else:
                ax.spines[:].set_color("black")
                ax.spines[:].set_linewidth(4)
    below.suptitle("Components, first seed (black frame: not found)", fontsize=12)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="data sets and starts")
    parser.add_argument("--samples", type=int, default=10_000, help="images")
    parser.add_argument("--output", default="toy_factors.png")
    arguments = parser.parse_args(argv)
    if min(arguments.seeds, arguments.samples) < 1:
        parser.error("--seeds and --samples must be at least 1")
    fits: dict[str, list[TemperedFMM]] = {method: [] for method in METHODS}
    recovered: dict[str, list[int]] = {method: [] for method in METHODS}
    truth = []
    for seed in range(arguments.seeds):
        toy = make_shape_mixture(arguments.samples, random_state=1000 + seed)
        truth.append(toy.components)
        for method, temperature in METHODS.items():
            fmm = fit(toy.data, temperature, seed)
            fits[method].append(fmm)
            recovered[method].append(
                component_recovery(toy.components, fmm.components_, threshold=FOUND)[0]
            )
    print(table(fits, recovered))
    save(draw(fits, truth[0]), arguments.output)


if __name__ == "__main__":
    main()
