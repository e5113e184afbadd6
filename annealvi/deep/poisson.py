"""The Poisson deep exponential family with one layer, a topic model of counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted, check_non_negative
from torch import Tensor
from torch.distributions import Poisson, kl_divergence
from torch.nn import Module, Parameter
from torch.nn.functional import embedding, pad, softplus

from annealvi.checks import COUNT, TINY, Interval, check_counts
from annealvi.deep.estimator import LARGEST, Bound, DataEstimator
from annealvi.deep.penalties import OF_UNITS, RunningPenalty, Statistic, as_penalty
from annealvi.deep.training import Noise, Outcome, SparseRows, column_means, numbers
from annealvi.files.schema import Integer, Number
from annealvi.matrices import check_csr, summed
from annealvi.metrics.held_out import split_tokens
from annealvi.metrics.topics import top_words
from annealvi.schedules import Linear

#: Rates are limited to this before a draw, because float32 cannot represent all larger counts.
LARGEST_RATE = 2.0**24
#: Number of documents whose local rates are fitted together.
BLOCK = 256
#: The first step that fits the rates of new documents is this many times as large as the last.
FASTER = 10.0


class DocumentBatch(NamedTuple):
    """A batch of B documents: words and counts of shape (B, L), padded with word 0 of count 0."""

    columns: Tensor
    values: Tensor
    #: The observed share of each document, of shape (B,), or None for whole documents.  It
    #: multiplies the rates, because a random part of a Poisson count is a Poisson count.
    exposure: Tensor | None = None


class PoissonNetwork(Module):
    """The topics, and the local rates of the training documents."""

    def __init__(
        self, mean: Tensor, n_components: int, n_samples: int, prior_rate: float, background: float
    ) -> None:
        """Make a network for `n_samples` documents, whose words have the counts `mean` on average.

        The rate of a word without any topic is `background` times its mean.
        """
        super().__init__()
        self.n_components = n_components
        self.prior_rate = prior_rate
        # at the start the mean document is divided among the topics at random
        noise = torch.randn(len(mean), n_components).mul(0.5).exp()
        start = mean[:, None] * noise / (noise.sum(dim=1, keepdim=True) * prior_rate)
        # W^T, the inverse softplus of the topics
        self.weights = Parameter(start + torch.log(-torch.expm1(-start)))
        # q of each document is the prior at the start
        self.log_rates = Parameter(torch.full((n_samples, n_components), prior_rate).log())
        self.background: Tensor
        self.register_buffer("background", background * mean)

    def topics(self) -> Tensor:
        """Return softplus(W) with one row per word, of shape (V, K)."""
        return softplus(self.weights)

    def log_likelihood(self, z: Tensor, counts: DocumentBatch, topics: Tensor) -> Tensor:
        """Return log p(x | z) for S draws of z for each of B documents, of shape (B, S)."""
        x = counts.values
        at_words = z @ embedding(counts.columns, topics).transpose(1, 2)  # (B, S, L)
        rates = at_words + self.background[counts.columns][:, None]
        mass = z @ topics.sum(dim=0) + self.background.sum()  # the sum of the rates of all words
        if counts.exposure is not None:
            rates = counts.exposure[:, None, None] * rates
            mass = counts.exposure[:, None] * mass
        # log Poisson(x; rate) = x log rate - rate - log x!, whose first term is 0 if x = 0
        explained = (rates.log() @ x[:, :, None])[..., 0]  # padding has count 0
        return explained - mass - torch.lgamma(x + 1).sum(dim=1)[:, None]

    def statistic(self, statistic: Statistic, log_rates: Tensor) -> Tensor:
        """Return a proximity statistic of each component, averaged over documents."""
        return statistic([self._q_and_prior(log_rates)])

    def kl(self, log_rates: Tensor) -> Tensor:
        """Return KL(q || p) of each document, of shape (B,)."""
        return kl_divergence(*self._q_and_prior(log_rates)).sum(dim=-1)

    def _q_and_prior(self, log_rates: Tensor) -> tuple[Poisson, Poisson]:
        """Return q(z) of documents and p(z), unchecked: a fit that diverges raises later."""
        prior_rate = log_rates.new_tensor(self.prior_rate)
        q = Poisson(log_rates.exp(), validate_args=False)
        return q, Poisson(prior_rate, validate_args=False)

    def sample(self, n_samples: int, noise: Noise) -> tuple[Tensor, Tensor]:
        """Draw counts and z from p."""
        z = noise.poisson(self.background.new_full((n_samples, self.n_components), self.prior_rate))
        return noise.poisson(z @ self.topics().T + self.background), z


def estimate(
    network: PoissonNetwork,
    log_rates: Tensor,
    counts: DocumentBatch,
    n_draws: int,
    noise: Noise,
    *,
    temperature: float = 1.0,
    topics: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return, for each document, a number whose gradient is that of the bound, and the ELBO."""
    # The bound is E_q[log p(x, z) - T log q(z)]; the gradient of the first number is an unbiased
    # estimate of its gradient.  The ELBO is at T = 1, with the exact KL and without gradient.
    # The score of the logarithm of a rate is h = z - lambda.  For component k only the terms that
    # depend on z_k are kept, f_k = log p(x | z) + log p(z_k) - T log q(z_k).  The control variate
    # is the multiple of the score that gives the least variance, a_k = E[f_k h_k^2] / E[h_k^2]
    # (Ranganath, Gerrish, Blei 2014, Black box variational inference, with E h = 0).  For each draw
    # it is estimated from the other draws, so the gradient is unbiased:
    # 1/S sum_i sum_k (f_ki - a_k,-i) h_ki.
    topics = network.topics() if topics is None else topics
    rates = log_rates.exp()
    # PyTorch raises an error for NaN or too large rates; a fit that diverges raises its own later
    drawable_rates = rates.detach().clamp(max=LARGEST_RATE).nan_to_num()
    z = noise.poisson(drawable_rates[:, None].expand(-1, n_draws, -1))  # (B, S, K)
    log_likelihood = network.log_likelihood(z, counts, topics)
    log_q = z * log_rates[:, None] - rates[:, None]  # -log z! is added to f below
    with torch.no_grad():
        log_factorial = torch.lgamma(z + 1)
        log_p = torch.xlogy(z, z.new_tensor(network.prior_rate))  # without -log z! and a constant
        f = log_likelihood[..., None] + log_p - temperature * log_q
        f += (temperature - 1.0) * log_factorial  # -log z! of log p, and +T log z! of -T log q
        advantage = f - _baseline(f, (z - rates[:, None]).square())
        elbo = log_likelihood.mean(dim=1) - network.kl(log_rates)
    score = (advantage * log_q).sum(dim=-1)
    return (score + log_likelihood).mean(dim=1), elbo


