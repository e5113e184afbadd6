"""log C(T) over a grid of temperatures: the grid, the values and their hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._kernels import special
from annealvi.checks import (
    GRID_SIZE,
    Interval,
    as_array,
    as_numbers,
    check_inverses,
    check_numbers,
    checked,
    validated,
)
from annealvi.exceptions import BadParameter
from annealvi.files import read_archive

_MADE_FOR = "made_for."
#: Largest |log C(1)| that counts as 0, for up to a thousand data.  For more data the limit grows
#: in proportion, because rounding errors add up.
_LOST = 1e-8


_GRID = {
    "t_max": [Interval(Real, 1, None, closed="neither")],
    "size": GRID_SIZE,
}


@validated(**_GRID)
def exponential_grid(t_max: float, size: int) -> NDArray[np.float64]:
    """Make the exponential grid of temperatures T_m = t_max^((m - 1) / (M - 1)).

    Parameters
    ----------
    t_max : float
        The highest temperature, above 1.
    size : int
        Number of temperatures M, from 2 to a million.

    Returns
    -------
    ndarray of shape (M,)
        The temperatures T_1 = 1 < ... < T_M = t_max.

    Examples
    --------
    >>> exponential_grid(4, 3)
    array([1., 2., 4.])
    """
    return special.power(float(t_max), np.linspace(0.0, 1.0, size))


@validated(**_GRID)
def even_grid(t_max: float, size: int) -> NDArray[np.float64]:
    """Make a grid of temperatures from 1 to t_max whose inverses 1/T are evenly spaced.

    Parameters
    ----------
    t_max : float
        The highest temperature, above 1.
    size : int
        Number of temperatures M, from 2 to a million.

    Returns
    -------
    ndarray of shape (M,)
    """
    return 1.0 / np.linspace(1.0, 1.0 / t_max, size)


def check_temperatures(value: ArrayLike) -> NDArray[np.float64]:
    """Check that a grid of temperatures starts at 1 and increases."""
    temperatures = check_inverses(value, "temperatures", min_length=2)
    if temperatures[0] != 1:
        raise BadParameter("temperatures", "an array whose first number is 1", temperatures[0])
    for m in np.flatnonzero(np.diff(temperatures) <= 0):
        raise BadParameter("temperatures", "strictly increasing", temperatures[m : m + 2].tolist())
    return temperatures


@dataclass(frozen=True, eq=False)
class LogPartition:
    """Values of log C(T) over a grid, with the hyperparameters that they were computed for.

    Parameters
    ----------
    temperatures : ndarray of shape (M,)
        The temperatures 1 = T_1 < ... < T_M.
    values : ndarray of shape (M,)
        log C at each temperature.
    method : str, default="given"
        How the values were computed.
    standard_error : ndarray of shape (M,), optional
        Standard error of the values, if they are a Monte Carlo estimate.
    effective_sample_size : ndarray of shape (M,), optional
        The effective number of draws in a Monte Carlo estimate with terms w, which is
        (sum w)^2 / sum w^2.
    bounds : ndarray of shape (2, M), optional
        Jensen's two lower bounds: first the looser bound, then the tighter one.
    made_for : dict, optional
        The hyperparameters that the values were computed for, by name: numbers, strings, arrays.
    """

    temperatures: NDArray[np.float64]
    values: NDArray[np.float64]
    method: str = "given"
    standard_error: NDArray[np.float64] | None = None
    effective_sample_size: NDArray[np.float64] | None = None
    bounds: NDArray[np.float64] | None = None
    made_for: dict[str, Any] = field(default_factory=dict)

    def __eq__(self, log_partition: object) -> bool:
        """Return whether another LogPartition has the same numbers and hyperparameters."""
        if not isinstance(log_partition, LogPartition):
            return NotImplemented
        fields = vars(self) | self.made_for
        fields_of_other = vars(log_partition) | log_partition.made_for
        return fields.keys() == fields_of_other.keys() and all(
            np.array_equal(value, fields_of_other[name])  # type: ignore[arg-type]
            for name, value in fields.items()
            if name != "made_for"
        )

    def __hash__(self) -> int:
        """Equal objects have the same method and number of values."""
        return hash((self.method, len(self.values)))

    @checked
    def check(
        self,
        temperatures: ArrayLike | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Raise ValueError if the values were computed for another grid or other hyperparameters.

        Parameters
        ----------
        temperatures : array-like of shape (M,), optional
            The grid on which log C is needed.
        hyperparameters : mapping, optional
            The hyperparameters for which log C is needed.  Those that the attribute `made_for` does
            not contain are not compared.

        Raises
        ------
        ValueError
            If the grid or a hyperparameter differs, or if the values are not one finite number for
            each temperature.  The message names what differs.
        """
        grid = check_temperatures(self.temperatures)
        check_numbers(self.values, "values", grid.shape)
        for name, kind in (("method", str), ("made_for", dict)):
            if not isinstance(vars(self)[name], kind):
                raise BadParameter(name, f"a {kind.__name__}", vars(self)[name])
        if temperatures is not None:
            needed = as_numbers(temperatures, "temperatures")
            if needed.shape != grid.shape:
                raise ValueError(
                    "This LogPartition was computed on a different grid from that of the fit. "
                    f"'temperatures' has {len(grid)} points, expected {needed.size}."
                )
            for m in np.flatnonzero(~(np.abs(needed - grid) <= 1e-12 * grid)):  # true for nan
                raise ValueError(
                    "This LogPartition was computed on a different grid from that of the fit. "
                    f"'temperatures'[{m}] is {grid[m]}, expected {needed[m]}."
                )
        for name, expected in (hyperparameters or {}).items():
            value = self.made_for.get(name)
            if value is not None and expected is not None and not _same(value, expected):
                raise ValueError(
                    "This LogPartition was computed for different hyperparameters. "
                    f"{name!r} is {shown(value)}, expected {shown(expected)}."
                )

    def save(self, path: str | PathLike) -> None:
        """Write this object to a file that :meth:`load` can read."""
        # each hyperparameter becomes an array of its own, whose name begins with _MADE_FOR
        fields = vars(self) | {_MADE_FOR + name: value for name, value in self.made_for.items()}
        del fields["made_for"]
        arrays = {name: np.asarray(value) for name, value in fields.items() if value is not None}
        unsaved_names = [name for name, array in arrays.items() if array.dtype.kind not in "fiubU"]
        if unsaved_names:
            raise ValueError(
                "A LogPartition can be saved only if its fields are numbers and strings. Got "
                f"{unsaved_names[0]!r} of dtype {arrays[unsaved_names[0]].dtype} instead."
            )
        with open(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | PathLike) -> LogPartition:
        """Read a LogPartition from a file that :meth:`save` wrote.

        Raises
        ------
        ValueError
            If the file does not contain a LogPartition.
        """
        fields: dict[str, Any] = {}
        made_for: dict[str, Any] = {}
        for name, array in read_archive(path, "LogPartition").items():
            value = array if array.ndim else array.item()
            if name.startswith(_MADE_FOR):
                made_for[name.removeprefix(_MADE_FOR)] = value
            else:
                fields[name] = value
        possible_names = set(cls.__dataclass_fields__) - {"made_for"}
        if not {"temperatures", "values"} <= set(fields) <= possible_names:
            raise ValueError(
                f"The file {fspath(path)!r} does not contain any LogPartition: it contains the "
                f"arrays {sorted(fields)}."
            )
        return cls(**fields, made_for=made_for)


