"""The methods and attributes of a fitted LDA estimator, in scikit-learn's conventions."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from annealvi._validation import (
    FLOATS,
    canonical_csr,
    check_prior,
    check_topics,
    n_threads,
    unchanged_on_error,
)
from annealvi.inference import Monitor
from annealvi.lda.defaults import Settings, prior
from annealvi.metrics.top_words import top_words
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda import LDA
from annealvi.models.lda.learned_priors import LearnedPriors
from annealvi.temperature import Temperature, Variational
from annealvi.temperature.local import SCORE_GRID

#: Documents that the log partition function of a word is averaged over.
CORPUS_SAMPLE = 512
#: Documents that are scored at a time.
SCORE_BLOCK = 4096


class FittedLDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The methods and attributes of a fitted estimator; see :class:`annealvi.TemperedLDA`.

    A subclass does the fitting.  It also makes a model from its parameters, and prepares an
    existing one to continue with them.
    """

    # set by `fit`, `partial_fit` or an assignment to `components_`
    _model: LDA
    _monitor: Monitor
    _temperature: Temperature
    _planned_for: Temperature  # what _temperature is the plan of
    _priors_in_use: tuple[Any, Any] | None
    _priors_tempered: tuple[Any, Any] | None  # what the temperature was attached with
    # some training documents, what the average document is taken from
    _sample: sparse.csr_matrix | None
    n_batch_iter_: int

    # the subclass's parameters that are needed here
    n_components: int
    total_samples: float
    n_jobs: int | None
    random_state: Any

    def _new_model(
        self, n_topics: int, n_features: int, dtype: np.dtype, settings: Settings
    ) -> tuple[LDA, float | NDArray, float | NDArray]:
        raise NotImplementedError

    def _settle(self, n_topics: int | None = None) -> Settings:
        raise NotImplementedError

    def _resume(self, settings: Settings) -> None:
        raise NotImplementedError

    def _wanted_temperature(self) -> Temperature:
        raise NotImplementedError

    # --------------------------------------------------------------- inference

    def transform(
        self, X: Any, *, normalize: bool = True, temperature: float | str = 1.0
    ) -> NDArray:
        """Infer the topics of documents.  Each row depends only on its own document.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        normalize : bool, default=True
            Whether to return E[theta], whose rows sum to 1.  If False, returns gamma.
        temperature : float or "learned", default=1.0
            Temperature T >= 1 at which documents are fitted.  ``"learned"`` is the
            temperature that the fit had learned before its last phase at T = 1: one number
            with :class:`Variational`, one for each document with :class:`LocalVariational`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)

        Raises
        ------
        ValueError
            If X or the temperature is out of range, or if the temperature is ``"learned"``
            and that of the fit was not learned.
        """
        check_is_fitted(self)
        tempering = self._prediction_tempering(temperature, "transform")
        return self._topics(self._infer(self._check_X(X, "transform"), tempering), normalize)

    @staticmethod
    def _topics(gamma: NDArray, normalize: bool) -> NDArray:
        if normalize:
            gamma /= gamma.sum(axis=1)[:, np.newaxis]
        return gamma

    def score(self, X: Any, y: Any = None, *, temperature: float | str = 1.0) -> float:
        """Compute the ELBO of documents at T = 1, in nats; it includes the topics' KL.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        y : Ignored
        temperature : float or "learned", default=1.0
            Temperature at which the documents' topics are fitted, see `transform`.  The ELBO
            itself is always that of T = 1, so that scores can be compared.

        Returns
        -------
        float
            Higher is better.
        """
        check_is_fitted(self)
        tempering = self._prediction_tempering(temperature, "score")
        return self._elbo(self._check_X(X, "score"), tempering)

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """Compute exp(-ELBO per word) of documents at T = 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        sub_sampling : bool, default=False
            Whether X is a sample from a corpus of `total_samples` documents.

        Returns
        -------
        float
            Lower is better.
        """
        check_is_fitted(self)
        return self._perplexity(self._check_X(X, "perplexity"), None, sub_sampling)

    def document_temperatures(self, X: Any) -> NDArray[np.float64]:
        r"""Compute how unusual documents are, as the temperature that each would choose.

        Ordinary documents have values a little above 1.  Documents of words that do not
        belong together have higher ones.  The value of a document is

        .. math::
           1 / \sum_m r_m b_m, \quad r_m \propto \exp(b_m L_d - N_d c(b_m)),
           \quad b_m = m / 100.

        Here :math:`N_d` is its number of words, and :math:`L_d = \sum_v n_{dv} \sum_k
        \phi_{dvk} (E \log\theta_{dk} + E \log\beta_{kv})` its energy at T = 1; under
        ``topic_estimate="map"`` :math:`\log E \beta_{kv}` takes the place of :math:`E
        \log\beta_{kv}`.  :math:`c(b)` is the log partition function per word of the training
        documents.  The estimator may have been fitted with any temperature.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.

        Returns
        -------
        ndarray of shape (n_samples,)
            NaN for documents without words.

        Notes
        -----
        c(b) is averaged over at most 512 training documents at the end of `fit`.  After
        `partial_fit`, or after an assignment to `components_`, it is averaged over X.
        """
        check_is_fitted(self)
        return self._document_temperatures(self._check_X(X, "document_temperatures"))

    def posterior_log_partition(self, inverse: ArrayLike, data: Any) -> NDArray[np.float64]:
        """Compute log C(T) of documents at the fitted q.

        `log_partition` calls this method for its "posterior" estimate.

        Parameters
        ----------
        inverse : array-like of shape (M,)
            Inverse temperatures.
        data : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.

        Returns
        -------
        ndarray of shape (M,)
            In nats, summed over all documents.

        See Also
        --------
        annealvi.partition.log_partition
        """
        check_is_fitted(self)
        X = self._check_X(data, "posterior_log_partition")
        self._use_priors()
        return self._model.posterior_log_partition(
            np.asarray(inverse, dtype=np.float64), X, n_threads=n_threads(self.n_jobs)
        )

    def top_words(self, n: int = 10, feature_names: ArrayLike | None = None) -> list[list[Any]]:
        """Return the n most probable words of each topic, most probable first.

        Parameters
        ----------
        n : int, default=10
            Number of words for each topic.
        feature_names : array-like of shape (n_features,), default=None
            The words.  By default the column names seen in `fit`, or column numbers if there
            were none.

        Returns
        -------
        list of lists
            One list of words for each topic.
        """
        check_is_fitted(self)
        return top_words(self._model.topics, n, feature_names, self)

    # -------------------------------------------------------------- attributes

    @property
    def components_(self) -> NDArray:
        return self._fitted("_model").show()

    @components_.setter
    def components_(self, value: ArrayLike) -> None:
        owner = type(self).__name__
        value = np.asarray(value)
        first = not self.__sklearn_is_fitted__()
        n_topics = value.shape[0] if value.ndim else self.n_components
        n_features = value.shape[-1] if value.ndim and first else 0
        n_features = getattr(self, "n_features_in_", n_features)
        dtype = value.dtype if value.dtype in FLOATS else np.dtype(np.float64)
        dtype = dtype if first else self._model.dtype
        value = check_topics(value, "components_", owner, (n_topics, n_features), dtype)
        if (
            not first
            and self._model.in_training
            and value.shape
            == (
                self._model.n_topics,
                self._model.n_features,
            )
        ):
            self._model.set_topics(value)  # a callback edits the topics of a running fit
            self._sample = None
            return
        with unchanged_on_error(self):
            self._take_topics(value, n_topics, n_features, dtype, first)

    def _take_topics(
        self, value: NDArray, n_topics: int, n_features: int, dtype: np.dtype, first: bool
    ) -> None:
        """Replace the model by one with the given topics."""
        self._validate_params()  # settings follow from them
        settings = self._settle(n_topics)
        temperature = clone(self._wanted_temperature())
        # another model, so that views of the old one and copies of the estimator keep theirs
        model, alpha, eta = self._new_model(n_topics, n_features, dtype, settings)
        model.set_topics(value)
        if first:
            self.random_state_ = check_random_state(self.random_state)
            self._monitor, self._planned_for = Monitor(), temperature
            self._temperature = temperature.plan(
                None, self.total_samples / settings.batch_size, model=model
            )
            self.n_features_in_, self.n_iter_, self.n_batch_iter_ = n_features, 0, 1
            self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
        elif n_topics != self._model.n_topics:
            self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
        self._temperature.attach(model)
        self._model, self._sample = model, None
        self._priors_in_use = self._priors_tempered = None
        self._resume(settings)

    @property
    def exp_dirichlet_component_(self) -> NDArray:
        return self._fitted("_model").exp_e_log_topics()

    @exp_dirichlet_component_.setter
    def exp_dirichlet_component_(self, value: ArrayLike) -> None:
        derived = self._fitted("_model").exp_e_log_topics()
        value = np.asarray(value)
        if value.shape != derived.shape or not np.allclose(value, derived, rtol=1e-3, atol=1e-6):
            raise ValueError(
                f"The 'exp_dirichlet_component_' of {type(self).__name__} follows from "
                "'components_' as exp(E[log beta]); the array assigned differs from it. Assign "
                "'components_' instead."
            )

    @property
    def temperature_(self) -> float:
        return self._fitted("_monitor").temperature

    @property
    def temperature_path_(self) -> NDArray[np.float64]:
        return np.array(self._fitted("_monitor").temperature_path)

    @property
    def temperature_posterior_(self) -> NDArray[np.float64]:
        return self._variational("temperature_posterior_").posterior_

    @property
    def temperature_posterior_path_(self) -> NDArray[np.float32]:
        return self._variational("temperature_posterior_path_").path()

    @property
    def history_(self) -> dict[str, NDArray]:
        return self._fitted("_monitor").history

    @property
    def _n_features_out(self) -> int:
        return self._model.n_topics

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags

    # ----------------------------------------------------------------- details

    def _fitted(self, name: str) -> Any:
        """An attribute of a fitted estimator; AttributeError if it is not fitted."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return vars(self)[name]

    def _check_X(self, X: Any, method: str, reset: bool = False) -> sparse.csr_matrix:
        """X as a canonical CSR matrix of the fit's dtype."""
        dtype = list(FLOATS) if reset else self._model.dtype
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=dtype)
        check_non_negative(X, f"{type(self).__name__}.{method}")
        return canonical_csr(X) if sparse.issparse(X) else sparse.csr_matrix(X)

    def _use_priors(self) -> None:
        """Give the model the priors of the attributes, if these were assigned to."""
        model, owner = self._model, type(self).__name__
        priors = (self.doc_topic_prior_, self.topic_word_prior_)
        used = self._priors_in_use
        if used is None or used[0] is not priors[0] or used[1] is not priors[1]:
            K, V = model.n_topics, model.n_features
            model.set_priors(
                check_prior(priors[0], "doc_topic_prior_", owner, ((K,),), model.dtype),
                check_prior(priors[1], "topic_word_prior_", owner, ((V,), (K, V)), model.dtype),
            )
            self._priors_in_use = priors

    def _learn_priors(self, alpha: bool, eta: bool) -> None:
        """Set which priors the model learns from now on."""
        model = self._model
        if not alpha and not eta:
            model.learned_priors = None
            return
        if model.learned_priors is None:
            model.learned_priors = LearnedPriors(prior(model.n_topics))
        model.learned_priors.alpha, model.learned_priors.eta = alpha, eta

    def _take_priors(self) -> None:
        """Copy the learned priors into the attributes, unless others were assigned since."""
        model, used = self._model, self._priors_in_use
        priors = (self.doc_topic_prior_, self.topic_word_prior_)
        if model.learned_priors is None or used is None:
            return
        if used[0] is not priors[0] or used[1] is not priors[1]:
            return
        if np.any(model.alpha != priors[0]):
            self.doc_topic_prior_ = np.array(model.alpha)
        if np.any(model.eta != priors[1]):
            self.topic_word_prior_ = float(model.eta)
        # log C is of priors that were set, not of where they are on their way
        self._priors_in_use = self._priors_tempered = (
            self.doc_topic_prior_,
            self.topic_word_prior_,
        )

    def _variational(self, name: str) -> Variational:
        """The Variational temperature of the fit; AttributeError if it had another kind."""
        if not isinstance(self._fitted("_temperature"), Variational):
            raise AttributeError(
                f"{name!r} is only there after a fit with a Variational temperature."
            )
        return self._temperature

    def _prediction_tempering(self, temperature: Any, method: str) -> Tempering:
        """The tempering that the `temperature` parameter of `transform` or `score` means."""
        if isinstance(temperature, str) and temperature == "learned":
            learned = self._temperature.learned()
            if learned is None:
                raise ValueError(
                    "temperature='learned' needs a fit whose temperature was learned, "
                    "'variational' or 'local'. Got a fit with "
                    f"temperature={self._planned_for!r}."
                )
            return learned
        number = isinstance(temperature, Real) and not isinstance(temperature, bool)
        if number and 1 <= temperature < np.inf:
            return Tempering(1.0 / float(temperature))
        raise ValueError(
            f"The 'temperature' parameter of {type(self).__name__}.{method} must be a float in "
            f"the range [1.0, inf) or 'learned'. Got {temperature!r} instead."
        )

    def _document_temperatures(
        self, X: sparse.csr_matrix, gamma: NDArray | None = None
    ) -> NDArray[np.float64]:
        corpus = self._mean_log_partition(self._some(X) if self._sample is None else self._sample)
        temperatures = np.empty(X.shape[0])
        for rows in gen_batches(X.shape[0], SCORE_BLOCK):
            some = X[rows]
            energy = self._model.document_energies(
                some,
                self._infer(some) if gamma is None else gamma[rows],
                n_threads=n_threads(self.n_jobs),
            )
            n_words = np.asarray(some.sum(axis=1, dtype=np.float64)).ravel()
            scores = energy[:, None] * SCORE_GRID - n_words[:, None] * corpus
            # no matrix product: its roundings depend on how many documents there are
            mean = np.sum(softmax(scores, axis=1) * SCORE_GRID, axis=1)
            temperatures[rows] = np.where(n_words > 0, 1.0 / mean, np.nan)
        return temperatures

    @staticmethod
    def _some(X: sparse.csr_matrix) -> sparse.csr_matrix:
        """Evenly spaced documents, at most CORPUS_SAMPLE."""
        return X[:: -(-X.shape[0] // CORPUS_SAMPLE)]

    def _mean_log_partition(self, X: sparse.csr_matrix) -> NDArray[np.float64]:
        """log C(b) per word, averaged over documents."""
        log_c = self._model.posterior_log_partition(
            SCORE_GRID, X, self._infer(X), n_threads=n_threads(self.n_jobs)
        )
        return log_c / (X.sum(dtype=np.float64) or 1.0)

    def _infer(self, X: sparse.csr_matrix, tempering: Tempering = UNTEMPERED) -> NDArray:
        self._use_priors()
        return self._model.infer(X, tempering, n_threads=n_threads(self.n_jobs))

    def _elbo(
        self,
        X: sparse.csr_matrix,
        tempering: Tempering = UNTEMPERED,
        *,
        given: NDArray | None = None,
        out: NDArray | None = None,
        sub_sampling: bool = False,
    ) -> float:
        """The ELBO at T = 1 at the `given` gamma; else gamma is inferred and written to `out`."""
        documents = self._document_elbo(X, tempering, given=given, out=out)
        if sub_sampling:
            documents *= self.total_samples / X.shape[0]
        return documents + self._model.topic_bound()

    def _document_elbo(
        self,
        X: sparse.csr_matrix,
        tempering: Tempering = UNTEMPERED,
        *,
        given: NDArray | None = None,
        out: NDArray | None = None,
    ) -> float:
        """The documents' part of `_elbo`."""
        self._use_priors()
        threads = n_threads(self.n_jobs)
        if given is None:
            by_document = self._model.inferred_bound(X, tempering, n_threads=threads, gamma=out)
        else:
            by_document = self._model.document_bound(X, given, n_threads=threads)
        return float(np.sum(by_document))

    def _perplexity(
        self, X: sparse.csr_matrix, given: NDArray | None = None, sub_sampling: bool = False
    ) -> float:
        elbo = self._elbo(X, given=given, sub_sampling=sub_sampling)
        return self._perplexity_of(elbo, X, sub_sampling)

    def _perplexity_of(self, elbo: float, X: sparse.csr_matrix, sub_sampling: bool) -> float:
        n_words = X.sum(dtype=np.float64)
        if sub_sampling:
            n_words *= self.total_samples / X.shape[0]
        perplexity = float(np.exp(-np.float64(elbo) / n_words))
        return perplexity if n_words or perplexity else np.nan  # 0 would be the best there is

    def _perplexity_precomp_distr(
        self, X: Any, doc_topic_distr: NDArray | None = None, sub_sampling: bool = False
    ) -> float:
        """Perplexity at a given gamma; scikit-learn's tests and some of its users call it."""
        check_is_fitted(self)
        X = self._check_X(X, "perplexity")
        if doc_topic_distr is None:
            return self._perplexity(X, None, sub_sampling)
        n_samples, n_topics = doc_topic_distr.shape
        if n_samples != X.shape[0]:
            raise ValueError("Number of samples in X and doc_topic_distr do not match.")
        if n_topics != self._model.n_topics:
            raise ValueError("Number of topics does not match.")
        return self._perplexity(X, doc_topic_distr, sub_sampling)
