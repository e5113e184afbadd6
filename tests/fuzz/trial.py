"""A trial: what one case draws and calls."""

from __future__ import annotations

import os
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from tests.fuzz.judge import Failure, check_error, check_finite

#: The warning of a number that is rightly infinite.
ANNOUNCED = "exceeds the largest float"


class Trial:
    """Random draws of one case, and a judge of the calls that it makes.

    Parameters
    ----------
    seed : int
    target : str
    number : int
    log : callable, optional
        Called with a line for each call before it is made.

    Attributes
    ----------
    random : random.Random
    rng : numpy.random.RandomState
    outcomes : Counter
        Number of calls of each outcome.
    spoilt : bool
        Whether the case has written to an estimator's array, which shows what was written.
    """

    def __init__(
        self, seed: int, target: str, number: int, log: Callable[[str], None] | None = None
    ) -> None:
        self.random = random.Random(f"{seed}:{target}:{number}")
        self.rng = np.random.RandomState(self.random.getrandbits(32))
        self.outcomes: Counter[str] = Counter()
        self.spoilt = False
        self._log = log
        self._announced = False  # whether there was a warning that a number is infinite

    # ------------------------------------------------------------------- drawing

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def one_of(self, *choices: Any) -> Any:
        """One of the arguments."""
        return self.random.choice(choices)

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return self.random.randint(low, high)

    def log_uniform(self, low: float, high: float) -> float:
        """A number whose logarithm is uniform."""
        return float(10 ** self.random.uniform(np.log10(low), np.log10(high)))

    # ------------------------------------------------------------------- calling

    def note(self, text: str) -> None:
        """Write a line to the log."""
        if self._log is not None:
            self._log(text)

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        check: Callable[[Any], None] = check_finite,
        allows: tuple[type[BaseException], ...] = (),
        looks: bool = True,
        **kwargs: Any,
    ) -> tuple[bool, Any]:
        """Make a call and judge it.

        Parameters
        ----------
        name : str
            For the log.
        function : callable
        *args, **kwargs
            Its arguments.
        check : callable
            Called with the result; raises Failure if it is out of order.
        allows : tuple of types
            Further errors that the function may raise.
        looks : bool
            Whether the function looks at its arguments now; unsound ones are then an error.

        Returns
        -------
        answered : bool
        result : object
            None if there was an error, an allowed one.

        Raises
        ------
        Failure
            If the call must not end like this.
        """
        if self._log is not None:
            given = [shown(value) for value in args]
            given += [f"{key}={shown(value)}" for key, value in kwargs.items()]
            self._log(f"{name}({', '.join(given)})")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", RuntimeWarning)
                try:
                    result = function(*args, **kwargs)
                finally:
                    self._announced |= any(ANNOUNCED in str(one.message) for one in caught)
        except Failure:
            raise
        except Exception as error:
            kind = check_error(error, allows)
            self.outcomes[kind] += 1
            if self._log is not None:
                self._log(f"    {kind}: {str(error)[:200]}")
            return False, None
        unsound = [value for value in (*args, *kwargs.values()) if is_unsound(value)]
        if unsound and looks:
            raise Failure("unsound input accepted", f"{name} of {shown(unsound[0])}")
        try:
            check(result)
        except Failure as failure:
            if failure.kind != "silent infinity" or not self._announced:
                raise
        self.outcomes["answer"] += 1
        return True, result


def is_unsound(X: Any) -> bool:
    """Whether a matrix is CSR or CSC by its class, but not by its arrays.

    Longer arrays than needed are no fault: SciPy's own methods leave such.

    Parameters
    ----------
    X : object
    """
    if not (sparse.issparse(X) and X.format in ("csr", "csc")):
        return False
    try:
        n_rows, n_columns = X.shape if X.format == "csr" else X.shape[::-1]
        indptr, indices, data = (getattr(X, name) for name in ("indptr", "indices", "data"))
        if not all(isinstance(array, np.ndarray) for array in (indptr, indices, data)):
            return True
        if not (indptr.ndim == indices.ndim == data.ndim == 1):
            return True
        if indptr.dtype.kind not in "iufb" or indices.dtype.kind not in "iufb":
            return True
        if len(indptr) != n_rows + 1 or not len(indptr):
            return True
        pointers = [int(p) for p in indptr]  # Python's numbers: no overflow
        if pointers[0] != 0 or any(a > b for a, b in pairwise(pointers)):
            return True
        n_entries = pointers[-1]
        if n_entries > min(len(indices), len(data)):
            return True
        used = indices[:n_entries]
        return bool(n_entries) and not (used.min() >= 0 and used.max() < n_columns)
    except (ValueError, OverflowError, TypeError):  # NaN among the pointers, odd objects
        return True


def shown(value: Any) -> str:
    """Describe an argument in a line, without the methods of damaged objects.

    Parameters
    ----------
    value : object
    """
    if isinstance(value, np.ndarray):
        text = f"ndarray {value.shape} {value.dtype}"
        if value.dtype.kind in "iuf" and 0 < value.size <= 6:
            text += f" {value.tolist()}"
        elif value.dtype.kind in "iuf" and value.size:
            text += f" from {value.min()} to {value.max()}"
        return text
    if sparse.issparse(value):
        arrays = [
            f"{name} {shown(vars(value)[name])}"
            for name in ("data", "indices", "indptr", "row", "col")
            if name in vars(value)
        ]
        kind = type(value).__name__
        return f"{kind} {value.shape} [{', '.join(arrays)}]{' UNSOUND' * is_unsound(value)}"
    if isinstance(value, int) and abs(value) > 10**20:
        return f"int of {value.bit_length()} bits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a repr of an odd object
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 300 else f"{text[:300]}..."


def to_stderr(line: str) -> None:
    """Write a line at once, so that it is there after a crash."""
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{line}\n".encode(errors="replace"))
