r"""log C(T), the normaliser of a tempered likelihood.

A conditionally conjugate model whose likelihood is raised to b = 1/T no longer sums to
one.  What it sums to,

.. math::
   C(T) = \sum_x \sum_z \int p(\beta) \, h(x, z) \exp b (\beta^\top t(x, z) - a(\beta)) \, d\beta,

is what a temperature learned from the data weighs the likelihood against (Mandt et al.
2016).
"""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from annealvi._draws import Draws as Draws
from annealvi._draws import PlateOfData, log_mean_exp
from annealvi._power_grid import PowerGrid as PowerGrid
from annealvi._validation import as_array, check_numbers, n_threads

#: What each method asks of a model.
_NEEDS = {
    "exact": "log_partition",
    "monte-carlo": "draw_log_partition",
    "jensen": "jensen_log_partition",
    "map": "map_log_partition",
    "posterior": "posterior_log_partition",
}
_MADE_FOR = "made_for."
#: Fewer effective samples than this are one sample with company.
_LEAST_EFFECTIVE = 2.0
#: What is let pass as an exact log C(1) = 0; as much for each datum beyond a thousand, whose
#: roundings add up.
_LOST = 1e-8


def exponential_grid(t_max: float, size: int) -> NDArray[np.float64]:
    """Inverse temperatures of an exponential grid of T, T_m = t_max^((m - 1) / (M - 1)).

    Parameters
    ----------
    t_max : float
        The highest temperature, above 1.
    size : int
        M, at least 2.

    Returns
    -------
    ndarray of shape (M,)
        b_1 = 1 > ... > b_M = 1 / t_max.

    Examples
    --------
    >>> exponential_grid(4, 3)
    array([1.  , 0.5 , 0.25])
    """
    _check_grid_shape(t_max, size, "exponential_grid")
    return float(t_max) ** -np.linspace(0.0, 1.0, size)


def even_grid(t_max: float, size: int) -> NDArray[np.float64]:
    """Inverse temperatures at even distances, from 1 down to 1 / t_max.

    Parameters
    ----------
    t_max : float
        The highest temperature, above 1.
    size : int
        M, at least 2.

    Returns
    -------
    ndarray of shape (M,)
    """
    _check_grid_shape(t_max, size, "even_grid")
    return np.linspace(1.0, 1.0 / t_max, size)


def _check_grid_shape(t_max: float, size: int, caller: str) -> None:
    constraints = {
        "t_max": [Interval(Real, 1, None, closed="neither")],
        "size": [Interval(Integral, 2, None, closed="left")],
    }
    validate_parameter_constraints(constraints, {"t_max": t_max, "size": size}, caller)


def check_inverse_temperatures(value: ArrayLike, name: str, owner: str) -> NDArray[np.float64]:
    """A grid of inverse temperatures, from T = 1 on and increasing in T.

    Parameters
    ----------
    value : array-like of shape (M,)
    name, owner : str
        The parameter and what it belongs to, for the message.

    Returns
    -------
    ndarray of shape (M,)
    """
    b = as_array(value)
    what = f"The {name!r} parameter of {owner}"
    if b.dtype.kind not in "fiu" or b.ndim != 1 or len(b) < 2:
        raise ValueError(
            f"{what} must be a one-dimensional array of at least 2 numbers. "
            f"Got shape {b.shape} and dtype {b.dtype} instead."
        )
    b = b.astype(np.float64)
    wrong = b[~(np.isfinite(b) & (b > 0))]
    if wrong.size:
        raise ValueError(f"{what} must be positive and finite. Got {wrong[0]} instead.")
    if b[0] != 1:
        raise ValueError(f"{what} must start at 1, which is T=1. Got {b[0]} first instead.")
    rising = np.flatnonzero(np.diff(b) >= 0)
    if rising.size:
        m = int(rising[0])
        raise ValueError(
            f"{what} must be strictly decreasing, so that T increases. "
            f"Got {b[m]} followed by {b[m + 1]} instead."
        )
    return b


