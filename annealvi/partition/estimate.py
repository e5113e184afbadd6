r"""log C(T), the normaliser of a tempered likelihood.

If the likelihood of a conditionally conjugate model is raised to the power b = 1/T, it no
longer sums to one but to

.. math::
   C(T) = \sum_x \sum_z \int p(\beta) \, h(x, z) \exp b (\beta^\top t(x, z) - a(\beta)) \, d\beta.

A temperature that is learned from the data weighs the likelihood against C(T) (Mandt et al.
2016).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints

from annealvi.checks import Interval, n_threads
from annealvi.partition.draws import Draws, PlateOfData, log_mean_exp
from annealvi.partition.result import (
    LogPartition,
    OutOfReach,
    check_inverse_temperatures,
    shown,
)

#: The method of a model that each estimate needs.
_NEEDS = {
    "exact": "log_partition",
    "monte-carlo": "draw_log_partition",
    "jensen": "jensen_log_partition",
    "map": "map_log_partition",
    "posterior": "posterior_log_partition",
}
#: With an effective sample size below this, a single draw dominates the estimate.
_LEAST_EFFECTIVE = 2.0


class Conjugate(Protocol):
    """The methods of a conditionally conjugate model that :func:`log_partition` needs.

    In addition a model may have the methods

    - ``prior_centre()``, parameters at which the prior is centred, for "map";
    - ``log_partition(inverse)``, log C in closed form, for "exact";
    - ``posterior_log_partition(inverse, data)``, log C at the current q, for "posterior";
    - ``hyperparameters()``, a dict that is kept with the result.

    Attributes
    ----------
    n_samples : int
        Number of data N.
    """

    n_samples: int

    def sample_prior(self, rng: np.random.Generator) -> Any:
        """Global parameters beta, drawn from their prior."""

    def local_log_partition(
        self, parameters: Any, inverse: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """a_l(b beta) - b a_l(beta) at each b: the log normaliser of one tempered datum."""


class Nested(Protocol):
    """The methods of a model whose C is not a power of one datum's normaliser.

    An example is latent Dirichlet allocation, whose documents have lengths and parameters of
    their own.
    """

    def draw_log_partition(self, inverse: NDArray[np.float64], draws: Draws) -> NDArray[np.float64]:
        """Logarithm of an estimate of C for each draw from the prior, of shape (n_samples, M)."""

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
    r"""Estimate log C(T) of a model over a grid of inverse temperatures b = 1/T.

    The tempered likelihood of one datum sums to S(beta, b) = exp(a_l(b beta) - b a_l(beta)).
    For N data log C = log E[S^N], where the expectation is over the prior of beta (Mandt et
    al. 2016, A.1).

    Parameters
    ----------
    model : object
        :class:`annealvi.models.lda_prior.LDAPrior`, the factorial or Gaussian mixture of
        :mod:`annealvi.models`, a fitted :class:`annealvi.TemperedLDA` (for "posterior", with
        its documents as `data`), or one of your own with the methods of :class:`Conjugate`.
    inverse_temperatures : array-like of shape (M,)
        Decreasing from 1, for example from :func:`exponential_grid` or :func:`even_grid`.
    method : {"auto", "exact", "monte-carlo", "jensen", "map", "posterior"}, default="auto"
        How log C is estimated.

        - "exact": the model's own closed form or enumeration.
        - "monte-carlo": the logarithm of the mean of S^N over draws from the prior.
        - "jensen": as x^N is convex, N E log S <= N log E S <= log C.  Both are lower
          bounds; the values are the tighter one.
        - "map": S^N at the centre of the prior, log C ~ N(a_l(b beta*) - b a_l(beta*)).
          This is crude, because other values of beta dominate the mean of S^N.
        - "posterior": log C at the model's current q, less its value at T = 1.
        - "auto": exact if the model offers it and it is not too costly, else Monte Carlo.
    n_samples : int, default=100
        Number of draws of the global parameters, for "monte-carlo" and "jensen".
    n_theta : int, default=100
        Number of draws of local parameters for each draw of the global ones, if the model
        has local parameters.  For :class:`~annealvi.models.lda_prior.LDAPrior` it is the
        number for each document or group of documents, see Notes.
    data : object, optional
        Passed to the model for "posterior".
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    n_jobs : int, default=None
        Number of threads that draw.  Results do not depend on it.
    callback : callable, optional
        ``callback(done, total)`` is called after each draw.

    Returns
    -------
    LogPartition

    Warns
    -----
    UserWarning
        If one draw dominates the mean over draws, as it usually does for large N.  The
        estimate and its standard error are then unreliable.

    Notes
    -----
    Monte Carlo estimates of C by an LDAPrior are unbiased if each document has its own draws.
    Documents have them if these fit into about 5e5 numbers: D n_theta K <= 5e5 in the explicit
    form, D n_theta K V <= 5e5 in the collapsed one, and no more than a few hundred documents
    if there are many temperatures.  Beyond that documents share draws in G groups.  log C is
    then biased upwards by about D (D / G - 1) / (2 n_theta) times the relative variance over
    theta of a document's S^n, as long as that is small.  The standard error does not contain
    this bias.

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
    draws = Draws(int(n_samples), int(n_theta), seed, n_threads(n_jobs), callback)
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
            f"temperatures. Got {shown(values) if values.shape != b.shape else values} instead."
        )
    made_for = dict(model.hyperparameters()) if hasattr(model, "hyperparameters") else {}
    return LogPartition(b, values, method, made_for=made_for, **details)


def _monte_carlo(
    logs: NDArray[np.float64], b: NDArray[np.float64]
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """log of the mean of exp(logs), its standard error by the delta method, and warnings."""
    n = len(logs)
    values = log_mean_exp(logs)
    # the largest weight is 1: the mean of huge logarithms is only known up to their rounding
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
