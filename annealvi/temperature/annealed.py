"""Temperatures that follow a plan: a fixed temperature, and one that falls to 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions

from annealvi.checks import Interval, as_float, checked
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Integer, Number, Schema
from annealvi.model import Critical, Form
from annealvi.schedules import Exponential, Linear, Relaxing, Schedule
from annealvi.temperature.base import Temperature, whole_steps

#: Fraction of the fit that is annealed if neither `length` nor `passes` is given.
DEFAULT_LENGTH = 1 / 3
#: The highest T0 of ``start="auto"``.  A higher T0 is not needed: if there are many topics,
#: documents differ in their topics at any temperature.
MAX_START = 6.0
#: How T falls from T0 to 1, by the name of the shape.
SHAPES: dict[str, Callable[[float], Schedule]] = {
    "linear": lambda start: Linear(start, 1.0),
    "exponential": lambda start: Exponential(start, 1.0 / start),
    "relax": Relaxing,
}


@dataclass(eq=False, repr=False)
class Fixed(Temperature):
    """The same temperature at every step.

    Parameters
    ----------
    value : float, default=1.0
        The temperature T >= 1.  With T = 1 the fit is plain variational inference.
    form : {"likelihood", "posterior"}, default="likelihood"
        What is tempered; see :class:`Annealed`.

    Examples
    --------
    >>> from annealvi import Fixed
    >>> Fixed(2.0).inverse(0)
    0.5
    """

    constant = True
    perturbs = False
    SCHEMA = Schema()
    _parameter_constraints: ClassVar[dict] = {
        "value": [Interval(Real, 1, None, closed="left")],
        "form": [StrOptions({"likelihood", "posterior"})],
    }

    value: float = 1.0
    _: KW_ONLY
    form: Form = "likelihood"

    def inverse(self, step: int) -> float:
        """1 / T, which is the same at every step."""
        return 1.0 / self.value

    def settled(self, step: int) -> bool:
        """True, because T never changes."""
        return True


@dataclass(eq=False, repr=False)
class Annealed(Temperature):
    r"""A temperature that falls from `start` to 1 and stays there.

    The first L steps of the fit are annealed.  The temperature of step t = 0, ..., L - 1 depends
    on `shape`:

    - ``"linear"``: :math:`T = T_0 + (1 - T_0) t / L`.
    - ``"exponential"``: :math:`T = T_0^{1 - t/L}`.
    - ``"relax"``: :math:`T = T_0^{\exp(-4 t / L)}`, whose logarithm decays exponentially.

    Every later step has exactly T = 1.  The last step is never annealed, so a fit of a single
    step is plain variational inference.

    Parameters
    ----------
    start : float or "auto", default=3.9
        The first temperature T0 >= 1.  Below a critical temperature :math:`T_c` the objective has
        several optima, so annealing helps only if T0 is higher than :math:`T_c`.  ``"auto"`` means
        :math:`\min(1.2 T_c, 3 + 0.2 T_c, 6)`; the model must be able to compute :math:`T_c` of
        its data, as LDA can.
    length : float or None, default=None
        The annealed fraction of the fit, in (0, 1]: L = ceil(length * steps).  None means 1/3,
        unless `passes` is set.
    passes : float or None, default=None
        The number of annealed passes over the data (steps * batch size / documents), at most the
        number of passes of the fit.  Set either `passes` or `length`, not both.  ``partial_fit``
        anneals only if `passes` is set, because the number of its steps is not known in advance.
        In ``partial_fit`` one pass is `total_samples` documents, a parameter of the estimator.
    shape : {"relax", "exponential", "linear"}, default="relax"
        How T falls, as listed above.
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

    cools = True
    SCHEMA = Schema(n_annealing_steps_=Integer(), start_=Number(1.0))
    _parameter_constraints: ClassVar[dict] = {
        "start": [Interval(Real, 1, None, closed="left"), StrOptions({"auto"})],
        "length": [None, Interval(Real, 0, 1, closed="right")],
        "passes": [None, Interval(Real, 0, None, closed="neither")],
        "shape": [StrOptions(set(SHAPES))],
        "form": [StrOptions({"likelihood", "posterior"})],
    }

    start: float | Literal["auto"] = 3.9
    length: float | None = None
    passes: float | None = None
    shape: str = "relax"
    form: Form = "likelihood"

    @checked
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        super().check()
        if self.length is not None and self.passes is not None:
            raise BadParameter("passes", f"None with length={self.length!r}", self.passes)

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        """Compute the number of annealing steps and T0 for a fit; see :meth:`plan`."""
        if not isinstance(self.start, Real) and not isinstance(model, Critical):
            raise BadParameter(
                "start",
                must_be="a number for this model",
                got=self.start,
                hint="Only TemperedLDA computes a critical temperature.",
            )
        self.n_annealing_steps_ = self._annealing_steps(n_steps, steps_per_pass)
        # T0 is computed only if it is used, because that may take long
        self.start_ = self._first_temperature(model) if self.n_annealing_steps_ else 1.0

    def _annealing_steps(self, n_steps: int | None, steps_per_pass: float) -> int:
        """The number L of annealing steps in a fit of `n_steps` steps."""
        passes = 0.0 if self.passes is None else float(self.passes)
        if n_steps is None:  # a stream, in which `passes` alone counts
            return whole_steps(passes * steps_per_pass)
        n_passes = n_steps / max(1, whole_steps(steps_per_pass))
        if passes > n_passes > 0:
            raise BadParameter("passes", f"at most the {n_passes:g} passes of the fit", self.passes)
        if self.passes is None:
            length = (DEFAULT_LENGTH if self.length is None else float(self.length)) * n_steps
        else:
            length = passes * steps_per_pass
        return max(0, min(whole_steps(length), n_steps - 1))  # the last step is never annealed

    def _first_temperature(self, model: Any) -> float:
        """The first temperature T0 of this fit."""
        if isinstance(self.start, Real):
            return float(self.start)
        critical = model.critical_temperature(self.form)
        return max(1.0, min(1.2 * critical, 3.0 + 0.2 * critical, MAX_START))

    def inverse(self, step: int) -> float:
        """1 / T of a step; the first step has number 0."""
        if self.settled(step):
            return 1.0
        return 1.0 / SHAPES[self.shape](self.start_)(step / self.n_annealing_steps_)

    def settled(self, step: int) -> bool:
        """Whether T is 1 from this step on."""
        return step >= self.n_annealing_steps_


#: What the names of temperatures mean in estimators that have no dictionary of their own.
KINDS: dict[str, Temperature] = {"annealed": Annealed()}


def as_temperature(value: Any, kinds: Mapping[str, Temperature] = KINDS) -> Temperature:
    """Check a `temperature` parameter and return the temperature object for it.

    Parameters
    ----------
    value : float, str or Temperature
        A number >= 1, a key of `kinds`, or a temperature object.
    kinds : dict of str to Temperature
        The temperature object for each name.

    Raises
    ------
    ValueError
        If `value` is something else, or if a parameter of the object is out of its range.
    """
    if isinstance(value, Temperature):
        value.check()
        return value
    if isinstance(value, str) and value in kinds:
        return clone(kinds[value])
    if isinstance(value, Real) and not isinstance(value, bool) and 1 <= as_float(value) < math.inf:
        return Fixed(float(value))
    raise BadParameter(
        "temperature",
        must_be=f"a finite float in the range [1.0, inf), a str among {set(kinds)} or an "
        "instance of 'annealvi.temperature.Temperature'",
        got=value,
    )