def _baseline(f: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean of f over the other draws, along axis 1."""
    center = f.mean(dim=1, keepdim=True)  # this only reduces rounding errors
    total = _sums_of_others(weights).clamp(min=torch.finfo(f.dtype).tiny)  # a divisor
    return center + _sums_of_others((f - center) * weights) / total


def _sums_of_others(x: Tensor) -> Tensor:
    """Return for each draw the sum over all other draws, along axis 1."""
    # The sum of all draws minus one draw would be inaccurate: if a rate is small, a draw of z = 1
    # is so much larger than the others that the difference would consist of rounding errors.
    shift = (0, 0, 1, -1)  # a row of zeros is put first, and the last row is left out
    # sums over the draws before and after each draw
    before = pad(x, shift).cumsum(dim=1)
    after = pad(x.flip(1), shift).cumsum(dim=1).flip(1)
    return before + after


@dataclass(eq=False, repr=False)
class PoissonDEF(DataEstimator):
    r"""Poisson deep exponential family with one layer, a topic model of counts.

    .. math::
       z_{dk} \sim \mathrm{Poisson}(\lambda_0), \quad
       x_{dv} \sim \mathrm{Poisson}\Big(\epsilon_v + \sum_k z_{dk}\,
       \mathrm{softplus}(W_{kv})\Big),

    with :math:`q(z_{dk}) = \mathrm{Poisson}(\lambda_{dk})` for each document and a point estimate
    of W.  Draws of counts have no gradient.  The gradient of :math:`E_q[\log p(x, z) - T \log
    q(z)]` is therefore estimated from several draws by the score-function method, with the control
    variate that gives the least variance (:func:`annealvi.deep.poisson.estimate`).

    Parameters
    ----------
    n_components : int, default=20
        Number of topics K.
    prior_rate : float, default=0.1
        The prior rate :math:`\lambda_0` of each topic in a document.  With small rates, documents
        have few topics.  Smaller rates, down to about 0.1, are better for predicting a document
        from a few of its words.  Larger rates explain whole documents better.
    background : float, default=0.01
        The rate :math:`\epsilon_v` of word v without any topic, as a fraction of the word's mean
        count, in (0, 1).  This rate keeps the ELBO finite: under q all z of a document can be 0,
        and without a background rate no word could then occur.
    n_draws : int, default=32
        The number S >= 2 of draws from q for each document in a step.  More draws make gradients
        less noisy and steps slower.
    proximity : None, str, callable or ProximityPenalty, default=None
        A penalty on the distance between q and its average over past steps.  Pass the name of a
        statistic of q (``"entropy"``, ``"kl"``, ``"mean"``, ``"variance"`` or ``"mean_variance"``),
        your own statistic, or a :class:`annealvi.deep.ProximityPenalty`, which also sets the
        magnitude of the penalty.  ``"mean"`` and ``"variance"`` have the same effect, because a
        Poisson variance equals the mean.  Statistics of topics are averaged over the minibatch.
        New documents are fitted one by one, so your own statistic must be finite for one document.
    temperature : float, "annealed" or Temperature, default=1
        The temperature T of each step: a number >= 1, ``"annealed"``, or an object of
        :mod:`annealvi.temperature` that does not learn T.  T multiplies the entropy of q, whatever
        the `form` of the object.  T > 1 keeps q broad; T = 1 is plain variational inference.
    n_local_steps : int, default=300
        Number of steps in which `transform`, `score` and `perplexity` fit the rates of new
        documents.
    learning_rate : float, default=0.01
        The step size of RMSProp.  Use a smaller step size if the fit diverges.  For the rates of
        new documents, the step size begins at ten times this value, and falls to this value.
    batch_size : int, default=64
        Number of documents in each step.
    max_iter : int, default=5000
        Number of steps.  A long fit can overfit, because W is a point estimate.  To see whether it
        does, compute `perplexity` of documents that were not used in the fit.
    device : str, default="cpu"
        The device on which to fit: ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.
    random_state : int, RandomState instance or None, default=None
        The random seed of the initial weights, of the order of the documents and of all draws,
        including those in `transform`, `score`, `perplexity` and `sample`.
    verbose : int, default=0
        If not 0, show a progress bar.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  The callback can use the
        estimator, write into `history_` with ``monitor.record(name=value)``, and raise
        ``StopIteration`` to end the fit.  Examples are :class:`annealvi.callbacks.Checkpoint` and
        :class:`annealvi.callbacks.ProgressBar`.  From scikit-learn 1.9 on, `set_callbacks` sets
        scikit-learn's own callbacks.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`\mathrm{softplus}(W)`: for each topic, the rates that it adds to words if its z is 1.
    background_ : ndarray of shape (n_features,)
        The rates :math:`\epsilon` of words without any topic.
    document_rates_ : ndarray of shape (n_samples, n_components)
        The rates :math:`\lambda` of the training documents.
    network_ : torch.nn.Module
        The network, a :class:`annealvi.deep.poisson.PoissonNetwork`.
    n_iter_ : int
        Number of steps made.
    temperature_path_ : ndarray of shape (n_iter,)
        The temperature of each step.
    history_ : dict of str to ndarray
        About a thousand records of ``pass``, ``step``, ``temperature``, ``seconds`` and ``elbo``.
        ``elbo`` is the ELBO per document at T = 1, averaged over the steps since the last record.
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
    ARCHITECTURE: ClassVar[dict] = {
        "n_components": Integer(1),
        "prior_rate": Number(TINY),
        "background": Number(TINY, 1.0),
    }
    _parameter_constraints: ClassVar[dict] = {
        **DataEstimator._parameter_constraints,
        "n_components": COUNT,
        "prior_rate": [Interval(Real, 0, LARGEST, closed="right")],
        "background": [Interval(Real, 0, 1, closed="neither")],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "n_local_steps": COUNT,
    }

    n_components: int = 20
    _: KW_ONLY
    prior_rate: float = 0.1
    background: float = 0.01
    n_draws: int = 32
    n_local_steps: int = 300
    learning_rate: float = 0.01
    batch_size: int = 64
    max_iter: int = 5000

    def _network(self, architecture: Mapping[str, Any], X: Any = None) -> PoissonNetwork:
        """Return a network for data X; without X its weights come from a file."""
        mean = torch.empty(architecture["n_features"])  # arbitrary numbers, if the file has others
        if X is not None:
            mean = column_means(X, added=0.5)  # half a count, so that no word is impossible
        names = ("n_samples", *self.ARCHITECTURE)
        return PoissonNetwork(mean, **{name: architecture[name] for name in names})

    def _optimiser(self, parameters: Iterator[Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of the network, or of the rates of new documents."""
        return torch.optim.RMSprop(parameters, lr=float(self.learning_rate))

    def _bound(self, network: PoissonNetwork, X: Any, noise: Noise) -> Bound:
        """Return the function that computes the bound of a minibatch of X, a SparseRows."""
        n_draws = int(self.n_draws)

        def bound(rows: Tensor, t: float, step: int) -> Outcome:
            """Return the outcome of a step at temperature t; a row is a document's number."""
            log_rates = network.log_rates[rows]
            counts = DocumentBatch(*X.padded(rows))  # whole documents
            # a number with the gradient of the bound, and the ELBO, for each document
            surrogate, elbo = estimate(network, log_rates, counts, n_draws, noise, temperature=t)

            def statistic(f: Statistic, averaged: PoissonNetwork | None = None) -> Tensor:
                """Return f of q, or of the q of a network with averaged parameters."""
                return network.statistic(f, averaged.log_rates[rows] if averaged else log_rates)

            return Outcome(-surrogate.mean(), elbo.mean(), t, statistic)

        return bound

    # -------------------------------------------------------------- afterwards

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return E_q[z] of documents: their rates are fitted, and the topics do not change.

        The penalty of `proximity` applies to each document separately.  `temperature` is not used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            The rates :math:`\\lambda` of each document.  Each document is fitted separately, in
            `n_local_steps` steps that start from :math:`\\lambda_0`.
        """
        return self._local_rates(self._check_X(X), self._draws())[0]

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean ELBO per document at T = 1, with rates fitted as in `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
            The mean ELBO, in nats.
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
            The ELBO of each document, in nats, estimated from `n_draws` draws.
        """
        return self._local_rates(self._check_X(X), self._draws())[1]

    def perplexity(self, X: Any, *, observed: float = 0.1) -> float:
        r"""Return the perplexity of the hidden words of each document, given its observed words.

        The rates of a document are fitted to its observed words (a random tenth, rounded up) in
        `n_local_steps` steps.  (If a share e of the words is observed, their rates are e times the
        document's, because a random part of a Poisson count is a Poisson count.)  Let words have
        rates :math:`r_{dv} = \epsilon_v + \sum_k \lambda_{dk} \mathrm{softplus}(W_{kv})`, and let
        :math:`y_{dv}` be the counts of the hidden words.  The perplexity is

        .. math::
           \exp\Big(-\frac{\sum_{dv} y_{dv} \log (r_{dv} / \sum_u r_{du})}
           {\sum_{dv} y_{dv}}\Big)

        (Altosaar et al. 2018, Eq. 12).  Lower is better.  If all words are equally probable, the
        perplexity is V, the size of the vocabulary.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents that were not used in `fit`.
        observed : float, default=0.1
            The share of a document's words to which its rates are fitted, in (0, 1).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If there are no hidden words.
        """
        noise = self._draws()
        X = self._check_X(X)
        seen, hidden = split_tokens(X, observed=observed, random_state=RandomState(noise.seed()))
        if not hidden.nnz:
            raise ValueError(
                f"With observed={observed!r}, all words of the {X.shape[0]} documents are observed "
                "and none are left to predict. Pass a smaller 'observed', or longer documents."
            )
        lengths = summed(X, axis=1, dtype=float)
        # the observed share of each document, or 1 if it has no words
        share = np.where(lengths, summed(seen, axis=1, dtype=float) / np.maximum(lengths, 1), 1.0)
        rates, _ = self._local_rates(seen, noise, share)
        topics = self.components_.astype(float)
        document, word = hidden.nonzero()  # of each entry of `hidden`
        rate = self.background_[word].astype(float)
        for k, topic in enumerate(topics):  # only for the words of each document
            rate += rates[document, k] * topic[word]
        # the sum of the rates of all words of each document
        mass = self.background_.sum(dtype=float) + rates @ topics.sum(axis=1)
        log_p = np.log(rate) - np.log(mass[document])
        return float(np.exp(-(hidden.data @ log_p) / hidden.data.sum()))

    def top_words(self, n: int = 10, feature_names: ArrayLike | None = None) -> list[list[Any]]:
        """Return the n words with the highest rates in each topic, the highest rate first.

        Parameters
        ----------
        n : int, default=10
        feature_names : array-like of shape (n_features,), default=None
            The words.  By default these are the column names of the X that `fit` received, or the
            column numbers if X had no names.

        Returns
        -------
        list of lists
            One list of words for each topic.
        """
        check_is_fitted(self)
        return top_words(self.components_, n, feature_names, self)

    @property
    def components_(self) -> NDArray[np.float32]:
        """For each topic, the rates that it adds to the words if its z is 1."""
        return numbers(self.network_.topics().T)

    @property
    def background_(self) -> NDArray[np.float32]:
        """The rates of words without any topic."""
        return numbers(self.network_.background)

    @property
    def document_rates_(self) -> NDArray[np.float32]:
        """The means of q(z) of the training documents."""
        return numbers(self.network_.log_rates.exp())

    # ----------------------------------------------------------------- details

    def _local_rates(
        self, X: Any, noise: Noise, exposure: NDArray | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the rates of documents under fixed topics, and their ELBO.

        `exposure` is the observed share of each document; None means whole documents.
        """
        self._validate_params()  # the user may have set parameters after the fit
        data = SparseRows(X, noise.device)
        shares = None if exposure is None else self._tensor(exposure)
        batches = (
            DocumentBatch(*data.padded(rows), None if shares is None else shares[rows])
            for rows in torch.arange(len(data), device=noise.device).split(BLOCK)
        )
        fits = [self._fit_rates(counts, noise) for counts in batches]
        rates, elbos = zip(*fits, strict=True)
        return np.concatenate(rates), np.concatenate(elbos).astype(float)

    def _fit_rates(self, counts: DocumentBatch, noise: Noise) -> tuple[NDArray, NDArray]:
        """Return the rates of a batch of documents under fixed topics, and their ELBO."""
        network = self.network_
        n_steps = int(self.n_local_steps)
        proximity = as_penalty(self.proximity, self.STATISTICS)
        penalty = None if proximity is None else proximity.plan(n_steps)
        with torch.no_grad():
            topics = network.topics()
        start = topics.new_full((len(counts.values), topics.shape[1]), network.prior_rate)
        log_rates = start.log().requires_grad_()
        optimiser = self._optimiser(iter([log_rates]))
        last_step_size = float(self.learning_rate)
        step_size = Linear(FASTER * last_step_size, last_step_size)
        bound = partial(estimate, network, log_rates, counts, self.n_draws, noise, topics=topics)
        first_magnitude = None  # k_0, by default of each document
        for step in range(n_steps):
            # large step sizes at the beginning
            optimiser.param_groups[0]["lr"] = step_size(step / n_steps)
            optimiser.zero_grad()
            surrogate, elbo = bound()
            loss = -surrogate.sum()
            if penalty is not None:
                if first_magnitude is None:
                    user_magnitude = penalty.memory.first
                    first_magnitude = elbo.abs() if user_magnitude is None else user_magnitude
                distances = self._distances_from_past(penalty, log_rates)
                decrease = penalty.decrease(step / n_steps)
                loss = loss + decrease * (first_magnitude * distances).sum()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            _, elbo = bound()
            return numbers(log_rates.exp()), numbers(elbo)

    def _distances_from_past(self, penalty: RunningPenalty, log_rates: Tensor) -> Tensor:
        """Return the distance between each document's q and its past, of shape (B,)."""
        custom = penalty.statistic.custom

        def statistic(log_rates: Tensor) -> Tensor:
            """Return the penalty's statistic of all documents, in one row."""
            # documents are fitted separately, so the statistic is not averaged over documents
            # a built-in one treats units separately, so all units can pass as one document's
            rows = log_rates.split(1) if custom else [log_rates.reshape(1, -1)]
            return torch.cat([self.network_.statistic(penalty.statistic, row) for row in rows])

        value = statistic(log_rates)
        if penalty.of_parameters:
            with torch.no_grad():
                average = penalty.update_average(log_rates.flatten())
                past_value = statistic(average.view_as(log_rates))
        else:
            past_value = penalty.update_average(value)
        distances = penalty.distances(value - past_value)
        if custom:
            return distances.view(len(log_rates), -1).sum(dim=1)
        # the first value of all units of all documents comes first, then the second value
        return distances.view(-1, *log_rates.shape).sum(dim=(0, 2))

    def _check_X(self, X: Any, reset: bool = False) -> csr_matrix:
        """Return X as a CSR matrix of counts, float32; `reset` sets the features (in `fit`)."""
        X = check_csr(X, estimator=self, reset=reset, dtype=(np.float32, np.float64))
        name = type(self).__name__
        check_non_negative(X, name)
        wrong = X.data[X.data != np.floor(X.data)]
        if wrong.size:
            raise ValueError(
                f"X must contain counts, non-negative integers, for {name}. Got {wrong[0]}."
            )
        check_counts(X, dtype=np.float32)  # that float32 represents them
        return csr_matrix(X, dtype=np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True  # integers
        return tags
