r"""The penalty that keeps a statistic near its past values, and checks of a user's functions.

The penalty of proximity variational inference is
:math:`k\, d(f(\lambda) - f(\tilde\lambda))`.  Here d is a distance, usually the inverse Huber
distance, :math:`\tilde\lambda` is a moving average of the parameters over the steps, and k is a
magnitude that falls during the fit (Altosaar, Ranganath, Blei 2018, *Proximity Variational
Inference*, sections 2-3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.optimize import approx_fprime
from sklearn.utils._param_validation import StrOptions

from annealvi.checks import Interval, as_array, as_numbers, check_numbers, checked
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Array, Integer, Number, Optional, Schema
from annealvi.proximity.statistics import STATISTICS, Bernoulli, Derivative, Floats, Statistic
from annealvi.schedules import Exponential, Linear, Schedule

# An ascent with a wrong derivative would end at a wrong result without an error.  So derivatives
# are compared with finite differences, in a random direction v and with random weights w:
# d/dh sum_j w_j f_j(theta + h v) at h = 0 must be v . sum_j w_j df_j/dtheta.  A derivative that is
# wrong anywhere fails this test with probability 1, up to the accuracy of the differences.

#: Number of random directions, and the standard deviation of the logits.
DIRECTIONS = 3
SPREAD = 1.5
#: Largest difference, relative to the two derivatives and to the values of the function.
TOLERANCE = 1e-4
ROUNDING = 1e-6
#: Arguments at which a distance is checked: 0, where every fit begins, and both sides of 1.
POINTS = (0.0, 0.13, -0.57, 0.93, -1.4, 2.6, -7.1)


def name_of(function: Any) -> str:
    """The name of a function for messages, or the name of its class if it has no name."""
    return getattr(function, "__name__", type(function).__name__)


def numbers(value: Any, what: str, shape: tuple[int, ...] | None = None) -> Floats:
    """Check the shape of a function's result and that it is finite; return it as float64."""
    array = as_array(value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{what} must be an array of floats. Got {value!r:.200} instead.")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{what} must have shape {shape}. Got shape {array.shape}.")
    wrong_values = array[~np.isfinite(array)]
    if wrong_values.size:
        raise ValueError(f"{what} must be finite. Got {wrong_values[0]}.")
    return array.astype(float, copy=False)


def call_statistic(
    statistic: Statistic, q: Bernoulli, prior_logit: Floats, shape: tuple[int, ...] | None = None
) -> tuple[Floats, Derivative]:
    """Return a statistic and its derivative, after checks of what the function returned."""
    name = name_of(statistic)
    pair = statistic(q, prior_logit)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ValueError(
            f"The statistic {name!r} must return a tuple of f and its derivative. "
            f"Got {type(pair).__name__}."
        )
    value, derivative = pair
    value = numbers(value, f"The statistic {name!r}", shape)
    if callable(derivative):
        return value, derivative
    what = f"The derivative of the statistic {name!r}"
    if value.shape != q.logit.shape:
        raise ValueError(
            f"{what} must be a function, because f and q have different shapes, {value.shape} and "
            f"{q.logit.shape}. For an array c of the shape of f, the function must return the sum "
            "of c_j df_j/dtheta."
        )
    return value, numbers(derivative, what, q.logit.shape)


