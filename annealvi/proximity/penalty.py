r"""The penalty that keeps a statistic near its past values, and checks of users' functions.

The penalty of proximity variational inference is
:math:`k\, d(f(\lambda) - f(\tilde\lambda))`.  Here d is a distance, usually the inverse Huber
distance, :math:`\tilde\lambda` a moving average of the parameters over the steps, and k a
magnitude that falls (Altosaar, Ranganath, Blei 2018, *Proximity
Variational Inference*, sections 2-3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import approx_fprime

from annealvi.checks import as_array, as_numbers, check_numbers, checked
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Array, Integer, Number, Optional, Schema
from annealvi.proximity.statistics import STATISTICS, Bernoulli, Derivative, Statistic
from annealvi.schedules import Exponential, Linear, Schedule

Floats = NDArray[np.float64]
# A wrong derivative spoils an ascent without a word, so it is compared with finite differences, in
# a random direction v and with random weights w: d/dh sum_j w_j f_j(theta + h v) at h = 0 must be
# v . sum_j w_j df_j/dtheta.  One that is wrong anywhere fails with probability 1, up to the
# accuracy of the differences.

#: Random directions that are tried, and the spread of the logits at which they are.
DIRECTIONS, SPREAD = 3, 1.5
#: Largest difference, as a fraction of the two derivatives and of the function's own size.
TOLERANCE, ROUNDING = 1e-4, 1e-6
#: Arguments of a distance: 0, where every fit begins, and both sides of 1; none is a corner.
POINTS = (0.0, 0.13, -0.57, 0.93, -1.4, 2.6, -7.1)


def name_of(function: Any) -> str:
    """How messages call a function: by its name, or by its class if it has none."""
    return repr(getattr(function, "__name__", type(function).__name__))


def numbers(value: Any, what: str, shape: tuple[int, ...] | None = None) -> Floats:
    """Return what a function gave as float64, if it is finite and of the shape."""
    array = as_array(value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{what} must be an array of floats. Got {value!r:.200} instead.")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{what} must have shape {shape}. Got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        bad = array[~np.isfinite(array)].ravel()[0]
        raise ValueError(f"{what} must be finite. Got {bad}.")
    return array.astype(np.float64, copy=False)


def call_statistic(
    statistic: Statistic, q: Bernoulli, prior_logit: Floats, shape: tuple[int, ...] | None = None
) -> tuple[Floats, Derivative]:
    """Return a statistic and its derivative, if the function keeps to what is agreed."""
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
            f"{what} must be a function, because the shape of f is {value.shape} and that of q is "
            f"{q.logit.shape}. For an array c of the shape of f, the function must return the sum "
            "of c_j df_j/dtheta."
        )
    return value, numbers(derivative, what, q.logit.shape)


@checked
def check_statistic(statistic: Statistic, q: Bernoulli, prior_logit: ArrayLike = 0.0) -> None:
    """Check that a statistic returns what an ascent needs, and that its derivative is right.

    :meth:`annealvi.proximity.ProximityAscent.ascend` calls this before its first step.

    Parameters
    ----------
    statistic : callable
        ``statistic(q, prior_logit)`` returns f and its derivative, see
        :mod:`annealvi.proximity.statistics`.
    q : Bernoulli
        Values are checked at its logits, and the derivative at random logits of the same shape.
    prior_logit : array-like, default=0.0
        logit pi, broadcast to q.

    Raises
    ------
    ValueError
        If an argument has another type, or if the statistic does not return a pair, or returns
        another shape, NaN, infinity, or a derivative that differs from finite differences.

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
        must_be = f"broadcastable to the shape of q, {q.logit.shape}"
        raise BadParameter("prior_logit", must_be, prior) from None
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

        def along(h: Floats, theta: Floats = theta, v: Floats = v, w: Floats = w) -> float:
            moved = Bernoulli(theta + h[0] * v)
            return float(np.sum(w * call_statistic(statistic, moved, prior, shape)[0]))

        value, derivative = call_statistic(statistic, Bernoulli(theta), prior, shape)
        product = derivative(w) if callable(derivative) else w * derivative
        given = float(np.sum(v * numbers(product, what, q.logit.shape)))
        difference = float(np.squeeze(approx_fprime(np.zeros(1), along)))
        _compare(given, difference, float(np.sum(np.abs(w * value))), what)


def check_distance(
    value: Callable[[Floats], Floats], derivative: Callable[[Floats], Floats]
) -> None:
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


def _compare(given: float, difference: float, size: float, what: str) -> None:
    room = TOLERANCE * (abs(given) + abs(difference)) + ROUNDING * size
    if not abs(given - difference) <= room:
        raise ValueError(
            f"{what} is wrong: it is {given:.6g}, but finite differences of the values give "
            f"{difference:.6g}."
        )


#: How k falls, as a fraction of k0: to k0 gamma^s, or linearly to 0.
MAGNITUDES: dict[str, Callable[[float], Schedule]] = {
    "exponential": lambda gamma: Exponential(1.0, gamma),
    "linear": lambda gamma: Linear(1.0, 0.0),
}


def inverse_huber(u: ArrayLike) -> Floats:
    r"""d(u) = \|u\| if \|u\| < 1, else (u^2 + 1) / 2.

    Parameters
    ----------
    u : array-like
    """
    size = np.abs(as_numbers(u, "u"))
    with np.errstate(over="ignore"):
        return np.where(size < 1.0, size, 0.5 * size**2 + 0.5)


