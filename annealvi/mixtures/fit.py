"""What the mixtures share: the state of a fit, one fit from one start, and the base estimators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from numbers import Real
from os import PathLike
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from annealvi._kernels import special
from annealvi.checks import COUNT, Interval, check_count, checked, n_threads, unchanged_on_error
from annealvi.exceptions import warn_user
from annealvi.files.schema import Flag, Number, Optional, Schema, Tree, damaged
from annealvi.inference import Callbacks, Monitor, Run, optimise
from annealvi.inference.algorithm import Position
from annealvi.inference.fitted import Fitted, Found
from annealvi.inference.runs import Fingerprint, Runs
from annealvi.model import Tempering
from annealvi.models.mixture import Mixture
from annealvi.temperature import Temperature
from annealvi.temperature.base import restored_temperature, temperature_tree
from annealvi.threads import shallow, writing

STATE = Schema(
    model=Tree(),
    monitor=Tree(),
    temperature=Optional(Tree()),
    lower_bound=Number(),
    converged=Flag(),
)
FIT = Schema(state=Tree(), comparable=Flag(), stopped=Flag())
#: The constraint of variances and of the parameters of priors.
POSITIVE = Interval(Real, 0, None, closed="neither")
#: NumPy's warnings that a fit ignores: after each step, its ELBO is checked to be finite.
QUIET: dict[str, Any] = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}
#: Draws a starting point, as the keyword arguments of :meth:`Mixture.start`.
Draw = Callable[[RandomState], dict[str, Any]]


@dataclass
class MixtureState:
    """What a fit has found by the present step."""

    model: Any
    monitor: Monitor
    #: The planned temperature.  Once the fit has ended, only a learned temperature is kept.
    temperature: Any
    #: Mean ELBO per sample after the last step.
    lower_bound: float = -np.inf
    #: Whether the last step changed `lower_bound` by less than the tolerance.
    converged: bool = False

    def __copy__(self) -> Self:
        """A copy of the present state, without arrays of the size of the data.

        The copy stays valid, because steps make new arrays and do not change the old ones.
        """
        model = shallow(self.model)
        temperature = None
        model.release_buffers()  # of the copy only
        if self.temperature is not None and self.temperature.learns:
            # the memo makes the copied temperature refer to the copied model
            temperature = copy.deepcopy(self.temperature, {id(self.model): model})
        return replace(self, model=model, monitor=self.monitor.copy(), temperature=temperature)

    def state_dict(self) -> dict[str, Any]:
        """The state as a tree of values for a file; see :mod:`annealvi.files`."""
        planned_temperature = self.temperature and temperature_tree(self.temperature)
        return STATE.dump(vars(self) | {"temperature": planned_temperature})

    def load_state_dict(self, tree: Mapping[str, Any], place: str) -> None:
        """Set the state from a tree, with a new temperature object."""
        fields = STATE.load(tree, place)
        self.model.load_state_dict(fields.pop("model"), f"{place}.model")
        self.monitor.load_state_dict(fields.pop("monitor"), f"{place}.monitor")
        vars(self).update(fields)
        if self.temperature is not None:
            # the field is still a tree, from which a temperature object is made
            self.temperature = restored_temperature(
                self.temperature, f"{place}.temperature", model=self.model
            )


@dataclass(frozen=True)
class MixturePlan:
    """What all runs of a fit share."""

    X: Any
    temperature: Temperature
    #: A copy of the estimator, because callbacks may set the estimator's parameters.
    estimator: Any
    callbacks: Callbacks
    #: Shows a state to the user.
    show: Callable[[MixtureState], None]
    #: NumPy's treatment of errors outside the fit, for the callbacks.
    errors: Any = field(default_factory=np.geterr)


@dataclass(eq=False, repr=False)
class MixtureFit:
    """One fit from one starting point; see :class:`annealvi.inference.runs.Runs`."""

    plan: MixturePlan
    number: int  # counts the fits of a run from 0
    model: InitVar[Mixture]
    rng: RandomState
    halt: Event  # if it is set, the fit ends at its next step
    comparable: bool = False  # whether the last two bounds have the same T
    stopped: bool = False  # whether a callback ended the fit
    in_callback: bool = False

    def __post_init__(self, model: Mixture) -> None:
        """Begin with the model's starting point."""
        plan = self.plan
        temperature = plan.temperature.plan(int(plan.estimator.max_iter), model=model)
        self.state = MixtureState(model, Monitor(), temperature)

    @property
    def n_steps(self) -> int:
        """Number of steps made so far."""
        return self.state.monitor.step

    @property
    def score(self) -> float:
        """Mean ELBO per sample after the last step."""
        return self.state.lower_bound

    goodness = score

    def state_dict(self) -> dict[str, Any]:
        """The fit after a step or at its end, as a tree of values for a file."""
        return FIT.dump(self)

    def load_state_dict(self, tree: Mapping[str, Any], place: str, *, ended: bool) -> None:
        """Continue from the state of another fit with the same plan, which may have `ended`."""
        fields = FIT.load(tree, place)
        max_iter = int(self.plan.estimator.max_iter)
        planned_temperature = self.state.temperature
        place = f"{place}.state"  # names the values in error messages
        if ended:
            # without arrays of the size of the data, which an ended fit does not need
            self.state = copy.copy(self.state)
        self.state.load_state_dict(fields["state"], place)
        if not ended and self.state.temperature != planned_temperature:
            raise damaged(f"{place}.temperature", "the fit's temperature", self.state.temperature)
        if not 1 <= self.n_steps <= max_iter:
            raise damaged(f"{place}.monitor.step", f"in the range [1, {max_iter}]", self.n_steps)
        self.comparable = fields["comparable"]
        self.stopped = fields["stopped"]

    def run(self) -> None:
        """Fit to the end."""
        state = self.state
        plan = self.plan
        max_iter = int(plan.estimator.max_iter)
        n_runs = int(plan.estimator.n_init)
        plan.callbacks.begin(
            Run(
                number=self.number,
                n_runs=n_runs,
                n_done=self.n_steps,
                n_steps=max_iter,
                steps_per_pass=1,
                n_before=max_iter * self.number,
                n_all=max_iter * n_runs,
                bound_name="ELBO per sample",
                bound=lambda: self.score,
            )
        )
        try:
            if self.n_steps:  # the fit continues from a file
                self._finish_step()  # a callback wrote the file before the end of the last step
            with np.errstate(**QUIET):
                optimise(
                    state.model,
                    plan.X,
                    state.temperature,
                    state.monitor,
                    n_samples=state.model.n_samples,
                    n_passes=max_iter,
                    on_step=self._on_step,
                    position_in_fit=Position(n_passes=self.n_steps),
                )
        except StopIteration:
            pass  # the fit has converged
        finally:
            self.state = copy.copy(state)  # without arrays of the size of the data

    def _on_step(self) -> None:
        """Record the bounds of a step, test convergence and call the callbacks."""
        if self.halt.is_set():
            raise StopIteration  # ends `optimise`, like all StopIteration here
        state = self.state
        estimator = self.plan.estimator
        model = state.model
        temperature = state.temperature
        monitor = state.monitor
        last_step = monitor.step - 1
        elbo = model.elbo()
        if not np.isfinite(elbo):
            raise ValueError(
                f"The ELBO is {elbo} after iteration {monitor.step}. Some parameters of "
                f"{type(estimator).__name__} are too large or too small for the values in X."
            )
        # T of the step that has just been made; a learned temperature may differ by now
        inverse = 1.0 / monitor.temperature if temperature.tempers else 1.0
        annealed_elbo = elbo if inverse == 1 else model.elbo(Tempering(inverse, temperature.form))
        monitor.record(elbo=elbo, annealed_elbo=annealed_elbo)
        if temperature.learns and not temperature.settled(last_step):
            energy = model.energy()
            monitor.record(tempered_elbo=elbo - energy + temperature.tempered_energy(energy))
        previous_bound = state.lower_bound
        state.lower_bound = elbo / model.n_samples
        # bounds of steps with different T are not compared
        self.comparable = last_step > 0 and temperature.settled(last_step - 1)
        state.converged = (
            self.comparable and abs(state.lower_bound - previous_bound) < estimator.tol
        )
        if estimator.verbose:
            print(
                f"run {self.number + 1}, iteration {monitor.step}: T {monitor.temperature:.4g}, "
                f"ELBO per sample {state.lower_bound:.6f}"
            )
        plan = self.plan
        if plan.callbacks:
            plan.show(state)
            self.in_callback = True  # stays True if the callback raises an error
            try:
                with np.errstate(**plan.errors):
                    plan.callbacks(monitor)
            except StopIteration:
                self.stopped = True
                raise
            self.in_callback = False
        self._finish_step()

    def _finish_step(self) -> None:
        """End a fit that has converged; else perturb the model while T still falls."""
        if self.state.converged:
            raise StopIteration  # caught by `run`
        temperature = self.state.temperature
        model = self.state.model
        has_more_steps = self.n_steps < self.plan.estimator.max_iter
        perturbs = temperature.perturbs and model.perturbs
        if has_more_steps and perturbs and not temperature.settled(self.n_steps - 1):
            model.perturb(self.rng)


