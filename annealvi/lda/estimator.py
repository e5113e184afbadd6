"""The estimator TemperedLDA, with the interface of scikit-learn's LDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import (
    as_array,
    check_counts,
    check_flag,
    check_inverses,
    check_topics,
    checked,
    is_int_in,
    n_threads,
    naming,
)
from annealvi.exceptions import BadParameter
from annealvi.inference import Callbacks, Monitor
from annealvi.inference.fitted import Fitted, Found, reads
from annealvi.inference.runs import Fingerprint, Runs
from annealvi.lda.fit import Fit, MergedFit, fit_portion, prepare_portion
from annealvi.lda.plan import plan_fit
from annealvi.lda.settings import (
    CONSTRAINTS,
    Settings,
    fit_dtype,
    in_dtype,
    single_or_double,
    stream_settings,
    topics_dtype,
)
from annealvi.lda.state import LDAState
from annealvi.matrices import check_words, csr_of
from annealvi.metrics.topics import RELEVANCE, top_words
from annealvi.models.lda.collapsed import METHODS, Method, infer_collapsed
from annealvi.models.lda.engine import Engine
from annealvi.models.lda.shards import engine_of
from annealvi.models.mmm import MMM
from annealvi.scale.elsewhere import Elsewhere
from annealvi.temperature import Temperature
from annealvi.threads import changing, shallow, writing

#: Methods that scikit-learn's LDA calls in `fit` and `transform`, and that subclasses override.
HOOKS = {"_init_latent_vars", "_e_step", "_em_step", "_unnormalized_transform"}


def _result(name: str, when: str) -> Found:
    """Make the attribute of a result of `fit`, which exists only after `when`."""
    return Found(lambda state: state.results[name], when)


@dataclass(eq=False, repr=False)
class TemperedLDA(Fitted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Latent Dirichlet allocation by annealed variational inference.

    This class is a drop-in replacement for scikit-learn's
    :class:`~sklearn.decomposition.LatentDirichletAllocation`: every parameter, method and attribute
    of that class has the same meaning here.

    Usually you need to set only `n_components`, `n_jobs` and `random_state`.  The next parameters
    to consider are `max_iter`, `validation_fraction`, `n_init` and `temperature`.

    If a parameter is None or ``"auto"``, its value is computed from the size of the corpus
    (docs/look_up/defaults.md).  With ``preset="sklearn"`` the value is scikit-learn's default,
    written below as "(sklearn: ...)", and the results are equal to scikit-learn's.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    max_iter : int, default=None
        Number of passes over the D documents in each run; with `validation_fraction`, the maximum
        number.  None means :math:`110 D^{-1/4}`, but at least 2 and at most 40 (sklearn: 10).  If
        the topics of several runs are merged (see `n_init`), None means 3 passes, or more if 3
        passes make fewer than 25 updates of the topics.
    n_jobs : int, default=None
        Number of threads.  The result is identical, bit for bit, for any number of threads.  None
        means 1 unless in a :obj:`joblib.parallel_backend` context.  -1 means all processors.
    random_state : int, RandomState instance or None, default=None
        Seed for the initial topics and for the choice of held-out documents.
    verbose : int, default=0
        If 1, print a line after each pass that all runs have made (see `n_init`), and after each
        batch pass at the end.  If 2 or more, print a line after each pass of each run.
    preset : {"annealvi", "sklearn"}, default="annealvi"
        The values that parameters have if they are None or ``"auto"``: those computed from the
        corpus, or scikit-learn's defaults.
    temperature : float, str or Temperature, default="auto"
        The temperature T of the fit: the likelihood is raised to the power 1/T, :math:`p(w \mid
        \theta, \beta)^{1/T}`.  A higher T makes the objective smoother, and the result less
        dependent on the initial topics.  A number T >= 1 applies to every step; 1 is plain
        variational inference.  ``"annealed"``, ``"variational"`` and ``"local"`` mean
        :class:`Annealed`, :class:`Variational` and :class:`LocalVariational`; objects of these
        classes can also be passed.  ``"auto"`` means ``Annealed("auto", length=1.0)``, with which
        T decreases until the end of the fit (sklearn: 1).
    n_init : "auto" or int, default="auto"
        Number of runs in `fit`, which start from different topics; up to `n_jobs` runs are computed
        in parallel.  ``"auto"`` means 8 if the counts sum to at least 2.5 times the size of
        `components_`, otherwise 5 (sklearn: 1).  If so many runs make more than 3 times the passes
        of a fit with ``n_init=1``, there are fewer runs, but at least 2.  With many topics, 16 runs
        predict better than ``"auto"``, but take at least 3 times the CPU time.

        The topics of all runs are merged into K topics.  Then they are improved by small steps: one
        pass, or several if a pass has fewer than ten steps.  If the corpus is large enough, batch
        passes at T = 1 follow (docs/look_up/defaults.md).  Each run needs memory for its topics.

        Runs are merged only if all topics have the same prior, no prior is learned, `init` is not
        an array, and T is always 1 or decreases to 1 by a schedule.  Otherwise ``"auto"`` means 1.
        If you set more runs, the run with the highest ELBO of documents and topics is kept or, with
        `validation_fraction`, the run with the highest `validation_score_`.
    validation_fraction : float, default=None
        Fraction of the documents, drawn at random, to hold out of `fit`.  After each pass, these
        documents are scored by :func:`annealvi.metrics.document_completion`, in nats per word.  If
        their counts are not integers, or sum to more than 2e7, the score is their ELBO per word
        instead.  `fit` keeps the topics of the pass with the highest score, and ends when the score
        has not improved by 0.001 within three passes at the final T.  If runs are merged, only the
        merged topics are scored.  With one run and ``max_iter=None``, the fit continues at T = 1
        while the score improves, but makes at most 5 times the usual number of passes.  With
        ``temperature="auto"``, T reaches 1 within the usual number of passes.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  The callback can use the
        estimator with the topics learned so far.  The monitor is an
        :class:`annealvi.inference.Monitor` with the progress of the fit; its method
        ``record(name=value)`` adds a value to `history_`.  Raise ``StopIteration`` to end the fit,
        including the remaining runs.  Parameters that a callback sets take effect at the next fit.
        Use `set_callbacks` for scikit-learn's own callbacks.
    doc_topic_prior : float, array-like of shape (n_components,) or "learn", default=None
        Dirichlet prior :math:`\alpha` of the topic proportions of documents.  None means
        min(max(0.1, 1 / K), 3 / K) (sklearn: 1 / K).  ``"learn"`` starts at that value and, while T
        <= 1.1, learns one number for each topic by Minka's fixed point (2000, Eq. 55).  A learned
        prior differs from its initial value by at most a factor of 100.
    topic_word_prior : float, array-like or "learn", default=None
        Dirichlet prior :math:`\eta` of the words of topics: one number, an array of shape
        (n_features,) or one of shape (n_components, n_features).  None means the same number as for
        `doc_topic_prior`.  ``"learn"`` learns a single number, which differs from the default by at
        most a factor of 10.
    learning_method : {"auto", "batch", "online"}, default="auto"
        Whether a step of `fit`, which is one update of the topics, uses all documents
        (``"batch"``) or a minibatch (``"online"``).  ``"auto"`` is ``"online"`` if there is more
        than one minibatch (sklearn: ``"batch"``).
    batch_size : int, default=None
        Number of documents in a minibatch.  None means :math:`5 \sqrt{D}`, but at least 100 and at
        most 1000 (sklearn: 128).  To avoid a small last minibatch, minibatches may have up to a
        quarter more documents.  In `partial_fit`, D is `total_samples`.
    total_samples : int, default=1e6
        Number of documents in the whole stream, if the model is fitted by `partial_fit`.
    evaluate_every, perp_tol : int, default=-1, and float, default=0.1
        Evaluate the training perplexity every `evaluate_every` passes of `fit`, and stop when it
        changes by less than `perp_tol` at the final T.  If `evaluate_every` is 0 or negative, the
        perplexity is never evaluated.
    dtype : {"auto", "float32", "float64"} or NumPy dtype, default="auto"
        The dtype that `fit` computes in.  ``"auto"`` means float32.  If float32 cannot represent
        the counts, ``"auto"`` means the dtype of X (sklearn: always the dtype of X).  If float32
        cannot represent the priors or `init`, ``"auto"`` means float64.  Results of `transform` and
        `components_` are float32 if X is float32, and otherwise float64.
    init : {"auto", "random", "documents", "kmeans++"} or array-like, default="auto"
        Initial value of `components_`.  ``"random"`` draws from Gamma(100, 0.01).
        ``"documents"`` uses the counts of 5 random documents for each topic.  ``"kmeans++"`` uses
        the counts of 5 similar documents for each topic, which differ from the documents of other
        topics.  An array must have the shape (n_components, n_features).  ``"auto"`` is
        ``"kmeans++"`` (sklearn: ``"random"``).
    learning_decay, learning_offset : float, default=None
        These and all parameters below are for experts.  `learning_decay` is :math:`\kappa` (0.7 if
        None) and `learning_offset` is :math:`\tau` (10 if None) in the online step size
        :math:`(\tau + t)^{-\kappa}` of `partial_fit`.  `fit` uses it if you set one of them or
        ``preset="sklearn"``; otherwise its steps decrease linearly (docs/look_up/defaults.md).
    mean_change_tol : float, default=None
        The inference for a document (its local step) stops when the mean absolute change of its
        topic parameters :math:`\gamma` is below this number.  None means that it stops when
        :math:`\sum_k |\Delta\gamma_{dk}|` is below 0.01 times the number of words (sklearn: 1e-3).
        If this parameter is None and T decreases to 1, iterations below T = 1.2 are over-relaxed:
        their changes of :math:`\gamma` are multiplied by 1.5.
    max_doc_update_iter : int, default=None
        Maximum number of iterations of the local step of a document.  None means 30 in `fit` and
        100 in other methods (sklearn: 100).  A number that you set here, or for `mean_change_tol`,
        also applies to `transform` and `score` from the next fit on.
    device : str, default="cpu"
        Where `fit`, `transform` and `score` compute:  ``"cpu"`` is the processor, ``"cuda"`` the
        first NVIDIA GPU that CuPy finds, ``"cuda:1"`` the second.  A GPU is useful if the corpus is
        large.  A GPU computes in float32, allows at most 2,048 topics, and computes runs one after
        another.  Two fits on the same GPU are identical, bit for bit; fits on the processor differ
        from them by rounding errors.  To use a fitted estimator without a GPU, set
        ``device="cpu"``. docs/do/gpu.md lists the parts of a fit that are not computed on the GPU.
    estimate : {"auto", "map", "variational"}, default="auto"
        With ``"map"``, the local step of a document uses :math:`\log E[\beta]`.  If T decreases to
        1 by a schedule, training also favours few topics for each document.  For this, the local
        step uses :math:`E[\log\theta] - c / \gamma_{dk}`.  The cost c increases from 0 to 0.5 while
        T decreases from 1.5 to 1.  ``"variational"`` uses :math:`E[\log\beta]` and
        :math:`E[\log\theta]`.  Do not compare the bounds of fits with different values of
        `estimate`.  ``"auto"`` is ``"map"`` (sklearn: ``"variational"``).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The topics :math:`\lambda`.  Divide each row by its sum to get E[beta].  This array is
        read-only.  To change the topics, assign another array, which is checked and copied.
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features)
        :math:`\exp E[\log\beta]`, computed from `components_`.
    dtype_ : dtype
        The dtype that the fit computes in, float32 or float64.
    bound_ : float
        Perplexity of all documents passed to `fit`, including held-out documents, as the method
        `perplexity` computes it.  On a small
        corpus, merged topics predict better than topics of one run, but have a higher `bound_`.
    validation_score_ : float
        Score of the held-out documents after `fit` with `validation_fraction`.
    init_scores_ : ndarray of shape (n_init,)
        `bound_` of each run or, with `validation_fraction`, `validation_score_` of each run.
        Without validation, the run with the highest ELBO is kept.  The ELBO has a term of the
        topics that `bound_` lacks, so the kept run need not have the lowest `bound_`.  This
        attribute exists only if runs are not merged.
    topic_support_ : ndarray of shape (n_components,)
        How similar each topic is to topics of the runs: the mean over runs of its cosine with the
        most similar topic of the run, computed from the 50 most frequent words of each.  A new fit
        usually finds topics with high support again, and often does not find topics with low
        support (docs/record/trust.md).  This attribute exists only if runs are merged, and is
        removed when topics are assigned or `partial_fit` changes them.
    settings_ : dict
        The parameters of the last fit, with the values used for None and ``"auto"``.  A new
        estimator with these parameters and the same `preset` repeats the fit.  The additional entry
        ``merged`` is true if runs were merged.
    n_batch_iter_, n_iter_ : int
        The number of steps done plus one, and the number of passes that led to the topics.
    doc_topic_prior_, topic_word_prior_ : float or ndarray
        The current priors.  The arrays are read-only, but you may assign other priors.
    random_state_ : RandomState
        The random number generator of the run that was kept.
    temperature_, temperature_path_ : float, ndarray of shape (n_steps,)
        The temperature of the last step, and the temperatures of all steps.
    temperature_posterior_, temperature_posterior_path_ : ndarray of shape (M,), (n_learned, M)
        q(y), the distribution over the M temperatures of :class:`Variational`, after the last step
        that learned it and after each such step.
    document_temperatures_ : ndarray of shape (n_samples,)
        The temperature of each training document; see `document_temperatures`.  This attribute
        exists after `fit` with a :class:`LocalVariational` temperature.
    history_ : dict of str to ndarray
        Records of the fit: one after each pass, each call of `partial_fit`, and each step at which
        a callback recorded something.  Each record has ``pass``, ``step``, ``temperature`` and
        ``seconds``.  The other values are NaN if not computed: ``perplexity``, ``elbo`` (at T =
        1), ``annealed_elbo`` (at the last T), ``tempered_elbo`` (Mandt et al. 2016, Eq. 5),
        ``validation`` (the score) and ``topic_change`` (how much a batch pass at the end changed
        topics).  If runs are merged, only the first run and steps after the merge have records.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of words, and their names if X has string column names.

    References
    ----------
    Hoffman, Blei, Wang, Paisley (2013), *Stochastic Variational Inference*, JMLR 14.
    Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> lda = TemperedLDA(n_components=20, random_state=0)
    >>> lda.fit_transform(load_arxiv_abstracts().data).shape
    (3000, 20)
    """

    _parameter_constraints: ClassVar[dict] = CONSTRAINTS

    def __init_subclass__(cls) -> None:
        """Refuse subclasses that override methods which only scikit-learn's LDA calls."""
        super().__init_subclass__()
        if unused := HOOKS & vars(cls).keys():
            raise TypeError(
                f"{cls.__name__} defines methods {sorted(unused)}, which scikit-learn's LDA calls "
                "but TemperedLDA does not. Use a callback instead, or use scikit-learn's class."
            )

    n_components: int = 10
    _: KW_ONLY
    doc_topic_prior: float | ArrayLike | Literal["learn"] | None = None
    topic_word_prior: float | ArrayLike | Literal["learn"] | None = None
    learning_method: Literal["auto", "batch", "online"] = "auto"
    learning_decay: float | None = None
    learning_offset: float | None = None
    max_iter: int | None = None
    batch_size: int | None = None
    evaluate_every: int = -1
    total_samples: float = 1e6
    perp_tol: float = 1e-1
    mean_change_tol: float | None = None
    max_doc_update_iter: int | None = None
    n_jobs: int | None = None
    verbose: int = 0
    random_state: int | RandomState | None = None
    temperature: float | str | Temperature = "auto"
    estimate: Literal["auto", "map", "variational"] = "auto"
    init: str | ArrayLike = "auto"
    preset: Literal["annealvi", "sklearn"] = "annealvi"
    n_init: int | Literal["auto"] = "auto"
    validation_fraction: float | None = None
    dtype: Literal["auto", "float32", "float64"] | DTypeLike = "auto"
    callback: Callable[[Any, Monitor], None] | Sequence[Callable] | None = None
    device: str = "cpu"

    # ----------------------------------------------------------------- fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | PathLike | None = None) -> Self:
        """Learn topics from documents.

        If a KeyboardInterrupt or an error in a callback ends the fit, the exception is raised, and
        the estimator contains the topics of the best finished run.  If no run is finished, it
        contains the topics learned so far, and `partial_fit` continues from these topics and the
        last temperature.  If no step has been made, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts of the documents.  Counts must be non-negative, but need not be integers.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            A checkpoint from which the fit is resumed.  The checkpoint must be written by
            :class:`annealvi.callbacks.Checkpoint` or `save_state` in a fit to the same X with the
            same parameters.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or differs from the checkpoint.  Such an error
            leaves the estimator unchanged.

        Warns
        -----
        ConvergenceWarning
            If `evaluate_every` or `validation_fraction` is used, and the fit was still improving
            after its last pass.
        """
        self._fit(X, y, resume=resume)
        return self

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True) -> NDArray:
        """Fit the model, and return the topic proportions of the same documents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        normalize : bool, default=True
            See `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The dtype is float32 if X is float32, and otherwise float64.
        """
        check_flag(normalize, "normalize")
        with writing(self):
            best = self._fit(X, y, keep_gamma=True)
            return _shares(best.perplexity.gamma, normalize, dtype=best.state.shown)

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from some more documents, in minibatches of `batch_size`.

        The number of documents that will follow is unknown in `partial_fit`.  Therefore ``"auto"``
        and ``"annealed"`` mean T = 1.  To anneal, use ``Annealed(passes=...)``; here a pass is
        `total_samples` documents.  With ``Annealed("auto", passes=...)``, the first T is computed
        from the documents of the first call if there are at least 100; otherwise it is 3.7.  A
        learned temperature changes over the calls as it does in `fit` during one pass over
        `total_samples` documents, but there are no final steps at T = 1.  `n_init` and
        `validation_fraction` apply only to `fit`.

        The estimator keeps some memory for the next call: at most 2 K numbers for each distinct
        word of a minibatch (3 K with a learned temperature), and some for its documents.  `fit` and
        :meth:`release_buffers` free this memory.  Copies and pickles do not include it.

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
            If X or a parameter is out of range.  Such an error leaves the estimator unchanged.
        """
        with writing(self):
            # scikit-learn checks the parameters only at the first call
            settings = self._settings()
            callbacks = Callbacks(self.callback, self)
            population = float(self.total_samples)
            before = shallow(self)  # other threads do not see the copies
            columns = shallow(self)  # gets the number and the names of features
            if self.__sklearn_is_fitted__():
                state = self._state
                X = self._check_X(X, "partial_fit")
            else:
                X = check_words(columns, X, "partial_fit", reset=True)
                result_dtype = X.dtype
                X = in_dtype(X, fit_dtype(vars(self), X, population))
                shape = int(self.n_components), X.shape[1]
                rng = check_random_state(self.random_state)
                state = LDAState.begin(shape, X.dtype, settings, rng, result_dtype, X)
            with changing(self):
                engine = self._engine_for(state, kept=self.__dict__.get("_engine"))
                prepare_portion(state, X, settings, population)
                self._show(columns, _state=state)
            # while a callback runs, the engine belongs to this call alone
            self.__dict__.pop("_engine", None)
            try:
                fit_portion(state, engine, X, settings, population, callbacks, changing(self))
            except BaseException:
                if not state.monitor.step:  # the estimator becomes what it was before
                    self._show(before)
                raise
            self._engine = engine
        return self

    @checked
    def add_words(self, n_words: int) -> Self:
        """Add columns for new words, before documents with these words are passed to `partial_fit`.

        The new columns come last; the old columns keep their positions and counts.  In new columns,
        `components_` starts at a thousandth of the prior, so that the topic proportions of
        documents without new words do not change.  The next steps of `partial_fit` add the rest of
        the prior; until then `score` is lower.  If `topic_word_prior` is an array, the prior of a
        new word in each topic is the smallest prior of that topic.  `feature_names_in_` is removed.

        Parameters
        ----------
        n_words : int
            Number of new words, at least 1.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `n_words` is not a positive int, or if a callback calls this method.
        """
        check_is_fitted(self)
        if not is_int_in(n_words, 1):
            raise BadParameter("n_words", "a positive int", n_words)
        with writing(self), changing(self):
            if self._state.under_way:
                raise ValueError("Call 'add_words' after the fit, not in a callback.")
            self._state.add_words(int(n_words))
            if as_array(self.topic_word_prior).ndim:
                self.topic_word_prior = self._state.model.eta
            self.n_features_in_ = self._state.model.n_features
            self.__dict__.pop("feature_names_in_", None)
        return self

    def release_buffers(self) -> None:
        """Free the memory that `partial_fit` keeps for its next call.

        This is useful if the next documents arrive much later and memory is needed elsewhere.  It
        does not change any result: the next call of `partial_fit` allocates the memory again, which
        takes some milliseconds.
        """
        with writing(self):
            self.__dict__.pop("_engine", None)

    def _fit(
        self,
        X: Any,
        y: Any,
        *,
        keep_gamma: bool = False,
        resume: str | PathLike | None = None,
        prepared: Callable[[Any, Any], tuple[Any, np.dtype, Mapping[str, Any]]] | None = None,
        others: tuple[Any, ...] = (),
    ) -> Fit:
        """Fit all runs, and store and return the merged fit or the fit of the best run.

        The function `prepared` (by default :func:`prepare`) sets the number and the names of
        features of the estimator passed to it.  It returns three objects: the checked X in the
        dtype of the fit, the dtype of results, and the parameters.  `others` are more callbacks.
        """
        under_way = self._fit_under_way(X, y, others)
        with naming(type(self).__name__), writing(self), under_way as callbacks:
            self.release_buffers()  # buffers of a `partial_fit` that this fit replaces
            before = shallow(self)  # other threads do not see the copies
            columns = shallow(self)
            # `result_dtype` is the dtype in which the user gets results
            documents, result_dtype, parameters = (prepared or prepare)(columns, X)
            runs = Runs[Fit](Fingerprint(self, documents), parameters["random_state"], resume)
            self._runs = runs
            # callbacks, checkpoints and workers in other processes need one run after another
            in_turn = bool(callbacks) or runs.resumed or isinstance(documents, Elsewhere)
            plan = plan_fit(
                parameters,
                documents,
                generators(runs.generator, n_runs=1)[1],  # the one that draws held-out documents
                result_dtype=result_dtype,
                keep_gamma=keep_gamma,
                in_turn=in_turn,
                n_threads=n_threads(self.n_jobs),
                callbacks=callbacks,
                # other threads see runs in parallel only when these have ended
                lock=changing(self) if in_turn else nullcontext(),
            )
            n_runs = plan.settings.n_init
            rngs, _ = generators(runs.generator, n_runs)

            def show(fit: Fit) -> None:
                """Set the state of a fit as that of this estimator."""
                self._show(columns, _state=fit.state)

            try:
                (best,) = runs.run(
                    lambda number: Fit.begin(plan, number, rngs[number], runs.halt),
                    n_runs,
                    n_workers=plan.n_workers,
                    show=show if in_turn else None,
                    merge_fits=MergedFit if plan.settings.merged else None,
                )
                if not runs.finished and not plan.settings.merged:
                    best.state.results["init_scores"] = np.array(runs.scores)
                best.conclude()
            finally:
                if runs.best is None:  # no step was made, or an error occurred
                    self._show(before)
                else:
                    show(runs.best)
            best.warn()
            runs.finished = True
        return best

    # --------------------------------------------------------------- inference

    @reads
    def transform(
        self,
        X: Any,
        *,
        normalize: bool = True,
        temperature: float | str = 1.0,
        method: Method = "variational",
    ) -> NDArray:
        """Infer the topic proportions of documents, each document independently of the others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        normalize : bool, default=True
            Whether to return E[theta], whose rows sum to 1.  If False, the result is gamma or, with
            ``method="cvb0"``, alpha plus the expected number of words of each topic.
        temperature : float or "learned", default=1.0
            Temperature T >= 1 at which the proportions are inferred.  ``"learned"`` is the
            temperature that the fit had learned before its last phase at T = 1: one number
            with :class:`Variational`, one for each document with :class:`LocalVariational`.
        method : {"variational", "cvb0"}, default="variational"
            The method of inference.  ``"variational"`` is mean-field inference, as in `fit`; it
            stops according to `max_doc_update_iter` and `mean_change_tol`.  ``"cvb0"`` is collapsed
            inference at E[beta], with results closer to the exact posterior mean.  Use ``"cvb0"``
            if documents have few words for each of their topics (see docs/record/inference.md).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The dtype is float32 if X is float32, and otherwise float64.

        Raises
        ------
        ValueError
            If X, `temperature` or `method` is out of range, if `temperature` is ``"learned"`` and
            the fit did not learn one, or if `temperature` is not 1 with ``method="cvb0"``.
        """
        check_is_fitted(self)
        check_flag(normalize, "normalize")
        if not isinstance(method, str) or method not in METHODS:
            raise BadParameter("method", f"a str among {set(METHODS)}", method)
        collapsed = method == "cvb0"
        if collapsed and not (isinstance(temperature, Real) and temperature == 1):
            raise BadParameter(
                "temperature", "1.0 with method='cvb0', which supports only T = 1", temperature
            )
        state = self._state
        model = state.model
        tempering = state.tempering(temperature)
        counts = check_words(self, X, "transform")
        X = in_dtype(counts, model.dtype)
        engine = self._engine_for(state)
        if collapsed:
            gamma = infer_collapsed(engine, model, X)
        else:
            gamma = engine.infer(model, X, tempering)
        return _shares(gamma, normalize, counts.dtype)

    @reads
    def predict(self, X: Any) -> NDArray[np.int64]:
        r"""Predict the topic of each document, under the assumption that it has only one topic.

        The prediction is Bayes' rule with the topics as classes, :math:`\arg\max_k \log p(k) +
        \sum_v x_{dv} \log p(v \mid k)`.  Predicted topics match known labels of documents better
        than the largest topics in `transform`, which are often topics of common words.  The
        clusters of ``TemperedMultinomialMixture(K, init=lda.components_)``, fitted to the same
        documents, match even better; docs/record/classes.md compares these three methods.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.

        Returns
        -------
        ndarray of shape (n_samples,)
            Topic numbers.  A document without words is assigned to the largest topic.
        """
        check_is_fitted(self)
        X = self._check_X(X, "predict")
        topics = self._state.model.components
        sums = topics.sum(axis=1, dtype=float)
        if X.nnz < X.shape[1]:  # words that do not occur have no influence
            # X and topics with only the columns of words that occur
            words, places = np.unique(X.indices, return_inverse=True)
            X = csr_of(X.data, places.astype(X.indices.dtype), X.indptr, (X.shape[0], len(words)))
            topics = topics[:, words]
        mixture = MMM(*topics.shape, n_threads=n_threads(self.n_jobs))
        # the topics as clusters: their weights, their counts of words and the sums of the counts,
        # which include words that do not occur in X
        mixture.assign(sums, np.ascontiguousarray(topics.T, np.float64), sums)
        return mixture.predict(X)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit the model, and predict the topic of each of the same documents; see `predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples,)
            Topic numbers.
        """
        return self.fit(X).predict(X)

    @reads
    def score(self, X: Any, y: Any = None, *, temperature: float | str = 1.0) -> float:
        """Compute the ELBO of documents at T = 1, in nats.

        Each document adds a negative number, so more documents lower the score.  With
        ``preset="sklearn"`` it also includes the KL divergence of the topics, as in scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        y : Ignored
        temperature : float or "learned", default=1.0
            Temperature at which topic proportions are inferred, see `transform`.  The ELBO itself
            is always computed at T = 1, so that scores can be compared.

        Returns
        -------
        float
            The ELBO in nats; higher is better.
        """
        check_is_fitted(self)
        tempering = self._state.tempering(temperature)
        X = self._check_X(X, "score")
        engine = self._engine_for(self._state)
        return self._state.elbo(engine, X, tempering, topics=self._scores_topics)

    @reads
    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """Compute exp(-ELBO per word) of documents at T = 1.

        Use the perplexity only to compare fits with the same priors, because the ELBO contains the
        prior of the topic proportions.  :func:`annealvi.metrics.document_completion` compares fits
        with any priors.  With ``preset="sklearn"`` the ELBO also includes the KL divergence of the
        topics, as in scikit-learn.  The more words X has, the less this term raises the perplexity.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        sub_sampling : bool, default=False
            Whether X is a sample from a corpus of `total_samples` documents.

        Returns
        -------
        float
            Lower is better.  If the perplexity exceeds the largest float, the result is infinity
            and a RuntimeWarning is issued.

        Raises
        ------
        ValueError
            If X is out of range, or contains no words.
        """
        check_flag(sub_sampling, "sub_sampling")
        return self._perplexity_precomp_distr(X, None, sub_sampling)

    @reads
    def document_temperatures(self, X: Any) -> NDArray[np.float64]:
        r"""Compute how unusual documents are, as the temperature that fits each document best.

        Ordinary documents have values a little above 1.  Documents with words that rarely occur
        together have higher values.  The value of a document is

        .. math::
           1 / \sum_m r_m b_m, \quad r_m \propto \exp(b_m L_d - N_d c(b_m)),
           \quad b_m = m / 100.

        Here :math:`N_d` is the number of words of the document, and :math:`L_d = \sum_v n_{dv}
        \sum_k \phi_{dvk} (E \log\theta_{dk} + E \log\beta_{kv})` is its energy at T = 1.  With
        ``estimate="map"``, :math:`E \log\beta_{kv}` is replaced by :math:`\log E \beta_{kv}`.
        :math:`c(b)` is the log partition function per word of the training documents.  The fit may
        have had any temperature.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.

        Returns
        -------
        ndarray of shape (n_samples,)
            The temperatures.  Documents without words have the value NaN.

        Notes
        -----
        `fit` stores at most 512 training documents, over which c(b) is averaged.  After
        `partial_fit`, or after an assignment to `components_`, c(b) is averaged over X.
        """
        check_is_fitted(self)
        X = self._check_X(X, "document_temperatures")
        return self._state.document_temperatures(self._engine_for(self._state), X)

    @reads
    def posterior_log_partition(self, temperatures: ArrayLike, data: Any) -> NDArray[np.float64]:
        """Estimate log C(T), the log normaliser of the tempered likelihood, from the posterior q.

        :func:`annealvi.partition.log_partition` calls this method if ``method="posterior"``.

        Parameters
        ----------
        temperatures : array-like of shape (M,)
            Temperatures T.
        data : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.

        Returns
        -------
        ndarray of shape (M,)
            log C(T) in nats, summed over all documents.

        See Also
        --------
        annealvi.partition.log_partition
        """
        check_is_fitted(self)
        inverses = 1 / check_inverses(temperatures, "temperatures")
        X = self._check_X(data, "posterior_log_partition")
        engine = self._engine_for(self._state)
        return engine.posterior_log_partition(self._state.model, inverses, X)

    @reads
    def top_words(
        self,
        n: int = 10,
        feature_names: ArrayLike | None = None,
        *,
        relevance: float | None = None,
    ) -> list[list[Any]]:
        r"""Return the n most relevant words of each topic, best first.

        The relevance of a word is :math:`r \log p(w \mid k) + (1 - r) \log
        \frac{p(w \mid k)}{p(w)}` (Sievert and Shirley 2014).

        Parameters
        ----------
        n : int, default=10
            Number of words for each topic.
        feature_names : array-like of shape (n_features,), default=None
            The words.  By default these are the column names of the X passed to `fit` or, if it had
            none, the column numbers.
        relevance : float, default=None
            The number r, from 0 to 1.  With 1, words are ranked by their probability in the topic;
            lower values prefer words that are rare in other topics.  None means 0.7, or 1 with
            ``preset="sklearn"``.

        Returns
        -------
        list of lists
            One list of words for each topic.
        """
        check_is_fitted(self)
        if relevance is None:
            relevance = 1.0 if self.preset == "sklearn" else RELEVANCE
        topics = self._state.model.components
        return top_words(topics, n, feature_names, self, relevance)

    # -------------------------------------------------------------- attributes

    dtype_ = Found(lambda state: state.model.dtype)
    doc_topic_prior_ = Found(
        lambda state: state.model.alpha,
        assign=lambda state, value: state.set_priors(value, state.model.eta),
    )
    topic_word_prior_ = Found(
        lambda state: state.model.eta,
        assign=lambda state, value: state.set_priors(state.model.alpha, value),
    )
    random_state_ = Found(lambda state: state.model.rng, assign=LDAState.set_generator)
    n_batch_iter_ = Found(lambda state: state.monitor.step + 1, assign=LDAState.set_next_step)
    exp_dirichlet_component_ = Found(LDAState.exp_e_log_topics, assign=LDAState.check_exp_e_log)
    n_iter_ = Found(lambda state: state.n_passes)
    settings_ = Found(lambda state: state.settings, "`fit` or `partial_fit`")
    bound_ = _result("bound", "`fit`")
    validation_score_ = _result("validation_score", "`fit` with validation_fraction")
    init_scores_ = _result("init_scores", "a `fit` whose runs are not merged")
    topic_support_ = _result("support", "a `fit` that merges runs, with n_init of 2 or more")
    document_temperatures_ = _result(
        "document_temperatures", "`fit` with a LocalVariational temperature"
    )

    @property
    @reads
    def components_(self) -> NDArray:
        """The topics lambda, of shape (K, V), read-only."""
        return self._fitted().components()

    @components_.setter
    @checked
    def components_(self, value: ArrayLike) -> None:
        """Set the topics, of the fit that is running or of a fitted or an unfitted estimator."""
        array = as_array(value)
        name = "components_"
        with writing(self):
            state: LDAState | None = vars(self).get("_state")
            if state is not None and state.under_way:  # in a callback
                shape = state.model.n_topics, state.model.n_features
                array = check_topics(array, name, shape, state.model.dtype)
                with changing(self):
                    state.assign(array)
                return
            # a number has no shape; `check_topics` raises an error for it
            n_topics = array.shape[0] if array.ndim else self.n_components
            n_features = getattr(self, "n_features_in_", array.shape[-1] if array.ndim else 0)
            self._validate_params()
            settings = self._settings(n_topics)
            dtype = topics_dtype(vars(self), array) if state is None else state.model.dtype
            array = check_topics(array, name, (n_topics, n_features), dtype)
            temperature = settings.wanted_temperature()
            if state is not None:
                moved = state.moved_to(array, settings)
            else:  # as if a fit had found these topics
                rng = check_random_state(self.random_state)
                start = settings._replace(init=array)
                moved = LDAState.begin(array.shape, dtype, start, rng, single_or_double(array))
                per_pass = float(self.total_samples) / settings.batch_size
                moved.planned_for = clone(temperature)
                moved.temperature = temperature.plan(None, per_pass, model=moved.model)
            self._engine_for(moved)  # raises if the device cannot fit these topics
            self.release_buffers()
            with changing(self):
                self.n_features_in_ = n_features
                self._state = moved

    # ----------------------------------------------------------------- details

    _n_features_out = Found(lambda state: state.model.n_topics)

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn must know: X is counts, sparse or dense."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags

    def _check_X(self, X: Any, method: str) -> csr_matrix:
        """Return X as a canonical CSR matrix in the dtype of the fit."""
        return in_dtype(check_words(self, X, method), self._state.model.dtype)

    def _engine_for(self, state: LDAState, X: Any = None, kept: Engine | None = None) -> Engine:
        """Return an engine on the estimator's device, perhaps with the buffers of another one."""
        model = state.model
        return engine_of(
            self.device,
            n_threads(self.n_jobs),
            model.n_topics,
            model.dtype,
            X=X,
            shard_size=model.options.shard_size,
            kept=kept,
        )

    def _state_of(self, tree: Mapping[str, Any], path: str) -> LDAState:
        """Make the state of a fit from a tree."""
        return LDAState.of(tree, path)

    @classmethod
    def _check_values(cls, values: dict[str, Any]) -> None:
        """Raise an error if a parameter, by name, does not meet its constraints."""
        constraints: dict[str, Any] = cls._parameter_constraints
        validate_parameter_constraints(constraints, values, cls.__name__)

    def _settings(self, n_topics: int | None = None) -> Settings:
        """Check the parameters, and return the settings of `partial_fit`."""
        # get_params is not used: it would read the signature at every call of partial_fit
        values = vars(self) if n_topics is None else vars(self) | {"n_components": n_topics}
        return stream_settings(self._check_values, values)

    @reads
    def _perplexity_precomp_distr(
        self, X: Any, doc_topic_distr: NDArray | None = None, sub_sampling: bool = False
    ) -> float:
        """Return the perplexity at a given gamma; scikit-learn's tests and some users call this."""
        X, options = self._bounded(X, doc_topic_distr, sub_sampling)
        engine = self._engine_for(self._state)
        # the result is the number of words
        if not check_counts(X, options["population"] or 1.0, "total_samples"):
            raise ValueError(
                "The 'X' parameter of perplexity must contain words. "
                f"Got {X.shape[0]} documents without words."
            )
        return self._state.perplexity(engine, X, topics=self._scores_topics, **options)

    @reads
    def _approx_bound(self, X: Any, doc_topic_distr: NDArray, sub_sampling: bool) -> float:
        """Return the ELBO at a given gamma, in nats; code for scikit-learn's LDA calls this."""
        X, options = self._bounded(X, doc_topic_distr, sub_sampling)
        return self._state.elbo(self._engine_for(self._state), X, **options)

    @property
    def _scores_topics(self) -> bool:
        """Whether scores of documents include the KL divergence of the topics."""
        return self.preset == "sklearn"

    def _bounded(
        self, X: Any, doc_topic_distr: NDArray | None, sub_sampling: bool
    ) -> tuple[csr_matrix, dict[str, Any]]:
        """Check the arguments of scikit-learn's methods for bounds.

        The results are X in the dtype of the fit, and options of :meth:`LDAState.elbo`.
        """
        check_is_fitted(self)
        X = self._check_X(X, "perplexity")
        population = None
        if doc_topic_distr is not None:
            n_samples, n_topics = doc_topic_distr.shape
            if n_samples != X.shape[0]:
                raise ValueError("Number of samples in X and doc_topic_distr do not match.")
            if n_topics != self._state.model.n_topics:
                raise ValueError("Number of topics does not match.")
        if sub_sampling:
            self._check_values(dict(vars(self)))  # total_samples may have been set since the fit
            population = float(self.total_samples)
        return X, {"gamma": doc_topic_distr, "population": population}


