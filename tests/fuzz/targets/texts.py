"""TopicModel: texts of every kind, parameters of its parts, and sequences of calls."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from annealvi import TemperedLDA, TopicModel
from annealvi.topics import TopicVectorizer
from tests.fuzz.judge import anything
from tests.fuzz.target import Target
from tests.fuzz.targets.calls import Operation, copied, read, sequence
from tests.fuzz.trial import Trial
from tests.fuzz.values import Kind, callback, choice, mostly, odd, parameters, seed, whole

WORDS = (
    *("star", "planet", "orbit", "bread", "butter", "flour", "ship", "wave", "sail", "the", "of"),
    *("NASA", "É", "naïve", "don't", "2020", "\0", "\ud800", "\u200b", "<script>", "x" * 500),
)


def _text(t: Trial) -> str:
    return t.one_of(" ", "  ", ", ", "\n").join(t.one_of(*WORDS) for _ in range(t.whole(0, 12)))


def _good_texts(t: Trial, least: int = 0) -> list[str]:
    return [_text(t) for _ in range(t.one_of(t.whole(least, 8), t.whole(least, 40)))]


def _texts(t: Trial) -> Any:
    """Texts in a container of some kind, now and then with something else among them."""
    texts: list[Any] = _good_texts(t)
    if texts and t.chance(0.2):
        texts[t.whole(0, len(texts) - 1)] = t.one_of(None, b"bytes", float("nan"), pd.NA, odd(t))
    how = t.one_of(list, list, list, tuple, iter, pd.Series, set, " ".join, dict.fromkeys)
    try:
        made = how(texts)  # type: ignore[operator]
    except (TypeError, ValueError):
        made = texts
    counts = sparse.csr_matrix(np.ones((3, 4)))
    return t.one_of(made, made, made, made, made, counts, pd.DataFrame({"a": ["b"]}), odd(t))


def _blocks(t: Trial) -> Any:
    blocks = [_texts(t) if t.chance(0.2) else _good_texts(t, 2) for _ in range(t.whole(0, 3))]
    return t.one_of(list, iter)(blocks)  # type: ignore[operator]


VECTORIZER = dict(
    strip_accents=choice(None, "ascii", "unicode"),
    lowercase=choice(True, False),
    stop_words=choice(None, "english", ["the", "of"], []),
    ngram_range=choice((1, 1), (1, 2), (2, 2)),
    analyzer=choice("word", "char", "char_wb"),
    max_df=mostly(whole(1, 30, endless=True), 0.5, 1.0, 0.0),
    min_df=mostly(whole(1, 5, endless=True), 0.5, 1.0, 0.0),
    max_features=mostly(whole(1, 30, endless=True), None),
    vocabulary=choice(None, ["star", "ship"], {"star": 0, "ship": 1}),
    binary=choice(True, False),
    dtype=choice(np.int64, np.float32, np.float64),
)
LDA = dict(
    temperature=choice(1, "auto", "variational", "local"),
    topic_word_prior=mostly(choice(0.1, "learn", None), 1e300, [0.1, 0.1]),
    n_init=whole(1, 2),
    init=choice("auto", "random", "documents", "kmeans++"),
    preset=choice("annealvi", "sklearn"),
    validation_fraction=choice(None, 0.3),
    total_samples=choice(1e6, 30, 1e300),
    callback=callback,
)


def _vectorizer(t: Trial) -> Any:
    if t.chance(0.3):
        return None
    kind = t.one_of(TopicVectorizer, TopicVectorizer, CountVectorizer, TfidfVectorizer)
    given = parameters(t, VECTORIZER) if t.chance(0.7) else {}
    return t.one_of(*[partial(kind, **given)] * 9, HashingVectorizer)()


def _seeds(t: Trial) -> Any:
    names = t.random.sample(["space", "kitchen", "", "$", 3], t.whole(0, 3))
    return {
        name: t.one_of([t.one_of(*WORDS) for _ in range(t.whole(0, 3))], ("star",), "star", odd(t))
        for name in names
    }


TABLE = dict(
    n_topics=whole(1, 5, endless=True),
    vectorizer=Kind(_vectorizer, calls=True),
    lda=Kind(lambda t: t.one_of(None, TemperedLDA(max_iter=1, **parameters(t, LDA)))),
    seeds=Kind(lambda t: t.one_of(None, {"space": ["star"]}, _seeds(t))),
    stop_words=choice("english", None, ["the", "of"], ("the",), [], ["don't"]),
    random_state=seed,
)


def _fit(t: Trial, model: TopicModel, method: str) -> None:
    texts = _good_texts(t, 2) if t.chance(0.5) else _texts(t)
    if method == "partial_fit" and t.chance(0.4):
        texts = _blocks(t)
    t.call(method, getattr(model, method), texts)


def _use(t: Trial, model: TopicModel, method: str) -> None:
    t.call(method, getattr(model, method), _texts(t))


def _top_words(t: Trial, model: TopicModel) -> None:
    t.call("top_words", model.top_words, t.one_of(1, 3, 10**9, odd(t)), check=anything)


def _set(t: Trial, model: TopicModel) -> None:
    given = parameters(t, TABLE)
    if t.chance(0.5):
        given |= {f"lda__{name}": value for name, value in parameters(t, LDA).items()}
        given |= {f"vectorizer__{name}": value for name, value in parameters(t, VECTORIZER).items()}
        # a part that is no estimator has no parameters
        parts = {name: value for name, value in given.items() if name in ("lda", "vectorizer")}
        given = {name: value for name, value in given.items() if name not in parts}
    allows = (AttributeError,)  # scikit-learn's, where a part is none
    t.call("set_params", model.set_params, check=anything, allows=allows, **given)


def _with_lda(t: Trial, model: TopicModel) -> Any:
    n_words = len(getattr(model, "feature_names_", [1, 2]))
    counts = np.ones((4, t.one_of(n_words, n_words, 3)))
    lda = t.one_of(TemperedLDA(2, max_iter=1).fit(counts), TemperedLDA(2), odd(t))
    seed_topics = t.one_of(None, {"a": 1}, odd(t))
    answered, other = t.call("with_lda", model.with_lda, lda, seed_topics, check=anything)
    return other if answered else model


def _from_parts(t: Trial, model: TopicModel) -> Any:
    vectorizer = t.one_of(TopicVectorizer(), getattr(model, "vectorizer_", None), odd(t))
    if isinstance(vectorizer, TopicVectorizer) and t.chance(0.5):
        vectorizer = vectorizer.fit(["star ship", "ship"])
    lda = t.one_of(TemperedLDA(2, max_iter=1).fit(np.ones((4, 2))), TemperedLDA(2), odd(t))
    answered, other = t.call("from_parts", TopicModel.from_parts, vectorizer, lda, check=anything)
    return other if answered else model


def _file(t: Trial, model: TopicModel) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "topics")
        answered, _ = t.call("save", model.save, path, check=anything)
        if not answered:
            return model
        answered, other = t.call("load", TopicModel.load, path, check=anything)
        return other if answered else model


READ = (
    *("vectorizer_", "lda_", "components_", "feature_names_", "dropped_words_"),
    *("vocabulary_note_", "seed_topics_", "choice_"),
)
FITS, USES = ("fit", "fit_transform", "partial_fit"), ("transform", "score", "counts")
OPERATIONS: dict[str, Operation] = {
    **{name: partial(_fit, method=name) for name in FITS},
    **{name: partial(_use, method=name) for name in USES},
    "top_words": _top_words,
    "set_params": _set,
    "with_lda": _with_lda,
    "from_parts": _from_parts,
    "save": _file,
    "read": lambda t, model: read(t, t.one_of(*READ), model),
    "copy": copied,
}


def run_model(t: Trial) -> None:
    """Everything in any order."""
    given = {"n_topics": 2, "lda": TemperedLDA(max_iter=1)} | parameters(t, TABLE)
    _, model = t.call("TopicModel", partial(TopicModel, **given), check=anything)
    if t.chance(0.5):
        t.call("fit", model.fit, _good_texts(t, 2))
    sequence(t, model, OPERATIONS, longest=5)


def run_vectorizer(t: Trial) -> None:
    """The vectorizer alone."""
    vectorizer = TopicVectorizer(**parameters(t, VECTORIZER))
    for _ in range(t.whole(1, 2)):
        fit = t.one_of(vectorizer.fit, vectorizer.fit_transform)
        answered, _ = t.call(fit.__name__, fit, _texts(t), check=anything)
        if answered:
            t.call("transform", vectorizer.transform, _good_texts(t))


_METHODS = (*OPERATIONS, *READ, "load", "state_dict", "load_state_dict")
TARGETS = (
    Target(
        "TopicModel",
        run_model,
        frozenset(["TopicModel", *(f"TopicModel.{name}" for name in _METHODS)]),
        weight=4,
    ),
    Target(
        "TopicVectorizer",
        run_vectorizer,
        frozenset(f"TopicVectorizer{name}" for name in ("", ".fit", ".fit_transform")),
    ),
)