@checked
def check_statistic(statistic: Statistic, q: Bernoulli, prior_logit: ArrayLike = 0.0) -> None:
    """Check that a statistic returns valid numbers, and that its derivative is correct.

    :meth:`annealvi.proximity.ProximityAscent.ascend` calls this before its first step.

    Parameters
    ----------
    statistic : callable
        ``statistic(q, prior_logit)`` must return f and its derivative; see
        :mod:`annealvi.proximity.statistics`.
    q : Bernoulli
        Values of f are checked at the logits of `q`, and the derivative at random logits of the
        same shape.
    prior_logit : array-like, default=0.0
        The logit of the prior probability, broadcast to `q`.

    Raises
    ------
    ValueError
        If an argument has a wrong type, or if the statistic does not return a pair, or returns a
        wrong shape, NaN, infinity, or a derivative that differs from finite differences.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.proximity import Bernoulli, check_statistic
    >>> def odds(q, prior_logit):
    ...     return np.exp(q.logit), np.exp(q.logit)
    >>> check_statistic(odds, Bernoulli(np.zeros((1, 2, 3))))
    """
    if not callable(statistic):
        raise BadParameter("statistic", "callable", statistic)
    if not isinstance(q, Bernoulli):
        raise BadParameter("q", "a Bernoulli", q)
    prior = check_numbers(prior_logit, "prior_logit")
    try:
        np.broadcast_to(prior, q.logit.shape)
    except ValueError:
        raise BadParameter(
            "prior_logit",
            must_be=f"broadcastable to the shape of q, {q.logit.shape}",
            got=prior,
        ) from None
    value, derivative = call_statistic(statistic, q, prior)
    rng = RandomState(0)  # so that the random numbers of the ascent do not change
    shape = value.shape
    what = f"The gradient of the statistic {name_of(statistic)!r}"
    if callable(derivative):
        numbers(derivative(np.ones(shape)), what, q.logit.shape)
    for _ in range(DIRECTIONS):
        theta = SPREAD * rng.standard_normal(q.logit.shape)
        v = rng.standard_normal(q.logit.shape)  # a direction of logits
        w = rng.standard_normal(shape)  # weights of the elements of f

        # defaults, because a function refers to the last values of a loop's variables
        def weighted_sum_at(
            h: Floats, theta: Floats = theta, v: Floats = v, w: Floats = w
        ) -> float:
            """sum_j w_j f_j at the logits theta + h v."""
            moved = Bernoulli(theta + h[0] * v)
            return np.sum(w * call_statistic(statistic, moved, prior, shape)[0])

        # the derivative of sum_j w_j f_j in the direction v
        value, derivative = call_statistic(statistic, Bernoulli(theta), prior, shape)
        gradient = derivative(w) if callable(derivative) else w * derivative
        slope = float(np.sum(v * numbers(gradient, what, q.logit.shape)))
        difference = approx_fprime(np.zeros(1), weighted_sum_at).item()
        _compare(slope, difference, size=np.sum(np.abs(w * value)), what=what)


def check_distance(
    value: Callable[[Floats], Floats], derivative: Callable[[Floats], Floats]
) -> None:
    """Check that a distance works elementwise, and that its derivative is correct.

    The constructor of :class:`annealvi.proximity.Distance` calls this function.

    Parameters
    ----------
    value, derivative : callable
        The distance d and its derivative d', which map an array to one of the same shape.

    Raises
    ------
    ValueError
        If a function returns a wrong shape, NaN or infinity, or if the derivative differs from
        finite differences of the value.
    """
    u = np.array(POINTS)
    names = (
        f"The distance {name_of(value)!r}",
        f"The derivative {name_of(derivative)!r} of a distance",
    )
    for shape in (u.shape, (u.size, 1)):  # elementwise functions keep any shape
        for name, function in zip(names, (value, derivative), strict=True):
            # raises an error for another shape or infinite numbers; a function may change its copy
            numbers(function(u.reshape(shape).copy()), name, shape)

    def distance_at(point: Floats) -> float:
        """d at an array of one point, as a number."""
        return float(np.squeeze(value(point.copy())))

    nonzero_points = u[1:]  # without 0, where d may have no derivative
    slopes = numbers(derivative(nonzero_points.copy()), names[1])
    for point, slope in zip(nonzero_points[:, None], slopes.tolist(), strict=True):
        _compare(
            slope=slope,
            difference=approx_fprime(point, distance_at).item(),
            size=abs(distance_at(point)),
            what=f"{names[1]} at u = {point[0]}",
        )


