r"""One temperature for all data, which is learned from the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from annealvi._kernels import special
from annealvi.checks import GRID_SIZE, TINY, Interval, as_array, check_numbers, checked
from annealvi.exceptions import BadParameter, warn_user
from annealvi.files.schema import Array, Flag, Integer, Number, Optional, Schema, damaged
from annealvi.model import UNTEMPERED, LocallyNormalised, LocalStep, Normalised, Tempering
from annealvi.partition.result import LogPartition
from annealvi.temperature.base import Temperature, whole_steps

#: By default, damping is such that log T can fall by a factor of exp(12) over the planned steps.
DEFAULT_RELAXATION = 12.0


class Learned(Temperature):
    """Base class of temperatures that first learn T from the data and then run at T = 1.

    A subclass has the parameters `damping`, `energy_average`, `final_fraction` and `prior`.  It
    sets `_inverses` and `_log_prior` in `_set_grid`.
    """

    learns = True
    damping: float | None
    energy_average: float
    final_fraction: float
    _inverses: NDArray
    _log_prior: NDArray
    #: log C of one unit (a word or a datum) over the prior, if the model computes it.
    _log_c_unit: NDArray | None
    _step = 0
    _n_learning_steps = math.inf

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """True while T is being learned."""
        return not self.settled(self._step)

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        """Prepare a fit: its learning steps, the damping, the grid and the model."""
        n_planned = max(1, whole_steps(steps_per_pass) if n_steps is None else n_steps)
        #: A warning is given if T is not near 1 after this step.
        self._check_after: float = n_planned
        if n_steps is not None:
            self._n_learning_steps = n_steps - whole_steps(self.final_fraction * n_steps)
            self._check_after = self._n_learning_steps
        damping = self.damping
        if damping is None:
            # 1 - exp(-12 / n), so that (1 - damping)^n is exp(-12)
            damping = -math.expm1(-DEFAULT_RELAXATION / n_planned)
        self._damping = damping
        #: Estimated sums over all data, averaged over minibatches; empty before the first step.
        self._totals: NDArray = np.empty(0)
        self._set_grid()
        self.attach(model)

    def _set_grid(self) -> None:
        """Set the grid and the logarithm of the prior over it."""
        raise NotImplementedError

    def settled(self, step: int) -> bool:
        """Whether T is 1 from this step on."""
        return step >= self._n_learning_steps

    def _learns(self) -> bool:
        """Count the step that was just made; return whether T is learned from it."""
        self._step += 1
        return not self.settled(self._step - 1)

    def _average(self, sums: list[Any], scale: float) -> None:
        """Include sums over a batch in the averages.  Sums over all data replace the averages."""
        totals = scale * np.hstack(sums)
        if len(self._totals) and scale != 1:  # a minibatch, and not the first one
            totals = self._totals + self.energy_average * (totals - self._totals)
        self._totals = totals

    def _check_totals(self, n_totals: int, place: str) -> None:
        """Raise ValueError if a file contains another number of averages."""
        if len(self._totals) != n_totals:
            raise damaged(f"{place}._totals", f"{n_totals} numbers", self._totals)


def geometric_grid(t_max: float, size: int) -> NDArray:
    """Temperatures from 1 to t_max with evenly spaced logarithms."""
    grid = special.exp(np.linspace(0.0, math.log(t_max), size))
    grid[-1] = t_max  # exp may round
    return grid


def log_weights(prior: ArrayLike | None, size: int) -> NDArray:
    """The logarithm of a normalised prior over a grid.  None means a uniform prior."""
    log_prior = special.log(np.ones(size) if prior is None else np.asarray(prior, dtype=float))
    return log_prior - special.log_sum_exp(log_prior)


#: What a file contains of every learned temperature.
LEARNED = {
    "_n_learning_steps": Number(0.0, finite=False),
    "_check_after": Number(0.0),
    "_step": Integer(),
    "_damping": Number(0.0, 1.0),
    "_totals": Array((None,)),
}

DAMPING_IF_EXACT = 0.03
#: If T is above this value at the end of learning, a warning may be given.
COLD = 1.1


@dataclass(eq=False, repr=False)
class Variational(Learned):
    r"""A temperature learned from the data: T is a latent variable on a grid.

    The grid T_1 = 1 < ... < T_M is evenly spaced in log T, and T = T_y for a latent number y.  Let
    :math:`\pi` be the prior of y, and r its approximate posterior q(y).  Each step computes

    .. math::
       r_m &\propto \pi_m \exp(b_m L - \log C(T_m)) \\
       \log b &\leftarrow (1 - d) \log b + d \log \sum_m r_m b_m,

    where d is the damping, b is 1/T, and C(T) is the normaliser of the tempered likelihood.  L is
    the energy E_q[log p(x, z | parameters)] of all data, without the base measure.  T is higher if
    the model explains the data badly, and falls as the fit improves.

    For topic models the normaliser C(T) depends on global variables, such as the topics.  The paper
    averages C(T) over the prior of these variables.  T then reaches 1 only if L is at least its
    mean for data drawn from the *prior*, which is d log C / db at T = 1.  With sparse priors, L of
    text is never that large, and T stays high.  With other priors T falls to 1 in the first steps.
    By default C(T) is computed at the current q.  T then approaches 1 when the data are as probable
    as data drawn from the model.

    Parameters
    ----------
    t_max : float, default=10.0
        The highest temperature T_M > 1.  For Gaussian noise it should be larger than the variance
        of the data divided by the variance of the noise.
    grid : int or array-like of shape (M,), default=100
        Number M >= 2 of temperatures, or an array of temperatures that starts at 1 and increases.
        With an array, `t_max` is not used.
    prior : array-like of shape (M,) or None, default=None
        The prior :math:`\pi`, positive numbers.  None means uniform.
    partition : {"posterior", "prior"}, LogPartition or array-like, default="posterior"
        How log C(T) is computed.  ``"posterior"`` uses the current q.  ``"prior"`` averages over
        the prior; for topic models this is a lower bound, N log E S.  N is the number of words, S
        the sum of (theta_k beta_kv)^b over topics k and words v, and E the prior mean.  At T = 1
        the bound has the same derivative as log C(T).  A LogPartition or an array of shape (M,)
        contains log C(T) for each T of the grid; see :func:`annealvi.partition.log_partition`.
        Models with an exact log C(T), such as mixtures, use it for ``"posterior"`` and ``"prior"``.
    damping : float or None, default=None
        At each step log T moves by this fraction of the distance to its new value, in (0, 1].  With
        1, T takes its new value immediately and falls too early to help.  None means 0.03 for
        models whose log C(T) is exact, and 1 - exp(-12 / n) for topic models, where n is the number
        of planned steps (in ``partial_fit``, of the steps for `total_samples` documents).
    start : float or None, default=None
        T of the first step, in [1, T_M].  For topic models None means the mean of T under
        :math:`\pi`.  For models whose log C(T) is exact, None means the inverse of the mean of
        1/T under :math:`\pi`.
    monotone : bool or None, default=None
        If True, T may only fall; if False, it may also rise.  None means False for models whose
        log C(T) is exact, and True for topic models.
    energy_average : float, default=0.1
        The weight, in (0, 1], of the newest minibatch in the averages of L and log C(T).  Steps
        that use all data are not averaged.
    final_fraction : float, default=0.25
        The last steps have exactly T = 1; this is their fraction of the planned steps, in [0, 1).
        They are steps of plain variational inference.

    Examples
    --------
    >>> from annealvi.temperature import Variational
    >>> Variational.as_printed().damping
    1.0

    References
    ----------
    Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS.
    """

    SCHEMA = Schema(
        **LEARNED,
        posterior_=Array(("M",)),
        _path=Array((None, "M"), np.float32),
        _b=Number(TINY, 1.0 + 1e-9),  # rounding may make b larger than 1
        _falls=Flag(),  # whether T may only fall
        _log_c_unit=Optional(Array(("M",))),
    )
    _parameter_constraints: ClassVar[dict] = {
        "t_max": [Interval(Real, 1, None, closed="neither")],
        "grid": [*GRID_SIZE, "array-like"],
        "prior": [None, "array-like"],
        "partition": [StrOptions({"posterior", "prior"}), LogPartition, "array-like"],
        "damping": [None, Interval(Real, 0, 1, closed="right")],
        "start": [None, Interval(Real, 1, None, closed="left")],
        "monotone": [None, "boolean"],
        "energy_average": [Interval(Real, 0, 1, closed="right")],
        "final_fraction": [Interval(Real, 0, 1, closed="left")],
    }

    t_max: float = 10.0
    grid: int | ArrayLike = 100
    _: KW_ONLY
    prior: ArrayLike | None = None
    partition: str | LogPartition | ArrayLike = "posterior"
    damping: float | None = None
    start: float | None = None
    monotone: bool | None = None
    energy_average: float = 0.1
    final_fraction: float = 0.25

    @property
    def perturbs(self) -> bool:  # type: ignore[override]
        """False without damping: the steps are coordinate ascent, which random moves disturb."""
        return self.damping is None or self.damping < 1

    @classmethod
    def as_printed(cls, partition: str | LogPartition | ArrayLike = "prior") -> Self:
        r"""Return the temperature of the paper: no damping, and C(T) averaged over the prior.

        T is learned until the last step.  The grid is the paper's: 100 temperatures from 1 to 10,
        evenly spaced in log T.  q(y) is uniform at first.

        Parameters
        ----------
        partition : {"prior", "posterior"}, LogPartition or array-like, default="prior"
            How log C(T) is computed; see :class:`Variational`.  For topic models ``"prior"``
            differs from the paper's Eq. 18.  ``"prior"`` uses a bound that needs no random draws.
            It tempers words together with their topic assignments, as the updates of LDA do.  Eq.
            18 is a Monte Carlo estimate, in which assignments are summed out.  To use Eq. 18,
            compute a LogPartition with ``form="collapsed"`` and ``"monte-carlo"`` on the same grid,
            as in the example.  With Eq. 18 and 1,000 abstracts, T rises to 10 after the first step
            and stays there (docs/record/temperatures.md).

        Examples
        --------
        Eq. 18 for documents of 40 words:

        >>> from annealvi.models.lda_prior import LDAPrior
        >>> from annealvi.partition import exponential_grid, log_partition
        >>> prior = LDAPrior(
        ...     2, 20, [40] * 3, doc_topic_prior=1.0, topic_word_prior=1.0, form="collapsed"
        ... )
        >>> log_c = log_partition(
        ...     prior, exponential_grid(10, 100), "monte-carlo", n_samples=1000, random_state=0
        ... )
        >>> Variational.as_printed(log_c).partition.method
        'monte-carlo'
        """
        uniform = 1 / float(np.mean(1 / geometric_grid(t_max=10.0, size=100)))
        return cls(
            partition=partition,
            damping=1.0,
            start=uniform,
            monotone=False,
            energy_average=1.0,
            final_fraction=0.0,
        )

    @checked
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        super().check()
        grid = self._grid()
        t_max = float(grid[-1])
        if self.start is not None and self.start > t_max:
            raise BadParameter("start", f"at most t_max={t_max!r}", self.start)
        if self.prior is not None:
            check_numbers(self.prior, "prior", grid.shape, positive=True)
        if not isinstance(self.partition, str | LogPartition):
            check_numbers(self.partition, "partition", grid.shape)

    def _grid(self) -> NDArray:
        """The grid of temperatures 1 = T_1 < ... < T_M."""
        if isinstance(self.grid, Integral):
            return geometric_grid(float(self.t_max), int(self.grid))
        grid = as_array(self.grid)
        is_numeric = grid.dtype.kind in "fiu" and grid.ndim == 1 and len(grid) >= 2
        is_increasing = is_numeric and np.all(np.isfinite(grid)) and np.all(np.diff(grid) > 0)
        if not is_increasing or grid[0] != 1:
            raise BadParameter(
                "grid",
                must_be="an int in the range [2, inf) or an array of at least 2 finite "
                "temperatures that starts at 1 and increases",
                got=self.grid,
            )
        return grid.astype(float)

    def _set_grid(self) -> None:
        """Set the grid of temperatures and the logarithm of its prior."""
        #: The grid 1 = T_1 < ... < T_M.
        self.temperatures_ = self._grid()
        self._inverses = 1.0 / self.temperatures_
        self._log_prior = log_weights(self.prior, len(self._inverses))

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        """Prepare a fit: q(y), 1/T of the first step, and whether T may only fall."""
        super()._prepare(n_steps, steps_per_pass, model)
        #: q(y = m), of shape (M,).
        self.posterior_ = special.exp(self._log_prior)
        self._path: list[NDArray[np.float32]] = []
        # the best start and damping differ between topic models and mixtures: components of a
        # mixture are switched off if T is high at the start (docs/record/evidence.md)
        is_topic_model = isinstance(model, LocallyNormalised)
        if self.start is not None:
            self._b = 1.0 / self.start
        elif is_topic_model:
            self._b = 1.0 / float(np.sum(self.posterior_ * self.temperatures_))
        else:
            self._b = float(np.sum(self.posterior_ * self._inverses))
        #: Whether T may only fall.
        self._falls = is_topic_model if self.monotone is None else self.monotone
        if self.damping is None and not is_topic_model:
            self._damping = DAMPING_IF_EXACT

    def state_dict(self) -> dict[str, Any]:
        """The state for a file; the path of q(y) becomes one array."""
        return super().state_dict() | {"_path": self.path()}

    def _sizes(self, model: Any) -> dict[str, int]:
        """The number M of temperatures."""
        return {"M": len(self._grid())}

    def _resume(self, model: Any, place: str) -> None:
        """Continue from a file; `place` names its values in errors."""
        self._set_grid()
        self._path = list(self._path)
        size = len(self._inverses)
        log_c_unit = self._log_c_unit  # of the file; `_attach` would compute it again
        # priors may have been learned since the plan, so they are not compared
        self._attach(self._model if model is None else model, {})
        self._log_c_unit = log_c_unit
        from_batches = self._log_c is None and not self._model_computes_log_c
        # L, the number of units and, if batches compute it, log C
        self._check_totals((2 + size * from_batches) if self._path else 0, place)

    def attach(self, model: Any) -> None:
        """Take log C(T) from this model, or check given values against its hyperparameters."""
        self._attach(model, model.hyperparameters() if hasattr(model, "hyperparameters") else {})

    def _attach(self, model: Any, hyperparameters: Mapping[str, Any]) -> None:
        """Use log C(T) of this model, or given values if they fit these hyperparameters."""
        is_per_batch = isinstance(model, LocallyNormalised)
        has_values = not isinstance(self.partition, str)
        if isinstance(self.partition, LogPartition):
            self.partition.check(self.temperatures_, hyperparameters)
        elif not (has_values or is_per_batch or isinstance(model, Normalised)):
            raise ValueError(
                "A Variational temperature needs a model with a 'log_partition' method, which "
                "normalises the tempered likelihood. This model has none. Use 'annealed' or a "
                "number as the temperature, or pass 'partition'."
            )
        # a LogPartition contains the values; an array is the values
        log_c = getattr(self.partition, "values", self.partition)
        self._model = model
        self._model_computes_log_c = not (has_values or is_per_batch)
        self._log_c = np.asarray(log_c, dtype=float) if has_values else None
        self._log_c_unit = None
        if is_per_batch:
            # log C at the current q is computed with each batch; over the prior it is computed
            # for the number of words in the batch
            at_q = not has_values and self.partition == "posterior"
            model.normalise_at(self._inverses if at_q else None)
            if not (has_values or at_q):
                self._log_c_unit = model.log_mean_unit(self._inverses)

    def inverse(self, step: int) -> float:
        """1/T of a step; the first step has number 0."""
        if self.settled(step):
            return 1.0
        return min(1.0, self._b)

    def observe(self, local: LocalStep, scale: float) -> None:
        """Update q(y) and T from the expected log-likelihood L of a step.

        A step of variational tempering (Mandt et al. 2016, Eqs. 8 and 9) consists of a local step,
        a global step and this update.  The paper's update has no damping.
        """
        if not self._learns():
            return
        energy = np.nan if local.energy is None else float(np.sum(local.energy))
        if not math.isfinite(energy):
            raise ValueError(
                f"The expected log-likelihood of {type(self._model).__name__} (`energy` of a local "
                f"step) must be finite, so that T can be learned. Got {local.energy!r}."
            )
        n_units = local.n_units
        if n_units is None:
            n_units = float(getattr(self._model, "n_samples", 1))
        if n_units == 0:
            return  # there is nothing to learn from a batch without words
        log_c: Any = []  # no average is needed if log C is known or the model computes it
        if self._log_c_unit is not None:
            log_c = n_units * self._log_c_unit
        elif self._log_c is None and not self._model_computes_log_c:
            log_c = local.log_partition
        self._average([energy, n_units, log_c], scale)
        log_weights_of_grid = self._scores(self._totals[0], self._current_log_c())
        self.posterior_ = special.softmax(log_weights_of_grid)
        self._path.append(self.posterior_.astype(np.float32))
        log_target = math.log(np.sum(self.posterior_ * self._inverses))
        damped_inverse = math.exp(
            (1.0 - self._damping) * math.log(self._b) + self._damping * log_target
        )
        self._b = max(self._b, damped_inverse) if self._falls else damped_inverse
        if self._step == self._check_after:
            self._warn_if_hot(math.exp(-log_target), local.unit)

    def path(self) -> NDArray[np.float32]:
        """q(y) after each step in which T was learned, of shape (n_steps, M)."""
        return np.array(self._path, dtype=np.float32).reshape(-1, len(self.posterior_))

    def tempered_energy(self, energy: float, log_partition: NDArray | None = None) -> float:
        """Compute E_q(y)[b_m L - log C(T_m)] - KL(q(y) || pi), the first terms of Eq. 5.

        Parameters
        ----------
        energy : float
            The expected log-likelihood L of all data.
        log_partition : ndarray of shape (M,), optional
            log C(T) of all data.  None means the values from the last update of T.
        """
        log_c = self._current_log_c() if log_partition is None else log_partition
        scores = self._scores(energy, log_c)
        return float(np.sum(self.posterior_ * scores) + special.entr(self.posterior_).sum())

    def learned(self) -> Tempering:
        """The last temperature before the final steps at T = 1; 1 if T was never learned."""
        return Tempering(min(1.0, self._b)) if self._path else UNTEMPERED

    def _current_log_c(self) -> NDArray:
        """log C(T_m) of all data."""
        if self._log_c is not None:
            return self._log_c
        if not self._model_computes_log_c:
            return self._totals[2:]  # the averages after L and the number of units
        log_c = np.asarray(self._model.log_partition(self._inverses), dtype=float)
        if log_c.shape != self._inverses.shape or not np.all(np.isfinite(log_c)):
            raise ValueError(
                f"'log_partition' of {type(self._model).__name__} must return one finite number "
                f"for each of {len(self._inverses)} inverse temperatures. Got {log_c!r}."
            )
        return log_c

    def _scores(self, energy: float, log_c: NDArray) -> NDArray:
        """log pi_m + b_m L - log C(T_m), the unnormalised log q(y = m), up to a constant."""
        # relative to T = 1, where a normaliser at the current q may differ from 1
        return self._log_prior + self._inverses * energy - (log_c - log_c[0])

    def _warn_if_hot(self, target: float, unit: str) -> None:
        """Warn if the energy of the data keeps T from falling to 1.

        `target` is the T to which the last update moved, and `unit` what the data consist of.
        """
        if self._model_computes_log_c:
            return  # log C is exact, and T above 1 only means more noise than assumed
        energy, n_units = self._totals[:2]
        if min(target, 1 / self._b) <= COLD or not n_units:
            return
        log_c = self._current_log_c()
        # T_1 is preferred to T_m if -L (1 - b_m) <= log C(T_m) - log C(T_1)
        threshold = np.min((log_c[1:] - log_c[0]) / (1 - self._inverses[1:])) / n_units
        if -energy / n_units <= threshold:
            return  # T is still falling
        has_values = not isinstance(self.partition, str)
        source = "the given 'partition'" if has_values else f"partition={self.partition!r}"
        advice = "Make more steps, or use an annealed temperature."
        if has_values or self.partition == "prior":
            advice = "Use partition='posterior', a less sparse prior or an annealed temperature."
        warn_user(
            f"The learned temperature did not cool to 1. At T = {1 / self._b:.3g} the expected "
            f"log-likelihood is {energy / n_units:.4g} nats per {unit}, but with {source}, T falls "
            f"to 1 only if this log-likelihood is at least {-threshold:.4g}. {advice}",
            ConvergenceWarning,
        )
