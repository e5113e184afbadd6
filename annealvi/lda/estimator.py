"""TemperedLDA: the interface of scikit-learn over :mod:`annealvi.models.lda`."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
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
    n_threads,
    naming,
)
from annealvi.exceptions import BadParameter
from annealvi.inference import Callbacks, Fingerprint, Monitor, Runs
from annealvi.inference.fitted import Fitted, Found, reads
from annealvi.lda.fit import Fit, MergedFit, fit_portion, plan_fit, prepare_portion
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
from annealvi.models.mmm import MMM
from annealvi.scale.elsewhere import Elsewhere
from annealvi.temperature import Temperature
from annealvi.threads import changing, shallow, writing

#: Methods that scikit-learn's LDA calls in a fit and in `transform`, and that subclasses replace.
HOOKS = {"_init_latent_vars", "_e_step", "_em_step", "_unnormalized_transform"}


@dataclass(eq=False, repr=False)
class TemperedLDA(Fitted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Latent Dirichlet allocation by annealed variational inference.

    A drop-in replacement for :class:`sklearn.decomposition.LatentDirichletAllocation`: every
    parameter, method and attribute of that class means the same here.

    Usually only `n_components`, `n_jobs` and `random_state` need to be set.  After those, look
    at `max_iter`, `validation_fraction`, `n_init` and `temperature`.

    Parameters left at None or ``"auto"`` follow a recipe that depends on the corpus
    (docs/look_up/defaults.md).  With ``preset="sklearn"`` they take scikit-learn's defaults, shown
    in brackets below, and the results are the same numbers as scikit-learn's.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    max_iter : int, default=None
        Number of passes that each run makes over the D documents; with `validation_fraction`, the
        maximum.  None means :math:`110 D^{-1/4}`, between 2 and 40 [10].  For runs that are merged
        it is less: 3, or the number that makes 25 steps.
    n_jobs : int, default=None
        Number of threads; the result is identical, bit for bit, for any number.  None means 1
        unless in a :obj:`joblib.parallel_backend` context, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the starting point and of the documents that are held out.
    verbose : int, default=0
        If not 0, print a line after each pass.
    preset : {"annealvi", "sklearn"}, default="annealvi"
        Values of the parameters left open: the recipe, or scikit-learn's defaults.
    temperature : float, str or Temperature, default="auto"
        T of the fit: the likelihood is tempered, :math:`p(w \mid \theta, \beta)^{1/T}`.  A higher T
        makes the objective smoother, and the fit less dependent on its start.  A number T >= 1
        applies to every step; 1 is plain variational inference.  ``"annealed"`` is
        :class:`Annealed`, ``"variational"`` :class:`Variational`, ``"local"``
        :class:`LocalVariational`; objects of these classes can be passed.  ``"auto"`` is
        ``Annealed("auto", length=1.0)``, which cools over the whole fit [1].
    n_init : "auto" or int, default="auto"
        Number of runs of `fit`, of which up to `n_jobs` are made in parallel.  ``"auto"`` is 8 if
        the corpus has at least 2.5 words for each entry of the topics, and otherwise 5 [1].  It is
        less, but at least 2, if all runs would make more than three times the passes of one.  16 is
        the thorough fit: with many topics it predicts better, but takes three times the CPU time or
        more.

        The topics of all runs are merged to K.  At least ten small steps and one pass follow, and
        batch passes at T = 1 if words are plentiful (docs/look_up/defaults.md).  Each run needs
        memory for its topics.  Topics cannot be merged with a prior for each topic, with learned
        priors, with an array as `init`, or if T does not end at 1 by a schedule.  Then ``"auto"``
        is 1, and of several runs the one with the lowest `bound_` is kept or, with
        `validation_fraction`, with the highest `validation_score_`.  See docs/record/runs.md.
    validation_fraction : float, default=None
        Share of the documents to hold out of `fit`, drawn at random.  They are scored after each
        pass by :func:`annealvi.metrics.document_completion`, in nats per word (or by their part of
        the bound, if tokens cannot be split).  The topics with the highest score are kept, and
        `fit` ends when it has not improved by 0.001 within three passes at the final T. If runs are
        merged, the merged topics are scored.  With one run and ``max_iter=None`` the fit continues
        at T = 1 while the score improves, up to 5 times the usual number of passes; with
        ``temperature="auto"``, T falls over at most the usual number.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  The callback can use the
        estimator, with what it has learned so far.  The monitor, an
        :class:`annealvi.inference.Monitor`, holds the progress; its ``record(name=value)`` adds a
        value to `history_`.  Raise ``StopIteration`` to end the fit, including the remaining runs.
        Parameters set by the callback take effect at the next fit.  `set_callbacks` takes
        scikit-learn's own callbacks.
    doc_topic_prior : float, array-like of shape (n_components,) or "learn", default=None
        Dirichlet prior :math:`\alpha` of a document's topic proportions.  None means
        min(max(0.1, 1 / K), 3 / K) [1 / K].  ``"learn"`` starts at that value.  While T <= 1.1 it
        learns one number for each topic, within a factor of 100, by Minka's fixed point (2000,
        Eq. 55).
    topic_word_prior : float, array-like or "learn", default=None
        Dirichlet prior :math:`\eta` of a topic's words: one number, an array of shape
        (n_features,) or one of shape (n_components, n_features).  None means the same number as for
        `doc_topic_prior`.  ``"learn"`` learns a single number, within a factor of 10.
    learning_method : {"auto", "batch", "online"}, default="auto"
        Whether a step of `fit` uses all documents or a minibatch.  ``"auto"`` is ``"online"`` if
        there is more than one minibatch [``"batch"``].
    batch_size : int, default=None
        Documents in a minibatch.  None means :math:`5 \sqrt{D}`, between 100 and 1000, and up to a
        quarter more if few documents would be left over [128]; in `partial_fit` D is
        `total_samples`.
    total_samples : int, default=1e6
        Size of the corpus of which each call of `partial_fit` sees a portion.
    evaluate_every, perp_tol : int, default=-1, and float, default=0.1
        Evaluate the training perplexity every `evaluate_every` passes of `fit`, and stop when it
        changes by less than `perp_tol` at the final T. Zero or a negative number means never.
    dtype : {"auto", "float32", "float64"} or NumPy dtype, default="auto"
        Whether `fit` computes in float32 or float64.  ``"auto"`` is float32.  If float32 cannot
        hold the counts, it is the dtype of X [always]; if float32 cannot hold the priors or `init`,
        it is float64.  `transform` and `components_` are float32 if X is, otherwise float64.
    init : {"auto", "random", "documents", "kmeans++"} or array-like, default="auto"
        Start of `components_`: an array of shape (n_components, n_features), draws from
        Gamma(100, 0.01) (``"random"``), the counts of 5 random documents for each topic
        (``"documents"``), or of 5 similar documents, far from the documents of other topics
        (``"kmeans++"``).  ``"auto"`` is ``"kmeans++"`` [``"random"``].
    learning_decay, learning_offset : float, default=None
        This parameter and all that follow are for experts.  :math:`\kappa` and :math:`\tau` of the
        online step size :math:`\rho_t = (\tau + t)^{-\kappa}`; None means 0.7 and 10.  If both are
        None, the step size of `fit` falls linearly instead [never]; see docs/look_up/defaults.md.
    mean_change_tol : float, default=None
        A document's local step stops when the mean absolute change of its :math:`\gamma` falls
        below this.  None means that it stops when :math:`\sum_k |\Delta\gamma_{dk}|` falls below
        0.01 times its number of words [1e-3].  In a fit that cools, None also over-relaxes steps
        once T < 1.2.
    max_doc_update_iter : int, default=None
        Largest number of iterations of a document's local step.  None means 30 in training and 100
        afterwards [100].  Like `mean_change_tol`, a number set here also applies to `transform` and
        `score` from the next fit on.
    device : str, default="cpu"
        Where documents are fitted and topics are updated, in `fit` and in `transform` or `score`:
        ``"cuda"`` is the first NVIDIA GPU that CuPy sees, ``"cuda:1"`` the second.  Set it if the
        corpus is large and there is such a GPU.  It computes in float32, for up to 2,048 topics,
        and makes the runs one after the other.  Two fits on the same GPU are identical, bit for
        bit; they differ from fits on the processor by rounding errors.  A fitted estimator can be
        read and used anywhere, with ``device="cpu"``. docs/do/gpu.md lists what the processor does.
    estimate : {"auto", "map", "variational"}, default="auto"
        With ``"map"``, a document's step uses :math:`\log E[\beta]`. If a schedule cools the fit,
        training also favours documents of few topics: it uses :math:`E[\log\theta] - \kappa /
        \gamma_{dk}`, where :math:`\kappa` rises to 0.5 as T falls from 1.5 to 1. ``"variational"``
        uses :math:`E[\log\beta]` and :math:`E[\log\theta]`. The bounds of the two cannot be
        compared. ``"auto"`` is ``"map"`` [``"variational"``].

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`\lambda`; divided by its row sums it is E[beta].  Read-only: to change the topics,
        assign another array, which is checked and copied.
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features)
        :math:`\exp E[\log\beta]`, computed from `components_`.
    dtype_ : dtype
        The dtype that the fit computes in, float32 or float64.
    bound_ : float
        Perplexity of all documents passed to `fit`, including those held out. If data are few,
        merged runs have a higher perplexity than a single run, although they predict better.
    validation_score_ : float
        Score of the held-out documents after `fit` with `validation_fraction`.
    init_scores_ : ndarray of shape (n_init,)
        `bound_` of every run, or `validation_score_` with `validation_fraction`. It exists only if
        runs are not merged.
    topic_support_ : ndarray of shape (n_components,)
        The share of runs that found each topic: their best match has a cosine of at least 0.8 over
        the 50 largest words. Topics with high support come back in new fits, those with low support
        often do not (docs/record/runs.md). It exists only if runs are merged, and not for topics
        that were assigned or come from `partial_fit`.
    settings_ : dict
        The parameters of the last fit, with values for those that were left open, and whether runs
        were ``merged``.  A new estimator with these parameters and the same `preset` repeats the
        fit.
    n_batch_iter_, n_iter_ : int
        The number of steps done plus one, and the number of passes behind the topics.
    doc_topic_prior_, topic_word_prior_ : float or ndarray
        The priors in use, read-only; others may be assigned.
    random_state_ : RandomState
        The generator of the run that was kept.
    temperature_, temperature_path_ : float, ndarray of shape (n_steps,)
        T of the last step and of each step.
    temperature_posterior_, temperature_posterior_path_ : ndarray of shape (M,), (n_learned, M)
        q(y) of a :class:`Variational` temperature, after the last step that learned it and after
        each such step.
    document_temperatures_ : ndarray of shape (n_samples,)
        `document_temperatures` after `fit` with a :class:`LocalVariational` temperature.
    history_ : dict of str to ndarray
        Records, one after each pass, portion or record of the callback.  Each has ``pass``,
        ``step``, ``temperature`` and ``seconds``.  These are NaN if they were not computed:
        ``perplexity``, ``elbo`` (at T = 1), ``annealed_elbo`` (at the last T), ``tempered_elbo``
        (Mandt et al. 2016, Eq. 5), ``validation`` (the score) and ``topic_change`` (how much a
        batch pass at the end moved topics).  If runs are merged, the records are of the first run
        and of the steps after the merge.
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
        super().__init_subclass__()
        if unused := HOOKS & vars(cls).keys():
            raise TypeError(
                f"{cls.__name__} defines {sorted(unused)}, which scikit-learn's LDA calls and "
                "TemperedLDA does not: use a callback, or fit with scikit-learn's class."
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
    random_state: int | np.random.RandomState | None = None
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
    def fit(self, X: Any, y: Any = None, *, resume: str | os.PathLike | None = None) -> Self:
        """Learn topics from documents.

        A KeyboardInterrupt or an error in the callback is raised again.  The estimator then has the
        best of the finished runs or, if there is none, the topics reached so far.  `partial_fit`
        continues from there, and continues to cool.  If no step has been made, the estimator is
        unchanged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts of the documents; non-negative, not necessarily integers.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            A checkpoint of a fit to the same X with the same parameters, written by
            :class:`annealvi.checkpoint.Checkpoint` or `save_state`; the fit continues from there.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or differs from the checkpoint.  The estimator is
            then unchanged.

        Warns
        -----
        ConvergenceWarning
            If there is a stopping test (`evaluate_every`, `validation_fraction`), and the fit was
            still improving after its last pass.
        """
        self._fit(X, y, resume=resume)
        return self

    @checked
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
        with writing(self):
            best = self._fit(X, y, keep_gamma=True)
            return _shares(best.perplexity.gamma, normalize, best.state.shown)

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more portion of documents, in minibatches of `batch_size`.

        The length of the whole fit is not known here.  So it is annealed only with
        ``Annealed(passes=...)``, in passes over `total_samples` documents; otherwise ``"auto"`` and
        ``"annealed"`` mean T = 1.  With ``Annealed("auto", passes=...)`` the first T is computed
        from the first portion if that has at least 100 documents, and is 3.7 otherwise.  A learned
        temperature continues from call to call, at the pace of a fit of one pass over
        `total_samples` documents, and has no last phase at T = 1.  `n_init` and
        `validation_fraction` apply to `fit` only.

        Work buffers are kept for the next call: at most 2 K numbers, or 3 K with a learned
        temperature, for each word of a minibatch, and some for its documents. `fit` frees
        them when it ends, copies and pickles do not include them, and :meth:`release_buffers` frees
        them at any time.

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
        with writing(self):
            # scikit-learn checks the parameters only at the first call
            settings, callbacks = self._settings(), Callbacks(self.callback, self)
            threads, population = n_threads(self.n_jobs), float(self.total_samples)
            before = columns = shallow(self)  # which other threads do not see
            if self.__sklearn_is_fitted__():
                state, X = self._state, self._check_X(X, "partial_fit")
            else:
                columns = shallow(self)
                X = check_words(columns, X, "partial_fit", reset=True)
                shown, X = X.dtype, in_dtype(X, fit_dtype(vars(self), X, population))
                shape = int(self.n_components), X.shape[1]
                rng = check_random_state(self.random_state)
                state = LDAState.begin(shape, X.dtype, settings, rng, threads, shown, X)
            with changing(self):
                prepare_portion(state, X, settings, population, threads)
                self._show(columns, _state=state)
            try:
                fit_portion(state, X, settings, population, callbacks, changing(self))
            except BaseException:
                if not state.monitor.step:
                    self._show(before)
                raise
        return self

    @checked
    def add_words(self, n_words: int) -> Self:
        """Add columns at the end, for new words in later portions of a stream.

        Old columns keep their places and their counts.  In `components_` new words begin at a
        thousandth of their prior, so that documents of other words keep their shares; the steps of
        `partial_fit` add the rest.  Until then `score` is lower.  If the prior is an array, of
        shape (V,) or (K, V), a new word gets the smallest prior of each topic.  Column names of a
        DataFrame are discarded.

        Parameters
        ----------
        n_words : int
            Number of words, at least 1.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `n_words` is not a positive int, or in a callback.
        """
        check_is_fitted(self)
        if not isinstance(n_words, Integral) or isinstance(n_words, bool) or n_words < 1:
            raise BadParameter("n_words", "a positive int", n_words)
        with writing(self), changing(self):
            if self._state.under_way:
                raise ValueError("'add_words' must be called after a fit, not in a callback.")
            self._state.add_words(int(n_words))
            if as_array(self.topic_word_prior).ndim:
                self.topic_word_prior = self._state.topic_word_prior
            self.n_features_in_ = self._state.model.n_features
            vars(self).pop("feature_names_in_", None)
        return self

    def release_buffers(self) -> None:
        """Free the memory that `partial_fit` keeps for its next call.

        Call it if a stream pauses and memory is short.  It changes no result: the next call
        allocates the memory again, which takes some milliseconds.
        """
        with writing(self):
            state: LDAState | None = vars(self).get("_state")
            if state is not None:
                state.model.buffers.release()

    def _fit(
        self,
        X: Any,
        y: Any,
        *,
        keep_gamma: bool = False,
        resume: str | os.PathLike | None = None,
        prepared: Callable[[Any, Any], tuple[Any, np.dtype, Mapping[str, Any]]] | None = None,
        others: tuple[Any, ...] = (),
    ) -> Fit:
        """Make every run, show the best or what they are merged to, and return it.

        `prepared` sets the features of the estimator that it gets, and returns X, checked, in the
        dtype of the fit, then the dtype that the user sees and the parameters of the fit; by
        default for documents in memory.  `others` are more callbacks.
        """
        under_way = self._fit_under_way(X, y, others)
        with naming(type(self).__name__), writing(self), under_way as callbacks:
            self.release_buffers()  # of a stream, which this fit replaces
            before, columns = shallow(self), shallow(self)  # other threads do not see these
            documents, shown, parameters = (prepared or prepare)(columns, X)
            threads, seed = n_threads(self.n_jobs), parameters["random_state"]
            self._runs = runs = Runs[Fit](Fingerprint(self, documents), seed, resume)
            in_turn = bool(callbacks) or runs.resumed or isinstance(documents, Elsewhere)
            plan = plan_fit(
                parameters,
                documents,
                generators(runs.generator, 1)[1],
                shown=shown,
                keep_gamma=keep_gamma,
                in_turn=in_turn,
                n_threads=threads,
                callbacks=callbacks,
                # other fits are shown once they have ended
                changing=changing(self) if in_turn else nullcontext(),
            )
            n_runs = plan.settings.n_init
            rngs, _ = generators(runs.generator, n_runs)

            def show(fit: Fit) -> None:
                self._show(columns, _state=fit.state)

            try:
                with plan.buffers.used():
                    (best,) = runs.run(
                        lambda number: Fit.begin(plan, number, rngs[number], runs.halt),
                        n_runs,
                        n_workers=plan.n_workers,
                        show=show if in_turn else None,
                        follow=MergedFit if plan.settings.merged else None,
                    )
                if not runs.finished and not plan.settings.merged:
                    best.state.results["init_scores"] = np.array(runs.scores)
                best.conclude()
            finally:
                if runs.best is None:  # no step was made, or there is an error
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
            their topics; docs/record/inference.md has the measurements.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            In float32 if X is, otherwise in float64.

        Raises
        ------
        ValueError
            If X, the temperature or the method is out of range, if the temperature is ``"learned"``
            and the fit did not learn one, or if it is not 1 with ``method="cvb0"``.
        """
        check_is_fitted(self)
        check_flag(normalize, "normalize")
        if not isinstance(method, str) or method not in METHODS:
            raise BadParameter("method", f"a str among {set(METHODS)}", method)
        collapsed = method == "cvb0"
        if collapsed and not (isinstance(temperature, Real) and temperature == 1):
            wanted = "1.0 with method='cvb0', which infers at T = 1"
            raise BadParameter("temperature", wanted, temperature)
        state, threads = self._state, n_threads(self.n_jobs)
        tempering = state.tempering(temperature)
        counts = check_words(self, X, "transform")
        X = in_dtype(counts, state.model.dtype)
        state.use(self.device)
        if collapsed:
            gamma = infer_collapsed(state.model.documents, X, n_threads=threads)
        else:
            gamma = state.model.documents.infer(X, tempering, n_threads=threads)
        return _shares(gamma, normalize, counts.dtype)

    @reads
    def predict(self, X: Any) -> NDArray[np.int64]:
        r"""Return the most probable topic of each document, if each document has only one.

        That is Bayes' rule with the topics as classes, :math:`\arg\max_k \log p(k) + \sum_v x_{dv}
        \log p(v \mid k)`.  It agrees better with known labels than the largest share of
        `transform`, which often belongs to a topic of common words.  Still better is
        ``TemperedMultinomialMixture(K, init=lda.components_)``, fitted to the same documents:
        docs/record/classes.md compares them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.

        Returns
        -------
        ndarray of shape (n_samples,)
            For a document without words the largest topic.
        """
        check_is_fitted(self)
        X, topics = self._check_X(X, "predict"), self._state.model.topics.components
        sums = topics.sum(axis=1, dtype=np.float64)
        if X.nnz < X.shape[1]:  # the other words make no difference
            words, places = np.unique(X.indices, return_inverse=True)
            X = csr_of(X.data, places.astype(X.indices.dtype), X.indptr, (X.shape[0], len(words)))
            topics = topics[:, words]
        mixture = MMM(*topics.shape, n_threads=n_threads(self.n_jobs))
        mixture.assign(sums, np.ascontiguousarray(topics.T, np.float64), sums)
        return mixture.predict(X)

    @reads
    def score(self, X: Any, y: Any = None, *, temperature: float | str = 1.0) -> float:
        """Compute the ELBO of documents at T = 1, in nats.

        It is a sum over documents, so more documents have a lower score.  Under
        ``preset="sklearn"`` it includes the topics' KL, once, as scikit-learn's score does.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts.
        y : Ignored
        temperature : float or "learned", default=1.0
            Temperature at which documents are fitted, see `transform`.  The ELBO itself is
            always taken at T = 1, so that scores can be compared.

        Returns
        -------
        float
            Higher is better.
        """
        check_is_fitted(self)
        tempering = self._state.tempering(temperature)
        X = self._check_X(X, "score")
        threads = n_threads(self.n_jobs)
        return self._state.elbo(X, tempering, topics=self._scores_topics, n_threads=threads)

    @reads
    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """Compute exp(-ELBO per word) of documents at T = 1.

        Compare only fits with the same priors by it, because the ELBO contains the prior of the
        shares.  :func:`annealvi.metrics.document_completion` compares models of any priors.  Under
        ``preset="sklearn"`` the ELBO includes the topics' KL, as in scikit-learn, so the perplexity
        falls as the number of documents grows.

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
        check_flag(sub_sampling, "sub_sampling")
        return self._perplexity_precomp_distr(X, None, sub_sampling)

    @reads
    def document_temperatures(self, X: Any) -> NDArray[np.float64]:
        r"""Compute how unusual documents are, as the temperature that each would choose.

        Ordinary documents have values a little above 1.  Documents whose words do not belong
        together have higher values.  The value of a document is

        .. math::
           1 / \sum_m r_m b_m, \quad r_m \propto \exp(b_m L_d - N_d c(b_m)),
           \quad b_m = m / 100.

        Here :math:`N_d` is its number of words, and :math:`L_d = \sum_v n_{dv} \sum_k
        \phi_{dvk} (E \log\theta_{dk} + E \log\beta_{kv})` its energy at T = 1; under
        ``estimate="map"`` :math:`\log E \beta_{kv}` takes the place of :math:`E
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
        X = self._check_X(X, "document_temperatures")
        return self._state.document_temperatures(X, n_threads=n_threads(self.n_jobs))

    @reads
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
        X, threads = self._check_X(data, "posterior_log_partition"), n_threads(self.n_jobs)
        documents = self._state.model.documents
        return documents.posterior_log_partition(inverses, X, n_threads=threads)

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
            The words.  By default the column names seen in `fit`, or column numbers if there
            were none.
        relevance : float, default=None
            r, from 0 to 1.  1 ranks by the probability of a word in the topic; lower values prefer
            words that other topics do not have.  None means 0.7, and 1 with ``preset="sklearn"``.

        Returns
        -------
        list of lists
            One list of words for each topic.
        """
        check_is_fitted(self)
        if relevance is None:
            relevance = 1.0 if self.preset == "sklearn" else RELEVANCE
        topics = self._state.model.topics.components
        return top_words(topics, n, feature_names, self, relevance)

    # -------------------------------------------------------------- attributes

    dtype_ = Found(lambda state: state.model.dtype)
    doc_topic_prior_ = Found(
        lambda state: state.doc_topic_prior,
        assign=lambda state, value: state.set_priors(value, state.topic_word_prior),
    )
    topic_word_prior_ = Found(
        lambda state: state.topic_word_prior,
        assign=lambda state, value: state.set_priors(state.doc_topic_prior, value),
    )
    random_state_ = Found(lambda state: state.model.rng, assign=LDAState.set_generator)
    n_batch_iter_ = Found(lambda state: state.monitor.step + 1, assign=LDAState.set_next_step)
    exp_dirichlet_component_ = Found(LDAState.exp_e_log_topics, assign=LDAState.check_exp_e_log)
    n_iter_ = Found(lambda state: state.n_passes)
    settings_ = Found(lambda state: state.settings, "`fit` or `partial_fit`")
    bound_ = Found(lambda state: state.results["bound"], "`fit`")
    validation_score_ = Found(
        lambda state: state.results["validation_score"], "`fit` with validation_fraction"
    )
    init_scores_ = Found(
        lambda state: state.results["init_scores"], "a `fit` whose runs are not merged"
    )
    topic_support_ = Found(
        lambda state: state.results["support"], "a `fit` that merges runs, with n_init of 2 or more"
    )
    document_temperatures_ = Found(
        lambda state: state.results["document_temperatures"],
        "`fit` with a LocalVariational temperature",
    )

    @property
    @reads
    def components_(self) -> NDArray:
        return self._fitted().components()

    @components_.setter
    @checked
    def components_(self, value: ArrayLike) -> None:
        array, name = as_array(value), "components_"
        with writing(self):
            state: LDAState | None = vars(self).get("_state")
            if state is not None and state.under_way:  # in a callback
                shape = state.model.n_topics, state.model.n_features
                array = check_topics(array, name, shape, state.model.dtype)
                with changing(self):
                    state.assign(array)
                return
            n_topics = array.shape[0] if array.ndim else self.n_components
            n_features = array.shape[-1] if array.ndim and state is None else 0
            n_features = getattr(self, "n_features_in_", n_features)
            self._validate_params()
            settings, threads = self._settings(n_topics), n_threads(self.n_jobs)
            dtype = topics_dtype(vars(self), array) if state is None else state.model.dtype
            array = check_topics(array, name, (n_topics, n_features), dtype)
            wanted = settings.wanted_temperature()
            if state is not None:
                moved = state.moved_to(array, settings, threads)
            else:  # as if a fit had found them
                rng, shown = check_random_state(self.random_state), single_or_double(array)
                start = settings._replace(init=array)
                moved = LDAState.begin(array.shape, dtype, start, rng, threads, shown)
                per_pass = float(self.total_samples) / settings.batch_size
                moved.planned_for = clone(wanted)
                moved.temperature = wanted.plan(None, per_pass, model=moved.model)
            with changing(self):
                self.n_features_in_, self._state = n_features, moved

    # ----------------------------------------------------------------- details

    _n_features_out = Found(lambda state: state.model.n_topics)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags

    def _check_X(self, X: Any, method: str) -> sparse.csr_matrix:
        """X as a canonical CSR matrix of the dtype of the fit, for the device of now."""
        self._state.use(self.device)
        return in_dtype(check_words(self, X, method), self._state.model.dtype)

    def _state_of(self, tree: Mapping[str, Any], way: str) -> LDAState:
        return LDAState.of(tree, way)

    @classmethod
    def _check_values(cls, values: dict[str, Any]) -> None:
        constraints: dict[str, Any] = cls._parameter_constraints
        validate_parameter_constraints(constraints, values, cls.__name__)

    def _settings(self, n_topics: int | None = None) -> Settings:
        """Check the parameters; the settings for a stream, by default of `n_components` topics."""
        # not get_params, which looks the signature up at every call of partial_fit
        values = vars(self) if n_topics is None else vars(self) | {"n_components": n_topics}
        return stream_settings(self._check_values, values)

    @reads
    def _perplexity_precomp_distr(
        self, X: Any, doc_topic_distr: NDArray | None = None, sub_sampling: bool = False
    ) -> float:
        """Perplexity at a given gamma; scikit-learn's tests and some of its users call it."""
        X, options = self._bounded(X, doc_topic_distr, sub_sampling)
        if not check_counts(X, options["population"] or 1.0, "total_samples"):
            raise ValueError(
                "The perplexity, exp(-ELBO per word), needs documents with words. "
                f"Got n_samples={X.shape[0]} without any."
            )
        return self._state.perplexity(X, topics=self._scores_topics, **options)

    @reads
    def _approx_bound(self, X: Any, doc_topic_distr: NDArray, sub_sampling: bool) -> float:
        """The ELBO at a given gamma, in nats; code for scikit-learn's LDA calls it."""
        X, options = self._bounded(X, doc_topic_distr, sub_sampling)
        return self._state.elbo(X, **options)

    @property
    def _scores_topics(self) -> bool:
        """Whether the score of documents includes the topics' KL, which belongs to a fit."""
        return self.preset == "sklearn"

    def _bounded(
        self, X: Any, doc_topic_distr: NDArray | None, sub_sampling: bool
    ) -> tuple[sparse.csr_matrix, dict[str, Any]]:
        """Documents and the options of their ELBO, checked."""
        check_is_fitted(self)
        X, population = self._check_X(X, "perplexity"), None
        if doc_topic_distr is not None:
            n_samples, n_topics = doc_topic_distr.shape
            if n_samples != X.shape[0]:
                raise ValueError("Number of samples in X and doc_topic_distr do not match.")
            if n_topics != self._state.model.n_topics:
                raise ValueError("Number of topics does not match.")
        if sub_sampling:
            self._check_values(dict(vars(self)))  # total_samples may have been set since the fit
            population = float(self.total_samples)
        threads = n_threads(self.n_jobs)
        return X, {"given": doc_topic_distr, "population": population, "n_threads": threads}


def generators(own: RandomState, n_runs: int) -> tuple[list[RandomState], RandomState]:
    """One generator for each run, and one for what is held out.

    Run 1 uses the same random stream as ``n_init=1``.  The others are seeded by a copy of
    that stream.
    """
    seeds = copy.deepcopy(own).randint(np.iinfo(np.int32).max, size=n_runs)
    return [own, *map(RandomState, seeds[1:])], RandomState(seeds[0])


def prepare(columns: Any, X: Any) -> tuple[sparse.csr_matrix, np.dtype, Mapping[str, Any]]:
    """Check documents in memory: X in the dtype of the fit, the user's dtype, the parameters."""
    X, parameters = check_words(columns, X, "fit", reset=True), vars(columns)
    return in_dtype(X, fit_dtype(parameters, X, X.shape[0])), X.dtype, parameters


def _shares(gamma: Any, normalize: bool, dtype: np.dtype) -> NDArray:
    """E[theta], perhaps in place of gamma, or gamma; in a dtype that the user expects."""
    if normalize:
        gamma = gamma.astype(np.promote_types(gamma.dtype, dtype), copy=False)
        gamma /= gamma.sum(axis=1)[:, np.newaxis]
    elif gamma.size and gamma.max() > np.finfo(dtype).max:
        raise ValueError(
            f"gamma must be at most {np.finfo(dtype).max:.3g} in {dtype}, the dtype of X. Got "
            f"{gamma.max():.3g}. Pass X in float64, or use normalize=True."
        )
    return gamma.astype(dtype, copy=False)