def _compare(slope: float, difference: float, size: float, what: str) -> None:
    """Raise ValueError if a derivative differs from finite differences of the function.

    `size` is the magnitude of the function, in proportion to which it has rounding errors.
    """
    tolerance = TOLERANCE * (abs(slope) + abs(difference)) + ROUNDING * size
    if not abs(slope - difference) <= tolerance:
        raise ValueError(
            f"{what} is wrong: it is {slope:.6g}, but finite differences of the values give "
            f"{difference:.6g}."
        )


#: How k / k0 falls over the steps: exponentially to gamma, or linearly to 0.
MAGNITUDES: dict[str, Callable[[float], Schedule]] = {
    "exponential": lambda gamma: Exponential(1.0, gamma),
    "linear": lambda gamma: Linear(1.0, 0.0),
}
#: Constraints of the parameters that all estimators with a penalty have.
CONSTRAINTS: dict[str, list] = {
    "magnitude": [None, Interval(Real, 0, None, closed="left")],
    "shape": [StrOptions(set(MAGNITUDES))],
    "gamma": [Interval(Real, 0, 1, closed="right")],
    "decay": [Interval(Real, 0, 1, closed="right")],
    "average": [StrOptions({"parameters", "statistic"})],
}


def inverse_huber(u: ArrayLike) -> Floats:
    r"""Compute d(u), which is \|u\| if \|u\| < 1, else (u^2 + 1) / 2.

    Parameters
    ----------
    u : array-like
    """
    size = np.abs(as_numbers(u, "u"))
    with np.errstate(over="ignore", under="ignore"):
        return np.where(size < 1.0, size, 0.5 * size**2 + 0.5)


def inverse_huber_derivative(u: ArrayLike) -> Floats:
    r"""Compute d'(u), which is sign u if \|u\| < 1, else u.  At 0 it is set to 0.

    Parameters
    ----------
    u : array-like
    """
    u = as_numbers(u, "u")
    return np.sign(u) * np.maximum(np.abs(u), 1.0)


def square(u: ArrayLike) -> Floats:
    """Compute d(u) = u^2."""
    with np.errstate(over="ignore", under="ignore"):
        return np.square(as_numbers(u, "u"))


def square_derivative(u: ArrayLike) -> Floats:
    """Compute d'(u) = 2 u."""
    return 2.0 * as_numbers(u, "u")


@dataclass(frozen=True)
class Distance:
    """A distance d between a statistic and its past average, with its derivative d'.

    Parameters
    ----------
    value : callable
        ``value(u)`` returns d of each element of an array u, in an array of the same shape.
    derivative : callable
        ``derivative(u)`` returns d' of each element of u.  d' must be finite at u = 0, where every
        fit begins.

    Raises
    ------
    ValueError
        If an argument is not callable, or if :func:`annealvi.proximity.check_distance` finds an
        error in it.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.proximity import Distance
    >>> smooth = Distance(lambda u: np.log(np.cosh(u)), np.tanh)
    """

    value: Callable[[Floats], Floats]
    derivative: Callable[[Floats], Floats]

    @checked
    def __post_init__(self) -> None:
        """Check both functions."""
        for name, function in (("value", self.value), ("derivative", self.derivative)):
            if not callable(function):
                raise BadParameter(name, "callable", function)
        check_distance(self.value, self.derivative)


#: The distances that can be passed by name.
DISTANCES: dict[str, Distance] = {
    "inverse_huber": Distance(inverse_huber, inverse_huber_derivative),
    "square": Distance(square, square_derivative),
}


