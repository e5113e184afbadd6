"""The kinds of X for Dask: dask arrays, and lists of delayed blocks, futures or paths."""

from __future__ import annotations

from os import PathLike
from typing import Any

from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter
from annealvi.scale.engines import DaskEngine, SerialEngine


def as_engine(client: Any) -> SerialEngine:
    """Return an engine for the parameter `client`, which can itself be an engine."""
    if hasattr(client, "gather") and hasattr(client, "threads"):  # a client has no `threads`
        return client  # type: ignore[no-any-return]
    return DaskEngine(client)


def is_array(X: Any) -> bool:
    """Whether X is a dask array, without an import of Dask."""
    return type(X).__module__.startswith("dask.array")


def are_partitions(X: Any) -> bool:
    """Whether X is a dask array, or a list of delayed blocks, futures or paths."""
    return is_array(X) or (isinstance(X, list | tuple) and bool(X) and all(map(_is_source, X)))


def sources_of(X: Any) -> list[Any]:
    """Return the parts of X as a list."""
    if is_array(X):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array as X, got {X.ndim}D array instead.")
        if X.numblocks[1] != 1:
            raise BadParameter("X", "chunked along documents only", X, "Use X.rechunk({1: -1}).")
        return list(X.to_delayed().ravel())
    if not isinstance(X, list | tuple) or not all(map(_is_source, X)):
        raise BadParameter(
            "X",
            "a dask array whose blocks are CSR matrices, or a list of paths, delayed blocks or "
            "futures",
            X,
            "Use annealvi.TemperedLDA for documents in memory, or write them to disk with "
            "annealvi.corpus.write_corpus.",
        )
    return list(X)


def _is_source(item: Any) -> bool:
    """Whether an item of a list is a path, a delayed block or a future of Dask."""
    if isinstance(item, str | PathLike):
        return True
    module = type(item).__module__
    if module.startswith("distributed."):
        return isinstance(item, import_optional("distributed", "annealvi.dask", "dask").Future)
    return module.startswith("dask.delayed")
