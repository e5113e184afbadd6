"""Does tempering find better optima of mixtures?  This makes tables of docs/record/evidence.md.

    python -m bench.studies.mixtures [--seeds 20] [--starts 100] [--parts factors dimensions ...]

The script prints five parts:

- Small factorial mixtures (Mandt et al. 2016, Fig. 4): N = 1,000 images of 4 x 4 pixels are sums of
  8 shapes, with pi = 0.3, sigma_n = 0.1, sigma_mu = 0.35.  All methods have the same starts, nu =
  pi and m ~ N(0, sigma_mu).  Every fit makes 200 sweeps, and so does each of the ten fits of "best
  of 10".  The shapes are the bundled shapes, bars, and random shapes.
- Factorial mixtures in many dimensions, from which the defaults were chosen.
- Inference of new data, with and without cooling, from which the defaults were chosen too.
- A mixture of two Gaussians (Katahira et al. 2008): how many of 100 starts N(0, 6^2) end in the
  better of the two optima.
- Gaussian mixtures with learned precisions on real data.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from annealvi import Annealed, Proximity, TemperedFMM, TemperedGaussianMixture, Variational
from annealvi.datasets import load_shapes, make_shape_mixture
from annealvi.metrics import component_recovery
from bench import parser

#: The number of sweeps of every fit, which is the same for all methods.
SWEEPS = 200
FMM_METHODS: dict[str, dict[str, Any]] = {
    "VI": dict(temperature=1),
    "best of 10 VI": dict(temperature=1, n_init=10),
    "AVI linear, 10 iterations": dict(temperature=Annealed(10, passes=10, shape="linear")),
    "AVI linear, 100": dict(temperature=Annealed(10, passes=100, shape="linear")),
    "AVI exponential, 100": dict(temperature=Annealed(10, passes=100, shape="exponential")),
    "AVI posterior form, 100": dict(
        temperature=Annealed(10, passes=100, shape="exponential", form="posterior")
    ),
    "VT to 100, damped .03": dict(temperature=Variational(t_max=100)),
    "VT to 10, undamped": dict(temperature=Variational.as_printed()),
    "proximity": dict(temperature=Proximity()),
    "proximity, KL": dict(temperature=Proximity("kl")),
    "proximity, gamma 1e-10": dict(temperature=Proximity(gamma=1e-10)),
}
GMM_METHODS: dict[str, Any] = {
    "VI": 1,
    "linear 100 to 1": Annealed(100, length=0.5, shape="linear"),
    "exponential 20 to 1": Annealed(20, length=0.5, shape="exponential"),
    "linear 3.9 to 1": Annealed(3.9, length=0.5, shape="linear"),
    "annealed (default)": "annealed",
    "variational (default)": "variational",
}


DIGITS = "digits, 10 principal components, K=10"


def shape_sets() -> dict[str, NDArray[np.float64]]:
    """Three sets of shapes of 4 x 4 pixels: the bundled shapes, bars, and random shapes."""
    rows = [np.outer(row, np.ones(4)).ravel() for row in np.eye(4)]
    columns = [np.outer(np.ones(4), column).ravel() for column in np.eye(4)]
    random = np.random.RandomState(5).random_sample((8, 16)) < 0.35
    return {
        "shipped": load_shapes().data,
        "bars": np.array(rows + columns),
        "random": random.astype(np.float64),
    }


def factors(n_seeds: int) -> None:
    """Print ELBO/N and the number of recovered components, one row per method."""
    for name, shapes in shape_sets().items():
        print(f"\nfactorial mixture, {name} shapes, {n_seeds} seeds")
        toys = [make_shape_mixture(1000, shapes=shapes, random_state=s) for s in range(n_seeds)]
        best = np.full(n_seeds, -np.inf)
        for method, options in FMM_METHODS.items():
            bounds = []
            n_recovered = []
            began = time.perf_counter()
            for seed, toy in enumerate(toys):
                fmm = TemperedFMM(
                    8,
                    prior_probability=0.3,
                    noise_variance=0.1,
                    component_variance=0.35,
                    init="prior",
                    max_iter=SWEEPS,
                    tol=0,
                    random_state=seed,
                    **options,
                ).fit(toy.data)
                bounds.append(fmm.lower_bound_)
                n_recovered.append(component_recovery(toy.components, fmm.components_)[0])
            seconds = (time.perf_counter() - began) / n_seeds
            best = np.maximum(best, bounds)
            print(
                f"{method:28s} ELBO/N {np.mean(bounds):8.2f}   "
                f"found {np.mean(n_recovered):4.2f} of 8   {seconds:.2f} s"
            )
        print(f"{'best of all':28s} ELBO/N {np.mean(best):8.2f}")


def dimensions(n_seeds: int) -> None:
    """Print the same in many dimensions, where long draws or a high T switch components off."""
    methods: dict[str, dict[str, Any]] = {
        "VI from the prior": dict(temperature=1, init="prior"),
        "VI": dict(temperature=1),
        "annealed from 10": dict(temperature=Annealed(10, 0.5, shape="exponential")),
        "annealed (default)": {},
    }
    print(f"\nfactorial mixture, 8 random patterns, learned noise, {n_seeds} seeds")
    for n_features, n_samples in ((64, 200), (64, 1000), (512, 200), (512, 1000)):
        patterns = 0.3 * np.random.RandomState(7).standard_normal((8, n_features))
        for method, options in methods.items():
            bounds = []
            n_recovered = []
            for seed in range(n_seeds):
                toy = make_shape_mixture(n_samples, shapes=patterns, random_state=seed)
                fmm = TemperedFMM(8, random_state=seed, **options).fit(toy.data)
                bounds.append(fmm.lower_bound_)
                n_recovered.append(component_recovery(toy.components, fmm.components_)[0])
            print(
                f"D={n_features:4d} N={n_samples:5d} {method:20s}"
                f" T from {fmm.temperature_path_[0]:5.2f}   ELBO/N {np.mean(bounds):8.1f}"
                f"   found {np.mean(n_recovered):4.1f} of 8"
            )


def inference(n_seeds: int) -> None:
    """Print the gain of cooling in the inference of new data, with fixed components."""
    from annealvi.models import fmm as module

    print(f"\nfactorial mixture: sweeps over new data, {n_seeds} seeds, shipped shapes")
    observed = np.arange(16) % 2 == 0
    for cooling in (0, 10):
        module.COOLING_SWEEPS = cooling or 1
        module.COOLING_START = 10.0 if cooling else 1.0
        scores = []
        predictions = []
        for seed in range(n_seeds):
            toy = make_shape_mixture(1500, random_state=seed).data
            fmm = TemperedFMM(8, noise_variance=0.1, random_state=seed).fit(toy[:1000])
            scores.append(fmm.score(toy[1000:]))
            predictions.append(fmm.predictive_score(toy[1000:], observed))
        print(
            f"{cooling:2d} cooling sweeps   score {np.mean(scores):7.3f}   "
            f"predictive_score {np.mean(predictions):7.3f}"
        )


def better_optima(temperature: Any, n_starts: int, seed: int = 0) -> float:
    """The share of starts from which a mixture of two Gaussians ends in the better optimum."""
    rng = np.random.RandomState(seed)
    z = rng.random_sample(500) < 0.3
    X = (np.where(z, 4.0, -4.0) + rng.standard_normal(500))[:, None]
    starts = 6 * np.random.RandomState(seed + 1).standard_normal((n_starts, 2, 1))
    options = dict(weights=[0.3, 0.7], covariances=1.0, mean_prior=[0.0], mean_precision_prior=0.1)
    fits = [
        TemperedGaussianMixture(2, means_init=means, temperature=temperature, tol=0, **options).fit(
            X
        )
        for means in starts
    ]
    # the bounds of the optima are -2.05 and -2.35 per datum
    return float(np.mean([fit.lower_bound_ > -2.1 for fit in fits]))


def two_gaussians(n_starts: int) -> None:
    """Print the share of starts that end in the better optimum, for each method."""
    print(f"\ntwo Gaussians, {n_starts} starts, 200 iterations")
    for method, temperature in GMM_METHODS.items():
        print(f"{method:28s} better optimum {better_optima(temperature, n_starts):4.0%}")


def real_problems() -> dict[str, tuple[NDArray[np.float64], int]]:
    """The data and the numbers of components of Gaussian mixtures on real data."""
    return {
        "iris, K=3": (load_iris().data, 3),
        "wine, K=3": (scale(load_wine().data), 3),
        DIGITS: (PCA(10, random_state=0).fit_transform(load_digits().data), 10),
    }


def real_data(n_seeds: int) -> None:
    """Print ELBO/N of mixtures with learned precisions, with and without annealing."""
    print(f"\nGaussian mixtures on real data: ELBO/N, mean and sd over {n_seeds} seeds")
    for name, (X, n_components) in real_problems().items():
        for init in ("kmeans", "random_from_data"):
            line = f"{name:38s} {init:17s}"
            for temperature in (1, "annealed"):
                bounds = [
                    TemperedGaussianMixture(
                        n_components, init_params=init, temperature=temperature, random_state=seed
                    )
                    .fit(X)
                    .lower_bound_
                    for seed in range(n_seeds)
                ]
                label = "plain" if temperature == 1 else "annealed"
                line += f"  {label} {np.mean(bounds):8.3f} ± {np.std(bounds):.3f}"
            print(line)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "factors": lambda arguments: factors(arguments.seeds),
    "dimensions": lambda arguments: dimensions(arguments.seeds),
    "inference": lambda arguments: inference(arguments.seeds),
    "two-gaussians": lambda arguments: two_gaussians(arguments.starts),
    "real-data": lambda arguments: real_data(arguments.seeds),
}


def ignore_warnings() -> None:
    """Ignore warnings that a fit has not converged, or that all components are switched off."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message="All .* components are switched off")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--starts", type=int, default=100)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = options.parse_args()
    ignore_warnings()
    for study in arguments.parts:
        PARTS[study](arguments)


if __name__ == "__main__":
    main()
