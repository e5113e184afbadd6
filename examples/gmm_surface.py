"""The annealed ELBO of a Gaussian mixture over its two means, and the paths across it.

Draws the ELBO as a landscape at several temperatures, with its local optima and the paths that a
plain and an annealed fit take.  Prints the number of local optima at each temperature.

    python examples/gmm_surface.py
    python examples/gmm_surface.py --figure dasvi

It redraws Fig. 1 of Mandt et al. (2016) (T = 20, 13, 8.5, 1) and, with --figure dasvi, Fig. 2 of
Abrol et al. (2014) (T = 100, 30, 1).  At high temperatures the objective has one optimum; below
the critical temperature, the variance of the data, it breaks into two.  The annealed fit follows
the one that becomes the better.  Plain inference (T = 1) ends in whichever is nearer.

500 data are drawn from means 4 and -4 with known weights .3 and .7 and variance 1.  The prior
variance of the means is 10.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from annealvi import Annealed, TemperedGaussianMixture
from annealvi.model import Batch, Form, Tempering
from annealvi.models.gmm import GMM

WEIGHTS, TRUE_MEANS, PRIOR_VARIANCE = np.array([0.3, 0.7]), np.array([4.0, -4.0]), 10.0
#: Enough for the means to follow the optimum where it moves fast, below T = 15.
ITERATIONS = 5000
#: Both fits start here, nearer to the worse optimum, in which each mean has the other's data.
START = np.array([[-3.0], [7.0]])
FIGURES: dict[str, tuple[Form, tuple[float, ...]]] = {
    "vt": ("likelihood", (20.0, 13.0, 8.5, 1.0)),
    "dasvi": ("posterior", (100.0, 30.0, 1.0)),
}


def draw_data(n_samples: int = 500, seed: int = 0) -> NDArray[np.float64]:
    """Data of shape (n_samples, 1)."""
    rng = np.random.RandomState(seed)
    z = rng.choice(2, n_samples, p=WEIGHTS)
    return TRUE_MEANS[z][:, None] + rng.standard_normal((n_samples, 1))


def surface(X: NDArray, grid: NDArray, tempering: Tempering) -> NDArray[np.float64]:
    """ELBO per datum at each pair of means, of shape (len(grid), len(grid)), m_1 along rows."""
    model = GMM(
        2,
        1,
        alpha=np.ones(2),
        mean_prior=np.zeros(1),
        kappa=1 / PRIOR_VARIANCE,
        weights=WEIGHTS,
        covariances=np.ones((2, 1)),
    )
    heights = np.empty((len(grid), len(grid)))
    for row, m1 in enumerate(grid):
        for column, m0 in enumerate(grid):
            model.start(X, means=[[m0], [m1]])
            model.local_step(Batch(X, slice(0, len(X))), tempering)
            heights[row, column] = model.elbo(tempering) / len(X)
    return heights


def path(X: NDArray, temperature: Any, max_iter: int) -> tuple[Any, NDArray[np.float64]]:
    """A fit from START, and its means before the first iteration and after each."""
    means = [START.ravel()]
    mixture = TemperedGaussianMixture(
        2,
        weights=WEIGHTS,
        covariances=1.0,
        mean_prior=[0.0],
        mean_precision_prior=1 / PRIOR_VARIANCE,
        means_init=START,
        temperature=temperature,
        max_iter=max_iter,
        tol=0,
        callback=lambda estimator, _: means.append(estimator.means_.ravel()),
    ).fit(X)
    return mixture, np.array(means)


def main(argv: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Draw the figure; return the fits of plain and annealed inference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--figure", choices=sorted(FIGURES), default="vt")
    parser.add_argument("--resolution", type=int, default=61, help="means along an axis")
    parser.add_argument("--output", default="gmm_surface.png")
    arguments = parser.parse_args(argv)

    X = draw_data()
    form, temperatures = FIGURES[arguments.figure]
    annealed = Annealed(start=100.0, length=0.9, shape="linear", form=form)
    plain, plain_path = path(X, 1.0, 100)
    hot, hot_path = path(X, annealed, ITERATIONS)
    heat = np.append(hot.temperature_path_, 1.0)

    grid = np.linspace(-10, 10, arguments.resolution)
    figure, axes = plt.subplots(
        1, len(temperatures), figsize=(3.4 * len(temperatures), 4.3), sharey=True, squeeze=False
    )
    for ax, T in zip(axes[0], temperatures, strict=True):
        heights = surface(X, grid, Tempering(1 / T, form))
        levels = np.quantile(heights, np.linspace(0.25, 1, 22))
        ax.contourf(grid, grid, heights, levels=np.unique(levels), cmap="Greys_r", extend="min")
        inner = heights[1:-1, 1:-1]
        around = [
            heights[1 + i : heights.shape[0] - 1 + i, 1 + j : heights.shape[1] - 1 + j]
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        ]
        rows, columns = np.nonzero(np.all([inner > other for other in around], axis=0))
        ax.plot(
            grid[columns + 1],
            grid[rows + 1],
            "*",
            ms=13,
            mfc="gold",
            mec="black",
            zorder=4,
            label="local optimum",
            clip_on=False,
        )
        so_far = hot_path[: int(np.sum(heat >= T - 1e-9)) + 1]
        ax.plot(*so_far.T, "-", color="C3", lw=2, label="annealed VI, so far")
        ax.plot(*so_far[-1], "o", color="C3", ms=7, zorder=5)
        if T == 1:
            ax.plot(*plain_path.T, "--", color="C0", lw=2, label="plain VI")
            ax.plot(*plain_path[-1], "s", color="C0", ms=7, zorder=5)
        ax.plot(*START.ravel(), "x", color="black", ms=9, mew=2, label="start", zorder=5)
        ax.set(title=f"T = {T:g}", xlabel="$m_0$", aspect="equal")
        found = len(rows)
        print(f"T = {T:5.1f}: {found} local optim{'um' if found == 1 else 'a'}")
    axes[0, 0].set_ylabel("$m_1$")
    handles, labels = axes[0, -1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.suptitle(
        f"Annealed ELBO ({form} tempered): plain VI ends at {plain.lower_bound_:.3f} a datum, "
        f"annealed at {hot.lower_bound_:.3f}"
    )
    figure.tight_layout(rect=(0, 0.09, 1, 0.98))
    figure.savefig(arguments.output, dpi=120)
    print(f"variance of the data {X.var():.1f}; drew {arguments.output}")
    return plain, hot


if __name__ == "__main__":
    main()
