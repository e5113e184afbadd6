"""Does it matter where the mixtures start?  Tables of docs/evidence.md.

    python -m bench.studies.mixture_starts [--seeds 20]

Factorial mixtures are fitted to the toys of bench/studies/mixtures.py, to random patterns in 64
dimensions and to scikit-learn's digits.  Besides the inits of TemperedFMM there are two that it
does not have: rows of X drawn uniformly and scaled to the length of "random", and D^2 sampling on
what earlier seeds leave of the data ("residuals").  Printed are the ELBO and the components found:
of one start, as the mean over seeds and restarts, and of the start with the best ELBO of five, as
the mean over seeds.  The digits are one data set and get a fifth of the seeds.

Gaussian mixtures are fitted to real data and blobs, from ten starts with every init_params.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_digits, make_blobs

from annealvi import TemperedFMM, TemperedGaussianMixture
from annealvi.datasets import make_shape_mixture
from annealvi.metrics import component_recovery
from bench import parser
from bench.studies.mixtures import DIGITS, ignore_warnings, real_problems, shape_sets

RESTARTS, GMM_STARTS = 5, 10
TOY = dict(prior_probability=0.3, noise_variance=0.1, component_variance=0.35, tol=0)
METHODS: dict[str, dict[str, Any]] = {"plain": dict(temperature=1), "annealed": {}}
GMM_INITS = ("kmeans", "k-means++", "random_from_data", "random")
Start = Callable[[NDArray, int, np.random.RandomState], NDArray]


def uniform_rows(X: NDArray, n_components: int, rng: np.random.RandomState) -> NDArray:
    """Uniformly drawn rows, scaled as by init="kmeans++" with learned noise."""
    rows = X[rng.choice(len(X), n_components, replace=False)]
    length = np.sqrt(min(2 * X.var(), X.shape[1] * np.mean(X**2)))
    return rows * (length / np.linalg.norm(rows, axis=1, keepdims=True))


def uniform_toy_rows(X: NDArray, n_components: int, rng: np.random.RandomState) -> NDArray:
    """The same with known noise."""
    rows = X[rng.choice(len(X), n_components, replace=False)]
    return rows * (np.sqrt(2 * 0.1) / np.linalg.norm(rows, axis=1, keepdims=True))


def residuals(X: NDArray, n_components: int, rng: np.random.RandomState) -> NDArray:
    """D^2 sampling in which each seed is subtracted from the data that it partly explains.

    A seed is the remainder of a datum, drawn with probability proportional to its squared norm.
    As in k-means++, the one of a few draws that leaves least is kept.
    """
    left, seeds = X.copy(), np.empty((n_components, X.shape[1]))
    for k in range(n_components):
        square = np.sum(left**2, axis=1)
        best = -np.inf
        for _ in range(2 + int(np.log(n_components))):
            row = kmeans_plusplus(left, 1, sample_weight=square, random_state=rng)[0][0]
            gains = 2 * left @ row - row @ row
            gain = np.sum(np.maximum(gains, 0))
            if gain > best:
                best, seeds[k], has = gain, row, gains > 0
        left[has] -= seeds[k]
    return seeds


def factor_problems() -> dict[str, tuple[int, dict[str, Any], Callable[[int], Any]]]:
    """For each problem: K, parameters, and a function from a seed to data and true components.

    The true components are None where there are none.
    """

    def toy(shapes: NDArray, n_samples: int) -> Callable[[int], Any]:
        def make(seed: int) -> tuple[NDArray, NDArray]:
            made = make_shape_mixture(n_samples, shapes=shapes, random_state=seed)
            return made.data, made.components

        return make

    patterns = 0.3 * np.random.RandomState(7).standard_normal((8, 64))
    digits = load_digits().data / 16
    problems = {f"{n} shapes": (8, TOY, toy(shapes, 1000)) for n, shapes in shape_sets().items()}
    problems |= {
        f"patterns, D=64, N={n:,}": (8, dict[str, Any](), toy(patterns, n)) for n in (200, 1000)
    }
    problems["digits, K=20"] = (20, {}, lambda seed: (digits, None))
    centred = digits - digits.mean(axis=0)
    problems["digits, centred, K=20"] = (20, {}, lambda seed: (centred, None))
    return problems


def factors(n_seeds: int) -> None:
    """Factorial mixtures: ELBO/N and components found."""
    for name, (K, options, make) in factor_problems().items():
        n_draws = max(1, n_seeds // 5) if "digits" in name else n_seeds
        print(f"\n{name}: ELBO/N / found; one start, best of {RESTARTS}; {n_draws} seeds")
        uniform = uniform_toy_rows if options else uniform_rows
        starts: dict[str, str | Start] = {n: n for n in ("random", "data", "kmeans++")}
        starts |= {"uniform rows, short": uniform, "residuals": residuals}
        for label, start in starts.items():
            line = f"{label:20s}"
            for method in METHODS.values():
                bounds, found = np.empty((n_draws, RESTARTS)), np.zeros((n_draws, RESTARTS))
                for seed, restart in np.ndindex(*bounds.shape):
                    X, truth = make(seed)
                    rng = np.random.RandomState(1000 * seed + restart)
                    init = start if isinstance(start, str) else start(X, K, rng)
                    fmm = TemperedFMM(K, init=init, random_state=rng, **options, **method).fit(X)
                    bounds[seed, restart] = fmm.lower_bound_
                    if truth is not None:
                        found[seed, restart] = component_recovery(fmm.components_, truth)[0]
                line += "   " + summary(bounds, found if truth is not None else None)
            print(line, flush=True)


def gaussians(n_starts: int) -> None:
    """Gaussian mixtures: ELBO/N."""
    problems = real_problems()
    problems |= {
        "digits, 10 principal components, K=30": (problems[DIGITS][0], 30),
        "30 blobs in 2 dimensions, K=30": (
            make_blobs(3000, centers=30, center_box=(-20, 20), random_state=0)[0],
            30,
        ),
    }
    for name, (X, K) in problems.items():
        print(f"\n{name}: ELBO/N; one start (sd), best of {n_starts}")
        for init in GMM_INITS:
            line = f"{init:20s}"
            for method in METHODS.values():
                bounds = np.empty(n_starts)
                for seed in range(n_starts):
                    fit = TemperedGaussianMixture(
                        K, init_params=init, random_state=seed, **method
                    ).fit(X)
                    bounds[seed] = fit.lower_bound_
                line += f"   {bounds.mean():8.3f} ({bounds.std():.3f}), {bounds.max():8.3f}"
            print(line, flush=True)


def summary(bounds: NDArray, found: NDArray | None) -> str:
    """One start, and the best of all starts: means over seeds."""
    best = np.arange(len(bounds)), bounds.argmax(axis=1)
    if found is None:
        return f"{bounds.mean():7.2f}, {bounds[best].mean():7.2f}"
    return (
        f"{bounds.mean():7.2f} / {found.mean():4.2f}, "
        f"{bounds[best].mean():7.2f} / {found[best].mean():4.2f}"
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=20)
    arguments = options.parse_args()
    ignore_warnings()
    factors(arguments.seeds)
    gaussians(GMM_STARTS)


if __name__ == "__main__":
    main()
