"""The state of a fit of TemperedLDA, and the methods that evaluate it.

The estimator has the parameters.  The state has the fit: the model, the temperature, the
record and the priors in use.  It does not refer to the estimator; `settings` is a copy of the
parameters in use.  It holds only arrays, numbers, strings and objects made of these, so that it
can be copied, written to a file or sent to another process.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from annealvi.checks import check_priors, check_topics
from annealvi.inference import Monitor, Position, optimise
from annealvi.lda.defaults import Settings, prior
from annealvi.lda.perplexity import perplexity_of
from annealvi.lda.results import Results
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda import LDA
from annealvi.models.lda.learned_priors import LearnedPriors
from annealvi.temperature import Fixed, Temperature
from annealvi.threads import Lock, shallow

Prior = float | NDArray[np.float64]


@dataclass
class LDAState:
    """The state of a fit of TemperedLDA, at any step."""

    #: Name of the estimator, for messages.
    owner: str
    #: Topics and priors, with the steps that update them.
    model: LDA
    #: The priors that the user sees and may assign to; :meth:`use_priors` passes them to the
    #: model.
    doc_topic_prior: Prior
    topic_word_prior: Prior
    #: The planned temperature, with what it has learned.
    temperature: Temperature = field(default_factory=Fixed)
    #: A copy of the user's temperature, before planning; None if nothing was planned yet.
    planned_for: Temperature | None = None
    #: The record: steps, passes, temperatures.
    monitor: Monitor = field(default_factory=Monitor)
    #: Parameters of the fit with values for those left open.
    settings: dict[str, Any] | None = None
    #: Passes of `fit`, not counting the final pass that met the stopping test.
    n_passes: int = 0
    results: Results = field(default_factory=Results)
    #: The priors that the model has, and those that the temperature was attached with.
    in_use: tuple[Prior, Prior] | None = field(default=None, init=False)
    attached: tuple[Prior, Prior] | None = field(default=None, init=False)
    #: The settings of the last portion of a stream.
    streamed_with: Settings | None = field(default=None, init=False)

    # ------------------------------------------------------- copies for other threads

    @property
    def lock(self) -> Lock:
        """Held while a step changes the fit, and while a copy of it is made."""
        return self.model.topics.lock

    def view(self) -> Self:
        """Return the fit as it is between two steps, for a reader in any thread.

        Its model does not change.  The arrays are shared until the next step, which leaves them
        to the view if that is still in use.
        """
        with self.lock:
            self.use_priors()
            self._show_learned_priors()
            seen = shallow(self)
            seen.model, seen.results = self.model.copy(), shallow(self.results)
            return seen

    def __getstate__(self) -> dict[str, Any]:
        """The fit as it is between two steps, for copies and pickles."""
        with self.lock:
            self._show_learned_priors()
            model = self.model.copy(lasting=True)
            model.rng = copy.deepcopy(model.rng)
            return vars(self) | {
                "model": model,
                # it refers to the model
                "temperature": copy.deepcopy(self.temperature, {id(self.model): model}),
                "monitor": self.monitor.copy(),
                "results": replace(self.results),
                "streamed_with": None,
            }

    # ------------------------------------------------------------------ beginning

    @classmethod
    def begin(
        cls,
        owner: str,
        X: sparse.csr_matrix,
        n_topics: int,
        settings: Settings,
        rng: RandomState,
        n_threads: int,
    ) -> Self:
        """Return a state before its first step, with the topics at their starting point."""
        n_samples, n_features = X.shape
        state = cls._of_model(owner, (n_topics, n_features), X.dtype, settings)
        state.settings = settings.parameters() | {"dtype": X.dtype.name}
        init = settings.init
        if not isinstance(init, str):
            shape = (n_topics, n_features)
            state.model.topics.assign(check_topics(init, "init", shape, X.dtype))
            state.model.rng = rng
        else:
            if init == "documents" and n_topics > n_samples:
                raise ValueError(
                    f"n_components={n_topics} must be at most n_samples={n_samples} "
                    "with init='documents'."
                )
            state.model.initialize(rng, X, init)
        state.resume(settings, n_threads)
        return state

    @classmethod
    def at_topics(
        cls,
        owner: str,
        components: NDArray,
        settings: Settings,
        rng: RandomState | None,
        n_threads: int,
        dtype: np.dtype,
    ) -> Self:
        """Return a state with given topics."""
        state = cls._of_model(owner, (len(components), components.shape[1]), dtype, settings)
        state.model.topics.assign(components)
        state.model.rng = rng
        state.resume(settings, n_threads)
        return state

    @classmethod
    def _of_model(
        cls, owner: str, shape: tuple[int, int], dtype: np.dtype, settings: Settings
    ) -> Self:
        """A state with a new model, whose topics are not initialised yet."""
        given = settings.doc_topic_prior, settings.topic_word_prior
        alpha, eta = check_priors(*given, shape, dtype)
        estimate = settings.topic_estimate
        model = LDA(*shape, alpha=alpha, eta=eta, dtype=dtype, topic_estimate=estimate)
        return cls(owner, model, alpha, eta)

    def moved_to(self, components: NDArray, settings: Settings, n_threads: int) -> Self:
        """Return the same fit with other topics, in a new model.

        The old model is not changed, because views and copies may still use it.
        """
        rng, dtype = self.model.rng, self.model.dtype
        fresh = self.at_topics(self.owner, components, settings, rng, n_threads, dtype)
        fresh.shown_as(self.model.topics.shown_dtype)
        priors = self.doc_topic_prior, self.topic_word_prior
        if fresh.model.n_topics != self.model.n_topics:
            priors = fresh.doc_topic_prior, fresh.topic_word_prior
        state = replace(
            self,
            model=fresh.model,
            doc_topic_prior=priors[0],
            topic_word_prior=priors[1],
            results=replace(self.results, sample=None),
        )
        state.temperature.attach(state.model)
        state.resume(settings, n_threads)
        return state

    def shown_as(self, dtype: np.dtype) -> Self:
        """Return this state, whose topics are shown to the user in a dtype of his own."""
        self.model.topics.shown_dtype = dtype
        return self

    def resume(self, settings: Settings, n_threads: int) -> None:
        """Apply the settings and the current priors to the model."""
        model = self.model
        with self.lock:
            model.documents.options = settings.local_options()
            model.topics.estimate = settings.topic_estimate
            model.topics.n_threads = n_threads
            self._learn_priors(settings.learned)
            model.topics.notice_writes()
            self.use_priors()
        self._attach()

    def _attach(self) -> None:
        """Attach the temperature again, if the user has set other priors since."""
        priors = self.doc_topic_prior, self.topic_word_prior
        if self.attached is not None and not all(map(_same, priors, self.attached)):
            self.temperature.attach(self.model)  # log C was computed with other priors
        self.attached = priors

    def plan(self, wanted: Temperature, n_steps: int | None, steps_per_pass: float) -> Temperature:
        """Plan a temperature for this model without using it; see :meth:`Temperature.plan`."""
        return wanted.plan(n_steps, steps_per_pass, model=self.model)

    def follow(self, wanted: Temperature, planned: Temperature) -> None:
        """Use this plan.  `wanted` is copied, because the user may change it later."""
        self.planned_for, self.temperature = clone(wanted), planned

    # --------------------------------------------------------------------- steps

    def make_passes(
        self,
        X: sparse.csr_matrix,
        *,
        batch_size: int,
        n_passes: int,
        n_full_passes: int = 0,
        population: float,
        step_size: Callable[[int], float],
        on_step: Callable[[], None],
        after_pass: Callable[[int], bool] | None = None,
        position: Position | None = None,
        keep_buffers: bool = False,
    ) -> None:
        """Make passes over documents; see :func:`annealvi.inference.optimise`.

        Also after an error or interrupt, steps are recorded and buffers released.  Otherwise
        those of the steps stay for more passes, with `keep_buffers`.
        """
        try:
            with self.model.buffers.used(keep=keep_buffers, repeated=n_passes > 1):
                optimise(
                    self.model,
                    X,
                    self.temperature,
                    self.monitor,
                    n_samples=X.shape[0],
                    batch_size=batch_size,
                    n_passes=n_passes,
                    n_full_passes=n_full_passes,
                    population=population,
                    step_size=step_size,
                    on_step=on_step,
                    after_pass=after_pass,
                    position=position,
                    changing=self.lock,
                )
        finally:
            self.model.forget_documents()
            self._show_learned_priors()
            if self.monitor.temperature_path:
                self.monitor.record()

    def after_step(self, callback: Callable[[Monitor], None] | None = None) -> None:
        """Show the priors that the step has learned, and call the user's callback.

        Priors that the callback assigns are checked at once; learned ones go on from them.
        """
        self._show_learned_priors()
        if callback is not None:
            callback(self.monitor)
            self.take_priors()

    def take_priors(self) -> None:
        """Check priors that the callback has assigned, and go on with them."""
        if self.priors_assigned():
            self.use_priors()
            self._attach()

    def forget_results(self) -> None:
        """Drop the results that hold only at the end of `fit`."""
        self.results = Results()

    # -------------------------------------------------------------------- priors

    def check_priors(self) -> None:
        """Check the priors, if the user has assigned others."""
        if self.priors_assigned():
            self.checked_priors()

    def use_priors(self) -> None:
        """Hand the priors to the model, if the user has assigned others; see `check_priors`."""
        with self.lock:
            if self.priors_assigned():
                self.model.set_priors(*self.checked_priors())
                self.in_use = self.doc_topic_prior, self.topic_word_prior

    def priors_assigned(self) -> bool:
        """Whether the priors are others than the model has."""
        used, shown = self.in_use, (self.doc_topic_prior, self.topic_word_prior)
        return used is None or used[0] is not shown[0] or used[1] is not shown[1]

    def checked_priors(self) -> tuple[Prior, Prior]:
        """The priors that the user sees, after a check."""
        model, shown = self.model, (self.doc_topic_prior, self.topic_word_prior)
        shape = (model.n_topics, model.n_features)
        return check_priors(*shown, shape, model.dtype, suffix="_")

    def _learn_priors(self, names: tuple[str, ...]) -> None:
        """Set which priors the model learns from now on."""
        model = self.model
        if not names:
            model.learned_priors = None
            return
        if model.learned_priors is None:
            model.learned_priors = LearnedPriors(prior(model.n_topics))
        model.learned_priors.alpha = "doc_topic_prior" in names
        model.learned_priors.eta = "topic_word_prior" in names

    def _show_learned_priors(self) -> None:
        """Take the learned priors from the model, unless the user has assigned others."""
        model = self.model
        with self.lock:
            if model.learned_priors is None or self.priors_assigned():
                return
            if np.any(model.alpha != self.doc_topic_prior):
                self.doc_topic_prior = np.array(model.alpha)
            if np.any(model.eta != self.topic_word_prior):
                self.topic_word_prior = float(model.eta)
            # log C is recomputed when the user sets a prior, not after each learned step
            self.in_use = self.attached = self.doc_topic_prior, self.topic_word_prior

    # ----------------------------------------------------------------- questions

    def infer(
        self,
        X: sparse.csr_matrix,
        tempering: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
    ) -> NDArray:
        """Infer gamma of documents."""
        self.use_priors()
        return self.model.documents.infer(X, tempering, n_threads=n_threads)

    def document_elbo(
        self,
        X: sparse.csr_matrix,
        tempering: Tempering = UNTEMPERED,
        *,
        given: NDArray | None = None,
        out: NDArray | None = None,
        n_threads: int | None = None,
    ) -> float:
        """The documents' part of the ELBO at T = 1, in nats."""
        self.use_priors()
        documents = self.model.documents
        if given is None:
            return self.model.document_bound(X, tempering, n_threads=n_threads, gamma=out)
        return float(np.sum(documents.bound(X, given, n_threads=n_threads)))

    def elbo(
        self,
        X: sparse.csr_matrix,
        tempering: Tempering = UNTEMPERED,
        *,
        given: NDArray | None = None,
        out: NDArray | None = None,
        population: float | None = None,
        n_threads: int | None = None,
    ) -> float:
        """The ELBO at T = 1, in nats, of the topics and of `population` documents."""
        elbo = self.document_elbo(X, tempering, given=given, out=out, n_threads=n_threads)
        if population is not None:
            elbo *= population / X.shape[0]
        return elbo + self.model.topics.bound()

    def perplexity(
        self,
        X: sparse.csr_matrix,
        given: NDArray | None = None,
        *,
        population: float | None = None,
        n_threads: int | None = None,
    ) -> float:
        """exp(-ELBO per word) at T = 1; parameters as for :meth:`elbo`."""
        elbo = self.elbo(X, given=given, population=population, n_threads=n_threads)
        return perplexity_of(elbo, X, population)


def _same(one: Prior, other: Prior) -> bool:
    """Whether two priors are equal."""
    return one is other or np.array_equal(one, other)
