"""How TemperedLDA is fitted: starts side by side or in turn, the best of them kept."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from annealvi._validation import check_prior, check_topics, n_threads, unchanged_on_error
from annealvi.inference import Monitor, optimise
from annealvi.lda.defaults import COOLING, Settings, is_learned, is_open, settle
from annealvi.lda.early_stopping import EarlyStopping, HeldOutDocuments, hold_out
from annealvi.lda.evaluation import Evaluation
from annealvi.lda.fitted import FittedLDA
from annealvi.models.lda import LDA
from annealvi.temperature import (
    Annealed,
    LocalVariational,
    Temperature,
    Variational,
    as_temperature,
)

#: What the names of kinds of temperature stand for here.
KINDS: dict[str, Temperature] = {
    "auto": COOLING,
    "annealed": Annealed(),
    "variational": Variational(),
    "local": LocalVariational(),
}
PRIORS = ("doc_topic_prior", "topic_word_prior")
#: Passes of a fit that validation may prolong, in those of one without.
PROLONGED = 5


@dataclass(frozen=True)
class Task:
    """What all starts of a fit have in common.

    Parameters
    ----------
    documents, training : CSR matrix
        All that `fit` was given, and those that are not held out.
    held_out : HeldOutDocuments or None
    settings : Settings
    n_passes, n_planned : int
        Most passes, and the passes over which T is planned to fall.
    keep_topics : bool
        Whether the documents' topics are wanted.
    n_starts : int
    halt : threading.Event
        Set where another start has failed or the user has had enough.
    """

    documents: sparse.csr_matrix  # all that `fit` was given
    training: sparse.csr_matrix
    held_out: HeldOutDocuments | None
    settings: Settings
    n_passes: int  # at most
    n_planned: int  # that T is planned for
    keep_topics: bool
    n_starts: int
    #: Set where another start has failed or the user has had enough.
    halt: threading.Event = field(default_factory=threading.Event)

    @property
    def online(self) -> bool:
        return self.settings.learning_method != "batch"

    @property
    def batch_size(self) -> int:
        n_samples = self.training.shape[0]
        return min(int(self.settings.batch_size), n_samples) if self.online else n_samples

    @property
    def steps_a_pass(self) -> int:
        return -(-self.training.shape[0] // self.batch_size)

    @property
    def n_planned_steps(self) -> int:
        return self.n_planned * self.steps_a_pass

    @property
    def step_size(self) -> Callable[[int], float]:
        return self.settings.step_size(self.n_planned_steps)


@dataclass(frozen=True)
class Outcome:
    """A finished fit from one starting point.

    Parameters
    ----------
    number : int
    attributes : dict
    evaluation : Evaluation
    score, goodness : float
        The validation score or, without one, the perplexity; and how good that is.
    stopped : bool
        Whether the callback ended it.
    """

    number: int
    attributes: dict[str, Any]
    evaluation: Evaluation
    score: float  # the validation score or, without one, the perplexity
    goodness: float  # of either
    stopped: bool  # by the callback

    def better_than(self, other: Outcome | None) -> bool:
        """Whether it is the one to keep; of equals the earlier start, whichever came first."""
        if other is None:
            return True
        return (self.goodness, -self.number) > (other.goodness, -other.number)


class LDAFit(FittedLDA):
    """The fit of :class:`annealvi.TemperedLDA`, which has the parameters."""

    doc_topic_prior: Any
    topic_word_prior: Any
    max_iter: int | None
    temperature: Any
    n_init: int
    validation_fraction: float | None
    patience: int
    callback: Callable[[Any, Monitor], None] | None

    def _fit(self, X: Any, keep_topics: bool = False) -> NDArray | None:
        """Fit; return gamma of the documents if it is to be kept."""
        with unchanged_on_error(self) as keep:
            X = self._check_X(X, "fit", reset=True)
            rngs, rng = self._generators()
            task = self._task(X, keep_topics, rng)
            n_workers = min(n_threads(self.n_jobs), task.n_starts)
            if n_workers == 1 or self.callback is not None:
                best, scores = self._in_turn(task, rngs, keep)
            else:
                best, scores = self._side_by_side(task, rngs, keep, n_workers)
        self._take(best.attributes)
        self._model.n_threads = n_threads(self.n_jobs)
        self.init_scores_ = np.array(scores)
        evaluation = best.evaluation
        evaluation.estimator = self
        # past the method and what scikit-learn wraps it in
        evaluation.warn(stacklevel=4 + keep_topics)
        self.bound_ = evaluation.final()
        self._sample = self._some(X)
        if isinstance(self._temperature, LocalVariational):
            self.document_temperatures_ = self._document_temperatures(X, evaluation.gamma)
        return evaluation.gamma

    # ------------------------------------------------------------------ starts

    def _generators(self) -> tuple[list[RandomState], RandomState]:
        """One for each start, and one for what is held out.

        The first is where a fit of one start has it, whatever else is drawn: the others are
        seeded by a copy of it.
        """
        own = check_random_state(self.random_state)
        seeds = copy.deepcopy(own).randint(np.iinfo(np.int32).max, size=int(self.n_init))
        return [own, *map(RandomState, seeds[1:])], RandomState(seeds[0])

    def _task(self, X: sparse.csr_matrix, keep_topics: bool, rng: RandomState) -> Task:
        training, held_out = X, None
        if self.validation_fraction is not None:
            training, held_out = hold_out(X, float(self.validation_fraction), rng)
        settings = settle(self.__dict__, training.shape[0])
        n_passes, n_planned = self._passes(settings, training.shape[0])
        return Task(
            X, training, held_out, settings, n_passes, n_planned, keep_topics, int(self.n_init)
        )

    def _passes(self, settings: Settings, n_samples: int) -> tuple[int, int]:
        """Most passes over the documents, and those that T is planned for."""
        given = int(settings.max_iter)
        if self.validation_fraction is None:
            return given, given
        usual = int(settle(self.__dict__ | {"max_iter": None}, n_samples).max_iter)
        if self.max_iter is None:
            return PROLONGED * usual, usual
        if is_open(self.temperature):
            # T that falls over the whole budget would never let the fit stop
            return given, min(usual, given)
        return given, given

    def _in_turn(
        self, task: Task, rngs: list[RandomState], keep: Callable[[], None]
    ) -> tuple[Outcome, list[float]]:
        """Fit from one start after another, on the estimator itself: a callback may use it."""
        best: Outcome | None = None
        scores = []
        for number, rng in enumerate(rngs):
            try:
                self._begin(task, rng)
                keep()
                outcome = self._run(task, number)
            except BaseException:
                if best is not None:
                    self._take(best.attributes)
                raise
            scores.append(outcome.score)
            best = outcome if outcome.better_than(best) else best
            if outcome.stopped:
                break
        assert best is not None
        return best, scores

    def _side_by_side(
        self, task: Task, rngs: list[RandomState], keep: Callable[[], None], n_workers: int
    ) -> tuple[Outcome, list[float]]:
        """Fit from several starts at a time, each in one thread on a copy of the estimator.

        These are threads of Python, whose work in the kernels goes on side by side.  Unlike a
        pool of joblib's they are waited for when the user interrupts, so none goes on unseen.
        """
        changed = threading.Condition()
        working: set[int] = set()
        best: Outcome | None = None
        unfinished: dict[int, LDAFit] = {}

        def fit(number: int) -> float:
            nonlocal best
            single = copy.copy(self)
            single.n_jobs = 1
            single._begin(task, rngs[number])
            unfinished[number] = single
            outcome = single._run(task, number)
            with changed:
                if not task.halt.is_set():
                    del unfinished[number]
                    best = outcome if outcome.better_than(best) else best
            return outcome.score

        def work(number: int) -> float:
            with changed:
                if task.halt.is_set():
                    return np.nan
                working.add(number)
            try:
                return fit(number)
            except BaseException:
                task.halt.set()
                raise
            finally:
                with changed:
                    working.remove(number)
                    changed.notify_all()

        try:
            with ThreadPoolExecutor(n_workers) as pool:
                try:
                    jobs = [pool.submit(work, number) for number in range(len(rngs))]
                    scores = [job.result() for job in jobs]
                except BaseException:
                    task.halt.set()
                    with changed:  # a thread that was interrupted in its making is not joined
                        changed.wait_for(lambda: not working)
                    raise
        except KeyboardInterrupt:
            begun = [unfinished[n] for n in sorted(unfinished) if unfinished[n]._monitor.step]
            if best is not None:
                self._take(best.attributes)
                keep()
            elif begun:
                self._take(begun[0]._fitted_attributes())
                keep()
            raise
        assert best is not None
        return best, scores

    def _begin(self, task: Task, rng: RandomState) -> None:
        """A new model and a plan of its temperature."""
        X, settings = task.training, task.settings
        n_samples = X.shape[0]
        self._start(X, settings, rng)
        self._model.describe(X, n_samples, float(X.sum(dtype=np.float64)))
        temperature = self._plan(task.n_planned_steps, n_samples / task.batch_size)
        if task.online:
            n_steps = task.n_passes * task.steps_a_pass
            self._check_steps(settings, temperature, task.step_size, 0, n_steps)

    def _run(self, task: Task, number: int) -> Outcome:
        """Fit what has begun, to its end."""
        model, temperature, X = self._model, self._temperature, task.training
        model.start_documents(X.shape[0])
        early_stopping = None
        if task.held_out is not None:
            early_stopping = EarlyStopping(task.held_out, int(self.patience))
        evaluation = Evaluation(
            self,
            X,
            task.documents,
            task.n_passes,
            task.keep_topics or isinstance(temperature, LocalVariational),
            early_stopping,
            prefix=f"start {number + 1}, " if task.n_starts > 1 else "",
        )
        stopped = False

        def on_step() -> None:
            nonlocal stopped
            if task.halt.is_set():
                raise StopIteration
            try:
                self._after_step()
            except StopIteration:
                stopped = True
                raise

        try:
            optimise(
                model,
                X,
                temperature,
                self._monitor,
                n_samples=X.shape[0],
                batch_size=task.batch_size,
                n_passes=task.n_passes,
                population=X.shape[0],
                step_size=task.step_size,
                on_step=on_step,
                after_pass=evaluation.after_pass,
            )
        finally:
            self._finish()
            model.settle()
        score = goodness = np.nan
        if early_stopping is not None:
            early_stopping.finish(self)
            score = goodness = early_stopping.score
        elif not task.halt.is_set():
            score = evaluation.final()
            goodness = -score
        return Outcome(number, self._fitted_attributes(), evaluation, score, goodness, stopped)

    def _fitted_attributes(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        return {name: value for name, value in self.__dict__.items() if name not in parameters}

    def _take(self, attributes: dict[str, Any]) -> None:
        """Be the estimator of one of the starts."""
        self._forget_the_fit()
        self.__dict__.update(attributes)

    # ----------------------------------------------------------------- details

    def _settle(self, n_topics: int | None = None) -> Settings:
        """The parameters for a stream of documents, by default of `n_components` topics."""
        given = self.__dict__ if n_topics is None else self.__dict__ | {"n_components": n_topics}
        return settle(given, int(min(self.total_samples, 2**53)))

    def _wanted_temperature(self) -> Temperature:
        return as_temperature(self._settle().temperature, type(self).__name__, KINDS)

    def _new_model(
        self, n_topics: int, n_features: int, dtype: np.dtype, settings: Settings
    ) -> tuple[LDA, float | NDArray, float | NDArray]:
        """A model and the priors it has, from the parameters."""
        owner, K, V = type(self).__name__, n_topics, n_features
        alpha = check_prior(settings.doc_topic_prior, "doc_topic_prior", owner, ((K,),), dtype)
        shapes = ((V,), (K, V))
        eta = check_prior(settings.topic_word_prior, "topic_word_prior", owner, shapes, dtype)
        model = LDA(K, V, alpha=alpha, eta=eta, dtype=dtype, topic_estimate=settings.topic_estimate)
        return model, alpha, eta

    def _plan(self, n_steps: int | None, steps_per_pass: float) -> Temperature:
        """The temperature of a fit that begins."""
        # a copy: parameters of the user's object may be set between calls
        self._planned_for = clone(self._wanted_temperature())
        self._temperature = self._planned_for.plan(n_steps, steps_per_pass, model=self._model)
        return self._temperature

    def _start(self, X: sparse.csr_matrix, settings: Settings, rng: RandomState) -> None:
        """A new model, its topics at their starting point."""
        n_samples, n_features = X.shape
        model, alpha, eta = self._new_model(self.n_components, n_features, X.dtype, settings)
        init = settings.init
        if not isinstance(init, str):
            shape = (self.n_components, n_features)
            model.set_topics(check_topics(init, "init", type(self).__name__, shape, model.dtype))
        elif init == "kmeans++":
            model.initialize_from_spread_documents(X, rng)
        elif init == "documents":
            if self.n_components > n_samples:
                raise ValueError(
                    f"n_components={self.n_components} must be at most n_samples={n_samples} "
                    "with init='documents'."
                )
            model.initialize_from_documents(X, rng)
        else:
            model.initialize(rng)
        self._forget_the_fit()
        self.random_state_ = rng
        self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
        learned: dict[str, Any] = {
            name: "learn" for name in PRIORS if is_learned(getattr(self, name))
        }
        if isinstance(settings.temperature, Temperature):
            learned["temperature"] = clone(settings.temperature)  # the user's may be changed
        self.settings_ = settings.parameters() | learned
        self._model, self._monitor = model, Monitor()
        self._priors_in_use = self._priors_tempered = None
        self.n_iter_, self.n_batch_iter_ = 0, 1
        self._resume(settings)

    def _resume(self, settings: Settings) -> None:
        """Put parameters and attributes as they are now into the model."""
        self._model.options = settings.local_options()
        self._model.topic_estimate = settings.topic_estimate
        self._model.n_threads = n_threads(self.n_jobs)
        self._learn_priors(is_learned(self.doc_topic_prior), is_learned(self.topic_word_prior))
        self._model.rng = self.random_state_
        self._model.notice_writes()
        self._use_priors()
        priors, before = (self.doc_topic_prior_, self.topic_word_prior_), self._priors_tempered
        if before is not None and not all(map(np.array_equal, priors, before)):
            self._temperature.attach(self._model)  # log C was of other priors
        self._priors_tempered = priors

    @staticmethod
    def _check_steps(
        settings: Settings,
        temperature: Temperature,
        step_size: Callable[[int], float],
        first: int,
        n_steps: int,
    ) -> None:
        """An online step of the posterior form subtracts if rho T reaches 1."""
        advice = (
            f"a larger learning_offset than {settings.learning_offset!r} or a larger "
            f"learning_decay than {settings.learning_decay!r}"
            if settings.memory_spans is None
            else "more passes, or give learning_offset and learning_decay"
        )
        for step in range(first, first + n_steps):
            b, form = temperature.tempering(step)[:2]
            if form == "likelihood":
                return
            rho = step_size(step + 1)
            if b < 1 and rho >= b:
                raise ValueError(
                    "With form='posterior' the step size times the temperature must stay below 1. "
                    f"Got {rho:.4g} * {1 / b:.4g} = {rho / b:.4g} at step {step + 1}: use a lower "
                    f"temperature, {advice}."
                )
            if temperature.settled(step):
                return

    def _forget_the_fit(self) -> None:
        """Drop what is true of the end of `fit` alone."""
        for name in ("bound_", "document_temperatures_", "validation_score_", "init_scores_"):
            self.__dict__.pop(name, None)
        self._sample = None

    def _after_step(self) -> None:
        self.n_batch_iter_ = self._monitor.step + 1
        self._take_priors()
        if self.callback is not None:
            self.callback(self, self._monitor)
            if self._model.learned_priors is not None:
                self._use_priors()  # they may have been assigned to

    def _finish(self) -> None:
        """After the last step, the interrupted one too."""
        self._model.end_fit()
        self._take_priors()
        self.n_batch_iter_ = self._monitor.step + 1
        if self._monitor.temperature_path:
            self._monitor.record()
