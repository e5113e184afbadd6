r"""A single temperature for all data, learned from the data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from annealvi.checks import Interval, as_array
from annealvi.files import Node
from annealvi.model import UNTEMPERED, LocallyNormalised, LocalStep, Normalised, Tempering
from annealvi.partition.result import LogPartition
from annealvi.temperature.base import Temperature, whole_steps
from annealvi.threads import shallow

#: Over the planned steps log T relaxes by a factor exp(-12), unless `damping` is given.
DEFAULT_RELAXATION = 12.0


class Learned(Temperature):
    """Base class of temperatures that first learn T from the data and then run at T = 1.

    A subclass has the parameters `damping` and `final_fraction`.
    """

    learns = True
    damping: float | None
    final_fraction: float
    _step = 0
    _n_learning_steps = math.inf

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """True as long as T is still learned."""
        return not self.settled(self._step)

    def _prepare_learning(
        self, n_steps: int | None, steps_per_pass: float, damping: float | None = None
    ) -> None:
        """Plan the learning steps, and choose a damping.

        The user's damping is used if there is one, else the argument.  If both are None, the
        damping follows from the number of steps.
        """
        planned = max(1, whole_steps(steps_per_pass) if n_steps is None else n_steps)
        self._n_learning_steps = math.inf
        #: If T has not cooled after this step, a warning is given.
        self._check_after: float = planned
        if n_steps is not None:
            self._n_learning_steps = n_steps - whole_steps(self.final_fraction * n_steps)
            self._check_after = self._n_learning_steps
        self._step = 0
        if damping is None:
            damping = -math.expm1(-DEFAULT_RELAXATION / planned)
        self._damping = damping if self.damping is None else self.damping

    def _learning_state(self) -> dict[str, Any]:
        """The plan and the step, as a tree."""
        return {
            "learning_steps": self._n_learning_steps,
            "check_after": self._check_after,
            "step": self._step,
            "damping": self._damping,
        }

    def _load_learning(self, node: Node) -> None:
        """Take over what :meth:`_learning_state` returned."""
        steps = node.number("learning_steps", 0.0, finite=False)
        if not steps >= 0:
            raise node.error("learning_steps", "a number of steps", steps)
        self._n_learning_steps = steps
        self._check_after = node.number("check_after", 0.0)
        self._step = node.integer("step")
        self._damping = node.number("damping", 0.0, 1.0)

    def settled(self, step: int) -> bool:
        return step >= self._n_learning_steps

    def _learns(self) -> bool:
        """Count the step just made; return whether it is a learning step."""
        self._step += 1
        return not self.settled(self._step - 1)


class Running:
    """Exponential averages over minibatches.

    A step that sees all data replaces the averages by its own values.
    """

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.values: list[Any] = []

    def add(self, *values: Any, scale: float) -> list[Any]:
        """Add sums over a batch and return the averages, scaled to the population.

        `scale` is the number of data in the population over the number in the batch.
        """
        scaled = [scale * value for value in values]
        if not self.values or scale == 1:
            self.values = scaled
        else:
            pairs = zip(self.values, scaled, strict=True)
            self.values = [old + self.weight * (new - old) for old, new in pairs]
        return self.values

    def state_dict(self) -> dict[str, Any]:
        """The averages, as a tree."""
        return {str(number): value for number, value in enumerate(self.values)}

    def load_state_dict(self, node: Node, *shapes: tuple[int, ...]) -> None:
        """Take over averages."""
        self.values = []
        if "0" in node:
            self.values = [
                node.array(str(i), shape, np.float64).copy() if shape else node.number(str(i))
                for i, shape in enumerate(shapes)
            ]


def check_prior_weights(value: ArrayLike | None, size: int, owner: str) -> None:
    """Raise ValueError unless a prior is None or has a positive number for each temperature."""
    if value is None:
        return
    prior = as_array(value)
    if prior.dtype.kind not in "fiu" or prior.shape != (size,):
        raise ValueError(
            f"The 'prior' parameter of {owner} must be None or an array of numbers of "
            f"shape ({size},), one for each temperature of the grid. Got shape "
            f"{prior.shape} and dtype {prior.dtype} instead."
        )
    wrong = prior[~(np.isfinite(prior) & (prior > 0))]
    if wrong.size:
        raise ValueError(
            f"The 'prior' parameter of {owner} must be positive and finite. Got {wrong[0]} instead."
        )


DAMPING_IF_EXACT = 0.03
#: The least 1/T in a file, and how far rounding may take it above 1.
TINY, ROUNDING = float(np.finfo(np.float64).tiny), 1e-9
#: A temperature above this at the end of learning has not cooled.
COLD = 1.1


class Variational(Learned):
    r"""A temperature learned from the data: T is a latent variable on a grid.

    The grid T_1 = 1 < ... < T_M is evenly spaced in log T.  With the prior :math:`\pi` and
    q(y) = r over the grid, each step computes

    .. math::
       r_m &\propto \pi_m \exp(b_m L - \log C(T_m)) \\
       \log b &\leftarrow (1 - d) \log b + d \log \sum_m r_m b_m,

    where d is the damping, L the energy E_q[log p(x, z | globals)] of all data without the
    base measure, and C(T) the normaliser of the tempered likelihood.  The worse the fit, the
    higher T; it falls as the model explains the data better.

    For topic models C(T) depends on the global variables.  The paper averages it over their
    prior.  T then reaches 1 only if the data are as probable as what the *prior* would
    generate, :math:`-L \le H(1)` with :math:`H(T) = -d \log C / db`.  With sparse priors text
    is never that probable, and T stays high.  With other priors T drops to 1 at once.  By
    default C(T) is computed at the current q.  T then approaches 1 as the model explains the
    data as well as data that it generates itself.

    Parameters
    ----------
    t_max : float, default=10.0
        T_M > 1.  For Gaussian noise it should be larger than the variance of the data divided
        by that of the noise.
    grid : int or array-like of shape (M,), default=100
        M >= 2, or the temperatures themselves, which start at 1 and increase (`t_max` is
        then not used).
    prior : array-like of shape (M,) or None, default=None
        :math:`\pi`, positive; None means uniform.
    partition : {"posterior", "prior"}, LogPartition or array-like, default="posterior"
        How log C(T) is computed.  ``"posterior"``: at the current q.  ``"prior"``: over the
        prior; for topic models this is N log E S, Jensen's tighter bound, which has a closed
        form and the exact slope at T = 1.  A LogPartition or an array of shape (M,): values
        that were computed before on the same grid, see
        :func:`annealvi.partition.log_partition`.  Models with one exact form, such as the
        mixtures, use it for both names.
    damping : float or None, default=None
        At each step log T moves by this fraction of the way to its new value, in (0, 1].
        None means 1 - exp(-12 / S) for topic models, with S the planned steps (for
        ``partial_fit`` the steps in a pass over ``total_samples``), and 0.03 for models whose
        log C(T) is exact.  Without damping (1) T follows the energy at once, and the fit
        cools before it gains anything.
    start : float or None, default=None
        T of the first step, in [1, T_M].  None means the mean of T under :math:`\pi` for
        topic models, and the inverse of the mean of 1/T under q(y) = :math:`\pi` for models
        whose log C(T) is exact.
    monotone : bool or None, default=None
        Whether T may only fall.  None means True, except for models whose log C(T) is exact:
        there T follows the fit in both directions.
    energy_average : float, default=0.1
        Weight, in (0, 1], of the newest minibatch in the averages of L and log C(T).  Steps
        that see all data are not averaged.
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

    _parameter_constraints: ClassVar[dict] = {
        "t_max": [Interval(Real, 1, None, closed="neither")],
        "grid": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "prior": [None, "array-like"],
        "partition": [StrOptions({"posterior", "prior"}), LogPartition, "array-like"],
        "damping": [None, Interval(Real, 0, 1, closed="right")],
        "start": [None, Interval(Real, 1, None, closed="left")],
        "monotone": [None, "boolean"],
        "energy_average": [Interval(Real, 0, 1, closed="right")],
        "final_fraction": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        t_max: float = 10.0,
        grid: int | ArrayLike = 100,
        *,
        prior: ArrayLike | None = None,
        partition: str | LogPartition | ArrayLike = "posterior",
        damping: float | None = None,
        start: float | None = None,
        monotone: bool | None = None,
        energy_average: float = 0.1,
        final_fraction: float = 0.25,
    ) -> None:
        self.t_max = t_max
        self.grid = grid
        self.prior = prior
        self.partition = partition
        self.damping = damping
        self.start = start
        self.monotone = monotone
        self.energy_average = energy_average
        self.final_fraction = final_fraction

    @property
    def perturbs(self) -> bool:
        """False if undamped: that is coordinate ascent on Eq. 5, and random moves lower it."""
        return self.damping is None or self.damping < 1

    @classmethod
    def as_printed(cls, partition: str | LogPartition | ArrayLike = "prior") -> Self:
        r"""The temperature of the paper: C(T) over the prior, q(y) uniform at first, undamped.

        It learns until the last step.  The grid is the paper's: 100 temperatures from 1 to 10,
        evenly spaced in log T.

        Parameters
        ----------
        partition : {"prior", "posterior"}, LogPartition or array-like, default="prior"
            How log C(T) is computed, as in the class.  ``"prior"`` is not what the paper prints
            for topic models.  It is Jensen's bound N log E S of the form that the updates of
            LDA temper, which has topics explicit and needs no draws.  Eq. 18 is a Monte Carlo
            estimate in the form that has topics summed out.  To use it, compute a LogPartition
            with ``form="collapsed"`` and ``"monte-carlo"`` on the same grid, see Examples.
            On 1,000 abstracts T then jumps to 10 after the first step and stays there
            (docs/temperatures.md).

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
        uniform = 1 / float(np.mean(1 / np.geomspace(1, 10, 100)))
        return cls(
            partition=partition,
            damping=1.0,
            start=uniform,
            monotone=False,
            energy_average=1.0,
            final_fraction=0.0,
        )

    def check(self) -> None:
        super().check()
        temperatures = self._grid()
        if self.start is not None and self.start > temperatures[-1]:
            raise ValueError(
                "The 'start' parameter of Variational must be at most its 't_max'. "
                f"Got start={self.start!r} and t_max={float(temperatures[-1])!r}."
            )
        check_prior_weights(self.prior, len(temperatures), "Variational")
        if not isinstance(self.partition, str | LogPartition):
            self._check_array(as_array(self.partition), len(temperatures))

    def _grid(self) -> NDArray[np.float64]:
        """1 = T_1 < ... < T_M."""
        if isinstance(self.grid, Integral):
            return np.geomspace(1.0, float(self.t_max), int(self.grid))
        grid = as_array(self.grid)
        if grid.dtype.kind not in "fiu" or grid.ndim != 1 or len(grid) < 2:
            raise ValueError(
                "The 'grid' parameter of Variational must be an int in the range [2, inf) or an "
                f"array of at least 2 temperatures. Got {self.grid!r} instead."
            )
        if grid[0] != 1 or not np.all(np.isfinite(grid)) or np.any(np.diff(grid) <= 0):
            raise ValueError(
                "The temperatures in the 'grid' parameter of Variational must start at 1, "
                f"increase and be finite. Got {self.grid!r} instead."
            )
        return grid.astype(np.float64)

    @staticmethod
    def _check_array(values: NDArray, size: int) -> None:
        if values.dtype.kind not in "fiu" or values.shape != (size,):
            raise ValueError(
                "The 'partition' parameter of Variational must be 'posterior', 'prior', a "
                f"LogPartition or an array of numbers of shape ({size},), log C at each "
                f"temperature of the grid. Got shape {values.shape} and dtype {values.dtype} "
                "instead."
            )
        if not np.all(np.isfinite(values)):
            raise ValueError(
                "The 'partition' parameter of Variational must be finite. "
                f"Got {values[~np.isfinite(values)][0]} instead."
            )

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any, owner: str) -> None:
        self._prepare_grid()
        #: q(y = m), of shape (M,).
        self.posterior_ = np.exp(self._log_prior)
        self._path: list[NDArray[np.float32]] = []
        # the best start differs between topic models and mixtures, whose components a hot
        # start switches off (docs/evidence.md)
        topics = isinstance(model, LocallyNormalised)
        if self.start is not None:
            self._b = 1.0 / self.start
        elif topics:
            self._b = 1.0 / float(self.posterior_ @ self.temperatures_)
        else:
            self._b = float(self.posterior_ @ self._inverses)
        self._falls = topics if self.monotone is None else self.monotone
        self._prepare_learning(n_steps, steps_per_pass, None if topics else DAMPING_IF_EXACT)
        self._running = Running(self.energy_average)
        self.attach(model)

    def _prepare_grid(self) -> None:
        #: The grid 1 = T_1 < ... < T_M.
        self.temperatures_ = self._grid()
        self._inverses = 1.0 / self.temperatures_
        size = len(self.temperatures_)
        prior = np.ones(size) if self.prior is None else np.asarray(self.prior)
        log_prior = np.log(prior.astype(np.float64))
        self._log_prior = log_prior - logsumexp(log_prior)

    def state_dict(self) -> dict[str, Any]:
        return self._learning_state() | {
            "posterior": self.posterior_,
            "path": self.path(),
            "inverse": self._b,
            "falls": self._falls,
            "running": self._running.state_dict(),
            "log_c_unit": self._log_c_unit,
        }

    def load_state_dict(self, node: Node, *, model: Any = None) -> None:
        self._validate_params()
        size = int(self.grid) if isinstance(self.grid, Integral) else len(as_array(self.grid))
        # before a grid of the same size is made
        self.posterior_ = node.array("posterior", (size,), np.float64).copy()
        self.check()
        self._prepare_grid()
        self._path = list(node.array("path", (None, size), np.float32).copy())
        self._b = node.number("inverse", TINY, 1.0 + ROUNDING)
        self._falls = node.boolean("falls")
        self._load_learning(node)
        if model is not None:
            self._attach(model, {})  # priors may have been learned since the plan
        self._log_c_unit = None
        if not node.is_none("log_c_unit"):
            self._log_c_unit = node.array("log_c_unit", (size,), np.float64).copy()
        self._running = Running(self.energy_average)
        from_batches = self._log_c is None and not self._asks
        shapes = ((), (), (size,)) if from_batches else ((), ())
        self._running.load_state_dict(node.node("running"), *shapes)
        if self._path and not self._running.values:
            raise node.error("running", "there after a step that learned", None)

    def attach(self, model: Any) -> None:
        self._attach(model, model.hyperparameters() if hasattr(model, "hyperparameters") else {})

    def _attach(self, model: Any, facts: Mapping[str, Any]) -> None:
        """Ask this model for log C(T), or use one that was made for these hyperparameters."""
        known: NDArray[np.float64] | None = None  # log C, if it is known beforehand
        of_unit: NDArray[np.float64] | None = None  # log C of one word, if it is known
        asks = wanted = False  # whether to ask the model at each step; whether batches bring it
        if isinstance(self.partition, LogPartition):
            self.partition.check(self._inverses, facts, type(self).__name__)
            known = np.asarray(self.partition.values, dtype=np.float64)
        elif not isinstance(self.partition, str):
            known = np.asarray(self.partition, dtype=np.float64)
        elif isinstance(model, LocallyNormalised):
            wanted = self.partition == "posterior"
            of_unit = None if wanted else model.log_mean_unit(self._inverses)
        elif isinstance(model, Normalised):
            asks = True
        else:
            raise ValueError(
                "A Variational temperature needs a model with a 'log_partition' method, the "
                "normaliser log C(T) of its tempered likelihood. This model has none: use "
                "'annealed' or a number as the temperature, or give 'partition'."
            )
        if isinstance(model, LocallyNormalised):
            model.normalise_at(self._inverses if wanted else None)
        self._model, self._log_c, self._log_c_unit, self._asks = model, known, of_unit, asks

    def inverse(self, step: int) -> float:
        if self.settled(step):
            return 1.0
        return min(1.0, self._b)

    def observe(self, local: LocalStep, scale: float) -> None:
        """Update q(y) and T from the energy of a step.

        With the local and the global step these are the updates of variational tempering
        (Mandt et al. 2016, Eqs. 6 to 9), with the damping added.
        """
        if not self._learns():
            return
        energy = np.nan if local.energy is None else float(np.sum(local.energy))
        if not math.isfinite(energy):
            raise ValueError(
                f"A Variational temperature needs finite energies of {type(self._model).__name__}. "
                f"Got {local.energy!r}."
            )
        n_units = local.n_units
        if n_units is None:
            n_units = float(getattr(self._model, "n_samples", 1))
        if n_units == 0:
            return  # there is nothing to learn from a batch without words
        log_c = self._log_partition(local)
        total = self._running.add(energy, n_units, *([] if log_c is None else [log_c]), scale=scale)
        scores = self._scores(total[0], self._current_log_c())
        weights = np.exp(scores - scores.max())  # softmax; SciPy's has more overhead
        self.posterior_ = weights / weights.sum()
        self._path.append(self.posterior_.astype(np.float32))
        wanted = math.log(self.posterior_ @ self._inverses)
        b = math.exp((1.0 - self._damping) * math.log(self._b) + self._damping * wanted)
        self._b = max(self._b, b) if self._falls else b
        if self._step == self._check_after:
            self._warn_if_hot(math.exp(-wanted), local.unit)

    def copy(self, model: Any) -> Self:
        """Return a copy that does not learn with this one; steps replace arrays, not values.

        Parameters
        ----------
        model : Model
            A copy of the model that this temperature is attached to.
        """
        copied = shallow(self)
        copied._path, copied._running = self._path.copy(), shallow(self._running)
        copied._model = model
        return copied

    def path(self) -> NDArray[np.float32]:
        """q(y) after each step that learned, of shape (n_steps, M)."""
        return np.array(self._path, dtype=np.float32).reshape(-1, len(self.posterior_))

    def tempered_energy(
        self, energy: float, log_partition: NDArray[np.float64] | None = None
    ) -> float:
        """E_q(y)[b_m L - log C(T_m)] - KL(q(y) || pi): the first terms of Eq. 5.

        Parameters
        ----------
        energy : float
            L, of all data.
        log_partition : ndarray of shape (M,), optional
            log C(T) of all data; by default that of the last learning step.
        """
        log_c = self._current_log_c() if log_partition is None else log_partition
        return float(self.posterior_ @ self._scores(energy, log_c) + entr(self.posterior_).sum())

    def learned(self) -> Tempering:
        """The last temperature before the final phase at T = 1; 1 if no step has learned."""
        return Tempering(min(1.0, self._b)) if self._path else UNTEMPERED

    def _log_partition(self, local: LocalStep) -> NDArray[np.float64] | None:
        """log C of the batch, or None if log C does not come from batches."""
        if self._log_c is not None:
            return None
        if self._log_c_unit is not None:
            assert local.n_units is not None
            return local.n_units * self._log_c_unit
        return local.log_partition

    def _current_log_c(self) -> NDArray[np.float64]:
        """log C(T_m) of all data."""
        if self._log_c is not None:
            return self._log_c
        if not self._asks:
            return self._running.values[2]
        log_c = np.asarray(self._model.log_partition(self._inverses), dtype=np.float64)
        if log_c.shape != self._inverses.shape or not np.all(np.isfinite(log_c)):
            raise ValueError(
                f"'log_partition' of {type(self._model).__name__} must give one finite number "
                f"for each of {len(self._inverses)} inverse temperatures. Got {log_c!r}."
            )
        return log_c

    def _scores(self, energy: float, log_c: NDArray[np.float64]) -> NDArray[np.float64]:
        # relative to T = 1: a normaliser at the current q need not be 1 there
        return self._log_prior + self._inverses * energy - (log_c - log_c[0])

    def _warn_if_hot(self, wanted: float, unit: str) -> None:
        """Warn if the energy of the data keeps T from falling to 1."""
        if self._asks:
            return  # log C is exact: a T above 1 means that there is more noise than assumed
        energy, n_units = self._running.values[:2]
        if min(wanted, 1 / self._b) <= COLD or not n_units:
            return
        log_c = self._current_log_c()
        # T_1 is preferred to T_m if -L (1 - b_m) <= log C(T_m) - log C(T_1)
        threshold = np.min((log_c[1:] - log_c[0]) / (1 - self._inverses[1:])) / n_units
        if -energy / n_units <= threshold:
            return  # T is still falling
        source = "as given"
        if isinstance(self.partition, str):
            source = f"of partition={self.partition!r}"
        warnings.warn(
            f"The learned temperature did not cool to 1: at T = {1 / self._b:.3g} the energy is "
            f"{-energy / n_units:.4g} nats a {unit}, and T = 1 is preferred up to "
            f"{threshold:.4g} with log C(T) {source}. "
            + (
                "Use partition='posterior', a less sparse prior or an annealed temperature."
                if not source.endswith("'posterior'")
                else "Make more steps, or use an annealed temperature."
            ),
            ConvergenceWarning,
            stacklevel=2,
        )
