"""annealvi.partition: grids, log C(T) of the models that users make, and its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from annealvi import TemperedLDA, partition
from annealvi.models.lda_prior import LDAPrior
from tests.fuzz import matrices
from tests.fuzz.judge import UserError, anything
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
    threads,
    whole,
)


def _grid(t: Trial) -> None:
    table = dict(t_max=mostly(real(1.001, 100.0), *EXTREMES), size=whole(2, 30))
    given = dict(t_max=4.0, size=5) | parameters(t, table)
    name = t.one_of("even_grid", "exponential_grid")
    t.call(name, getattr(partition, name), **given)


def _inverses(t: Trial) -> Any:
    good = t.one_of(
        [1.0, 0.5],
        [1, 0.9, 0.1],
        partition.even_grid(t.one_of(2, 10, 1e3), 7),
        partition.exponential_grid(t.one_of(2, 10, 1e3, 1e300), 5),
    )
    return good if t.chance(0.8) else t.one_of([1.0], [0.5, 0.1], [1, 1], [1, 2], odd(t))


class Own:
    """A model of a user's own, whose methods may give anything."""

    def __init__(self, t: Trial) -> None:
        self.t = t
        self.n_samples = t.one_of(1, 10, 0, 10**6)
        self.value = t.one_of(0.0, 1.0, np.nan, 1e300, "a", None)

    def sample_prior(self, rng: Any) -> Any:
        """A draw, or an error of the user's."""
        if self.t.chance(0.05):
            raise UserError("my prior")
        return rng.standard_normal()

    def local_log_partition(self, parameters: Any, inverse: Any) -> Any:
        """A number for each temperature, or something else."""
        if isinstance(self.value, float):
            return (1 - inverse) * self.value * parameters
        return self.value


def _prior(t: Trial) -> tuple[bool, Any]:
    K, V = t.whole(1, 4), t.whole(1, 8)
    prior = mostly(real(1e-3, 10.0), None, 1e-40, 1e-300, 1e30, 1e300)
    table = dict(
        n_components=whole(1, 4),
        n_features=whole(1, 8),
        document_lengths=Kind(lambda t: t.rng.poisson(3.0, t.whole(1, 6)) * t.one_of(1, 1, 0, 100)),
        doc_topic_prior=Kind(lambda t: t.one_of(prior, array((K,))).good(t)),
        topic_word_prior=Kind(lambda t: t.one_of(prior, array((V,), (K, V))).good(t)),
        form=choice("explicit", "collapsed"),
    )
    given = dict(n_components=K, n_features=V, document_lengths=[3, 5, 0]) | parameters(t, table)
    if t.chance(0.2):
        del given["document_lengths"], given["n_features"]
        X = matrices.corpus(t, V, damaged=0.0)
        return t.call("from_counts", LDAPrior.from_counts, X, check=anything, **given)
    return t.call("LDAPrior", LDAPrior, check=anything, **given)


def _lda_prior(t: Trial) -> None:
    answered, prior = _prior(t)
    if not answered:
        return
    t.call("log_mean_word", prior.log_mean_word, _inverses(t))
    t.call("hyperparameters", prior.hyperparameters)
    _estimate(t, prior)


def _estimate(t: Trial, model: Any) -> None:
    table = dict(
        method=choice("auto", "exact", "monte-carlo", "jensen", "map", "posterior"),
        n_samples=whole(2, 6),
        n_theta=whole(1, 6),
        random_state=seed,
        n_jobs=threads,
        data=Kind(lambda t: matrices.corpus(t, 6) if t.chance(0.8) else odd(t)),
    )
    given = dict(n_samples=3, n_theta=3) | parameters(t, table)
    answered, result = t.call(
        "log_partition",
        partition.log_partition,
        model,
        _inverses(t),
        check=anything,
        looks=isinstance(model, TemperedLDA),  # no other model takes data
        **given,
    )
    if answered:
        for name in ("values", "standard_error", "effective_sample_size", "bounds"):
            t.call(name, getattr, result, name)
        t.call("check", result.check, t.one_of(None, _inverses(t)), check=anything)


def _log_partition(t: Trial) -> None:
    X = np.random.RandomState(0).poisson(1.0, (9, 6))
    lda = TemperedLDA(2, max_iter=1, random_state=0).fit(X)
    _estimate(t, t.one_of(lda, Own(t), TemperedLDA(), odd(t)))


def _result(t: Trial) -> None:
    values = t.one_of(array((2,), (3,)).good(t), odd(t))
    answered, result = t.call(
        "LogPartition",
        partition.LogPartition,
        _inverses(t),
        values,
        made_for=t.one_of({}, {"n_words": 3}, {"alpha": odd(t)}),
        check=anything,
    )
    if answered:
        t.call("check", result.check, t.one_of(None, _inverses(t)), check=anything)
        t.call("check", result.check, None, {"n_words": odd(t)}, check=anything)
        t.call("==", lambda: result == t.one_of(result, odd(t)))


_PRIOR = (
    *("from_counts", "hyperparameters", "log_mean_word", "log_partition"),
    *("draw_log_partition", "jensen_log_partition", "map_log_partition"),
)
TARGETS = (
    Target("grids", _grid, frozenset(["even_grid", "exponential_grid"])),
    Target("LDAPrior", _lda_prior, frozenset(["LDAPrior", *(f"LDAPrior.{m}" for m in _PRIOR)]), 3),
    Target("log_partition", _log_partition, frozenset(["log_partition"]), 2),
    Target("LogPartition", _result, frozenset(["LogPartition", "LogPartition.check"])),
)
