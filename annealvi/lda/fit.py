"""A fit of TemperedLDA: what it is planned to do, and its run of one run or over a portion.

**Merged runs.**  Each run is a short fit.  The topics of all are put together and merged to K,
two at a time; the counts of a topic are the mean over the runs.  The first run goes on with
them: small steps, a pass or so over the minibatches, let the topics adjust to one another, and the
finishing passes follow.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from annealvi.checks import check_counts, check_total
from annealvi.files.schema import (
    Array,
    Flag,
    Integer,
    Listed,
    Number,
    Optional,
    Schema,
    Tree,
    damaged,
)
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
from annealvi.models.lda.merging import Largest, support
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
    #: The topics' counts of the runs that have ended, which wait to be merged, by the number.
    counts: dict[int, NDArray] = field(default_factory=dict)

    @property
    def merges(self) -> bool:
        """Whether the topics of all runs are merged; if not, the best run is kept."""
        return self.settings.merged

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

    @property
    def n_finishing(self) -> int:
        """Largest number of passes after the others, in batch at T = 1."""
        return int(self.settings.finish_iter)

    def step_size(self) -> Callable[[int], float]:
        """rho of step 1, 2, ... of a run."""
        steps = self.settings.step_size(self.n_planned * self.steps_per_pass)
        n_full = 0 if self.merges else self.n_finishing
        return OverRelaxed(steps, self.n_passes * self.steps_per_pass, n_full) if n_full else steps

    @property
    def n_refining(self) -> int:
        """Number of passes between the merge and the finishing passes."""
        return 1 if self.steps_per_pass == 1 else -(-REFINING_STEPS // self.steps_per_pass)

    def step_size_of_merged(self) -> Callable[[int], float]:
        """rho of step 1, 2, ... after the merge."""
        n = self.n_refining * self.steps_per_pass
        refining = full_step if n == 1 else LinearDecay(n, n * REFINING / 2, REFINING)
        return OverRelaxed(refining, n, self.n_finishing)

    def budget(self) -> str:
        """The passes of the fit, for a message."""
        more = f" and {self.n_finishing} that end the fit" if self.n_finishing else ""
        return f"after max_iter={self.n_passes} passes{more}."


class LDAFit:
    """A fit of one run; see :class:`annealvi.inference.Fit`."""

    def __init__(self, plan: Plan, number: int, rng: RandomState, halt: threading.Event) -> None:
        self.plan, self.number, self.halt = plan, number, halt
        self.merged_at: int | None = None  # the steps made before the merge
        self.largest: list[Largest] = []  # the largest words of each run's topics
        self.score, self.goodness = np.nan, -np.inf
        self.stopped = self.in_callback = False
        self.position = Position()  # passes and minibatches done
        X, settings, n_samples = plan.training, plan.settings, plan.training.shape[0]
        shape = int(plan.parameters["n_components"]), X.shape[1]
        self.state = state = LDAState.begin(
            shape, X.dtype, settings, rng, plan.n_threads // plan.n_workers, plan.shown, X
        )
        state.model.set_corpus(X, n_samples, float(X.sum(dtype=np.float64)))
        state.planned_for = clone(plan.temperature)
        state.temperature = plan.temperature.plan(
            plan.n_planned * plan.steps_per_pass, n_samples / plan.batch_size, model=state.model
        )
        if settings.learning_method != "batch" and plan.n_passes:
            check_step(settings, state.temperature, 0, plan.step_size()(1))
        self.perplexity = Perplexity(self)
        self.held_out = None if plan.held_out is None else HeldOut(self, plan.held_out)
        self.hooks: list[Any] = [Converged(self)] if plan.n_finishing else []
        self.hooks += [self.perplexity, *([] if self.held_out is None else [self.held_out])]

    @property
    def n_steps(self) -> int:
        """Steps made."""
        return self.state.monitor.step

    def run(self) -> None:
        """Fit to the end."""
        plan = self.plan
        plan.callbacks.begin(self._told(self.number))
        n_full = 0 if plan.merges else plan.n_finishing
        self._passes(plan.n_passes, n_full, plan.step_size())
        if not plan.merges:
            self._evaluate()
        elif not self.stopped:
            plan.counts[self.number] = self.state.model.topics.counts()

    def finish(self, stopped: bool) -> None:
        """Go on with the merged topics of all runs; a resumed fit has done so, perhaps.

        If the user has stopped the fit, those of the runs that have ended are merged.
        """
        plan, state = self.plan, self.state
        state.model.topics.n_threads = plan.n_threads  # nothing else runs now
        if self.merged_at is None:
            if not stopped and len(plan.counts) != plan.settings.n_init:
                raise damaged("best.fit.counts", "those of all runs", len(plan.counts))
            self._merge([plan.counts[number] for number in sorted(plan.counts)])
            plan.counts.clear()
            self.merged_at, self.position = self.n_steps, Position()
            self.perplexity.last = self.perplexity.latest = None  # of other topics
        if not stopped:
            plan.callbacks.begin(self._told(plan.settings.n_init))
            first, steps = self.merged_at, plan.step_size_of_merged()
            self._passes(plan.n_refining, plan.n_finishing, lambda t: steps(t - first))
        self._evaluate()
        if self.largest:
            state.results["support"] = support(state.model.topics.counts(), self.largest)

    def _merge(self, several: list[NDArray]) -> None:
        """Take over the merged topics of several runs."""
        model = self.state.model
        # a callback may have assigned priors of single topics, which then stay as they are
        if several and are_alike(model.alpha) and are_alike(model.eta, 2):
            merged = model.topics.merged(several)
            self.largest = [Largest.of(counts) for counts in several]
            with self.plan.changing:
                self.state.assign(merged)

    def _passes(self, n_passes: int, n_full: int, step_size: Callable[[int], float]) -> None:
        """Passes over minibatches, and `n_full` over all documents, from the position on."""
        plan, X, state = self.plan, self.plan.training, self.state
        try:
            with state.training(keep=False, repeated=n_passes + n_full > 1):
                optimise(
                    state.model,
                    X,
                    state.temperature,
                    state.monitor,
                    n_samples=X.shape[0],
                    batch_size=plan.batch_size,
                    n_passes=n_passes,
                    n_full_passes=n_full,
                    step_size=step_size,
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
        """Compute `bound_` and the other results of the best run."""
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
        plan = self.plan
        n_passes = (plan.n_refining if plan.merges else plan.n_passes) + plan.n_finishing
        if self.position.n_passes == n_passes and plan.merges == (self.merged_at is not None):
            self.perplexity.warn()
            if self.held_out is not None:
                self.held_out.warn()

    def catch_up(self) -> None:
        """Apply the pending steps of all words."""
        with self.plan.changing:
            self.state.model.topics.catch_up()

    def state_dict(self, *, ended: bool) -> dict[str, Any]:
        """The fit after a step or at its end, as a tree; see :mod:`annealvi.files`."""
        parts = {
            "state": self.state.state_dict(),
            "hooks": [hook.SCHEMA.dump(hook) for hook in self.hooks],
            "counts": [self.plan.counts[number] for number in sorted(self.plan.counts) if ended],
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
        }
        sizes |= {
            "most_passes": plan.n_passes + plan.n_refining + plan.n_finishing,
            "most_batches": plan.steps_per_pass,
            "n_hooks": len(self.hooks),
            "n_runs": plan.settings.n_init if plan.merges else 0,
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
        for name in ("position", "merged_at", "largest", "score", "goodness", "stopped"):
            setattr(self, name, found[name])
        plan.counts.update(enumerate(found["counts"]))
        if any(np.any(counts < 0) for counts in found["counts"]):
            raise damaged(f"{way}.counts", "counts", found["counts"])
        for words, weights in self.largest:
            if words.shape != weights.shape or np.any((words < 0) | (words >= V)):
                raise damaged(f"{way}.largest", f"numbers of {V} words and their weights", words)

    def _told(self, number: int) -> Run:
        """What the callbacks are told of a run, or of what follows the merge."""
        plan, X = self.plan, self.plan.training
        some = X[:: -(-X.shape[0] // FEW)]
        done, n_steps = self.n_steps, plan.n_passes * plan.steps_per_pass
        if self.merged_at is not None:
            done, n_steps = done - self.merged_at, plan.n_refining * plan.steps_per_pass
        if self.merged_at is not None or not plan.merges:
            n_steps += plan.n_finishing
        return Run(
            number=number,
            n_runs=plan.settings.n_init + plan.merges,  # what follows the merge is one more
            n_done=done,
            n_steps=n_steps,
            steps_per_pass=plan.steps_per_pass,
            bound_name="perplexity",
            bound=lambda: self.state.perplexity(some, population=X.shape[0]),
        )

    def _after_pass(self, index: int) -> bool:
        plan, ends, merged = self.plan, False, self.merged_at is not None
        # passes between the merge and the finish count as the last ones before the finish
        done = plan.n_passes - plan.n_refining + index if merged else index
        line = f"iteration: {index + 1} of max_iter: {plan.n_passes}"
        if done >= plan.n_passes:
            line = f"iteration: {done + 1 - plan.n_passes} of at most {plan.n_finishing} at the end"
        elif merged:
            line = f"iteration: {index + 1} of {plan.n_refining}"
        self.state.monitor.record()
        self.state.n_passes += 1
        if merged and done < plan.n_passes:
            self.perplexity.last = None  # small steps do not mean that the fit has converged
        for hook in [self.perplexity] if plan.merges and not merged else self.hooks:
            end, text = hook.after_pass(done)
            ends, line = ends or end, line + text
        if plan.parameters["verbose"]:
            run = f"run {self.number + 1}, " if plan.settings.n_init > 1 else ""
            print(("merged, " if merged else run) + line)
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


FIT = Schema(
    state=Tree(),
    position=POSITION,
    merged_at=Optional(Integer()),
    counts=Listed(Array(("K", "V"), "dtype"), "n_runs"),
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
    training, held_out, fraction = X, None, parameters["validation_fraction"]
    if fraction is not None:
        training, held_out = hold_out(X, float(fraction), rng)
    n_samples = training.shape[0]
    # a minibatch, which may be one document, stands for all
    words = check_total(extent(training)[0], training.dtype, n_samples, "the number of documents")
    if held_out is not None and not words:  # a corpus of no words at all is fitted to the prior
        raise ValueError(
            f"X must have words. Got only zeros for the training documents, n_samples={n_samples}."
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
    n_workers = 1 if in_turn else min(n_threads, settings.n_init)
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
    state.model.set_corpus(X, population)
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
