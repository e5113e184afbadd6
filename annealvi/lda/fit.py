"""The computations of `fit` and `partial_fit` of TemperedLDA.

**Merged runs.**  Each run is a short fit.  The topics of all runs are collected, and two topics at
a time are merged until K are left.  The counts of merged topics are added, and divided by the
number of runs.  The first run continues with the merged topics: about one pass over minibatches in
small steps adjusts them to each other.  Then the batch passes at the end of the fit follow.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from sklearn.base import clone

from annealvi.checks import check_counts, check_total
from annealvi.files.schema import Array, Flag, Integer, Listed, Number, Schema, Tree, damaged
from annealvi.inference import (
    Callbacks,
    LinearDecay,
    OverRelaxed,
    Position,
    Run,
    full_step,
    optimise,
)
from annealvi.inference.algorithm import POSITION
from annealvi.lda.hooks import Converged, HeldOut, HeldOutDocuments, Perplexity, hold_out
from annealvi.lda.settings import (
    CONSTRAINTS,
    Settings,
    are_alike,
    check_step,
    extent,
    is_open,
    resolve,
    words_per_entry,
)
from annealvi.lda.state import LDAState, no_results, some_documents
from annealvi.models.lda.device import device_of
from annealvi.models.lda.merging import Largest, support
from annealvi.models.lda.starts import CorpusOfFit
from annealvi.models.lda.workspace import Buffers
from annealvi.scale.elsewhere import Elsewhere
from annealvi.temperature import Temperature

#: With validation, a fit makes at most this multiple of the usual number of passes.
PROLONGED = 5
#: The largest step size after a merge, and the minimum number of such steps.
REFINING, REFINING_STEPS = 0.1, 10
#: The number of documents whose perplexity is shown in a progress bar.
FEW = 200


@dataclass(frozen=True)
class Plan:
    """The data and settings that all runs of a fit share."""

    #: All documents passed to `fit`, and the documents that are not held out.
    documents: sparse.csr_matrix | Elsewhere
    training: sparse.csr_matrix | Elsewhere
    held_out: HeldOutDocuments | None
    #: The dtype in which topics are shown to the user.
    shown: np.dtype
    #: The parameters of the estimator, and the settings computed from them.
    parameters: Mapping[str, Any]
    settings: Settings
    temperature: Temperature
    #: Maximum number of passes, and the number of passes over which T is planned to decrease.
    n_passes: int
    n_planned: int
    #: Whether to store gamma of all documents.
    keep_gamma: bool
    #: Number of runs at the same time, and number of threads of all runs together.
    n_workers: int
    n_threads: int
    callbacks: Callbacks
    #: The context of changes to a fit that other threads can see.
    changing: AbstractContextManager
    #: The corpus, and the buffers of runs that follow one another; parallel runs have their own.
    corpus: CorpusOfFit
    buffers: Buffers = field(default_factory=Buffers)

    @property
    def batch_size(self) -> int:
        n_samples = self.training.shape[0]
        batch = self.settings.learning_method == "batch"
        return n_samples if batch else min(int(self.settings.batch_size), n_samples)

    @property
    def steps_per_pass(self) -> int:
        return -(-self.training.shape[0] // self.batch_size)

    def passes_of_run(self, number: int) -> Passes:
        """Return the passes of a run; a run to be merged makes no batch passes at the end."""
        n_full = 0 if self.settings.merged else int(self.settings.finish_iter)
        steps = self.settings.step_size(self.n_planned * self.steps_per_pass)
        if n_full:
            steps = OverRelaxed(steps, self.n_passes * self.steps_per_pass, n_full)
        label = f"run {number + 1}, " if self.settings.n_init > 1 else ""
        return Passes(self.n_passes, n_full, steps, label, "max_iter: ", not self.settings.merged)

    def passes_of_merged(self) -> Passes:
        n_passes = 1 if self.steps_per_pass == 1 else -(-REFINING_STEPS // self.steps_per_pass)
        n, n_full = n_passes * self.steps_per_pass, int(self.settings.finish_iter)
        refining = full_step if n == 1 else LinearDecay(n, n * REFINING / 2, REFINING)
        steps = OverRelaxed(refining, n, n_full)
        return Passes(n_passes, n_full, steps, "merged, ", "", True)


class Passes(NamedTuple):
    """The passes of a run: first over minibatches, then in batch at T = 1."""

    n_passes: int
    n_full: int
    #: The step size rho of steps 1, 2, ...
    step_size: Callable[[int], float]
    #: Parts of the line that is printed after a pass: the run, and the parameter that limits it.
    label: str
    of: str
    #: Whether these are the last passes of the fit.
    are_last: bool


class Fit:
    """The passes of one run; see :class:`annealvi.inference.FitOfRun`."""

    def __init__(
        self, plan: Plan, number: int, state: LDAState, passes: Passes, halt: threading.Event
    ) -> None:
        self.plan, self.number, self.state, self.passes = plan, number, state, passes
        self.halt, self.first = halt, state.monitor.step  # number of steps before these passes
        self.score, self.goodness = np.nan, -np.inf
        self.stopped = self.in_callback = False
        self.position = Position()  # passes and minibatches done
        self.largest: list[Largest] = []
        self.perplexity = Perplexity(self)
        self.held_out: HeldOut | None = None
        if passes.are_last and plan.held_out is not None:
            self.held_out = HeldOut(self, plan.held_out)
        self.hooks: list[Any] = [Converged(self)] if passes.are_last and passes.n_full else []
        self.hooks += [self.perplexity, *([] if self.held_out is None else [self.held_out])]

    @classmethod
    def begin(cls, plan: Plan, number: int, rng: RandomState, halt: threading.Event) -> Self:
        """Return a run before its first step."""
        X, settings, n_samples = plan.training, plan.settings, plan.training.shape[0]
        shape, n_threads = (int(plan.parameters["n_components"]), X.shape[1]), plan.n_threads
        own_threads = n_threads // plan.n_workers
        state = LDAState.begin(shape, X.dtype, settings, rng, own_threads, plan.shown, X)
        state.model.set_corpus(plan.corpus)
        if plan.n_workers == 1:
            state.model.buffers = plan.buffers
        state.planned_for = clone(plan.temperature)
        n_steps, per_pass = plan.n_planned * plan.steps_per_pass, n_samples / plan.batch_size
        state.temperature = plan.temperature.plan(n_steps, per_pass, model=state.model)
        passes = plan.passes_of_run(number)
        if settings.learning_method != "batch" and plan.n_passes:
            check_step(settings, state.temperature, 0, passes.step_size(1))
        return cls(plan, number, state, passes, halt)

    @property
    def n_steps(self) -> int:
        return self.state.monitor.step

    def run(self) -> None:
        """Make all passes, and evaluate the result if these passes are the last."""
        plan = self.plan
        plan.callbacks.begin(self._told())
        self._make_passes()
        if self.passes.are_last:
            self._evaluate()

    def _make_passes(self) -> None:
        """Make all passes that remain after the position."""
        plan, X, state, passes = self.plan, self.plan.training, self.state, self.passes
        try:
            n_passes = (passes.n_passes + passes.n_full) * plan.settings.n_init
            with state.training(keep=False, repeated=n_passes > 1):
                optimise(
                    state.model,
                    X,
                    state.temperature,
                    state.monitor,
                    n_samples=X.shape[0],
                    batch_size=plan.batch_size,
                    n_passes=passes.n_passes,
                    n_full_passes=passes.n_full,
                    step_size=lambda step: passes.step_size(step - self.first),
                    on_step=self._on_step,
                    after_pass=self._after_pass,
                    position=self.position,
                    changing=plan.changing,
                )
        finally:
            self.catch_up()

    def _evaluate(self) -> None:
        if self.held_out is not None:
            self.score = self.goodness = self.held_out.finish()
        elif not self.halt.is_set():
            self.score = self.perplexity.final()
            self.goodness = -self.score

    def conclude(self) -> None:
        """Compute `bound_` and the other results of the final fit."""
        state, X, results = self.state, self.plan.documents, self.state.results
        if results["bound"] is not None:
            return  # the fit was resumed from a checkpoint that was written after its end
        state.model.topics.n_threads = self.plan.n_threads
        results["bound"] = self.perplexity.final()
        results["sample"] = some_documents(X)
        if state.temperature.per_document:
            gamma = self.perplexity.gamma
            results["document_temperatures"] = state.document_temperatures(X, gamma)

    def warn(self) -> None:
        """Warn if all passes were made, and a stopping test shows that the fit did not converge."""
        if self.position.n_passes == self.passes.n_passes + self.passes.n_full:
            self.perplexity.warn()
            if self.held_out is not None:
                self.held_out.warn()

    def catch_up(self) -> None:
        """Apply the pending steps of all words."""
        with self.plan.changing:
            self.state.model.topics.catch_up()

    def state_dict(self) -> dict[str, Any]:
        """Return the fit, after a step or at its end, as a tree; see :mod:`annealvi.files`."""
        parts = {
            "state": self.state.state_dict(),
            "hooks": [hook.SCHEMA.dump(hook) for hook in self.hooks],
        }
        return FIT.dump(vars(self) | parts)

    def load_state_dict(self, tree: Mapping[str, Any], way: str, *, ended: bool) -> None:
        """Continue from the state of a fit with the same plan and the same run."""
        plan, begun = self.plan, self.state
        K, V, dtype = begun.model.n_topics, begun.model.n_features, begun.model.dtype
        sizes: dict[str, Any] = {
            "n_samples": plan.training.shape[0],
            "K": K,
            "V": V,
            "dtype": dtype,
            "most_passes": self.passes.n_passes + self.passes.n_full,
            "most_batches": plan.steps_per_pass,
            "n_hooks": len(self.hooks),
            "n_runs": plan.settings.n_init,
        }
        found = FIT.load(tree, way, **sizes)
        self.state = state = LDAState.of(found["state"], f"{way}.state")
        model = state.model
        if (model.n_topics, model.n_features, model.dtype) != (K, V, dtype):
            raise damaged(f"{way}.state.model", f"one of {K} topics, {V} words, {dtype}", model)
        if state.temperature != begun.temperature:
            raise damaged(f"{way}.state.temperature", "the fit's temperature", state.temperature)
        state.shown = plan.shown  # the same X may be in another dtype
        if model.rng is not None and begun.model.rng is not None:
            begun.model.rng.set_state(model.rng.get_state(legacy=False))
        model.rng = begun.model.rng  # all runs share this generator
        state.resume(plan.settings, plan.n_threads)  # this completes the last step
        for number, (hook, part) in enumerate(zip(self.hooks, found["hooks"], strict=True)):
            hook.SCHEMA.restore(hook, part, f"{way}.hooks.{number}", **sizes)
        if self.perplexity.gamma is not None:
            self.perplexity.latest = None  # so that gamma is computed again
        for name in ("position", "first", "largest", "score", "goodness", "stopped"):
            setattr(self, name, found[name])
        if self.first > self.n_steps:
            raise damaged(f"{way}.first", f"at most the {self.n_steps} steps made", self.first)
        for words, weights in self.largest:
            if words.shape != weights.shape or np.any((words < 0) | (words >= V)):
                raise damaged(f"{way}.largest", f"numbers of {V} words and their weights", words)

    def _told(self) -> Run:
        """Return facts for callbacks about a run, or about the passes after the merge."""
        plan, passes, X = self.plan, self.passes, self.plan.training
        some = X[:: -(-X.shape[0] // FEW)]
        return Run(
            number=self.number,
            n_runs=plan.settings.n_init
            + plan.settings.merged,  # the passes after the merge count as one more run
            n_done=self.n_steps - self.first,
            n_steps=passes.n_passes * plan.steps_per_pass + passes.n_full,
            steps_per_pass=plan.steps_per_pass,
            bound_name="perplexity",
            bound=lambda: self.state.perplexity(some, population=X.shape[0]),
        )

    def _after_pass(self, index: int) -> bool:
        passes, n, ends = self.passes, self.passes.n_passes, False
        line = f"{passes.label}iteration: {index + 1} of {passes.of}{n}"
        if index >= n:
            n_batch = f"{index + 1 - n} of at most {passes.n_full}"
            line = f"{passes.label}iteration: {n_batch} batch passes at the end"
        self.state.monitor.record()
        self.state.n_passes += 1
        for hook in self.hooks:
            end, text = hook.after_pass(index)
            ends, line = ends or end, line + text
        if self.plan.parameters["verbose"]:
            print(line)
        return ends

    def _on_step(self) -> None:
        if self.halt.is_set():
            raise StopIteration
        if not self.plan.callbacks:
            return
        self.in_callback = True
        try:
            self.plan.callbacks(self.state.monitor)
        except StopIteration:
            self.stopped, self.in_callback = True, False
            raise
        self.in_callback = False
        with self.plan.changing:
            self.state.attach_again()


class MergedFit(Fit):
    """The last part of a fit, which merges the topics of all runs and continues with them."""

    def __init__(self, runs: list[Fit]) -> None:
        first, plan = runs[0], runs[0].plan
        passes = plan.passes_of_merged()
        super().__init__(plan, plan.settings.n_init, first.state, passes, first.halt)
        self.runs, self.stopped = runs, runs[-1].stopped

    def run(self) -> None:
        """Merge the topics, and improve them unless the user has stopped the runs."""
        self.state.model.topics.n_threads = self.plan.n_threads  # all runs have ended
        if self.runs:
            self._merge()
        if self.stopped:
            self._evaluate()
        else:
            super().run()
        if self.largest:
            counts = self.state.model.topics.counts()
            self.state.results["support"] = support(counts, self.largest)

    def _merge(self) -> None:
        """Use the merged topics of all runs that the user did not stop."""
        counts, model = [], self.state.model
        while self.runs:  # the memory of each run is freed once its counts are computed
            run = self.runs.pop(0)
            if not run.stopped:
                counts.append(run.state.model.topics.counts())
        # if a callback has assigned different priors to topics, the topics are not merged
        if counts and are_alike(model.alpha) and are_alike(model.eta, 2):
            merged = model.topics.merged(counts)
            self.largest = [Largest.of(some) for some in counts]
            with self.plan.changing:
                self.state.assign(merged)

    def load_state_dict(self, tree: Mapping[str, Any], way: str, *, ended: bool) -> None:
        """Continue from the state of a fit whose topics have been merged."""
        super().load_state_dict(tree, way, ended=ended)
        self.runs = []

    def _after_pass(self, index: int) -> bool:
        if index < self.passes.n_passes:
            self.perplexity.last = None  # small changes in small steps do not mean convergence
        return super()._after_pass(index)


FIT = Schema(
    state=Tree(),
    position=POSITION,
    first=Integer(),
    largest=Listed(
        Schema(Largest, words=Array(("K", None), np.int64), weights=Array(("K", None))), "n_runs"
    ),
    hooks=Listed(Tree(), "n_hooks"),
    score=Number(finite=False),
    goodness=Number(finite=False),
    stopped=Flag(),
)


def plan_fit(
    parameters: Mapping[str, Any],
    X: sparse.csr_matrix | Elsewhere,
    rng: RandomState,
    *,
    keep_gamma: bool,
    in_turn: bool,
    n_threads: int,
    **others: Any,
) -> Plan:
    """Plan a fit: hold out documents that `rng` draws, and compute values of open parameters."""
    on_gpu = device_of(parameters["device"]) is not None
    training, held_out, fraction = X, None, parameters["validation_fraction"]
    if fraction is not None:
        training, held_out = hold_out(X, float(fraction), rng)
    n_samples = training.shape[0]
    # the statistics of a minibatch, maybe of one document, are scaled to all documents
    words = check_total(extent(training)[0], training.dtype, n_samples, "the number of documents")
    if held_out is not None and not words:  # without validation the fit returns the prior
        raise ValueError(
            f"The training documents in X must contain words. Got {n_samples} training documents "
            "with only zeros."
        )
    density = words_per_entry(training, int(parameters["n_components"]))
    settings = resolve(parameters, n_samples, density)
    n_passes = n_planned = int(settings.max_iter)
    if held_out is not None and not settings.merged:
        usual = int(resolve({**parameters, "max_iter": None}, n_samples).max_iter)
        if parameters["max_iter"] is None:
            n_passes, n_planned = PROLONGED * usual, usual
        elif is_open(parameters["temperature"]):
            # if T decreased over all passes, the fit would never stop early
            n_planned = min(usual, n_passes)
    temperature = settings.wanted_temperature()
    local = temperature.per_document and not isinstance(X, Elsewhere)
    n_workers = 1 if in_turn or on_gpu else min(n_threads, settings.n_init)
    return Plan(
        documents=X,
        training=training,
        held_out=held_out,
        parameters={name: parameters[name] for name in CONSTRAINTS},
        settings=settings,
        temperature=temperature,
        n_passes=n_passes,
        n_planned=n_planned,
        keep_gamma=keep_gamma or local,
        n_workers=n_workers,
        n_threads=n_threads,
        corpus=CorpusOfFit(training, n_samples, float(training.sum(dtype=np.float64))),
        **others,
    )


# ------------------------------------------------------------------- streams of documents


def prepare_portion(
    state: LDAState, X: sparse.csr_matrix, settings: Settings, population: float, n_threads: int
) -> None:
    """Check the next documents for `partial_fit`, and update the settings and T of the state.

    `population` is the number of documents in the stream.  An error leaves the state unchanged.
    """
    check_counts(X, population, "total_samples")
    state.model.set_corpus(CorpusOfFit(X, population))
    wanted, planned = None, state.temperature
    if settings is not state.streamed_with:  # with the same settings, T is the same as well
        wanted = settings.wanted_temperature()
        if state.planned_for is None or wanted != state.planned_for:
            per_pass = population / int(settings.batch_size)
            planned = wanted.plan(None, per_pass, model=state.model)
    step = state.monitor.step
    check_step(settings, planned, step, settings.step_size(None)(step + 1))
    if wanted is not None and planned is not state.temperature:
        state.planned_for, state.temperature = clone(wanted), planned
    state.streamed_with = settings
    state.resume(settings, n_threads)


def fit_portion(
    state: LDAState,
    X: sparse.csr_matrix,
    settings: Settings,
    population: float,
    callbacks: Callbacks,
    changing: AbstractContextManager,
) -> None:
    """Fit the next documents of a stream, in place, after :func:`prepare_portion`."""

    def on_step() -> None:
        state.results = no_results()  # removes results of an earlier `fit`
        if callbacks:
            callbacks(state.monitor)
            with changing:
                state.attach_again()

    with state.training(keep=True, repeated=False):
        optimise(
            state.model,
            X,
            state.temperature,
            state.monitor,
            n_samples=X.shape[0],
            batch_size=int(settings.batch_size),
            n_passes=1,
            population=population,
            step_size=settings.step_size(None),
            on_step=on_step,
            changing=changing,
        )