def inverse_huber_derivative(u: ArrayLike) -> Floats:
    r"""d'(u) = sign u if \|u\| < 1, else u; d'(0) = 0, although d has a corner there.

    Parameters
    ----------
    u : array-like
    """
    u = as_numbers(u, "u")
    return np.sign(u) * np.maximum(np.abs(u), 1.0)


def square(u: ArrayLike) -> Floats:
    """d(u) = u^2."""
    with np.errstate(over="ignore"):
        return np.square(as_numbers(u, "u"))


def square_derivative(u: ArrayLike) -> Floats:
    """d'(u) = 2 u."""
    return 2.0 * as_numbers(u, "u")


@dataclass(frozen=True)
class Distance:
    """A distance d of a statistic from its past, and its derivative.

    Parameters
    ----------
    value : callable
        ``value(u)`` returns d of each element of an array u, in an array of the same shape.
    derivative : callable
        ``derivative(u)`` returns d' of each element.  It must be finite at u = 0 too, where
        every fit begins.

    Raises
    ------
    ValueError
        If one cannot be called, or :func:`annealvi.proximity.check_distance` finds it wrong.

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
        for name, part in (("value", self.value), ("derivative", self.derivative)):
            if not callable(part):
                raise BadParameter(name, "callable", part)
        check_distance(self.value, self.derivative)


#: The distances that have a name.
DISTANCES: dict[str, Distance] = {
    "inverse_huber": Distance(inverse_huber, inverse_huber_derivative),
    "square": Distance(square, square_derivative),
}


class MovingAverage:
    r"""An exponential moving average without the bias of its start at zero.

    :math:`\tilde f_t = g_t / (1 - \alpha^t)` with :math:`g_t = \alpha g_{t-1} + (1 - \alpha) f_t`
    and :math:`g_0 = 0`.  It is close to the plain mean as long as t is well below 1/(1 - alpha),
    and equal to it for :math:`\alpha = 1`.

    Parameters
    ----------
    decay : float
        alpha, in (0, 1].

    Attributes
    ----------
    value : ndarray or None
        The average; None before the first `update`.  Each update makes a new array.

    Raises
    ------
    ValueError
        If `decay` is out of its range.
    """

    SCHEMA = Schema(value=Optional(Array(("K", "n"))), left=Number(0.0, 1.0), seen=Integer())

    @checked
    def __init__(self, decay: float) -> None:
        if not isinstance(decay, float | Real) or not 0.0 < decay <= 1.0:
            raise BadParameter("decay", "a float in the range (0.0, 1.0]", decay)
        self.decay = float(decay)
        self.value: Floats | None = None
        self.left = 1.0  # alpha^t
        self.seen = 0

    @checked
    def update(self, new: ArrayLike) -> Floats:
        """Include another value, and return the new average.

        Parameters
        ----------
        new : array-like
            Must have the same shape each time.

        Raises
        ------
        ValueError
            If it is not an array of numbers, or its shape differs from the shape before.
        """
        new = as_numbers(new, "new")
        if self.value is not None and new.shape != self.value.shape:
            raise BadParameter("new", f"an array of shape {self.value.shape}", new)
        self.left *= self.decay
        self.seen += 1
        if self.value is None:
            self.value = new.copy()
            return self.value
        weight = 1.0 / self.seen  # f~ + (1 - alpha) / (1 - alpha^t) (f - f~)
        if self.decay < 1.0:
            weight = (1.0 - self.decay) / (1.0 - self.left)
        self.value = np.asarray(self.value + weight * (new - self.value))
        return self.value


class Penalty:
    """d(f(q) - past f), which knows the past."""

    def __init__(
        self,
        statistic: str | Statistic,
        distance: str | Distance,
        decay: float,
        prior_logit: Floats,
        of_parameters: bool = True,  # whether logits are averaged, or f
    ) -> None:
        self._statistic, self._prior_logit = statistic, prior_logit
        self._distance = distance if isinstance(distance, Distance) else DISTANCES[distance]
        self._own = not (isinstance(statistic, str) and isinstance(distance, str))
        self._average, self._of_parameters = MovingAverage(decay), of_parameters
        self._past: Any = None  # f of the past; None before the first update

    def update(self, q: Bernoulli) -> None:
        """Let this q become a part of the past."""
        if self._of_parameters:
            self._past = self._evaluate(Bernoulli(self._average.update(q.logit)))[0]
        else:
            self._past = self._average.update(self._evaluate(q)[0])

    def gradient(self, q: Bernoulli) -> Floats:
        """The gradient with respect to theta."""
        value, derivative = self._evaluate(q)
        slope = self._distance.derivative(value - self._past)
        found = derivative(slope) if callable(derivative) else slope * derivative
        if self._own:  # functions of the user's: what they return is not known to be sound
            numbers(slope, f"The derivative of {self._distance!r}", value.shape)
            numbers(found, f"The gradient of {name_of(self._statistic)}", q.logit.shape)
        return found

    def _evaluate(self, q: Bernoulli) -> Any:
        if isinstance(self._statistic, str):
            return STATISTICS[self._statistic](q, self._prior_logit)
        shape = None if self._past is None else self._past.shape
        return call_statistic(self._statistic, q, self._prior_logit, shape)
