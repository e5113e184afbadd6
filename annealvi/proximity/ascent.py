r"""Proximity variational inference by gradients, and deterministic annealing for comparison.

Algorithm 2 ("fast") moves the logits of q by

.. math::
   \nabla_\theta L - k\, d'(f(\theta) - f(\tilde\theta))\, f'(\theta), \qquad
   k = k_0 \gamma^{t/T} \text{ or } k_0 (1 - t/T),

and the components by the gradient of L.  The statistic f is defined in
:mod:`annealvi.proximity.statistics`, the distance d and the moving average in
:mod:`annealvi.proximity.penalty`.  Algorithm 1 ("inner") computes the gradient g of L at
:math:`\theta_t`.  Then it starts from a point near :math:`\theta_t` and, with g fixed, ascends

.. math::
   g \cdot (\theta - \theta_t) - \|\theta - \theta_t\|^2 / 2\rho
   - k\, d(f(\theta) - f(\tilde\theta)).

Deterministic annealing multiplies the entropy of q by max(1, k).  With k = 0, Algorithm 2 and
deterministic annealing are plain gradient ascent on the ELBO L (Altosaar, Ranganath, Blei 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from annealvi.checks import COUNT, Interval, check_numbers, checked
from annealvi.exceptions import BadParameter, DivergenceError
from annealvi.proximity.factor_model import BernoulliFactorModel
from annealvi.proximity.penalty import (
    CONSTRAINTS,
    DISTANCES,
    MAGNITUDES,
    Distance,
    Penalty,
    check_statistic,
)
from annealvi.proximity.statistics import STATISTICS, Bernoulli, Floats, Statistic


class Adam:
    """The optimiser Adam, whose steps have about the same size for large and small gradients.

    Parameters
    ----------
    rate : float
        The approximate size of a step.
    decays : tuple of float, default=(0.9, 0.999)
        The decay rates of the moving averages of the gradient and of its square.
    eps : float, default=1e-8
        Elements of the gradient that are much smaller than `eps` cause almost no step.
    """

    def __init__(
        self, rate: float, decays: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        """Set the parameters, and begin without averages."""
        self.rate = rate
        self.eps = eps
        self._decays = decays
        self._averages: tuple[Floats, Floats] | None = None
        self._remaining = [1.0, 1.0]  # decay^t of each average, its weight that is still at zero

    @checked
    def __call__(self, gradient: Floats) -> Floats:
        """Return the step for this gradient, an array of the same shape."""
        if self._averages is None:
            self._averages = np.zeros_like(gradient), np.zeros_like(gradient)
        # average 0 is of the gradient, average 1 of its square; both change in place
        for i, (average, decay) in enumerate(zip(self._averages, self._decays, strict=True)):
            average *= decay
            average += (1.0 - decay) * (gradient if i == 0 else gradient * gradient)
            self._remaining[i] *= decay
        mean_gradient, mean_square = self._averages
        # the division by 1 - decay^t corrects for the start at zero
        root_mean_square = np.sqrt(mean_square / (1.0 - self._remaining[1]))
        root_mean_square += self.eps
        return self.rate / (1.0 - self._remaining[0]) * mean_gradient / root_mean_square


@dataclass
class Ascent:
    """The result of an ascent, and its history.

    Attributes
    ----------
    logits : ndarray of shape (n_runs, n_components, n_samples)
        The logits theta of q.
    means : ndarray of shape (n_runs, n_components, n_features)
        The components mu.
    elbo : ndarray of shape (n_runs,)
        The ELBO of each run at the end.
    n_steps : int
        Number of steps made.
    steps : ndarray of shape (n_records + 1,)
        The number of steps that had been made at each record.
    elbo_path, magnitude_path : ndarray of shape (n_records + 1, n_runs)
        The ELBO and the magnitude k at each record; k is `nan` after the last step.
    """

    logits: Floats
    means: Floats
    elbo: Floats
    n_steps: int
    steps: NDArray[np.int64]
    elbo_path: Floats
    magnitude_path: Floats


@dataclass(eq=False, repr=False)
class ProximityAscent(BaseEstimator):
    r"""Gradient ascent on the ELBO in which a statistic of q may change only slowly.

    Parameters
    ----------
    statistic : str or callable, default="entropy"
        The statistic f of q that may change only slowly: ``"entropy"``, ``"kl"``, ``"mean"``,
        ``"variance"`` or ``"mean_variance"``, or your own function (see
        :mod:`annealvi.proximity.statistics`).  The derivative of your function is compared with
        finite differences before the first step.  ``method="annealing"`` does not use `statistic`.
    distance : {"inverse_huber", "square"} or Distance, default="inverse_huber"
        The distance d between f and its average over past steps.  The distances of all elements
        are added.  ``method="annealing"`` does not use `distance`.
    method : {"fast", "inner", "annealing"}, default="fast"
        ``"fast"`` is Algorithm 2 of the paper, ``"inner"`` is Algorithm 1, and ``"annealing"`` is
        deterministic annealing, which multiplies the entropy of q by max(1, k).
    magnitude : float or None, default=None
        The first value :math:`k_0 \ge 0` of k, the weight of the distance or, with
        ``method="annealing"``, of the entropy.  None means the absolute value of the ELBO at the
        start of each run.  With 0 the ascent is plain variational inference.
    shape : {"exponential", "linear"}, default="exponential"
        How k falls: :math:`k_0 \gamma^{t/T}` or :math:`k_0 (1 - t/T)`.
    gamma : float, default=1e-10
        The fraction of :math:`k_0` that remains at the end, in (0, 1].  Not used with
        ``shape="linear"``.
    decay : float, default=0.9999
        The factor :math:`\alpha`, in (0, 1], by which past values lose weight in each step.
    average : {"statistic", "parameters"}, default="statistic"
        What is averaged over past steps.  ``"statistic"`` averages f, as in the code that made
        the tables of the paper.  ``"parameters"`` averages the logits of q, as in the text of
        the paper, and computes f from the average.
    n_steps : int, default=10000
        Number of steps T.
    optimizer : {"adam", "gradient"}, default="adam"
        The optimiser: Adam, or plain gradient ascent.
    learning_rate : float, default=0.1
        The step size of the optimiser, and the :math:`\rho` of Algorithm 1.
    n_inner : int, default=10
        Number of steps of the inner loop of Algorithm 1.
    noise : float, default=0.1
        Standard deviation of the noise that is added to the logits before an inner loop.
    n_records : int, default=100
        Number of records of the ELBO, which are evenly spaced over the steps.  One more record
        is made after the last step.
    random_state : int, RandomState instance or None, default=None
        The random seed of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.proximity import BernoulliFactorModel, ProximityAscent
    >>> X = np.array([[0.0], [5.0], [5.0], [10.0]])
    >>> model = BernoulliFactorModel(X)
    >>> ascent = ProximityAscent(n_steps=5000).ascend(model, [[40.0], [-20.0]])
    >>> ascent.means.round(1).tolist()
    [[[5.0], [5.0]]]

    References
    ----------
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.
    """

    _parameter_constraints: ClassVar[dict] = {
        "statistic": [StrOptions(set(STATISTICS)), callable],
        "distance": [StrOptions(set(DISTANCES)), Distance],
        "method": [StrOptions({"fast", "inner", "annealing"})],
        **CONSTRAINTS,
        "n_steps": COUNT,
        "optimizer": [StrOptions({"adam", "gradient"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_inner": COUNT,
        "noise": [Interval(Real, 0, None, closed="left")],
        "n_records": COUNT,
        "random_state": ["random_state"],
    }

    statistic: str | Statistic = "entropy"
    _: KW_ONLY
    distance: str | Distance = "inverse_huber"
    method: Literal["fast", "inner", "annealing"] = "fast"
    magnitude: float | None = None
    shape: Literal["exponential", "linear"] = "exponential"
    gamma: float = 1e-10
    decay: float = 0.9999
    average: Literal["parameters", "statistic"] = "statistic"
    n_steps: int = 10_000
    optimizer: Literal["adam", "gradient"] = "adam"
    learning_rate: float = 0.1
    n_inner: int = 10
    noise: float = 0.1
    n_records: int = 100
    random_state: int | RandomState | None = None

    @checked
    def ascend(
        self, model: BernoulliFactorModel, means: ArrayLike, logits: ArrayLike | None = None
    ) -> Ascent:
        """Fit q and the components from given starting points, for several runs together.

        Parameters
        ----------
        model : BernoulliFactorModel
        means : array-like of shape (n_runs, n_components, n_features)
            The components mu that each run starts from.  For a single run the first axis may be
            left out.
        logits : array-like, broadcast to (n_runs, n_components, n_samples), optional
            The logits theta that each run starts from; by default 0.

        Returns
        -------
        Ascent

        Raises
        ------
        ValueError
            If a parameter or an array is out of its range, or if your own statistic or distance
            returns a wrong shape, NaN, or a wrong derivative.
        DivergenceError
            If logits, components or the ELBO become infinite or NaN.  The attribute ``state`` of
            the error is an Ascent with a finite ELBO, from just before the failure or from the last
            record.
        """
        self._validate_params()
        if not isinstance(model, BernoulliFactorModel):
            raise BadParameter("model", "a BernoulliFactorModel of the data", model)
        start_means = model.check_means(means)
        shape = (*start_means.shape[:2], model.n_samples)
        start_logits = check_numbers(0.0 if logits is None else logits, "logits")
        try:
            start_logits = np.broadcast_to(start_logits, shape).copy()
        except ValueError:
            raise BadParameter(
                "logits",
                must_be=f"broadcastable to shape {shape}, which is "
                "(n_runs, n_components, n_samples)",
                got=start_logits,
            ) from None
        if not isinstance(self.statistic, str) and self.method != "annealing":
            check_statistic(self.statistic, Bernoulli(start_logits), model.prior_logit)
        return _Run(self, model, start_means, start_logits).ascend()


class _Run:
    """The state of all runs of one ascent."""

    def __init__(
        self, options: ProximityAscent, model: BernoulliFactorModel, means: Floats, logits: Floats
    ) -> None:
        """`means` and `logits` are those that the runs start from."""
        self.options = options
        self.model = model
        self.means = means
        self.logits = logits
        self.rng = check_random_state(options.random_state)
        self.penalty = Penalty(
            statistic=options.statistic,
            distance=options.distance,
            decay=options.decay,
            prior_logit=model.prior_logit,
            of_parameters=options.average == "parameters",
        )
        # functions that return the step for a gradient
        self.move_logits = self._optimizer()
        self.move_means = self._optimizer()
        self.step = 0
        self.records: list[tuple[int, Floats, Floats]] = []
        self.last_recorded = 0, logits, means
        with np.errstate(over="ignore", invalid="ignore"):
            self.elbo = model.elbo(Bernoulli(logits), means)
        wrong_elbos = self.elbo[~np.isfinite(self.elbo)]
        if wrong_elbos.size:
            raise ValueError(
                f"The ELBO at the start must be finite. Got {wrong_elbos[0]}. Rescale X, or start "
                "from smaller 'means'."
            )

    def ascend(self) -> Ascent:
        """Make all steps; return the result with its records."""
        options = self.options
        n_steps = int(options.n_steps)
        n_records = min(int(options.n_records), n_steps)
        recorded_steps = set(np.linspace(0, n_steps, n_records, endpoint=False, dtype=int).tolist())
        schedule = MAGNITUDES[options.shape](options.gamma)
        k0 = np.abs(self.elbo)  # the first magnitude of each run, by default
        if options.magnitude is not None:
            k0 = np.full(len(self.elbo), float(options.magnitude))
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is an error below
            for step in range(n_steps):
                k = k0 * schedule(step / n_steps)
                q = Bernoulli(self.logits)
                if step in recorded_steps:
                    self._record(q, k)
                # k has an axis for runs, and q also for components and data
                logits, means = self._after_step(q, k[:, None, None])
                is_finite = np.isfinite(logits).all(axis=(1, 2))
                is_finite &= np.isfinite(means).all(axis=(1, 2))
                if not is_finite.all():
                    raise self._divergence(step + 1, ~is_finite)
                self.logits = logits
                self.means = means
                self.step = step + 1
            self._record(Bernoulli(self.logits), np.full(len(k0), np.nan))  # no step follows
        return self._result()

    def _after_step(self, q: Bernoulli, k: Floats) -> tuple[Floats, Floats]:
        """Return logits and components after a step with the magnitude `k` of each run."""
        optimal_logit, means_gradient = self.model.gradients(q, self.means)
        means = self.means + self.move_means(means_gradient)
        anneals = self.options.method == "annealing"
        # with annealing, the gradient of the ELBO with k times the entropy
        weighted_logit = np.maximum(1.0, k) * q.logit if anneals else q.logit
        gradient = (optimal_logit - weighted_logit) * q.variance
        if np.any(k > 0) and not anneals:  # otherwise there is no penalty
            self.penalty.update(q)  # includes q in the average of the past
            if self.options.method == "inner":
                return self._inner_loop(q, gradient, k), means
            gradient -= k * self.penalty.gradient(q)
        return q.logit + self.move_logits(gradient), means

    def _inner_loop(self, q: Bernoulli, gradient: Floats, k: Floats) -> Floats:
        """Run the inner loop of Algorithm 1; return the new logits."""
        move = self._optimizer()
        rho = float(self.options.learning_rate)
        logits = q.logit
        if self.options.noise:
            logits = logits + self.options.noise * self.rng.standard_normal(logits.shape)
        for _ in range(int(self.options.n_inner)):
            # keeps the new logits close to those of q
            pull_back = (logits - q.logit) / rho
            logits = logits + move(
                gradient - pull_back - k * self.penalty.gradient(Bernoulli(logits))
            )
        return logits

    def _optimizer(self) -> Callable[[Floats], Floats]:
        """Make a function that returns the step for a gradient."""
        rate = float(self.options.learning_rate)
        return Adam(rate) if self.options.optimizer == "adam" else lambda gradient: rate * gradient

    def _record(self, q: Bernoulli, k: Floats) -> None:
        """Record the ELBO and the magnitude `k` of each run; raise if an ELBO is not finite."""
        elbo = self.model.elbo(q, self.means)
        diverged = ~np.isfinite(elbo)
        if diverged.any():
            raise self._divergence(self.step, diverged)
        self.elbo = elbo
        self.records.append((self.step, elbo, k))
        self.last_recorded = self.step, self.logits, self.means  # to go back to after divergence

    def _divergence(self, step: int, diverged: Any) -> DivergenceError:
        """Go back to a state with a finite ELBO; return the error.  `diverged` marks bad runs."""
        elbo = self.model.elbo(Bernoulli(self.logits), self.means)
        if np.all(np.isfinite(elbo)):
            self.elbo = elbo
        else:
            self.step, self.logits, self.means = self.last_recorded
        return DivergenceError(
            f"The ascent diverged at step {step} of {self.options.n_steps} in "
            f"{np.count_nonzero(diverged)} of {len(diverged)} runs. The last finite ELBO was "
            f"{self.elbo[diverged].min():.6g}, after step {self.step}. Use a smaller "
            f"'learning_rate' (it is {self.options.learning_rate!r}), optimizer='adam', or a "
            "smaller 'magnitude'. "
            "The attribute 'state' of this error contains the last finite state.",
            self._result(),
        )

    def _result(self) -> Ascent:
        """The present state with all records."""
        steps, elbos, magnitudes = zip(*self.records, strict=True)
        return Ascent(
            logits=self.logits,
            means=self.means,
            elbo=self.elbo,
            n_steps=self.step,
            steps=np.array(steps),
            elbo_path=np.array(elbos),
            magnitude_path=np.array(magnitudes),
        )
