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


def _own(q: Any, prior_logit: Any) -> Any:
    """A statistic as a user may write it."""
    return q.probability, q.variance


def _product(q: Any, prior_logit: Any) -> Any:
    return q.logit.sum(axis=-1), lambda c: c[..., None] * np.ones_like(q.logit)


#: Functions that do not keep to what is agreed.
WRONG = (
    lambda q, prior_logit: q.probability,
    lambda q, prior_logit: (q.probability, -q.variance),
    lambda q, prior_logit: (q.probability.sum(), q.variance),
    lambda q, prior_logit: (q.probability * np.nan, q.variance),
    lambda q, prior_logit: (None, None),
)
SMOOTH = proximity.Distance(lambda u: np.sqrt(1 + u * u) - 1, lambda u: u / np.sqrt(1 + u * u))
STATISTIC = Kind(
    lambda t: t.one_of(
        *("entropy", "kl", "mean", "variance", "mean_variance"), _own, _product, t.one_of(*WRONG)
    ),
    calls=True,
)
ASCENT = dict(
    statistic=STATISTIC,
    distance=choice("inverse_huber", "square", SMOOTH),
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


def _checks(t: Trial) -> None:
    """Functions of the user's own, right and wrong."""
    q = proximity.Bernoulli(t.rng.normal(0, t.one_of(1.0, 30.0), (1, 2, 4)))
    statistic = STATISTIC.good(t) if t.chance(0.7) else STATISTIC.odd(t)
    if isinstance(statistic, str):
        statistic = proximity.STATISTICS.get(statistic, statistic)
    t.call(
        "check_statistic",
        proximity.check_statistic,
        statistic,
        q if t.chance(0.8) else odd(t),
        t.one_of(0.0, [[0.3], [-2.0]], np.nan, odd(t)),
        check=anything,
    )
    functions = (np.abs, np.square, np.sum, np.sqrt, np.sign, lambda u: None, lambda u: 2 * u)
    parts = [t.one_of(*functions, STATISTIC.odd(t)) for _ in range(2)]
    t.call("Distance", proximity.Distance, *parts, check=anything)
    if all(map(callable, parts)):
        t.call("check_distance", proximity.check_distance, *parts, check=anything)


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
    Target("checks", _checks, frozenset(["check_statistic", "check_distance", "Distance"])),
    Target("Adam", _adam, frozenset(["Adam"])),
)
