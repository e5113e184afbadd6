r"""Estimates of log C(T), where C(T) is the normaliser of a tempered likelihood.

If the likelihood of a conditionally conjugate model is raised to the power b = 1/T, it no
longer sums to 1.  Its sum is

.. math::
   C(T) = \sum_x \sum_z \int p(\beta) \, h(x, z) \exp b (\beta^\top t(x, z) - a(\beta)) \, d\beta.

A temperature is learned from the tempered likelihood divided by C(T) (Mandt et al. 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import StrOptions

from annealvi._kernels import partition as kernels
from annealvi._kernels import special
from annealvi._kernels.layout import separate_rows
from annealvi.checks import COUNT, Interval, as_array, n_threads, validated
from annealvi.exceptions import BadParameter, warn_user
from annealvi.partition.result import LogPartition, OutOfReach, check_temperatures, shown

#: How many draws a thread makes in one call of a kernel, which cannot be interrupted.
DRAWS_AT_ONCE = 8


@dataclass(frozen=True)
class Draws:
    """Options of draws from a prior: their number, their random seed and the threads.

    Attributes
    ----------
    n_samples : int
        Number of draws of the global parameters.
    n_theta : int
        Number of draws of local parameters for each draw of the global ones.
    seed : numpy.random.SeedSequence
    n_threads : int
    callback : callable, optional
        ``callback(done, total)`` is called after each draw, in the thread that started the draws.
    """

    n_samples: int
    n_theta: int
    seed: np.random.SeedSequence
    n_threads: int = 1
    callback: Callable[[int, int], Any] | None = None

    def map(self, function: Callable[[np.random.Generator], NDArray]) -> NDArray:
        """Return the results of ``function(rng)`` for all draws, as one array.

        Each draw has its own generator and is made in one thread, so results are
        bit-identical for any number of threads.
        """
        seeds = self.seed.spawn(self.n_samples)

        def result_of_draw(seed: np.random.SeedSequence) -> NDArray:
            """Make one draw with its own generator."""
            return function(np.random.Generator(np.random.SFC64(seed)))

        results: list[NDArray] = []
        with ThreadPoolExecutor(self.n_threads) as pool:
            for draws in self.blocks():  # few at a time, so that the loop ends soon after an error
                results += pool.map(result_of_draw, seeds[draws])
        return np.stack(results)

    def blocks(self) -> Iterator[slice]:
        """Slices of the draws; a kernel makes the draws of a slice in one call."""
        n_at_once = self.n_threads * (DRAWS_AT_ONCE if self.callback is None else 1)
        for draws in gen_batches(self.n_samples, n_at_once):
            yield draws
            # the caller has made these draws when it asks for the next slice
            for draw_index in range(draws.start, draws.stop):
                if self.callback is not None:
                    self.callback(draw_index + 1, self.n_samples)


class PlateOfData:
    """The methods of a model whose N data share only the global parameters."""

    def __init__(self, model: Any) -> None:
        """`model` has `sample_prior`, `local_log_partition` and `n_samples`."""
        self.model = model

    def __getattr__(self, name: str) -> Any:
        """Take the methods that this class lacks from the model."""
        return getattr(self.model, name)

    def _local(self, parameters: Any, inverse: NDArray) -> NDArray:
        """log C of one datum at given global parameters, checked."""
        values = as_array(self.model.local_log_partition(parameters, inverse))
        if values.shape != inverse.shape or values.dtype.kind not in "fiu":
            raise ValueError(
                f"'local_log_partition' of {type(self.model).__name__} must return one number for "
                f"each of {len(inverse)} temperatures. Got shape {values.shape} and dtype "
                f"{values.dtype} instead."
            )
        return values.astype(float, copy=False)

    def _draw(self, inverse: NDArray, draws: Draws) -> NDArray:
        """log C of one datum at each b, for each draw of the global parameters."""
        return draws.map(lambda rng: self._local(self.model.sample_prior(rng), inverse))

    def draw_log_partition(self, inverse: NDArray, draws: Draws) -> NDArray:
        """log C of all data at each b, for each draw."""
        return self.model.n_samples * self._draw(inverse, draws)

    def jensen_log_partition(self, inverse: NDArray, draws: Draws) -> NDArray:
        """Jensen's two lower bounds on log C: N E log S and N log E S."""
        log_sums = self._draw(inverse, draws)
        return self.model.n_samples * np.stack([log_sums.mean(axis=0), log_mean_exp(log_sums)])

    @property
    def map_log_partition(self) -> Callable[[NDArray], NDArray]:
        """log C at the centre of the prior.  Missing if the model has no `prior_centre`."""
        centre = self.model.prior_centre  # an AttributeError here means that it is missing
        return lambda inverse: self.model.n_samples * self._local(centre(), inverse)