class MovingAverage:
    r"""An exponential moving average that is corrected for its start at zero.

    The average is :math:`\tilde f_t = g_t / (1 - \alpha^t)` with :math:`g_t = \alpha g_{t-1} +
    (1 - \alpha) f_t` and :math:`g_0 = 0`.  While t is much smaller than 1/(1 - alpha), the average
    is close to the plain mean.  For :math:`\alpha = 1` it is the plain mean.

    Parameters
    ----------
    decay : float
        The factor alpha, in (0, 1].

    Attributes
    ----------
    value : ndarray or None
        The average, or None before the first `update`.  Each update makes a new array.

    Raises
    ------
    ValueError
        If `decay` is out of its range.
    """

    SCHEMA = Schema(value=Optional(Array(("K", "n"))), left=Number(0.0, 1.0), seen=Integer())

    @checked
    def __init__(self, decay: float) -> None:
        """Check `decay`, and begin without values."""
        if not isinstance(decay, float | Real) or not 0.0 < decay <= 1.0:
            raise BadParameter("decay", "a float in the range (0.0, 1.0]", decay)
        self.decay = float(decay)
        self.value: Floats | None = None
        self.left = 1.0  # alpha^t
        self.seen = 0  # the number t of values so far

    @checked
    def update(self, new: ArrayLike) -> Floats:
        """Include another value, and return the new average.

        Parameters
        ----------
        new : array-like
            The value, which must have the same shape in every call.

        Raises
        ------
        ValueError
            If `new` is not an array of numbers, or its shape differs from earlier calls.
        """
        new = as_numbers(new, "new")
        if self.value is not None and new.shape != self.value.shape:
            raise BadParameter("new", f"an array of shape {self.value.shape}", new)
        self.left *= self.decay
        self.seen += 1
        if self.value is None:
            self.value = new.copy()  # the caller may change `new`
        else:
            weight = 1.0 / self.seen  # f~ + (1 - alpha) / (1 - alpha^t) (f - f~)
            if self.decay < 1.0:
                weight = (1.0 - self.decay) / (1.0 - self.left)
            self.value = np.asarray(self.value + weight * (new - self.value))
        return self.value


class Penalty:
    """The penalty d(f(q) - past f), with the moving average that is needed for the past f."""

    def __init__(
        self,
        statistic: str | Statistic,
        distance: str | Distance,
        decay: float,
        prior_logit: Floats,
        of_parameters: bool = True,
    ) -> None:
        """`of_parameters`: logits are averaged, and f of the average is used; else f itself."""
        self._statistic = statistic
        self._prior_logit = prior_logit
        self._distance = distance if isinstance(distance, Distance) else DISTANCES[distance]
        self._has_user_functions = not (isinstance(statistic, str) and isinstance(distance, str))
        self._average = MovingAverage(decay)
        self._averages_logits = of_parameters
        self._past_value: Any = None  # the past f; None before the first update

    def update(self, q: Bernoulli) -> None:
        """Include this q in the moving average."""
        if self._averages_logits:
            # [0] is f, [1] its derivative
            self._past_value = self._evaluate(Bernoulli(self._average.update(q.logit)))[0]
        else:
            self._past_value = self._average.update(self._evaluate(q)[0])

    def gradient(self, q: Bernoulli) -> Floats:
        """The gradient of the penalty with respect to theta."""
        value, derivative = self._evaluate(q)
        distance_slope = self._distance.derivative(value - self._past_value)
        gradient = (
            derivative(distance_slope) if callable(derivative) else distance_slope * derivative
        )
        if self._has_user_functions:  # check what the user's functions returned
            numbers(distance_slope, f"The derivative of {self._distance!r}", value.shape)
            numbers(gradient, f"The gradient of {name_of(self._statistic)!r}", q.logit.shape)
        return gradient

    def _evaluate(self, q: Bernoulli) -> Any:
        """Compute f and its derivative at q; results of a user's function are checked."""
        if isinstance(self._statistic, str):
            return STATISTICS[self._statistic](q, self._prior_logit)
        # f must always have the same shape
        shape = None if self._past_value is None else self._past_value.shape
        return call_statistic(self._statistic, q, self._prior_logit, shape)
