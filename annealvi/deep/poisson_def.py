"""PoissonDEF: scikit-learn's face over :mod:`annealvi.deep.models.poisson`."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from annealvi._top_words import top_columns
from annealvi._validation import canonical_csr, unchanged_on_error
from annealvi.deep._estimator import DeepEstimator, numbers, positive
from annealvi.deep._temperature import plan_temperature
from annealvi.deep.models.poisson import Counts, PoissonNetwork, estimate
from annealvi.deep.noise import Noise
from annealvi.deep.proximity import ProximityPenalty, as_penalty
from annealvi.deep.rows import SparseRows
from annealvi.deep.training import Outcome
from annealvi.inference import Monitor
from annealvi.metrics.held_out import split_tokens
from annealvi.schedules import Linear
from annealvi.temperature import Temperature

#: Of a Poisson's own rate there is no orthogonal statistic: q has no weights.
STATISTICS = ("entropy", "kl", "mean_variance")
#: Documents whose local rates are fitted side by side.
BLOCK = 256
#: Local rates of new documents move this many times as far at first as at last.
FASTER = 10.0


class PoissonDEF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepEstimator):
    r"""Poisson deep exponential family of one layer: a topic model of counts.

    .. math::
       z_{dk} \sim \mathrm{Poisson}(\lambda_0), \quad
       x_{dv} \sim \mathrm{Poisson}\Big(\epsilon_v + \sum_k z_{dk}\,
       \mathrm{softplus}(W_{kv})\Big),

    with :math:`q(z_{dk}) = \mathrm{Poisson}(\lambda_{dk})` of each document and a point
    estimate of W.  Counts have no gradient: that of
    :math:`E_q[\log p(x, z) - T \log q(z)]` is estimated from several draws by score functions,
    less the multiple of the score that varies least
    (:func:`annealvi.deep.models.poisson.estimate`).

    Parameters
    ----------
    n_components : int, default=20
        Number of topics K.

    prior_rate : float, default=0.1
        :math:`\lambda_0`.  Small rates make sparse documents: the smaller it was, down to a
        tenth, the better a few words told the others (docs/deep_proximity.md).

    background : float, default=0.01
        :math:`\epsilon_v` as a share, in (0, 1), of the word's mean count: without it a
        document without topics would be impossible.

    n_draws : int, default=32
        S >= 2, draws from q of each document a step.

    proximity : None, str or ProximityPenalty, default=None
        What q pays for leaving its recent past: ``"entropy"``, ``"kl"``,
        ``"mean_variance"`` or an object of :mod:`annealvi.deep.proximity`.  The statistic of
        a topic is averaged over the documents of the batch.

    temperature : float, "annealed" or Temperature, default=1
        T of each step: a number >= 1, or an object of :mod:`annealvi.temperature` that follows
        a plan.  T weighs log q, whatever the `form` of the object.

    n_local_steps : int, default=300
        Steps that `transform`, `score` and `perplexity` fit the rates of new documents with.

    learning_rate : float, default=0.01
        Of RMSProp.  Rates of new documents begin with steps of ten times that and end with
        this.

    batch_size : int, default=64
        Documents a step.

    max_iter : int, default=5000
        Steps.

    device : str, default="cpu"
        ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.

    random_state : int, RandomState instance or None, default=None
        Seed of the start, the order of the documents and the draws; `transform`, `score`,
        `perplexity` and `sample` draw from it too.

    verbose : int, default=0
        Whether to show progress (needs tqdm).

    callback : callable, default=None
        Called as ``callback(estimator, monitor)`` after each step; the estimator can be used
        as it then is.  ``monitor.record(name=value)`` writes into `history_`; raising
        ``StopIteration`` ends the fit.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`\mathrm{softplus}(W)`: what each unit of a topic adds to the rates of words.

    background_ : ndarray of shape (n_features,)
        :math:`\epsilon`.

    document_rates_ : ndarray of shape (n_samples, n_components)
        :math:`\lambda` of the documents that were fitted.

    network_ : torch.nn.Module
        :class:`annealvi.deep.models.poisson.PoissonNetwork`.

    n_iter_ : int
        Steps done.

    temperature_path_ : ndarray of shape (n_iter_,)
        T of each.

    history_ : dict of str to ndarray
        About a thousand records: ``pass``, ``step``, ``temperature``, ``seconds`` and
        ``elbo`` (at T = 1, a document, the mean since the record before).

    n_features_in_ : int
        Number of words V.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        The words, where X has string column names.

    References
    ----------
    Ranganath, Gerrish, Blei (2014), *Black box variational inference*, AISTATS.
    Ranganath, Tang, Charlin, Blei (2015), *Deep exponential families*, AISTATS.
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.

    Examples
    --------
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.deep import PoissonDEF
    >>> X = make_topic_corpus(50, 30, 3, random_state=0).data
    >>> topics = PoissonDEF(3, max_iter=10, n_local_steps=5, random_state=0).fit(X)
    >>> topics.transform(X).shape
    (50, 3)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "prior_rate": [Interval(Real, 0, None, closed="neither")],
        "background": [Interval(Real, 0, 1, closed="neither")],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "proximity": "no_validation",  # as_penalty has the message
        "temperature": "no_validation",  # plan_temperature has it
        "n_local_steps": [Interval(Integral, 1, None, closed="left")],
        **DeepEstimator._training_constraints,
    }

    def __init__(
        self,
        n_components: int = 20,
        *,
        prior_rate: float = 0.1,
        background: float = 0.01,
        n_draws: int = 32,
        proximity: str | ProximityPenalty | None = None,
        temperature: float | str | Temperature = 1,
        n_local_steps: int = 300,
        learning_rate: float = 0.01,
        batch_size: int = 64,
        max_iter: int = 5000,
        device: Any = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callable[[Any, Monitor], None] | None = None,
    ) -> None:
        self.n_components = n_components
        self.prior_rate = prior_rate
        self.background = background
        self.n_draws = n_draws
        self.proximity = proximity
        self.temperature = temperature
        self.n_local_steps = n_local_steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | os.PathLike | None = None) -> Self:
        """Learn topics from counts.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Word counts: non-negative integers, of any dtype.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            What :meth:`save_state` wrote: the fit goes on from there to `max_iter`.

        Returns
        -------
        self : PoissonDEF

        Raises
        ------
        ValueError
            If X or a parameter is out of range; the estimator stays as it was.
        DivergenceError
            If the loss is not finite any more; the last finite parameters are kept.
        """
        with unchanged_on_error(self) as keep:
            owner = type(self).__name__
            X = self._check_X(X, "fit", reset=True)
            self._penalty = as_penalty(self.proximity, owner, STATISTICS)
            self._n_samples = X.shape[0]
            per_pass = X.shape[0] / min(int(self.batch_size), X.shape[0])
            self._temperature = plan_temperature(
                self.temperature, int(self.max_iter), per_pass, owner
            )
            # half a word more, so that no word is impossible
            total = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() + 0.5
            self._mean = (total / X.shape[0]).astype(np.float32)
            return self._fit(X, keep, resume)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """E_q[z] of documents, whose rates are fitted with the topics held fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            :math:`\\lambda`, each document's after `n_local_steps` steps on its own from
            :math:`\\lambda_0`.
        """
        noise = self._draws()
        return self._local_rates(self._check_X(X, "transform"), noise)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean ELBO of a document at T = 1, its rates fitted as in `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
            In nats.
        """
        return float(np.mean(self.score_samples(X)))

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The ELBO of each document at T = 1, its rates fitted as in `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats, the likelihood estimated from `n_draws` draws.
        """
        noise = self._draws()
        return self._local_rates(self._check_X(X, "score_samples"), noise)[1]

    def perplexity(self, X: Any, *, observed: float = 0.1) -> float:
        r"""How surprising most words of documents are, given a few of them.

        A random tenth of each document's words, rounded up, gives its rates by
        `n_local_steps` steps (of a document of which a share e was seen, counts have e times
        the rate: a thinned Poisson variable is Poisson).  With
        :math:`r_{dv} = \epsilon_v + \sum_k \lambda_{dk} \mathrm{softplus}(W_{kv})` and the
        other words :math:`y_{dv}`,

        .. math::
           \exp\Big(-\frac{\sum_{dv} y_{dv} \log (r_{dv} / \sum_u r_{du})}
           {\sum_{dv} y_{dv}}\Big)

        (Altosaar et al. 2018, Eq. 12).  The lower, the better; the number of words at worst,
        about, where all are equally probable.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents that were not fitted.
        observed : float, default=0.1
            The share of each document's words that is observed, in (0, 1).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no document has a word that is not observed.
        """
        check_is_fitted(self)
        X = self._check_X(X, "perplexity")
        noise = self._draws()
        split = np.random.RandomState(int(noise.integers(2**31 - 1, 1)))
        seen, hidden = split_tokens(X, observed=observed, random_state=split)
        if not hidden.nnz:
            raise ValueError(
                "Perplexity needs documents with words that are not observed. Got "
                f"{X.shape[0]} documents of at most {int(X.sum(axis=1).max())} words with "
                f"observed={observed!r}."
            )
        length = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        share = np.asarray(seen.sum(axis=1, dtype=np.float64)).ravel() / np.maximum(length, 1)
        rates = self._local_rates(seen, noise, np.where(length > 0, share, 1.0))[0]
        topics = self.components_.astype(np.float64)
        document, word = hidden.nonzero()
        rate = self.background_[word].astype(np.float64)
        for k, topic in enumerate(topics):  # a document is never dense
            rate += rates[document, k] * topic[word]
        mass = float(self.background_.sum(dtype=np.float64)) + rates @ topics.sum(axis=1)
        log_p = np.log(rate) - np.log(mass[document])
        return float(np.exp(-(hidden.data @ log_p) / hidden.data.sum()))

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draw documents from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Word counts.
        Z : ndarray of shape (n_samples, n_components)
            How much of each topic is in each.
        """
        noise, n_samples = self._draws(), positive(n_samples, "n_samples")
        network: PoissonNetwork = self.network_
        with torch.no_grad():
            shape = (n_samples, len(self.components_))
            z = noise.poisson(torch.full(shape, network.prior_rate)).to(noise.device)
            x = noise.poisson(z @ network.topics().T + network.background)
        return numbers(x), numbers(z)

    def top_words(self, n: int = 10, feature_names: ArrayLike | None = None) -> list[list[Any]]:
        """The n words that each topic adds most to, most first.

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
        n = positive(n, "n")
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        names = np.asarray(feature_names)
        if names.shape != (self.n_features_in_,):
            raise ValueError(
                f"'feature_names' must have one name for each of the {self.n_features_in_} "
                f"features. Got shape {names.shape} instead."
            )
        return names[top_columns(self.components_, n)].tolist()

    @property
    def components_(self) -> NDArray[np.float32]:
        """What each unit of a topic adds to the rates of words."""
        return numbers(self.network_.topics().T)

    @property
    def background_(self) -> NDArray[np.float32]:
        """Rates of words without topics."""
        return numbers(self.network_.background)

    @property
    def document_rates_(self) -> NDArray[np.float32]:
        """E_q[z] of the documents that were fitted."""
        return numbers(self.network_.log_rates.exp())

    # ----------------------------------------------------------------- details

    def _architecture(self) -> dict[str, Any]:
        return {
            "n_features": int(self.n_features_in_),
            "n_components": int(self.n_components),
            "n_samples": int(self._n_samples),  # each has rates
            "prior_rate": float(self.prior_rate),
            "background": float(self.background),
            "proximity": None if self._penalty is None else self._penalty.statistic,
        }

    def _network(self) -> PoissonNetwork:
        penalty = None if self._penalty is None else self._penalty.plan(int(self.max_iter))
        return PoissonNetwork(
            torch.as_tensor(self._mean),
            int(self.n_components),
            int(self._n_samples),
            prior_rate=float(self.prior_rate),
            background=float(self.background),
            penalty=penalty,
        )

    def _optimiser(self, network: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.RMSprop(network.parameters(), lr=self.learning_rate)

    def _objective(
        self, network: PoissonNetwork, X: SparseRows, noise: Noise
    ) -> Callable[[Any, int], Outcome]:
        n_draws, planned, penalty = int(self.n_draws), self._temperature, network.penalty

        def outcome(rows: torch.Tensor, step: int) -> Outcome:
            temperature = 1.0 / planned.inverse(step)
            log_rates = network.log_rates[rows]
            found = estimate(
                network,
                log_rates,
                Counts(*X.padded(rows)),
                n_draws,
                noise,
                temperature=temperature,
            )
            loss, elbo = -found.surrogate.mean(), found.elbo.mean()
            if penalty is not None:
                value = network.statistic(penalty.statistic, log_rates)
                loss = loss + penalty(value, step, elbo * len(rows))
            return Outcome(loss, elbo, temperature)

        return outcome

    def _local_rates(
        self, X: Any, noise: Noise, exposure: NDArray | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Rates of documents, the topics held fixed, and their ELBO.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, n_features)
        noise : Noise
        exposure : ndarray of shape (n_samples,), optional
            The share of each document that X has.
        """
        data = SparseRows(X, noise.device)
        seen = None if exposure is None else self._tensor(exposure)
        results = []
        for first in range(0, len(data), BLOCK):
            rows = torch.arange(first, min(first + BLOCK, len(data)), device=noise.device)
            share = None if seen is None else seen[rows]
            results.append(self._fit_rates(Counts(*data.padded(rows), share), noise))
        rates, elbo = (np.concatenate(parts) for parts in zip(*results, strict=True))
        return rates, elbo.astype(np.float64)

    def _fit_rates(self, counts: Counts, noise: Noise) -> tuple[NDArray, NDArray]:
        network: PoissonNetwork = self.network_
        n_draws, n_steps = int(self.n_draws), int(self.n_local_steps)
        with torch.no_grad():
            topics = network.topics()
        start = torch.full((len(counts.values), topics.shape[1]), network.prior_rate).log()
        log_rates = start.to(noise.device).requires_grad_()
        optimiser = torch.optim.RMSprop([log_rates], lr=self.learning_rate)
        falling = Linear(FASTER * self.learning_rate, self.learning_rate)
        for step in range(n_steps):
            optimiser.param_groups[0]["lr"] = falling(step / n_steps)
            found = estimate(network, log_rates, counts, n_draws, noise, topics=topics)
            log_rates.grad = None
            (-found.surrogate.sum()).backward()
            optimiser.step()
        with torch.no_grad():
            elbo = estimate(network, log_rates, counts, n_draws, noise, topics=topics).elbo
        return numbers(log_rates.exp()), numbers(elbo)

    def _check_X(self, X: Any, method: str, reset: bool = False) -> sparse.csr_matrix:
        """X as a CSR matrix of float32, of counts."""
        X = validate_data(self, X, reset=reset, dtype=[np.float32, np.float64], accept_sparse="csr")
        X = canonical_csr(X) if sparse.issparse(X) else sparse.csr_matrix(X)
        name, values = type(self).__name__, X.data
        if values.size and values.min() < 0:
            raise ValueError(f"Negative values in data passed to {name}.{method}")
        wrong = values[values != np.floor(values)]
        if wrong.size:
            raise ValueError(
                f"{name} needs counts: X must hold non-negative integers. Got {wrong[0]}."
            )
        return sparse.csr_matrix(X, dtype=np.float32)

    @property
    def _n_features_out(self) -> int:
        return self.network_.weights.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True  # integers
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
