"""What a fit of TemperedLDA has come to, and what can be asked of it.

The estimator has parameters; the state has the fit: the model, the temperature, the record
and the priors in use.  It knows no parameter of the estimator and holds arrays, numbers,
strings and objects made of these, so that it can be copied, written to a file or sent to
another process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import gen_batches

from annealvi._validation import check_prior, check_topics
from annealvi.inference import Monitor, optimise
from annealvi.lda.defaults import Settings, prior
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda import LDA
from annealvi.models.lda.learned_priors import LearnedPriors
from annealvi.temperature import Fixed, Temperature
from annealvi.temperature.local import SCORE_GRID

#: Documents that the log partition function of a word is averaged over.
CORPUS_SAMPLE = 512
#: Documents that are scored at a time.
SCORE_BLOCK = 4096

Prior = float | NDArray[np.float64]


@dataclass
class Results:
    """What `fit` has found at its end, and what no longer holds once the topics move on.

    Parameters
    ----------
    bound, validation_score : float or None
    init_scores, document_temperatures : ndarray or None
        What the estimator's attributes of these names with an underscore show.
    sample : CSR matrix or None
        Some training documents, what the average document is taken from.
    """

    bound: float | None = None
    validation_score: float | None = None
    init_scores: NDArray[np.float64] | None = None
    document_temperatures: NDArray[np.float64] | None = None
    sample: sparse.csr_matrix | None = None


@dataclass
class LDAState:
    """A fit of TemperedLDA, at any step of it.

    Parameters
    ----------
    owner : str
        Name of the estimator, for messages.
    model : LDA
        Topics, priors and the steps that move them.
    doc_topic_prior, topic_word_prior : float or ndarray
        The priors that the user sees and may assign to; :meth:`use_priors` hands them to the
        model.
    temperature : Temperature
        A planned one, with what it has learned.
    planned_for : Temperature or None
        What it is the plan of; None before there is one.
    monitor : Monitor
        The record: steps, passes, temperatures.
    settings : dict or None
        Parameters of the fit with values for those left open.
    n_passes : int
        Passes of `fit`, not counting the final pass that met the stopping test.
    results : Results
    """

    owner: str
    model: LDA
    doc_topic_prior: Prior
    topic_word_prior: Prior
    temperature: Temperature = field(default_factory=Fixed)
    planned_for: Temperature | None = None
    monitor: Monitor = field(default_factory=Monitor)
    settings: dict[str, Any] | None = None
    n_passes: int = 0
    results: Results = field(default_factory=Results)
    #: The priors that the model has, and those that the temperature was attached with.
    _in_use: tuple[Prior, Prior] | None = field(default=None, init=False)
    _attached: tuple[Prior, Prior] | None = field(default=None, init=False)

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
        """A fit that has made no step: the topics are at their starting point.

        Parameters
        ----------
        owner : str
        X : CSR matrix of shape (n_samples, V)
            Documents that topics may start from.
        n_topics : int
        settings : Settings
        rng : RandomState
        n_threads : int

        Raises
        ------
        ValueError
            If a prior or `init` does not fit the data.
        """
        n_samples, n_features = X.shape
        state = cls._of_model(owner, (n_topics, n_features), X.dtype, settings)
        state.settings = settings.parameters()
        init = settings.init
        if not isinstance(init, str):
            shape = (n_topics, n_features)
            state.model.topics.assign(check_topics(init, "init", owner, shape, X.dtype))
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
        """A fit that goes on from given topics.

        Parameters
        ----------
        owner : str
        components : ndarray of shape (n_topics, n_features)
        settings : Settings
        rng : RandomState or None
        n_threads : int
        dtype : dtype
        """
        state = cls._of_model(owner, components.shape, dtype, settings)
        state.model.topics.assign(components)
        state.model.rng = rng
        state.resume(settings, n_threads)
        return state

    @classmethod
    def _of_model(
        cls, owner: str, shape: tuple[int, ...], dtype: np.dtype, settings: Settings
    ) -> Self:
        """A state around a new model, whose topics are not there yet."""
        K, V = shape
        alpha = check_prior(settings.doc_topic_prior, "doc_topic_prior", owner, ((K,),), dtype)
        shapes = ((V,), (K, V))
        eta = check_prior(settings.topic_word_prior, "topic_word_prior", owner, shapes, dtype)
        estimate = settings.topic_estimate
        model = LDA(K, V, alpha=alpha, eta=eta, dtype=dtype, topic_estimate=estimate)
        return cls(owner, model, alpha, eta)

    def moved_to(self, components: NDArray, settings: Settings, n_threads: int) -> Self:
        """The same fit with other topics, in a model of its own.

        Views of the old topics, and copies of the estimator, keep the old model.

        Parameters
        ----------
        components : ndarray of shape (n_topics, n_features)
        settings : Settings
        n_threads : int
        """
        rng, dtype = self.model.rng, self.model.dtype
        fresh = self.at_topics(self.owner, components, settings, rng, n_threads, dtype)
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

    def resume(self, settings: Settings, n_threads: int) -> None:
        """Give the model the settings, and the priors as they are now."""
        model = self.model
        model.documents.options = settings.local_options()
        model.topics.estimate = settings.topic_estimate
        model.topics.n_threads = n_threads
        self._learn_priors(settings.learned)
        model.topics.notice_writes()
        self.use_priors()
        priors = self.doc_topic_prior, self.topic_word_prior
        if self._attached is not None and not all(map(np.array_equal, priors, self._attached)):
            self.temperature.attach(model)  # log C was of other priors
        self._attached = priors

    def plan(self, wanted: Temperature, n_steps: int | None, steps_per_pass: float) -> Temperature:
        """A plan of a temperature for this model, not yet taken; see :meth:`Temperature.plan`."""
        return wanted.plan(n_steps, steps_per_pass, model=self.model)

    def follow(self, wanted: Temperature, planned: Temperature) -> None:
        """Take the plan of a temperature, which is copied: the user may set its parameters."""
        self.planned_for, self.temperature = clone(wanted), planned

    # --------------------------------------------------------------------- steps

    def make_passes(
        self,
        X: sparse.csr_matrix,
        *,
        batch_size: int,
        n_passes: int,
        population: float,
        step_size: Callable[[int], float],
        on_step: Callable[[], None],
        after_pass: Callable[[int], bool] | None = None,
    ) -> None:
        """Make passes over documents; see :func:`annealvi.inference.optimise`.

        Whatever ends them, the fit is then in order: steps are recorded, buffers released.
        """
        try:
            optimise(
                self.model,
                X,
                self.temperature,
                self.monitor,
                n_samples=X.shape[0],
                batch_size=batch_size,
                n_passes=n_passes,
                population=population,
                step_size=step_size,
                on_step=on_step,
                after_pass=after_pass,
            )
        finally:
            self.model.release_buffers()
            self._show_learned_priors()
            if self.monitor.temperature_path:
                self.monitor.record()

    def after_step(self) -> None:
        """Show the priors that the step has learned."""
        self._show_learned_priors()

    def after_callback(self) -> None:
        """Take priors that the callback has assigned."""
        if self.model.learned_priors is not None:
            self.use_priors()

    def forget_results(self) -> None:
        """Drop what is true at the end of `fit` alone."""
        self.results = Results()

    # -------------------------------------------------------------------- priors

    def checked_priors(self) -> tuple[Prior, Prior]:
        """The priors as they are now, which the user may have assigned.

        Raises
        ------
        ValueError
            If one is no prior.
        """
        K, V, dtype = self.model.n_topics, self.model.n_features, self.model.dtype
        shapes = ((V,), (K, V))
        return (
            check_prior(self.doc_topic_prior, "doc_topic_prior_", self.owner, ((K,),), dtype),
            check_prior(self.topic_word_prior, "topic_word_prior_", self.owner, shapes, dtype),
        )

    def use_priors(self) -> None:
        """Hand the priors to the model, if others were assigned.

        Raises
        ------
        ValueError
            If one is no prior.
        """
        used = self._in_use
        priors = self.doc_topic_prior, self.topic_word_prior
        if used is None or used[0] is not priors[0] or used[1] is not priors[1]:
            self.model.set_priors(*self.checked_priors())
            self._in_use = priors

    def _learn_priors(self, names: tuple[str, ...]) -> None:
        """Say which priors the model learns from now on."""
        model = self.model
        if not names:
            model.learned_priors = None
            return
        if model.learned_priors is None:
            model.learned_priors = LearnedPriors(prior(model.n_topics))
        model.learned_priors.alpha = "doc_topic_prior" in names
        model.learned_priors.eta = "topic_word_prior" in names

    def _show_learned_priors(self) -> None:
        """Show the priors that the model has learned, unless others were assigned since."""
        model, used = self.model, self._in_use
        if model.learned_priors is None or used is None:
            return
        if used[0] is not self.doc_topic_prior or used[1] is not self.topic_word_prior:
            return
        if np.any(model.alpha != self.doc_topic_prior):
            self.doc_topic_prior = np.array(model.alpha)
        if np.any(model.eta != self.topic_word_prior):
            self.topic_word_prior = float(model.eta)
        # log C is of priors that were set, not of where they are on their way
        self._in_use = self._attached = self.doc_topic_prior, self.topic_word_prior

    # ----------------------------------------------------------------- questions

    def infer(
        self,
        X: sparse.csr_matrix,
        tempering: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
    ) -> NDArray:
        """gamma of documents.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, V)
        tempering : Tempering
        n_threads : int, optional
            By default those of the fit; so in all methods.

        Returns
        -------
        ndarray of shape (n_samples, K)
        """
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
        """The documents' part of the ELBO at T = 1, in nats.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, V)
        tempering : Tempering
            What documents are fitted at.
        given : ndarray of shape (n_samples, K), optional
            gamma; inferred if not given.
        out : ndarray of shape (n_samples, K), optional
            Where inferred gamma is written.
        n_threads : int, optional
        """
        self.use_priors()
        documents = self.model.documents
        if given is None:
            bound = documents.inferred_bound(X, tempering, n_threads=n_threads, gamma=out)
        else:
            bound = documents.bound(X, given, n_threads=n_threads)
        return float(np.sum(bound))

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
        """The ELBO at T = 1, in nats, of the topics and as many documents as `population`.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, V)
        tempering : Tempering
        given, out : ndarray of shape (n_samples, K), optional
            See :meth:`document_elbo`.
        population : float, optional
            Documents that X is a sample of; by default X is all of them.
        n_threads : int, optional
        """
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

    def document_temperatures(
        self,
        X: sparse.csr_matrix,
        gamma: NDArray | None = None,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """See :meth:`annealvi.TemperedLDA.document_temperatures`."""
        sample = some_documents(X) if self.results.sample is None else self.results.sample
        corpus = self._mean_log_partition(sample, n_threads)
        temperatures = np.empty(X.shape[0])
        for rows in gen_batches(X.shape[0], SCORE_BLOCK):
            some = X[rows]
            energy = self.model.documents.energies(
                some,
                self.infer(some, n_threads=n_threads) if gamma is None else gamma[rows],
                n_threads=n_threads,
            )
            n_words = np.asarray(some.sum(axis=1, dtype=np.float64)).ravel()
            scores = energy[:, None] * SCORE_GRID - n_words[:, None] * corpus
            # no matrix product: its roundings depend on how many documents there are
            mean = np.sum(softmax(scores, axis=1) * SCORE_GRID, axis=1)
            temperatures[rows] = np.where(n_words > 0, 1.0 / mean, np.nan)
        return temperatures

    def _mean_log_partition(
        self, X: sparse.csr_matrix, n_threads: int | None
    ) -> NDArray[np.float64]:
        """log C(b) a word, averaged over documents."""
        log_c = self.model.documents.posterior_log_partition(
            SCORE_GRID, X, self.infer(X, n_threads=n_threads), n_threads=n_threads
        )
        return log_c / (X.sum(dtype=np.float64) or 1.0)


def some_documents(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """At most CORPUS_SAMPLE documents, at even distances.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, V)
    """
    return X[:: -(-X.shape[0] // CORPUS_SAMPLE)]


def perplexity_of(elbo: float, X: sparse.csr_matrix, population: float | None = None) -> float:
    """exp(-ELBO per word); NaN for documents without words.

    Parameters
    ----------
    elbo : float
        In nats.
    X : CSR matrix of shape (n_samples, V)
        The documents that it is of.
    population : float, optional
        Documents that X is a sample of.
    """
    n_words = X.sum(dtype=np.float64)
    if population is not None:
        n_words *= population / X.shape[0]
    perplexity = float(np.exp(-np.float64(elbo) / n_words))
    return perplexity if n_words or perplexity else np.nan  # 0 would be the best there is
