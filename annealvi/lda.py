"""TemperedLDA: scikit-learn's face over :mod:`annealvi.models.lda`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from annealvi._evaluation import Evaluation
from annealvi._validation import FLOATS, canonical_csr, check_prior, check_topics, n_threads
from annealvi.inference import Monitor, RobbinsMonro, full_step, optimise
from annealvi.models.lda import LDA, LocalOptions
from annealvi.temperature import Fixed, Temperature, as_temperature


class TemperedLDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Latent Dirichlet allocation by annealed variational inference.

    A drop-in for :class:`sklearn.decomposition.LatentDirichletAllocation`: every
    parameter, method and attribute of that class means the same here, and with
    ``temperature=1`` it computes the same numbers, several times faster.  By default
    the likelihood is tempered, :math:`p(w \mid \theta, \beta)^{1/T}`, and T falls to 1
    over the first third of the fit, which leads past poor local optima.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.

    doc_topic_prior : float or array-like of shape (n_components,), default=None
        Prior :math:`\alpha` of a document's topics, one number or one for each topic;
        None means 1 / n_components.

    topic_word_prior : float or array-like of shape (n_features,) or \
            (n_components, n_features), default=None
        Prior :math:`\eta` of a topic's words: one number, one for each word, or one for
        each topic and word (seed words have a larger one); None means 1 / n_components.

    learning_method : {"batch", "online"}, default="batch"
        Whether a step of `fit` takes all documents or a minibatch.

    learning_decay : float, default=0.7
        :math:`\kappa` in the online step size :math:`\rho_t = (\tau + t)^{-\kappa}`.

    learning_offset : float, default=10.0
        :math:`\tau` >= 1 in the same.

    max_iter : int, default=10
        Passes of `fit` over the documents.

    batch_size : int, default=128
        Documents a minibatch.

    evaluate_every : int, default=-1
        Evaluate the training perplexity every so many passes of `fit`, and stop when
        it changes by less than `perp_tol`.  Not at all if zero or negative.  While T is
        still falling, values are recorded but do not stop the fit.

    total_samples : int, default=1e6
        Documents that a call of `partial_fit` is a sample of.

    perp_tol : float, default=0.1
        See `evaluate_every`.

    mean_change_tol : float, default=1e-3
        The local step of a document stops when its mean absolute change of
        :math:`\gamma` falls below this.

    max_doc_update_iter : int, default=100
        Most iterations of a document's local step.

    n_jobs : int, default=None
        Threads.  None means 1 unless in a :obj:`joblib.parallel_backend` context, -1 means
        all processors.  Results are bit-identical for every number.

    verbose : int, default=0
        Print a line after each pass.

    random_state : int, RandomState instance or None, default=None
        Seed of the starting point (and, under ``document_init="random"``, of each step).

    temperature : float, "annealed" or Temperature, default="annealed"
        How hot the fit runs: a number T >= 1 (1 is plain variational inference),
        ``"annealed"``, or a :class:`Fixed` or :class:`Annealed` object with parameters
        of its own, which a grid search reaches as ``temperature__start``.

    init : {"random", "documents"} or array-like of shape (n_components, n_features), \
            default="random"
        Start of `components_`: Gamma(100, 0.01) draws, `topic_word_prior` plus 5 times
        the counts of 5 random documents a topic, or an array of topics.

    document_init : {"auto", "random", "warm", "constant"}, default="auto"
        Start of each document's :math:`\gamma` in training: ``"random"`` is
        scikit-learn's (fresh draws each time, an eps added to the normaliser of
        :math:`\phi`), ``"warm"`` the last pass's, with which the bound of a batch fit
        never falls, ``"constant"`` ones.  ``"auto"`` is ``"random"`` where
        ``temperature=1`` and ``init="random"``, else ``"warm"`` in batch and
        ``"constant"`` online.  `partial_fit` keeps no documents, so ``"warm"`` is
        ``"constant"`` there.

    callback : callable, default=None
        Called as ``callback(estimator, monitor)`` after each step; the estimator can be
        used as it then is.  ``monitor`` has ``step``, ``passes``,
        ``temperature``, ``seconds``, and ``record(name=value)``, which writes a value
        into `history_`.  Raise ``StopIteration`` to end the fit.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`\lambda`, the variational parameters of the topics' words.  Divided by
        its row sums it is E[beta].  Assigning another array, or writing to this one, is
        honoured by `transform`, `score` and `partial_fit`.  The array is a view of the
        model, not a copy.

    exp_dirichlet_component_ : ndarray of shape (n_components, n_features)
        :math:`\exp E[\log\beta]`, worked out of `components_`.

    bound_ : float
        Perplexity of the training documents after `fit`.

    n_batch_iter_ : int
        One more than the steps done.

    n_iter_ : int
        Passes done by `fit`, without the one that stopped it.

    doc_topic_prior_, topic_word_prior_ : float or ndarray
        The priors in use; they may be assigned to.

    random_state_ : RandomState
        The generator of the fit.

    temperature_ : float
        T of the last step.

    temperature_path_ : ndarray of shape (n_steps,)
        T of each step.

    history_ : dict of str to ndarray
        Records of the fit, one a pass or wherever the callback recorded something:
        ``pass``, ``step``, ``temperature``, ``seconds`` (spent in steps), and where
        evaluated ``elbo`` (at T = 1, comparable between methods), ``annealed_elbo`` (the
        objective at the last step's T, which a batch fit from ``document_init="warm"``
        never lowers while T stays) and ``perplexity``; NaN elsewhere.  `partial_fit` adds
        a record a call.

    n_features_in_ : int
        Number of words.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the words, where X has string column names.

    See Also
    --------
    annealvi.metrics.document_completion : Held-out likelihood a word.

    References
    ----------
    Hoffman, Blei, Wang, Paisley (2013), *Stochastic Variational Inference*, JMLR 14.
    Abrol, Mandt, Ranganath, Blei (2014), *Deterministic Annealing for Stochastic
    Variational Inference*.
    Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> abstracts = load_arxiv_abstracts()
    >>> lda = TemperedLDA(n_components=20, learning_method="online", random_state=0)
    >>> lda.fit_transform(abstracts.data).shape
    (3000, 20)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 0, None, closed="neither")],
        "doc_topic_prior": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "topic_word_prior": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "learning_method": [StrOptions({"batch", "online"})],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "learning_offset": [Interval(Real, 1.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 0, None, closed="neither")],
        "evaluate_every": [Interval(Integral, None, None, closed="neither")],
        "total_samples": [Interval(Real, 0, None, closed="neither")],
        "perp_tol": [Interval(Real, 0, None, closed="left")],
        "mean_change_tol": [Interval(Real, 0, None, closed="left")],
        "max_doc_update_iter": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "temperature": "no_validation",  # as_temperature has the message
        "init": [StrOptions({"random", "documents"}), "array-like"],
        "document_init": [StrOptions({"auto", "random", "warm", "constant"})],
        "callback": [None, callable],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: float | ArrayLike | None = None,
        topic_word_prior: float | ArrayLike | None = None,
        learning_method: Literal["batch", "online"] = "batch",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        max_iter: int = 10,
        batch_size: int = 128,
        evaluate_every: int = -1,
        total_samples: float = 1e6,
        perp_tol: float = 1e-1,
        mean_change_tol: float = 1e-3,
        max_doc_update_iter: int = 100,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        temperature: float | str | Temperature = "annealed",
        init: str | ArrayLike = "random",
        document_init: Literal["auto", "random", "warm", "constant"] = "auto",
        callback: Callable[[Any, Monitor], None] | None = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.evaluate_every = evaluate_every
        self.total_samples = total_samples
        self.perp_tol = perp_tol
        self.mean_change_tol = mean_change_tol
        self.max_doc_update_iter = max_doc_update_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.temperature = temperature
        self.init = init
        self.document_init = document_init
        self.callback = callback

    # set by `fit`, `partial_fit` or an assignment to `components_`
    _model: LDA
    _monitor: Monitor
    _temperature: Temperature
    _planned_for: Temperature  # what _temperature is the plan of
    _priors_in_use: tuple[Any, Any] | None
    n_batch_iter_: int

    # ----------------------------------------------------------------- fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn topics from documents.

        After a KeyboardInterrupt, which is raised again, the estimator is fitted with
        what it has, and `partial_fit` would go on where the fit was stopped, cooling
        included.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts of the documents; non-negative, not necessarily integers.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        ValueError
            If X or a parameter is out of range; the estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            If there is a stopping test (`evaluate_every`) and `max_iter` came first.
        """
        with self._unchanged_on_error():
            X = self._check_X(X, "fit", reset=True)
            n_samples = X.shape[0]
            batch = self.learning_method == "batch"
            batch_size = n_samples if batch else min(int(self.batch_size), n_samples)
            n_steps = self.max_iter * -(-n_samples // batch_size)
            temperature = self._wanted_temperature().plan(n_steps, n_samples / batch_size)
            step_size: Callable[[int], float] = full_step
            if not batch:
                step_size = RobbinsMonro(self.learning_decay, self.learning_offset)
                self._check_steps(temperature, step_size, 0, n_steps)
            self._start(X, temperature)
        self._model.start_documents(n_samples)
        evaluation = Evaluation(self, X)
        try:
            optimise(
                self._model,
                X,
                temperature,
                self._monitor,
                n_samples=n_samples,
                batch_size=batch_size,
                n_passes=int(self.max_iter),
                population=n_samples,
                step_size=step_size,
                on_step=self._after_step,
                after_pass=evaluation.after_pass,
            )
        finally:
            self._finish()
        if evaluation.budget_ended:
            warnings.warn(
                f"The training perplexity had not converged to perp_tol={self.perp_tol!r} after "
                f"max_iter={self.max_iter} passes. Increase max_iter or perp_tol.",
                ConvergenceWarning,
                stacklevel=3,  # past scikit-learn's fit context
            )
        self.bound_ = evaluation.final_perplexity()
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more portion of documents, in minibatches of `batch_size`.

        How long the whole fit will be is not known here, so it is annealed only where
        the temperature is given in passes, ``Annealed(passes=...)``, counted over
        `total_samples` documents; otherwise ``"annealed"`` means T = 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts of the documents.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        ValueError
            If X or a parameter is out of range; the estimator stays as it was.
        """
        first = not self.__sklearn_is_fitted__()
        batch_size = int(self.batch_size)
        step_size = RobbinsMonro(self.learning_decay, self.learning_offset)
        with self._unchanged_on_error():
            X = self._check_X(X, "partial_fit", reset=first)
            temperature = self._wanted_temperature()
            if first or temperature != self._planned_for:
                planned = temperature.plan(None, self.total_samples / batch_size)
            else:
                planned = self._temperature
            done = 0 if first else self.n_batch_iter_ - 1
            self._check_steps(planned, step_size, done, -(-X.shape[0] // batch_size))
            if first:
                self._start(X, planned)
            self._temperature, self._planned_for = planned, temperature
            self._monitor.step = done
            self._resume()
        self.__dict__.pop("bound_", None)
        try:
            optimise(
                self._model,
                X,
                planned,
                self._monitor,
                n_samples=X.shape[0],
                batch_size=batch_size,
                n_passes=1,
                population=self.total_samples,
                step_size=step_size,
                on_step=self._after_step,
            )
        finally:
            self._finish()
        return self

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
        """
        return self.fit(X, y).transform(X, normalize=normalize)

    # --------------------------------------------------------------- inference

    def transform(self, X: Any, *, normalize: bool = True) -> NDArray:
        """Topics of documents at T = 1.  Each row depends on its document alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        normalize : bool, default=True
            Whether to return E[theta], whose rows sum to 1, or gamma.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        gamma = self._infer(self._check_X(X, "transform"))
        if normalize:
            gamma /= gamma.sum(axis=1)[:, np.newaxis]
        return gamma

    def score(self, X: Any, y: Any = None) -> float:
        """The ELBO of documents at T = 1, in nats, the topics' KL included.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = self._check_X(X, "score")
        return self._bound(X, self._infer(X))

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """exp(-ELBO per word) of documents at T = 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sub_sampling : bool, default=False
            Whether X is a sample of `total_samples` documents.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = self._check_X(X, "perplexity")
        return self._perplexity(X, self._infer(X), sub_sampling)

    def top_words(self, n: int = 10, feature_names: ArrayLike | None = None) -> list[list[Any]]:
        """The n most probable words of each topic, most probable first.

        Parameters
        ----------
        n : int, default=10
        feature_names : array-like of shape (n_features,), default=None
            The words; by default the column names seen in `fit`, or else column numbers.

        Returns
        -------
        list of lists
            One list of words a topic.
        """
        check_is_fitted(self)
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"'n' must be an int in the range [1, inf). Got {n!r} instead.")
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", range(self._model.n_features))
        names = np.asarray(feature_names)
        if names.shape != (self._model.n_features,):
            raise ValueError(
                f"'feature_names' must have one name for each of the {self._model.n_features} "
                f"features. Got shape {names.shape} instead."
            )
        order = np.argsort(-self._model.topics, axis=1, kind="stable")[:, :n]
        return names[order].tolist()

    # -------------------------------------------------------------- attributes

    @property
    def components_(self) -> NDArray:
        model = self._fitted("_model")
        model.exposed = True
        return model.topics

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
        temperature = self._wanted_temperature()
        # another model, so that views of the old one and copies of the estimator keep theirs
        model, alpha, eta = self._new_model(n_topics, n_features, dtype)
        model.set_topics(value)
        if first:
            self.random_state_ = check_random_state(self.random_state)
            self._monitor, self._planned_for = Monitor(), temperature
            self._temperature = temperature.plan(None, self.total_samples / self.batch_size)
            self.n_features_in_, self.n_iter_, self.n_batch_iter_ = n_features, 0, 1
            self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
        elif n_topics != self._model.n_topics:
            self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
        self._model, self._priors_in_use = model, None
        self._resume()

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
        """What only a fitted estimator has; hasattr of an unfitted one must be false."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return vars(self)[name]

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Leave the estimator as it was if the arguments turn out to be wrong."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_X(self, X: Any, method: str, reset: bool = False) -> sparse.csr_matrix:
        """X as a canonical CSR matrix of the fit's dtype."""
        dtype = list(FLOATS) if reset else self._model.dtype
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=dtype)
        check_non_negative(X, f"{type(self).__name__}.{method}")
        return canonical_csr(X) if sparse.issparse(X) else sparse.csr_matrix(X)

    def _wanted_temperature(self) -> Temperature:
        temperature = as_temperature(self.temperature, type(self).__name__)
        temperature.check()
        return temperature

    def _new_model(
        self, n_topics: int, n_features: int, dtype: np.dtype
    ) -> tuple[LDA, float | NDArray, float | NDArray]:
        """A model and the priors it has, from the parameters."""
        alpha = check_prior(
            self.doc_topic_prior,
            "doc_topic_prior",
            type(self).__name__,
            ((n_topics,),),
            dtype,
            default=1.0 / n_topics,
        )
        eta = check_prior(
            self.topic_word_prior,
            "topic_word_prior",
            type(self).__name__,
            ((n_features,), (n_topics, n_features)),
            dtype,
            default=1.0 / n_topics,
        )
        return LDA(n_topics, n_features, alpha=alpha, eta=eta, dtype=dtype), alpha, eta

    def _start(self, X: sparse.csr_matrix, temperature: Temperature) -> None:
        """A new model, its topics at their starting point."""
        n_samples, n_features = X.shape
        model, alpha, eta = self._new_model(self.n_components, n_features, X.dtype)
        rng = check_random_state(self.random_state)
        if isinstance(self.init, str) and self.init == "documents":
            if self.n_components > n_samples:
                raise ValueError(
                    f"n_components={self.n_components} must be at most n_samples={n_samples} "
                    "with init='documents'."
                )
            model.initialize_from_documents(X, rng)
        elif isinstance(self.init, str):
            model.initialize(rng)
        else:
            shape = (self.n_components, n_features)
            owner = type(self).__name__
            model.set_topics(check_topics(self.init, "init", owner, shape, model.dtype))
        self.__dict__.pop("bound_", None)
        self.random_state_ = rng
        self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
        self._model, self._monitor, self._priors_in_use = model, Monitor(), None
        self._temperature, self._planned_for = temperature, self._wanted_temperature()
        self.n_iter_, self.n_batch_iter_ = 0, 1
        self._resume()

    def _resume(self) -> None:
        """Put parameters and attributes as they are now into the model."""
        document_init = self.document_init
        if document_init == "auto":
            temperature = self._wanted_temperature()
            untempered = isinstance(temperature, Fixed) and temperature.value == 1
            if untempered and isinstance(self.init, str) and self.init == "random":
                document_init = "random"
            else:
                document_init = "warm" if self.learning_method == "batch" else "constant"
        self._model.options = LocalOptions(
            int(self.max_doc_update_iter), float(self.mean_change_tol), document_init
        )
        self._model.n_threads = n_threads(self.n_jobs)
        self._model.rng = self.random_state_
        self._use_priors()

    def _use_priors(self) -> None:
        """The priors' attributes may have been assigned to."""
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

    def _check_steps(
        self,
        temperature: Temperature,
        step_size: Callable[[int], float],
        first: int,
        n_steps: int,
    ) -> None:
        """An online step of the posterior form subtracts if rho T reaches 1."""
        for step in range(first, first + n_steps):
            b, form = temperature.tempering(step)
            if form == "likelihood":
                return
            rho = step_size(step + 1)
            if b < 1 and rho >= b:
                raise ValueError(
                    "With form='posterior' the step size times the temperature must stay below 1. "
                    f"Got {rho:.4g} * {1 / b:.4g} = {rho / b:.4g} at step {step + 1}: use a lower "
                    f"temperature, a larger learning_offset than {self.learning_offset!r} or a "
                    f"larger learning_decay than {self.learning_decay!r}."
                )
            if temperature.settled(step):
                return

    def _after_step(self) -> None:
        self.n_batch_iter_ = self._monitor.step + 1
        if self.callback is not None:
            self.callback(self, self._monitor)

    def _finish(self) -> None:
        """After the last step, the interrupted one too."""
        self._model.end_fit()
        self.n_batch_iter_ = self._monitor.step + 1
        if self._monitor.temperature_path:
            self._monitor.record()

    def _infer(self, X: sparse.csr_matrix) -> NDArray:
        self._use_priors()
        return self._model.infer(X, n_threads=n_threads(self.n_jobs))

    def _bound(self, X: sparse.csr_matrix, gamma: NDArray, sub_sampling: bool = False) -> float:
        by_document = self._model.document_bound(X, gamma, n_threads=n_threads(self.n_jobs))
        documents = float(np.sum(by_document))
        if sub_sampling:
            documents *= self.total_samples / X.shape[0]
        return documents + self._model.topic_bound()

    def _perplexity(self, X: sparse.csr_matrix, gamma: NDArray, sub_sampling: bool) -> float:
        n_words = X.sum(dtype=np.float64)
        if sub_sampling:
            n_words *= self.total_samples / X.shape[0]
        return float(np.exp(-np.float64(self._bound(X, gamma, sub_sampling)) / n_words))

    def _perplexity_precomp_distr(
        self, X: Any, doc_topic_distr: NDArray | None = None, sub_sampling: bool = False
    ) -> float:
        """Perplexity at a given gamma; scikit-learn's tests and some of its users call it."""
        check_is_fitted(self)
        X = self._check_X(X, "perplexity")
        if doc_topic_distr is None:
            doc_topic_distr = self._infer(X)
        n_samples, n_topics = doc_topic_distr.shape
        if n_samples != X.shape[0]:
            raise ValueError("Number of samples in X and doc_topic_distr do not match.")
        if n_topics != self._model.n_topics:
            raise ValueError("Number of topics does not match.")
        return self._perplexity(X, doc_topic_distr, sub_sampling)
