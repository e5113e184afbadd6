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
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, logsumexp, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from annealvi.model import Form, LocalStep, Normalised, Tempering

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

    @property
    def perturbs(self) -> bool:
        """Whether a model may be moved at random while T falls, as the mixtures are."""
        return True

    def plan(
        self,
        n_steps: int | None,
        steps_per_pass: float = 1,
        *,
        model: Any = None,
        owner: str = "fit",
    ) -> Self:
        """A copy of this temperature for a fit of so many steps.

        Parameters
        ----------
        n_steps : int or None
            Planned steps; None when the data come as a stream of unknown length.
        steps_per_pass : float, default=1
            Steps that make one pass over the data.
        model : Model, optional
            What is fitted; a temperature learned from the data asks it for log C(T).
        owner : str
            Who asks, for the messages.
        """
        self.check()
        planned = clone(self)
        planned._prepare(n_steps, steps_per_pass, model, owner)
        return planned

    def check(self) -> None:
        """Raise if a parameter is out of its range."""
        self._validate_params()

    def __eq__(self, other: object) -> bool:
        """Whether another temperature is of the same kind with the same parameters."""
        if type(self) is not type(other):
            return NotImplemented
        theirs = other.get_params()  # type: ignore[attr-defined]
        return all(np.array_equal(v, theirs[name]) for name, v in self.get_params().items())

    def __hash__(self) -> int:
        return hash(type(self))  # parameters may be arrays, and may be set

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any, owner: str) -> None:
        """Work out what `inverse` needs; called on the clone."""

    def inverse(self, step: int) -> float:
        """The inverse temperature 1/T of step 0, 1, 2, ..."""
        raise NotImplementedError

    def settled(self, step: int) -> bool:
        """Whether T changes no more from this step on."""
        raise NotImplementedError

    def observe(self, local: LocalStep, scale: float) -> None:
        """See what the step brought, and data in the population over those in the batch.

        Schedules ignore it.
        """

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

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any, owner: str) -> None:
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


