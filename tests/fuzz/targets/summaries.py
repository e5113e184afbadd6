"""annealvi.topics.describe: models and documents of all kinds, and every method of a summary."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas

from annealvi import TemperedLDA, TopicModel
from annealvi.topics import describe
from tests.fuzz import matrices
from tests.fuzz.judge import anything, check_not_infinite
from tests.fuzz.target import Target
from tests.fuzz.targets.metrics import Foreign
from tests.fuzz.trial import Trial
from tests.fuzz.values import Kind, choice, flag, mostly, odd, parameters, real, seed, whole

WORDS, TOPICS = 6, 3
TEXTS = ["moon orbit moon", "goal team goal", "orbit comet", "the team"] * 5
#: A period that pandas has no name for, as tools of one's own may give it.
MONTHS = pandas.DateOffset(months=30)
#: Methods without arguments that are drawn, and properties.
PLAIN = ("labels", "table", "similar")


@functools.cache
def _fitted() -> TemperedLDA:
    X = np.random.RandomState(0).poisson(1.0, (20, WORDS))
    return TemperedLDA(TOPICS, max_iter=2, random_state=0).fit(X)


@functools.cache
def _of_texts() -> TopicModel:
    return TopicModel(2, random_state=0).fit(TEXTS)


def _model(t: Trial) -> Any:
    if t.chance(0.6):
        return _fitted()
    if t.chance(0.5):
        return Foreign(matrices.points(t, TOPICS), matrices.points(t, WORDS, n_samples=TOPICS))
    return t.one_of(_of_texts(), TemperedLDA(), TopicModel(), odd(t))


def _documents(t: Trial) -> Any:
    if t.chance(0.8):
        return matrices.corpus(t, WORDS)
    return t.one_of(TEXTS, TEXTS[:1], iter(TEXTS), [None], [b"moon"], ["nothing"], odd(t))


def _some(t: Trial, *values: Any) -> Any:
    """A value for each of some documents, sometimes a wrong number of them."""
    return t.one_of(list, np.array)([t.one_of(*values) for _ in range(t.whole(1, 12))])


OPTIONS: dict[str, Kind] = dict(
    feature_names=mostly(choice(list("abcdef")), None),
    texts=Kind(lambda t: _some(t, "a", "b")),
    titles=Kind(lambda t: _some(t, "a", "", None)),
    held_out=Kind(_documents),
    other=Kind(_model),
    random_state=seed,
)
TOPIC = mostly(whole(0, TOPICS - 1), "space", -1)
COUNT = whole(1, 5, endless=True)
METHODS: dict[str, tuple[dict[str, Kind], dict[str, Kind], Callable]] = {
    "words": (dict(topic=TOPIC), dict(n=COUNT, relevance=mostly(real(0.01, 1.0), 0, 1)), anything),
    "weights": (
        dict(topic=TOPIC),
        dict(n=COUNT, relevance=mostly(real(0.01, 1.0), 0, 1)),
        check_not_infinite,
    ),
    "documents": (dict(topic=TOPIC), dict(n=COUNT), check_not_infinite),
    "odd": ({}, dict(n=COUNT, min_tokens=mostly(real(0.1, 9.0), None, 0)), check_not_infinite),
    "map": ({}, dict(documents=flag), check_not_infinite),
    "by": (dict(groups=Kind(lambda t: _some(t, "a", "b", None, 1))), {}, check_not_infinite),
    "over": (
        dict(times=Kind(lambda t: _some(t, "2001", "2001-05-06", 2003, None))),
        dict(freq=choice("YE", "ME", "D", "W", "2QE", "h", MONTHS, "no")),
        check_not_infinite,
    ),
}


def _describe(t: Trial) -> None:
    answered, summary = t.call(
        "describe",
        describe,
        _model(t),
        _documents(t),
        check=anything,
        **parameters(t, OPTIONS),
    )
    if not answered:
        return
    for name in ("coherence", "topic_shares", "word_shares", "shares", "quality"):
        t.call(name, getattr, summary, name, check=check_not_infinite)
    for name in PLAIN:
        value = getattr(summary, name)
        t.call(name, value if callable(value) else lambda value=value: value, check=anything)
    if t.chance(0.5):
        labels = t.one_of({0: "space"}, {0: "space", 1: "space"}, list("abc"), [1, 2, 3], odd(t))
        t.call("labels", setattr, summary, "labels", labels, check=anything)
    for _ in range(3):
        name = t.one_of(*METHODS)
        first, options, check = METHODS[name]
        given = {key: kind.good(t) if t.chance(0.9) else odd(t) for key, kind in first.items()}
        given |= parameters(t, options) if options else {}
        t.call(name, getattr(summary, name), check=check, **given)


#: Where it writes is for the tests of the report.
_COVERED = {"labels=", "to_html", *PLAIN, *METHODS}
TARGETS = (
    Target(
        "describe",
        _describe,
        frozenset({"describe", "TopicSummary", *(f"TopicSummary.{name}" for name in _COVERED)}),
        weight=2,
    ),
)
