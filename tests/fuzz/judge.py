"""A call and its judge: which outcomes are in order, and which are failures."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from scipy import sparse

#: Errors that bad input may raise.  Other subclasses, such as LinAlgError and UnicodeDecodeError,
#: say nothing of a parameter.
ALLOWED = {
    *("ValueError", "TypeError", "OverflowError", "MemoryError", "_ArrayMemoryError"),
    *("NotFittedError", "InvalidParameterError", "BadParameter", "OutOfReach"),
}
#: Modules of scikit-learn whose `raise` statements word an error for the user, as ours do.
SCIKIT_LEARN = re.compile(
    r"sklearn/(base|feature_extraction/text|utils/(validation|_param_validation|_array_api|"
    r"_set_output|_indexing|_metadata_requests))\.py"
)
#: Texts of Python, NumPy and SciPy that name no parameter, in case one is passed on.
UNCLEAR = re.compile(
    r"out of bounds|object has no attribute|not supported between|unsupported operand"
    r"|could not be broadcast|cannot unpack|not subscriptable|ufunc '|only integer scalar"
    r"|shape mismatch|Singular matrix|did not converge|zero-size array|is not iterable",
    re.IGNORECASE,
)
#: Texts of others that say enough: of NumPy, Python's of paths, SciPy's of a line of a file,
#: scikit-learn's of DataFrames, and matplotlib's.
CLEAR = re.compile(
    "^Seed must be between|^expected str, bytes or os.PathLike object|^embedded null"
    "|^argument should be a str object or an os.PathLike object"
    "|Line [0-9]+: (Row|Column) index out of bounds"
    "|^Expected unique column names|not a valid value for cmap|^could not convert string to float"
)
#: Python's words for what an estimator has after a fit only.
UNFITTED = re.compile(r"'(Tempered|Topic)\w+' object has no attribute")
#: Modules whose warnings are errors in a strict trial; those of annealvi name their caller's.
OF_LIBRARIES = r"(annealvi|numpy|scipy|sklearn|pandas|matplotlib|plotly|joblib)\b"
#: The warning of a number that is rightly infinite.
ANNOUNCED = "exceeds the largest float"


class UserError(Exception):
    """An error of the caller's own callback, which the library must pass on."""


class Failure(Exception):  # noqa: N818 - a finding, not an error of this program
    """A call that did what no call may do: its kind, for the table, and a text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Trial:
    """Draws the values of one example, makes calls and judges them.

    In a strict trial, NumPy raises its floating-point errors, warnings of other libraries are
    errors, and the arrays among the arguments cannot be written to.
    """

    strict = False

    def __init__(self, draw: Callable[[st.SearchStrategy], Any], log: Callable[[str], None]):
        self.draw, self.log = draw, log
        self.outcomes: Counter[str] = Counter()
        self._announced = False  # whether there was a warning that a number is infinite

    def one_of(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def whole(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def seldom(self, n: int) -> bool:
        """True once in about n times."""
        return self.whole(1, n) == n

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        check: Callable[[Any], None] | None = None,
        allows: tuple[type[BaseException], ...] = (),
        looks: bool = True,
        **kwargs: Any,
    ) -> tuple[bool, Any]:
        """Make a call; return whether it answered, and what; raise Failure if it must not so end.

        `check` looks at the result, which by default must be finite; `allows` are further errors
        that the function may raise; `looks` is False if it does not look at its arguments yet.
        """
        given = [*map(shown, args), *(f"{key}={shown(value)}" for key, value in kwargs.items())]
        self.log(f"{name}({', '.join(given)})")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            if self.strict:
                for value in (*args, *kwargs.values()):
                    forbid_writing(value)
                warnings.filterwarnings("error", module=OF_LIBRARIES)
                # the library warns of infinite numbers; scikit-learn of names that a user forgot
                warnings.filterwarnings("always", category=RuntimeWarning, module="annealvi")
                warnings.filterwarnings("ignore", message="X (has|does not have) .*feature names")
            try:
                with np.errstate(all="raise") if self.strict else contextlib.nullcontext():
                    result = function(*args, **kwargs)
            except (Failure, HypothesisException):
                raise
            except Exception as error:
                kind = check_error(error, allows)
                self.outcomes[kind] += 1
                self.log(f"    {kind}: {str(error)[:200]}")
                return False, None
            finally:
                self._announced |= any(ANNOUNCED in str(one.message) for one in caught)
        unsound = [value for value in (*args, *kwargs.values()) if is_unsound(value)]
        if unsound and looks:
            raise Failure("unsound input accepted", f"{name} of {shown(unsound[0])}")
        try:
            (check or check_finite)(result)
        except Failure as failure:
            if failure.kind != "silent infinity" or not self._announced:
                raise
        self.outcomes["answer"] += 1
        return True, result


def forbid_writing(value: Any) -> None:
    """Make an array, or the arrays of a sparse matrix, read-only."""
    for array in (value, *(vars(value).values() if sparse.issparse(value) else ())):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


def check_error(error: Exception, allows: tuple[type[BaseException], ...] = ()) -> str:
    """Return the class of an error; raise Failure if it is not one for the user."""
    name, text = type(error).__name__, str(error)
    if isinstance(error, UserError):
        return "the callback's error"
    if isinstance(error, MemoryError):
        return "MemoryError"
    if isinstance(error, ValueError | TypeError) and CLEAR.search(text):
        return "ValueError" if isinstance(error, ValueError) else "TypeError"
    *_, place = traceback.walk_tb(error.__traceback__)
    path, line = place[0].f_code.co_filename, place[1]
    trace = "".join(traceback.format_tb(error.__traceback__)[-4:]).rstrip()
    worded = _worded(path, line)
    if isinstance(error, allows):
        unfitted = Path(path) == Path(__file__) or UNFITTED.match(text)
        if isinstance(error, AttributeError) and not (unfitted or worded):
            raise Failure("unclear error", f"{name}: {text}\n{trace}")
        return name
    if name not in ALLOWED:
        raise Failure("error class", f"{name}: {text}\n{trace}")
    if len(text.strip()) < 8 or UNCLEAR.search(text) or not worded:
        raise Failure("unclear error", f"{name}: {text}\n{trace}")
    return "ValueError" if name in ("InvalidParameterError", "BadParameter") else name


def _worded(path: str, line: int) -> bool:
    """Whether the error comes from a `raise` of ours or of scikit-learn's checks of input."""
    ours = {"annealvi", "joblib"} & set(Path(path).parts)
    return bool(SCIKIT_LEARN.search(path)) or (
        bool(ours) and any(first <= line <= last for first, last in _raises(path))
    )


