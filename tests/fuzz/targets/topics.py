"""Editing and choosing topics: fitted models of some kind, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

from annealvi import TemperedLDA, TopicModel
from annealvi.plot import plot_choice
from annealvi.topics import choose, drop, merge, reduce, refine
from tests.fuzz import matrices
from tests.fuzz.judge import anything, check_not_infinite
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial
from tests.fuzz.values import Kind, choice, mostly, odd, parameters, seed, whole

WORDS = 12
TEXTS = ["star moon orbit", "moon star", "bread butter", "jam bread butter", "star", ""] * 2
LDA = dict(
    temperature=choice(1, "auto", "variational", "local"),
    doc_topic_prior=choice(0.1, "learn", None, [0.1, 0.2, 0.3, 0.4]),
    topic_word_prior=choice(0.1, "learn", None, np.full((4, WORDS), 0.2)),
    preset=choice("annealvi", "sklearn"),
    topic_estimate=choice("map", "variational"),
    random_state=seed,
)


def _given(t: Trial) -> dict[str, Any]:
    names = t.random.sample(list(LDA), t.whole(0, 3))
    return {name: LDA[name].good(t) for name in names}


def _model(t: Trial) -> Any:
    """A model of four topics, and now and then something else."""
    if t.chance(0.1):
        return t.one_of(TemperedLDA(), TopicModel(), odd(t))
    if t.chance(0.2):
        seeds = t.one_of(None, {"space": ["star"]})
        return TopicModel(4, seeds=seeds, lda=TemperedLDA(max_iter=1)).fit(TEXTS)
    lda = TemperedLDA(4, max_iter=1, **_given(t))
    if t.chance(0.2):
        lda.components_ = t.rng.uniform(0.1, 5, (4, WORDS)) ** t.one_of(1, 20)
        return lda
    return lda.fit(matrices.good_corpus(t, 8, WORDS))


def _topic(t: Trial) -> Any:
    return t.one_of(*range(4), *range(4), *range(4), np.int64(1), odd(t))


def _topics(t: Trial) -> Any:
    return t.one_of([_topic(t) for _ in range(t.whole(0, 3))], (0, 1), np.array([1, 2]), odd(t))


def _documents(t: Trial, model: Any) -> Any:
    if isinstance(model, TopicModel):
        return t.one_of(TEXTS, TEXTS, [], [""], odd(t))
    return matrices.corpus(t, WORDS)


def _whole_estimator(t: Trial, edited: Any) -> None:
    """A new model answers as one that was fitted."""
    if isinstance(edited, TopicModel):
        t.call("transform", edited.transform, TEXTS, method=t.one_of("variational", "cvb0", odd(t)))
        return
    X = matrices.good_corpus(t, 5, WORDS)
    t.call("transform", edited.transform, X)
    t.call("partial_fit", edited.partial_fit, X)


def _edit(t: Trial, function: Callable[..., Any], *arguments: Callable[[Trial, Any], Any]) -> None:
    model = _model(t)
    given = [argument(t, model) for argument in arguments]
    answered, edited = t.call(function.__name__, function, model, *given, check=anything)
    if answered:
        _whole_estimator(t, edited)


def _groups(t: Trial, model: Any) -> Any:
    return t.one_of([_topics(t) for _ in range(t.whole(0, 2))], [[0, 1], [2, 3]], odd(t))


def _refine(t: Trial) -> None:
    model = _model(t)
    passes = parameters(t, dict(max_iter=whole(1, 3)))
    X = _documents(t, model)
    answered, edited = t.call("refine", refine, model, X, check=anything, **passes)
    if answered:
        _whole_estimator(t, edited)


CHOOSE = dict(
    n_runs=whole(1, 2),
    criterion=choice("quality", "heldout"),
    max_documents=mostly(whole(2, 10, endless=True), None),
    model=Kind(
        lambda t: t.one_of(TemperedLDA(max_iter=1), TopicModel(lda=TemperedLDA(max_iter=1)))
    ),
    random_state=seed,
)


def _choose(t: Trial) -> None:
    fast = {"model": TemperedLDA(max_iter=1), "n_runs": 1}
    given = fast | parameters(t, CHOOSE)
    ks = t.one_of([2], [1, 3], [2, 4], (3,), np.array([2, 3]), range(1, 3), odd(t))
    if isinstance(given["model"], TopicModel) or t.chance(0.1):
        X = t.one_of(TEXTS, TEXTS, [], ["", ""], odd(t))
    else:
        X = matrices.corpus(t, WORDS)
    answered, found = t.call("choose", choose, X, ks, check=anything, **given)
    if not answered:
        return
    # NaN: the spread and the stability of a single run
    t.call("measures", dict, found.measures, check=check_not_infinite)
    t.call("table", getattr, found, "table", check=check_not_infinite)
    if t.chance(0.1):
        matplotlib.use("Agg")
        axes = t.one_of(None, None, odd(t))
        t.call("plot", found.plot, axes, check=anything)
        t.call("plot_choice", plot_choice, t.one_of(found, odd(t)), axes=axes, check=anything)
        pyplot.close("all")


def _merge(t: Trial) -> None:
    _edit(t, merge, _groups)


def _drop(t: Trial) -> None:
    _edit(t, drop, lambda t, model: _topics(t))


def _reduce(t: Trial) -> None:
    arguments = [lambda t, model: t.one_of(1, 2, 3, 4, np.int64(2), odd(t))]
    _edit(t, reduce, *arguments, *[_documents] * t.whole(0, 1))


TARGETS = (
    Target("topics.merge", _merge, frozenset(["merge"])),
    Target("topics.drop", _drop, frozenset(["drop"])),
    Target("topics.reduce", _reduce, frozenset(["reduce"])),
    Target("topics.refine", _refine, frozenset(["refine"])),
    Target(
        "topics.choose",
        _choose,
        frozenset(["choose", "Choice", "Choice.table", "Choice.plot", "plot_choice"]),
        weight=2,
    ),
)