def generators(generator: RandomState, n_runs: int) -> tuple[list[RandomState], RandomState]:
    """Return a random generator for each run, and one that draws the held-out documents.

    Run 1 uses the same random numbers as a fit with ``n_init=1``.  The seeds of the other
    generators are drawn from a copy of the generator of run 1.
    """
    seeds = deepcopy(generator).randint(np.iinfo(np.int32).max, size=n_runs)
    return [generator, *map(RandomState, seeds[1:])], RandomState(seeds[0])


def prepare(columns: Any, X: Any) -> tuple[csr_matrix, np.dtype, Mapping[str, Any]]:
    """Check X, and return it in the dtype of the fit, with its original dtype and parameters."""
    X = check_words(columns, X, "fit", reset=True)
    parameters = vars(columns)
    return in_dtype(X, fit_dtype(parameters, X, X.shape[0])), X.dtype, parameters


def _shares(gamma: Any, normalize: bool, dtype: np.dtype) -> NDArray:
    """Return gamma, or E[theta] if `normalize` is true, in the given dtype; may overwrite gamma."""
    if normalize:
        gamma = gamma.astype(np.promote_types(gamma.dtype, dtype), copy=False)
        gamma /= gamma.sum(axis=1)[:, None]
    elif gamma.size and gamma.max() > np.finfo(dtype).max:
        raise ValueError(
            f"With normalize=False, results must be at most {np.finfo(dtype).max:.3g}, the largest "
            f"{dtype} number. Got {gamma.max():.3g}. Pass X in float64, or use normalize=True."
        )
    return gamma.astype(dtype, copy=False)
