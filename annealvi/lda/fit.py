"""A fit of TemperedLDA: what it is planned to do, and its run from one start or over a portion.

**Crossed starts.**  A short fit from each start is crossed with the best fit so far, the champion:
the topics of both are put together, the corpus decides for a few passes which of the 2K topics it
needs, they are merged to K, and a few more passes adjust these.  The better fit, by `bound_`, is
the next champion.  The last one ends with the finishing passes.
(For k-means: Gribel and Vidal 2019, *HG-means*.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from sklearn.base import clone

from annealvi.checks import check_counts, check_total
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Array, Flag, Listed, Number, Optional, Schema, Text, Tree, damaged
from annealvi.inference import Callbacks, OverRelaxed, Position, Start, full_step, optimise
from annealvi.inference.algorithm import POSITION
from annealvi.lda.hooks import Converged, HeldOut, HeldOutDocuments, Perplexity, hold_out
from annealvi.lda.settings import (
    CONSTRAINTS,
    PLENTY,
    Settings,
    check_step,
    extent,
    is_open,
    resolve,
    words_per_entry,
)
from annealvi.lda.state import LDAState, no_results, some_documents
from annealvi.models.lda import LDA
from annealvi.scale.elsewhere import Elsewhere
from annealvi.temperature import Temperature

#: With validation, at most this multiple of the usual number of passes.
PROLONGED = 5
#: What a fit does: passes from its start; with the champion's topics beside its own; of the topics
#: merged from these; and the finishing passes of the last champion.
START, DOUBLE, CHILD, FINISH = "start", "double", "child", "finish"
#: The crossings end after so many in a row that found no better fit.
FUTILE = 2
#: Number of documents whose perplexity a progress bar shows.
FEW = 200


class Crossing(NamedTuple):
    """Passes in batch at T = 1 of starts that are crossed."""

    #: Of the first start, which is crossed with none.
    first: int
    #: Of the topics of two fits together, and of the topics merged from them.
    double: int
    child: int


#: Where data are plenty for their topics, and where each pass in batch overfits.
CROSSED = {True: Crossing(5, 3, 5), False: Crossing(2, 2, 2)}


@dataclass(frozen=True)
class Plan:
    """The data and settings that all starts of a fit share."""

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
    #: How starts are crossed; None if the best of them is kept.
    crossing: Crossing | None
    #: Whether to keep gamma of all documents.
    keep_gamma: bool
    #: Number of threads for each start.
    n_threads: int
    callbacks: Callbacks
    #: Entered while a fit changes that other threads can see.
    changing: AbstractContextManager

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

    @property
    def most_full_passes(self) -> int:
        """Most passes in batch of a start."""
        if self.crossing is None:
            return self.n_finishing
        return max(
            self.crossing.first, self.crossing.double + self.crossing.child, self.n_finishing
        )

    def n_full_passes(self, number: int) -> int:
        """Largest number of passes in batch that follow the others of a start."""
        if self.crossing is None:
            return self.n_finishing
        return 0 if number else self.crossing.first

    def step_size(self, number: int) -> Callable[[int], float]:
        """rho of step 1, 2, ... of a start."""
        steps = self.settings.step_size(self.n_planned * self.steps_per_pass)
        n_full = self.n_full_passes(number)
        if not n_full:
            return steps
        return OverRelaxed(steps, self.n_passes * self.steps_per_pass, n_full)

    def budget(self) -> str:
        """The passes of the fit, for a message."""
        more = f" and finish_iter={self.n_finishing} more" if self.n_finishing else ""
        return f"after max_iter={self.n_passes} passes{more}."


class LDAFit:
    """A fit from one start; see :class:`annealvi.inference.Fit`."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        rng: RandomState,
        halt: threading.Event,
        champion: Callable[[], LDAFit | None],
    ) -> None:
        self.plan, self.number, self.halt, self.champion = plan, number, halt, champion
        self.stage = START
        self.double: LDA | None = None  # the topics of two fits, while they are crossed
        self.score, self.goodness = np.nan, -np.inf
        self.stopped = self.in_callback = False
        self.position = Position()  # passes and minibatches done
        X, settings, n_samples = plan.training, plan.settings, plan.training.shape[0]
        shape = int(plan.parameters["n_components"]), X.shape[1]
        self.state = state = LDAState.begin(
            shape, X.dtype, settings, rng, plan.n_threads, plan.shown, X
        )
        state.model.set_corpus(X, n_samples, float(X.sum(dtype=np.float64)))
        state.planned_for = clone(plan.temperature)
        state.temperature = plan.temperature.plan(
            plan.n_planned * plan.steps_per_pass, n_samples / plan.batch_size, model=state.model
        )
        if settings.learning_method != "batch" and plan.n_passes:
            check_step(settings, state.temperature, 0, plan.step_size(number)(1))
        self.perplexity = Perplexity(self)
        self.held_out = None if plan.held_out is None else HeldOut(self, plan.held_out)
        self.hooks: list[Any] = [Converged(self)] if plan.n_finishing else []
        self.hooks += [self.perplexity, *([] if self.held_out is None else [self.held_out])]

    @property
    def n_steps(self) -> int:
        """Steps made."""
        return self.state.monitor.step

    def run(self) -> None:
        """Fit to the end, and cross the fit with the champion if starts are crossed."""
        plan, crossing = self.plan, self.plan.crossing
        plan.callbacks.begin(self._start(self.number))
        if self.stage == START:
            if self.position == Position():
                self.state.model.start_documents(plan.training.shape[0])
            n_full = plan.n_full_passes(self.number)
            self._passes(self.state.model, plan.n_passes, n_full, plan.step_size(self.number))
        if crossing is not None and self.number and not self.stopped and self._is_plain():
            if self.stage == START:
                self._enter(DOUBLE)
                self.double = self._with_champion()
            if self.stage == DOUBLE and self.double is not None:
                self._passes(self.double, 0, crossing.double, full_step)
                if not self.stopped:
                    self._take(self.double)
                self._enter(CHILD)
                self.double = None
            if self.stage == CHILD and not self.stopped:
                self._passes(self.state.model, 0, crossing.child, full_step)
        self._evaluate()

    def finish(self) -> None:
        """Make the finishing passes of the last champion; a resumed fit is among them, perhaps."""
        n_passes = self.plan.n_finishing
        if self.stage != FINISH:
            self._enter(FINISH)
        if n_passes:
            self.plan.callbacks.begin(self._start(self.plan.settings.n_init))
            before = self.n_steps - self.position.n_passes - self.position.n_batches
            self._passes(self.state.model, 0, n_passes, OverRelaxed(full_step, before, n_passes))
            self._evaluate()

    def _enter(self, stage: str) -> None:
        self.stage, self.position = stage, Position()

    def _passes(
        self, model: LDA, n_passes: int, n_full: int, step_size: Callable[[int], float]
    ) -> None:
        """Passes that move a model, from the position on."""
        plan, X, state = self.plan, self.plan.training, self.state
        own, repeated = model is state.model, n_passes + n_full > 1
        buffers = nullcontext() if own else model.buffers.used(keep=False, repeated=repeated)
        try:
            with state.training(keep=False, repeated=repeated), buffers:
                optimise(
                    model,
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

    def _with_champion(self) -> LDA:
        """A model of the topics of the champion and of this fit; each has half its prior."""
        champion, own = self.champion(), self.state.model
        assert champion is not None
        return own.joined_with(champion.state.model)

    def _is_plain(self) -> bool:
        """Whether topics share their prior of words; a callback may have assigned other ones."""
        return self.state.model.eta.ndim < 2

    def _take(self, double: LDA) -> None:
        """Merge the topics of two fits to K, which this fit goes on from."""
        self.perplexity.last = None  # it is of other topics
        with self.plan.changing:
            self.state.assign(double.topics.merged(self.state.model.n_topics))

    def conclude(self, n_threads: int) -> None:
        """Compute `bound_` and the other results of the best start."""
        state, X, results = self.state, self.plan.documents, self.state.results
        if results["bound"] is not None:
            return  # a fit that had ended was resumed
        state.model.topics.n_threads = n_threads
        results["bound"] = self.perplexity.final()
        results["sample"] = some_documents(X)
        if state.temperature.per_document:
            gamma = self.perplexity.gamma
            results["document_temperatures"] = state.document_temperatures(X, gamma)

    def warn(self, stacklevel: int) -> None:
        """Warn if all passes were made, and a test says that the fit had not converged."""
        n_passes = self.plan.n_passes + self.plan.n_finishing
        if self.plan.crossing is not None:
            n_passes = self.plan.n_finishing if self.stage == FINISH else 0
        if n_passes and self.position.n_passes == n_passes:
            for hook in self.hooks:
                hook.warn(stacklevel + 1)

    def catch_up(self) -> None:
        """Apply the pending steps of all words."""
        with self.plan.changing:
            self.state.model.topics.catch_up()

    def state_dict(self, *, ended: bool) -> dict[str, Any]:
        """The fit after a step or at its end, as a tree; see :mod:`annealvi.files`."""
        parts = {
            "state": self.state.state_dict(),
            "gamma": self.state.model.documents.gamma,
            "hooks": [hook.SCHEMA.dump(hook) for hook in self.hooks],
        }
        return FIT.dump(vars(self) | parts)

    def load_state_dict(self, tree: Mapping[str, Any], way: str, *, ended: bool) -> None:
        """Take over a fit of the same plan from the same start."""
        plan, begun = self.plan, self.state
        K, V, dtype = begun.model.n_topics, begun.model.n_features, begun.model.dtype
        sizes: dict[str, Any] = {
            "n_samples": plan.training.shape[0],
            "K": K,
            "V": V,
            "dtype": dtype,
        }
        n_passes, n_hooks = plan.n_passes + plan.most_full_passes, len(self.hooks)
        sizes |= {"most_passes": n_passes, "most_batches": plan.steps_per_pass, "n_hooks": n_hooks}
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
        model.rng = begun.model.rng  # which all starts share
        state.resume(plan.settings, plan.n_threads)  # the last step has ended except for this
        model.documents.gamma = None if found["gamma"] is None else found["gamma"].copy()
        for number, (hook, part) in enumerate(zip(self.hooks, found["hooks"], strict=True)):
            hook.SCHEMA.restore(hook, part, f"{way}.hooks.{number}", **sizes)
        if self.perplexity.gamma is not None:
            self.perplexity.latest = None  # gamma is computed again
        for name in ("position", "stage", "score", "goodness", "stopped"):
            setattr(self, name, found[name])
        if (self.stage == DOUBLE) != (found["double"] is not None):
            raise damaged(f"{way}.double", "there while two fits are crossed", found["double"])
        if found["double"] is not None:
            self.double = LDA.of(found["double"], f"{way}.double")
            shape = self.double.n_topics, self.double.n_features, self.double.dtype
            if shape != (2 * K, V, dtype):
                raise damaged(f"{way}.double", f"one of {2 * K} topics, {V} words", self.double)
            self.double.topics.n_threads, self.double.rng = plan.n_threads, model.rng

    def _start(self, number: int) -> Start:
        """What the callbacks are told of a start, or of the finish of crossed ones."""
        plan, X = self.plan, self.plan.training
        some = X[:: -(-X.shape[0] // FEW)]
        crosses = plan.crossing is not None and plan.n_finishing > 0  # the finish is one more
        return Start(
            number=number,
            n_starts=plan.settings.n_init + crosses,
            n_done=self.position.n_passes + self.position.n_batches
            if self.stage == FINISH
            else self.n_steps,
            n_steps=plan.n_passes * plan.steps_per_pass + plan.most_full_passes,
            steps_per_pass=plan.steps_per_pass,
            bound_name="perplexity",
            bound=lambda: self.state.perplexity(some, population=X.shape[0]),
        )

    def _after_pass(self, index: int) -> bool:
        plan, ends = self.plan, False
        # of the passes over minibatches and of the finish, as if there were no stages
        done = index if self.stage == START else plan.n_passes + index
        line = f"iteration: {index + 1} of max_iter: {plan.n_passes}"
        if done >= plan.n_passes:
            line = f"iteration: {done + 1 - plan.n_passes} of finish_iter: {plan.n_finishing}"
        if plan.crossing is not None and done >= plan.n_passes and self.stage != FINISH:
            what = {START: "over all documents", DOUBLE: "crossed", CHILD: "merged"}
            line = f"{what[self.stage]}, iteration: {done + 1 - plan.n_passes}"
        self.state.monitor.record()
        self.state.n_passes += 1
        hooks = self.hooks
        if plan.crossing is not None and self.stage != FINISH:
            hooks = [] if self.stage == DOUBLE else [self.perplexity]  # of K topics
        for hook in hooks:
            end, text = hook.after_pass(done)
            ends, line = ends or end, line + text
        if plan.parameters["verbose"]:
            print(f"start {self.number + 1}, {line}" if plan.settings.n_init > 1 else line)
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
    gamma=Optional(Array(("n_samples", "K"), "dtype", positive=True)),
    position=POSITION,
    stage=Text(START, DOUBLE, CHILD, FINISH),
    double=Optional(Tree()),
    hooks=Listed(Tree(), "n_hooks"),
    score=Number(finite=False),
    goodness=Number(finite=False),
    stopped=Flag(),
)


def starts_of(parameters: Mapping[str, Any], X: sparse.csr_matrix | Elsewhere) -> tuple[int, bool]:
    """The number of starts, and whether they are crossed."""
    if parameters["n_init"] == 1:
        return 1, False
    density = words_per_entry(X, int(parameters["n_components"]))
    settings = resolve(parameters, X.shape[0], density)
    return settings.n_init, settings.combine == "cross"


def plan_fit(
    parameters: Mapping[str, Any],
    X: sparse.csr_matrix | Elsewhere,
    rng: RandomState,
    *,
    keep_gamma: bool,
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
    if settings.finish_iter and held_out is not None:
        wanted = "0 or None with validation_fraction, which chooses the pass that the fit ends with"
        raise BadParameter("finish_iter", wanted, settings.finish_iter)
    n_passes = n_planned = int(settings.max_iter)
    if held_out is not None:
        usual = int(resolve({**parameters, "max_iter": None}, n_samples).max_iter)
        if parameters["max_iter"] is None:
            n_passes, n_planned = PROLONGED * usual, usual
        elif is_open(parameters["temperature"]):
            # if T fell over the whole budget, the fit would never stop early
            n_planned = min(usual, n_passes)
    temperature = settings.wanted_temperature()
    local = temperature.per_document and not isinstance(X, Elsewhere)
    return Plan(
        documents=X,
        training=training,
        held_out=held_out,
        parameters={name: parameters[name] for name in CONSTRAINTS},
        settings=settings,
        temperature=temperature,
        n_passes=n_passes,
        n_planned=n_planned,
        crossing=CROSSED[density >= PLENTY] if settings.combine == "cross" else None,
        keep_gamma=keep_gamma or local,
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
