r"""The Poisson deep exponential family of one layer: counts from sums of topics.

.. math::
   z_{dk} \sim \mathrm{Poisson}(\lambda_0), \quad
   x_{dv} \sim \mathrm{Poisson}\Big(\epsilon_v + \sum_k z_{dk}\, \mathrm{softplus}(W_{kv})\Big)

(Ranganath, Tang, Charlin, Blei 2015, *Deep exponential families*).  The background
:math:`\epsilon_v` is a small share of the mean count of each word.  It is needed because q gives
z = 0 some probability: without a background z = 0 would make every word impossible, and the ELBO
would be minus infinity.  :math:`q(z_{dk}) = \mathrm{Poisson}(\lambda_{dk})` has its own rate for
each datum and topic; W is a point estimate.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.distributions import Poisson, kl_divergence
from torch.nn.functional import embedding, softplus

from annealvi.checks import Interval, checked
from annealvi.deep.estimator import (
    LARGEST,
    TRAINING_CONSTRAINTS,
    Bound,
    BoundOf,
    Callback,
    DataEstimator,
    StatisticName,
    numbers,
    positive,
)
from annealvi.deep.noise import Noise, check_room
from annealvi.deep.penalties import ProximityLike, RunningPenalty
from annealvi.deep.statistics import OF_UNITS, Statistic
from annealvi.deep.training import SparseRows
from annealvi.files.schema import Integer, Number, Optional, Schema
from annealvi.matrices import check_csr
from annealvi.metrics.held_out import split_tokens
from annealvi.metrics.topics import top_words
from annealvi.schedules import Linear
from annealvi.temperature import Temperature

TINY = float(np.finfo(np.float64).tiny)
#: Rates are cut off here before a draw, as float32 cannot represent all larger counts.
LARGEST_RATE = 2.0**24
#: Number of documents whose local rates are fitted at a time.
BLOCK = 256
#: The first steps on rates of new documents are this many times as large as the last.
FASTER = 10.0

#: Sums of counts above this are not told apart in float32, and their products overflow.
MOST_WORDS = 1e15


class Counts(NamedTuple):
    """A batch of B documents: words and counts, (B, L), padded with word 0 of count 0."""

    columns: Tensor
    values: Tensor
    #: The share of each document that was seen, (B,), which multiplies its rates, because thinned
    #: Poisson counts are Poisson; None means whole documents.
    exposure: Tensor | None = None


class PoissonNetwork(nn.Module):
    """Topics, the local rates of the training data, and the penalty of q."""

    def __init__(
        self,
        mean: Tensor,
        n_components: int,
        n_samples: int,
        prior_rate: float,
        background: float,
        *,
        penalty: RunningPenalty | None = None,
    ) -> None:
        super().__init__()
        self.prior_rate = prior_rate
        # at the start the topics share the mean document at random
        noise = torch.randn(len(mean), n_components).mul(0.5).exp()
        start = mean[:, None] * noise / (noise.sum(dim=1, keepdim=True) * prior_rate)
        self.weights = nn.Parameter(start + torch.log(-torch.expm1(-start)))  # W^T
        log_rates = torch.full((n_samples, n_components), prior_rate).log()
        self.log_rates = nn.Parameter(log_rates)
        self.penalty = penalty
        self.background: Tensor
        self.register_buffer("background", background * mean)

    def topics(self) -> Tensor:
        """Return softplus(W) with one row per word, of shape (V, K)."""
        return softplus(self.weights)

    def log_likelihood(self, z: Tensor, counts: Counts, topics: Tensor) -> Tensor:
        """Return log p(x | z), of shape (B, S)."""
        x = counts.values
        at_words = z @ embedding(counts.columns, topics).transpose(1, 2)  # (B, S, L)
        rates = at_words + self.background[counts.columns][:, None]
        mass = z @ topics.sum(dim=0) + self.background.sum()
        if counts.exposure is not None:
            rates = counts.exposure[:, None, None] * rates
            mass = counts.exposure[:, None] * mass
        explained = (rates.log() @ x[:, :, None])[..., 0]  # padding has count 0
        return explained - mass - torch.lgamma(x + 1).sum(dim=1)[:, None]

    def statistic(self, statistic: Statistic, log_rates: Tensor) -> Tensor:
        """Return a proximity statistic of each component, averaged over documents."""
        q = Poisson(log_rates.exp(), validate_args=False)
        return statistic([(q, self._prior(log_rates))])

    def kl(self, log_rates: Tensor) -> Tensor:
        """Return KL(q || p) of each document, of shape (B,)."""
        q = Poisson(log_rates.exp(), validate_args=False)
        return kl_divergence(q, self._prior(log_rates)).sum(dim=-1)

    def _prior(self, like: Tensor) -> Poisson:
        return Poisson(like.new_tensor(self.prior_rate), validate_args=False)


class Estimate(NamedTuple):
    """The objective of a batch, estimated from draws from q."""

    #: Its gradient is an unbiased estimate of the gradient of the tempered ELBO; of shape (B,).
    surrogate: Tensor
    elbo: Tensor  # at T = 1, with the exact KL divergence and without gradient


def estimate(
    network: PoissonNetwork,
    log_rates: Tensor,
    counts: Counts,
    n_draws: int,
    noise: Noise,
    *,
    temperature: float = 1.0,
    topics: Tensor | None = None,
) -> Estimate:
    """Return a surrogate of E_q[log p(x, z) - T log q(z)] by score functions, and the ELBO."""
    # The score of the log of a rate is h = z - lambda.  For component k only the terms that depend
    # on z_k are kept, f_k = log p(x | z) + log p(z_k) - T log q(z_k).  The control variate is the
    # multiple of the score that gives the least variance, a_k = E[f_k h_k^2] / E[h_k^2] (Ranganath,
    # Gerrish, Blei 2014, Black box variational inference, with E h = 0).  For each draw it is
    # estimated from the other draws, so that the gradient is unbiased:
    # 1/S sum_i sum_k (f_ki - a_k,-i) h_ki.
    topics = network.topics() if topics is None else topics
    rates = log_rates.exp()
    drawn = rates.detach().clamp(max=LARGEST_RATE).nan_to_num()
    z = noise.poisson(drawn[:, None].expand(-1, n_draws, -1))
    log_likelihood = network.log_likelihood(z, counts, topics)
    log_q = z * log_rates[:, None] - rates[:, None]  # without -log z!, which is added to f below
    with torch.no_grad():
        log_factorial = torch.lgamma(z + 1)
        log_p = torch.xlogy(z, z.new_tensor(network.prior_rate))
        f = log_likelihood[..., None] + log_p - temperature * log_q
        f += (temperature - 1.0) * log_factorial
        advantage = f - _baseline(f, (z - rates[:, None]).square())
        elbo = log_likelihood.mean(dim=1) - network.kl(log_rates)
    score = (advantage * log_q).sum(dim=-1)
    return Estimate((score + log_likelihood).mean(dim=1), elbo)


def _baseline(f: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean of f over the other draws, along axis 1."""
    center = f.mean(dim=1, keepdim=True)  # has no effect but on rounding
    total = _sums_of_others(weights).clamp(min=torch.finfo(f.dtype).tiny)
    return center + _sums_of_others((f - center) * weights) / total


