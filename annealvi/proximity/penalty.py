r"""The penalty that keeps a statistic near its past values.

The penalty of proximity variational inference is :math:`k\, d(f(\lambda) - \tilde f)`.  Here
d is a distance, usually the inverse Huber distance, :math:`\tilde f` a moving average of the
statistic over the steps, and k a magnitude that falls.

References
----------
Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS, sections 2-3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi.checks import as_numbers
from annealvi.files import Node
from annealvi.proximity.checks import call_statistic, check_distance, name_of, numbers
from annealvi.proximity.statistics import STATISTICS, Bernoulli, Statistic
from annealvi.schedules import Exponential, Linear, Schedule

#: How k falls, as a fraction of k0: to k0 gamma^s, or linearly to 0.
MAGNITUDES: dict[str, Callable[[float], Schedule]] = {
    "exponential": lambda gamma: Exponential(1.0, gamma),
    "linear": lambda gamma: Linear(1.0, 0.0),
}


def inverse_huber(u: ArrayLike) -> NDArray[np.float64]:
    r"""d(u) = \|u\| if \|u\| < 1, else (u^2 + 1) / 2.

    Parameters
    ----------
    u : array-like
    """
    size = np.abs(as_numbers(u, "u"))
    with np.errstate(over="ignore"):
        return np.where(size < 1.0, size, 0.5 * size**2 + 0.5)


def inverse_huber_derivative(u: ArrayLike) -> NDArray[np.float64]:
    r"""d'(u) = sign u if \|u\| < 1, else u; d'(0) = 0, although d has a corner there.

    Parameters
    ----------
    u : array-like
    """
    u = as_numbers(u, "u")
    return np.sign(u) * np.maximum(np.abs(u), 1.0)


def square(u: ArrayLike) -> NDArray[np.float64]:
    r"""d(u) = u^2.

    Parameters
    ----------
    u : array-like
    """
    with np.errstate(over="ignore"):
        return np.square(as_numbers(u, "u"))


def square_derivative(u: ArrayLike) -> NDArray[np.float64]:
    r"""d'(u) = 2 u.

    Parameters
    ----------
    u : array-like
    """
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
    TypeError
        If one of them cannot be called.
    ValueError
        If they return another shape, NaN or infinity, or if the derivative differs from finite
        differences of the value, see :func:`annealvi.proximity.check_distance`.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.proximity import Distance
    >>> smooth = Distance(lambda u: np.log(np.cosh(u)), np.tanh)
    """

    value: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    derivative: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    def __post_init__(self) -> None:
        for name, part in (("value", self.value), ("derivative", self.derivative)):
            if not callable(part):
                raise TypeError(f"The {name!r} of a Distance must be callable. Got {part!r}.")
        check_distance(self.value, self.derivative)


#: The distances that have a name.
DISTANCES: dict[str, Distance] = {
    "inverse_huber": Distance(inverse_huber, inverse_huber_derivative),
    "square": Distance(square, square_derivative),
}


class MovingAverage:
    r"""An exponential moving average without the bias of its start at zero.

    In :math:`g_t = \alpha g_{t-1} + (1 - \alpha) f_t` with :math:`g_0 = 0` the weights add up
    to :math:`1 - \alpha^t`.  The average is :math:`\tilde f_t = g_t / (1 - \alpha^t)`,
    computed as

    .. math::
       \tilde f_t = \tilde f_{t-1} + \frac{1 - \alpha}{1 - \alpha^t} (f_t - \tilde f_{t-1}).

    For :math:`\alpha = 1` this is the plain mean.  For every alpha it is close to the plain
    mean as long as t is well below 1/(1 - alpha).

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

    def __init__(self, decay: float) -> None:
        if not isinstance(decay, float | Real) or not 0.0 < decay <= 1.0:
            raise ValueError(
                "The 'decay' parameter of MovingAverage must be a float in the range (0.0, 1.0]. "
                f"Got {decay!r} instead."
            )
        self.decay = float(decay)
        self.value: NDArray[np.float64] | None = None
        self._left = 1.0  # alpha^t
        self._n_seen = 0

    def state_dict(self) -> dict[str, Any]:
        """The average and how many values it has seen, as a tree."""
        return {"value": self.value, "left": self._left, "seen": self._n_seen}

    def load_state_dict(self, node: Node, shape: tuple[int, ...]) -> None:
        """Take over an average.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.
        shape : tuple of int
            The shape that the average must have.
        """
        self.value = None
        if not node.is_none("value"):
            self.value = node.array("value", shape, np.float64).copy()
        self._left = node.number("left", 0.0, 1.0)
        self._n_seen = node.integer("seen", least=0 if self.value is None else 1)
        if self.value is not None and self.decay < 1.0 and self._left == 1.0:
            raise node.error("left", "below 1", self._left)

    def update(self, new: ArrayLike) -> NDArray[np.float64]:
        """Include another value, and return the new average.

        Parameters
        ----------
        new : array-like
            Must have the same shape each time.
        """
        new = as_numbers(new, "new")
        self._left *= self.decay
        self._n_seen += 1
        if self.value is None:
            self.value = new.copy()
            return self.value
        weight = 1.0 / self._n_seen
        if self.decay < 1.0:
            weight = (1.0 - self.decay) / (1.0 - self._left)
        self.value = np.asarray(self.value + weight * (new - self.value))
        return self.value


class Penalty:
    r"""d(f(q) - past f), which knows the past.

    Parameters
    ----------
    statistic : str or Statistic
        A name in :data:`annealvi.proximity.STATISTICS`, or a function.
    distance : str or Distance
    decay : float
        alpha of the moving average.
    prior_logit : ndarray
        logit pi, handed on to the statistic.
    """

    def __init__(
        self,
        statistic: str | Statistic,
        distance: str | Distance,
        decay: float,
        prior_logit: NDArray[np.float64],
    ) -> None:
        own = not isinstance(statistic, str)
        self._statistic = statistic if callable(statistic) else STATISTICS[statistic]
        self._distance = distance if isinstance(distance, Distance) else DISTANCES[distance]
        self._own_statistic, self._own = own, own or isinstance(distance, Distance)
        self._prior_logit = prior_logit
        self._average = MovingAverage(decay)

    def gradient(self, q: Bernoulli) -> NDArray[np.float64]:
        """The gradient with respect to theta; 0 as long as there is no past.

        Parameters
        ----------
        q : Bernoulli
        """
        past = self._average.value
        if past is None:
            return np.zeros_like(q.logit)
        value, derivative = self._evaluate(q)
        slope = self._distance.derivative(value - past)
        found = derivative(slope) if callable(derivative) else slope * derivative
        if self._own:  # functions of the user's: what they return is not known to be sound
            numbers(slope, f"The derivative of {self._distance!r}", value.shape)
            numbers(found, f"The gradient of {name_of(self._statistic)}", q.logit.shape)
        return found

    def update(self, q: Bernoulli) -> None:
        """Let f of this q become a part of the past.

        Parameters
        ----------
        q : Bernoulli
        """
        self._average.update(self._evaluate(q)[0])

    def _evaluate(self, q: Bernoulli) -> Any:
        past = self._average.value
        shape = None if past is None else past.shape
        if self._own_statistic:
            return call_statistic(self._statistic, q, self._prior_logit, shape)
        return self._statistic(q, self._prior_logit)
