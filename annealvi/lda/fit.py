"""The computations of `fit` and `partial_fit` of TemperedLDA.

**Merged runs.**  Each run is a short fit.  The topics of all runs are collected, and two topics at
a time are merged until K are left.  The counts of merged topics are added, and divided by the
number of runs.  The first run continues with the merged topics: about one pass over minibatches in
small steps adjusts them to each other.  Then the batch passes at the end of the fit follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from threading import Event
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_matrix
from sklearn.base import clone

from annealvi.checks import check_counts
from annealvi.exceptions import warn_user
from annealvi.files.schema import Array, Flag, Integer, Listed, Number, Schema, Tree, damaged
from annealvi.inference import (
    Callbacks,
    LinearDecay,
    OverRelaxed,
    Run,
    full_step,
    optimise,
)
from annealvi.inference.algorithm import POSITION, Position
from annealvi.lda.hooks import Converged, Perplexity, Validation
from annealvi.lda.plan import LDAPlan
from annealvi.lda.settings import Settings, are_alike, check_step
from annealvi.lda.state import LDAState, no_results, some_documents
from annealvi.models.lda.engine import Engine
from annealvi.models.lda.merging import Largest, merged_topics, support
from annealvi.models.lda.starts import CorpusOfFit

#: The largest step size after a merge, and the minimum number of such steps.
REFINING = 0.1
REFINING_STEPS = 10
#: The number of documents whose perplexity a progress bar contains.
FEW = 200


class Fit:
    """The passes of one run: first over minibatches, then in batch at T = 1.

    `Runs` of :mod:`annealvi.inference.runs` makes the fits of all runs.
    """

    def __init__(
        self,
        plan: LDAPlan,
        number: int,
        state: LDAState,
        engine: Engine,
        halt: Event,
    ) -> None:
        """Prepare the passes of a run; `halt` is set if another run has failed."""
        self.plan = plan
        self.number = number
        self.state = state
        self.engine = engine
        self.halt = halt
        self.first_step = state.monitor.step  # number of steps before these passes
        self.score = np.nan
        self.goodness = -np.inf
        self.stopped = False
        self.in_callback = False
        self.position_in_fit = Position()  # passes and minibatches done
        #: The most frequent words of the topics of each run that was merged.
        self.largest: list[Largest] = []
        self._plan_passes()
        self.perplexity = Perplexity(plan, self.n_full)
        self.validation: Validation | None = None
        self.hooks: list[Any] = [self.perplexity]
        if self.are_last and self.n_full:  # ends the batch passes
            self.hooks.insert(0, Converged(plan, self.n_passes))
        if self.are_last and plan.held_out is not None:
            self.validation = Validation(plan)
            self.hooks.append(self.validation)

    @classmethod
    def begin(cls, plan: LDAPlan, number: int, rng: RandomState, halt: Event) -> Self:
        """Return a run before its first step."""
        X = plan.training
        settings = plan.settings
        shape = int(plan.parameters["n_components"]), X.shape[1]
        engine = plan.engine
        if plan.n_workers > 1:
            engine = plan.new_engine(plan.n_threads // plan.n_workers)  # runs share the threads
        state = LDAState.begin(shape, X.dtype, settings, rng, plan.result_dtype, X)
        state.planned_for = clone(plan.temperature)
        n_steps = plan.n_planned * plan.steps_per_pass
        state.temperature = state.planned(
            plan.temperature, n_steps, X.shape[0] / plan.batch_size, plan.corpus
        )
        fit = cls(plan, number, state, engine, halt)
        if settings.learning_method != "batch" and plan.n_passes:
            # raises an error before the fit if its first step would be too large
            check_step(settings, state.temperature, step=0, rho=fit.step_size(1))
        return fit

    def _plan_passes(self) -> None:
        """Set the numbers and the step sizes of the passes; a run to be merged ends early."""
        plan = self.plan
        settings = plan.settings
        #: Whether these are the last passes of the fit.
        self.are_last = not settings.merged
        #: Number of passes over minibatches, and the maximum number of batch passes.
        self.n_passes = plan.n_passes
        self.n_full = settings.finish_iter if self.are_last else 0
        #: The step size rho of steps 1, 2, ...
        self.step_size = OverRelaxed(
            settings.step_size(plan.n_planned * plan.steps_per_pass),
            self.n_passes * plan.steps_per_pass,
            self.n_full,
        )

    @property
    def n_steps(self) -> int:
        """The number of steps made."""
        return self.state.monitor.step

    def run(self) -> None:
        """Make all remaining passes, and evaluate the result if these passes are the last."""
        plan = self.plan
        state = self.state
        n_samples = plan.training.shape[0]
        plan.callbacks.begin(self._run_for_callbacks())
        try:
            with state.training(self.engine):
                optimise(
                    self.engine.steps(state.model),
                    plan.training,
                    state.temperature,
                    state.monitor,
                    n_samples=n_samples,
                    batch_size=plan.batch_size,
                    n_passes=self.n_passes,
                    n_full_passes=self.n_full,
                    step_size=lambda step: self.step_size(step - self.first_step),
                    on_step=self._on_step,
                    after_pass=self._after_pass,
                    position_in_fit=self.position_in_fit,
                    lock=plan.lock,
                )
        finally:
            with plan.lock:
                state.model.catch_up(self.engine.n_threads)
            if self.engine is plan.engine:  # the next run uses its buffers
                self.engine.release_large()
            else:
                self.engine.release()
        if self.are_last:
            self._evaluate()

    def _evaluate(self) -> None:
        """Compute the score and the goodness of the run at its end."""
        if self.validation is not None:
            self.score = self.validation.finish(self.state, self.engine)
            self.goodness = self.score
        elif not self.halt.is_set():  # after an error elsewhere the score is not needed
            self.score = self.perplexity.final(self.state, self.engine)
            self.goodness = self.perplexity.elbo

    def conclude(self) -> None:
        """Compute `bound_` and the other results of the final fit."""
        state = self.state
        results = state.results
        if results["bound"] is not None:
            return  # the fit was resumed from a checkpoint that was written after its end
        engine = self.plan.engine
        engine.release()
        results["bound"] = self.perplexity.final(state, engine)
        results["sample"] = some_documents(self.plan.documents)
        if state.temperature.per_document:
            results["document_temperatures"] = state.document_temperatures(
                engine, self.plan.documents, self.perplexity.gamma
            )

    def warn(self) -> None:
        """Warn if all passes were made, and a stopping test shows that the fit did not converge."""
        if self.position_in_fit.n_passes == self.n_passes + self.n_full:
            self.perplexity.warn()
            if self.validation is not None:
                self.validation.warn()

    def state_dict(self) -> dict[str, Any]:
        """Return the fit, after a step or at its end, as a tree; see :mod:`annealvi.files`."""
        # the other fields of FIT are attributes
        trees = {
            "state": self.state.state_dict(),
            "hooks": [hook.SCHEMA.dump(hook) for hook in self.hooks],
        }
        return FIT.dump(vars(self) | trees)

    def load_state_dict(self, tree: Mapping[str, Any], path: str, *, ended: bool) -> None:
        """Continue from the state of a fit with the same plan and the same run.

        The tree stands at `path` in the checkpoint.  `ended` says whether the run has ended; it
        makes no difference here.
        """
        plan = self.plan
        begun = self.state  # a new state, with which that of the checkpoint must agree
        new_model = begun.model
        n_topics = new_model.n_topics
        n_features = new_model.n_features
        sizes: dict[str, Any] = {
            "n_samples": plan.training.shape[0],
            "n_topics": n_topics,
            "n_features": n_features,
            "dtype": new_model.dtype,
            "most_passes": self.n_passes + self.n_full,
            "most_batches": plan.steps_per_pass,
            "n_hooks": len(self.hooks),
            "n_runs": plan.settings.n_init,
        }
        saved = FIT.load(tree, path, **sizes)
        state = LDAState.of(saved["state"], f"{path}.state")
        self.state = state
        model = state.model
        if model.n_topics != n_topics or model.shape != new_model.shape:
            raise damaged(
                f"{path}.state.model",
                f"one of {n_topics} topics, {n_features} words, {new_model.dtype}",
                model,
            )
        if state.temperature != begun.temperature:
            raise damaged(f"{path}.state.temperature", "the fit's temperature", state.temperature)
        state.shown = plan.result_dtype  # the same X may be in another dtype
        rng = new_model.rng
        if model.rng is not None and rng is not None:
            rng.set_state(model.rng.get_state(legacy=False))
        model.rng = rng  # all runs share this generator
        state.resume(plan.settings)  # this completes the last step
        if len(saved["hooks"]) != len(self.hooks):
            raise damaged(f"{path}.hooks", f"a list of {len(self.hooks)} states", saved["hooks"])
        for number, (hook, saved_hook) in enumerate(zip(self.hooks, saved["hooks"], strict=True)):
            hook.SCHEMA.restore(hook, saved_hook, f"{path}.hooks.{number}", **sizes)
        if self.perplexity.gamma is not None:
            self.perplexity.latest = np.nan  # so that gamma is computed again
        for name in ("position_in_fit", "first_step", "largest", "score", "goodness", "stopped"):
            setattr(self, name, saved[name])
        if self.first_step > self.n_steps:
            raise damaged(
                f"{path}.first_step", f"at most the {self.n_steps} steps made", self.first_step
            )
        for words, weights in self.largest:
            if words.shape != weights.shape or np.any((words < 0) | (words >= n_features)):
                raise damaged(
                    f"{path}.largest", f"numbers of {n_features} words and their weights", words
                )

    def _run_for_callbacks(self) -> Run:
        """Return facts for callbacks about a run, or about the passes after the merge."""
        plan = self.plan
        X = plan.training
        few = X[:: -(-X.shape[0] // FEW)]  # at most FEW documents at equal distances

        def bound() -> float:
            """Compute the perplexity of a few documents at the present topics."""
            # another engine, because that of the fit has buffers for the current step
            engine = plan.new_engine(self.engine.n_threads)
            return self.state.perplexity(
                engine, few, population=X.shape[0], topics=plan.scores_topics
            )

        # passes before these, and of the whole fit
        settings = plan.settings
        n_finish = settings.finish_iter
        n_of_run = plan.n_passes + (0 if settings.merged else n_finish)
        n_before = self.number * n_of_run
        n_all = settings.n_init * n_of_run
        if settings.merged:
            n_all += n_refining(plan.steps_per_pass) + n_finish
        return Run(
            number=self.number,
            # the passes after the merge count as one more run
            n_runs=settings.n_init + settings.merged,
            n_done=self.n_steps - self.first_step,
            n_steps=self.n_passes * plan.steps_per_pass + self.n_full,
            steps_per_pass=plan.steps_per_pass,
            n_before=n_before * plan.steps_per_pass,
            n_all=n_all * plan.steps_per_pass,
            bound_name="perplexity",
            bound=bound,
        )

    def _progress_line(self, index: int) -> str:
        """The line that is printed after the pass `index`, or an empty text.

        With verbose=1, a line is printed after each pass of all runs together, as one iteration.
        """
        n_runs = self.plan.settings.n_init
        verbose = self.plan.parameters["verbose"]
        if index >= self.n_passes:
            n_batch = f"{index + 1 - self.n_passes} of at most {self.n_full}"
            return f"iteration: {n_batch} batch passes at the end"
        if self.number == n_runs:  # the passes after the merge
            return f"merged, iteration: {index + 1} of {self.n_passes}" if verbose > 1 else ""
        if verbose > 1 and n_runs > 1:
            return f"run {self.number + 1}, iteration: {index + 1} of max_iter: {self.n_passes}"
        n_done = self.number * self.n_passes + index + 1
        return (
            "" if n_done % n_runs else f"iteration: {n_done // n_runs} of max_iter: {self.n_passes}"
        )

    def _after_pass(self, index: int) -> bool:
        """Call the hooks after the pass `index`; return whether one of them ends the fit."""
        state = self.state
        with self.plan.lock:
            self.engine.pull(state.model)  # lambda, if only a GPU has the last steps
        state.monitor.record()  # a record of the step, to which hooks add values
        state.n_passes += 1
        line = self._progress_line(index)
        ends = False
        texts = ""
        for hook in self.hooks:
            end, text = hook.after_pass(state, self.engine, index)
            ends = ends or end
            texts += text
        if self.plan.parameters["verbose"] and line:
            print(line + texts)
        return ends

    def _on_step(self) -> None:
        """Call the user's callbacks after a step; raise StopIteration to end the fit."""
        if self.halt.is_set():  # another run has failed
            raise StopIteration
        plan = self.plan
        if not plan.callbacks:
            return
        with plan.lock:
            self.engine.pull(self.state.model)  # the callback may read lambda
        # not reset after an error, by which `Runs` knows that it comes from the user's code
        self.in_callback = True
        try:
            plan.callbacks(self.state.monitor)
        except StopIteration:
            self.stopped = True
            self.in_callback = False
            raise
        self.in_callback = False
        with plan.lock:
            self.state.attach_again()  # the callback may have assigned priors


