"""annealvi.metrics: topics as arrays or estimators, corpora, HeldOut as a callback."""

from __future__ import annotations

import functools
from numbers import Real
from typing import Any

import numpy as np

from annealvi import TemperedLDA, metrics
from tests.fuzz import matrices
from tests.fuzz.judge import anything, check_finite, check_not_infinite
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial
from tests.fuzz.values import choice, flag, mostly, odd, parameters, real, seed, whole

WORDS = 12


@functools.cache
def _fitted(words: int) -> TemperedLDA:
    """A fitted estimator, for those cases that do not change it."""
    X = np.random.RandomState(0).poisson(1.0, (20, words))
    return TemperedLDA(3, max_iter=2, random_state=0).fit(X)


def is_zero(value: Any) -> bool:
    """Whether an argument is the number 0."""
    return isinstance(value, Real) and value == 0


class Foreign:
    """A topic model of someone else's, with arrays that nobody has checked."""

    def __init__(self, theta: Any, components: Any) -> None:
        self.theta, self.components_ = theta, components

    def transform(self, X: Any, temperature: Any = None) -> Any:
        """The given theta, whatever the documents are."""
        return self.theta


def _topics(t: Trial, words: int = WORDS) -> Any:
    """Topics: an array of some kind, or an estimator."""
    if t.chance(0.2):
        return t.one_of(_fitted(words), TemperedLDA(), Foreign(None, odd(t)), odd(t))
    return matrices.corpus(t, words, n_samples=t.whole(1, 5))


def _coherence(t: Trial) -> None:
    table = dict(
        measure=choice("npmi", "umass"),
        n_words=whole(2, WORDS, endless=True),
        epsilon=mostly(real(1e-15, 0.5), 0, 1e-300),
    )
    given = {"n_words": 3} | parameters(t, table)
    # the logarithm of 0 is documented for epsilon=0
    check = anything if "epsilon" in given and is_zero(given["epsilon"]) else check_not_infinite
    X = matrices.corpus(t, WORDS)
    t.call("topic_coherence", metrics.topic_coherence, _topics(t), X, check=check, **given)


def _diversity(t: Trial) -> None:
    given = {"n_words": 3} | parameters(t, dict(n_words=whole(1, WORDS, endless=True)))
    t.call("topic_diversity", metrics.topic_diversity, _topics(t), **given)


def _stability(t: Trial) -> None:
    given = parameters(t, dict(matching=choice("best", "one_to_one")))
    t.call("topic_stability", metrics.topic_stability, _topics(t), _topics(t), **given)


def _duplicates(t: Trial) -> None:
    given = parameters(t, dict(threshold=mostly(real(0.0, 1.0), -1, 0, 1)))
    t.call("duplicate_topics", metrics.duplicate_topics, _topics(t), **given)


def _recovery(t: Trial) -> None:
    given = parameters(t, dict(threshold=mostly(real(1e-3, 1.0), -1, 0, 1)))
    a, b = (matrices.points(t, 5) if t.chance(0.9) else odd(t) for _ in range(2))
    t.call("component_recovery", metrics.component_recovery, a, b, **given)


SPLIT = dict(observed=mostly(real(0.01, 0.99), 1e-300, 1 - 1e-16), random_state=seed)


def _split(t: Trial) -> None:
    X = matrices.corpus(t)
    answered, parts = t.call("split_tokens", metrics.split_tokens, X, **parameters(t, SPLIT))
    if answered:
        for part in parts:
            t.call("check_format", part.check_format)


def _completion(t: Trial) -> None:
    given = parameters(t, SPLIT | dict(per_document=flag))
    if t.chance(0.3):
        given["temperature"] = t.one_of(None, 1, 2.5, "learned", odd(t))
    if t.chance(0.4):
        given["method"] = t.one_of("variational", "cvb0", odd(t))
        if t.chance(0.5):
            given["doc_topic_prior"] = t.one_of(0.1, 1e-300, 1e300, np.ones(3), odd(t))
    X = matrices.corpus(t, WORDS)
    model: Any = _fitted(WORDS)
    check = check_not_infinite if "per_document" in given else check_finite
    if t.chance(0.3):  # what others give is theirs to check: only a crash is ours
        theta, components = (matrices.points(t, n) for n in (3, WORDS))
        model, check = Foreign(theta, components), anything
    elif t.chance(0.1):
        model = t.one_of(TemperedLDA(), odd(t))
    t.call("document_completion", metrics.document_completion, model, X, check=check, **given)


def _held_out(t: Trial) -> None:
    table = dict(every=mostly(real(0.1, 5.0), 1e-300, 1e300)) | SPLIT
    X = matrices.corpus(t, WORDS)
    answered, held_out = t.call(
        "HeldOut", metrics.HeldOut, X, check=anything, looks=False, **parameters(t, table)
    )
    if answered:
        lda = TemperedLDA(2, max_iter=2, random_state=0, callback=held_out)
        answered, _ = t.call("fit", lda.fit, matrices.good_corpus(t, 10, WORDS))
        if answered:
            t.call("history_", getattr, lda, "history_", check=check_not_infinite)


TARGETS = tuple(
    Target(f"metrics.{name}", run, frozenset([name]), weight=weight)
    for name, run, weight in (
        ("topic_coherence", _coherence, 2),
        ("topic_diversity", _diversity, 1),
        ("topic_stability", _stability, 1),
        ("duplicate_topics", _duplicates, 1),
        ("component_recovery", _recovery, 1),
        ("split_tokens", _split, 2),
        ("document_completion", _completion, 3),
        ("HeldOut", _held_out, 1),
    )
)