def _same(value: Any, expected: Any) -> bool:
    """Whether a hyperparameter equals the expected one, up to rounding errors."""
    value = as_array(value)
    expected = as_array(expected)
    if value.dtype.kind in "biuf" and expected.dtype.kind in "biuf":
        try:
            return bool(np.all(np.isclose(value, expected, rtol=1e-12, atol=0)))
        except ValueError:  # the shapes cannot be broadcast
            return False
    return bool(np.array_equal(value, expected))


def shown(value: Any) -> str:
    """Describe a number, or an array by its shape, for a message."""
    array = as_array(value)
    return f"an array of shape {array.shape}" if array.ndim else repr(array.item())


class OutOfReach(ValueError):  # noqa: N818 - the user made no error
    """An exact log C would take too long to compute; method="auto" then uses Monte Carlo."""


def check_log_c_at_1(
    values: NDArray[np.float64], inverse: NDArray[np.float64], n_data: int
) -> None:
    """Raise OutOfReach if log C(1) is not 0, because all values then have large rounding errors."""
    at_1 = values[inverse == 1]
    if not np.all(np.abs(at_1) <= _LOST * max(1.0, n_data / 1e3)):
        raise OutOfReach(
            "method='exact' is inaccurate here because of rounding errors: at T=1 it gives "
            f"{at_1[0]:.2g} instead of 0. Use priors that are less extreme, or another 'method'."
        )
