"""The format of a file: safetensors, with a tree in its header.

A tree is a dict of None, bool, int, float, str, arrays, lists and further dicts.  Arrays are the
tensors of the file.  All else is JSON, in the entry ``annealvi`` of the header.  A checksum over
both finds damage.  Nothing is executed when a file is read.  Arrays are views of the file; each
stands in one place of the tree, so that copies of all of them take no more than the file's bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from annealvi._version import __version__
from annealvi.files.schema import Integer, Schema, Text, Tree

#: Version of the format.  It grows when an older reader would misunderstand a file.  1 was in
#: development and was never released.
FORMAT = 3
#: Names of the entries in the header of the file.
TREE, CHECKSUM = "annealvi", "sha256"
DESCRIPTION = Schema(kind=Text(), format=Integer(1), version=Text(), tree=Tree())
#: Dtypes of arrays that can be written, by the names that safetensors has for them.
DTYPES = {f"{kind.upper()}{8 * n}": np.dtype(f"{kind}{n}") for kind in "iu" for n in (1, 2, 4, 8)}
DTYPES |= {"BOOL": np.dtype(bool), "F32": np.dtype(np.float32), "F64": np.dtype(np.float64)}
#: Longest side of an array without elements, which takes no bytes of the file.
LONGEST_EMPTY = 1 << 16


def write(path: str | os.PathLike, kind: str, tree: Mapping[str, Any]) -> None:
    """Write a tree; `kind` says what the file is, and `read` asks for it.

    The file is written beside its place and moved there.  An existing file is replaced only once
    the new one is complete, and stays as it was after an error.  TypeError if the tree holds
    anything that a file cannot hold.
    """
    tensors: dict[str, NDArray] = {}
    content = {"kind": kind, "format": FORMAT, "version": __version__, "tree": tree}
    plain = _flatten(content, "", tensors)
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    header = {TREE: text, CHECKSUM: _checksum(text, tensors)}
    with replacing(Path(os.path.realpath(os.fsdecode(path)))) as partial:
        try:
            save_file(tensors, partial, metadata=header)
        except SafetensorError as error:
            raise OSError(f"{os.fsdecode(path)!r} cannot be written: {error}.") from error


def read(path: str | os.PathLike, kind: str) -> dict[str, Any]:
    """Read the ``version`` of annealvi that wrote a file, and the ``tree`` in it.

    Arrays are read-only views of the file, which is mapped into memory: do not change the file in
    place while they are used.  ValueError if the file is not of this kind, is damaged, or has
    another format.
    """
    name = os.fsdecode(path)
    with open(path, "rb"):
        pass  # errors of the system come before errors of the format
    try:
        text, checksum, tensors = _open(path)
        found = DESCRIPTION.load(json.loads(text))
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{name!r} is not a file of annealvi, or is damaged: {error}") from error
    if found["format"] != FORMAT:
        todo = "use a newer annealvi" if found["format"] > FORMAT else "fit the model again"
        raise ValueError(
            f"{name!r} has format {found['format']}, written by annealvi {found['version'][:40]}. "
            f"This is annealvi {__version__}, which reads format {FORMAT}: {todo}."
        )
    if _checksum(text, tensors) != checksum:
        raise ValueError(f"{name!r} is damaged: its contents do not match their checksum.")
    if found["kind"] != kind:
        raise ValueError(f"{name!r} must be a file of kind {kind!r}. Got kind {found['kind']!r}.")
    try:
        return {"version": found["version"], "tree": _unflatten(found["tree"], tensors)}
    except RecursionError as error:
        raise ValueError(f"{name!r} is damaged: it is nested too deeply.") from error


def read_archive(path: str | os.PathLike, what: str) -> dict[str, NDArray[Any]]:
    """Read all arrays of a file of NumPy's, .npz; objects are refused, so nothing is executed."""
    with open(path, "rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as stored:
                return {name: np.asarray(array) for name, array in stored.items()}
        except MemoryError:
            raise
        except Exception as error:  # each layer has its own: zipfile, zlib, struct, NumPy's header
            raise ValueError(
                f"{os.fspath(path)!r} holds no {what}: it is not an archive of arrays, or it is "
                f"damaged. ({type(error).__name__}: {error})"
            ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path`, which is moved there at the end, or removed after an error."""
    # a name has a greatest length
    partial = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.partial")
    try:
        partial.touch(exist_ok=False)
    except OSError as error:
        error.filename = str(path)  # the file that was asked for, not the one beside it
        raise
    mode = (path if path.exists() else partial).stat().st_mode & 0o777
    try:
        yield partial
        partial.chmod(mode)
        with partial.open("rb+") as file:
            os.fsync(file.fileno())  # complete on the disk, before it takes the old one's place
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


# -------------------------------------------------------------------------- details


def _flatten(value: Any, way: str, tensors: dict[str, NDArray]) -> Any:
    """A tree as JSON; arrays go to `tensors`, under their way through the tree.

    A dict with the single key ``$`` stands for what JSON does not have.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$": {"float": str(float(value))}}
    if isinstance(value, np.ndarray):
        return {"$": _flatten_array(value, way, tensors)}
    if isinstance(value, list | tuple):
        return [_flatten(part, f"{way}.{i}", tensors) for i, part in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) and key != "$" for key in value):
        return {
            key: _flatten(part, f"{way}.{key}" if way else key, tensors)
            for key, part in value.items()
        }
    raise TypeError(f"{way!r} cannot be written: a file cannot hold {str(value)[:80]!r}.")


def _flatten_array(array: NDArray, way: str, tensors: dict[str, NDArray]) -> dict[str, Any]:
    """The mark of an array, whose numbers go to `tensors`; strings are a list."""
    strings = array.tolist() if array.dtype.kind in "OUT" and array.ndim == 1 else [None]
    if all(isinstance(text, str) for text in strings):
        return {"strings": strings}
    native = array.dtype.newbyteorder("=")
    if native not in DTYPES.values():
        raise TypeError(f"{way!r} cannot be written: arrays of {native} are not supported.")
    # the order matters: products of matrices round differently
    turned = array.flags.f_contiguous and not array.flags.c_contiguous
    tensors[way] = np.asarray(array.T if turned else array, native, order="C")
    return {"transposed" if turned else "array": way}


def _unflatten(value: Any, left: dict[str, NDArray]) -> Any:
    """The tree of JSON; `left` are the arrays that have no place yet."""
    if isinstance(value, list):
        return [_unflatten(part, left) for part in value]
    if not isinstance(value, dict):
        return value
    match value.get("$"):
        case None:
            return {key: _unflatten(part, left) for key, part in value.items()}
        case {"float": "nan" | "inf" | "-inf" as number}:
            return float(number)
        case {"strings": [*strings]} if all(isinstance(text, str) for text in strings):
            array = np.empty(len(strings), dtype=object)  # str takes the longest one's memory
            array[:] = strings
            return array
        case {"array": str(way)} if way in left:
            return left.pop(way)
        case {"transposed": str(way)} if way in left:
            return left.pop(way).T
    raise ValueError(f"The file is damaged: {str(value)[:80]!r} has no known meaning.")


def _checksum(text: str, tensors: Mapping[str, NDArray]) -> str:
    """SHA-256 over the description and the arrays with their names, dtypes and shapes."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        if array.size:
            digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _open(path: str | os.PathLike) -> tuple[str, str, dict[str, NDArray]]:
    """The description, the checksum and the arrays, mapped into memory."""
    # this checks the layout of the whole file
    with safe_open(os.fsdecode(path), framework="numpy") as file:
        metadata, names = file.metadata() or {}, list(file.keys())
    if TREE not in metadata or CHECKSUM not in metadata:
        raise ValueError("annealvi did not write it.")
    data = np.memmap(path, np.uint8, mode="r")
    length = int(data[:8].view("<u8")[0])
    entries, tensors = json.loads(data[8 : 8 + length].tobytes()), {}
    for key in names:
        dtype, shape = entries[key]["dtype"], entries[key]["shape"]
        if dtype not in DTYPES:
            raise ValueError(f"an array of {dtype} is not supported.")
        if 0 in shape and max(shape) > LONGEST_EMPTY:
            raise ValueError(f"an array without elements has shape {shape}.")
        first, last = (8 + length + offset for offset in entries[key]["data_offsets"])
        array = np.asarray(data[first:last]).view(DTYPES[dtype]).reshape(shape)
        tensors[key] = np.require(array, requirements="A")
    return metadata[TREE], metadata[CHECKSUM], tensors