@dataclass(frozen=True, eq=False)
class LogPartition:
    """log C(T) over a grid, and what it was made for.

    Parameters
    ----------
    inverse_temperatures : ndarray of shape (M,)
        1 = b_1 > ... > b_M.
    values : ndarray of shape (M,)
        log C at each of them.
    method : str, default="given"
        How they were found.
    standard_error : ndarray of shape (M,), optional
        Of the values, where they are a Monte Carlo estimate.
    effective_sample_size : ndarray of shape (M,), optional
        (sum w)^2 / sum w^2 of the terms w of that estimate.
    bounds : ndarray of shape (2, M), optional
        Jensen's two lower bounds, the looser one first.
    made_for : dict, optional
        Hyperparameters that the values hold for: numbers, strings and arrays by name.
    """

    inverse_temperatures: NDArray[np.float64]
    values: NDArray[np.float64]
    method: str = "given"
    standard_error: NDArray[np.float64] | None = None
    effective_sample_size: NDArray[np.float64] | None = None
    bounds: NDArray[np.float64] | None = None
    made_for: dict[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Whether another holds the same numbers, made for the same."""
        if not isinstance(other, LogPartition):
            return NotImplemented
        mine, theirs = vars(self) | self.made_for, vars(other) | other.made_for
        return mine.keys() == theirs.keys() and all(
            np.array_equal(value, theirs[name])  # type: ignore[arg-type]
            for name, value in mine.items()
            if name != "made_for"
        )

    def __hash__(self) -> int:
        return hash((self.method, len(self.values)))

    def check(
        self,
        inverse_temperatures: ArrayLike | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        owner: str = "LogPartition",
    ) -> None:
        """Refuse to be used for another grid or other hyperparameters.

        Parameters
        ----------
        inverse_temperatures : array-like of shape (M,), optional
            The grid that log C is wanted on.
        hyperparameters : mapping, optional
            What it is wanted for.  Names that either side lacks are not compared.
        owner : str
            Who wants it, for the message.

        Raises
        ------
        ValueError
            Naming what differs; also if the values are no finite number a temperature.
        """
        own = check_inverse_temperatures(
            self.inverse_temperatures, "inverse_temperatures", "LogPartition"
        )
        check_numbers(self.values, "values", "LogPartition", (own.shape,))
        if inverse_temperatures is not None:
            wanted = np.asarray(inverse_temperatures, dtype=np.float64)
            if wanted.shape != own.shape:
                raise ValueError(
                    f"log C was made for another grid than that of {owner}: "
                    f"'inverse_temperatures' has {len(own)} points, expected {wanted.size}."
                )
            differ = np.flatnonzero(~(np.abs(wanted - own) <= 1e-12 * own))  # nan differs
            if differ.size:
                m = int(differ[0])
                raise ValueError(
                    f"log C was made for another grid than that of {owner}: "
                    f"'inverse_temperatures'[{m}] is {own[m]}, expected {wanted[m]}."
                )
        for name, wanted in (hyperparameters or {}).items():
            given = self.made_for.get(name)
            if given is not None and wanted is not None and not _same(given, wanted):
                raise ValueError(
                    f"log C was made for other hyperparameters than those of {owner}: "
                    f"{name!r} is {_shown(given)}, expected {_shown(wanted)}."
                )

    def save(self, path: str | os.PathLike) -> None:
        """Write to a file, for :meth:`load`."""
        arrays = {
            name: np.asarray(value)
            for name, value in vars(self).items()
            if name != "made_for" and value is not None
        }
        for name, value in self.made_for.items():
            if value is not None:
                arrays[_MADE_FOR + name] = np.asarray(value)
        wrong = [name for name, array in arrays.items() if array.dtype.kind not in "fiubU"]
        if wrong:
            raise ValueError(
                f"LogPartition can be saved if it holds numbers and strings. Got {wrong[0]!r} "
                f"of dtype {arrays[wrong[0]].dtype} instead."
            )
        with open(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike) -> LogPartition:
        """Read what :meth:`save` wrote.

        Raises
        ------
        ValueError
            If the file holds something else.
        """
        fields: dict[str, Any] = {}
        made_for: dict[str, Any] = {}
        none = f"{os.fspath(path)!r} holds no LogPartition"
        with open(path, "rb") as stream:
            try:
                file = np.load(stream, allow_pickle=False)
            except (ValueError, EOFError, zipfile.BadZipFile) as error:
                raise ValueError(f"{none}: it is no archive of arrays.") from error
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError(f"{none}: it is a single array.")
            for name in file.files:
                value = file[name] if file[name].ndim else file[name].item()
                if name.startswith(_MADE_FOR):
                    made_for[name.removeprefix(_MADE_FOR)] = value
                else:
                    fields[name] = value
        possible = set(cls.__dataclass_fields__) - {"made_for"}
        if not {"inverse_temperatures", "values"} <= set(fields) <= possible:
            raise ValueError(f"{none}: its arrays are {sorted(fields)}.")
        return cls(**fields, made_for=made_for)


def _same(given: Any, wanted: Any) -> bool:
    given, wanted = np.asarray(given), np.asarray(wanted)
    if given.dtype.kind in "biuf" and wanted.dtype.kind in "biuf":
        try:
            return bool(np.all(np.isclose(given, wanted, rtol=1e-12, atol=0)))
        except ValueError:  # shapes that do not go together
            return False
    return bool(np.array_equal(given, wanted))


def _shown(value: Any) -> str:
    array = np.asarray(value)
    return f"an array of shape {array.shape}" if array.ndim else repr(array.item())


class OutOfReach(ValueError):  # noqa: N818 - what happened is no mistake of the user's
    """An exact log C would cost too much; method="auto" then takes Monte Carlo."""


def check_log_c_at_1(
    values: NDArray[np.float64], inverse: NDArray[np.float64], n_data: int
) -> None:
    """Raise OutOfReach where log C(1) = 0 is lost to rounding, which also tells of the rest.

    Parameters
    ----------
    values, inverse : ndarrays of shape (M,)
        log C, and where; nothing is raised if no `inverse` is 1.
    n_data : int
        The more there are, the more roundings add up.
    """
    at_1 = values[inverse == 1]
    if not np.all(np.abs(at_1) <= _LOST * max(1.0, n_data / 1e3)):
        raise OutOfReach(
            f"The exact log C has lost its digits: at T=1 it is {at_1[0]:.2g} instead of 0. "
            "Use priors that are less extreme, or another method."
        )


class Conjugate(Protocol):
    """What :func:`log_partition` needs of a conditionally conjugate model.

    Besides, a model may have ``prior_centre()``, parameters at which the prior is centred
    (for "map"); ``log_partition(inverse)``, log C in closed form (for "exact");
    ``posterior_log_partition(inverse, data)``, log C at the current q (for "posterior");
    and ``hyperparameters()``, a dict that results remember.

    Attributes
    ----------
    n_samples : int
        N.
    """

    n_samples: int

    def sample_prior(self, rng: np.random.Generator) -> Any:
        """Global parameters beta, drawn from their prior."""

    def local_log_partition(
        self, parameters: Any, inverse: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """a_l(b beta) - b a_l(beta) at each b: the log normaliser of one tempered datum."""


class Nested(Protocol):
    """What a model offers instead where C is no power of one datum's normaliser.

    As in latent Dirichlet allocation, whose documents have lengths and parameters of
    their own.
    """

    def draw_log_partition(self, inverse: NDArray[np.float64], draws: Draws) -> NDArray[np.float64]:
        """Logs of one estimate of C for each draw from the prior, of shape (n_samples, M)."""

    def jensen_log_partition(
        self, inverse: NDArray[np.float64], draws: Draws
    ) -> NDArray[np.float64]:
        """N E log S and N log E S, of shape (2, M)."""


def log_partition(
    model: Any,
    inverse_temperatures: ArrayLike,
    method: str = "auto",
    *,
    n_samples: int = 100,
    n_theta: int = 100,
    data: Any = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], Any] | None = None,
) -> LogPartition:
    r"""log C(T) of a model over a grid of inverse temperatures b = 1/T.

    With S(beta, b) = exp(a_l(b beta) - b a_l(beta)), what one datum's tempered likelihood
    sums to, log C = log E[S^N] over the prior of beta (Mandt et al. 2016, A.1).

    Parameters
    ----------
    model : object
        :class:`annealvi.models.lda_prior.LDAPrior`, the factorial or Gaussian mixture of
        :mod:`annealvi.models`, a fitted :class:`annealvi.TemperedLDA` (for "posterior", with
        its documents as `data`), or one of your own with the methods of :class:`Conjugate`.
    inverse_temperatures : array-like of shape (M,)
        Decreasing from 1; :func:`exponential_grid` and :func:`even_grid` make some.
    method : {"auto", "exact", "monte-carlo", "jensen", "map", "posterior"}, default="auto"
        "exact": the model's own closed form or enumeration.  "monte-carlo": the log of the
        mean of S^N over draws from the prior.  "jensen": as x^N is convex, N E log S <=
        N log E S <= log C, both lower bounds; the values are the tighter one.  "map":
        S^N at the centre of the prior, log C ~ N(a_l(b beta*) - b a_l(beta*)); crude, as
        the mean of S^N is made by beta that lie elsewhere.  "posterior": log C at the
        model's current q, less its value at T = 1.  "auto": exact where the model has
        it and it is within reach, else Monte Carlo.
    n_samples : int, default=100
        Draws of the global parameters, for "monte-carlo" and "jensen".
    n_theta : int, default=100
        Draws of local parameters for each of those, where a model has any; of
        :class:`~annealvi.models.lda_prior.LDAPrior`, so many for each document or group of
        documents, see Notes.
    data : object, optional
        Handed to the model for "posterior".
    random_state : int, RandomState instance or None, default=None
        Seeds the draws.
    n_jobs : int, default=None
        Threads that draw; results do not depend on it.
    callback : callable, optional
        ``callback(done, total)`` after each draw.

    Returns
    -------
    LogPartition

    Warns
    -----
    UserWarning
        If one draw dominates the mean over draws, as is the rule for large N: the
        estimate and its standard error are then unreliable.

    Notes
    -----
    Monte Carlo estimates of C by an LDAPrior are unbiased as long as each document has draws
    of its own, as about 5e5 numbers allow: D n_theta K <= 5e5 in the explicit form,
    D n_theta K V in the collapsed one, and no more than a few hundred documents of many
    temperatures.  Beyond that documents share draws in G groups, and log C is biased upwards
    by about D (D / G - 1) / (2 n_theta) times the relative variance over theta of a
    document's S^n, as long as that is small.  The standard error does not contain this bias.

    Examples
    --------
    >>> from annealvi.models.lda_prior import LDAPrior
    >>> prior = LDAPrior(2, 3, [3, 3], doc_topic_prior=1.0, topic_word_prior=1.0)
    >>> log_partition(prior, [1.0, 0.5, 0.25]).values[1:].round(3)
    array([4.602, 7.412])
    """
    constraints = {
        "method": [StrOptions({"auto", *_NEEDS})],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "n_theta": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
    }
    given = dict(method=method, n_samples=n_samples, n_theta=n_theta)
    given |= dict(random_state=random_state, n_jobs=n_jobs, callback=callback)
    validate_parameter_constraints(constraints, given, "log_partition")
    b = check_inverse_temperatures(inverse_temperatures, "inverse_temperatures", "log_partition")
    own = type(model).__name__
    if all(hasattr(model, name) for name in ("sample_prior", "local_log_partition", "n_samples")):
        source: Any = PlateOfData(model)
    else:
        source = model
    offered = [name for name, needed in _NEEDS.items() if hasattr(source, needed)]
    if not offered or (method != "auto" and method not in offered):
        raise ValueError(
            f"The 'method' parameter of log_partition must be one that {own} offers: "
            f"{', '.join(map(repr, offered)) or 'none, see annealvi.partition.Conjugate'}. "
            f"Got {method!r} instead."
        )
    if getattr(model, "n_samples", 1) < 1:
        raise ValueError(
            f"C(T) is of at least one datum. Got n_samples={model.n_samples} of {own} instead."
        )
    words = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    seed = np.random.SeedSequence([int(word) for word in words])
    draws = Draws(n_samples, n_theta, seed, n_threads(n_jobs), callback)
    details: dict[str, Any] = {}
    if method in ("auto", "exact") and "exact" in offered:
        try:
            values, method = source.log_partition(b), "exact"
        except OutOfReach:
            if method == "exact" or "monte-carlo" not in offered:
                raise
            method = "monte-carlo"
    elif method == "auto":
        method = "monte-carlo" if "monte-carlo" in offered else offered[0]
    if method == "monte-carlo":
        values, details = _monte_carlo(source.draw_log_partition(b, draws), b)
    elif method == "jensen":
        details["bounds"] = source.jensen_log_partition(b, draws)
        values = details["bounds"][1]
    elif method == "map":
        values = source.map_log_partition(b)
    elif method == "posterior":
        values = source.posterior_log_partition(b, data)
        values = np.asarray(values) - np.asarray(values)[..., :1]
    values = np.asarray(values, dtype=np.float64)
    if values.shape != b.shape or not np.all(np.isfinite(values)):
        raise ValueError(
            f"log C of {own}, method={method!r}, must be one finite number for each of {len(b)} "
            f"temperatures. Got {_shown(values) if values.shape != b.shape else values} instead."
        )
    made_for = dict(model.hyperparameters()) if hasattr(model, "hyperparameters") else {}
    return LogPartition(b, values, method, made_for=made_for, **details)


def _monte_carlo(
    logs: NDArray[np.float64], b: NDArray[np.float64]
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """log of the mean of exp(logs), its standard error by the delta method, and warnings."""
    n = len(logs)
    values = log_mean_exp(logs)
    # the largest is 1: the mean, of huge logarithms, is known to their rounding only
    weights = np.exp(logs - logs.max(axis=0))
    effective = weights.sum(axis=0) ** 2 / np.sum(weights**2, axis=0)
    error = weights.std(axis=0, ddof=1) / weights.mean(axis=0) / math.sqrt(n)
    worst = int(np.argmin(effective))
    if effective[worst] < _LEAST_EFFECTIVE:
        warnings.warn(
            f"One draw dominates the mean that estimates C(T): at T={1 / b[worst]:.4g} the "
            f"effective sample size is {effective[worst]:.3g} of {n}. Neither log C there nor its "
            "standard error can be trusted; more draws hardly help where there are many data.",
            UserWarning,
            stacklevel=3,
        )
    return values, {"standard_error": error, "effective_sample_size": effective}
