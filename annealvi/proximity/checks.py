r"""Checks of statistics and distances that a user has written.

A wrong derivative spoils an ascent without a word, so it is compared with finite differences: in
a random direction v and with random weights w,

.. math::
   \frac{d}{dh} \sum_j w_j f_j(\theta + h v) \Big|_{h = 0}
   = v \cdot \sum_j w_j \frac{\partial f_j}{\partial \theta}.

A derivative that is wrong anywhere fails this with probability 1, up to the accuracy of the
differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import approx_fprime

from annealvi.checks import as_numbers
from annealvi.proximity.statistics import Bernoulli, Derivative, Statistic

Array = NDArray[np.float64]
#: Random directions that are tried, and the spread of the logits at which they are.
DIRECTIONS, SPREAD = 3, 1.5
#: Largest difference, as a fraction of the two derivatives and of the function's own size.
TOLERANCE, ROUNDING = 1e-4, 1e-6
#: Arguments of a distance: 0, where every fit begins, and both sides of 1; none is a corner.
POINTS = (0.0, 0.13, -0.57, 0.93, -1.4, 2.6, -7.1)


def name_of(function: Any) -> str:
    """How messages call a function: by its name, or by its class if it has none.

    Parameters
    ----------
    function : callable
    """
    return repr(getattr(function, "__name__", type(function).__name__))


def numbers(value: Any, what: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return what a function gave as float64, if it is finite and of the shape.

    Parameters
    ----------
    value : object
    what : str
        The beginning of the message.
    shape : tuple of int, optional
        The shape that it must have.

    Raises
    ------
    ValueError
        If it is something else.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{what} must be an array of floats. Got {value!r:.200} instead.")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{what} must have shape {shape}. Got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        bad = array[~np.isfinite(array)].ravel()[0]
        raise ValueError(f"{what} must be finite. Got {bad}.")
    return array.astype(np.float64, copy=False)


def call_statistic(
    statistic: Statistic,
    q: Bernoulli,
    prior_logit: Array,
    shape: tuple[int, ...] | None = None,
) -> tuple[Array, Derivative]:
    """Return a statistic and its derivative, if the function keeps to what is agreed.

    Parameters
    ----------
    statistic : callable
    q : Bernoulli
    prior_logit : ndarray
    shape : tuple of int, optional
        The shape that f had before.

    Raises
    ------
    ValueError
        See :func:`check_statistic`.
    """
    name = name_of(statistic)
    found = statistic(q, prior_logit)
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError(
            f"The statistic {name} must return a tuple of f and its derivative. "
            f"Got {type(found).__name__}."
        )
    value = numbers(found[0], f"The statistic {name}", shape)
    derivative = found[1]
    if callable(derivative):
        return value, derivative
    what = f"The derivative of the statistic {name}"
    if value.shape != q.logit.shape:
        raise ValueError(
            f"{what} must be a function, because f has shape {value.shape} and q "
            f"{q.logit.shape}: it takes c, of the shape of f, to the sum of c_j df_j/dtheta."
        )
    return value, numbers(derivative, what, q.logit.shape)


def check_statistic(statistic: Statistic, q: Bernoulli, prior_logit: ArrayLike = 0.0) -> None:
    """Check that a statistic returns what an ascent needs, and that its derivative is right.

    :meth:`annealvi.proximity.ProximityAscent.ascend` calls this before its first step.

    Parameters
    ----------
    statistic : callable
        ``statistic(q, prior_logit)`` returns f and its derivative, see
        :mod:`annealvi.proximity.statistics`.
    q : Bernoulli
        The shape of its logits is that at which the derivative is tried.  Values are checked at
        these logits, the derivative at random ones.
    prior_logit : array-like, default=0.0
        logit pi, broadcast to q.

    Raises
    ------
    TypeError
        If the statistic is not callable, or q no Bernoulli.
    ValueError
        If `prior_logit` is not finite or does not broadcast to q, or if the statistic returns no
        pair, something of another shape, NaN or infinity, or a derivative that
        differs from finite differences.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.proximity import Bernoulli, check_statistic
    >>> def odds(q, prior_logit):
    ...     return np.exp(q.logit), np.exp(q.logit)
    >>> check_statistic(odds, Bernoulli(np.zeros((1, 2, 3))))
    """
    if not callable(statistic):
        raise TypeError(f"A statistic must be callable. Got {statistic!r}.")
    if not isinstance(q, Bernoulli):
        raise TypeError(f"'q' must be a Bernoulli. Got {type(q).__name__}.")
    prior = _as_prior(prior_logit, q.logit.shape)
    value, derivative = call_statistic(statistic, q, prior)
    rng = np.random.RandomState(0)  # the ascent's own generator stays as it is
    name, shape = name_of(statistic), value.shape
    what = f"The gradient of the statistic {name}"
    if callable(derivative):
        numbers(derivative(np.ones(shape)), what, q.logit.shape)
    for _ in range(DIRECTIONS):
        theta, v, w = (
            np.asarray(scale * rng.standard_normal(size))
            for scale, size in ((SPREAD, q.logit.shape), (1.0, q.logit.shape), (1.0, shape))
        )

        def along(h: Array, theta: Array = theta, v: Array = v, w: Array = w) -> float:
            moved = Bernoulli(theta + h[0] * v)
            return float(np.sum(w * call_statistic(statistic, moved, prior, shape)[0]))

        value, derivative = call_statistic(statistic, Bernoulli(theta), prior, shape)
        product = derivative(w) if callable(derivative) else w * derivative
        given = float(np.sum(v * numbers(product, what, q.logit.shape)))
        difference = float(np.squeeze(approx_fprime(np.zeros(1), along)))
        _compare(given, difference, float(np.sum(np.abs(w * value))), what)


def check_distance(value: Callable[[Array], Array], derivative: Callable[[Array], Array]) -> None:
    """Check that a distance works elementwise, and that its derivative is right.

    Every :class:`annealvi.proximity.Distance` is checked when it is made.

    Parameters
    ----------
    value, derivative : callable
        d and d', functions of an array that return an array of the same shape.

    Raises
    ------
    ValueError
        If they return another shape, NaN or infinity, or if the derivative differs from finite
        differences of the value.
    """
    u = np.array(POINTS)
    names = f"The distance {name_of(value)}", f"The derivative {name_of(derivative)} of a distance"
    for shape in (u.shape, (u.size, 1)):
        for name, function in zip(names, (value, derivative), strict=True):
            numbers(function(u.reshape(shape).copy()), name, shape)
    smooth = u[1:]  # d need have no derivative at 0
    for point, given in zip(smooth, numbers(derivative(smooth.copy()), names[1]), strict=True):
        found = approx_fprime(np.array([point]), lambda at: float(np.squeeze(value(at.copy()))))
        size = float(np.abs(np.squeeze(value(np.array([point])))))
        _compare(float(given), float(np.squeeze(found)), size, f"{names[1]} at u = {point}")


def _as_prior(prior_logit: ArrayLike, shape: tuple[int, ...]) -> Array:
    prior = as_numbers(prior_logit, "prior_logit")
    try:
        fits = np.broadcast_shapes(prior.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"'prior_logit' must broadcast to the shape of q, {shape}. Got shape {prior.shape}."
        )
    return numbers(prior, "'prior_logit'")


def _compare(given: float, difference: float, size: float, what: str) -> None:
    room = TOLERANCE * (abs(given) + abs(difference)) + ROUNDING * size
    if not abs(given - difference) <= room:
        raise ValueError(
            f"{what} differs from finite differences: it gives {given:.6g}, they give "
            f"{difference:.6g}."
        )
