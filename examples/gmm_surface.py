"""The annealed surface of a mixture
=================================

The annealed ELBO of a Gaussian mixture over its two means, and the paths of two fits.

Draws the ELBO as a landscape at several temperatures, with its local optima and the paths that a
plain and an annealed fit take.  Prints the number of local optima at each temperature.

::

    python examples/gmm_surface.py
    python examples/gmm_surface.py --figure dasvi
    python examples/gmm_surface.py --film surface.gif

The script redraws Fig. 1 of Mandt et al. (2016) (T = 20, 13, 8.5, 1) or, with --figure dasvi, Fig.
2 of Abrol et al. (2014) (T = 100, 30, 1).  At high temperatures the objective has one optimum.
Below the critical temperature, which is the variance of the data, this optimum splits into two.
The annealed fit follows the better of the two optima.  Plain inference (T = 1) ends in the nearer
one.

The data are 500 draws from two Gaussians with means 4 and -4 and variance 1.  The fits use the
known weights, 0.3 and 0.7.  The prior variance of the means is 10.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from numpy.typing import NDArray

from annealvi import Annealed, TemperedGaussianMixture
from annealvi.model import Batch, Form, Tempering
from annealvi.models.gmm import GMM

WEIGHTS = np.array([0.3, 0.7])
TRUE_MEANS = np.array([4.0, -4.0])
PRIOR_VARIANCE = 10.0
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
        known_weights=WEIGHTS,
        known_covariances=np.ones((2, 1)),
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
        random_state=0,  # a mixture's components are moved a little at random while T falls
        callback=lambda estimator, _: means.append(estimator.means_.ravel()),
    ).fit(X)
    return mixture, np.array(means)


def optima(heights: NDArray) -> tuple[NDArray, NDArray]:
    """Rows and columns of the points that are higher than the eight around them."""
    inner = heights[1:-1, 1:-1]
    n_rows, n_columns = heights.shape
    around = [
        heights[1 + i : n_rows - 1 + i, 1 + j : n_columns - 1 + j]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    rows, columns = np.nonzero(np.all([inner > neighbour for neighbour in around], axis=0))
    return rows + 1, columns + 1


class Fits:
    """A plain and an annealed fit of the data, and the surface under them.

    Parameters
    ----------
    form : str
        What is tempered.
    resolution : int
        Means along an axis.
    """

    def __init__(self, form: Form, resolution: int) -> None:
        self.X = draw_data()
        self.form = form
        annealed = Annealed(start=100.0, length=0.9, shape="linear", form=form)
        self.plain, self.plain_path = path(self.X, 1.0, 100)
        self.hot, self.hot_path = path(self.X, annealed, ITERATIONS)
        self.heat = np.append(self.hot.temperature_path_, 1.0)
        self.grid = np.linspace(-10, 10, resolution)

    def draw(self, ax: Any, T: float, shown: tuple[str, ...] = ("plain", "annealed")) -> int:
        """Draw the surface at one temperature and paths up to it; return its optima."""
        grid = self.grid
        heights = surface(self.X, grid, Tempering(1 / T, self.form))
        levels = np.quantile(heights, np.linspace(0.25, 1, 22))
        ax.contourf(grid, grid, heights, levels=np.unique(levels), cmap="Greys_r", extend="min")
        rows, columns = optima(heights)
        star = dict(ms=13, mfc="gold", mec="black", zorder=4, clip_on=False)
        ax.plot(grid[columns], grid[rows], "*", label="local optimum", **star)
        if "annealed" in shown:
            so_far = self.hot_path[: int(np.sum(self.heat >= T - 1e-9)) + 1]
            ax.plot(*so_far.T, "-", color="#D55E00", lw=2, label="annealed VI, so far")
            ax.plot(*so_far[-1], "o", color="#D55E00", ms=7, zorder=5)
        if "plain" in shown and T == 1:
            ax.plot(*self.plain_path.T, "--", color="#0072B2", lw=2, label="plain VI")
            ax.plot(*self.plain_path[-1], "s", color="#0072B2", ms=7, zorder=5)
        ax.plot(*START.ravel(), "x", color="black", ms=9, mew=2, label="start", zorder=5)
        ax.set(title=f"T = {T:.3g}", xlabel="$m_0$", aspect="equal")
        return len(rows)


def thermometer(ax: Any, T: float, hottest: float) -> None:
    """Draw a temperature as the height of a bar."""
    ax.clear()
    ax.bar([0], [T - 0.9], bottom=0.9, color="#D55E00", width=0.8)
    ticks = [t for t in (1, 2, 5, 10, 25) if t <= hottest]
    ax.set(yscale="log", ylim=(0.9, hottest), xlim=(-0.5, 0.5), xticks=[], title="T")
    ax.set_yticks(ticks, labels=map(str, ticks))
    ax.minorticks_off()


def animate(fits: Fits, output: str, n_frames: int) -> None:
    """Write a film: a plain fit at T = 1 beside an annealed one from T = 25 down to 1."""
    figure, (left, right, scale) = plt.subplots(
        1, 3, figsize=(9, 4.6), width_ratios=[1, 1, 0.06], layout="constrained"
    )
    fits.draw(left, 1.0, ("plain",))
    left.set(title=f"plain, ends at {fits.plain.lower_bound_:.2f} per datum", ylabel="$m_1$")
    left.legend(loc="upper right", fontsize=9)

    def frame(T: float) -> None:
        right.clear()
        n_optima = fits.draw(right, T, ("annealed",))
        count = f"{n_optima} optim{'um' if n_optima == 1 else 'a'}"
        end = f"annealed, ends at {fits.hot.lower_bound_:.2f} per datum"
        right.set(title=end if T == 1 else f"annealed, T = {T:.1f}: {count}")
        right.legend(loc="upper right", fontsize=9)
        thermometer(scale, T, 25)

    temperatures = np.geomspace(25, 1, n_frames)
    temperatures[-1] = 1
    shown = [*temperatures, *[1.0] * (n_frames // 2)]  # the end stands a while
    film = FuncAnimation(figure, frame, frames=shown, init_func=lambda: None)
    film.save(output, writer=PillowWriter(fps=6), dpi=80)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Draw the figure; return the fits of plain and annealed inference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--figure", choices=sorted(FIGURES), default="vt")
    parser.add_argument("--resolution", type=int, default=61, help="means along an axis")
    parser.add_argument("--output", default="gmm_surface.png")
    parser.add_argument("--film", metavar="FILE.gif", help="write a film of the surface too")
    parser.add_argument("--frames", type=int, default=36, help="of the film")
    arguments = parser.parse_args(argv)

    form, temperatures = FIGURES[arguments.figure]
    fits = Fits(form, arguments.resolution)
    figure, axes = plt.subplots(
        1, len(temperatures), figsize=(3.4 * len(temperatures), 4.3), sharey=True, squeeze=False
    )
    for ax, T in zip(axes[0], temperatures, strict=True):
        n_optima = fits.draw(ax, T)
        print(f"T = {T:5.1f}: {n_optima} local optim{'um' if n_optima == 1 else 'a'}")
    axes[0, 0].set_ylabel("$m_1$")
    handles, labels = axes[0, -1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.suptitle(
        f"Annealed ELBO ({form} tempered): plain VI ends at {fits.plain.lower_bound_:.3f} a datum, "
        f"annealed at {fits.hot.lower_bound_:.3f}"
    )
    figure.tight_layout(rect=(0, 0.09, 1, 0.98))
    figure.savefig(arguments.output, dpi=120)
    print(f"variance of the data {fits.X.var():.1f}; drew {arguments.output}")
    if arguments.film:
        animate(fits, arguments.film, arguments.frames)
        print(f"drew {arguments.film}")
    return fits.plain, fits.hot


if __name__ == "__main__":
    main()
