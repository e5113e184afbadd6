"""annealvi.proximity: the ascent, its model, its optimiser and its penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from annealvi import proximity
from annealvi.exceptions import DivergenceError
from tests.fuzz import matrices
from tests.fuzz.judge import anything
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial
from tests.fuzz.values import (
    EXTREMES,
    Kind,
    array,
    choice,
    mostly,
    odd,
    parameters,
    real,
    seed,
    whole,
)

ASCENT = dict(
    statistic=choice("entropy", "kl", "mean", "variance", "mean_variance"),
    method=choice("fast", "inner", "annealing"),
    magnitude=mostly(real(1e-3, 1e3), None, 0, 1e300),
    shape=choice("exponential", "linear"),
    gamma=mostly(real(1e-10, 1.0), 1, 1e-300),
    decay=mostly(real(0.1, 1.0), 1, 1e-300),
    n_steps=whole(1, 5),
    optimizer=choice("adam", "gradient"),
    learning_rate=mostly(real(1e-4, 10.0), 1e300, 1e-300),
    n_inner=whole(1, 3),
    noise=mostly(real(1e-3, 1.0), 0, 1e300),
    n_records=whole(1, 5, endless=True),
    random_state=seed,
)


def _ascent(t: Trial) -> None:
    answered, ascent = t.call(
        "ProximityAscent",
        proximity.ProximityAscent,
        check=anything,
        **{"n_steps": 3} | parameters(t, ASCENT),
    )
    if not answered:
        return
    X = matrices.points(t, 3) if t.chance(0.5) else matrices.good_points(t, 5, 3)
    model_table = dict(
        prior_probability=mostly(real(1e-3, 0.999), [0.5, 0.5], 1e-300, 1 - 1e-16),
        noise_variance=mostly(real(1e-3, 1e3), *EXTREMES),
    )
    answered, model = t.call(
        "BernoulliFactorModel",
        proximity.BernoulliFactorModel,
        X,
        check=anything,
        **parameters(t, model_table),
    )
    if not answered:
        return
    N, D, K = model.n_samples, model.n_features, len(model.prior_probability)
    K = K if K > 1 else 2
    shapes = ((K, D), (2, K, D))
    means = array(*shapes, positive=False).good(t) if t.chance(0.9) else odd(t)
    logits = t.one_of(None, array((1, K, N), (2, K, N), positive=False).good(t), 0.5, odd(t))
    answered, result = t.call(
        "ascend", ascent.ascend, model, means, logits, check=anything, allows=(DivergenceError,)
    )
    if answered:
        for name in ("logits", "means", "elbo", "elbo_path"):
            t.call(name, getattr, result, name)


def _model(t: Trial) -> None:
    """The methods of a model at a q of its own: numbers that are finite, if these were small."""
    model = proximity.BernoulliFactorModel(matrices.good_points(t, 4, 3))
    q = proximity.Bernoulli(t.rng.normal(0, t.one_of(1.0, 30.0, 1e3), (1, 2, 4)))
    answered, means = t.call(
        "check_means",
        model.check_means,
        array((2, 3), (1, 2, 3), positive=False).good(t),
        check=anything,
    )
    if answered and means.shape == (1, 2, 3) and np.max(np.abs(means)) < 1e100:
        t.call("elbo", model.elbo, q, means)
        t.call("gradients", model.gradients, q, means)
    t.call("best_means", model.best_means, q)


def _penalty(t: Trial) -> None:
    u = t.one_of(array((3,), (), positive=False).good(t), odd(t))
    for name in ("inverse_huber", "inverse_huber_derivative"):
        t.call(name, getattr(proximity, name), u, check=anything)
    decay: Kind = mostly(real(0.1, 1.0), 1, 1e-300)
    answered, average = t.call(
        "MovingAverage",
        proximity.MovingAverage,
        decay.good(t) if t.chance(0.6) else odd(t),
        check=anything,
    )
    for _ in range(3 if answered else 0):
        t.call("update", average.update, t.one_of(1.0, 2.0, [1.0, 2.0]), check=anything)


def _adam(t: Trial) -> None:
    rate: Any = t.one_of(0.1, 1e-3, 1.0)
    answered, adam = t.call("Adam", proximity.Adam, rate, check=anything)
    for _ in range(3 if answered else 0):
        t.call("step", adam, t.rng.standard_normal(4) * t.one_of(1.0, 1e-200, 1e100, 0.0))


_MODEL = ("check_means", "elbo", "gradients", "best_means", "n_samples", "n_features")
TARGETS = (
    Target("ProximityAscent", _ascent, frozenset(["ProximityAscent", "ProximityAscent.ascend"]), 2),
    Target(
        "BernoulliFactorModel",
        _model,
        frozenset(["BernoulliFactorModel", *(f"BernoulliFactorModel.{m}" for m in _MODEL)]),
    ),
    Target(
        "penalty",
        _penalty,
        frozenset(
            ["MovingAverage", "MovingAverage.update", "inverse_huber", "inverse_huber_derivative"]
        ),
    ),
    Target("Adam", _adam, frozenset(["Adam"])),
)
