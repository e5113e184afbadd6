"""The methods of a fitted LDA estimator, in scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import (
    check_counts,
    check_flag,
    check_inverses,
    n_threads,
    unchanged_on_error,
)
from annealvi.inference.checkpoints import Fingerprint
from annealvi.inference.fitted import same_features
from annealvi.lda.attributes import Attributes
from annealvi.lda.document_temperatures import document_temperatures
from annealvi.lda.dtypes import in_dtype
from annealvi.lda.parameters import check_parameters
from annealvi.lda.prediction import check_method, prediction_tempering
from annealvi.lda.starts import fit_best
from annealvi.lda.state import LDAState
from annealvi.lda.stream import begin_stream, fit_portion, prepare_portion
from annealvi.lda.words import Prepared, check_words, prepare_words
from annealvi.metrics.topics import top_words
from annealvi.model import Tempering
from annealvi.models.lda.collapsed import Method, infer_collapsed
from annealvi.threads import shallow, writing


class FittedLDA(Attributes, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The methods of a fitted estimator; see :class:`annealvi.TemperedLDA`.

    A subclass defines the parameters and the fit.
    """

    # --------------------------------------------------------------- inference

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True) -> NDArray:
        """Fit, then `transform` the same documents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        normalize : bool, default=True
            See `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            In float32 if X is, otherwise in float64.
        """
        check_flag(normalize, "normalize")
        gamma = self._fit(X, y, keep_gamma=True)
        assert gamma is not None
        return self._shares(gamma, normalize, self._state.model.topics.shown_dtype)

    def transform(
        self,
        X: Any,
        *,
        normalize: bool = True,
        temperature: float | str = 1.0,
        method: Method = "variational",
    ) -> NDArray:
        """Infer the topic proportions of documents.  Each row depends only on its own document.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        normalize : bool, default=True
            Whether to return E[theta], whose rows sum to 1.  If False, returns gamma, or
            alpha and the expected number of words of each topic with ``method="cvb0"``.
        temperature : float or "learned", default=1.0
            Temperature T >= 1 at which documents are fitted.  ``"learned"`` is the
            temperature that the fit had learned before its last phase at T = 1: one number
            with :class:`Variational`, one for each document with :class:`LocalVariational`.
        method : {"variational", "cvb0"}, default="variational"
            How theta is inferred.  ``"variational"`` is the mean field of the fit, with its
            `max_doc_update_iter` and tolerances.  ``"cvb0"`` is collapsed inference at E[beta],
            which is closer to the exact posterior mean.  Use it where documents are short for
            their topics; docs/inference.md has the measurements.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            In float32 if X is, otherwise in float64.

        Raises
        ------
        ValueError
            If X, the temperature or the method is out of range, if the temperature is
            ``"learned"`` and that of the fit was not learned, or if it is not 1 with
            ``method="cvb0"``.
        """
        check_is_fitted(self)
        owner = f"{type(self).__name__}.transform"
        check_flag(normalize, "normalize")
        check_method(method, temperature, owner)
        state, tempering = self._view(temperature, "transform")
        given = self._check_words(X, "transform", state)
        X, threads = in_dtype(given, state.model.dtype), n_threads(self.n_jobs)
        if method == "cvb0":
            gamma = infer_collapsed(state.model.documents, X, n_threads=threads)
        else:
            gamma = state.infer(X, tempering, n_threads=threads)
        return self._shares(gamma, normalize, given.dtype)

    @staticmethod
    def _shares(gamma: NDArray, normalize: bool, dtype: np.dtype) -> NDArray:
        """E[theta], perhaps in place of gamma, or gamma; in a dtype that the user expects."""
        if normalize:
            gamma = gamma.astype(np.promote_types(gamma.dtype, dtype), copy=False)
            gamma /= gamma.sum(axis=1)[:, np.newaxis]
        elif gamma.size and gamma.max() > np.finfo(dtype).max:
            raise ValueError(
                f"gamma must be at most {np.finfo(dtype).max:.3g} in {dtype}, the dtype "
                f"of X. Got {gamma.max():.3g}. Give X in float64, or use normalize=True."
            )
        return gamma.astype(dtype, copy=False)

    def score(self, X: Any, y: Any = None, *, temperature: float | str = 1.0) -> float:
        """Compute the ELBO of documents at T = 1, in nats; it includes the topics' KL.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        y : Ignored
        temperature : float or "learned", default=1.0
            Temperature at which documents are fitted, see `transform`.  The ELBO itself is
            always that of T = 1, so that scores can be compared.

        Returns
        -------
        float
            Higher is better.
        """
        state, tempering = self._view(temperature, "score")
        X = self._check_X(X, "score", state)
        return state.elbo(X, tempering, n_threads=n_threads(self.n_jobs))

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
            Lower is better; infinity if it exceeds the largest float, with a RuntimeWarning.

        Raises
        ------
        ValueError
            If X is out of range, or has no words.
        """
        check_is_fitted(self)
        check_flag(sub_sampling, "sub_sampling")
        state, _ = self._view()
        return self._perplexity(state, self._check_X(X, "perplexity", state), None, sub_sampling)

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
        state, _ = self._view()
        X = self._check_X(X, "document_temperatures", state)
        return document_temperatures(state, X, n_threads=n_threads(self.n_jobs))

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
        inverses = check_inverses(inverse, "inverse")
        state, _ = self._view()
        X = self._check_X(data, "posterior_log_partition", state)
        return state.model.documents.posterior_log_partition(
            inverses, X, n_threads=n_threads(self.n_jobs)
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
        return top_words(self._fitted().model.topics.copy().components, n, feature_names, self)

    def release_buffers(self) -> None:
        """Give back the memory that `partial_fit` keeps for its next call.

        Call it if a stream pauses and memory is short.  It changes no result: the next call
        allocates the memory again, which takes it some milliseconds.
        """
        with writing(self):
            self._drop_buffers()

    @property
    def _n_features_out(self) -> int:
        return self._fitted().model.n_topics

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags

    # ----------------------------------------------------------------- details

    def _view(self, temperature: float | str = 1.0, method: str = "") -> tuple[LDAState, Tempering]:
        """The fit at this moment, for a method that reads it, and the tempering it asks for."""
        check_is_fitted(self)
        state: LDAState = self._fitted()
        with state.lock:
            owner = f"{type(self).__name__}.{method}"
            return state.view(), prediction_tempering(state, temperature, owner)

    def _check_X(self, X: Any, method: str, state: LDAState) -> sparse.csr_matrix:
        """X as a canonical CSR matrix of the dtype of a fit."""
        return in_dtype(self._check_words(X, method, state), state.model.dtype)

    def _check_words(self, X: Any, method: str, state: LDAState) -> sparse.csr_matrix:
        """X as a canonical CSR matrix of float32 or float64."""
        return same_features(self, check_words(self, X, method), state.model.n_features)

    def _fit(
        self,
        X: Any,
        y: Any,
        keep_gamma: bool = False,
        resume: Any = None,
        prepare: Callable[[Any, Any], Prepared] | None = None,
        others: tuple[Any, ...] = (),
    ) -> NDArray | None:
        """Fit from every start and take the best; return gamma, if it is kept.

        `prepare` checks X and sets the features of an estimator that it gets.  `others` are more
        callbacks.
        """
        prepare = prepare_words if prepare is None else prepare
        under_way = self._fit_under_way(X, y, others)
        with writing(self), unchanged_on_error(self) as commit, under_way as callbacks:
            self._drop_buffers()  # of a stream, which this fit replaces
            columns = shallow(self)  # which other threads do not see
            documents, shown, parameters = prepare(columns, X)
            best = fit_best(
                Fingerprint(self, documents),
                parameters,
                documents,
                keep_gamma=keep_gamma,
                n_threads=n_threads(self.n_jobs),
                callback=callbacks,
                resume=resume,
                follow=partial(setattr, self, "_progress"),
                adopt=lambda state: self._show(columns, _state=state.shown_as(shown)),
                commit=commit,
            )
        return best.evaluation.gamma

    def _partial_fit(self, X: Any) -> None:
        """Learn from one more portion of documents."""
        with writing(self):
            first, owner = not self.__sklearn_is_fitted__(), type(self).__name__
            self._check_parameters()
            settings, callbacks = self._resolved(), self._callbacks()
            threads = n_threads(self.n_jobs)
            with unchanged_on_error(self) as commit:
                if first:
                    columns = shallow(self)  # which other threads do not see
                    X = check_words(columns, X, "partial_fit", reset=True)
                    state, X = begin_stream(owner, vars(self), X, settings, threads)
                else:
                    state = self._state
                    X = self._check_X(X, "partial_fit", state)
                population = float(self.total_samples)
                prepare_portion(state, X, settings, population, threads)
                if first:
                    self._show(columns, _state=state)
                fit_portion(state, X, settings, population, callbacks, commit)

    def _drop_buffers(self) -> None:
        """Release the buffers of training, if there are any."""
        state: LDAState | None = vars(self).get("_state")
        if state is not None:
            state.model.buffers.release()

    def _check_parameters(self) -> None:
        """Check parameters; for `partial_fit` scikit-learn does so only at the first call."""
        check_parameters(self._check_values, vars(self))

    @classmethod
    def _check_values(cls, values: dict[str, Any]) -> None:
        constraints: dict[str, Any] = cls._parameter_constraints
        validate_parameter_constraints(constraints, values, cls.__name__)

    def _perplexity(self, state: LDAState, X: Any, given: Any, sub_sampling: bool) -> float:
        if sub_sampling:
            self._check_parameters()  # total_samples may have been set since the fit
        population = float(self.total_samples) if sub_sampling else None
        if not check_counts(X, 1.0 if population is None else population, "total_samples"):
            raise ValueError(
                "The perplexity, exp(-ELBO per word), needs documents with words. "
                f"Got n_samples={X.shape[0]} without any."
            )
        threads = n_threads(self.n_jobs)
        return state.perplexity(X, given, population=population, n_threads=threads)

    def _perplexity_precomp_distr(
        self, X: Any, doc_topic_distr: NDArray | None = None, sub_sampling: bool = False
    ) -> float:
        """Perplexity at a given gamma; scikit-learn's tests and some of its users call it."""
        state, _ = self._view()
        X = self._check_X(X, "perplexity", state)
        if doc_topic_distr is None:
            return self._perplexity(state, X, None, sub_sampling)
        n_samples, n_topics = doc_topic_distr.shape
        if n_samples != X.shape[0]:
            raise ValueError("Number of samples in X and doc_topic_distr do not match.")
        if n_topics != state.model.n_topics:
            raise ValueError("Number of topics does not match.")
        return self._perplexity(state, X, doc_topic_distr, sub_sampling)