def n_refining(steps_per_pass: int) -> int:
    """Return the number of passes in small steps after the merge."""
    # as many passes as make REFINING_STEPS, or a single pass of one step
    return 1 if steps_per_pass == 1 else -(-REFINING_STEPS // steps_per_pass)


class MergedFit(Fit):
    """The last part of a fit, which merges the topics of all runs and continues with them."""

    def __init__(self, runs: list[Fit]) -> None:
        """Continue the first of the runs, whose topics `run` replaces by the merged topics."""
        first_run = runs[0]
        plan = first_run.plan
        # numbered like one more run
        super().__init__(plan, plan.settings.n_init, first_run.state, plan.engine, first_run.halt)
        self.runs = runs
        self.stopped = runs[-1].stopped  # no run follows one that the user has stopped

    def _plan_passes(self) -> None:
        """Set the numbers and the step sizes of the passes: small steps, then batch passes."""
        plan = self.plan
        self.are_last = True
        self.n_passes = n_refining(plan.steps_per_pass)
        n_steps = self.n_passes * plan.steps_per_pass
        refining: Callable[[int], float] = full_step
        if n_steps > 1:
            refining = LinearDecay(
                n_steps, memory_spans=n_steps * REFINING / 2, largest=REFINING
            )  # from REFINING to about 0
        self.n_full = plan.settings.finish_iter
        self.step_size = OverRelaxed(refining, n_steps, self.n_full)

    def run(self) -> None:
        """Merge the topics, and improve them unless the user has stopped the runs."""
        if self.runs:
            self._merge()
        if self.stopped:
            self._evaluate()
        else:
            super().run()
        if self.largest:  # otherwise the topics were not merged
            counts = self.state.model.counts()
            self.state.results["support"] = support(counts, self.largest)

    def _merge(self) -> None:
        """Use the merged topics of all runs that the user did not stop."""
        counts = []
        model = self.state.model
        while self.runs:  # the memory of each run is freed once its counts are computed
            run = self.runs.pop(0)
            if not run.stopped:
                counts.append(run.state.model.counts())
        # if a callback has assigned different priors to topics, the topics are not merged
        if counts and are_alike(model.alpha) and are_alike(model.eta, ndim=2):
            merged = merged_topics(counts, model.n_topics)
            merged += model.eta_rows(model.dtype)[:, 0]  # the prior, which all topics have
            self.largest = [Largest.of(topics) for topics in counts]
            with self.plan.lock:
                self.state.assign(merged)

    def load_state_dict(self, tree: Mapping[str, Any], path: str, *, ended: bool) -> None:
        """Continue from the state of a fit whose topics have been merged."""
        super().load_state_dict(tree, path, ended=ended)
        self.runs = []  # so that `run` does not merge again

    def _after_pass(self, index: int) -> bool:
        """Call the hooks after the pass `index`; return whether one of them ends the fit."""
        if index < self.n_passes:
            self.perplexity.last = None  # small changes in small steps do not mean convergence
        return super()._after_pass(index)


FIT = Schema(
    state=Tree(),
    position_in_fit=POSITION,
    first_step=Integer(),
    largest=Listed(
        Schema(
            Largest, words=Array(("n_topics", None), np.int64), weights=Array(("n_topics", None))
        ),
        "n_runs",
    ),
    hooks=Listed(Tree(), "n_hooks"),
    score=Number(finite=False),
    goodness=Number(finite=False),
    stopped=Flag(),
)


# ------------------------------------------------------------------- streams of documents


def prepare_portion(state: LDAState, X: csr_matrix, settings: Settings, population: float) -> None:
    """Check the next documents for `partial_fit`, and update the settings and T of the state.

    `population` is the number of documents in the stream.  An error leaves the state unchanged.
    """
    if not check_counts(X, population, "total_samples"):
        warn_user(
            f"None of the {X.shape[0]:,} documents has a counted word. Nothing is learned from "
            "them."
        )
    model = state.model
    model.n_documents = population
    model.n_words = None  # unknown in a stream
    planned = state.temperature
    planned_for = state.planned_for
    if settings is not state.streamed_with:  # with the same settings, T is the same as well
        temperature = settings.wanted_temperature()
        # a temperature is planned again only if the user has changed it
        if planned_for is None or temperature != planned_for:
            per_pass = population / int(settings.batch_size)
            planned = state.planned(temperature, None, per_pass, CorpusOfFit(X, population))
            planned_for = clone(temperature)
    step = state.monitor.step
    check_step(settings, planned, step, settings.step_size(None)(step + 1))
    state.temperature = planned
    state.planned_for = planned_for
    state.streamed_with = settings
    state.resume(settings)


def fit_portion(
    state: LDAState,
    engine: Engine,
    X: csr_matrix,
    settings: Settings,
    population: float,
    callbacks: Callbacks,
    lock: AbstractContextManager,
) -> None:
    """Fit the next documents of a stream, in place, after :func:`prepare_portion`.

    `population` is the number of documents in the stream.  The context `lock` is held while the
    state changes, so that other threads can read it.
    """

    def on_step() -> None:
        """Call the callbacks after a step."""
        state.results = no_results()  # removes results of an earlier `fit`
        if callbacks:
            with lock:
                engine.pull(state.model)  # callbacks may read lambda
            callbacks(state.monitor)
            with lock:
                state.attach_again()  # callbacks may have assigned priors

    with state.training(engine):
        optimise(
            engine.steps(state.model),
            X,
            state.temperature,
            state.monitor,
            n_samples=X.shape[0],
            batch_size=int(settings.batch_size),
            n_passes=1,
            population=population,
            step_size=settings.step_size(None),
            on_step=on_step,
            lock=lock,
        )
    engine.forget_documents()  # they may change before the next call
