"""A fit of TemperedLDA: what it is planned to do, its runs, and what follows them; streams.

**Merged runs.**  Each run is a short fit.  The topics of all are put together and merged to K,
two at a time; the counts of a topic are the mean over the runs.  The first run goes on with them:
small steps, a pass or so over the minibatches, let the topics adjust to one another, and the
finishing passes follow.
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

#: With validation, at most this multiple of the usual number of passes.
PROLONGED = 5
#: The largest step size after a merge, and the least number of steps before the finish.
REFINING, REFINING_STEPS = 0.1, 10
#: Number of documents whose perplexity a progress bar shows.
FEW = 200


@dataclass(frozen=True)
class Plan:
    """The data and settings that all runs of a fit share."""

    #: All documents passed to `fit`, and those that are not held out.
    documents: sparse.csr_matrix | Elsewhere
    training: sparse.csr_matrix | Elsewhere
    held_out: HeldOutDocuments | None
    #: The dtype in which topics are shown to the user.
    shown: np.dtype
    #: The parameters of the estimator, and what follows from them.
    parameters: Mapping[str, Any]
    settings: Settings
    temperature: Temperature
    #: Largest number of passes, and the passes over which T is planned to fall.
    n_passes: int
    n_planned: int
    #: Whether to keep gamma of all documents.
    keep_gamma: bool
    #: Number of starts at a time, and of threads for all.
    n_workers: int
    n_threads: int
    callbacks: Callbacks
    #: Entered while a fit changes that other threads can see.
    changing: AbstractContextManager
    #: The corpus and the buffers that runs share; those side by side have buffers of their own.
    corpus: CorpusOfFit
    buffers: Buffers = field(default_factory=Buffers)

    @property
    def batch_size(self) -> int:
        """Number of documents per step."""
        n_samples = self.training.shape[0]
        batch = self.settings.learning_method == "batch"
        return n_samples if batch else min(int(self.settings.batch_size), n_samples)

    @property
    def steps_per_pass(self) -> int:
        """Number of steps per pass."""
        return -(-self.training.shape[0] // self.batch_size)

    def passes_of_run(self, number: int) -> Passes:
        """What a run makes; of one that is merged no more is asked."""
        n_full = 0 if self.settings.merged else int(self.settings.finish_iter)
        steps = self.settings.step_size(self.n_planned * self.steps_per_pass)
        if n_full:
            steps = OverRelaxed(steps, self.n_passes * self.steps_per_pass, n_full)
        label = f"run {number + 1}, " if self.settings.n_init > 1 else ""
        return Passes(self.n_passes, n_full, steps, label, "max_iter: ", not self.settings.merged)

    def passes_of_merged(self) -> Passes:
        """What follows the merge."""
        n_passes = 1 if self.steps_per_pass == 1 else -(-REFINING_STEPS // self.steps_per_pass)
        n, n_full = n_passes * self.steps_per_pass, int(self.settings.finish_iter)
        refining = full_step if n == 1 else LinearDecay(n, n * REFINING / 2, REFINING)
        steps = OverRelaxed(refining, n, n_full)
        return Passes(n_passes, n_full, steps, "merged, ", "", True)


class Passes(NamedTuple):
    """Passes over minibatches, then some in batch at T = 1."""

    n_passes: int
    n_full: int
    #: rho of step 1, 2, ...
    step_size: Callable[[int], float]
    #: Who makes them, and what says how many, in what is printed.
    label: str
    of: str
    #: Whether the result of the fit is what they end with.
    are_last: bool


class Fit:
    """The passes of one run; see :class:`annealvi.inference.FitOfRun`."""

    def __init__(
        self, plan: Plan, number: int, state: LDAState, passes: Passes, halt: threading.Event
    ) -> None:
        self.plan, self.number, self.state, self.passes = plan, number, state, passes
        self.halt, self.first = halt, state.monitor.step  # the steps made before
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
        """A run before its first step."""
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
        """Steps made."""
        return self.state.monitor.step

    def run(self) -> None:
        """Fit to the end."""
        plan = self.plan
        plan.callbacks.begin(self._told())
        self._make_passes()
        if self.passes.are_last:
            self._evaluate()

    def _make_passes(self) -> None:
        """All passes, from the position on."""
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
        """Compute `bound_` and the other results of the fit that is kept."""
        state, X, results = self.state, self.plan.documents, self.state.results
        if results["bound"] is not None:
            return  # a fit that had ended was resumed
        state.model.topics.n_threads = self.plan.n_threads
        results["bound"] = self.perplexity.final()
        results["sample"] = some_documents(X)
        if state.temperature.per_document:
            gamma = self.perplexity.gamma
            results["document_temperatures"] = state.document_temperatures(X, gamma)

    def warn(self) -> None:
        """Warn if all passes were made, and a test says that the fit had not converged."""
        if self.position.n_passes == self.passes.n_passes + self.passes.n_full:
            self.perplexity.warn()
            if self.held_out is not None:
                self.held_out.warn()

    def catch_up(self) -> None:
        """Apply the pending steps of all words."""
        with self.plan.changing:
            self.state.model.topics.catch_up()

    def state_dict(self) -> dict[str, Any]:
        """The fit after a step or at its end, as a tree; see :mod:`annealvi.files`."""
        parts = {
            "state": self.state.state_dict(),
            "hooks": [hook.SCHEMA.dump(hook) for hook in self.hooks],
        }
        return FIT.dump(vars(self) | parts)

    def load_state_dict(self, tree: Mapping[str, Any], way: str, *, ended: bool) -> None:
        """Take over a fit of the same plan of the same run."""
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
        model.rng = begun.model.rng  # which all runs share
        state.resume(plan.settings, plan.n_threads)  # the last step has ended except for this
        for number, (hook, part) in enumerate(zip(self.hooks, found["hooks"], strict=True)):
            hook.SCHEMA.restore(hook, part, f"{way}.hooks.{number}", **sizes)
        if self.perplexity.gamma is not None:
            self.perplexity.latest = None  # gamma is computed again
        for name in ("position", "first", "largest", "score", "goodness", "stopped"):
            setattr(self, name, found[name])
        if self.first > self.n_steps:
            raise damaged(f"{way}.first", f"at most the {self.n_steps} steps made", self.first)
        for words, weights in self.largest:
            if words.shape != weights.shape or np.any((words < 0) | (words >= V)):
                raise damaged(f"{way}.largest", f"numbers of {V} words and their weights", words)

    def _told(self) -> Run:
        """What the callbacks are told of a run, or of what follows the merge."""
        plan, passes, X = self.plan, self.passes, self.plan.training
        some = X[:: -(-X.shape[0] // FEW)]
        return Run(
            number=self.number,
            n_runs=plan.settings.n_init
            + plan.settings.merged,  # what follows the merge is one more
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
            line = f"{passes.label}iteration: {index + 1 - n} of at most {passes.n_full} at the end"
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
    """The runs that have ended: their topics are merged, and the first goes on with them."""

    def __init__(self, runs: list[Fit]) -> None:
        first, plan = runs[0], runs[0].plan
        passes = plan.passes_of_merged()
        super().__init__(plan, plan.settings.n_init, first.state, passes, first.halt)
        self.runs, self.stopped = runs, runs[-1].stopped

    def run(self) -> None:
        """Merge the topics and refine them; if the user has stopped the runs, merge them only."""
        self.state.model.topics.n_threads = self.plan.n_threads  # nothing else runs now
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
        """Take over the merged topics of the runs that have ended by themselves."""
        counts, model = [], self.state.model
        while self.runs:  # each is let go once its counts are there
            run = self.runs.pop(0)
            if not run.stopped:
                counts.append(run.state.model.topics.counts())
        # a callback may have assigned priors of single topics, which then stay as they are
        if counts and are_alike(model.alpha) and are_alike(model.eta, 2):
            merged = model.topics.merged(counts)
            self.largest = [Largest.of(some) for some in counts]
            with self.plan.changing:
                self.state.assign(merged)

    def load_state_dict(self, tree: Mapping[str, Any], way: str, *, ended: bool) -> None:
        """Take over a fit whose topics have been merged."""
        super().load_state_dict(tree, way, ended=ended)
        self.runs = []

    def _after_pass(self, index: int) -> bool:
        if index < self.passes.n_passes:
            self.perplexity.last = None  # small steps do not mean that the fit has converged
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
    """Hold documents out, which `rng` draws, and resolve open parameters."""
    on_gpu = device_of(parameters["device"]) is not None
    training, held_out, fraction = X, None, parameters["validation_fraction"]
    if fraction is not None:
        training, held_out = hold_out(X, float(fraction), rng)
    n_samples = training.shape[0]
    # a minibatch, which may be one document, stands for all
    words = check_total(extent(training)[0], training.dtype, n_samples, "the number of documents")
    if held_out is not None and not words:  # a corpus of no words at all is fitted to the prior
        raise ValueError(
            f"X must have words. Got only zeros in the training documents, n_samples={n_samples}."
        )
    density = words_per_entry(training, int(parameters["n_components"]))
    settings = resolve(parameters, n_samples, density)
    n_passes = n_planned = int(settings.max_iter)
    if held_out is not None and not settings.merged:
        usual = int(resolve({**parameters, "max_iter": None}, n_samples).max_iter)
        if parameters["max_iter"] is None:
            n_passes, n_planned = PROLONGED * usual, usual
        elif is_open(parameters["temperature"]):
            # if T fell over the whole budget, the fit would never stop early
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
    """Check one more portion of a stream of `population` documents; update settings and T.

    The state is changed only if there is no error.
    """
    check_counts(X, population, "total_samples")
    state.model.set_corpus(CorpusOfFit(X, population))
    wanted, planned = None, state.temperature
    if settings is not state.streamed_with:  # if it is, the temperature is the same, too
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
    """Fit one more portion of a stream, in place, after :func:`prepare_portion`."""

    def on_step() -> None:
        state.results = no_results()  # a `fit` before may have left some
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