@functools.cache
def _raises(path: str) -> list[tuple[int, int]]:
    """Lines of the `raise` statements of a file; a compiled kernel words nothing for the user."""
    if not path.endswith(".py"):
        return []
    nodes = ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
    return [(n.lineno, n.end_lineno or n.lineno) for n in nodes if isinstance(n, ast.Raise)]


def numbers(result: Any, where: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of floating-point numbers in a result, each with its place."""
    if sparse.issparse(result):
        yield f"{where}.data", np.asarray(result.data, dtype=np.float64)
    elif isinstance(result, dict | list | tuple):
        parts = result.items() if isinstance(result, dict) else enumerate(result)
        for key, value in parts:
            yield from numbers(value, f"{where}[{key!r}]")
    elif isinstance(result, float | np.floating | np.ndarray):
        array = np.asarray(result)
        if array.dtype.kind == "f":
            yield where, array
    elif hasattr(result, "to_numpy"):  # pandas
        yield from numbers(result.to_numpy(), where)


def check_finite(result: Any, nan: bool = False) -> None:
    """Raise Failure if a result has infinity in it, or NaN where that is not allowed."""
    for where, array in numbers(result):
        wrong = array[~np.isfinite(array) & ~(nan & np.isnan(array))]
        if wrong.size:
            raise Failure(
                "silent NaN" if np.isnan(wrong).any() else "silent infinity",
                f"result{where} of shape {array.shape} holds {wrong.flat[0]} "
                f"({wrong.size} of {array.size} numbers)",
            )


#: Here NaN means that there is no value.
check_not_infinite = functools.partial(check_finite, nan=True)


def anything(result: Any) -> None:
    """Accept any result: its numbers may follow from infinite arguments."""


def is_unsound(X: Any) -> bool:
    """Whether a matrix is CSR or CSC by its class, but not by its arrays."""
    if not (sparse.issparse(X) and X.format in ("csr", "csc")):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy.copy(X).check_format(full_check=True)
        pointers = [int(p) for p in X.indptr]  # SciPy's own differences may wrap
        return any(a > b for a, b in pairwise(pointers))
    except Exception:  # of any class, for odd objects among the arrays
        return True


def shown(value: Any) -> str:
    """Describe an argument in a line, without the methods of damaged objects."""
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"ndarray {value.shape} {value.dtype}"
    if sparse.issparse(value):
        parts = vars(value).items()
        arrays = [f"{k} {shown(v)}" for k, v in parts if isinstance(v, np.ndarray | list | tuple)]
        return f"{type(value).__name__} {arrays}{' UNSOUND' * is_unsound(value)}"
    if isinstance(value, int) and abs(value) > 10**20:
        return f"int of {value.bit_length()} bits"
    try:
        return " ".join(repr(value).split())[:300]
    except Exception:  # a repr of an odd object
        return f"<{type(value).__name__}>"
