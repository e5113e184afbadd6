"""annealvi.plot: figures of anything, drawn without a window."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from annealvi import TemperedLDA, plot
from tests.fuzz import matrices
from tests.fuzz.judge import anything
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial
from tests.fuzz.values import Kind, choice, mostly, odd, parameters, real, whole


@functools.cache
def _fitted() -> TemperedLDA:
    X = np.random.RandomState(0).poisson(1.0, (20, 6))
    return TemperedLDA(3, max_iter=2, evaluate_every=1, random_state=0).fit(X)


def _draw(t: Trial, name: str, *args: Any, **options: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        t.call(name, getattr(plot, name), *args, check=anything, **options)
    finally:
        pyplot.close("all")


def _temperature(t: Trial) -> None:
    estimator = t.one_of(_fitted(), TemperedLDA(), odd(t))
    _draw(t, "plot_temperature", estimator, label=t.one_of(None, "a", "$x", 3))


def _curves(t: Trial) -> None:
    fits = t.one_of({"a": _fitted()}, {"a": [_fitted(), _fitted()]}, {}, {"a": []}, {"a": odd(t)})
    options = dict(
        value=t.one_of("perplexity", "elbo", "heldout", odd(t)),
        over=t.one_of("pass", "step", "seconds", odd(t)),
    )
    _draw(t, "plot_learning_curves", fits, **options)


def _components(t: Trial) -> None:
    table = dict(
        n_columns=whole(1, 8),
        titles=mostly(choice(["a", "b"]), None),
        limit=mostly(real(1e-3, 10.0), None),
        cmap=choice("gray", "RdBu_r"),
    )
    components: Any = matrices.points(t, 6, n_samples=2)
    shape: Kind = choice((2, 3), (3, 2), (6, 1), (2, 2), (0, 6), (-2, -3))
    _draw(
        t,
        "plot_components",
        components,
        shape.good(t) if t.chance(0.8) else odd(t),
        **parameters(t, table),
    )


TARGETS = (
    Target("plot_temperature", _temperature, frozenset(["plot_temperature"])),
    Target("plot_learning_curves", _curves, frozenset(["plot_learning_curves"])),
    Target("plot_components", _components, frozenset(["plot_components"])),
)
