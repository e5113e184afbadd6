"""TemperedFMM and TemperedGaussianMixture: parameters, data and sequences of calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from annealvi import TemperedFMM, TemperedGaussianMixture
from tests.fuzz import matrices
from tests.fuzz.judge import anything
from tests.fuzz.target import Target
from tests.fuzz.targets.calls import Operation, copied, read, sequence
from tests.fuzz.trial import Trial
from tests.fuzz.values import (
    Kind,
    array,
    callback,
    choice,
    flag,
    mostly,
    odd,
    parameters,
    real,
    seed,
    temperature,
    threads,
    whole,
)

COMMON = dict(
    temperature=temperature,
    max_iter=whole(1, 5),
    tol=mostly(real(1e-8, 1.0), 0, 1e300),
    n_init=whole(1, 3),
    random_state=seed,
    verbose=choice(0, 1),
    callback=callback,
)


def fmm_table(K: int, D: int) -> dict[str, Kind]:
    """The kinds of TemperedFMM's parameters."""
    probability = mostly(real(1e-3, 0.999), "learn", 1e-300, 1 - 1e-16, [0.5] * K)
    variance = mostly(real(1e-3, 1e3), 1e-300, 1e-100, 1e-30, 1e30, 1e300)
    return COMMON | dict(
        n_components=whole(1, 5),
        prior_probability=probability,
        noise_variance=Kind(lambda t: "learn" if t.chance(0.5) else variance.good(t)),
        component_variance=Kind(lambda t: None if t.chance(0.5) else variance.good(t)),
        init=Kind(
            lambda t: (
                array((K, D), positive=False).good(t)
                if t.chance(0.3)
                else t.one_of("random", "prior", "data", "kmeans++")
            )
        ),
        covariance=choice("diag", "full"),
        n_jobs=threads,
    )


def gmm_table(K: int, D: int) -> dict[str, Kind]:
    """The kinds of TemperedGaussianMixture's parameters."""
    positive = mostly(real(1e-3, 1e3), None, 1e-300, 1e-30, 1e30, 1e300)
    return COMMON | dict(
        n_components=whole(1, 5),
        covariance_type=choice("diag", "spherical"),
        init_params=choice("kmeans", "k-means++", "random", "random_from_data"),
        means_init=mostly(array((K, D), positive=False), None),
        weights=Kind(lambda t: t.rng.dirichlet(np.ones(K)) if t.chance(0.8) else odd(t)),
        covariances=Kind(lambda t: t.one_of(positive, array((K,), (D,), (K, D))).good(t)),
        weight_concentration_prior=positive,
        mean_precision_prior=positive,
        mean_prior=mostly(array((D,), positive=False), None),
        degrees_of_freedom_prior=positive,
        covariance_prior=Kind(lambda t: t.one_of(positive, array((D,))).good(t)),
    )


# -------------------------------------------------------------------------- operations


def _with_data(t: Trial, estimator: Any, method: str, D: int) -> None:
    """A method of data, and attributes if it was a fit."""
    X = matrices.points(t, D) if t.chance(0.6) else matrices.good_points(t, t.whole(1, 12), D)
    answered, _ = t.call(method, getattr(estimator, method), X)
    if answered and method.startswith("fit"):
        for name in ("lower_bound_", "history_", "temperature_path_"):
            read(t, name, estimator)
        for name, value in list(vars(estimator).items()):
            if name.endswith("_") and not name.startswith("_"):
                t.call(name, lambda value=value: value)


def _predictive(t: Trial, fmm: TemperedFMM, D: int) -> None:
    observed = t.rng.random_sample(D) < 0.5 if t.chance(0.8) else odd(t)
    options = dict(n_draws=t.one_of(1, 10, 0, 2.5, None, "a"), per_sample=flag.good(t))
    X = matrices.points(t, D)
    t.call("predictive_score", fmm.predictive_score, X, observed, **options)


def _inverse(t: Trial, fmm: TemperedFMM, D: int) -> None:
    X = t.one_of(matrices.points(t, len(getattr(fmm, "components_", [0]))), odd(t))
    t.call("inverse_transform", fmm.inverse_transform, X)


def _sample(t: Trial, estimator: Any, D: int) -> None:
    t.call("sample", estimator.sample, whole(1, 20).odd(t) if t.chance(0.4) else t.whole(1, 20))


def _set(t: Trial, estimator: Any, D: int, table: Callable[[int, int], dict[str, Kind]]) -> None:
    t.call("set_params", estimator.set_params, check=anything, **parameters(t, table(3, D)))


READ = (
    *("converged_", "history_", "lower_bound_", "n_iter_", "temperature_", "temperature_path_"),
    *("temperature_posterior_", "temperature_posterior_path_"),
)
FMM = ("fit", "fit", "fit_transform", "transform", "score_samples", "score")
GMM = ("fit", "fit", "fit_predict", "predict", "predict_proba", "score_samples", "score")


def _operations(methods: tuple[str, ...], D: int, table: Any, **others: Any) -> dict[str, Any]:
    found: dict[str, Operation] = {
        name: partial(_named, _with_data, method=name, D=D) for name in methods
    }
    for name, operation in (dict(sample=_sample) | others).items():
        found[name] = partial(_named, operation, D=D)
    found["set_params"] = partial(_named, _set, D=D, table=table)
    found["read"] = lambda t, estimator: read(t, t.one_of(*READ), estimator)
    return found | {"copy": copied}


def _named(function: Any, t: Trial, estimator: Any, **options: Any) -> None:
    function(t, estimator, **options)


def _fmm_operations(D: int) -> dict[str, Operation]:
    return _operations(FMM, D, fmm_table, predictive_score=_predictive, inverse_transform=_inverse)


def _gmm_operations(D: int) -> dict[str, Operation]:
    return _operations(GMM, D, gmm_table)


def _run(t: Trial, kind: Any, table: Any, operations: Any, fitted: bool) -> None:
    K, D = t.whole(1, 5), t.one_of(t.whole(1, 6), t.whole(7, 40))
    given = {"max_iter": 3} | parameters(t, table(K, D))
    given.setdefault("n_components", K)
    _, estimator = t.call(kind.__name__, partial(kind, **given), check=anything)
    if fitted:
        t.call("fit", estimator.fit, matrices.good_points(t, t.whole(1, 30), D))
    sequence(t, estimator, operations(D), longest=5)


def _covers(name: str, operations: dict[str, Operation]) -> frozenset[str]:
    return frozenset([name, *(f"{name}.{member}" for member in (*READ, *operations))])


TARGETS = tuple(
    Target(
        f"{kind.__name__}{'.fitted' * fitted}",
        partial(_run, kind=kind, table=table, operations=operations, fitted=fitted),
        _covers(kind.__name__, operations(2)),
        weight=3,
    )
    for kind, table, operations in (
        (TemperedFMM, fmm_table, _fmm_operations),
        (TemperedGaussianMixture, gmm_table, _gmm_operations),
    )
    for fitted in (False, True)
)
