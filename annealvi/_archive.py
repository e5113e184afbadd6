"""Archives of arrays, NumPy's .npz files, read so that damage is a clear error."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_archive(path: str | os.PathLike, what: str) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file.  Nothing is executed: objects are refused."""
    none = f"{os.fspath(path)!r} holds no {what}"
    with open(path, "rb") as stream:
        try:
            stored = np.load(stream, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise ValueError("a single array")
            with stored:
                arrays = dict(stored)
            if not all(isinstance(array, np.ndarray) for array in arrays.values()):
                raise ValueError("a member that is no array")
            return arrays
        except MemoryError:
            raise
        except Exception as error:  # each layer has its own: zipfile, zlib, struct, NumPy's header
            raise ValueError(
                f"{none}: it is no archive of arrays, or it is damaged. "
                f"({type(error).__name__}: {error})"
            ) from error
