"""The format of files: safetensors, with nested dicts (a "tree") in the header.

A tree is a dict of None, bool, int, float, str, arrays, lists and other dicts.  Arrays are the
tensors of the file.  Everything else is JSON in the entry ``annealvi`` of the header.  A checksum
detects damage.  No code is executed when a file is read.  Arrays are views of the file.  No array
may occur twice in the tree; otherwise a copy of the tree could be much larger than the file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike, fsdecode, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from annealvi._version import __version__
from annealvi.files.schema import Integer, Schema, Text, Tree

#: The version of the format, which increases when an older version of annealvi would read a file
#: wrongly.  Version 1 was never released.
FORMAT = 3
#: The names of the entries in the header of the file.
TREE = "annealvi"
CHECKSUM = "sha256"
DESCRIPTION = Schema(kind=Text(), format=Integer(1), version=Text(), tree=Tree())
#: The dtypes of arrays that can be written, by their names in safetensors.
DTYPES = {f"{kind.upper()}{8 * n}": np.dtype(f"{kind}{n}") for kind in "iu" for n in (1, 2, 4, 8)}
DTYPES |= {"BOOL": np.dtype(bool), "F32": np.dtype(np.float32), "F64": np.dtype(np.float64)}
#: Up to this number of strings are written to the header, whose length is limited.
IN_HEADER = 10_000
#: Errors after which a file may lack contents; other errors of fsync lose nothing.
LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
#: The maximum length of an axis of an array without elements, which needs no bytes in the file.
LONGEST_EMPTY = 1 << 16


def write(path: str | PathLike, kind: str, tree: Mapping[str, Any]) -> None:
    """Write a tree to a file; `read` must be called with the same `kind`.

    A temporary file in the same folder is written and then moved to `path`.  Therefore an existing
    file is replaced only when the new one is complete, and is unchanged after an error.  TypeError
    is raised if the tree contains an object that cannot be written.
    """
    tensors: dict[str, NDArray] = {}
    content = {"kind": kind, "format": FORMAT, "version": __version__, "tree": tree}
    plain = _flatten(content, "", tensors)
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    header = {TREE: text, CHECKSUM: _checksum(text, tensors)}
    with replacing(Path(fsdecode(path))) as partial:
        try:
            save_file(tensors, partial, metadata=header)
        except SafetensorError as error:
            raise OSError(f"The file {fsdecode(path)!r} cannot be written: {error}.") from error


def read(path: str | PathLike, kind: str) -> dict[str, Any]:
    """Read the ``version`` of annealvi that wrote a file, and the ``tree`` in the file.

    Arrays are read-only views of the file, which is mapped into memory, except on Windows.  The
    file must not be changed in place while these arrays are used.  ValueError is raised if the file
    is damaged, or if its kind or its format version is wrong.
    """
    name = fsdecode(path)
    with open(path, "rb"):
        pass  # raises errors of the system before errors of the format
    try:
        text, checksum, tensors = _open(path)
        content = DESCRIPTION.load(json.loads(text))
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"The file {name!r} is not an annealvi file, or it is damaged: {error}"
        ) from error
    if content["format"] != FORMAT:
        raise ValueError(
            f"The file {name!r} has format {content['format']}, because it was written by annealvi "
            f"{content['version'][:40]}. This version, {__version__}, reads format {FORMAT}. "
            + ("Use a newer annealvi." if content["format"] > FORMAT else "Fit the model again.")
        )
    if _checksum(text, tensors) != checksum:
        raise ValueError(f"The file {name!r} is damaged: its contents do not match its checksum.")
    if content["kind"] != kind:
        raise ValueError(
            f"The file {name!r} must be a file of kind {kind!r}. Got kind {content['kind']!r}."
        )
    try:
        return {"version": content["version"], "tree": _unflatten(content["tree"], tensors)}
    except RecursionError as error:
        raise ValueError(f"The file {name!r} is damaged: its JSON is nested too deeply.") from error


def read_archive(path: str | PathLike, what: str) -> dict[str, NDArray]:
    """Read all arrays of a .npz file of NumPy; objects are not read, so no code is executed."""
    with open(path, "rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as stored:
                return {name: np.asarray(array) for name, array in stored.items()}
        except MemoryError:
            raise
        except Exception as error:  # errors of zipfile, zlib, struct or NumPy
            raise ValueError(
                f"The file {fspath(path)!r} does not contain any {what}: it is not an archive "
                f"of arrays (.npz), or it is damaged. Got {type(error).__name__}: {error}"
            ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new file, which is moved to `path` at the end, or removed after an error.

    A link stays a link: the file that it points to is replaced.  If `path` is a device or a pipe,
    or if its folder refuses new or hidden files, the contents are copied to it instead.
    """
    is_moved = path.is_file() or not path.exists()  # not a device or a pipe
    target = Path(os.path.realpath(path))
    # shortened, because the length of file names is limited
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.partial")
    try:
        if is_moved:
            temporary.touch(exist_ok=False)
    except PermissionError:
        is_moved = False
    except OSError as error:
        error.filename = str(path)  # the user's path instead of the temporary one
        raise
    if not is_moved:
        temporary = Path(tempfile.gettempdir(), temporary.name)
        temporary.touch(0o600, exist_ok=False)
    # the new file gets the permissions of the old one
    mode = (target if target.exists() else temporary).stat().st_mode & 0o777
    try:
        yield temporary
        flush(temporary)  # the new file must be on the disk before it replaces the old one
        if is_moved:
            with suppress(OSError):  # the contents matter more than their protection
                temporary.chmod(mode)
            # an error, for example, if a single file is mounted into a container
            with suppress(OSError):
                temporary.replace(target)
                return
        with temporary.open("rb") as source, path.open("wb") as file:
            shutil.copyfileobj(source, file)
    finally:
        temporary.unlink(missing_ok=True)


