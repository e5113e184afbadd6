"""TemperedLDA: parameters, documents, and sequences of everything that an estimator does."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from annealvi import LocalVariational, TemperedLDA
from tests.fuzz import matrices
from tests.fuzz.judge import anything, check_finite, check_not_infinite
from tests.fuzz.target import Target
from tests.fuzz.targets.calls import Operation, copied, read, sequence
from tests.fuzz.trial import Trial, is_unsound
from tests.fuzz.values import (
    EXTREMES,
    NOT_FINITE,
    Assign,
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


def table(K: int, V: int) -> dict[str, Kind]:
    """The kinds of the parameters, for K topics and V words."""
    prior = mostly(real(1e-3, 10.0), "learn", None, 1e-40, 1e-300, 1e30, 1e300)
    return dict(
        n_components=whole(1, 5),
        doc_topic_prior=Kind(lambda t: t.one_of(prior, array((K,))).good(t)),
        topic_word_prior=Kind(lambda t: t.one_of(prior, array((V,), (K, V))).good(t)),
        learning_method=choice("auto", "batch", "online"),
        learning_decay=mostly(real(0.01, 1.0), None, 0, 1),
        learning_offset=mostly(real(1.0, 100.0), None, 1e305),
        max_iter=mostly(whole(0, 4), None),
        batch_size=mostly(whole(1, 12, endless=True), None),
        shard_size=Kind(lambda t: None if t.chance(0.6) else whole(1, 12, endless=True).good(t)),
        evaluate_every=whole(-1, 2, endless=True),
        total_samples=mostly(real(1.0, 1e7), 1e305, 1e-300),
        perp_tol=real(1e-6, 10.0),
        mean_change_tol=mostly(real(1e-8, 1.0), None, 0),
        max_doc_update_iter=mostly(whole(0, 30), None),
        n_jobs=threads,
        verbose=choice(0, 1, True),
        random_state=seed,
        temperature=temperature,
        token_change_tol=mostly(real(1e-8, 1.0), None, 0),
        topic_estimate=choice("auto", "map", "variational"),
        document_estimate=choice("auto", "sparse", "variational"),
        finish_iter=mostly(whole(0, 3), None),
        init=Kind(lambda t: t.one_of(array((K, V)), choice(*STARTS)).good(t)),
        document_init=choice("auto", "random", "warm", "constant"),
        preset=choice("annealvi", "sklearn"),
        dtype=choice("auto", "auto", "float32", "float64", np.float32),
        n_init=whole(1, 3),
        validation_fraction=mostly(real(0.05, 0.9), None),
        patience=whole(1, 3, endless=True),
        callback=Kind(lambda t: _callback(t, K, V), calls=True),
    )


STARTS = ("auto", "random", "documents", "kmeans++")


def _callback(t: Trial, K: int, V: int) -> Any:
    if t.chance(0.7):
        return callback.good(t)
    name = t.one_of("components_", "doc_topic_prior_", "topic_word_prior_")
    return Assign(name, array((K, V), (K,)).good(t) if t.chance(0.8) else odd(t))


def _words(X: Any) -> np.ndarray | None:
    """Number of words of each document, where it can be said."""
    if sparse.issparse(X) and (is_unsound(X) or X.format != "csr"):
        return None
    try:
        if not sparse.issparse(X):
            return np.asarray(X, dtype=np.float64).sum(axis=1)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr.astype(np.int64)))
        return np.bincount(rows, np.abs(X.data[: len(rows)]), minlength=X.shape[0])
    except (ValueError, TypeError):
        return None


def nan_without_words(X: Any) -> Any:
    """A check: NaN only in rows of documents without words, in single precision perhaps."""

    def check(result: Any) -> None:
        words = _words(X)
        if words is None or words.shape[0] != len(result):
            return check_not_infinite(result)
        return check_finite(np.asarray(result)[words.ravel() > 1e-30])

    return check


# -------------------------------------------------------------------------- operations


def _fit(t: Trial, lda: TemperedLDA, method: str, K: int, V: int) -> None:
    X = matrices.corpus(t, V) if t.chance(0.6) else matrices.good_corpus(t, t.whole(1, 12), V)
    options = {"normalize": flag.good(t)} if method == "fit_transform" and t.chance(0.5) else {}
    answered, _ = t.call(method, getattr(lda, method), X, **options)
    if answered:
        for name in ("components_", "history_", "bound_", "doc_topic_prior_", "topic_word_prior_"):
            read(t, name, lda)


def _predict(t: Trial, lda: TemperedLDA, method: str, K: int, V: int) -> None:
    X = matrices.corpus(t, V)
    options: dict[str, Any] = {}
    if method in ("transform", "score") and t.chance(0.3):
        options["temperature"] = t.one_of(1.0, 2, 1e300, "learned", odd(t))
    if method == "transform" and t.chance(0.3):
        options["normalize"] = flag.good(t)
    if method == "transform" and t.chance(0.4):
        options["method"] = t.one_of("variational", "cvb0", "cvb0", odd(t))
    if method == "perplexity" and t.chance(0.3):
        options["sub_sampling"] = t.one_of(True, False, odd(t))
    check = check_finite
    if method == "document_temperatures":
        check = nan_without_words(X)
    elif method == "perplexity" and (words := _words(X)) is not None and not words.any():
        check = check_not_infinite  # NaN: there is no word
    t.call(method, getattr(lda, method), X, check=check, **options)


def _log_partition(t: Trial, lda: TemperedLDA, K: int, V: int) -> None:
    inverse = t.one_of([1.0, 0.5], [1.0], np.linspace(1, 0.1, 5), [], [1e-300, 0.5], odd(t))
    t.call("posterior_log_partition", lda.posterior_log_partition, inverse, matrices.corpus(t, V))


def _top_words(t: Trial, lda: TemperedLDA, K: int, V: int) -> None:
    names = t.one_of(None, None, [f"w{v}" for v in range(V)], np.arange(V), ["a"], odd(t))
    t.call("top_words", lda.top_words, t.one_of(1, 3, V, 10**9, odd(t)), names, check=anything)


def _assign(t: Trial, lda: TemperedLDA, name: str, K: int, V: int) -> None:
    values = dict(
        components_=array((K, V), (K + 1, V)),
        exp_dirichlet_component_=array((K, V)),
        doc_topic_prior_=mostly(real(1e-3, 10.0), 1e-300, 1e300, [0.1] * K, "learn", None),
        topic_word_prior_=mostly(real(1e-3, 10.0), 1e-300, np.ones(V), np.ones((K, V)), None),
        random_state_=choice(np.random.RandomState(0), 3, None),
        n_batch_iter_=choice(1, 5, 10**6, 0, -3, 10**30),
    )
    value = values[name].good(t) if t.chance(0.7) else odd(t)
    t.call(f"{name} =", setattr, lda, name, value, allows=(AttributeError,))


def _write(t: Trial, lda: TemperedLDA, K: int, V: int) -> None:
    """Write into `components_` in place."""
    answered, topics = t.call(
        "components_", getattr, lda, "components_", check=anything, allows=(AttributeError,)
    )
    if answered and isinstance(topics, np.ndarray) and topics.flags.writeable and topics.size:
        place = t.whole(0, topics.size - 1)
        t.spoilt = True
        with np.errstate(over="ignore"):
            topics.flat[place] = t.one_of(1.0, 50.0, 0.0, -1.0, *EXTREMES, *NOT_FINITE)


def _set(t: Trial, lda: TemperedLDA, K: int, V: int) -> None:
    t.call("set_params", lda.set_params, check=anything, **parameters(t, table(K, V)))


def _names(t: Trial, lda: TemperedLDA, K: int, V: int) -> None:
    names = t.one_of(None, [f"w{v}" for v in range(V)], odd(t))
    t.call("get_feature_names_out", lda.get_feature_names_out, names, check=anything)


def _repr(t: Trial, lda: TemperedLDA, K: int, V: int) -> None:
    t.call("repr", repr, lda, check=anything)


def _release(t: Trial, lda: TemperedLDA, K: int, V: int) -> None:
    t.call("release_buffers", lda.release_buffers, check=anything)


READ = (
    *("bound_", "components_", "doc_topic_prior_", "document_temperatures_", "dtype_"),
    *("exp_dirichlet_component_", "history_", "init_scores_", "n_batch_iter_", "n_iter_"),
    *("random_state_", "settings_", "temperature_", "temperature_path_"),
    *("temperature_posterior_", "temperature_posterior_path_", "topic_word_prior_"),
    "validation_score_",
)
FITS = ("fit", "partial_fit", "fit_transform")
PREDICTIONS = ("transform", "score", "perplexity", "document_temperatures")
SETTABLE = (
    *("components_", "exp_dirichlet_component_", "doc_topic_prior_", "topic_word_prior_"),
    *("random_state_", "n_batch_iter_"),
)


def _operations(K: int, V: int) -> dict[str, Operation]:
    """What is done to an estimator, by the public name that is covered."""
    found: dict[str, Operation] = {}
    for names, function in ((FITS, _fit), (PREDICTIONS, _predict)):
        for name in names:
            found[name] = partial(_with, function, method=name, K=K, V=V)
    for name in SETTABLE:
        found[f"{name}="] = partial(_with, _assign, name=name, K=K, V=V)
    others = dict(
        posterior_log_partition=_log_partition,
        top_words=_top_words,
        write=_write,
        set_params=_set,
        get_feature_names_out=_names,
        repr=_repr,
        release_buffers=_release,
    )
    for name, operation in others.items():
        found[name] = partial(_with, operation, K=K, V=V)
    return found | {"read": lambda t, lda: read(t, t.one_of(*READ), lda), "copy": copied}


def _with(function: Any, t: Trial, lda: TemperedLDA, **options: Any) -> None:
    function(t, lda, **options)


def _start(t: Trial) -> tuple[TemperedLDA, int, int]:
    """An estimator with some parameters, and the sizes that they are for."""
    K, V = t.whole(1, 5), t.one_of(t.whole(2, 12), t.whole(13, 70))
    given = {"max_iter": 2} | parameters(t, table(K, V))
    given.setdefault("n_components", K)
    _, lda = t.call("TemperedLDA", partial(TemperedLDA, **given), check=anything)
    if t.chance(0.2):
        lda.temperature = LocalVariational(grid=5)
    return lda, K, V


def run_sequence(t: Trial) -> None:
    """Everything in any order, on data of any kind."""
    lda, K, V = _start(t)
    sequence(t, lda, _operations(K, V), longest=6)


def run_fitted(t: Trial) -> None:
    """A fit that mostly succeeds, then predictions and changes of what was learned."""
    lda, K, V = _start(t)
    fit = getattr(lda, t.one_of("fit", "partial_fit"))
    t.call(fit.__name__, fit, matrices.good_corpus(t, t.whole(1, 12), V))
    operations = _operations(K, V)
    for name in FITS:
        if t.chance(0.7):
            del operations[name]
    sequence(t, lda, operations, longest=5)


_COVERS = frozenset(
    ["TemperedLDA", *(f"TemperedLDA.{name}" for name in (*READ, *_operations(1, 2)))]
)
TARGETS = (
    Target("TemperedLDA", run_sequence, _COVERS, weight=6),
    Target("TemperedLDA.fitted", run_fitted, _COVERS, weight=6),
)
