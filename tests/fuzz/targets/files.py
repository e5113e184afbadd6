"""Files: valid ones, damaged at random, then read and used."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from annealvi import datasets
from annealvi.partition import LogPartition, even_grid
from tests.fuzz.judge import anything
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial

# --------------------------------------------------------------------------- mutations


def _flip(t: Trial, data: bytearray) -> None:
    """Change some bits, more often near the ends, where headers are."""
    for _ in range(t.one_of(1, 1, 2, 8)):
        near = t.one_of(len(data), min(64, len(data)), min(400, len(data)))
        place = t.whole(0, near - 1)
        place = len(data) - 1 - place if t.chance(0.3) else place
        data[place] ^= 1 << t.whole(0, 7)


def _overwrite(t: Trial, data: bytearray) -> None:
    """Write a run of bytes: zeros, ones, digits, or random ones."""
    start, length = t.whole(0, len(data) - 1), t.one_of(1, 2, 4, 8, 30)
    fill = t.one_of(b"\x00", b"\xff", b"9", b"\x7f", bytes([t.whole(0, 255)]))
    data[start : start + length] = fill * len(data[start : start + length])


def _truncate(t: Trial, data: bytearray) -> None:
    del data[t.one_of(0, 1, 7, 8, 9, t.whole(0, len(data)), max(0, len(data) - 1)) :]


def _splice(t: Trial, data: bytearray) -> None:
    """Remove, repeat or move a piece."""
    start = t.whole(0, len(data) - 1)
    piece = data[start : start + t.whole(1, 40)]
    how = t.one_of("remove", "repeat", "move")
    if how != "repeat":
        del data[start : start + len(piece)]
    if how != "remove":
        place = t.whole(0, len(data))
        data[place:place] = piece


def _digits(t: Trial, data: bytearray) -> None:
    """Change a digit: the sizes and offsets of a header in text."""
    places = [place for place, byte in enumerate(data[:4000]) if 48 <= byte <= 57]
    if places:
        place = t.one_of(*places)
        data[place : place + 1] = t.one_of(b"0", b"9", b"-1", b"99999999999999999999", b"1e9", b".")


MUTATIONS = (_flip, _flip, _overwrite, _truncate, _splice, _digits)


def mutated(t: Trial, valid: bytes) -> bytes:
    """A file after one or a few mutations.

    Parameters
    ----------
    t : Trial
    valid : bytes
    """
    data = bytearray(valid)
    for _ in range(t.one_of(1, 1, 1, 2, 4)):
        if data:
            t.one_of(*MUTATIONS)(t, data)
    return bytes(data)


# ------------------------------------------------------------------------------ files


def _written(write: Callable[[Path], Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.npz")
        write(path)
        return path.read_bytes()


@functools.cache
def _log_partition() -> bytes:
    grid = even_grid(4, 3)
    made_for = {"n_words": 3, "form": "explicit", "alpha": np.ones(2)}
    return _written(LogPartition(grid, np.arange(3.0), made_for=made_for).save)


@functools.cache
def _corpus() -> bytes:
    X = sparse.csr_matrix(np.arange(12.0).reshape(3, 4))
    arrays: dict[str, Any] = dict(data=X.data, indices=X.indices, indptr=X.indptr)
    arrays |= dict(shape=np.array(X.shape), vocab=np.array(["a", "b", "c", "d"]))
    return _written(lambda path: np.savez(path, **arrays))


@functools.cache
def _images() -> bytes:
    X = np.packbits(np.eye(4, 16, dtype=np.uint8), axis=1)
    return _written(lambda path: np.savez(path, X=X, X_test=X))


def _reader(valid: Callable[[], bytes], read: Callable[[Trial, Path], None]) -> Any:
    def run(t: Trial) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "file.npz")
            path.write_bytes(mutated(t, valid()))
            read(t, path)

    return run


def _read_log_partition(t: Trial, path: Path) -> None:
    answered, result = t.call("load", LogPartition.load, path, check=anything)
    if answered:
        t.call("check", result.check, check=anything)
        t.call("save", result.save, path, check=anything)


def _read_data(name: str) -> Callable[[Trial, Path], None]:
    def read(t: Trial, path: Path) -> None:
        load = getattr(datasets, name)
        t.call(name, load, "file", data_home=path.parent, check=anything, allows=(OSError,))

    return read


TARGETS = (
    Target(
        "files.LogPartition",
        _reader(_log_partition, _read_log_partition),
        frozenset(["LogPartition.load", "LogPartition.save"]),
        weight=2,
    ),
    Target("files.corpus", _reader(_corpus, _read_data("load_corpus")), frozenset(["load_corpus"])),
    Target("files.images", _reader(_images, _read_data("load_images")), frozenset(["load_images"])),
)