def _sums_of_others(x: Tensor) -> Tensor:
    """Return for each draw the sum over all others, along axis 1."""
    # Not the sum of all minus the draw: where a rate is small, one draw of z = 1 weighs so much
    # more than the others that this difference would lose them to rounding.
    nothing = torch.zeros_like(x[:, :1])
    before = torch.cat([nothing, x[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([nothing, x[:, 1:].flip(1).cumsum(dim=1)], dim=1).flip(1)
    return before + after


class PoissonDEF(DataEstimator):
    r"""Poisson deep exponential family of one layer, a topic model of counts.

    .. math::
       z_{dk} \sim \mathrm{Poisson}(\lambda_0), \quad
       x_{dv} \sim \mathrm{Poisson}\Big(\epsilon_v + \sum_k z_{dk}\,
       \mathrm{softplus}(W_{kv})\Big),

    with :math:`q(z_{dk}) = \mathrm{Poisson}(\lambda_{dk})` for each document and a point
    estimate of W.  Draws of counts have no gradient.  The gradient of
    :math:`E_q[\log p(x, z) - T \log q(z)]` is therefore estimated from several draws by score
    functions, with a control variate of least variance
    (:func:`annealvi.deep.poisson.estimate`).

    Parameters
    ----------
    n_components : int, default=20
        Number of topics K.

    prior_rate : float, default=0.1
        :math:`\lambda_0`, the prior rate of each topic in a document.  Small rates give sparse
        documents, of few topics each.  Down to about .1 they predict words better from a few other
        words; larger rates explain whole documents better (docs/deep_models.md).

    background : float, default=0.01
        :math:`\epsilon_v` as a share, in (0, 1), of the mean count of word v.  It gives
        documents without topics a probability above 0.

    n_draws : int, default=32
        S >= 2, the draws from q for each document in a step.  More make gradients less noisy and
        steps slower.

    proximity : None, str, callable or ProximityPenalty, default=None
        Penalty on moving q away from its recent past: ``"entropy"``, ``"kl"``, ``"mean"``,
        ``"variance"`` (the two are one for Poisson variables), ``"mean_variance"``, a statistic
        of your own, or a :class:`annealvi.deep.ProximityPenalty` to choose the magnitude too.
        The statistic of a topic is averaged over the documents of the minibatch.

    temperature : float, "annealed" or Temperature, default=1
        T of each step: a number >= 1, ``"annealed"``, or an object of :mod:`annealvi.temperature`
        that follows a plan.  T multiplies the entropy of q, whatever the `form` of the object.
        Values above 1 keep q broad, so that the fit explores; 1 is plain variational inference.

    n_local_steps : int, default=300
        Number of steps in which `transform`, `score` and `perplexity` fit the rates of new
        documents.

    learning_rate : float, default=0.01
        Step size of RMSProp.  Lower it if the fit diverges.  The rates of new documents are
        fitted with steps that fall from ten times this size to this size.

    batch_size : int, default=64
        Documents per step.

    max_iter : int, default=5000
        Number of steps.  W is a point estimate, so a long fit can overfit; watch `perplexity` of
        other documents.

    device : str, default="cpu"
        Where to fit: ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.

    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, of the order of the documents and of all draws, also those
        of `transform`, `score`, `perplexity` and `sample`.

    verbose : int, default=0
        Whether to show progress (needs tqdm).

    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  It can use the estimator in
        its current state.  ``monitor.record(name=value)`` writes into `history_`; raising
        ``StopIteration`` ends the fit.  A :class:`annealvi.checkpoint.Checkpoint` writes it to a
        file, to be resumed; a :class:`annealvi.progress.ProgressBar` shows how far it is.
        scikit-learn's own callbacks are set by `set_callbacks`, from its version 1.9 on.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`\mathrm{softplus}(W)`, the rates of words that each unit of a topic adds.

    background_ : ndarray of shape (n_features,)
        :math:`\epsilon`, the rates of words without topics.

    document_rates_ : ndarray of shape (n_samples, n_components)
        :math:`\lambda` of the training documents.

    network_ : torch.nn.Module
        :class:`annealvi.deep.poisson.PoissonNetwork`.

    n_iter_ : int
        Number of steps made.

    temperature_path_ : ndarray of shape (n_iter,)
        Temperature of each step.

    history_ : dict of str to ndarray
        About a thousand records of ``pass``, ``step``, ``temperature``, ``seconds`` and
        ``elbo`` (per document at T = 1, averaged over the steps since the last record).

    n_features_in_ : int
        Number of words V.

    feature_names_in_ : ndarray of shape (n_features,)
        The words, if X has string column names.

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

    STATISTICS = OF_UNITS
    ARCHITECTURE = Schema(
        n_features=Integer(1),
        n_components=Integer(1),
        n_samples=Integer(1),
        prior_rate=Number(TINY),
        background=Number(TINY, 1.0),
        proximity=Optional(StatisticName(*OF_UNITS)),
    )
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "prior_rate": [Interval(Real, 0, LARGEST, closed="right")],
        "background": [Interval(Real, 0, 1, closed="neither")],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "proximity": "no_validation",  # as_penalty has the message
        "temperature": "no_validation",  # _plan has it
        "n_local_steps": [Interval(Integral, 1, None, closed="left")],
        **TRAINING_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int = 20,
        *,
        prior_rate: float = 0.1,
        background: float = 0.01,
        n_draws: int = 32,
        proximity: ProximityLike = None,
        temperature: float | str | Temperature = 1,
        n_local_steps: int = 300,
        learning_rate: float = 0.01,
        batch_size: int = 64,
        max_iter: int = 5000,
        device: Any = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callback | Sequence[Callback] | None = None,
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

    @checked
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
            A file written by :meth:`save_state`: the fit continues from there up to `max_iter`.

        Returns
        -------
        self : PoissonDEF

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or if `resume` has another architecture.  The
            estimator then stays as it was.
        annealvi.exceptions.DivergenceError
            If the loss or its gradient is not finite.  The last finite state is kept.
        """
        return self._fit_data(X, y, resume)

    def _network(
        self, architecture: Mapping[str, Any], penalty: RunningPenalty | None, X: Any = None
    ) -> PoissonNetwork:
        mean = torch.empty(architecture["n_features"])
        if X is not None:
            # half a count more, so that no word is impossible
            total = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() + 0.5
            mean = torch.as_tensor((total / X.shape[0]).astype(np.float32))
        names = ("n_components", "n_samples", "prior_rate", "background")
        return PoissonNetwork(mean, *(architecture[name] for name in names), penalty=penalty)

    def _optimiser(self, parameters: Iterator[nn.Parameter]) -> torch.optim.RMSprop:
        return torch.optim.RMSprop(parameters, lr=self.learning_rate)

    def _bound(self, network: PoissonNetwork, X: Any, noise: Noise) -> BoundOf:
        n_draws = int(self.n_draws)

        def bound(rows: Tensor, t: float, step: int) -> Bound:
            log_rates = network.log_rates[rows]
            counts = Counts(*X.padded(rows))
            found = estimate(network, log_rates, counts, n_draws, noise, temperature=t)
            statistic = partial(network.statistic, log_rates=log_rates)
            return Bound(found.surrogate.mean(), found.elbo.mean(), statistic)

        return bound

    # -------------------------------------------------------------- afterwards

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return E_q[z] of documents, with their rates fitted while the topics are held fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            :math:`\\lambda` of each document, fitted to this document alone in `n_local_steps`
            steps from :math:`\\lambda_0`.
        """
        noise = self._draws()
        return self._local_rates(self._check_X(X, method="transform"), noise)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean ELBO per document at T = 1, with rates fitted as in `transform`.

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
        """Return the ELBO of each document at T = 1, with rates fitted as in `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.  The likelihood is estimated from `n_draws` draws.
        """
        noise = self._draws()
        return self._local_rates(self._check_X(X, method="score_samples"), noise)[1]

    def perplexity(self, X: Any, *, observed: float = 0.1) -> float:
        r"""Return the perplexity of most words of documents, given a few of them.

        The rates of a document are fitted to a random tenth of its words, rounded up, in
        `n_local_steps` steps.  (If a share e of a document was seen, its counts have e times the
        rate, because a thinned Poisson variable is Poisson.)  With
        :math:`r_{dv} = \epsilon_v + \sum_k \lambda_{dk} \mathrm{softplus}(W_{kv})` and the
        other words :math:`y_{dv}` it is

        .. math::
           \exp\Big(-\frac{\sum_{dv} y_{dv} \log (r_{dv} / \sum_u r_{du})}
           {\sum_{dv} y_{dv}}\Big)

        (Altosaar et al. 2018, Eq. 12).  Lower is better.  At worst it is about the number of
        words, where all words are equally probable.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents that were not used in `fit`.
        observed : float, default=0.1
            The share of each document's words that its rates are fitted to, in (0, 1).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no document has a word that is not observed.
        """
        check_is_fitted(self)
        X = self._check_X(X, method="perplexity")
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
        for k, topic in enumerate(topics):  # at the words of each document only
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
            How much of each topic is in each document.
        """
        noise, n_samples = self._draws(), positive(n_samples, "n_samples")
        network: PoissonNetwork = self.network_
        with torch.no_grad():
            shape = (n_samples, len(self.components_))
            check_room(shape)
            z = noise.poisson(network.background.new_full(shape, network.prior_rate))
            x = noise.poisson(z @ network.topics().T + network.background)
        return numbers(x), numbers(z)

    def top_words(self, n: int = 10, feature_names: ArrayLike | None = None) -> list[list[Any]]:
        """Return the n words to which each topic adds most, the largest first.

        Parameters
        ----------
        n : int, default=10
        feature_names : array-like of shape (n_features,), default=None
            The words; by default the column names seen in `fit`, or else the column numbers.

        Returns
        -------
        list of lists
            One list of words per topic.
        """
        check_is_fitted(self)
        return top_words(self.components_, n, feature_names, self)

    @property
    def components_(self) -> NDArray[np.float32]:
        """The rates of words that each unit of a topic adds."""
        return numbers(self.network_.topics().T)

    @property
    def background_(self) -> NDArray[np.float32]:
        """Rates of words without topics."""
        return numbers(self.network_.background)

    @property
    def document_rates_(self) -> NDArray[np.float32]:
        """E_q[z] of the training documents."""
        return numbers(self.network_.log_rates.exp())

    # ----------------------------------------------------------------- details

    def _local_rates(
        self, X: Any, noise: Noise, exposure: NDArray | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the rates of documents under fixed topics, and their ELBO."""
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
        start = topics.new_full((len(counts.values), topics.shape[1]), network.prior_rate)
        log_rates = start.log().requires_grad_()
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

    def _check_X(self, X: Any, reset: bool = False, method: str = "fit") -> sparse.csr_matrix:
        """Return X as a CSR matrix of counts, float32."""
        X = check_csr(X, estimator=self, reset=reset, dtype=(np.float32, np.float64))
        name, values = type(self).__name__, X.data
        if values.size and values.min() < 0:
            raise ValueError(f"Negative values in data passed to {name}.{method}")
        wrong = values[values != np.floor(values)]
        if wrong.size:
            raise ValueError(
                f"{name} needs counts: X must hold non-negative integers. Got {wrong[0]}."
            )
        total = float(values.sum(dtype=np.float64))
        if not total <= MOST_WORDS:
            raise ValueError(
                f"The counts in X must sum to at most {MOST_WORDS:.0e} in {name}. Got {total:.3g}."
            )
        return sparse.csr_matrix(X, dtype=np.float32)

    @property
    def _n_features_out(self) -> int:
        return self.network_.weights.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True  # integers
        return tags
