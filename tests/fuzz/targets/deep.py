"""The deep models, small: parameters mostly.  Only with ``--deep``, as a fit takes long."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from annealvi import deep, schedules
from annealvi.exceptions import DivergenceError
from tests.fuzz import matrices
from tests.fuzz.judge import anything, check_finite
from tests.fuzz.public import DEEP, surface
from tests.fuzz.target import Target
from tests.fuzz.targets.calls import copied, read
from tests.fuzz.trial import Trial
from tests.fuzz.values import Kind, callback, choice, mostly, odd, parameters, real, seed, whole

ALLOWS = (DivergenceError,)
FEW = whole(1, 3)


def _mean(q: Any, prior: Any) -> Any:
    return q.mean


def _several(q: Any, prior: Any) -> Any:
    return q.mean.sum(dim=-1), q.variance


def _lengths(weights: Any) -> Any:
    return weights[0].norm(dim=1)


def _detached(q: Any, prior: Any) -> Any:
    return q.mean.detach()


def _infinite(q: Any, prior: Any) -> Any:
    return q.mean / 0


def _nothing(*given: Any) -> None:
    return None


def _smooth(u: Any) -> Any:
    return torch.cosh(u) - 1


def _root(u: Any) -> Any:
    return u.abs().sqrt()


#: Statistics and distances of the user's own, right and wrong.
OWN = (_mean, _several, deep.WeightStatistic(_lengths), _detached, _infinite, _nothing)
DISTANCES = (_smooth, _root, torch.sum, torch.log, _nothing)
STATISTICS = ("entropy", "kl", "mean", "variance", "mean_variance", "orthogonal")
PENALTY = dict(
    statistic=Kind(lambda t: t.one_of(*STATISTICS, *OWN), calls=True),
    distance=Kind(lambda t: t.one_of("inverse_huber", "square", *DISTANCES), calls=True),
    magnitude=mostly(real(1e-3, 1e3), None, 0),
    shape=choice("exponential", "linear"),
    gamma=mostly(real(1e-10, 1.0), 1),
    decay=mostly(real(0.1, 1.0), 1),
)
TRAINING = dict(
    learning_rate=mostly(real(1e-4, 0.1), 1e-300, 1e300),
    batch_size=whole(1, 20, endless=True),
    max_iter=whole(1, 3),
    device=choice("cpu"),
    random_state=seed,
    verbose=choice(0, 1),
    callback=callback,
)
MODEL = TRAINING | dict(
    proximity=Kind(
        lambda t: t.one_of(None, "entropy", "kl", _penalty(t), t.one_of(*OWN)), calls=True
    ),
    temperature=choice(1, 2.0, "annealed"),
)
SCHEDULE = choice(
    None, schedules.Linear(0.01, 1.0), schedules.Exponential(0.5, 0.9), lambda step: -1.0, "linear"
)
HIDDEN = mostly(choice((4,), [3, 2], (1,)), [], (0,), (-1,), (2.5,), "4")
TABLES: dict[Any, dict[str, Kind]] = {
    deep.PoissonDEF: MODEL
    | dict(
        n_components=whole(1, 4),
        prior_rate=mostly(real(0.01, 1.0), 1e-300, 1e300),
        background=mostly(real(1e-3, 1.0), 1e-300, 1e300),
        n_draws=whole(1, 3),
        n_local_steps=whole(1, 3),
    ),
    deep.SigmoidBeliefNetwork: MODEL
    | dict(
        hidden=HIDDEN,
        n_draws=whole(2, 3),
        initial_weight=mostly(real(1e-3, 10.0), None),
        initial_prior=real(0.01, 0.99),
    ),
    deep.VariationalAutoencoder: MODEL
    | dict(
        n_components=whole(1, 4),
        hidden=HIDDEN,
        n_transitions=whole(0, 2),
        transition_hidden=whole(1, 4),
        units=choice("relu", "gated"),
        annealing=mostly(real(1e-3, 1.0), 0.0, 1.0),
        schedule=SCHEDULE,
        calibration=mostly(real(1e-3, 1.0), 0.0, 1.0),
    ),
}
SMALL: dict[Any, dict[str, Any]] = {
    deep.PoissonDEF: dict(n_components=2, n_draws=2, n_local_steps=2),
    deep.SigmoidBeliefNetwork: dict(hidden=(3,), n_draws=2),
    deep.VariationalAutoencoder: dict(n_components=2, hidden=(4,)),
}


def _penalty(t: Trial) -> Any:
    return deep.ProximityPenalty(**parameters(t, PENALTY))


def _penalties(t: Trial) -> None:
    given = parameters(t, PENALTY)
    answered, penalty = t.call("ProximityPenalty", deep.ProximityPenalty, check=anything, **given)
    if answered:
        t.call("check", penalty.check)
        t.call("plan", penalty.plan, t.one_of(1, 10), check=anything)


def _weights(t: Trial) -> None:
    function = t.one_of(_lengths, _nothing, Kind(_penalty, calls=True).odd(t))
    t.call("WeightStatistic", deep.WeightStatistic, function, check=anything)


def _data(t: Trial, kind: Any, good: bool) -> Any:
    X = matrices.good_corpus(t, t.whole(2, 6), 5) if good else matrices.corpus(t, 5)
    if kind is not deep.PoissonDEF and good:
        X = (X.toarray() if hasattr(X, "toarray") else X) > 0
        X = X.astype(np.float32)
    return X


def _files(t: Trial, estimator: Any, X: Any) -> None:
    """Save the state of the training, and resume it from another file perhaps."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.pt")
        t.call("save_state", estimator.save_state, path, check=anything, allows=(AttributeError,))
        other = t.one_of(path, path, Path(folder, "none.pt"), odd(t))
        t.call("fit", estimator.fit, X, resume=other, check=anything, allows=(*ALLOWS, OSError))


