"""Batch fits with restarts, for estimators whose model keeps its own training data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from annealvi.inference import Monitor, optimise
from annealvi.model import Model, Tempering
from annealvi.temperature import Temperature, Variational, as_temperature


class BatchModel(Model, Protocol):
    """A model that can say how good its fit of the training data is."""

    n_samples: int

    def elbo(self, tempering: Tempering = ...) -> float:
        """F(b) of the training data; at T = 1 the ELBO."""

    def energy(self) -> float:
        """E_q[log p(x, z | globals)] of the training data, without the base measure."""

    def perturb(self, rng: np.random.RandomState) -> None:
        """Break the symmetries that heat has made exact, where the model has such."""

    def end_training(self) -> None:
        """Let go of what only training needs."""


class BatchFit:
    """What the mixtures' estimators share: restarts, the record of a fit, scores, draws.

    A subclass has the parameters ``temperature``, ``max_iter``, ``tol``, ``n_init``,
    ``random_state``, ``verbose`` and ``callback``, and says in ``_take`` which attributes
    a fitted model gives.
    """

    temperature: Any
    max_iter: int
    tol: float
    n_init: int
    random_state: Any
    verbose: int
    callback: Callable[[Any, Monitor], None] | None

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Each datum's part of the ELBO at T = 1."""
        raise NotImplementedError

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))

    @property
    def history_(self) -> dict[str, NDArray]:
        return self._monitor.history

    @property
    def temperature_path_(self) -> NDArray[np.float64]:
        return np.array(self._monitor.temperature_path)

    def _take(self, model: Any) -> None:
        """Set the fitted attributes that a model gives."""
        raise NotImplementedError

    def _wanted_temperature(self, kinds: Mapping[str, Temperature]) -> Temperature:
        return as_temperature(self.temperature, type(self).__name__, kinds)

    def _generator(self, n_samples: Any) -> np.random.RandomState:
        """What `sample` draws from, once fitted and asked for a number of data."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least "
                "one sample."
            )
        return check_random_state(self.random_state)

    def _fit_restarts(
        self,
        X: Any,
        start: Callable[[np.random.RandomState], BatchModel],
        temperature: Temperature,
        keep: Callable[[], None],
    ) -> None:
        """Fit `n_init` models and keep the one of the best ELBO.

        Parameters
        ----------
        X : object
            The data that the model's local step takes.
        start : callable
            Gives a model at a starting point drawn from a generator.
        temperature : Temperature
        keep : callable
            Called before an interruption that leaves what there is goes on.
        """
        rng = check_random_state(self.random_state)
        best: _Run | None = None
        for number in range(int(self.n_init)):
            model = start(rng)
            planned = temperature.plan(int(self.max_iter), model=model)
            run = _Run(self, model, planned, rng, number)
            try:
                run.go(X)
            except BaseException as error:
                if run.monitor.step and (run.in_callback or isinstance(error, KeyboardInterrupt)):
                    self._adopt(run.better_than(best))
                    keep()
                raise
            finally:
                model.end_training()
            best = run.better_than(best)
            self._adopt(best)
            if run.stopped:
                break
        assert best is not None
        if self.tol > 0 and best.comparable and not best.converged and not best.stopped:
            warnings.warn(
                f"The ELBO had not converged to tol={self.tol!r} after max_iter={self.max_iter} "
                "iterations. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,  # past fit and scikit-learn's fit context
            )

    def _adopt(self, run: _Run) -> None:
        self._model: Any = run.model
        self._monitor = run.monitor
        self.n_iter_ = run.monitor.step
        self.converged_ = run.converged
        self.lower_bound_ = run.lower_bound
        self.temperature_ = run.monitor.temperature
        for name in ("temperature_posterior_", "temperature_posterior_path_"):
            self.__dict__.pop(name, None)
        if isinstance(run.temperature, Variational):
            self.temperature_posterior_: NDArray[np.float64] = run.temperature.posterior_
            self.temperature_posterior_path_: NDArray[np.float32] = run.temperature.path()
        self._take(run.model)


class _Run:
    """One fit from one starting point."""

    def __init__(
        self,
        estimator: BatchFit,
        model: BatchModel,
        temperature: Temperature,
        rng: np.random.RandomState,
        number: int,
    ) -> None:
        self.estimator = estimator
        self.model = model
        self.temperature = temperature
        self.rng = rng
        self.number = number
        self.monitor = Monitor()
        self.lower_bound = -np.inf  # the ELBO of a datum
        self.comparable = False  # whether the last two bounds are of the same T
        self.converged = False
        self.stopped = False  # by the callback
        self.in_callback = False

    def better_than(self, other: _Run | None) -> _Run:
        """The better of two runs."""
        return self if other is None or self.lower_bound > other.lower_bound else other

    def go(self, X: Any) -> None:
        optimise(
            self.model,
            X,
            self.temperature,
            self.monitor,
            n_samples=self.model.n_samples,
            n_passes=int(self.estimator.max_iter),
            on_step=self._on_step,
        )

    def _on_step(self) -> None:
        estimator, model, monitor = self.estimator, self.model, self.monitor
        last = monitor.step - 1
        # of the step just made: a learned temperature has answered it already
        inverse = 1.0 / monitor.temperature if self.temperature.tempers else 1.0
        tempering = Tempering(inverse, self.temperature.form)
        elbo = model.elbo()
        if not np.isfinite(elbo):
            raise ValueError(
                f"The ELBO is {elbo} after iteration {monitor.step}: parameters of "
                f"{type(estimator).__name__} are too large or too small for X."
            )
        annealed = elbo if tempering.inverse == 1 else model.elbo(tempering)
        monitor.record(elbo=elbo, annealed_elbo=annealed)
        learning = not self.temperature.settled(last)
        if learning and isinstance(self.temperature, Variational):
            energy = model.energy()
            tempered = self.temperature.tempered_energy(energy)
            monitor.record(tempered_elbo=elbo - energy + tempered)
        before, self.lower_bound = self.lower_bound, elbo / model.n_samples
        change = self.lower_bound - before
        self.comparable = last > 0 and self.temperature.settled(last - 1)
        self.converged = self.comparable and abs(change) < estimator.tol
        if estimator.verbose:
            print(
                f"start {self.number + 1}, iteration {monitor.step}: T {monitor.temperature:.4g}, "
                f"ELBO a sample {self.lower_bound:.6f}"
            )
        if estimator.callback is not None:
            estimator._adopt(self)
            self.in_callback = True
            try:
                estimator.callback(estimator, monitor)
            except StopIteration:
                self.stopped = True
                raise
            self.in_callback = False
        if self.converged:
            raise StopIteration
        if learning and self.temperature.perturbs and monitor.step < estimator.max_iter:
            model.perturb(self.rng)
