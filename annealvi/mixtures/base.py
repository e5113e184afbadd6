"""The fit of a mixture: starts, the record, and the attributes of all fitted mixtures."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.random import RandomState
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from annealvi._threads import shallow
from annealvi.inference import Monitor, fit_starts, optimise
from annealvi.inference.fitted import Fitted
from annealvi.model import Model, Tempering
from annealvi.temperature import Fixed, Temperature, Variational


class BatchModel(Model, Protocol):
    """A model that keeps its training data and computes its ELBO on them."""

    n_samples: int

    def elbo(self, tempering: Tempering = ...) -> float:
        """F(b) of the training data; at T = 1 the ELBO."""

    def energy(self) -> float:
        """E_q[log p(x, z | globals)] of the training data, without the base measure."""

    def perturb(self, rng: RandomState) -> None:
        """Move components slightly at random, because high T can make them equal or zero."""

    def release_buffers(self) -> None:
        """Release the buffers that only training needs."""


@dataclass
class MixtureState:
    """The state of a fit of a mixture, at any step.

    Parameters
    ----------
    model : BatchModel
    monitor : Monitor
        The record: steps, temperatures, bounds.
    lower_bound : float
        Mean ELBO per sample after the last step.
    converged : bool
        Whether the last step changed it by less than the tolerance.
    temperature : Variational or None
        The temperature, if it has learned a q(y).  Others are not kept: a proximity temperature
        holds arrays of the size of the training data.
    """

    model: Any
    monitor: Monitor
    lower_bound: float = -np.inf
    converged: bool = False
    temperature: Variational | None = None

    def view(self) -> Self:
        """Return the fit as it is between two steps, for readers in any thread.

        A step replaces the arrays of the model; it does not write to those of the view.
        """
        seen = shallow(self)
        seen.model = shallow(self.model)
        seen.model.release_buffers()
        return seen


class Options(NamedTuple):
    """The parameters that all mixtures have for their fit.

    Parameters
    ----------
    owner : str
        Name of the estimator, for messages.
    max_iter, tol, n_init, verbose
        See :class:`annealvi.TemperedFMM`.
    n_threads : int
    callback : callable or None
        Called with the monitor after each step.
    random_state : int, RandomState or None
    """

    owner: str
    max_iter: int
    tol: float
    n_init: int
    verbose: int
    n_threads: int
    callback: Callable[[Monitor], None] | None
    random_state: Any


def options_of(estimator: Any, n_threads: int) -> Options:
    """The parameters of an estimator that its fit needs.

    Parameters
    ----------
    estimator : TemperedFMM or TemperedGaussianMixture
    n_threads : int
    """
    callback = estimator.callback
    return Options(
        owner=type(estimator).__name__,
        max_iter=int(estimator.max_iter),
        tol=estimator.tol,
        n_init=int(estimator.n_init),
        verbose=estimator.verbose,
        n_threads=n_threads,
        callback=None if callback is None else partial(callback, estimator),
        random_state=estimator.random_state,
    )


class MixtureRun:
    """A fit from one start; see :class:`annealvi.inference.restarts.Run`.

    Parameters
    ----------
    X : object
        The data that the model's local step takes.
    model : BatchModel
        At its starting point.
    temperature : Temperature
        The planned temperature.
    rng : RandomState
        Generator for the perturbations of the model.
    number : int
        Number of the start, from 0.
    options : Options
    adopt : callable
        Called with the state before the callback.
    halt : threading.Event
        Set if another start has failed or the user has interrupted.
    """

    def __init__(
        self,
        X: Any,
        model: BatchModel,
        temperature: Temperature,
        rng: RandomState,
        number: int,
        options: Options,
        adopt: Callable[[MixtureState], None],
        halt: threading.Event,
    ) -> None:
        self.X, self.temperature, self.rng, self.number = X, temperature, rng, number
        self.options, self.adopt, self.halt = options, adopt, halt
        kept = temperature if isinstance(temperature, Variational) else None
        self.state = MixtureState(model, Monitor(), temperature=kept)
        self.comparable = False  # whether the last two bounds are of the same T
        self.stopped = self.in_callback = False

    @property
    def n_steps(self) -> int:
        """Steps made."""
        return self.state.monitor.step

    @property
    def score(self) -> float:
        """Mean ELBO per sample after the last step."""
        return self.state.lower_bound

    goodness = score

    def go(self) -> None:
        """Fit to the end."""
        state = self.state
        try:
            optimise(
                state.model,
                self.X,
                self.temperature,
                state.monitor,
                n_samples=state.model.n_samples,
                n_passes=self.options.max_iter,
                on_step=self._on_step,
            )
        finally:
            state.model.release_buffers()

    def _on_step(self) -> None:
        if self.halt.is_set():
            raise StopIteration
        state, options = self.state, self.options
        model, temperature, monitor = state.model, self.temperature, state.monitor
        last = monitor.step - 1
        # T of the step just made; a learned temperature has changed since
        inverse = 1.0 / monitor.temperature if temperature.tempers else 1.0
        tempering = Tempering(inverse, temperature.form)
        elbo = model.elbo()
        if not np.isfinite(elbo):
            raise ValueError(
                f"The ELBO is {elbo} after iteration {monitor.step}: parameters of "
                f"{options.owner} are too large or too small for X."
            )
        annealed = elbo if tempering.inverse == 1 else model.elbo(tempering)
        monitor.record(elbo=elbo, annealed_elbo=annealed)
        learning = not temperature.settled(last)
        if learning and isinstance(temperature, Variational):
            energy = model.energy()
            tempered = temperature.tempered_energy(energy)
            monitor.record(tempered_elbo=elbo - energy + tempered)
        before, state.lower_bound = state.lower_bound, elbo / model.n_samples
        self.comparable = last > 0 and temperature.settled(last - 1)
        change = abs(state.lower_bound - before)
        state.converged = self.comparable and change < options.tol
        if options.verbose:
            print(
                f"start {self.number + 1}, iteration {monitor.step}: T {monitor.temperature:.4g}, "
                f"ELBO a sample {state.lower_bound:.6f}"
            )
        if options.callback is not None:
            self._call_back(options.callback)
        if state.converged:
            raise StopIteration
        if learning and temperature.perturbs and monitor.step < options.max_iter:
            model.perturb(self.rng)

    def _call_back(self, callback: Callable[[Monitor], None]) -> None:
        self.adopt(self.state)
        self.in_callback = True
        try:
            callback(self.state.monitor)
        except StopIteration:
            self.stopped = True
            raise
        self.in_callback = False


def fit_mixture(
    X: Any,
    draw: Callable[[RandomState], Callable[[], Any]],
    temperature: Temperature,
    options: Options,
    *,
    adopt: Callable[[MixtureState], None],
    commit: Callable[[], None],
) -> None:
    """Fit from every starting point, and set the estimator's state to the best.

    Starts draw from one generator, one after another.  With a fixed T a fit draws no random
    numbers after its start.  If there is also no callback, all starts are drawn first and then
    fitted in parallel.  A model is built when its fit begins, so only as many models hold
    arrays of the size of the data as there are fits at a time.

    Parameters
    ----------
    X : object
        The data that the model's local step takes.
    draw : callable
        Draws a starting point from the given generator, and returns a function that builds a
        :class:`BatchModel` there.
    temperature : Temperature
    options : Options
    adopt : callable
        Sets the estimator's state.
    commit : callable
        Called when this state must survive a later error.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended the fit before it converged.
    """
    rng = check_random_state(options.random_state)

    def begin(number: int, build: Callable[[], Any] | None, halt: threading.Event) -> MixtureRun:
        model = (draw(rng) if build is None else build)()
        if n_workers > 1:
            model.n_threads = 1
        planned = temperature.plan(options.max_iter, model=model)
        return MixtureRun(X, model, planned, rng, number, options, adopt, halt)

    def salvage(run: MixtureRun) -> None:
        adopt(run.state)
        commit()

    n_workers = 1
    if options.callback is None and isinstance(temperature, Fixed):
        n_workers = min(options.n_threads, options.n_init)
    drawn = [None if n_workers == 1 else draw(rng) for _ in range(options.n_init)]
    starts = [partial(begin, number, build) for number, build in enumerate(drawn)]
    best, _ = fit_starts(starts, n_workers=n_workers, salvage=salvage)
    adopt(best.state)
    if options.tol > 0 and best.comparable and not best.state.converged and not best.stopped:
        warnings.warn(
            f"The ELBO had not converged to tol={options.tol!r} after max_iter={options.max_iter} "
            "iterations. Increase max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,  # past fit and scikit-learn's fit context
        )


class FittedMixture(Fitted):
    """Attributes that all fitted mixtures have."""

    # set by `fit`
    _state: MixtureState

    @property
    def n_iter_(self) -> int:
        return self._fitted().monitor.step

    @property
    def converged_(self) -> bool:
        return self._fitted().converged

    @property
    def lower_bound_(self) -> float:
        return self._fitted().lower_bound


def sampler(estimator: Any, n_samples: Any, random_state: Any) -> RandomState:
    """Check that the estimator is fitted and `n_samples` valid; return the generator.

    Parameters
    ----------
    estimator : object
    n_samples : int
    random_state : int, RandomState or None

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If `n_samples` is not a positive integer.
    """
    check_is_fitted(estimator)
    if not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(
            f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least "
            "one sample."
        )
    return check_random_state(random_state)