def _model(kind: Any) -> Any:
    methods = [
        name.partition(".")[2]
        for name in sorted(surface(DEEP))
        if name.startswith(f"{kind.__name__}.")
    ]
    attributes = [name for name in methods if name.endswith("_")]
    others = ("fit", "sample", "save_state", "state_dict", "load_state_dict")  # two are of files
    of_data = [m for m in methods if m not in (*attributes, *others)]

    def run(t: Trial) -> None:
        given = SMALL[kind] | {"max_iter": 2} | parameters(t, TABLES[kind])
        _, estimator = t.call(kind.__name__, partial(kind, **given), check=anything)
        X = _data(t, kind, t.chance(0.8))
        t.call("fit", estimator.fit, X, check=anything, allows=ALLOWS)
        if t.chance(0.1):
            _files(t, estimator, _data(t, kind, t.chance(0.8)))
        if t.chance(0.2):
            estimator = copied(t, estimator)
        for name in t.random.sample(of_data, 2):
            if name == "top_words":
                t.call(name, estimator.top_words, t.one_of(3, odd(t)), check=anything)
            elif name == "inverse_transform":
                t.call(name, estimator.inverse_transform, matrices.points(t, 2))
            else:
                t.call(name, getattr(estimator, name), _data(t, kind, t.chance(0.5)))
        t.call("sample", estimator.sample, t.one_of(1, 3, FEW.odd(t)))
        for name in attributes:
            read(t, name, estimator)

    return run


def _log_density(z: torch.Tensor) -> torch.Tensor:
    return -0.5 * (z**2).sum(dim=-1)


POSTERIOR = TRAINING | dict(
    dim=whole(1, 3),
    n_transitions=whole(1, 3),
    transition=choice("gaussian", "flow"),
    objective=choice("avo", "elbo"),
    calibration=mostly(real(1e-3, 1.0), 0.0, 1.0),
    annealing=mostly(real(1e-3, 1.0), 0.0, 1.0),
    schedule=SCHEDULE,
    hidden=whole(1, 4),
    n_init=whole(1, 2),
    log_density=choice(_log_density, lambda z: z * float("nan"), lambda z: z),
)


def _posterior(t: Trial) -> None:
    given = dict(log_density=_log_density, dim=2, n_transitions=2, hidden=3, max_iter=2)
    given |= parameters(t, POSTERIOR)
    kind = deep.HierarchicalPosterior
    _, estimator = t.call(kind.__name__, partial(kind, **given), check=anything)
    t.call("fit", estimator.fit, check=anything, allows=ALLOWS)
    usual = given["log_density"] is _log_density
    check = check_finite if usual else anything
    few = dict(n_draws=3, n_reverse=3)
    t.call("score", estimator.score, check=check, **few)
    t.call("evidence_bounds", estimator.evidence_bounds, check=check, **few)
    t.call("sample", estimator.sample, t.one_of(1, 3, FEW.odd(t)), check=check)
    t.call("layers", estimator.layers, t.one_of(1, 3, FEW.odd(t)), check=check)
    t.call(
        "score_samples", estimator.score_samples, matrices.points(t, 2), n_reverse=2, check=anything
    )
    for name in ("history_", "n_iter_", "temperature_path_"):
        read(t, name, estimator)


def _covers(kind: Any) -> frozenset[str]:
    name = kind.__name__
    return frozenset(n for n in surface(DEEP) if n == name or n.startswith(f"{name}."))


TARGETS = (
    *(Target(f"deep.{kind.__name__}", _model(kind), _covers(kind)) for kind in TABLES),
    Target("deep.HierarchicalPosterior", _posterior, _covers(deep.HierarchicalPosterior)),
    Target("deep.ProximityPenalty", _penalties, _covers(deep.ProximityPenalty)),
    Target("deep.WeightStatistic", _weights, _covers(deep.WeightStatistic)),
)
