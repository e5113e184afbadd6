"""Saved estimators and checkpoints: damaged bytes, forged trees, and what follows from them."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealvi import (
    TemperedFMM,
    TemperedGaussianMixture,
    TemperedLDA,
    TopicModel,
    Variational,
    load,
    save,
)
from annealvi.checkpoint import Checkpoint
from annealvi.files import read, write
from annealvi.storage import KIND
from tests.files.mutations import mutated_tree
from tests.fuzz.judge import anything
from tests.fuzz.target import Target
from tests.fuzz.targets.files import mutated
from tests.fuzz.trial import Trial
from tests.fuzz.values import StopAfter, odd

COUNTS = np.random.RandomState(0).poisson(1.0, (12, 7)).astype(np.float64)
TEXTS = ["stars orbit planets", "bread and butter", "planets and stars", "butter on bread"] * 3
POINTS = np.random.RandomState(0).standard_normal((12, 4))


def _variational() -> Variational:
    return Variational(t_max=5.0, grid=5)


#: Makes estimators of each kind and of each kind of temperature.
MAKERS: tuple[Callable[..., Any], ...] = (
    lambda **more: TemperedLDA(2, max_iter=2, random_state=0, **more),
    lambda **more: TemperedLDA(2, max_iter=2, preset="sklearn", random_state=0, **more),
    lambda **more: TemperedLDA(2, max_iter=2, temperature=_variational(), random_state=0, **more),
    lambda **more: TemperedLDA(
        2, max_iter=2, temperature="local", doc_topic_prior="learn", random_state=0, **more
    ),
    lambda **more: TemperedLDA(
        2, max_iter=2, n_init=2, validation_fraction=0.3, evaluate_every=1, random_state=0, **more
    ),
    lambda **more: TemperedFMM(2, max_iter=3, tol=0, random_state=0, **more),
    lambda **more: TemperedFMM(
        2, max_iter=3, tol=0, covariance="full", temperature="proximity", random_state=0, **more
    ),
    lambda **more: TemperedFMM(
        2, max_iter=3, tol=0, noise_variance=1.0, temperature=_variational(), n_init=2, **more
    ),
    lambda **more: TemperedGaussianMixture(2, max_iter=3, tol=0, random_state=0, **more),
    lambda **more: TemperedGaussianMixture(
        2, max_iter=3, tol=0, covariances=1.0, temperature="variational", random_state=0, **more
    ),
)


#: These and models of texts, which are saved, and have no checkpoints of their own.
SAVED: tuple[Callable[..., Any], ...] = (
    *MAKERS,
    lambda: TopicModel(2, seeds={"sky": ["stars"]}, lda=TemperedLDA(max_iter=2), random_state=0),
    lambda: TopicModel("auto", lda=TemperedLDA(max_iter=2), random_state=0),
)


def data_of(estimator: Any) -> Any:
    """The data that an estimator of `SAVED` is fitted to."""
    if isinstance(estimator, TopicModel):
        return TEXTS
    return COUNTS if isinstance(estimator, TemperedLDA) else POINTS


@functools.cache
def _saved(number: int) -> tuple[Any, bytes]:
    """The tree and the file of a fitted estimator."""
    estimator = SAVED[number]()
    estimator.fit(data_of(estimator))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fit.safetensors")
        save(estimator, path)
        return read(path, KIND)["tree"], path.read_bytes()


@functools.cache
def _checkpoint(number: int) -> tuple[Any, bytes]:
    """The tree and the file of a checkpoint, in the middle of a fit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.safetensors")
        estimator = MAKERS[number](callback=[Checkpoint(path, seconds=0), StopAfter(2)])
        estimator.fit(data_of(estimator))
        return read(path, "checkpoint")["tree"], path.read_bytes()


def _damaged(t: Trial, tree: Any, content: bytes, kind: str, path: Path) -> None:
    """Write a damaged file, or a forged one whose checksums are right; seldom a sound one."""
    if t.chance(0.45):
        path.write_bytes(mutated(t, content) if t.chance(0.95) else content)
        return
    rng = np.random.default_rng(t.whole(0, 2**32))
    forged, ways = mutated_tree(tree, rng, t.one_of(1, 1, 2, 3))
    t.note(f"forged at {ways}")
    try:
        write(path, kind, forged)
    except TypeError:  # not every tree can be written
        path.write_bytes(content[:-1])


