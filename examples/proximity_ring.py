"""The ring of starts of proximity inference
=========================================

Which methods return to the truth if fits start far away, on a ring around it?

Prints a table of how many fits end near the truth with each method.  For six of the methods, draws
an arrow from the start of each fit to its end.

::

    python examples/proximity_ring.py [--starts 50] [--seeds 1] [--full]
        [--average parameters] [--output proximity_ring.png]

The script redraws Figure 1 of Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*.
The data are a hundred sums of two components plus noise of variance 1.  Each component is present
with probability 1/2.  The true components are (5, 5).  Fits start on a ring of radius 95 around
this point, with q(z) = 1/2.

Gradient methods use point estimates of the components and 10,000 steps of Adam of size 0.1 (4,000
for plain inference).  The gradient methods are plain inference (VI); proximity inference (PVI) with
the entropy, gamma = 1e-10 and k0 = abs(ELBO) at the start; and deterministic annealing with the
same k.  Coordinate-wise methods make at most 200 sweeps.  The coordinate-wise methods are exact
ascent with point estimates, and TemperedFMM plain, annealed and with a Proximity temperature.

Options
-------
--starts, --seeds
    Number of points on the ring, and of data sets.
--steps
    Number of steps of the gradient methods.
--average
    What is averaged: ``parameters``, as in the paper, or ``statistic``, as in its authors' code.
--full
    100 starts and three seeds.  Also fits slower schedules, other statistics, other step sizes and
    Algorithm 1.

For each seed, the table contains the number of fits that end within 5 of the truth.  The table also
contains the median ELBO and the CPU seconds of all fits.  For TemperedFMM, the ELBO is computed
from its mean components and the result of `transform`.  The figure shows the first seed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _shared import save
from matplotlib import pyplot
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.special import logit

from annealvi import Annealed, Proximity, TemperedFMM
from annealvi.proximity import Bernoulli, BernoulliFactorModel, ProximityAscent

TRUTH = np.array([5.0, 5.0])
RADIUS = 95.0
SAMPLES = 100
SWEEPS = 200
NEAR = 5.0
#: Takes data and starts (starts, 2), and returns means (starts, 2) and ELBOs (starts,).
Method = Callable[[NDArray, NDArray], tuple[NDArray, NDArray]]


def make_data(seed: int) -> NDArray[np.float64]:
    """Sums of the components that a datum has, plus noise, of shape (SAMPLES, 1)."""
    rng = np.random.RandomState(seed)
    z = rng.random_sample((SAMPLES, 2)) < 0.5
    return (z @ TRUTH + rng.standard_normal(SAMPLES))[:, None]


def ring(n_starts: int) -> NDArray[np.float64]:
    """Starts evenly around the truth, of shape (n_starts, 2)."""
    angle = 2 * np.pi * np.arange(n_starts) / n_starts
    return TRUTH + RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def gradient(**options: Any) -> Method:
    """A gradient method, all starts at once."""

    def run(X: NDArray, starts: NDArray) -> tuple[NDArray, NDArray]:
        ascent = ProximityAscent(**options, random_state=0)
        end = ascent.ascend(BernoulliFactorModel(X), starts[:, :, None])
        return end.means[:, :, 0], end.elbo

    return run


def swept(model: BernoulliFactorModel, theta: NDArray, means: NDArray) -> NDArray:
    """Logits after each factor in turn was set to its optimum."""
    for k in range(theta.shape[1]):
        theta[:, k] = model.gradients(Bernoulli(theta), means)[0][:, k]
    return theta


def coordinate_ascent(X: NDArray, starts: NDArray) -> tuple[NDArray, NDArray]:
    """Sweeps over q in turn with the exact M-step, with point components."""
    model = BernoulliFactorModel(X)
    means = starts[:, :, None]
    theta = np.zeros((len(starts), 2, len(X)))
    for _ in range(SWEEPS):
        theta = swept(model, theta, means)
        means = model.best_means(Bernoulli(theta))
    return means[:, :, 0], model.elbo(Bernoulli(theta), means)


def tempered(temperature: Any) -> Method:
    """TemperedFMM from each start, with a prior as broad as the ring."""

    def run(X: NDArray, starts: NDArray) -> tuple[NDArray, NDArray]:
        model = BernoulliFactorModel(X)
        ends = []
        elbos = []
        for start in starts:
            fmm = TemperedFMM(
                2,
                prior_probability=0.5,
                noise_variance=1.0,
                component_variance=1e4,
                init=start[:, None],
                temperature=temperature,
                max_iter=SWEEPS,
                tol=1e-6,
                random_state=0,
            ).fit(X)
            ends.append(fmm.components_[:, 0])
            q = np.clip(fmm.transform(X).T, 1e-300, 1 - 1e-16)
            elbos.append(model.elbo(Bernoulli(logit(q)[None]), fmm.components_[None])[0])
        return np.array(ends), np.array(elbos)

    return run


def methods(full: bool, n_steps: int, average: str) -> dict[str, tuple[str, Method]]:
    """Name, steps and method, in the order of the table."""
    plain = min(n_steps, 4000)
    vi: dict[str, Any] = dict(magnitude=0.0, n_steps=plain)
    pvi: dict[str, Any] = dict(n_steps=n_steps, average=average)
    methods_by_name: dict[str, tuple[str, Method]] = {
        "VI, gradient .001": (
            f"{plain}",
            gradient(optimizer="gradient", learning_rate=1e-3, **vi),
        ),
        "VI, Adam": (f"{plain}", gradient(**vi)),
        "PVI, entropy": (f"{n_steps}", gradient(**pvi)),
        "annealing": (f"{n_steps}", gradient(method="annealing", **pvi)),
    }
    if full:
        slow = {
            "VI, gradient .0001": dict(optimizer="gradient", learning_rate=1e-4, **vi),
            "VI, Adam .01": dict(learning_rate=0.01, magnitude=0.0, n_steps=2 * n_steps),
            "PVI, entropy, gamma 1e-20": dict(gamma=1e-20, **pvi),
            "PVI, entropy, gamma 1e-5": dict(gamma=1e-5, **pvi),
            "PVI, entropy, linear": dict(shape="linear", **pvi),
            "PVI, KL": dict(statistic="kl", **pvi),
            "PVI, mean and variance, gamma 1e-20": dict(
                statistic="mean_variance", gamma=1e-20, **pvi
            ),
            "PVI, entropy, Algorithm 1": dict(method="inner", n_inner=5, **pvi),
        }
        for name, options in slow.items():
            methods_by_name[name] = (str(options["n_steps"]), gradient(**options))
    methods_by_name |= {
        "coordinate ascent": (f"{SWEEPS}", coordinate_ascent),
        "TemperedFMM, plain": (f"{SWEEPS}", tempered(1)),
        "TemperedFMM, annealed": (
            f"{SWEEPS}",
            tempered(Annealed(1e4, length=0.5, shape="exponential")),
        ),
        "TemperedFMM, Proximity": (f"{SWEEPS}", tempered(Proximity())),
    }
    return methods_by_name


def near(means: NDArray) -> NDArray[np.bool_]:
    """Which ends are within NEAR of the truth."""
    return np.linalg.norm(means - TRUTH, axis=1) < NEAR


SHOWN = {
    "VI, Adam": "VI",
    "PVI, entropy": "PVI-entropy",
    "annealing": "deterministic annealing",
    "coordinate ascent": "coordinate ascent",
    "TemperedFMM, annealed": "coordinate annealing",
    "TemperedFMM, Proximity": "coordinate PVI",
}


def draw(starts: NDArray, ends: dict[str, NDArray]) -> Any:
    """Arrows from starts to ends, one panel per method."""
    figure, axes = pyplot.subplots(
        2, 3, figsize=(11, 7.8), sharex=True, sharey=True, layout="constrained"
    )
    for ax, (name, title) in zip(axes.flat, SHOWN.items(), strict=True):
        back = near(ends[name])
        for arrived, colour in ((False, "#c44e52"), (True, "#4c72b0")):
            begin = starts[back == arrived]
            end = ends[name][back == arrived]
            ax.quiver(
                *begin.T,
                *(end - begin).T,
                color=colour,
                angles="xy",
                scale_units="xy",
                scale=1,
                width=0.0035,
                headwidth=6,
                headlength=7,
                alpha=0.55,
            )
            ax.plot(*end.T, ".", color=colour, markersize=5)
        ax.plot(*starts.T, ".", color="0.45", markersize=3)
        ax.plot(*TRUTH, "*", color="black", markersize=11)
        ax.set(aspect="equal")
        ax.set_title(f"{title}: {np.count_nonzero(back)} of {len(back)}", fontsize=11)
    for ax in axes[-1]:
        ax.set_xlabel(r"$\mu_1$")
    for ax in axes[:, 0]:
        ax.set_ylabel(r"$\mu_2$")
    figure.legend(
        handles=[
            Line2D([], [], color="0.45", marker=".", linestyle="", label="start"),
            Line2D([], [], color="black", marker="*", linestyle="", markersize=10, label="truth"),
            Line2D([], [], color="#4c72b0", marker=".", label=f"ends within {NEAR:.0f} of it"),
            Line2D([], [], color="#c44e52", marker=".", label="ends elsewhere"),
        ],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    return figure


def main(argv: Sequence[str] | None = None) -> dict[str, list[int]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--starts", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--steps", type=int, default=10_000, help="of gradient methods")
    parser.add_argument("--full", action="store_true")
    averages = ["parameters", "statistic"]
    parser.add_argument("--average", default="parameters", choices=averages, help="of the penalty")
    parser.add_argument("--output", default="proximity_ring.png")
    arguments = parser.parse_args(argv)
    n_starts = arguments.starts
    if n_starts is None:
        n_starts = 100 if arguments.full else 50
    n_seeds = arguments.seeds
    if n_seeds is None:
        n_seeds = 3 if arguments.full else 1
    if min(n_starts, n_seeds, arguments.steps) < 1:
        parser.error("--starts, --seeds and --steps must be at least 1")
    starts = ring(n_starts)
    data = [make_data(seed) for seed in range(n_seeds)]
    first: dict[str, NDArray] = {}
    counts: dict[str, list[int]] = {}
    print(
        f"| method | steps | within {NEAR:.0f} of the truth, of {n_starts} | ELBO | CPU seconds |"
    )
    print("|---|---|---|---|---|")
    for name, (steps, run) in methods(arguments.full, arguments.steps, arguments.average).items():
        begin = time.process_time()
        with warnings.catch_warnings():
            # plain inference does switch components off here, which is what the figure shows
            warnings.filterwarnings("ignore", message="All 2 components are switched off")
            warnings.filterwarnings("ignore", message="The ELBO had not converged")
            results = [run(X, starts) for X in data]
        seconds = time.process_time() - begin
        counts[name] = [int(np.count_nonzero(near(means))) for means, _ in results]
        first[name] = results[0][0]
        median = np.median(np.concatenate([elbo for _, elbo in results]))
        n_found = ", ".join(map(str, counts[name]))
        print(f"| {name} | {steps} | {n_found} | {median:.1f} | {seconds:.1f} |", flush=True)
    save(draw(starts, first), arguments.output)
    return counts


if __name__ == "__main__":
    main()