def view_of(path: str | PathLike) -> NDArray[np.uint8]:
    """Map a file into memory, or read it on Windows, which replaces no file that is mapped."""
    if sys.platform != "win32":
        return np.memmap(path, np.uint8, mode="r")
    data = np.fromfile(path, np.uint8)
    data.flags.writeable = False
    return data


def flush(path: Path) -> None:
    """Write a file to the disk itself, where the file system offers this; many shares do not."""
    with path.open("rb+") as file:
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno in LOST:  # others mean that the file system does not offer it
                raise


# -------------------------------------------------------------------------- details


def _flatten(value: Any, path: str, tensors: dict[str, NDArray]) -> Any:
    """Convert a tree to JSON, and add its arrays to `tensors` under their path in the tree.

    A dict with the single key ``$`` represents a value that JSON lacks, such as an array or NaN.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$": {"float": str(value)}}
    if isinstance(value, np.ndarray):
        return {"$": _flatten_array(value, path, tensors)}
    if isinstance(value, list | tuple):
        if len(value) > IN_HEADER and all(isinstance(item, str) for item in value):
            return {"$": {"list": _flatten_array(np.array(value, object), path, tensors)}}
        return [_flatten(item, f"{path}.{i}", tensors) for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) and key != "$" for key in value):
        return {
            key: _flatten(item, f"{path}.{key}" if path else key, tensors)
            for key, item in value.items()
        }
    raise TypeError(
        f"The value {path!r} cannot be written, because files cannot contain {str(value)[:80]!r}."
    )


def _flatten_array(array: NDArray, path: str, tensors: dict[str, NDArray]) -> dict[str, Any]:
    """Add an array to `tensors`, and return a reference to it; strings become a list."""
    # objects, texts of NumPy's fixed length, and of any length
    if array.dtype.kind in ("O", "U", "T") and array.ndim == 1:
        strings = array.tolist()
        if all(isinstance(text, str) for text in strings):
            if len(strings) <= IN_HEADER:
                return {"strings": strings}
            content = json.dumps(strings, ensure_ascii=False).encode("utf-8", "surrogatepass")
            tensors[path] = np.frombuffer(content, np.uint8)
            return {"encoded": path}
    native_dtype = array.dtype.newbyteorder("=")
    if native_dtype not in DTYPES.values():
        raise TypeError(f"The array {path!r} cannot be written: {native_dtype} is not supported.")
    # the memory order is preserved, because it changes rounding in products of matrices
    is_transposed = array.flags.f_contiguous and not array.flags.c_contiguous
    tensors[path] = np.asarray(array.T if is_transposed else array, native_dtype, order="C")
    return {"transposed" if is_transposed else "array": path}


def _unflatten(value: Any, arrays: dict[str, NDArray]) -> Any:
    """Convert JSON to a tree, and move arrays from `arrays` to their places in the tree.

    Each array is removed from `arrays`, so that a damaged file cannot use it twice.
    """
    if isinstance(value, list):
        return [_unflatten(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    match value.get("$"):
        case None:
            return {key: _unflatten(item, arrays) for key, item in value.items()}
        case {"float": "nan" | "inf" | "-inf" as number}:
            return float(number)
        case {"strings": [*strings]} if all(isinstance(text, str) for text in strings):
            array = np.empty(len(strings), dtype=object)  # dtype str would need more memory
            array[:] = strings
            return array
        case {"encoded": str(path)} if path in arrays:
            # strings that are not valid JSON go to the error below
            with suppress(ValueError):
                content = arrays.pop(path).tobytes()
                return _unflatten({"$": {"strings": json.loads(content)}}, arrays)
        case {"list": {"encoded": str()} as strings}:
            return _unflatten({"$": strings}, arrays).tolist()
        case {"array": str(path)} if path in arrays:
            return arrays.pop(path)
        case {"transposed": str(path)} if path in arrays:
            return arrays.pop(path).T
    raise ValueError(f"The file is damaged: its header has the invalid entry {str(value)[:80]!r}.")


def _checksum(text: str, tensors: Mapping[str, NDArray]) -> str:
    """Return the SHA-256 of the description and of the arrays' names, dtypes, shapes and data."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _open(path: str | PathLike) -> tuple[str, str, dict[str, NDArray]]:
    """Return the description, the checksum and the arrays, which are views of the file."""
    # this checks the layout of the whole file
    with safe_open(fsdecode(path), framework="numpy") as file:
        metadata = file.metadata() or {}
        array_names = file.keys()
    if TREE not in metadata or CHECKSUM not in metadata:
        raise ValueError("it was not written by annealvi.")
    data = view_of(path)
    # the layout of safetensors: the length of the header, the header, the arrays
    length = int(data[:8].view("<u8")[0])
    entries = json.loads(data[8 : 8 + length].tobytes())
    tensors = {}
    for key in array_names:
        entry = entries[key]
        dtype = entry["dtype"]
        shape = entry["shape"]
        if dtype not in DTYPES:
            raise ValueError(f"arrays of {dtype} are not supported.")
        if 0 in shape and max(shape) > LONGEST_EMPTY:
            raise ValueError(f"an array without elements has the shape {shape}.")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.asarray(data[begin:end]).view(DTYPES[dtype]).reshape(shape)
        # kernels need aligned arrays; only an array that is not aligned is copied
        tensors[key] = np.require(array, requirements="A")
    return metadata[TREE], metadata[CHECKSUM], tensors
