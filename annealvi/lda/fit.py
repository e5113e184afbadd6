"""Fits of TemperedLDA: their planning, and one run for each start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import sparse

from annealvi.checks import check_total
from annealvi.files import Node
from annealvi.inference import Callbacks, OverRelaxed, Position, Start
from annealvi.lda.defaults import Settings, check_steps, is_open, resolve, words_per_entry
from annealvi.lda.document_temperatures import document_temperatures
from annealvi.lda.dtypes import extent
from annealvi.lda.early_stopping import EarlyStopping, HeldOutDocuments, hold_out
from annealvi.lda.evaluation import Evaluation, StoppingTest
from annealvi.lda.finish import Finish
from annealvi.lda.results import some_documents
from annealvi.lda.saved import load_state, state_tree
from annealvi.lda.state import LDAState
from annealvi.scale.elsewhere import Elsewhere
from annealvi.temperature import LocalVariational, Temperature

#: With validation, at most this multiple of the usual number of passes.
PROLONGED = 5
#: Number of documents whose perplexity a progress bar shows.
FEW = 200


@dataclass(frozen=True)
class Task:
    """The data and settings that all starts of a fit share."""

    #: Name of the estimator, for messages.
    owner: str
    #: All documents given to `fit`, and those that are not held out.
    documents: sparse.csr_matrix | Elsewhere
    training: sparse.csr_matrix | Elsewhere
    held_out: HeldOutDocuments | None
    n_topics: int
    settings: Settings
    temperature: Temperature
    #: Largest number of passes, and the passes over which T is planned to fall.
    n_passes: int
    n_planned: int
    #: Whether to keep gamma of all documents.
    keep_gamma: bool
    #: Number of starts, and of threads for each.
    n_starts: int
    n_threads: int
    stopping: StoppingTest
    #: See :class:`EarlyStopping`.
    patience: int
    #: Called with the monitor after each step.
    callback: Callbacks | None

    @property
    def online(self) -> bool:
        """True if a step uses a minibatch."""
        return self.settings.learning_method != "batch"

    @property
    def batch_size(self) -> int:
        """Number of documents per step."""
        n_samples = self.training.shape[0]
        return min(int(self.settings.batch_size), n_samples) if self.online else n_samples

    @property
    def steps_per_pass(self) -> int:
        """Number of steps per pass."""
        return -(-self.training.shape[0] // self.batch_size)

    @property
    def n_planned_steps(self) -> int:
        """Steps over which T is planned to fall."""
        return self.n_planned * self.steps_per_pass

    @property
    def step_size(self) -> Callable[[int], float]:
        """rho of step 1, 2, ..."""
        steps = self.settings.step_size(self.n_planned_steps)
        if not self.settings.finish_iter:
            return steps
        return OverRelaxed(steps, self.n_passes * self.steps_per_pass, self.settings.finish_iter)

    @property
    def n_steps(self) -> int:
        """Largest number of steps."""
        return self.n_passes * self.steps_per_pass + self.settings.finish_iter


class LDARun:
    """A fit from one start; see :class:`annealvi.inference.restarts.Run`."""

    def __init__(self, task: Task, number: int, rng: RandomState, halt: threading.Event) -> None:
        self.task, self.halt = task, halt
        self.score, self.goodness = np.nan, -np.inf
        self.stopped = self.in_callback = False
        self.position = Position()
        X, settings = task.training, task.settings
        n_samples = X.shape[0]
        self.state = state = LDAState.begin(
            task.owner, X, task.n_topics, settings, rng, task.n_threads
        )
        state.model.set_corpus(X, n_samples, float(X.sum(dtype=np.float64)))
        planned = state.plan(task.temperature, task.n_planned_steps, n_samples / task.batch_size)
        state.follow(task.temperature, planned)
        if task.online:
            n_steps = task.n_passes * task.steps_per_pass
            check_steps(settings, planned, task.step_size, 0, n_steps)
        self._early_stopping: EarlyStopping | None = None
        if task.held_out is not None:
            self._early_stopping = EarlyStopping(task.held_out, task.patience)
        self.number = number
        self._finish = Finish(state, task.n_passes, settings.finish_iter)
        self.evaluation = Evaluation(
            state,
            X,
            task.documents,
            (task.n_passes, settings.finish_iter),
            task.stopping,
            keep_gamma=task.keep_gamma
            or (isinstance(planned, LocalVariational) and not isinstance(X, Elsewhere)),
            early_stopping=self._early_stopping,
            prefix=f"start {number + 1}, " if task.n_starts > 1 else "",
        )

    @property
    def n_steps(self) -> int:
        """Steps made."""
        return self.state.monitor.step

    def go(self) -> None:
        """Fit to the end."""
        state, task, X = self.state, self.task, self.task.training
        if task.callback is not None:
            task.callback.begin(self._start())
        if self.position == Position():
            state.model.start_documents(X.shape[0])
        else:
            state.take_priors()  # a resumed fit has ended its last step but for this
        try:
            state.make_passes(
                X,
                batch_size=task.batch_size,
                n_passes=task.n_passes,
                n_full_passes=task.settings.finish_iter,
                population=X.shape[0],
                step_size=task.step_size,
                on_step=self._on_step,
                after_pass=self._after_pass,
                position=self.position,
            )
        finally:
            state.model.topics.catch_up()
        if self._early_stopping is not None:
            self._early_stopping.finish(state)
            self.score = self.goodness = self._early_stopping.score
        elif not self.halt.is_set():
            self.score = self.evaluation.final()
            self.goodness = -self.score

    def warn(self, stacklevel: int) -> None:
        """Warn if the fit had not converged, by the tests that it has."""
        self.evaluation.warn(stacklevel + 1)
        if self.position.n_passes == self.task.n_passes + self.task.settings.finish_iter:
            self._finish.warn(stacklevel + 1)  # all of its passes were made

    def conclude(self, n_threads: int) -> None:
        """Compute `bound_` and the other fitted attributes of the best start."""
        state, X = self.state, self.task.documents
        if state.results.bound is not None:
            return  # a fit that had ended was resumed
        state.model.topics.n_threads = n_threads
        results = state.results
        results.bound = self.evaluation.final()
        results.sample = some_documents(X)
        if isinstance(state.temperature, LocalVariational):
            gamma = self.evaluation.gamma
            results.document_temperatures = document_temperatures(state, X, gamma)

    def state_dict(self) -> dict[str, Any]:
        """Return the run after a step or at its end, as a tree; see :mod:`annealvi.files`."""
        stopping = self._early_stopping
        return {
            "state": state_tree(self.state),
            "gamma": self.state.model.documents.gamma,
            "position": self.position.state_dict(),
            "evaluation": self.evaluation.state_dict(),
            "finish": self._finish.state_dict(),
            "early_stopping": None if stopping is None else stopping.state_dict(),
            "score": float(self.score),
            "goodness": float(self.goodness),
            "stopped": self.stopped,
        }

    def load_state_dict(self, node: Node) -> None:
        """Take over a run of the same task from the same start."""
        state, task = self.state, self.task
        load_state(state, node.node("state"))
        state.model.documents.gamma = None
        if not node.is_none("gamma"):
            shape, dtype = (task.training.shape[0], task.n_topics), state.model.dtype
            state.model.documents.gamma = node.array("gamma", shape, dtype, positive=True).copy()
        n_passes = task.n_passes + task.settings.finish_iter
        self.position.load_state_dict(node.node("position"), n_passes, task.steps_per_pass)
        self.evaluation.load_state_dict(node.node("evaluation"))
        self._finish.load_state_dict(node.node("finish"))
        if self._early_stopping is not None:
            self._early_stopping.load_state_dict(node.node("early_stopping"), state)
        self.score = node.number("score", finite=False)
        self.goodness = node.number("goodness", finite=False)
        self.stopped = node.boolean("stopped")

    def _start(self) -> Start:
        """What the callbacks are told of this start."""
        task = self.task
        return Start(
            number=self.number,
            n_starts=task.n_starts,
            n_done=self.n_steps,
            n_steps=task.n_steps,
            steps_per_pass=task.steps_per_pass,
            bound_name="perplexity",
            bound=self._bound,
        )

    def _bound(self) -> float:
        """The perplexity now, of some of the training documents."""
        X = self.task.training
        some = X[:: -(-X.shape[0] // FEW)]
        return self.state.view().perplexity(some, population=X.shape[0])

    def _after_pass(self, index: int) -> bool:
        converged = self._finish.after_pass(index)
        return self.evaluation.after_pass(index) or converged

    def _on_step(self) -> None:
        if self.halt.is_set():
            raise StopIteration
        self.in_callback = self.task.callback is not None
        try:
            self.state.after_step(self.task.callback)
        except StopIteration:
            self.stopped, self.in_callback = True, False
            raise
        self.in_callback = False
        if self.task.callback is not None:  # topics with wrong numbers in them are not kept
            self.state.model.topics.notice_writes()


def plan_fit(
    owner: str,
    parameters: Mapping[str, Any],
    X: sparse.csr_matrix | Elsewhere,
    rng: RandomState,
    *,
    keep_gamma: bool,
    n_threads: int,
    callback: Callbacks | None,
) -> Task:
    """Hold documents out and resolve open parameters."""
    training, held_out = X, None
    if parameters["validation_fraction"] is not None:
        training, held_out = hold_out(X, float(parameters["validation_fraction"]), rng)
    # a minibatch, which may be one document, stands for all
    words = check_total(
        extent(training)[0], training.dtype, training.shape[0], "the number of documents"
    )
    if held_out is not None and not words:  # a corpus of no words at all is fitted to the prior
        raise ValueError(
            "X must have words. Got only zeros for the training documents, "
            f"n_samples={training.shape[0]}."
        )
    K = int(parameters["n_components"])
    settings = resolve(parameters, training.shape[0], words_per_entry(training, K))
    if settings.finish_iter and held_out is not None:
        raise ValueError(
            f"The 'finish_iter' parameter of {owner} must be 0 or None with validation_fraction, "
            f"which chooses the pass that the fit ends with. Got {settings.finish_iter!r}."
        )
    n_passes, n_planned = _count_passes(settings, parameters, training.shape[0])
    return Task(
        owner=owner,
        documents=X,
        training=training,
        held_out=held_out,
        n_topics=K,
        settings=settings,
        temperature=settings.wanted_temperature(owner),
        n_passes=n_passes,
        n_planned=n_planned,
        keep_gamma=keep_gamma,
        n_starts=int(parameters["n_init"]),
        n_threads=n_threads,
        stopping=StoppingTest(*(parameters[name] for name in StoppingTest._fields)),
        patience=int(parameters["patience"]),
        callback=callback,
    )


def _count_passes(
    settings: Settings, parameters: Mapping[str, Any], n_samples: int
) -> tuple[int, int]:
    """The largest number of passes, and the passes over which T is planned to fall."""
    given = int(settings.max_iter)
    if parameters["validation_fraction"] is None:
        return given, given
    usual = int(resolve({**parameters, "max_iter": None}, n_samples).max_iter)
    if parameters["max_iter"] is None:
        return PROLONGED * usual, usual
    if is_open(parameters["temperature"]):
        # if T fell over the whole budget, the fit would never stop early
        return given, min(usual, given)
    return given, given
