"""Writes a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path`, which is moved there at the end, or removed after an error.

    Parameters
    ----------
    path : Path
    """
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