def use(t: Trial, estimator: Any) -> None:
    """Predict, go on, and read attributes."""
    X = data_of(estimator)
    methods = ["score", "transform", "partial_fit", "perplexity", "predict_proba", "sample"]
    methods += ["document_temperatures", "score_samples"]
    for name in t.random.sample(methods, len(methods)):
        if hasattr(estimator, name):
            t.call(name, getattr(estimator, name), *([] if name == "sample" else [X]))
    names = ("history_", "settings_", "temperature_path_", "components_", "random_state_")
    for name in (*names, "choice_", "seed_topics_", "vocabulary_note_"):
        t.call(name, getattr, estimator, name, check=anything, allows=(AttributeError,))
    t.call("repr", repr, estimator, check=anything)


def _load(t: Trial) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fit.safetensors")
        _damaged(t, *_saved(t.whole(0, len(SAVED) - 1)), KIND, path)
        answered, estimator = t.call("load", load, path, check=anything)
        if answered:
            use(t, estimator)
            t.call("save", save, estimator, path, check=anything)


def _arguments(t: Trial) -> None:
    """Paths and parameters of any kind."""
    _, content = _saved(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fit.safetensors")
        path.write_bytes(content)
        estimator = t.one_of(load(path), TemperedLDA(), MAKERS[0](init=odd(t)), odd(t))
        other = t.one_of(path, Path(folder), Path(folder, "no", "such"), odd(t))
        if not isinstance(other, int):  # the number of an open file, of this process
            t.call("save", save, estimator, other, check=anything, allows=(OSError,))
            t.call("load", load, other, check=anything, allows=(OSError,))
        name = t.one_of("n_components", "callback", "temperature", "made_up", "n_jobs")
        t.call("load", load, path, check=anything, **{name: odd(t)})


def _resume(t: Trial) -> None:
    number = t.whole(0, len(MAKERS) - 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.safetensors")
        _damaged(t, *_checkpoint(number), "checkpoint", path)
        estimator = MAKERS[number]()
        answered, _ = t.call("fit", estimator.fit, data_of(estimator), resume=path, check=anything)
        if answered:
            use(t, estimator)


def _checkpoints(t: Trial) -> None:
    """The callback: its parameters, and places where it cannot write."""
    with tempfile.TemporaryDirectory() as folder:
        path = t.one_of(Path(folder, "run"), Path(folder), Path(folder, "no", "such"), odd(t))
        seconds = t.one_of(0, 60, 1e300, odd(t))
        if isinstance(path, int):
            return
        answered, checkpoint = t.call("Checkpoint", Checkpoint, path, seconds, check=anything)
        if not answered:
            return
        estimator = MAKERS[t.whole(0, len(MAKERS) - 1)](callback=checkpoint)
        X = data_of(estimator)
        fit = getattr(estimator, "partial_fit" if t.chance(0.2) else "fit", estimator.fit)
        t.call("fit", fit, X, check=anything, allows=(OSError,))
        estimator.set_params(callback=None)
        resume = t.one_of(path, None, odd(t))
        if not isinstance(resume, int):
            t.call("fit", estimator.fit, X, resume=resume, check=anything, allows=(OSError,))
        other = t.one_of(Path(folder, "other"), odd(t))
        if not isinstance(other, int):
            t.call("save_state", estimator.save_state, other, check=anything, allows=(OSError,))


_NAMES = ("TemperedLDA", "TemperedFMM", "TemperedGaussianMixture")
_FILES = frozenset(
    [
        *("save", "load"),
        *(f"{name}.{method}" for name in _NAMES for method in ("state_dict", "load_state_dict")),
    ]
)
_RUNS = frozenset(
    ["Checkpoint", "Checkpoint.during_fit", *(f"{name}.save_state" for name in _NAMES)]
)
TARGETS = (
    Target("files.load", _load, _FILES, weight=4),
    Target("files.arguments", _arguments, frozenset(["save", "load"])),
    Target("files.resume", _resume, _RUNS, weight=4),
    Target("files.Checkpoint", _checkpoints, _RUNS),
)
