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
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from annealvi._version import __version__

#: Version of the format.  It grows when an older reader would misunderstand a file.  1 was in
#: development and was never released.
FORMAT = 2
#: Names of the entries in the header of the file.
TREE, CHECKSUM = "annealvi", "sha256"
#: Dtypes of arrays that can be written, by the names that safetensors has for them.
DTYPES = {f"{kind.upper()}{8 * n}": np.dtype(f"{kind}{n}") for kind in "iu" for n in (1, 2, 4, 8)}
DTYPES |= {"BOOL": np.dtype(bool), "F32": np.dtype(np.float32), "F64": np.dtype(np.float64)}
#: Most characters of the description, which takes some fifty times its length in memory.
MOST_TEXT = 1 << 24
#: Longest side of an array without elements, which takes no bytes of the file.
LONGEST_EMPTY = 1 << 16


def write(path: str | os.PathLike, kind: str, tree: Mapping[str, Any]) -> None:
    """Write a tree; `kind` says what the file is, and `read` asks for it.

    The file is written beside its place and moved there.  An existing file is replaced only once
    the new one is complete, and stays as it was after an error.  TypeError if the tree holds
    anything that a file cannot hold.
    """
    tensors: dict[str, NDArray] = {}
    plain = _flatten(
        {"kind": kind, "format": FORMAT, "version": __version__, "tree": tree}, "", tensors
    )
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    if len(text) > MOST_TEXT:
        raise TypeError(
            f"{os.fsdecode(path)!r} cannot be written: its lists take {len(text):,} characters, "
            f"and at most {MOST_TEXT:,} can be. Use arrays instead of lists."
        )
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
    text, checksum, tensors = _open(path)
    if len(text) > MOST_TEXT:
        raise ValueError(f"{name!r} is damaged: its description has {len(text):,} characters.")
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name!r} is damaged: its description is not JSON ({error}).") from error
    if not isinstance(plain, dict) or not {"kind", "format", "version", "tree"} <= plain.keys():
        raise ValueError(f"{name!r} is damaged: its description has no kind, format or version.")
    theirs, version = plain["format"], plain["version"]
    if not isinstance(version, str) or not isinstance(theirs, int) or theirs < 1:
        raise ValueError(f"{name!r} is damaged: it has format {theirs!r} and version {version!r}.")
    if theirs != FORMAT:
        todo = "use a newer annealvi" if theirs > FORMAT else "fit the model again"
        raise ValueError(
            f"{name!r} has format {theirs}, written by annealvi {version[:40]}. This is annealvi "
            f"{__version__}, which reads format {FORMAT}: {todo}."
        )
    if _checksum(text, tensors) != checksum:
        raise ValueError(f"{name!r} is damaged: its contents do not match their checksum.")
    if plain["kind"] != kind:
        raise ValueError(f"{name!r} must be a file of kind {kind!r}. Got kind {plain['kind']!r}.")
    try:
        tree = _unflatten(plain["tree"], tensors)
    except RecursionError as error:
        raise ValueError(f"{name!r} is damaged: it is nested too deeply.") from error
    if not isinstance(tree, dict):
        raise ValueError(f"{name!r} is damaged: it holds no dict.")
    return {"version": version, "tree": tree}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path`, which is moved there at the end, or removed after an error."""
    prefix = f".{path.name[:40]}."  # a name has a greatest length
    try:
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=".partial", dir=path.parent)
    except OSError as error:
        error.filename = str(path)  # the file that was asked for, not the one beside it
        raise
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
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
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OUT":
            return _flatten_strings(value, way, tensors)
        if value.dtype.newbyteorder("=") not in DTYPES.values():
            raise TypeError(
                f"{way!r} cannot be written: arrays of {value.dtype} are not supported."
            )
        name, native = way or "array", value.dtype.newbyteorder("=")
        # the order matters: products of matrices round differently
        turned = value.flags.f_contiguous and not value.flags.c_contiguous
        stored = np.ascontiguousarray(value.T if turned else value, native)
        stored = stored if turned else stored.reshape(value.shape)
        tensors[name] = stored
        return {"$": {"transposed" if turned else "array": name}}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$": {"float": str(float(value))}}
    if isinstance(value, list | tuple):
        return [_flatten(part, f"{way}.{i}", tensors) for i, part in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        if "$" in value:
            raise TypeError(f"{way!r} cannot be written: '$' is not allowed as a key.")
        return {
            str(key): _flatten(part, f"{way}.{key}" if way else str(key), tensors)
            for key, part in value.items()
        }
    raise TypeError(f"{way!r} cannot be written: it is a {type(value).__name__}.")


def _flatten_strings(value: NDArray, way: str, tensors: dict[str, NDArray]) -> Any:
    """Strings as UTF-8, one after another, and where each ends."""
    texts = value.tolist()
    if value.ndim != 1 or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{way!r} cannot be written: arrays of objects must hold strings.")
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    tensors[f"{way}.text"] = np.frombuffer(b"".join(encoded), np.uint8)
    tensors[f"{way}.ends"] = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {"$": {"strings": way}}


def _unflatten(value: Any, left: dict[str, NDArray]) -> Any:
    """The tree of JSON; `left` are the arrays that have no place yet."""
    if isinstance(value, list):
        return [_unflatten(part, left) for part in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: _unflatten(part, left) for key, part in value.items()}
    marked = value["$"]
    if isinstance(marked, dict) and all(isinstance(way, str) for way in marked.values()):
        if marked.get("float") in ("nan", "inf", "-inf"):
            return float(marked["float"])
        if (array := left.pop(marked.get("array", ""), None)) is not None:
            return array
        if (array := left.pop(marked.get("transposed", ""), None)) is not None:
            return array.T
        way = marked.get("strings")
        text, ends = (left.pop(f"{way}.{part}", None) for part in ("text", "ends"))
        if text is not None and ends is not None:
            return _unflatten_strings(text, ends)
    raise ValueError(f"The file is damaged: {str(value)[:80]!r} stands for nothing.")


def _unflatten_strings(text: NDArray, ends: NDArray) -> NDArray:
    sound = (
        (text.ndim, text.dtype, ends.ndim, ends.dtype) == (1, np.uint8, 1, np.int64)
        and (ends[-1] if len(ends) else 0) == len(text)
        and np.all(ends >= 0)
        and np.all(ends[1:] >= ends[:-1])
    )
    if not sound:
        raise ValueError("The file is damaged: strings do not end where their array ends.")
    data, edges = text.tobytes(), [0, *ends.tolist()]
    try:
        strings = [
            data[first:last].decode("utf-8", "surrogatepass") for first, last in pairwise(edges)
        ]
    except UnicodeDecodeError as error:
        raise ValueError(f"The file is damaged: a string is not UTF-8 ({error}).") from error
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array  # of objects: an array of dtype str takes the longest one's memory for each


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
    name = os.fsdecode(path)
    with open(path, "rb"):
        pass  # errors of the system come before those of the format
    try:
        with safe_open(name, framework="numpy") as file:  # checks the layout of the whole file
            metadata, names = file.metadata() or {}, set(file.keys())
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no file of annealvi, or is damaged: {error}.") from error
    if TREE not in metadata or CHECKSUM not in metadata:
        raise ValueError(f"{name!r} is a safetensors file, but annealvi did not write it.")
    data = np.memmap(path, np.uint8, mode="r")
    length = int(data[:8].view("<u8")[0])
    tensors = {}
    for key, entry in json.loads(data[8 : 8 + length].tobytes()).items():
        if key not in names:
            continue  # the metadata
        dtype, shape = DTYPES.get(entry["dtype"]), entry["shape"]
        if dtype is None:
            raise ValueError(f"{name!r} is damaged: an array of {entry['dtype']} is not supported.")
        if 0 in shape and max(shape) > LONGEST_EMPTY:
            raise ValueError(f"{name!r} is damaged: an array without elements has shape {shape}.")
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        array = np.asarray(data[first:last]).view(dtype).reshape(shape)
        tensors[key] = array if array.flags.aligned else np.require(array, requirements="A")
    return metadata[TREE], metadata[CHECKSUM], tensors
