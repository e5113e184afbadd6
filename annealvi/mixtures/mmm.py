"""The estimator TemperedMultinomialMixture, which fits the model of :mod:`annealvi.models.mmm`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import TINY, Interval, check_counts, check_numbers, n_threads
from annealvi.exceptions import BadParameter, warn_user
from annealvi.inference import Monitor, optimise
from annealvi.inference.fitted import Found, reads
from annealvi.matrices import check_words
from annealvi.metrics.topics import RELEVANCE, top_words
from annealvi.mixtures.fit import Draw, FiniteMixture
from annealvi.models.mmm import MMM, ComponentCounts, merged, words_of_documents
from annealvi.temperature import Annealed, Fixed, Temperature, Variational, as_temperature

#: With init="merged": the number of short fits that are merged, and the iterations of each.
RUNS = 12
PASSES = 6
#: T of the short fits, except in plain inference; docs/record/classes.md reports how it was chosen.
COOLING = Annealed(3.0, length=1.0)
#: The temperature that each name means.
KINDS: dict[str, Temperature] = {"annealed": Annealed(3.0), "variational": Variational()}


@dataclass(eq=False, repr=False)
class TemperedMultinomialMixture(
    FiniteMixture, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Mixture of multinomials by annealed inference: each document belongs to one cluster.

    .. math::
       z_d \sim \mathrm{Cat}(w), \quad x_d \sim \mathrm{Mult}(\beta_{z_d})

    with Dirichlet priors for w and for :math:`\beta_k` (the Dirichlet-multinomial mixture).  Use it
    if each document is about one thing: to group documents into clusters, or for short texts,
    which contain too few words for LDA.  docs/do/classes.md compares this model with LDA.

    To start one cluster from each topic of a fitted :class:`TemperedLDA`, use
    ``TemperedMultinomialMixture(K, init=lda.components_)``.

    **Which parameters matter.**  Usually set `n_components`, `n_jobs` and `random_state`.

    Parameters
    ----------
    n_components : int, default=10
        Number of clusters K.  After the fit, some clusters may contain no documents.
    max_iter : int, default=30
        Largest number of iterations, each over all documents.
    tol : float, default=1e-3
        The fit ends when T no longer changes and an iteration changes `lower_bound_` by less than
        `tol`.  With ``tol=0`` every fit makes `max_iter` iterations.
    temperature : float, "annealed", "variational" or Temperature, default="annealed"
        The temperature T of the fit.

        - A number T >= 1: T has this value in every step.  T = 1 is plain inference.
        - ``"annealed"``: T falls from 3 to 1 over the first third of `max_iter` iterations.
        - ``"variational"``: T is learned from the data.
        - An object of :mod:`annealvi.temperature`.
    init : {"merged", "kmeans++"} or array-like, default="merged"
        The word probabilities of clusters at the start of a fit.

        - ``"kmeans++"``: each cluster starts with the words of 5 similar documents, and other
          clusters with other documents.
        - ``"merged"``: 12 short fits of 6 iterations are made first, which start as with
          ``"kmeans++"``.  Their clusters are then merged until K clusters are left.
        - An array of shape (n_components, n_features): counts or probabilities of words, such as
          the `components_` of a TemperedLDA.
    n_init : int, default=1
        Number of fits from different starting points.  The one with the highest `lower_bound_`
        is kept.
    weight_concentration_prior : float, default=1.0
        The number that is added to each cluster's number of documents to estimate weights.
    word_prior : float, default=0.1
        The number that is added to each word's count in each cluster.
    random_state : int, RandomState instance or None, default=None
        The random seed of the starting points.
    n_jobs : int, default=None
        Number of threads.  None means 1 unless in a :obj:`joblib.parallel_backend` context,
        -1 means all processors.  Results are bit-identical for every number of threads.
    verbose : int, default=0
        If not 0, print a line after each iteration.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each iteration, but not in the short fits
        of ``init="merged"``.  See :class:`TemperedGaussianMixture`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The expected counts of words in each cluster, divided by T of the last iteration, plus
        `word_prior`.  Divided by their row sums, they are the probabilities :math:`\beta`.
    weights_ : ndarray of shape (n_components,)
        The estimated shares w of documents in the clusters.
    lower_bound_ : float
        A lower bound of log p(X, w, beta) at the end of the best fit, in nats per document, without
        the normalising constants of the priors.
    n_iter_ : int
        Number of iterations of the best fit.
    converged_ : bool
        Whether the best fit ended because of `tol`.
    temperature_ : float
        The temperature of the last iteration.
    temperature_path_ : ndarray of shape (n_iter,)
        The temperature of each iteration.
    temperature_posterior_, temperature_posterior_path_ : ndarray
        Only with a variational temperature; see :class:`TemperedGaussianMixture`.
    history_ : dict of str to ndarray
        Records of the fit, one for each iteration: ``pass``, ``step``, ``temperature``,
        ``seconds`` spent in iterations, and ``elbo``, the ELBO of all training data at T = 1.
        ``annealed_elbo`` is the objective at the present T, and never falls at constant T.
    n_features_in_ : int
        Number of words V.
    feature_names_in_ : ndarray of shape (n_features,)
        The words, if X has string column names.

    References
    ----------
    Nigam, McCallum, Thrun, Mitchell (2000), *Text Classification from Labeled and Unlabeled
    Documents using EM*, Machine Learning 39.
    Yin, Wang (2014), *A Dirichlet multinomial mixture model-based approach for short text
    clustering*, KDD.

    Examples
    --------
    >>> from annealvi import TemperedMultinomialMixture
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> X = load_arxiv_abstracts().data
    >>> mixture = TemperedMultinomialMixture(15, random_state=0).fit(X)
    >>> mixture.predict(X).shape
    (3000,)
    """

    Model = MMM
    components_ = Found(lambda state: state.model.lam.T.copy())
    weights_ = Found(lambda state: state.model.alpha / state.model.alpha.sum())
    _parameter_constraints: ClassVar[dict] = {
        **FiniteMixture._parameter_constraints,
        "init": [StrOptions({"merged", "kmeans++"}), "array-like"],
        "weight_concentration_prior": [Interval(Real, TINY, None, closed="left")],
        "word_prior": [Interval(Real, TINY, None, closed="left")],
        "n_jobs": [None, Integral],
    }

    n_components: int = 10
    _: KW_ONLY
    max_iter: int = 30
    tol: float = 1e-3
    temperature: float | str | Temperature = "annealed"
    init: str | ArrayLike = "merged"
    n_init: int = 1
    weight_concentration_prior: float = 1.0
    word_prior: float = 0.1
    random_state: int | RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callable | Sequence[Callable] | None = None

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each cluster for each document, like `predict_proba`.

        With this method :func:`annealvi.topics.describe` can treat the clusters as topics.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self.predict_proba(X)

    @reads
    def top_words(
        self, n: int = 10, feature_names: ArrayLike | None = None, *, relevance: float = RELEVANCE
    ) -> list[list[Any]]:
        """Return the n most relevant words of each cluster, the most relevant word first.

        Parameters
        ----------
        n : int, default=10
            Number of words for each cluster.
        feature_names : array-like of shape (n_features,), default=None
            The words.  By default these are the column names of the X that `fit` received, or the
            column numbers if X had no names.
        relevance : float, default=0.7
            See :meth:`annealvi.TemperedLDA.top_words`.

        Returns
        -------
        list of lists
            One list of words for each cluster.
        """
        check_is_fitted(self)
        return top_words(self._state.model.lam.T, n, feature_names, self, relevance)

    def bic(self, X: Any) -> float:
        """Compute the Bayesian information criterion of documents; lower is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        float
            The criterion, which is -2 log p(X) + (K V - 1) log n_samples.
        """
        scores = self.score_samples(X)
        return float((self._state.model.lam.size - 1) * math.log(len(scores)) - 2 * scores.sum())

    # ----------------------------------------------------------------- details

    def _prepare(self, X: Any, copied: Any) -> tuple[csr_matrix, dict[str, Any], Temperature, Draw]:
        """Check X and the parameters; see :meth:`TemperedMixture._prepare`."""
        X = _checked(X, copied, "fit", reset=True)
        temperature = as_temperature(self.temperature, KINDS)
        init = self.init
        if not isinstance(init, str):
            init = check_numbers(init, "init", (int(self.n_components), X.shape[1]))
            if np.any(init < 0) or not np.all(init.max(axis=1) > 0):
                raise BadParameter(
                    "init",
                    must_be="non-negative, with a positive number in each row",
                    got=self.init,
                )
        settings = {
            "weight_prior": float(self.weight_concentration_prior),
            "word_prior": float(self.word_prior),
        }
        draw = partial(
            _draw,
            X,
            init=init,
            n_components=int(self.n_components),
            settings=settings,
            temperature=Fixed(1.0) if temperature == Fixed(1.0) else COOLING,
            threads=n_threads(self.n_jobs),
        )
        return X, settings, temperature, draw

    def _warn(self, X: Any) -> None:
        """Warn if clusters contain no documents."""
        document_counts = self._state.model.documents
        n_empty = np.sum(document_counts < 0.5 * min(1.0, X.shape[0] / len(document_counts)))
        if n_empty:
            warn_user(
                f"{n_empty} of the {self.n_components} clusters contain no documents. Use a "
                "smaller 'n_components' or a smaller 'word_prior'.",
                ConvergenceWarning,
            )

    @reads
    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        """Check X, and compute log p(x, k) of each document and cluster."""
        model = self._ready()
        return model.log_joint(_checked(X, self, "predict"))

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: X is positive, and may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags


def _checked(X: Any, estimator: Any, method: str, *, reset: bool = False) -> csr_matrix:
    """Check counts of words for a method; `reset` is True in `fit`."""
    X = check_words(estimator, X, method, reset=reset)
    check_counts(X)
    return X


def _draw(
    X: csr_matrix,
    rng: RandomState,
    *,
    init: Any,
    n_components: int,
    settings: Mapping[str, Any],
    temperature: Temperature,
    threads: int,
) -> dict[str, Any]:
    """Counts of words and documents to start from; "merged" makes short fits at `temperature`."""
    if not isinstance(init, str):
        words = init / init.max(axis=1, keepdims=True)  # sums may overflow
        words_per_component = max(float(X.sum(dtype=np.float64)), 1.0) / n_components
        return {"words": words_per_component * words / words.sum(axis=1, keepdims=True)}
    if init == "kmeans++":
        return {"words": words_of_documents(X, n_components, rng)}
    fitted_counts = list[ComponentCounts]()
    model = MMM(n_components, X.shape[1], **settings, n_threads=threads)
    for _ in range(RUNS):
        model.start(X, words=words_of_documents(X, n_components, rng))
        optimise(
            model,
            X,
            temperature.plan(PASSES),
            Monitor(),
            n_samples=X.shape[0],
            n_passes=PASSES,
        )
        # new arrays in each step, so the next fit does not change them
        fitted_counts.append(model.last)
    return merged(fitted_counts, n_components)