class Variational(Temperature):
    r"""A temperature learned from the data: T is a latent variable on a grid.

    With T_1 = 1 < ... < T_M spaced evenly in log T, prior :math:`\pi` and q(y) = r over the
    grid, each step takes

    .. math::
       r_m &\propto \pi_m \exp(b_m L - \log C(T_m)) \\
       \log b &\leftarrow (1 - d) \log b + d \log \sum_m r_m b_m,

    d being the damping, L the energy E_q[log p(x, z | globals)] of all data without the
    base measure and C(T) the normaliser of the tempered likelihood, which the model
    gives.  The worse the fit, the hotter it runs, and it cools as it explains the data.
    The model must know its C(T): see :class:`annealvi.model.Normalised`.

    Parameters
    ----------
    t_max : float, default=10.0
        T_M > 1.  It should lie above what the first fit needs: for Gaussian noise the
        variance of the data over that of the noise.
    grid : int, default=100
        M >= 2.
    prior : array-like of shape (grid,) or None, default=None
        :math:`\pi`, positive; None means uniform.
    damping : float, default=0.03
        log T moves by this fraction of the way at each step, in (0, 1].  Undamped (1), T
        follows the energy at once and the fit cools before it gains anything.
    start : float or None, default=None
        T of the first step, in [1, t_max]; None means that of q(y) = :math:`\pi`.
    final_fraction : float, default=0.25
        The last part of the planned steps, in [0, 1), that runs at exactly T = 1, so
        that the result is comparable with any other fit.

    Examples
    --------
    >>> from annealvi.temperature import Variational
    >>> Variational.as_printed().damping
    1.0

    References
    ----------
    Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS.
    """

    observes = True
    _parameter_constraints: ClassVar[dict] = {
        "t_max": [Interval(Real, 1, None, closed="neither")],
        "grid": [Interval(Integral, 2, None, closed="left")],
        "prior": [None, "array-like"],
        "damping": [Interval(Real, 0, 1, closed="right")],
        "start": [None, Interval(Real, 1, None, closed="left")],
        "final_fraction": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        t_max: float = 10.0,
        grid: int = 100,
        prior: ArrayLike | None = None,
        damping: float = 0.03,
        start: float | None = None,
        final_fraction: float = 0.25,
    ) -> None:
        self.t_max = t_max
        self.grid = grid
        self.prior = prior
        self.damping = damping
        self.start = start
        self.final_fraction = final_fraction

    @property
    def perturbs(self) -> bool:
        """Not undamped: that is coordinate ascent on Eq. 5, which random moves would lower."""
        return self.damping < 1

    @classmethod
    def as_printed(cls) -> Self:
        """As in the paper: 100 temperatures up to 10, undamped, learned to the last step."""
        return cls(t_max=10.0, grid=100, damping=1.0, final_fraction=0.0)

    def check(self) -> None:
        super().check()
        if self.start is not None and self.start > self.t_max:
            raise ValueError(
                "The 'start' parameter of Variational must be at most its 't_max'. "
                f"Got start={self.start!r} and t_max={self.t_max!r}."
            )
        if self.prior is None:
            return
        prior = np.asarray(self.prior)
        if prior.dtype.kind not in "fiu" or prior.shape != (self.grid,):
            raise ValueError(
                "The 'prior' parameter of Variational must be None or an array of numbers of "
                f"shape ({self.grid},), one for each temperature of the grid. Got shape "
                f"{prior.shape} and dtype {prior.dtype} instead."
            )
        wrong = prior[~(np.isfinite(prior) & (prior > 0))]
        if wrong.size:
            raise ValueError(
                "The 'prior' parameter of Variational must be positive and finite. "
                f"Got {wrong[0]} instead."
            )

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any, owner: str) -> None:
        if not isinstance(model, Normalised):
            raise ValueError(
                "A Variational temperature needs a model with a 'log_partition' method, the "
                "normaliser log C(T) of its tempered likelihood. This model has none: use "
                "'annealed' or a number as the temperature."
            )
        self._model = model
        #: The grid 1 = T_1 < ... < T_M.
        self.temperatures_ = np.geomspace(1.0, self.t_max, int(self.grid))
        self._inverses = 1.0 / self.temperatures_
        prior = np.ones(int(self.grid)) if self.prior is None else np.asarray(self.prior)
        log_prior = np.log(prior.astype(np.float64))
        self._log_prior = log_prior - logsumexp(log_prior)
        #: q(y = m), of shape (M,).
        self.posterior_ = np.exp(self._log_prior)
        self._b = 1.0 / self.start if self.start else float(self.posterior_ @ self._inverses)
        self._n_learning_steps = math.inf
        if n_steps is not None:
            self._n_learning_steps = n_steps - _ceil(self.final_fraction * n_steps)
        self._step = 0

    def inverse(self, step: int) -> float:
        if self.settled(step):
            return 1.0
        return min(1.0, self._b)

    def settled(self, step: int) -> bool:
        return step >= self._n_learning_steps

    def observe(self, local: LocalStep, scale: float) -> None:
        self._step += 1
        if self.settled(self._step - 1):
            return
        energy = np.nan if local.energy is None else scale * float(np.sum(local.energy))
        if not math.isfinite(energy):
            raise ValueError(
                f"A Variational temperature needs finite energies of {type(self._model).__name__}. "
                f"Got {local.energy!r}."
            )
        self.posterior_ = softmax(self._scores(energy))
        wanted = math.log(self.posterior_ @ self._inverses)
        self._b = math.exp((1.0 - self.damping) * math.log(self._b) + self.damping * wanted)

    def tempered_energy(self, energy: float) -> float:
        """E_q(y)[b_m L - log C(T_m)] - KL(q(y) || pi): the first terms of Eq. 5.

        Parameters
        ----------
        energy : float
            L, of all data.
        """
        return float(self.posterior_ @ self._scores(energy) + entr(self.posterior_).sum())

    def _scores(self, energy: float) -> NDArray[np.float64]:
        log_c = np.asarray(self._model.log_partition(self._inverses), dtype=np.float64)
        if log_c.shape != self._inverses.shape or not np.all(np.isfinite(log_c)):
            raise ValueError(
                f"'log_partition' of {type(self._model).__name__} must give one finite number "
                f"for each of {len(self._inverses)} inverse temperatures. Got {log_c!r}."
            )
        return self._log_prior + self._inverses * energy - log_c


#: What a string stands for as a `temperature` where the model has no kinds of its own.
KINDS: dict[str, Temperature] = {"annealed": Annealed()}


def as_temperature(value: Any, owner: str, kinds: Mapping[str, Temperature] = KINDS) -> Temperature:
    """The temperature object that a `temperature` parameter stands for, checked.

    Parameters
    ----------
    value : float, str or Temperature
        A number >= 1, the name of a kind, or an object.
    owner : str
        The estimator's name, for the messages.
    kinds : dict of str to Temperature
        What names stand for.
    """
    if isinstance(value, Temperature):
        value.check()
        return value
    if isinstance(value, str) and value in kinds:
        return clone(kinds[value])
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if 1 <= number < math.inf:
            return Fixed(number)
    raise ValueError(
        f"The 'temperature' parameter of {owner} must be a finite float in the range "
        f"[1.0, inf), a str among {set(kinds)} or an instance of "
        f"'annealvi.temperature.Temperature'. Got {value!r} instead."
    )


def _ceil(steps: float) -> int:
    """The next whole number, but 7.000000000000001 steps are 7."""
    return math.ceil(round(steps, 9))