class TemperedMixture(Fitted):
    """Base class of the mixtures, with `fit` and the methods that use its result.

    A child class defines the parameters, and the model (:class:`annealvi.models.mixture.Mixture`).
    """

    #: The class of the model.
    Model: ClassVar[type[Any]]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": COUNT,
        "temperature": "no_validation",  # as_temperature checks it
        "max_iter": COUNT,
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": COUNT,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [None, callable, list],
    }
    n_components: int
    random_state: Any
    n_init: int
    max_iter: int
    tol: float
    _state: MixtureState

    n_iter_ = Found(lambda state: state.monitor.step)
    converged_ = Found(lambda state: state.converged)
    lower_bound_ = Found(lambda state: state.lower_bound)
    _n_features_out = Found(lambda state: state.model.n_components)  # of `transform`, if any

    def _prepare(self, X: Any, copied: Any) -> tuple[Any, dict[str, Any], Temperature, Draw]:
        """Check X and the parameters; return X, settings of the model, the temperature, the draw.

        The number and the names of the features become attributes of `copied`, a copy of the
        estimator that other threads do not see.  The draw does not change if a callback sets
        parameters.
        """
        raise NotImplementedError

    def _warn(self, X: Any) -> None:
        """Warn if the result of a fit to X is not usable; only `fit` may call this method."""

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | PathLike | None = None) -> Self:
        """Learn components from data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.  :class:`TemperedMultinomialMixture` also accepts a sparse matrix.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            A file that :class:`annealvi.callbacks.Checkpoint` or `save_state` wrote in a fit to
            the same X with the same parameters.  The fit continues from this file.

        Returns
        -------
        self : object
            The fitted mixture.

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or differs from the checkpoint.  The estimator
            keeps its earlier state.

        Warns
        -----
        ConvergenceWarning
            If the fit had not converged after `max_iter` iterations.
        """
        with (
            writing(self),
            unchanged_on_error(self) as commit,
            self._fit_under_way(X, y) as callbacks,
        ):
            # a copy, because callbacks may set the parameters of `self`
            mixture = shallow(self)
            X, settings, temperature, draw = self._prepare(X, mixture)
            n_runs = int(self.n_init)
            threads = n_threads(getattr(self, "n_jobs", 1))  # not all mixtures have `n_jobs`
            # the fingerprint is compared with that of the file from which a fit is resumed
            runs: Runs[MixtureFit] = Runs(Fingerprint(mixture, X), self.random_state, resume)
            # random numbers are drawn after the start only to perturb components
            perturbs = temperature.perturbs and self.Model.perturbs
            # callbacks see one run at a time, and a resumed run or a perturbation needs the
            # generator as earlier runs have left it
            runs_in_turn = callbacks or runs.resumed or perturbs
            n_workers = 1 if runs_in_turn else min(threads, n_runs)

            def show(state: MixtureState) -> None:
                """Set the user's estimator to a copy of the state."""
                self._show(mixture, _state=copy.copy(state))

            plan = MixturePlan(X, temperature, mixture, callbacks, show)
            # fits in threads share the generator, and allocate arrays for the data when they begin
            n_drawn = n_runs if n_workers > 1 else 0
            with np.errstate(**QUIET):
                drawn_starts = [draw(runs.generator) for _ in range(n_drawn)]

            def begin(number: int) -> MixtureFit:
                """Make the fit with this number, at its starting point."""
                model = self.Model(int(mixture.n_components), X.shape[1], **settings)
                model.n_threads = threads if n_workers == 1 else 1
                with np.errstate(**QUIET):
                    start = drawn_starts[number] if drawn_starts else draw(runs.generator)
                    model.start(X, **start)
                return MixtureFit(plan, number, model, rng=runs.generator, halt=runs.halt)

            self._runs = runs  # for `save_state`, which callbacks may call
            try:
                (best,) = runs.run(begin, n_runs, n_workers=n_workers)
                runs.finished = True
            finally:
                if runs.best is not None:
                    show(runs.best.state)
                    commit()  # so that the new state is kept even after an error
        # a fit that a callback stopped, or whose T was still falling, gets no warning
        if self.tol > 0 and best.comparable and not (best.state.converged or best.stopped):
            warn_user(
                f"The ELBO had not converged to tol={self.tol!r} after max_iter={self.max_iter} "
                "iterations. Increase 'max_iter' or 'tol'.",
                ConvergenceWarning,
            )
        self._warn(X)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean of `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
        """
        scores = self.score_samples(X)  # type: ignore[attr-defined]
        with np.errstate(over="ignore"):
            mean = np.mean(scores)
        # if the sum of the scores overflows, they are divided first
        return float(mean if np.isfinite(mean) else np.sum(scores / len(scores)))

    # ----------------------------------------------------------------- details

    def _state_of(self, tree: Mapping[str, Any], place: str) -> MixtureState:
        """The state of a fit from the tree in a file, which `place` names in errors."""
        # without __init__: `load_state_dict` sets all attributes of the model
        state = MixtureState(object.__new__(self.Model), Monitor(), temperature=None)
        state.load_state_dict(tree, place)
        return state

    def _ready(self) -> Any:
        """A view of the fitted model for one call, with the number of threads of `n_jobs`."""
        check_is_fitted(self)
        model = shallow(self._state.model)
        model.n_threads = n_threads(getattr(self, "n_jobs", 1))
        return model

    def _sampler(self, n_samples: Any) -> tuple[Any, RandomState]:
        """Check `n_samples`; return the fitted model, and a random number generator."""
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        return self._state.model, check_random_state(self.random_state)


class FiniteMixture(TemperedMixture):
    """Base class of the mixtures in which each datum comes from a single component."""

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, then `predict` the same data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        with writing(self):  # so that it is this fit that predicts
            return self.fit(X, y).predict(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable component of each datum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the components for each datum, at T = 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return special.softmax(self._log_joint(X))

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Compute the log-likelihood of each datum at the fitted parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            The log-likelihood of each datum at T = 1 in nats, or, if the log-likelihood is
            intractable, the datum's part of the ELBO.
        """
        return special.log_sum_exp(self._log_joint(X), axis=1)

    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        """Check X, and compute log p(x, k) of each datum and component."""
        raise NotImplementedError


def check_rows(bound: NDArray[np.float64], X: NDArray) -> None:
    """Raise ValueError if the bound of a row of X is not finite."""
    bad_rows = np.flatnonzero(~np.isfinite(bound))
    if bad_rows.size:
        raise ValueError(
            f"Row {bad_rows[0]} of X is so far from all components that its log-likelihood is not "
            f"a finite float. The largest value in the row is {np.max(np.abs(X[bad_rows[0]])):.3g}."
        )
