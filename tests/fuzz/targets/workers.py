"""annealvi.dask, with an engine in this process: parameters, parts of a corpus, predictions."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import dask

from annealvi import corpus
from annealvi.dask import TemperedLDA, document_completion, document_order
from annealvi.scale.engines.serial import SerialEngine
from tests.fuzz import matrices
from tests.fuzz.judge import anything, check_finite, check_not_infinite
from tests.fuzz.target import Target
from tests.fuzz.targets.calls import copied, read
from tests.fuzz.targets.lda import READ, table
from tests.fuzz.trial import Trial
from tests.fuzz.values import odd, parameters


def _parts(t: Trial, folder: Path, V: int) -> Any:
    """Paths of corpora, or something else in their place."""
    parts: list[Any] = []
    for number in range(t.whole(1, 3)):
        width = V if t.chance(0.95) else V + 1
        path = folder / f"part{number}"
        corpus.write(path, [matrices.good_corpus(t, t.whole(1, 8), width)])
        parts.append(t.one_of(path, str(path)))
    if t.chance(0.1):
        other = t.one_of(odd(t), matrices.corpus(t, V), folder / "none", None)
        parts[t.whole(0, len(parts) - 1)] = other
    if t.chance(0.1):
        return t.one_of([], parts[0], matrices.corpus(t, V), odd(t))
    return parts


def _transform(t: Trial, lda: TemperedLDA, X: Any) -> None:
    method = t.one_of("variational", "cvb0", odd(t)) if t.chance(0.3) else "variational"
    answered, parts = t.call(
        "transform", lda.transform, X, method=method, check=anything, allows=(OSError,)
    )
    if answered and isinstance(parts, list):
        compute = partial(dask.compute, scheduler="synchronous")
        t.call("compute", compute, *parts, check=check_not_infinite, allows=(OSError,))


def _predict(t: Trial, lda: TemperedLDA, X: Any) -> None:
    name = t.one_of("score", "perplexity", "transform", "document_completion")
    if name == "transform":
        return _transform(t, lda, X)
    if name == "document_completion":
        options: dict[str, Any] = {"client": lda.client}
        if t.chance(0.4):
            options["observed"] = t.one_of(0.5, 0.1, 0, odd(t))
        if t.chance(0.4):
            options["random_state"] = t.one_of(0, None, 2**31 - 1, odd(t))
        t.call(name, document_completion, lda, X, allows=(OSError,), **options)
        return None
    t.call(name, getattr(lda, name), X, check=check_not_infinite, allows=(OSError,))
    return None


def _fit(t: Trial) -> None:
    K, V = t.whole(1, 4), t.whole(2, 12)
    given = {"max_iter": 2} | parameters(t, table(K, V))
    given.setdefault("n_components", K)
    client = SerialEngine() if t.chance(0.95) else odd(t)
    make = partial(TemperedLDA, **given, client=client)
    _, lda = t.call("TemperedLDA", make, check=anything)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if t.chance(0.2):
            lda.checkpoint = t.one_of(folder / "checkpoint", str(folder), odd(t))
        X = _parts(t, folder, V)
        method = t.one_of("fit", "fit", "fit", "fit_transform", "partial_fit")
        t.call(method, getattr(lda, method), X, check=anything, allows=(OSError,))
        for _ in range(t.whole(1, 4)):
            if t.chance(0.2):
                read(t, t.one_of(*READ), lda)
            elif t.chance(0.15):
                lda = copied(t, lda)
            elif t.chance(0.2):
                t.call("to_local", lda.to_local, check=anything)
            else:
                _predict(t, lda, X if t.chance(0.8) else matrices.corpus(t, V))


def _order(t: Trial) -> None:
    lengths = [t.whole(0, 40) for _ in range(t.whole(1, 4))] if t.chance(0.8) else odd(t)
    options = {
        name: t.one_of(None, 1, 2, 5, 10, odd(t))
        for name in ("shard_size", "batch_size", "max_iter")
        if t.chance(0.6)
    }
    t.call("document_order", document_order, lengths, check=check_finite, **options)


_METHODS = ("fit", "fit_transform", "partial_fit", "transform", "score", "perplexity", "to_local")
TARGETS = (
    Target(
        "dask.TemperedLDA",
        _fit,
        frozenset(
            ["TemperedLDA", "document_completion", *(f"TemperedLDA.{name}" for name in _METHODS)]
        ),
        weight=2,
    ),
    Target("dask.document_order", _order, frozenset(["document_order"])),
)