def log_mean_exp(logs: NDArray) -> NDArray:
    """Compute the logarithm of the mean of exp(logs) over the first axis."""
    largest = logs.max(axis=0)
    return largest + special.log(np.mean(special.exp(logs - largest), axis=0))


def lagrange_weights(n_points: int, at: NDArray) -> NDArray:
    """The weights that interpolate from the points 0, 1, ..., n_points - 1 to places `at`.

    The weight of point i is prod_(j != i) (at - j) / (i - j).
    """
    points = np.arange(n_points, dtype=np.int64)
    # factors with j = i are set to 1, so that they are left out
    diagonal = np.eye(n_points, dtype=bool)
    differences = np.where(diagonal, 1.0, points[:, None] - points)
    distances = np.where(diagonal, 1.0, at[:, None, None] - points)
    return np.prod(distances / differences, axis=-1)


#: :meth:`PowerGrid.column_sums` sums this many rows before it adds the sum to the total.
SUMMED_ROWS: int = kernels.SUMMED_ROWS
#: A value is interpolated from n = _ORDER points.  Their distance h is at most b / _DENSITY and at
#: most 1 / _MOST.  The error at b of interpolating p^b from n points is below
#: (h log(1/p) / 2)^n p^b.  If h = b/17 is too large for a small error, p^b is small, and so is its
#: part in the sum.  All p may be small, though, so _MOST limits h for this case.  A coarser grid,
#: (8, 8, 32), has half the points and made a fit that learns its temperature 2 to 3% faster.  But
#: its error in log C(T) of 70,000 words was 0.08, which changes the posterior of the temperature.
_ORDER = 24
_DENSITY = 17
_MOST = 51
#: The exponentials of a panel take as long as this many points.
_PANEL_COST = 10
#: Most points in a panel.  Each point is computed from the one before by a multiplication, which
#: adds a rounding error.
_MOST_STEPS = 256


