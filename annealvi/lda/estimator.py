"""TemperedLDA: the interface of scikit-learn over :mod:`annealvi.models.lda`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from annealvi._validation import n_threads, unchanged_on_error
from annealvi.inference import Monitor, fit_starts
from annealvi.lda.defaults import CONSTRAINTS
from annealvi.lda.fit import LDARun, generators, plan_fit, prepare_stream, stream
from annealvi.lda.fitted import FittedLDA
from annealvi.lda.state import LDAState
from annealvi.temperature import Temperature


class TemperedLDA(FittedLDA):
    r"""Latent Dirichlet allocation by annealed variational inference.

    A drop-in for :class:`sklearn.decomposition.LatentDirichletAllocation`: every
    parameter, method and attribute of that class means the same here.  Parameters that are
    left open, None or ``"auto"``, follow a recipe that depends on the corpus: topics start
    from documents far from one another, the likelihood is tempered,
    :math:`p(w \mid \theta, \beta)^{1/T}`, T falls to 1 in the course of the fit, and a
    document's step takes :math:`E[\beta]` for :math:`\beta`.  It finds better topics than the
    mean field and nearly the same ones from every seed; docs/defaults.md has the evidence.
    With ``preset="sklearn"`` they are scikit-learn's defaults, and so are the numbers, several
    times faster.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.

    doc_topic_prior : float, array-like of shape (n_components,) or "learn", default=None
        Prior :math:`\alpha` of a document's topics, one number or one for each topic;
        None means the preset's: min(max(0.1, 1 / n_components), 3 / n_components), or
        1 / n_components under ``preset="sklearn"``.  ``"learn"`` starts there and, once T is
        at most 1.1 (learned in a hot fit it runs away), moves one number for each topic
        towards Minka's fixed point (2000, Eq. 55) with the step size of the topics, within
        a hundredth and a hundred times the first of these numbers; under a
        :class:`LocalVariational` temperature in the last phase of `fit` alone.  On four
        corpora it made from -.003 to +.002 of held-out likelihood a word, and no coherence.

    topic_word_prior : float, array-like of shape (n_features,) or \
            (n_components, n_features), or "learn", default=None
        Prior :math:`\eta` of a topic's words: one number, one for each word, or one for
        each topic and word (seed words have a larger one); None as above.  ``"learn"``
        starts there and moves one number, when and as `doc_topic_prior` moves, towards the
        maximum of the topics' part of the objective, within a tenth and ten times the first
        of the numbers above.  Under ``topic_estimate="map"`` that part has no maximum inside
        for topics of few words, and the lower limit is where it ends: from .009 of held-out
        likelihood a word lost to .006 gained.  Under ``"variational"`` it made .001 at most,
        and gained .02 to .04 with ``preset="sklearn"``, whose :math:`\eta` is small.

    learning_method : {"auto", "batch", "online"}, default="auto"
        Whether a step of `fit` takes all documents or a minibatch.  ``"auto"`` is online
        where there is more than one minibatch, and batch under ``preset="sklearn"``.

    learning_decay : float, default=None
        :math:`\kappa` in the online step size :math:`\rho_t = (\tau + t)^{-\kappa}`.  If
        neither this nor `learning_offset` is given, the steps of `fit` fall linearly,
        :math:`\rho_t = (2 F / S) (1 - (t - 1/2) / S)` in a fit of S steps, with
        :math:`F = 50 K^{-0.3}`, at most 0.2 and at least a twentieth of :math:`2 F / S`: a
        longer fit makes the same way with less noise.  Where one of them is missing (in
        `partial_fit`, under ``preset="sklearn"``) it is 0.7.

    learning_offset : float, default=None
        :math:`\tau` >= 1 in the same; where it is missing, 10.

    max_iter : int, default=None
        Passes of `fit` over the D documents; None means :math:`110 D^{-1/4}`, between 2 and
        40, or 10 under ``preset="sklearn"``.  See `validation_fraction` for what it means
        there.

    batch_size : int, default=None
        Documents a minibatch; None means :math:`5 \sqrt{D}`, between 100 and 1000, and up to a
        quarter more where few documents would be left over, D being `total_samples` in
        `partial_fit`, or 128 under ``preset="sklearn"``.

    evaluate_every : int, default=-1
        Evaluate the training perplexity every so many passes of `fit`, and stop when
        it changes by less than `perp_tol`.  Not at all if zero or negative.  While T is
        still falling, values are recorded but do not stop the fit; by default T falls to the
        last step.

    total_samples : int, default=1e6
        Documents that a call of `partial_fit` is a sample of.

    perp_tol : float, default=0.1
        See `evaluate_every`.

    mean_change_tol : float, default=None
        The local step of a document stops when its mean absolute change of
        :math:`\gamma` falls below this: 1e-3 under ``preset="sklearn"``.

    token_change_tol : float, default=None
        If given, takes the place of `mean_change_tol`: a document stops when
        :math:`\sum_k |\Delta\gamma_{dk}|`, to which a word that changes topic adds 2, falls
        below this times its number of words.  It means the same for every `n_components`; a
        mean over topics is a looser test the more there are.  0.01 where neither is given.

    max_doc_update_iter : int, default=None
        Most iterations of a document's local step; None means 30 in training and 100
        afterwards, or 100 throughout under ``preset="sklearn"``.

    n_jobs : int, default=None
        Threads.  None means 1 unless in a :obj:`joblib.parallel_backend` context, -1 means
        all processors.  Results are bit-identical for every number.  A forked process
        may use threads too, whatever its parent did before.

    verbose : int, default=0
        Print a line after each pass.

    random_state : int, RandomState instance or None, default=None
        Seed of the starting point (and, under ``document_init="random"``, of each step).

    temperature : float, {"auto", "annealed", "variational", "local"} or Temperature, \
            default="auto"
        How hot the fit runs: a number T >= 1 (1 is plain variational inference); ``"auto"``,
        ``Annealed("auto", length=1.0)``, which starts above the critical temperature of the
        corpus and cools over the whole fit, or 1 under ``preset="sklearn"``; ``"annealed"``,
        :class:`Annealed` with its own defaults, over the first third of the fit;
        ``"variational"``, a temperature learned from the data;
        ``"local"``, one learned for each document (in a stream of `partial_fit` both cool at
        the pace that `total_samples` sets); or an object with parameters of its own
        (:class:`Fixed`, :class:`Annealed`, :class:`Variational`,
        :class:`LocalVariational`), which a grid search reaches as ``temperature__start``.

    init : {"auto", "random", "documents", "kmeans++"} or array-like of shape \
            (n_components, n_features), default="auto"
        Start of `components_`: Gamma(100, 0.01) draws; `topic_word_prior` plus 5 times
        the counts of 5 random documents a topic; 1 plus 5 times the counts of 5 similar
        documents, far from those of other topics (k-means++ on tf-idf, in `partial_fit` of
        the first portion); or an array of topics.  ``"auto"`` is ``"kmeans++"``, or
        ``"random"`` under ``preset="sklearn"``.

    document_init : {"auto", "random", "warm", "constant"}, default="auto"
        Start of each document's :math:`\gamma` in training: ``"random"`` is
        scikit-learn's (fresh draws each time, an eps added to the normaliser of
        :math:`\phi`), ``"constant"`` ones, ``"warm"`` the last pass's.  From a warm start
        the bound of a batch fit never falls and iterations are saved, but documents stay
        with the topics they chose while the topics meant little: it is for fits that
        start from good topics (``init``).  ``"auto"`` is ``"random"`` under
        ``preset="sklearn"`` as long as temperature, init and topic estimate are
        scikit-learn's, else ``"constant"``.  `partial_fit` keeps
        no documents, so ``"warm"`` is ``"constant"`` there.

    n_init : int, default=1
        Starts of `fit`; what it keeps is the one with the lowest `bound_` or, with
        `validation_fraction`, the highest `validation_score_`.  The first is the one that
        ``n_init=1`` has.  Up to `n_jobs` of them run side by side, each in one thread; in turn
        where there is a callback.

    validation_fraction : float, default=None
        If given, this share of the documents, drawn at random, is held out of `fit` and
        scored after each pass; the topics of the highest score are kept, whatever T they were
        found at.  With ``max_iter=None``, T falls over the passes that a fit without
        validation makes, and the fit goes on at T = 1 while the score improves, to 5 times as
        many at most.  A given `max_iter` is the budget, and a `temperature` left open then
        falls over as many passes as before, or over `max_iter` where that is fewer.

        The score is that of :func:`annealvi.metrics.document_completion`, log-likelihood a
        word of one half of each document's tokens given the other.  Where tokens cannot be
        split, because counts are not integers, no document has two or there are more than
        2e7, it is the documents' part of the bound, in nats a word.

    patience : int, default=3
        `fit` stops when the validation score has not gained 0.001 nats a word in so many
        passes.  While T is still falling, scores are recorded but do not stop the fit.

    topic_estimate : {"auto", "map", "variational"}, default="auto"
        What a document's step takes for :math:`\log\beta`: ``"variational"`` is the faithful
        mean field, :math:`E[\log\beta]`; ``"map"`` takes topics for a point,
        :math:`\log E[\beta]`, which is variational EM under the prior Dir(eta + 1).
        ``"auto"`` is ``"map"``, or ``"variational"`` under ``preset="sklearn"``.  The two have
        objectives of their own: `score`, `perplexity` and `bound_` of one cannot be compared
        with those of the other, :func:`annealvi.metrics.document_completion` can.

    preset : {"annealvi", "sklearn"}, default="annealvi"
        What parameters stand for that are left open, None or ``"auto"``: what does well on
        many corpora, or scikit-learn's defaults, whose numbers they then give.

    callback : callable, default=None
        Called as ``callback(estimator, monitor)`` after each step; the estimator can be
        used as it then is.  ``monitor`` has ``step``, ``passes``,
        ``temperature``, ``seconds``, and ``record(name=value)``, which writes a value
        into `history_`.  Raise ``StopIteration`` to end the fit, further starts included.

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
        Perplexity after `fit` of all documents that it was given, those held out too.

    validation_score_ : float
        Score of the held-out documents, in nats a word, after `fit` with
        `validation_fraction`.

    init_scores_ : ndarray of shape (n_init,)
        `validation_score_` or, without one, `bound_` of each start of `fit`; fewer if the
        callback ended it.

    settings_ : dict
        What the parameters of the last fit were, with values for those left open (None where
        no value would say the same), at the last `fit` or the first `partial_fit`: another
        estimator of the same `preset`, without validation, makes the same fit with them.

    n_batch_iter_ : int
        One more than the steps done.

    n_iter_ : int
        Passes done by `fit`, without the one that stopped it; with `validation_fraction`,
        those that the topics kept have had.

    doc_topic_prior_, topic_word_prior_ : float or ndarray
        The priors in use, as far as they are learned; they may be assigned to, and are then
        learned from there (a `topic_word_prior_` of many numbers stays).

    random_state_ : RandomState
        The generator of the fit that was kept.

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
        `document_temperatures` of all documents that `fit` was given, where it had a
        :class:`LocalVariational` temperature.

    history_ : dict of str to ndarray
        Records of the fit, one a pass or wherever the callback recorded something:
        ``pass``, ``step``, ``temperature``, ``seconds`` (spent in steps), and where
        evaluated ``elbo`` (at T = 1, comparable between methods), ``annealed_elbo`` (the
        objective at the last step's T, which a batch fit from ``document_init="warm"``
        never lowers while T stays), ``tempered_elbo`` (Eq. 5 of Mandt et al. 2016, while a
        :class:`Variational` temperature learns) and ``perplexity``, of the documents that are
        fitted; ``validation``; NaN elsewhere.  `partial_fit` adds a record a call.

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
    >>> lda = TemperedLDA(n_components=20, random_state=0)
    >>> lda.fit_transform(abstracts.data).shape
    (3000, 20)
    """

    _parameter_constraints: ClassVar[dict] = CONSTRAINTS

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: float | ArrayLike | Literal["learn"] | None = None,
        topic_word_prior: float | ArrayLike | Literal["learn"] | None = None,
        learning_method: Literal["auto", "batch", "online"] = "auto",
        learning_decay: float | None = None,
        learning_offset: float | None = None,
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
        n_init: int = 1,
        validation_fraction: float | None = None,
        patience: int = 3,
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
        self.n_init = n_init
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.callback = callback

    # ----------------------------------------------------------------- fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn topics from documents.

        After a KeyboardInterrupt, which is raised again, the estimator is fitted with
        what it has: the best start of those that have ended or else the topics as they are,
        and `partial_fit` would go on where that was stopped, cooling included.

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
            If there is a stopping test (`evaluate_every`, `validation_fraction`), and
            `max_iter` ended a fit that was still improving.
        """
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more portion of documents, in minibatches of `batch_size`.

        How long the whole fit will be is not known here, so it is annealed only where
        the temperature is given in passes, ``Annealed(passes=...)``, counted over
        `total_samples` documents; otherwise ``"auto"`` and ``"annealed"`` mean T = 1.  With
        ``Annealed("auto", passes=...)`` the first portion says how hot it starts, if it has
        100 documents; it starts at T = 3.7 otherwise.  A learned
        temperature goes on from call to call, at the pace of a fit of one pass over
        `total_samples` documents, and has no last phase at T = 1.  `n_init`,
        `validation_fraction` and `patience` are of `fit` alone.

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
        settings, threads = self._resolved(), n_threads(self.n_jobs)
        first = not self.__sklearn_is_fitted__()
        with unchanged_on_error(self):
            X = self._check_X(X, "partial_fit", reset=first)
            if first:
                rng, owner = check_random_state(self.random_state), type(self).__name__
                state = LDAState.begin(owner, X, self.n_components, settings, rng, threads)
            else:
                state = self._state
            wanted = self._wanted_temperature(settings)
            prepare_stream(state, X, settings, self.total_samples, wanted, threads)
            self._state = state
        state.forget_results()

        def on_step() -> None:
            state.after_step()
            if self.callback is not None:
                self.callback(self, state.monitor)
                state.after_callback()

        stream(state, X, settings, self.total_samples, on_step)
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
        return self._shares(gamma, normalize)

    # ----------------------------------------------------------------- details

    def _fit(self, X: Any, keep_topics: bool = False) -> NDArray | None:
        """Fit from every start and take the best; return gamma if it is to be kept."""
        with unchanged_on_error(self) as keep:
            X = self._check_X(X, "fit", reset=True)
            rngs, rng = generators(self.random_state, int(self.n_init))
            threads = n_threads(self.n_jobs)
            n_workers = 1 if self.callback is not None else min(threads, len(rngs))
            task = plan_fit(
                type(self).__name__,
                self.get_params(deep=False),
                X,
                rng,
                keep_topics=keep_topics,
                n_threads=threads if n_workers == 1 else 1,
                callback=None if self.callback is None else partial(self.callback, self),
            )

            def take(run: LDARun) -> None:
                self._state = run.state

            def salvage(run: LDARun) -> None:
                take(run)
                keep()

            best, scores = fit_starts(
                [partial(LDARun, task, number, own) for number, own in enumerate(rngs)],
                n_workers=n_workers,
                salvage=salvage,
                on_begin=None if self.callback is None else take,
            )
            take(best)
            keep()
        # past the method and what scikit-learn wraps it in
        best.evaluation.warn(stacklevel=4 + keep_topics)
        best.conclude(scores, threads)
        return best.evaluation.gamma
