"""A fit of a mixture from one start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState

from annealvi.files import Node
from annealvi.inference import Callbacks, Monitor, Position, Start, optimise
from annealvi.mixtures.state import BatchModel, MixtureState, ModelFiles
from annealvi.model import Tempering
from annealvi.temperature import Temperature, Variational

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