class PowerGrid:
    """Computes sums of powers p^b at inverse temperatures b_1, ..., b_M.

    If the grid is evenly spaced, each power is the previous power times a constant.  For any other
    grid, sums are computed on short, evenly spaced grids (panels) and interpolated between their
    points, about as accurately as double precision allows.  For b up to about 1 and p in [0, 1] the
    relative error of p^b is below 1e-12 if p >= 1e-8, and below 1e-8 if p = 1e-20.  The errors of
    sums are as small, except for sums in which powers of p < 1e-20 dominate.

    Parameters
    ----------
    inverses : array-like of shape (M,)
        Positive inverse temperatures.

    Attributes
    ----------
    inverses : ndarray of shape (M,)
    points : ndarray of shape (n_points,)
        Inverse temperatures at which sums are computed before they are interpolated.
    n_points : int
    """

    def __init__(self, inverses: ArrayLike) -> None:
        """Divide `inverses` into panels (short, evenly spaced grids), or cover it by panels."""
        b = np.array(inverses, dtype=float)
        self.inverses = b
        step = (b[-1] - b[0]) / max(1, len(b) - 1)
        even_grid = b[0] + step * np.arange(len(b), dtype=np.int64)
        if step != 0 and np.allclose(b, even_grid, rtol=1e-13, atol=0):
            self._divide_even_grid(float(b.min()), abs(step), len(b), descending=step < 0)
        else:
            self._cover_with_panels(b)
        # all panels have the same number of points: start, start + step, start + 2 step, ...
        numbers = np.arange(self._panel_size, dtype=np.int64)
        points = self._panel_starts[:, None] + np.outer(self._panel_steps, numbers)
        self.points = points.ravel()
        self.n_points = len(self.points)

    def _divide_even_grid(self, low: float, step: float, size: int, descending: bool) -> None:
        """Divide an evenly spaced grid into panels so short that rounding errors are small."""
        n_panels = -(-size // _MOST_STEPS)  # rounded up
        self._panel_size = -(-size // n_panels)
        self._panel_starts = low + step * self._panel_size * np.arange(n_panels, dtype=np.int64)
        self._panel_steps = np.full(n_panels, step)
        # each b is one of the points; panels ascend, and may have more points than the grid
        self._columns = np.arange(size, dtype=np.int64)[None, :: -1 if descending else 1]
        self._weights = np.ones((1, size))

    def _cover_with_panels(self, b: NDArray) -> None:
        """Cover the grid with panels (short, evenly spaced grids), and prepare the interpolation.

        If h is the distance between the points of a panel, its first point is k h for an integer k.
        Only p^h needs an exponential: the kernel computes the first power, p^(k h), as (p^h)^k.
        """
        low = float(b.min())
        high = float(b.max())
        margin = _ORDER // 2

        def panels(size: int) -> tuple[int, list[float], list[int]]:
            """The cost of panels of `size` steps, their starts, and the starts as step numbers."""
            panel_floors: list[float] = []
            step_numbers: list[int] = []
            end = low  # the end of the panels so far
            while not panel_floors or end < high:
                panel_floors.append(end)
                # the distance h of the panel's points is floor / number
                step_numbers.append(max(_DENSITY, math.ceil(_MOST * end)))
                end += size * end / step_numbers[-1]
            return len(panel_floors) * (size + _ORDER + _PANEL_COST), panel_floors, step_numbers

        size = min(range(1, _MOST_STEPS - _ORDER), key=lambda size: panels(size)[0])
        _, panel_floors, step_numbers_of_floors = panels(size)
        n_panels = len(panel_floors)
        self._panel_size = size + _ORDER
        # as floats, because the numbers may be too large for int64
        step_numbers = np.array(step_numbers_of_floors, dtype=float)
        self._panel_steps = np.array(panel_floors) / step_numbers
        # a panel begins below its floor, so that points on both sides can be used
        self._panel_starts = (step_numbers - margin + 1) * self._panel_steps
        panel = np.clip(np.searchsorted(panel_floors, b, side="right") - 1, 0, n_panels - 1)
        place_in_panel = (b - self._panel_starts[panel]) / self._panel_steps[panel]
        first_point = np.clip(np.floor(place_in_panel).astype(int) - margin + 1, 0, size)
        # each b is interpolated from _ORDER points, whose weights are a column of these arrays
        self._columns = np.add.outer(
            np.arange(_ORDER, dtype=np.int64), panel * self._panel_size + first_point
        )
        weights = lagrange_weights(_ORDER, place_in_panel - first_point)
        self._weights = np.ascontiguousarray(weights.T)

    def for_draws(self) -> kernels.Grid:
        """The panels and the weights of the interpolation, in the form that kernels use."""
        n_weights, n_inverses = self._weights.shape
        return kernels.Grid(
            starts=self._panel_starts,
            steps=self._panel_steps,
            points=self.points,
            # where the points of each b begin, the points and their weights
            first=np.arange(n_inverses + 1, dtype=np.int32) * np.int32(n_weights),
            point=self._columns.T.astype(np.int32).ravel(),
            entry=self._weights.T.ravel(),
            inverses=self.inverses,
        )

    def row_sums(
        self, logs: NDArray, weights: NDArray | None = None, *, n_threads: int = 1
    ) -> NDArray:
        """Compute sum_i w_ji exp(b_j l_ri) for rows r and points b_j: an (R, n_points) array.

        Parameters
        ----------
        logs : ndarray of shape (R, n_padded)
            Rows l_r, padded with -infinity (see :func:`annealvi._kernels.layout.padded_rows`).
        weights : ndarray of shape (n_points, n_padded), optional
        n_threads : int, default=1
        """
        sums = np.empty((len(logs), self.n_points))
        weights = np.empty((0, 0)) if weights is None else weights  # empty means all weights are 1
        scratch = separate_rows(n_threads, self.n_points * kernels.LANES)
        kernels.row_power_sums(
            logs=logs,
            starts=self._panel_starts,
            steps=self._panel_steps,
            weights=weights,
            n_threads=n_threads,
            scratch=scratch,
            out=sums,
        )
        return sums

    def column_sums(
        self,
        logs: NDArray,
        out: NDArray | None = None,
        *,
        n_threads: int = 1,
    ) -> NDArray:
        """Compute sum_v exp(b_j l_vk) for points b_j and columns k: an (n_points, n_padded) array.

        Parameters
        ----------
        logs : ndarray of shape (V, n_padded)
        out : ndarray of shape (n_points, n_padded), optional
            The array to which the sums are added.  Calls with successive blocks of rows give the
            same bits as one call if all blocks but the last have a multiple of SUMMED_ROWS rows.
        n_threads : int, default=1
        """
        if out is None:
            out = np.zeros((self.n_points, logs.shape[1]))
        kernels.column_power_sums(
            logs=logs,
            starts=self._panel_starts,
            steps=self._panel_steps,
            n_threads=n_threads,
            scratch=separate_rows(n_threads, self.n_points * kernels.LANES),
            # the sums of blocks of rows, which are then added in a fixed order
            partial=np.empty((kernels.n_vocabulary_blocks(len(logs)), *out.shape)),
            out=out,
        )
        return out

    def at_inverses(self, at_points: NDArray) -> NDArray:
        """Interpolate from the points to b_1, ..., b_M, along the last axis.

        Parameters
        ----------
        at_points : ndarray of shape (..., n_points)
            Sums of powers, or the logarithms of such sums.
        """
        if len(self._weights) == 1:  # each b is one of the points
            return at_points.take(self._columns[0], axis=-1)
        # a product with a sparse matrix of SciPy would round differently on some processors
        if at_points.ndim == 1:
            return np.sum(self._weights * at_points[self._columns], axis=0)
        values = np.zeros((*at_points.shape[:-1], len(self.inverses)))
        # one after another, to make no array of all terms
        for weight, column in zip(self._weights, self._columns, strict=True):
            values += weight * at_points[..., column]
        return values

    def log_at_inverses(self, sums: NDArray) -> NDArray:
        """Interpolate logarithms at b_1, ..., b_M from sums at the points, along the last axis."""
        # interpolation may make tiny sums negative
        return special.log(np.maximum(self.at_inverses(sums), np.finfo(np.float64).tiny))


#: The method of a model that each estimate needs.
_NEEDS = {
    "exact": "log_partition",
    "monte-carlo": "draw_log_partition",
    "jensen": "jensen_log_partition",
    "map": "map_log_partition",
    "posterior": "posterior_log_partition",
}
#: If the effective sample size is below this, a single draw dominates the estimate.
_LEAST_EFFECTIVE = 2.0


@validated(
    method=[StrOptions({"auto", *_NEEDS})],
    n_samples=[Interval(Integral, 2, None, closed="left")],
    n_theta=COUNT,
    random_state=["random_state"],
    n_jobs=[Integral, None],
    callback=[callable, None],
)
def log_partition(
    model: Any,
    temperatures: ArrayLike,
    method: str = "auto",
    *,
    n_samples: int = 100,
    n_theta: int = 100,
    data: Any = None,
    random_state: int | RandomState | None = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], Any] | None = None,
) -> LogPartition:
    r"""Estimate log C(T) of a model over a grid of temperatures T.

    Let b = 1/T.  The sum of the tempered likelihood over all values of one datum is S(beta, b) =
    exp(a_l(b beta) - b a_l(beta)), where a_l is the log normaliser of the likelihood at T = 1.  For
    N data, log C = log E[S^N], where E is the mean over the prior of beta (Mandt et al. 2016, A.1).

    Parameters
    ----------
    model : object
        :class:`annealvi.models.lda_prior.LDAPrior`, the factorial or Gaussian mixture of
        :mod:`annealvi.models`, a fitted :class:`annealvi.TemperedLDA` (for "posterior", with its
        documents as `data`), or a model of your own (see Notes).
    temperatures : array-like of shape (M,)
        Temperatures that increase from 1.  :func:`exponential_grid` and :func:`even_grid`
        make such grids.
    method : {"auto", "exact", "monte-carlo", "jensen", "map", "posterior"}, default="auto"
        How log C is estimated.

        - "exact": by the model's own formula or enumeration.
        - "monte-carlo": as the logarithm of the mean of S^N over draws from the prior.
        - "jensen": by the lower bound N log E S.  The looser bound N E log S is returned too.
        - "map": from S^N at the centre beta* of the prior, log C ~ N(a_l(b beta*) - b a_l(beta*)).
          "map" is inaccurate, because other values of beta dominate the mean of S^N.
        - "posterior": as log C at the model's current q, minus its value at T = 1.
        - "auto": by "exact" if the model has this method and it is fast enough, otherwise by
          "monte-carlo".
    n_samples : int, default=100
        Number of draws of the global parameters, for "monte-carlo" and "jensen".
    n_theta : int, default=100
        Number of draws of local parameters for each draw of the global ones, if the model has local
        parameters.  For :class:`~annealvi.models.lda_prior.LDAPrior` this is the number of draws
        for each document, or for each group of documents (see Notes).
    data : object, optional
        The data, which "posterior" passes to the model.
    random_state : int, RandomState instance or None, default=None
        The random seed of the draws.
    n_jobs : int, default=None
        Number of threads.  Results do not depend on it.
    callback : callable, optional
        ``callback(done, total)`` is called after each draw.

    Returns
    -------
    LogPartition

    Warns
    -----
    UserWarning
        If one draw dominates the mean over draws, which is usual for large N.  The
        estimate and its standard error are then unreliable.

    Notes
    -----
    A model of your own that is conditionally conjugate has the attribute ``n_samples``, the number
    N of data, and two methods.  ``sample_prior(rng)`` draws global parameters beta from their
    prior.  ``local_log_partition(beta, inverse)`` returns log S(beta, b) for each b of the array
    `inverse`.
    These methods are optional:

    - ``prior_centre()`` returns the mode or mean of the prior, for ``method="map"``.
    - ``log_partition(inverse)`` returns log C in closed form, for ``method="exact"``.
    - ``posterior_log_partition(temperatures, data)`` returns log C with q in place of the prior,
      for ``method="posterior"``.
    - ``hyperparameters()`` returns a dict of hyperparameters that is kept with the result.

    Monte Carlo estimates of C for an LDAPrior are unbiased if each of its D documents has its own
    draws.  This requires D n_theta K <= 5e5 if the LDAPrior has ``form="explicit"``, or D n_theta K
    V <= 5e5 if it has ``form="collapsed"``.  With a hundred temperatures or more, D must also be at
    most a few hundred.  Beyond these limits, documents form G groups that share draws of theta, and
    log C is too high.  If all documents have n words, this bias (if small) is about D (D / G - 1) /
    (2 n_theta) times var(S^n) / mean(S^n)^2 over theta.  The standard error does not include it.

    Examples
    --------
    >>> from annealvi.models.lda_prior import LDAPrior
    >>> prior = LDAPrior(2, 3, [3, 3], doc_topic_prior=1.0, topic_word_prior=1.0)
    >>> log_partition(prior, [1.0, 2.0, 4.0]).values[1:].round(3)
    array([4.602, 7.412])
    """
    temperatures = check_temperatures(temperatures)
    b = 1.0 / temperatures
    model_name = type(model).__name__
    plate_methods = ("sample_prior", "local_log_partition", "n_samples")
    source: Any = (
        PlateOfData(model) if all(hasattr(model, name) for name in plate_methods) else model
    )
    offered = [name for name, needed in _NEEDS.items() if hasattr(source, needed)]
    if not offered or (method != "auto" and method not in offered):
        raise BadParameter(
            "method",
            must_be=f"one that {model_name} offers: "
            + (", ".join(map(repr, offered)) or "none, see the notes of log_partition"),
            got=method,
        )
    if getattr(model, "n_samples", 1) < 1:
        raise ValueError(
            f"{model_name} must have at least one sample for its normaliser to be computed. "
            f"Got n_samples={model.n_samples} instead."
        )
    seed_words = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    draws = Draws(
        n_samples=int(n_samples),
        n_theta=int(n_theta),
        seed=np.random.SeedSequence(seed_words),
        n_threads=n_threads(n_jobs),
        callback=callback,
    )
    details: dict[str, Any] = {}
    if method in ("auto", "exact") and "exact" in offered:
        try:
            values = source.log_partition(b)
            method = "exact"
        except OutOfReach:
            if method == "exact" or "monte-carlo" not in offered:
                raise
            method = "monte-carlo"
    elif method == "auto":
        method = "monte-carlo" if "monte-carlo" in offered else offered[0]
    if method == "monte-carlo":
        values, details = _monte_carlo(source.draw_log_partition(b, draws), temperatures)
    elif method == "jensen":
        details["bounds"] = source.jensen_log_partition(b, draws)
        values = details["bounds"][1]
    elif method == "map":
        values = source.map_log_partition(b)
    elif method == "posterior":
        values = np.asarray(source.posterior_log_partition(temperatures, data))
        values = values - values[..., :1]
    values = np.asarray(values, dtype=float)
    if values.shape != b.shape or not np.all(np.isfinite(values)):
        raise ValueError(
            f"With method={method!r}, {model_name} must compute one finite number for each of "
            f"{len(b)} temperatures. "
            f"Got {shown(values) if values.shape != b.shape else values} instead."
        )
    made_for = dict(model.hyperparameters()) if hasattr(model, "hyperparameters") else {}
    return LogPartition(temperatures, values, method, made_for=made_for, **details)


def _monte_carlo(logs: NDArray, temperatures: NDArray) -> tuple[NDArray, dict[str, NDArray]]:
    """The logarithm of the mean of exp(logs) and its standard error; warn if it is unreliable."""
    n_draws = len(logs)
    values = log_mean_exp(logs)
    # weights are divided by the largest one, because exp of the logarithms may overflow
    weights = special.exp(logs - logs.max(axis=0))
    effective_sizes = weights.sum(axis=0) ** 2 / np.sum(weights**2, axis=0)
    standard_error = weights.std(axis=0, ddof=1) / weights.mean(axis=0) / math.sqrt(n_draws)
    worst_index = int(np.argmin(effective_sizes))
    if effective_sizes[worst_index] < _LEAST_EFFECTIVE:
        warn_user(
            "One draw dominates the estimate of the normaliser. "
            f"At T={temperatures[worst_index]:.4g} the effective sample size is "
            f"{effective_sizes[worst_index]:.3g}, with {n_draws} draws, so the estimate and its "
            "standard error are unreliable. Use another 'method'."
        )
    return values, {"standard_error": standard_error, "effective_sample_size": effective_sizes}
