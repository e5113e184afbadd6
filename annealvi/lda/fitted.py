"""The methods and attributes of a fitted LDA estimator, in scikit-learn's conventions."""

from __future__ import annotations

import copy
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from annealvi._threads import shallow, writing
from annealvi._validation import (
    FLOATS,
    as_array,
    check_counts,
    check_flag,
    check_inverses,
    check_topics,
    n_threads,
    unchanged_on_error,
)
from annealvi.files import Node
from annealvi.inference.checkpoints import Fingerprint
from annealvi.inference.fitted import Fitted, same_features
from annealvi.lda.defaults import Settings, resolve
from annealvi.lda.document_temperatures import document_temperatures
from annealvi.lda.prediction import check_method, prediction_tempering
from annealvi.lda.saved import state_of, state_tree
from annealvi.lda.starts import fit_best
from annealvi.lda.state import LDAState
from annealvi.lda.words import check_words
from annealvi.metrics.top_words import top_words
from annealvi.model import Tempering
from annealvi.models.lda.collapsed import Method, infer_collapsed


class FittedLDA(Fitted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The methods and attributes of a fitted estimator; see :class:`annealvi.TemperedLDA`.

    A subclass defines the parameters and the fit.
    """

    # set by `fit`, `partial_fit` or an assignment to `components_`
    _state: LDAState

    # the subclass's parameters that are needed here
    n_components: int
    total_samples: float
    n_jobs: int | None
    random_state: Any

    # --------------------------------------------------------------- inference

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

        Raises
        ------
        ValueError
            If X, the temperature or the method is out of range, if the temperature is
            ``"learned"`` and that of the fit was not learned, or if it is not 1 with
            ``method="cvb0"``.
        """
        check_is_fitted(self)
        owner = f"{type(self).__name__}.transform"
        check_flag(normalize, "normalize", owner)
        check_method(method, temperature, owner)
        state, tempering = self._view(temperature, "transform")
        X, threads = self._check_X(X, "transform", state), n_threads(self.n_jobs)
        if method == "cvb0":
            gamma = infer_collapsed(state.model.documents, X, n_threads=threads)
        else:
            gamma = state.infer(X, tempering, n_threads=threads)
        return self._shares(gamma, normalize)

    @staticmethod
    def _shares(gamma: NDArray, normalize: bool) -> NDArray:
        """E[theta], in place of gamma, or gamma."""
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
        check_flag(sub_sampling, "sub_sampling", f"{type(self).__name__}.perplexity")
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
        owner = f"{type(self).__name__}.posterior_log_partition"
        inverses = check_inverses(inverse, "inverse", owner)
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

    # -------------------------------------------------------------- attributes

    @property
    def components_(self) -> NDArray:
        return self._fitted().model.topics.show()

    @components_.setter
    def components_(self, value: ArrayLike) -> None:
        with writing(self):
            self._set_components(as_array(value))

    def _set_components(self, value: NDArray) -> None:
        owner = type(self).__name__
        state: LDAState | None = vars(self).get("_state")
        if state is not None and state.model.training is not None:
            # a callback edits the topics of a running fit
            model = state.model
            shape = (model.n_topics, model.n_features)
            value = check_topics(value, "components_", owner, shape, model.dtype)
            with state.lock:
                model.topics.assign(value)
                state.results.sample = None
            return
        n_topics = value.shape[0] if value.ndim else self.n_components
        n_features = value.shape[-1] if value.ndim and state is None else 0
        n_features = getattr(self, "n_features_in_", n_features)
        dtype = value.dtype if value.dtype in FLOATS else np.dtype(np.float64)
        dtype = dtype if state is None else state.model.dtype
        value = check_topics(value, "components_", owner, (n_topics, n_features), dtype)
        with unchanged_on_error(self):
            self._go_on_from(value, dtype)

    def _go_on_from(self, components: NDArray, dtype: np.dtype) -> None:
        """Use given topics as if a fit had found them."""
        self._validate_params()  # settings follow from them
        settings = self._resolved(components.shape[0])
        owner, threads = type(self).__name__, n_threads(self.n_jobs)
        wanted = settings.wanted_temperature(owner)
        if self.__sklearn_is_fitted__():
            self._state = self._state.moved_to(components, settings, threads)
            return
        rng = check_random_state(self.random_state)
        state = LDAState.at_topics(owner, components, settings, rng, threads, dtype)
        planned = state.plan(wanted, None, float(self.total_samples) / settings.batch_size)
        state.follow(wanted, planned)
        self.n_features_in_, self._state = components.shape[1], state

    @property
    def exp_dirichlet_component_(self) -> NDArray:
        return self._fitted().model.topics.exp_e_log()

    @exp_dirichlet_component_.setter
    def exp_dirichlet_component_(self, value: ArrayLike) -> None:
        derived = self.exp_dirichlet_component_
        value = as_array(value)
        wrong = value.dtype.kind not in "fiu" or value.shape != derived.shape
        if wrong or not np.allclose(value, derived, rtol=1e-3, atol=1e-6):
            raise ValueError(
                f"The 'exp_dirichlet_component_' of {type(self).__name__} follows from "
                "'components_' as exp(E[log beta]); the array assigned differs from it. Assign "
                "'components_' instead."
            )

    @property
    def doc_topic_prior_(self) -> float | NDArray[np.float64]:
        return self._fitted().doc_topic_prior

    @doc_topic_prior_.setter
    def doc_topic_prior_(self, value: float | NDArray[np.float64]) -> None:
        with writing(self):
            self._fitted().doc_topic_prior = value

    @property
    def topic_word_prior_(self) -> float | NDArray[np.float64]:
        return self._fitted().topic_word_prior

    @topic_word_prior_.setter
    def topic_word_prior_(self, value: float | NDArray[np.float64]) -> None:
        with writing(self):
            self._fitted().topic_word_prior = value

    @property
    def random_state_(self) -> RandomState | None:
        return self._fitted().model.rng

    @random_state_.setter
    def random_state_(self, value: RandomState) -> None:
        with writing(self):
            state = self._fitted()
            state.model.rng = check_random_state(value)

    @property
    def n_batch_iter_(self) -> int:
        return self._fitted().monitor.step + 1

    @n_batch_iter_.setter
    def n_batch_iter_(self, value: int) -> None:
        with writing(self):
            state = self._fitted()
            if not isinstance(value, Integral) or not 1 <= value <= 2**53:
                raise ValueError(
                    f"The 'n_batch_iter_' of {type(self).__name__} must be an int in the range "
                    f"[1, {2**53}]. Got {value!r} instead."
                )
            state.monitor.step = int(value) - 1

    @property
    def n_iter_(self) -> int:
        return self._fitted().n_passes

    @property
    def settings_(self) -> dict[str, Any]:
        return self._found(self._fitted().settings, "settings_", "`fit` or `partial_fit`")

    @property
    def bound_(self) -> float:
        return self._found(self._fitted().results.bound, "bound_", "`fit`")

    @property
    def validation_score_(self) -> float:
        score = self._fitted().results.validation_score
        return self._found(score, "validation_score_", "`fit` with validation_fraction")

    @property
    def init_scores_(self) -> NDArray[np.float64]:
        return self._found(self._fitted().results.init_scores, "init_scores_", "`fit`")

    @property
    def document_temperatures_(self) -> NDArray[np.float64]:
        temperatures = self._fitted().results.document_temperatures
        when = "`fit` with a LocalVariational temperature"
        return self._found(temperatures, "document_temperatures_", when)

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        check_is_fitted(self)
        return {
            "feature_names_in": getattr(self, "feature_names_in_", None),
            "fit": state_tree(copy.copy(self._fitted())),
        }

    def load_state_dict(self, node: Node) -> None:
        """Take over a fitted state, for :func:`annealvi.load`.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the state is not one of this class.
        """
        self._validate_params()
        state = state_of(type(self).__name__, node.node("fit"))
        n_features = state.model.n_features
        if not node.is_none("feature_names_in"):
            self.feature_names_in_ = node.strings("feature_names_in", n_features)
        self._state, self.n_features_in_ = state, n_features

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

    def _found(self, value: Any, name: str, when: str) -> Any:
        """Return a result of the fit; AttributeError if the fit has none."""
        if value is None:
            raise AttributeError(f"{name!r} of {type(self).__name__} is only there after {when}.")
        return value

    def _view(self, temperature: float | str = 1.0, method: str = "") -> tuple[LDAState, Tempering]:
        """The fit at this moment, for a method that reads it, and the tempering it asks for."""
        check_is_fitted(self)
        state: LDAState = self._fitted()
        with state.lock:
            owner = f"{type(self).__name__}.{method}"
            return state.view(), prediction_tempering(state, temperature, owner)

    def _check_X(self, X: Any, method: str, state: LDAState) -> sparse.csr_matrix:
        """X as a canonical CSR matrix of the dtype of a fit."""
        X = check_words(self, X, method, dtype=state.model.dtype)
        return same_features(self, X, state.model.n_features)

    def _fit(self, X: Any, y: Any, keep_gamma: bool = False, resume: Any = None) -> NDArray | None:
        """Fit from every start and take the best; return gamma if it is to be kept."""
        under_way = self._fit_under_way(X, y)
        with writing(self), unchanged_on_error(self) as commit, under_way as callbacks:
            columns = shallow(self)  # which other threads do not see
            X = check_words(columns, X, "fit", reset=True)
            best = fit_best(
                Fingerprint(self, X),
                vars(self),
                X,
                keep_gamma=keep_gamma,
                n_threads=n_threads(self.n_jobs),
                callback=callbacks,
                resume=resume,
                follow=partial(setattr, self, "_progress"),
                adopt=lambda state: self._show(columns, _state=state),
                commit=commit,
            )
        return best.evaluation.gamma

    def _check_parameters(self) -> None:
        """Check parameters; for `partial_fit` scikit-learn does so only at the first call."""
        constraints: dict[str, Any] = self._parameter_constraints
        validate_parameter_constraints(constraints, vars(self), type(self).__name__)

    def _resolved(self, n_topics: int | None = None) -> Settings:
        """The settings for a stream of documents, by default of `n_components` topics."""
        # not get_params, which looks the signature up at every call of partial_fit
        given = vars(self) if n_topics is None else vars(self) | {"n_components": n_topics}
        return resolve(given, int(min(float(self.total_samples), 2**53)))

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
