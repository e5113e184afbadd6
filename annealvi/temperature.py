"""How hot: the temperature T of each step of a fit.

Raising the likelihood to b = 1/T and letting T fall to 1 smooths the variational
objective while the fit still looks for its optimum.  The optimiser asks a
temperature for ``inverse(step)`` before each batch and shows it the local step
afterwards with ``observe``.

References
----------
Abrol, Mandt, Ranganath, Blei (2014), *Deterministic Annealing for Stochastic
Variational Inference* (the posterior form).
Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS
(the likelihood form).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from annealvi.model import Form, LocalStep, Tempering

#: Fraction of the fit that is annealed where neither `length` nor `passes` is given.
DEFAULT_LENGTH = 1 / 3


class Temperature(BaseEstimator):
    """A temperature: parameters in scikit-learn's sense, and a plan for one fit.

    Fitting never changes the object the user passed: the estimator asks it for a
    plan, which is a clone that knows how many steps there will be.
    """

    #: Whether ``observe`` wants energies and entropies, which cost time.
    observes = False
    _parameter_constraints: ClassVar[dict] = {}
    form: Form = "likelihood"

    def plan(self, n_steps: int | None, steps_per_pass: float, *, owner: str = "fit") -> Self:
        """A copy of this temperature for a fit of so many steps.

        Parameters
        ----------
        n_steps : int or None
            Planned steps; None when the data come as a stream of unknown length.
        steps_per_pass : float
            Steps that make one pass over the data.
        owner : str
            Who asks, for the messages.
        """
        self.check()
        planned = clone(self)
        planned._prepare(n_steps, steps_per_pass, owner)
        return planned

    def check(self) -> None:
        """Raise if a parameter is out of its range."""
        self._validate_params()

    def __eq__(self, other: object) -> bool:
        """Whether another temperature is of the same kind with the same parameters."""
        if type(self) is not type(other):
            return NotImplemented
        return self.get_params() == other.get_params()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(self.get_params().items(), key=lambda kv: kv[0]))))

    def _prepare(self, n_steps: int | None, steps_per_pass: float, owner: str) -> None:
        """Work out what `inverse` needs; called on the clone."""

    def inverse(self, step: int) -> float:
        """The inverse temperature 1/T of step 0, 1, 2, ..."""
        raise NotImplementedError

    def settled(self, step: int) -> bool:
        """Whether T changes no more from this step on."""
        raise NotImplementedError

    def observe(self, local: LocalStep) -> None:
        """See what the step brought; fixed schedules ignore it."""

    def tempering(self, step: int) -> Tempering:
        """The inverse temperature of a step together with its form."""
        return Tempering(self.inverse(step), self.form)


class Fixed(Temperature):
    """The same temperature at every step.

    Parameters
    ----------
    value : float, default=1.0
        T >= 1; at 1 the fit is ordinary variational inference.
    form : {"likelihood", "posterior"}, default="likelihood"
        See :class:`Annealed`.

    Examples
    --------
    >>> from annealvi import Fixed
    >>> Fixed(2.0).inverse(0)
    0.5
    """

    _parameter_constraints: ClassVar[dict] = {
        "value": [Interval(Real, 1, None, closed="left")],
        "form": [StrOptions({"likelihood", "posterior"})],
    }

    def __init__(self, value: float = 1.0, *, form: Form = "likelihood") -> None:
        self.value = value
        self.form = form

    def inverse(self, step: int) -> float:
        return 1.0 / self.value

    def settled(self, step: int) -> bool:
        return True


class Annealed(Temperature):
    r"""A temperature that falls from `start` to 1 and stays there.

    With L annealing steps, step t = 0, ..., L - 1 runs at

    - ``"linear"``: :math:`T = T_0 + (1 - T_0) t / L`,
    - ``"exponential"``: :math:`T = T_0^{1 - t/L}`,
    - ``"relax"``: :math:`T = T_0^{\exp(-4 t / L)}`, whose logarithm decays with
      time constant L/4,

    and every later step at exactly T = 1.  At least one step does: L is at most the
    planned number of steps less one, so a fit of a single step is not annealed.

    Parameters
    ----------
    start : float, default=3.9
        The first temperature T0 >= 1.  It must exceed the critical temperature below
        which the objective breaks into several optima, or nothing is gained.
    length : float or None, default=None
        The annealed fraction of the fit, in (0, 1]: L = ceil(length * steps).  None
        means 1/3, unless `passes` is given.
    passes : float or None, default=None
        The length in effective passes over the data (steps * batch size / documents)
        instead, as the papers give it; at most the passes of the fit.
        ``partial_fit`` does not know how long the fit will be: it anneals only where
        `passes` is given, counted over ``total_samples`` documents.
    shape : {"relax", "exponential", "linear"}, default="relax"
        See above.
    form : {"likelihood", "posterior"}, default="likelihood"
        ``"likelihood"`` tempers the likelihood (annealed variational inference, Mandt
        et al. 2016); ``"posterior"`` tempers likelihood and priors together
        (deterministic annealing, Abrol et al. 2014).

    Examples
    --------
    >>> from annealvi import Annealed
    >>> schedule = Annealed(start=4.0, length=0.5, shape="exponential").plan(8, 4)
    >>> [round(1 / schedule.inverse(t), 3) for t in range(6)]
    [4.0, 2.828, 2.0, 1.414, 1.0, 1.0]
    """

    _parameter_constraints: ClassVar[dict] = {
        "start": [Interval(Real, 1, None, closed="left")],
        "length": [None, Interval(Real, 0, 1, closed="right")],
        "passes": [None, Interval(Real, 0, None, closed="neither")],
        "shape": [StrOptions({"relax", "exponential", "linear"})],
        "form": [StrOptions({"likelihood", "posterior"})],
    }

    def __init__(
        self,
        start: float = 3.9,
        length: float | None = None,
        passes: float | None = None,
        shape: str = "relax",
        form: Form = "likelihood",
    ) -> None:
        self.start = start
        self.length = length
        self.passes = passes
        self.shape = shape
        self.form = form

    def check(self) -> None:
        super().check()
        if self.length is not None and self.passes is not None:
            raise ValueError(
                "Only one of the 'length' and 'passes' parameters of Annealed can be given. "
                f"Got length={self.length!r} and passes={self.passes!r}."
            )

    def _prepare(self, n_steps: int | None, steps_per_pass: float, owner: str) -> None:
        passes = 0.0 if self.passes is None else self.passes
        if n_steps is None:
            self.n_annealing_steps_ = _ceil(passes * steps_per_pass)
            return
        n_passes = n_steps / max(1, _ceil(steps_per_pass))
        if passes > n_passes > 0:
            raise ValueError(
                "The 'passes' parameter of Annealed must be at most the passes of the fit. "
                f"Got passes={self.passes!r}, while {owner} makes {n_passes:g}."
            )
        if self.passes is None:
            wanted = (DEFAULT_LENGTH if self.length is None else self.length) * n_steps
        else:
            wanted = passes * steps_per_pass
        self.n_annealing_steps_ = max(0, min(_ceil(wanted), n_steps - 1))

    def inverse(self, step: int) -> float:
        if self.settled(step):
            return 1.0
        done = step / self.n_annealing_steps_
        if self.shape == "linear":
            return 1.0 / (self.start + (1.0 - self.start) * done)
        fraction = 1.0 - done if self.shape == "exponential" else math.exp(-4.0 * done)
        return self.start**-fraction

    def settled(self, step: int) -> bool:
        return step >= self.n_annealing_steps_


#: What a string stands for as a `temperature`.
KINDS: dict[str, type[Temperature]] = {"annealed": Annealed}


def as_temperature(value: Any, owner: str) -> Temperature:
    """The temperature object that a `temperature` parameter stands for.

    Parameters
    ----------
    value : float, str or Temperature
        A number >= 1, the name of a kind, or an object.
    owner : str
        The estimator's name, for the messages.
    """
    if isinstance(value, Temperature):
        return value
    if isinstance(value, str) and value in KINDS:
        return KINDS[value]()
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if 1 <= number < math.inf:
            return Fixed(number)
    raise ValueError(
        f"The 'temperature' parameter of {owner} must be a finite float in the range "
        f"[1.0, inf), a str among {set(KINDS)} or an instance of "
        f"'annealvi.temperature.Temperature'. Got {value!r} instead."
    )


def _ceil(steps: float) -> int:
    """The next whole number, but 7.000000000000001 steps are 7."""
    return math.ceil(round(steps, 9))
