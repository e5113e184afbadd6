"""What a fit of a mixture has learned, at any step, and how it is written to a file."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from annealvi.files import Node, generator_state, restore_generator
from annealvi.inference import Callbacks, Monitor, Position, Start, optimise
from annealvi.inference.checkpoints import (
    Fingerprint,
    begin_generator,
    read_checkpoint,
    write_checkpoint,
)
from annealvi.inference.fitted import Fitted
from annealvi.inference.restarts import Progress, fit_starts
from annealvi.model import Model, Tempering
from annealvi.temperature import Fixed, Temperature, Variational
from annealvi.temperature.parameters import restored_temperature, temperature_tree
from annealvi.threads import shallow


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

    def state_dict(self) -> dict[str, Any]:
        """All that the fit has learned, as a tree."""

    def load_state_dict(self, node: Node) -> None:
        """Take over what a fit has learned."""


class ModelFiles(NamedTuple):
    """How models of a class are written to files."""

    #: Returns a model as a tree.
    tree: Callable[[Any], dict[str, Any]]
    #: Returns the model of such a tree, without the buffers of its training.
    restored: Callable[[Node], Any]


@dataclass
class MixtureState:
    """The state of a fit of a mixture, at any step."""

    model: Any
    #: The record: steps, temperatures, bounds.
    monitor: Monitor
    #: Mean ELBO per sample after the last step.
    lower_bound: float = -np.inf
    #: Whether the last step changed it by less than the tolerance.
    converged: bool = False
    #: The temperature, if it has learned a q(y).  Others are not kept: a proximity temperature
    #: holds arrays of the size of the training data.
    temperature: Variational | None = None

    def view(self) -> Self:
        """Return the fit as it is between two steps, for readers in any thread.

        A step replaces the arrays of the model; it does not write to those of the view.
        """
        seen = shallow(self)
        seen.model = shallow(self.model)
        seen.model.release_buffers()
        seen.monitor = self.monitor.copy()
        if self.temperature is not None:
            seen.temperature = self.temperature.copy(seen.model)
        return seen

    def state_dict(self, files: ModelFiles) -> dict[str, Any]:
        """Return the state as a tree, from which :meth:`restored` can make it without data."""
        learned = self.temperature
        return self.progress() | {
            "model": files.tree(self.model),
            "temperature": None if learned is None else temperature_tree(learned),
        }

    @classmethod
    def restored(cls, node: Node, files: ModelFiles) -> MixtureState:
        """The state of a fit that has ended, from a file."""
        state = cls(files.restored(node.node("model")), Monitor())
        state.load_progress(node)
        if not node.is_none("temperature"):
            learned = restored_temperature(node.node("temperature"), model=state.model)
            if not isinstance(learned, Variational):
                raise node.error("temperature", "a Variational temperature", learned)
            state.temperature = learned
        return state

    def progress(self) -> dict[str, Any]:
        """The record and the bound, as a tree."""
        return {
            "monitor": self.monitor.state_dict(),
            "lower_bound": self.lower_bound,
            "converged": bool(self.converged),
        }

    def load_progress(self, node: Node) -> None:
        """Take over what :meth:`progress` returned."""
        self.monitor.load_state_dict(node.node("monitor"))
        self.lower_bound = node.number("lower_bound")
        self.converged = node.boolean("converged")


class MixtureProgress:
    """The starts of a fit that have ended, and the one under way."""

    def __init__(
        self, fingerprint: Fingerprint, random_state: Any, resume: str | os.PathLike | None
    ) -> None:
        self._fingerprint = fingerprint
        self._saved: Node | None = None
        if resume is not None:
            self._saved = read_checkpoint(resume, fingerprint.owner)
            fingerprint.check(self._saved.node("fit"), resume)
        self.finished = False
        self.resumes = self._saved is not None
        began = None if self._saved is None else self._saved.node("generator")
        self.rng = begin_generator(random_state, began)
        self.starts: Progress[MixtureRun] = Progress()
        self._began = self._run_began = deepcopy(self.rng)

    def note_start(self) -> None:
        """Remember the generator of a start that is about to be drawn."""
        self._run_began = deepcopy(self.rng)

    def resume(
        self,
        begin: Sequence[Callable[[threading.Event], MixtureRun]],
        ended: Callable[[int, Node], MixtureRun],
    ) -> None:
        """Take over the starts of the checkpoint."""
        node, starts, n_starts = self._saved, self.starts, len(begin)
        assert node is not None
        scores = node.array("scores", (None,), np.float64)
        if len(scores) > n_starts:
            raise node.error("scores", f"at most {n_starts} numbers", scores)
        starts.scores[:] = scores.tolist()
        self.finished = node.boolean("finished")
        if len(scores):
            best = node.node("best")
            number = best.integer("number", 0, len(scores) - 1)
            starts.best.show(ended(number, best), number)
        if not node.is_none("run"):
            if len(scores) == n_starts or self.finished:
                raise node.error("run", "None, as all starts have ended", "a run")
            run = node.node("run")
            _set(self.rng, run.node("began"))
            starts.run = begin[len(scores)](threading.Event())
            starts.run.load_state_dict(run)
        elif not len(scores):
            raise node.error("scores", "at least one number", scores)
        _set(self.rng, node.node("now"))

    def write(self, path: str | os.PathLike) -> None:
        """Write a checkpoint."""
        starts = self.starts
        best = run = None
        if starts.best.run is not None:
            best = starts.best.run.ended_dict() | {"number": starts.best.number}
        if starts.run is not None:
            run = starts.run.state_dict() | {"began": generator_state(self._run_began)}
        write_checkpoint(
            path,
            {
                "fit": self._fingerprint.state_dict(),
                "generator": generator_state(self._began),
                "now": generator_state(self.rng),
                "scores": np.array(starts.scores, dtype=np.float64),
                "finished": self.finished,
                "best": best,
                "run": run,
            },
        )


def _set(rng: RandomState, node: Node) -> None:
    rng.set_state(restore_generator(node).get_state(legacy=False))


#: Called with the estimator and the monitor after each step.
Callback = Callable[[Any, Monitor], None]


class Options(NamedTuple):
    """The parameters that all mixtures have for their fit."""

    #: Name of the estimator, for messages.
    owner: str
    #: See :class:`annealvi.TemperedFMM`.
    max_iter: int
    tol: float
    n_init: int
    verbose: int
    n_threads: int
    callback: Callbacks | None
    random_state: Any


def options_of(estimator: Any, n_threads: int, callback: Callbacks | None) -> Options:
    """The parameters of an estimator that its fit needs."""
    return Options(
        owner=type(estimator).__name__,
        max_iter=int(estimator.max_iter),
        tol=estimator.tol,
        n_init=int(estimator.n_init),
        verbose=estimator.verbose,
        n_threads=n_threads,
        callback=callback,
        random_state=estimator.random_state,
    )


class MixtureRun:
    """A fit from one start; see :class:`annealvi.inference.restarts.Run`."""

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
        files: ModelFiles,
    ) -> None:
        self.X, self.temperature, self.rng, self.number = X, temperature, rng, number
        self.options, self.adopt, self.halt, self.files = options, adopt, halt, files
        kept: Any = temperature if temperature.learns else None
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

    def state_dict(self) -> dict[str, Any]:
        """All that the run needs to go on, as a tree; called in a callback."""
        return self.state.progress() | {
            "comparable": self.comparable,
            "model": self.state.model.state_dict(),
            "temperature": self.temperature.state_dict(),
        }

    def load_state_dict(self, node: Node) -> None:
        """Take over the place and all that was learned; called before :meth:`go`."""
        self.state.model.load_state_dict(node.node("model"))
        self.temperature.load_state_dict(node.node("temperature"))
        self.state.load_progress(node)
        self.comparable = node.boolean("comparable")
        if not 1 <= self.n_steps <= self.options.max_iter:
            raise node.error("monitor", f"at step 1 to {self.options.max_iter}", self.n_steps)

    def ended_dict(self) -> dict[str, Any]:
        """What is left of a run that has ended, as a tree."""
        state = self.state.state_dict(self.files)
        return {"state": state, "comparable": self.comparable, "stopped": self.stopped}

    def load_ended(self, node: Node) -> None:
        """Take over what is left of a run that has ended."""
        self.state = MixtureState.restored(node.node("state"), self.files)
        self.comparable, self.stopped = node.boolean("comparable"), node.boolean("stopped")

    def go(self) -> None:
        """Fit to the end."""
        state, options = self.state, self.options
        if options.callback is not None:
            options.callback.begin(
                Start(
                    number=self.number,
                    n_starts=options.n_init,
                    n_done=self.n_steps,
                    n_steps=options.max_iter,
                    steps_per_pass=1,
                    bound_name="ELBO a sample",
                    bound=lambda: state.lower_bound,
                )
            )
        try:
            if self.n_steps:
                self._finish_step()  # it was written by a callback in the midst of its last step
            optimise(
                state.model,
                self.X,
                self.temperature,
                state.monitor,
                n_samples=state.model.n_samples,
                n_passes=options.max_iter,
                on_step=self._on_step,
                position=Position(n_passes=self.n_steps),
            )
        except StopIteration:
            pass  # the step that was finished has converged
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
        if learning and temperature.learns:
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
        self._finish_step()

    def _finish_step(self) -> None:
        """What follows the callback in a step."""
        if self.state.converged:
            raise StopIteration
        learning = not self.temperature.settled(self.n_steps - 1)
        if learning and self.temperature.perturbs and self.n_steps < self.options.max_iter:
            self.state.model.perturb(self.rng)

    def _call_back(self, callback: Callbacks) -> None:
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
    progress: MixtureProgress,
    *,
    files: ModelFiles,
    adopt: Callable[[MixtureState], None],
    commit: Callable[[], None],
) -> None:
    """Fit from every starting point, and set the estimator's state to the best.

    Starts draw from one generator, one after another.  With a fixed T a fit draws no random
    numbers after its start.  If there is also no callback, all starts are drawn first and then
    fitted in parallel.  A model is built when its fit begins, so only as many models hold
    arrays of the size of the data as there are fits at a time.
    """
    rng = progress.rng

    def run(
        model: Any, planned: Temperature, number: int, halt: threading.Event | None = None
    ) -> MixtureRun:
        halt = threading.Event() if halt is None else halt
        return MixtureRun(X, model, planned, rng, number, options, adopt, halt, files)

    def begin(number: int, build: Callable[[], Any] | None, halt: threading.Event) -> MixtureRun:
        if build is None:
            progress.note_start()
            build = draw(rng)
        model = build()
        if n_workers > 1:
            model.n_threads = 1
        return run(model, temperature.plan(options.max_iter, model=model), number, halt)

    def ended(number: int, node: Node) -> MixtureRun:
        made = run(None, temperature, number)
        made.load_ended(node)
        return made

    def salvage(run: MixtureRun) -> None:
        adopt(run.state)
        commit()

    n_workers = 1
    if options.callback is None and isinstance(temperature, Fixed) and not progress.resumes:
        n_workers = min(options.n_threads, options.n_init)
    drawn = [None if n_workers == 1 else draw(rng) for _ in range(options.n_init)]
    starts = [partial(begin, number, build) for number, build in enumerate(drawn)]
    if progress.resumes:
        progress.resume(starts, ended)
    best = progress.starts.best.run
    if best is None or not progress.finished:
        best, _ = fit_starts(starts, n_workers=n_workers, salvage=salvage, progress=progress.starts)
    progress.finished = True
    salvage(best)  # whatever becomes of the last checkpoint
    if options.tol > 0 and best.comparable and not best.state.converged and not best.stopped:
        warnings.warn(
            f"The ELBO had not converged to tol={options.tol!r} after max_iter={options.max_iter} "
            "iterations. Increase max_iter or tol.",
            ConvergenceWarning,
            stacklevel=5,  # past fit and scikit-learn's fit context
        )


class FittedMixture(Fitted):
    """Attributes that all fitted mixtures have."""

    # set by `fit`
    _state: MixtureState

    def _fit_from_starts(
        self,
        X: Any,
        draw: Callable[[RandomState], Callable[[], Any]],
        temperature: Temperature,
        given: tuple[Any, Any],
        *,
        n_threads: int,
        resume: str | os.PathLike | None,
        files: ModelFiles,
        adopt: Callable[[MixtureState], None],
        commit: Callable[[], None],
    ) -> None:
        """Fit, see :func:`fit_mixture`, so that callbacks can write checkpoints.

        `given` is X and y as the user gave them.
        """
        with self._fit_under_way(*given) as callbacks:
            options = options_of(self, n_threads, callbacks)
            progress = MixtureProgress(Fingerprint(self, X), options.random_state, resume)
            self._starts = progress
            fit_mixture(
                *(X, draw, temperature, options, progress),
                files=files,
                adopt=adopt,
                commit=commit,
            )

    @property
    def n_iter_(self) -> int:
        return self._fitted().monitor.step

    @property
    def converged_(self) -> bool:
        return self._fitted().converged

    @property
    def lower_bound_(self) -> float:
        return self._fitted().lower_bound

    def _fitted_tree(self, files: ModelFiles) -> dict[str, Any]:
        """The fitted state as a tree."""
        names = getattr(self, "feature_names_in_", None)
        return {"feature_names_in": names, "fit": self._fitted().state_dict(files)}

    def _load_fitted(
        self, node: Node, files: ModelFiles, adopt: Callable[[MixtureState], None]
    ) -> None:
        """Take over what :meth:`_fitted_tree` returned."""
        state = MixtureState.restored(node.node("fit"), files)
        n_features = state.model.n_features
        if not node.is_none("feature_names_in"):
            self.feature_names_in_ = node.strings("feature_names_in", n_features)
        self.n_features_in_ = n_features
        adopt(state)


def sampler(estimator: Any, n_samples: Any, random_state: Any) -> RandomState:
    """Check that the estimator is fitted and `n_samples` valid; return the generator."""
    check_is_fitted(estimator)
    if not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(
            f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least "
            "one sample."
        )
    return check_random_state(random_state)


def check_reached(log_joint: NDArray[np.float64], X: NDArray) -> NDArray[np.float64]:
    """Return log p(x, z) of each datum and component, which must be finite for one of them."""
    lost = np.flatnonzero(~np.isfinite(log_joint.max(axis=1)))
    if lost.size:
        raise ValueError(
            f"Row {lost[0]} of X is so far from all components, with values up to "
            f"{np.max(np.abs(X[lost[0]])):.3g}, that no float can hold its log-likelihood."
        )
    return log_joint
