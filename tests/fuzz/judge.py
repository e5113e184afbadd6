"""Which outcomes of a call are in order, and which are failures."""

from __future__ import annotations

import ast
import functools
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from scipy import sparse

#: Errors that bad input may raise.  Subclasses are listed too: NumPy's and Python's own ones,
#: such as LinAlgError and UnicodeDecodeError, say nothing of a parameter.
ALLOWED = {
    "ValueError",
    "TypeError",
    "OverflowError",
    "MemoryError",
    "_ArrayMemoryError",
    "NotFittedError",
    "InvalidParameterError",
    "OutOfReach",
}
#: Whose `raise` statements word an error for the user.
OURS = ("annealvi",)
SCIKIT_LEARN = tuple(
    f"sklearn/{name}"
    for name in (
        "base.py",
        "feature_extraction/text.py",
        "utils/validation.py",
        "utils/_param_validation.py",
        "utils/_array_api.py",
        "utils/_set_output.py",
        "utils/_indexing.py",
        "utils/_metadata_requests.py",
    )
)
#: Texts of Python, NumPy and SciPy that name no parameter, in case one is passed on.
UNCLEAR = re.compile(
    r"out of bounds|object has no attribute|not supported between|unsupported operand"
    r"|could not be broadcast|cannot unpack|not subscriptable|ufunc '|only integer scalar"
    r"|shape mismatch|Singular matrix|did not converge|zero-size array|is not iterable",
    re.IGNORECASE,
)


#: Texts of others that say enough: of NumPy, Python's of paths, scikit-learn's of DataFrames, and
#: matplotlib's.
CLEAR = re.compile(
    "^Seed must be between|^expected str, bytes or os.PathLike object|^embedded null"
    "|^argument should be a str object or an os.PathLike object"
    "|^Expected unique column names|not a valid value for cmap|^could not convert string to float"
)


class UserError(Exception):
    """An error of the caller's own callback, which the library must pass on."""


class Failure(Exception):  # noqa: N818 - a finding, not an error of this program
    """A call that did what no call may do.

    Parameters
    ----------
    kind : str
        Short, for the table.
    text : str
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


# ----------------------------------------------------------------------------- errors


def check_error(error: Exception, allows: tuple[type[BaseException], ...] = ()) -> str:
    """Return the class of an error; raise Failure if it is not one for the user.

    Parameters
    ----------
    error : Exception
    allows : tuple of types
        Further classes that the documentation of the called function names.
    """
    name, text = type(error).__name__, str(error)
    if isinstance(error, UserError):
        return "the callback's error"
    if isinstance(error, MemoryError):
        return "MemoryError"
    if isinstance(error, ValueError | TypeError) and CLEAR.search(text):
        return "ValueError" if isinstance(error, ValueError) else "TypeError"
    place = _place(error)
    if isinstance(error, allows):
        direct = place[0].endswith("trial.py")  # an attribute that is not there
        if isinstance(error, AttributeError) and not (direct or _worded(place)):
            raise Failure("unclear error", f"{name}: {text}\n{_trace(error)}")
        return name
    if name not in ALLOWED:
        raise Failure("error class", f"{name}: {text}\n{_trace(error)}")
    if len(text.strip()) < 8 or UNCLEAR.search(text) or not _worded(place):
        raise Failure("unclear error", f"{name}: {text}\n{_trace(error)}")
    return name if name != "InvalidParameterError" else "ValueError"


def _place(error: BaseException) -> tuple[str, int]:
    """File and line where an error was raised."""
    frame: TracebackType | None = error.__traceback__
    place = ("", 0)
    while frame is not None:
        place = frame.tb_frame.f_code.co_filename, frame.tb_lineno
        frame = frame.tb_next
    return place


def _worded(place: tuple[str, int]) -> bool:
    """Whether the error comes from a `raise` of ours or of scikit-learn's checks of input."""
    path, line = place
    if any(part in path for part in SCIKIT_LEARN):
        return True
    folders = Path(path).parts
    ours = any(name in folders for name in OURS) or "joblib" in folders
    return ours and any(first <= line <= last for first, last in _raises(path))


@functools.cache
def _raises(path: str) -> list[tuple[int, int]]:
    """Lines of the `raise` statements of a file."""
    if not path.endswith(".py"):  # a compiled kernel words nothing for the user
        return []
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
    ]


def _trace(error: BaseException) -> str:
    """The last calls before an error."""
    return "".join(traceback.format_tb(error.__traceback__)[-4:]).rstrip()


# ---------------------------------------------------------------------------- results


def numbers(result: Any, where: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of floating-point numbers in a result, each with its place.

    Parameters
    ----------
    result : object
    where : str
        The place of the result itself.
    """
    if isinstance(result, bool | int | str | bytes | type(None)):
        return
    if sparse.issparse(result):
        yield f"{where}.data", np.asarray(result.data, dtype=np.float64)
    elif isinstance(result, dict):
        for name, value in result.items():
            yield from numbers(value, f"{where}[{name!r}]")
    elif isinstance(result, list | tuple):
        for index, value in enumerate(result):
            yield from numbers(value, f"{where}[{index}]")
    elif isinstance(result, float | np.floating | np.ndarray):
        array = np.asarray(result)
        if array.dtype.kind == "f":
            yield where, array
    elif hasattr(result, "to_numpy"):  # pandas
        yield from numbers(result.to_numpy(), where)


def check_finite(result: Any) -> None:
    """Raise Failure if a result has NaN or infinity in it.

    Parameters
    ----------
    result : object
    """
    for where, array in numbers(result):
        wrong = array[~np.isfinite(array)]
        if wrong.size:
            raise Failure(
                "silent NaN" if np.isnan(wrong).any() else "silent infinity",
                f"result{where} of shape {array.shape} holds {wrong.flat[0]} "
                f"({wrong.size} of {array.size} numbers)",
            )


def check_not_infinite(result: Any) -> None:
    """Raise Failure if a result holds infinity.  NaN means here that there is no value.

    Parameters
    ----------
    result : object
    """
    for where, array in numbers(result):
        if np.isinf(array).any():
            raise Failure("silent infinity", f"result{where} of shape {array.shape}")


def anything(result: Any) -> None:
    """Accept any result: its numbers may follow from infinite arguments."""
