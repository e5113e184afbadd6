"""TemperedLDA: the interface of scikit-learn over :mod:`annealvi.models.lda`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import _fit_context

from annealvi.inference import Monitor
from annealvi.lda.defaults import CONSTRAINTS
from annealvi.lda.fitted import FittedLDA
from annealvi.temperature import Temperature


class TemperedLDA(FittedLDA):
    r"""Latent Dirichlet allocation by annealed variational inference.

    A drop-in replacement for :class:`sklearn.decomposition.LatentDirichletAllocation`: every
    parameter, method and attribute of that class means the same here.

    **Which parameters matter.**  Usually only `n_components`, `n_jobs` and `random_state`
    need to be set.  After those, look at `max_iter` (how long the fit takes),
    `validation_fraction` (stop when held-out documents stop improving), `n_init` (several
    starts) and `temperature`.  The others seldom need a change.

    Parameters that are left open, None or ``"auto"``, follow a recipe that depends on the
    corpus.  Topics start from documents that are far from one another.  The likelihood is
    tempered, :math:`p(w \mid \theta, \beta)^{1/T}`, and T falls to 1 during the fit.  A
    document's step uses :math:`E[\beta]` in place of :math:`\beta`.  This finds better topics
    than the mean field, and nearly the same ones from every seed; docs/defaults.md has the
    measurements.  With ``preset="sklearn"`` the open parameters have scikit-learn's defaults,
    and the results are the same numbers, several times faster.

    Parameters
    ----------
    The model and its fit, as in scikit-learn

    n_components : int, default=10
        Number of topics K.
    doc_topic_prior : float, array-like of shape (n_components,) or "learn", default=None
        Dirichlet prior :math:`\alpha` of a document's topic proportions: one number, or one
        for each topic.  None means min(max(0.1, 1 / n_components), 3 / n_components), or
        1 / n_components under ``preset="sklearn"``.

        ``"learn"`` starts from that value and learns one number for each topic.  Each step of
        the fit moves them towards Minka's fixed point (2000, Eq. 55) with the step size of
        the topics, but only while T is at most 1.1: at high temperatures the estimate
        diverges.  With a :class:`LocalVariational` temperature they move only in the last
        phase of `fit`.  They stay within a factor of 100 of min(max(0.1, 1/K), 3/K).  The
        gain is small (docs/defaults.md).
    topic_word_prior : float, array-like or "learn", default=None
        Dirichlet prior :math:`\eta` of a topic's words: one number, an array of shape
        (n_features,) or one of shape (n_components, n_features).  With the last of these a
        topic's seed words can have a larger prior.  None means the same numbers as for
        `doc_topic_prior`.

        ``"learn"`` starts there and learns a single number, in the same steps as
        `doc_topic_prior` is learned.  Each step moves it towards the maximum of the topics'
        part of the objective, within a factor of 10 of min(max(0.1, 1/K), 3/K).  Under
        ``topic_estimate="map"`` topics of few words have no such maximum, and the prior ends
        at its lower limit.  The gain is largest under ``preset="sklearn"``, because
        :math:`\eta` is small there (docs/defaults.md).
    learning_method : {"auto", "batch", "online"}, default="auto"
        Whether a step of `fit` uses all documents or a minibatch.  ``"auto"`` is
        ``"online"`` if there is more than one minibatch, and ``"batch"`` under
        ``preset="sklearn"``.
    learning_decay : float, default=None
        :math:`\kappa` in the online step size :math:`\rho_t = (\tau + t)^{-\kappa}`.

        If neither this nor `learning_offset` is given, the step size of `fit` falls linearly
        instead: in a fit of S steps :math:`\rho_t = (2 F / S) (1 - (t - 1/2) / S)`, at most
        0.2 and at least a twentieth of :math:`2 F / S`, with :math:`F = 60 K^{-0.3}`, or
        :math:`100 K^{-0.3}` where data are plenty (see `finish_iter`).  In minibatches of
        B > 4096 it is at most :math:`0.2 \sqrt{B / 4096}`, or 0.8.  In all other cases
        (`learning_offset` given, `partial_fit`, ``preset="sklearn"``) None means 0.7.
    learning_offset : float, default=None
        :math:`\tau` >= 1 in the same formula.  A larger value makes early steps smaller.
        If the formula is used, None means 10.
    max_iter : int, default=None
        Number of passes of `fit` over the D documents.  Lower it for a faster fit.  None
        means :math:`110 D^{-1/4}`, between 2 and 40, or 10 under ``preset="sklearn"``.  With
        `validation_fraction` it is an upper limit, see there.
    finish_iter : int, default=None
        Largest number of passes after these, in batch, which converge the topics at T = 1.
        Their steps are 1.9 times those of batch inference, but for the last of all.  They end
        once a pass moves less than 0.1% of the topics' words; a ConvergenceWarning says if the
        last one moves more than 2%.  None means 12 where data are plenty, otherwise 0.  Data
        are plenty if X has 2.5 words or more for each topic and each word that occurs; with
        fewer, these passes overfit.  None also means 0 in batch, if `max_iter` or
        `validation_fraction` is given, and if no schedule cools the fit.
    batch_size : int, default=None
        Documents in a minibatch.  None means :math:`5 \sqrt{D}`, between 100 and 1000, and up
        to a quarter more if few documents would be left over; in `partial_fit` D is
        `total_samples`.  Under ``preset="sklearn"`` None means 128.
    shard_size : int, default=None
        If given, a step sums over shards of so many documents of its minibatch, in float64, as
        workers do in :class:`annealvi.dask.TemperedLDA`.  The size is a part of the fit: sums over
        other shards differ in their last digits.  Memory grows by two of a shard's statistics.
    evaluate_every : int, default=-1
        Evaluate the training perplexity after every so many passes of `fit`, and stop when it
        changes by less than `perp_tol`.  Zero or a negative number means never.  While T is
        still falling, values are recorded but do not stop the fit.
    total_samples : int, default=1e6
        Size of the corpus of which each call of `partial_fit` sees a portion.
    perp_tol : float, default=0.1
        Change of the training perplexity below which `fit` stops, see `evaluate_every`.
    n_jobs : int, default=None
        Number of threads.  None means 1 unless in a :obj:`joblib.parallel_backend` context,
        -1 means all processors.  Results are bit-identical for every number of threads.  A
        forked process may use threads too, even if its parent had used some before the fork.
    verbose : int, default=0
        If not 0, print a line after each pass.
    random_state : int, RandomState instance or None, default=None
        Seed of the starting point and of the documents that are held out.  Under
        ``document_init="random"`` also that of the start of each local step.

    Preset and temperature

    preset : {"annealvi", "sklearn"}, default="annealvi"
        Values of the parameters left open, None or ``"auto"``.  ``"annealvi"`` is the
        recipe described above, which does well on many corpora.  ``"sklearn"`` takes
        scikit-learn's defaults and gives its numbers.
    dtype : {"auto", "float32", "float64"} or NumPy dtype, default="auto"
        Whether `fit` computes in float32 or float64.  ``"auto"`` is float32 whatever the dtype
        of X: that takes less time and half the memory, and the topics are as good.  It is the
        dtype of X, float64 for integers, under ``preset="sklearn"`` or
        ``document_init="random"``, and if float32 cannot hold the counts.  It is float64 if
        `init` has numbers that float32 does not have, and if a prior is below 1e-38 or above
        8192.  Choose ``"float64"`` if a tolerance is below 1e-6.  Sums over documents and over
        words are always float64.

        `partial_fit` goes on in the dtype of the fit, `dtype_`.  `transform` returns float32 if
        its X is float32, and float64 otherwise.  So is `components_`, by the X that was fitted.
    temperature : float, str or Temperature, default="auto"
        The temperature T of the fit.  Higher temperatures smooth the objective, so that the
        fit depends less on its start.

        - ``"auto"``: ``Annealed("auto", length=1.0)``, which starts near the critical
          temperature of the corpus and cools over the whole fit; under ``preset="sklearn"``
          T = 1.
        - A number T >= 1: the same T in every step.  1 is plain variational inference.
        - ``"annealed"``: :class:`Annealed` with its own defaults, which cools over the first
          third of the fit.
        - ``"variational"``: :class:`Variational`, one temperature, learned from the data.
        - ``"local"``: :class:`LocalVariational`, a temperature learned for each document.
        - An object: :class:`Fixed`, :class:`Annealed`, :class:`Variational` or
          :class:`LocalVariational`.  A grid search can vary its parameters, as in
          ``temperature__start``.

        In `partial_fit` the two learned ones cool at the pace that `total_samples` sets.

    Starts, stopping and progress

    init : {"auto", "random", "documents", "kmeans++"} or array-like, default="auto"
        Start of `components_`.

        - ``"random"``: draws from Gamma(100, 0.01).
        - ``"documents"``: `topic_word_prior` plus 5 times the counts of 5 random documents
          for each topic.
        - ``"kmeans++"``: 1 plus 5 times the counts of 5 similar documents for each topic, far
          from the documents of other topics.  They are found by k-means++ on tf-idf;
          `partial_fit` looks for them in the first portion.
        - An array of shape (n_components, n_features): `components_` to start from.
        - ``"auto"``: ``"kmeans++"``, or ``"random"`` under ``preset="sklearn"``.
    n_init : int, default=1
        Number of starts of `fit`.  It keeps the fit with the lowest `bound_` or, with
        `validation_fraction`, the highest `validation_score_`.  The first start is the same as
        that of ``n_init=1``.  Up to `n_jobs` starts run in parallel, each in one thread.
        With a `callback` they run one after another.
    validation_fraction : float, default=None
        If given, this share of the documents is drawn at random, held out of `fit` and scored
        after each pass.  The topics with the highest score are kept, at whatever T they
        were found.

        With ``max_iter=None``, T falls over the usual number of passes.  The fit then
        continues at T = 1 while the score improves, up to 5 times the usual number in all.  A
        given `max_iter` is the most passes that are made.  If `temperature` is then left
        open, T falls over the usual number of passes, or over `max_iter` if that is smaller.

        The score is that of :func:`annealvi.metrics.document_completion`: the log-likelihood
        per word of one half of each document's tokens given the other half.  Tokens cannot
        be split if counts are not integers, if no document has two tokens or if there are
        more than 2e7.  The score is then the documents' part of the bound, in nats per word.
    patience : int, default=3
        With `validation_fraction`, `fit` stops when the score has not improved by 0.001 nats
        per word within this many passes.  While T is still falling, scores are recorded but
        do not stop the fit.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  The estimator can be used
        there, with what it has learned so far.  ``monitor`` has ``step``, ``passes``,
        ``temperature``, ``seconds``, and ``record(name=value)``, which writes a value into
        `history_`.  Raise ``StopIteration`` to end the fit, including the remaining starts.
        Parameters that are set there take effect at the next fit.  A
        :class:`annealvi.progress.ProgressBar` shows how far the fit is.  A
        :class:`annealvi.checkpoint.Checkpoint` writes it to a file, to be resumed.
        scikit-learn's own callbacks are set by `set_callbacks`, from its version 1.9 on.

    The documents' local step

    mean_change_tol : float, default=None
        The local step of a document stops when the mean absolute change of its
        :math:`\gamma` falls below this.  Under ``preset="sklearn"`` None means 1e-3;
        otherwise None means that `token_change_tol` is used.
    max_doc_update_iter : int, default=None
        Largest number of iterations of a document's local step.  None means 30 in training
        and 100 afterwards, or 100 throughout under ``preset="sklearn"``.  A given number, like
        a given tolerance, stops `transform` and `score` early too.  Values set after a fit reach
        them at the next `fit`, `partial_fit` or assignment to `components_`.
    token_change_tol : float, default=None
        If given, it is used in place of `mean_change_tol`: a document stops when
        :math:`\sum_k |\Delta\gamma_{dk}|` falls below this times its number of words, which
        means the same for every `n_components`.  A word that changes its topic adds 2 to the
        sum.  If neither of the two is given, None means 0.01, or the test of
        `mean_change_tol` under ``preset="sklearn"``.  In a fit that cools, None for these two
        and `max_doc_update_iter` also means 0.02 and over-relaxed iterations below T = 1.2.
    document_init : {"auto", "random", "warm", "constant"}, default="auto"
        Start of each document's :math:`\gamma` in training.

        - ``"random"``: as scikit-learn does it, with fresh draws each time, and an eps added
          to the normaliser of :math:`\phi`.
        - ``"constant"``: ones.
        - ``"warm"``: the result of the last pass.  The bound of a batch fit then never falls,
          and iterations are saved.  But documents keep topic proportions that they found
          before the topics meant anything, so use it for fits that start from good topics (`init`).
          `partial_fit` keeps no documents: there it means ``"constant"``.
        - ``"auto"``: ``"constant"``, or ``"random"`` under ``preset="sklearn"`` as long as
          temperature, init and topic estimate are scikit-learn's.
    topic_estimate : {"auto", "map", "variational"}, default="auto"
        Estimate of :math:`\log\beta` in a document's step.  ``"variational"`` is the faithful
        mean field and uses :math:`E[\log\beta]`.  ``"map"`` treats topics as points and uses
        :math:`\log E[\beta]`, which is variational EM under the prior Dir(eta + 1).
        ``"auto"`` is ``"map"``, or ``"variational"`` under ``preset="sklearn"``.  The two have
        different objectives, so `score`, `perplexity` and `bound_` of one cannot be compared
        with those of the other; use :func:`annealvi.metrics.document_completion` instead.
    document_estimate : {"auto", "sparse", "variational"}, default="auto"
        What a document's step uses for :math:`\log\theta` in training.  ``"variational"`` is
        the mean field's :math:`E[\log\theta]`.  ``"sparse"`` subtracts
        :math:`\kappa / \gamma_{dk}`, where :math:`\kappa` rises from 0 at T = 1.5 to 0.5 at
        T = 1: a document then uses fewer topics.  Each costs it :math:`\kappa \log(\gamma_{dk} /
        \alpha_k)`, much as a parameter costs half a logarithm under the Bayesian information
        criterion.  `transform` and `score` use the mean field.  ``"auto"`` is ``"sparse"``
        if a schedule cools the fit, and ``"variational"`` otherwise or under ``preset="sklearn"``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`\lambda`, the variational parameters of the topics' words.  Divided by its row
        sums it is E[beta].  You may assign another array or write into this one:
        `transform`, `score` and `partial_fit` then use it.  An array obtained before a step may
        not show later updates.

        It is float32 if the fitted X was float32, and float64 otherwise.  If that is `dtype_`,
        the array is a view of the model, or a copy if the updates of some words are still
        pending (after an online step of `partial_fit`).  Otherwise it is a copy, made when it is
        first asked for and kept until the next step.  What you write to it or assign is then
        rounded to `dtype_`.
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features)
        :math:`\exp E[\log\beta]`, computed from `components_`, in its dtype.
    dtype_ : dtype
        The dtype that the fit computes in, float32 or float64.
    bound_ : float
        Perplexity after `fit` of all documents that it was given, including those held out.
    validation_score_ : float
        Score of the held-out documents after `fit` with `validation_fraction`, in nats per
        word.
    init_scores_ : ndarray of shape (n_init,)
        `validation_score_` of each start of `fit` or, without validation, its `bound_`.
        Shorter if the callback ended the fit.
    settings_ : dict
        The parameters of the last fit, with values for those that were left open, as they
        were at the last `fit` or the first `partial_fit`.  To repeat the fit, pass these to a
        new estimator with the same `preset` and no validation.  A value is None if the
        parameter must be left open to repeat the fit.
    n_batch_iter_ : int
        One more than the number of steps done.
    n_iter_ : int
        Number of passes of `fit`, the finishing ones included, but not a final pass that
        met the test of `perp_tol`.  With `validation_fraction`: the passes behind the kept topics.
    doc_topic_prior_, topic_word_prior_ : float or ndarray
        The priors in use; if they are learned, their present values.  You may assign to them.
        Learning then continues from there, except from a `topic_word_prior_` of many
        numbers, which stays as it is.
    random_state_ : RandomState
        The generator of the start that was kept.
    temperature_ : float
        T of the last step.
    temperature_path_ : ndarray of shape (n_steps,)
        T of each step.  If documents have their own temperatures, it is one over the mean of
        their 1/T.
    temperature_posterior_ : ndarray of shape (M,)
        q(y) over the grid of a :class:`Variational` temperature, after the last step that
        learned it.
    temperature_posterior_path_ : ndarray of shape (n_learning_steps, M)
        The same after each step that learned, float32.  In a stream of `partial_fit` it grows
        by M numbers with each step.
    document_temperatures_ : ndarray of shape (n_samples,)
        `document_temperatures` of all documents that `fit` was given, if it had a
        :class:`LocalVariational` temperature.
    history_ : dict of str to ndarray
        Records of the fit: one after each pass of `fit`, one after each call of `partial_fit`
        and one wherever the callback recorded something.  Each has ``pass``, ``step``,
        ``temperature`` and ``seconds`` (spent in steps).  The others are NaN if they were not
        evaluated.  All except ``validation`` are computed on the training documents.

        - ``perplexity``, and ``elbo``: at T = 1, comparable between methods.
        - ``annealed_elbo``: the objective at the last step's T.  A batch fit with
          ``document_init="warm"`` never lowers it while T stays the same.
        - ``tempered_elbo``: Eq. 5 of Mandt et al. 2016, while a :class:`Variational`
          temperature learns.
        - ``validation``: the score of the held-out documents.
        - ``topic_change``: the share of the topics' words that a finishing pass has moved.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the words, if X has string column names.

    See Also
    --------
    annealvi.metrics.document_completion : Held-out log-likelihood per word.
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
        finish_iter: int | None = None,
        batch_size: int | None = None,
        shard_size: int | None = None,
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
        document_estimate: Literal["auto", "sparse", "variational"] = "auto",
        init: str | ArrayLike = "auto",
        document_init: Literal["auto", "random", "warm", "constant"] = "auto",
        preset: Literal["annealvi", "sklearn"] = "annealvi",
        n_init: int = 1,
        validation_fraction: float | None = None,
        patience: int = 3,
        dtype: Literal["auto", "float32", "float64"] | DTypeLike = "auto",
        callback: Callable[[Any, Monitor], None] | Sequence[Callable] | None = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.max_iter = max_iter
        self.finish_iter = finish_iter
        self.batch_size = batch_size
        self.shard_size = shard_size
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
        self.document_estimate = document_estimate
        self.init = init
        self.document_init = document_init
        self.preset = preset
        self.n_init = n_init
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.dtype = dtype
        self.callback = callback

    # ----------------------------------------------------------------- fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | os.PathLike | None = None) -> Self:
        """Learn topics from documents.

        After a KeyboardInterrupt or an error of the callback, which is raised again, the
        estimator has the best of the starts that have ended or, if there is none, the topics
        reached so far.  `partial_fit` then continues where that fit was stopped, cooling
        included.  If no step has been made, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts of the documents; non-negative, not necessarily integers.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            A checkpoint of a fit to the same X with the same parameters, written by
            :class:`annealvi.checkpoint.Checkpoint` or `save_state`: the fit goes on from there.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or other than in the checkpoint.  The estimator
            is then unchanged.

        Warns
        -----
        ConvergenceWarning
            If there is a stopping test (`evaluate_every`, `validation_fraction`), and the
            fit was still improving when `max_iter` ended it.
        """
        self._fit(X, y, resume=resume)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more portion of documents, in minibatches of `batch_size`.

        The length of the whole fit is not known here.  So it is annealed only if the
        temperature is given in passes over `total_samples` documents,
        ``Annealed(passes=...)``; otherwise ``"auto"`` and ``"annealed"`` mean T = 1.  With
        ``Annealed("auto", passes=...)`` the first T follows from the first portion if that
        has at least 100 documents, and is 3.7 otherwise.  A learned temperature continues
        from call to call, at the pace of a fit of one pass over `total_samples` documents,
        and has no last phase at T = 1.  `n_init`, `validation_fraction` and `patience`
        apply to `fit` only.

        What steps write to is kept for the next call: at most 2 K numbers, or 3 K with a learned
        temperature, for each word of a minibatch, and some for its documents.  `fit`, copies
        and pickles are without it, and :meth:`release_buffers` gives it back.

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
            If X or a parameter is out of range.  The estimator is then unchanged.
        """
        self._partial_fit(X)
        return self
