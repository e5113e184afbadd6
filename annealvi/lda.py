"""TemperedLDA: scikit-learn's face over :mod:`annealvi.models.lda`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from annealvi._evaluation import Evaluation
from annealvi._fitted_lda import FittedLDA
from annealvi._recipe import PRESETS, Settings, settle
from annealvi._validation import check_prior, check_topics, n_threads, unchanged_on_error
from annealvi.inference import Monitor, RobbinsMonro, full_step, optimise
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
    "annealed": Annealed(),
    "variational": Variational(),
    "local": LocalVariational(),
}


class TemperedLDA(FittedLDA):
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

    token_change_tol : float, default=None
        If given, takes the place of `mean_change_tol`: a document stops when
        :math:`\sum_k |\Delta\gamma_{dk}|`, to which a word that changes topic adds 2, falls
        below this times its number of words.  It means the same for every `n_components`; a
        mean over topics is a looser test the more there are.

    max_doc_update_iter : int, default=100
        Most iterations of a document's local step.

    n_jobs : int, default=None
        Threads.  None means 1 unless in a :obj:`joblib.parallel_backend` context, -1 means
        all processors.  Results are bit-identical for every number.  A forked process
        may use threads too, whatever its parent did before.

    verbose : int, default=0
        Print a line after each pass.

    random_state : int, RandomState instance or None, default=None
        Seed of the starting point (and, under ``document_init="random"``, of each step).

    temperature : float, {"annealed", "variational", "local"} or Temperature, \
            default="annealed"
        How hot the fit runs: a number T >= 1 (1 is plain variational inference),
        ``"annealed"``; ``"variational"``, a temperature learned from the data;
        ``"local"``, one learned for each document (in a stream of `partial_fit` both cool at
        the pace that `total_samples` sets); or an object with parameters of its own
        (:class:`Fixed`, :class:`Annealed`, :class:`Variational`,
        :class:`LocalVariational`), which a grid search reaches as ``temperature__start``.

    init : {"random", "documents"} or array-like of shape (n_components, n_features), \
            default="random"
        Start of `components_`: Gamma(100, 0.01) draws, `topic_word_prior` plus 5 times
        the counts of 5 random documents a topic, or an array of topics.

    document_init : {"auto", "random", "warm", "constant"}, default="auto"
        Start of each document's :math:`\gamma` in training: ``"random"`` is
        scikit-learn's (fresh draws each time, an eps added to the normaliser of
        :math:`\phi`), ``"constant"`` ones, ``"warm"`` the last pass's.  From a warm start
        the bound of a batch fit never falls and iterations are saved, but documents stay
        with the topics they chose while the topics meant little: it is for fits that
        start from good topics (``init``).  ``"auto"`` is ``"random"`` where
        ``temperature=1`` and ``init="random"``, else ``"constant"``.  `partial_fit` keeps
        no documents, so ``"warm"`` is ``"constant"`` there.

    topic_estimate : {"auto", "map", "variational"}, default="auto"
        What a document's step takes for :math:`\log\beta`: ``"variational"`` is the faithful
        mean field, :math:`E[\log\beta]`; ``"map"`` takes topics for a point,
        :math:`\log E[\beta]`, which is variational EM under the prior Dir(eta + 1).
        ``"auto"`` is what `preset` says.

    preset : {"annealvi", "sklearn"}, default="annealvi"
        What parameters stand for that are left open, None or ``"auto"``: what does well on
        many corpora, or scikit-learn's defaults, whose numbers they then give.

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
        model, or a copy where words have steps to make up for (after an online step of
        `partial_fit`); an array from before a step may stay as it was.

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
        T of each step; where documents have their own, one over their mean 1/T.

    temperature_posterior_ : ndarray of shape (M,)
        q(y) over the grid of a :class:`Variational` temperature, as last learned.

    temperature_posterior_path_ : ndarray of shape (n_learning_steps, M)
        The same after each step that learned, float32; in a stream of `partial_fit` it grows
        by M numbers a step.

    document_temperatures_ : ndarray of shape (n_samples,)
        `document_temperatures` of the training documents, after `fit` with a
        :class:`LocalVariational` temperature.

    history_ : dict of str to ndarray
        Records of the fit, one a pass or wherever the callback recorded something:
        ``pass``, ``step``, ``temperature``, ``seconds`` (spent in steps), and where
        evaluated ``elbo`` (at T = 1, comparable between methods), ``annealed_elbo`` (the
        objective at the last step's T, which a batch fit from ``document_init="warm"``
        never lowers while T stays), ``tempered_elbo`` (Eq. 5 of Mandt et al. 2016, while a
        :class:`Variational` temperature learns) and ``perplexity``; NaN elsewhere.
        `partial_fit` adds a record a call.

    n_features_in_ : int
        Number of words.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the words, where X has string column names.

    See Also
    --------
    annealvi.metrics.document_completion : Held-out likelihood a word.
    annealvi.metrics.topic_coherence : How often top words occur together.
    annealvi.metrics.topic_stability : Whether another fit finds the same topics.

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
        "learning_method": [StrOptions({"auto", "batch", "online"})],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "learning_offset": [Interval(Real, 1.0, None, closed="left")],
        "max_iter": [None, Interval(Integral, 0, None, closed="left")],
        "batch_size": [None, Interval(Integral, 0, None, closed="neither")],
        "evaluate_every": [Interval(Integral, None, None, closed="neither")],
        "total_samples": [Interval(Real, 0, None, closed="neither")],
        "perp_tol": [Interval(Real, 0, None, closed="left")],
        "mean_change_tol": [None, Interval(Real, 0, None, closed="left")],
        "token_change_tol": [None, Interval(Real, 0, None, closed="left")],
        "max_doc_update_iter": [None, Interval(Integral, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "temperature": "no_validation",  # as_temperature has the message
        "topic_estimate": [StrOptions({"auto", "map", "variational"})],
        "init": [StrOptions({"auto", "random", "documents", "kmeans++"}), "array-like"],
        "document_init": [StrOptions({"auto", "random", "warm", "constant"})],
        "preset": [StrOptions(set(PRESETS))],
        "callback": [None, callable],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: float | ArrayLike | None = None,
        topic_word_prior: float | ArrayLike | None = None,
        learning_method: Literal["auto", "batch", "online"] = "auto",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        max_iter: int | None = None,
        batch_size: int | None = None,
        evaluate_every: int = -1,
        total_samples: float = 1e6,
        perp_tol: float = 1e-1,
        mean_change_tol: float | None = None,
        max_doc_update_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        temperature: float | str | Temperature = "auto",
        token_change_tol: float | None = None,
        topic_estimate: Literal["auto", "map", "variational"] = "auto",
        init: str | ArrayLike = "auto",
        document_init: Literal["auto", "random", "warm", "constant"] = "auto",
        preset: Literal["annealvi", "sklearn"] = "annealvi",
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
        self.token_change_tol = token_change_tol
        self.topic_estimate = topic_estimate
        self.init = init
        self.document_init = document_init
        self.preset = preset
        self.callback = callback

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
        self._fit(X)
        return self

    def _fit(self, X: Any, keep_topics: bool = False) -> NDArray | None:
        """Fit; return gamma of the documents if it is to be kept."""
        with unchanged_on_error(self):
            X = self._check_X(X, "fit", reset=True)
            n_samples = X.shape[0]
            settings = settle(vars(self), n_samples)
            batch = settings.learning_method == "batch"
            batch_size = n_samples if batch else min(int(settings.batch_size), n_samples)
            n_passes = int(settings.max_iter)
            n_steps = n_passes * -(-n_samples // batch_size)
            step_size: Callable[[int], float] = full_step
            if not batch:
                step_size = RobbinsMonro(self.learning_decay, self.learning_offset)
            self._start(X, settings)
            self._model.n_documents = n_samples
            self._model.n_words = float(X.sum(dtype=np.float64))
            temperature = self._plan(n_steps, n_samples / batch_size)
            if not batch:
                self._check_steps(temperature, step_size, 0, n_steps)
        self._model.start_documents(n_samples)
        local = isinstance(temperature, LocalVariational)
        evaluation = Evaluation(self, X, n_passes, keep_topics or local)
        try:
            optimise(
                self._model,
                X,
                temperature,
                self._monitor,
                n_samples=n_samples,
                batch_size=batch_size,
                n_passes=n_passes,
                population=n_samples,
                step_size=step_size,
                on_step=self._after_step,
                after_pass=evaluation.after_pass,
            )
        finally:
            self._finish()
            self._model.settle()
        if evaluation.budget_ended:
            advice = (
                "Increase max_iter or perp_tol."
                if evaluation.compared
                else "The temperature was falling until the last evaluations, which are compared "
                "at T = 1 only: increase max_iter, or let it fall over a part of the fit, such as "
                "with temperature='annealed'."
            )
            warnings.warn(
                f"The training perplexity had not converged to perp_tol={self.perp_tol!r} after "
                f"max_iter={n_passes} passes. {advice}",
                ConvergenceWarning,
                # past the method and what scikit-learn wraps it in
                stacklevel=4 + keep_topics,
            )
        self.bound_ = evaluation.final()
        self._sample = self._some(X)
        if local:
            self.document_temperatures_ = self._document_temperatures(X, evaluation.gamma)
        return evaluation.gamma

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more portion of documents, in minibatches of `batch_size`.

        How long the whole fit will be is not known here, so it is annealed only where
        the temperature is given in passes, ``Annealed(passes=...)``, counted over
        `total_samples` documents; otherwise ``"annealed"`` means T = 1.  A learned
        temperature goes on from call to call, at the pace of a fit of one pass over
        `total_samples` documents, and has no last phase at T = 1.

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
        settings = self._settle()
        batch_size = int(settings.batch_size)
        step_size = RobbinsMonro(self.learning_decay, self.learning_offset)
        with unchanged_on_error(self):
            X = self._check_X(X, "partial_fit", reset=first)
            if first:
                self._start(X, settings)
            self._model.n_documents, self._model.n_words = self.total_samples, None
            self._monitor.step = done = self.n_batch_iter_ - 1
            if first or self._wanted_temperature() != self._planned_for:
                self._plan(None, self.total_samples / batch_size)
            self._check_steps(self._temperature, step_size, done, -(-X.shape[0] // batch_size))
            self._resume(settings)
        for name in ("bound_", "document_temperatures_"):
            self.__dict__.pop(name, None)
        self._sample = None
        try:
            optimise(
                self._model,
                X,
                self._temperature,
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
        """
        gamma = self._fit(X, keep_topics=True)
        assert gamma is not None
        return self._topics(gamma, normalize)

    # ----------------------------------------------------------------- details

    def _settle(self, n_topics: int | None = None) -> Settings:
        """The parameters for a stream of documents, by default of `n_components` topics."""
        given = vars(self) if n_topics is None else vars(self) | {"n_components": n_topics}
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

    def _start(self, X: sparse.csr_matrix, settings: Settings) -> None:
        """A new model, its topics at their starting point."""
        n_samples, n_features = X.shape
        model, alpha, eta = self._new_model(self.n_components, n_features, X.dtype, settings)
        rng = check_random_state(self.random_state)
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
        for name in ("bound_", "document_temperatures_"):
            self.__dict__.pop(name, None)
        self._sample = None
        self.random_state_ = rng
        self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
        self._model, self._monitor = model, Monitor()
        self._priors_in_use = self._priors_tempered = None
        self.n_iter_, self.n_batch_iter_ = 0, 1
        self._resume(settings)

    def _resume(self, settings: Settings) -> None:
        """Put parameters and attributes as they are now into the model."""
        self._model.options = settings.local_options()
        self._model.topic_estimate = settings.topic_estimate
        self._model.n_threads = n_threads(self.n_jobs)
        self._model.rng = self.random_state_
        self._model.notice_writes()
        self._use_priors()
        priors, before = (self.doc_topic_prior_, self.topic_word_prior_), self._priors_tempered
        if before is not None and not all(map(np.array_equal, priors, before)):
            self._temperature.attach(self._model)  # log C was of other priors
        self._priors_tempered = priors

    def _check_steps(
        self,
        temperature: Temperature,
        step_size: Callable[[int], float],
        first: int,
        n_steps: int,
    ) -> None:
        """An online step of the posterior form subtracts if rho T reaches 1."""
        for step in range(first, first + n_steps):
            b, form = temperature.tempering(step)[:2]
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
