"""PoissonDEF: the network of :mod:`annealvi.deep.models.poisson` as an estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import _fit_context
from torch import nn

from annealvi.checks import Interval, unchanged_on_error
from annealvi.deep.estimators.base import LARGEST, TRAINING_CONSTRAINTS, Callback, Plan
from annealvi.deep.estimators.data import (
    Bound,
    integers,
    penalised,
    penalty_name,
    plan_parameters,
    saved_penalty,
)
from annealvi.deep.estimators.fitted_poisson import FittedPoissonDEF
from annealvi.deep.models.poisson import Counts, PoissonNetwork, estimate
from annealvi.deep.noise import Noise
from annealvi.deep.penalties import ProximityLike
from annealvi.deep.rows import SparseRows
from annealvi.deep.statistics import OF_UNITS
from annealvi.deep.training import Outcome
from annealvi.files import Node
from annealvi.temperature import Temperature
from annealvi.threads import writing

TINY = float(np.finfo(np.float64).tiny)


class PoissonDEF(FittedPoissonDEF):
    r"""Poisson deep exponential family of one layer, a topic model of counts.

    .. math::
       z_{dk} \sim \mathrm{Poisson}(\lambda_0), \quad
       x_{dv} \sim \mathrm{Poisson}\Big(\epsilon_v + \sum_k z_{dk}\,
       \mathrm{softplus}(W_{kv})\Big),

    with :math:`q(z_{dk}) = \mathrm{Poisson}(\lambda_{dk})` for each document and a point
    estimate of W.  Draws of counts have no gradient.  The gradient of
    :math:`E_q[\log p(x, z) - T \log q(z)]` is therefore estimated from several draws by score
    functions, with a control variate of least variance
    (:func:`annealvi.deep.models.poisson.estimate`).

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
        :class:`annealvi.deep.models.poisson.PoissonNetwork`.

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

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "prior_rate": [Interval(Real, 0, LARGEST, closed="right")],
        "background": [Interval(Real, 0, 1, closed="neither")],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "proximity": "no_validation",  # as_penalty has the message
        "temperature": "no_validation",  # plan_temperature has it
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
        with writing(self), unchanged_on_error(self) as keep:
            given, X = (X, y), self._check_X(X, "fit", reset=True)
            n_samples = int(X.shape[0])
            temperature, penalty = plan_parameters(self, n_samples, OF_UNITS)
            # half a count more, so that no word is impossible
            total = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() + 0.5
            plan = Plan(
                architecture={
                    "n_features": int(self.n_features_in_),
                    "n_components": int(self.n_components),
                    "n_samples": n_samples,  # each document has rates of its own
                    "prior_rate": float(self.prior_rate),
                    "background": float(self.background),
                    "proximity": penalty_name(penalty),
                },
                build=partial(
                    PoissonNetwork,
                    torch.as_tensor((total / n_samples).astype(np.float32)),
                    int(self.n_components),
                    n_samples,
                    prior_rate=float(self.prior_rate),
                    background=float(self.background),
                    penalty=penalty,
                ),
                objective=partial(
                    negative_bound, n_draws=int(self.n_draws), temperature=temperature
                ),
                optimiser=self._optimiser,
            )
            return self._fit(X, plan, keep, resume, given)

    def load_state_dict(self, node: Node) -> None:
        """Take over a fitted state, for :func:`annealvi.load`.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the state is not one of this class.
        """
        self._validate_params()
        saved = node.node("fit").node("architecture")
        sizes = integers(saved, "n_features", "n_components", "n_samples")
        prior_rate = saved.number("prior_rate", TINY)
        background = saved.number("background", TINY, 1.0)
        penalty = saved_penalty(saved, self, OF_UNITS)

        def build() -> PoissonNetwork:
            mean = torch.empty(sizes["n_features"])
            shape = sizes["n_components"], sizes["n_samples"]
            return PoissonNetwork(
                mean, *shape, prior_rate=prior_rate, background=background, penalty=penalty
            )

        architecture = {
            **sizes,
            "prior_rate": prior_rate,
            "background": background,
            "proximity": penalty_name(penalty),
        }
        self._load(node, architecture, build, self._optimiser)

    def _optimiser(self, parameters: Iterator[nn.Parameter]) -> torch.optim.RMSprop:
        return torch.optim.RMSprop(parameters, lr=self.learning_rate)


def negative_bound(
    network: PoissonNetwork,
    X: SparseRows,
    noise: Noise,
    *,
    n_draws: int,
    temperature: Temperature,
) -> Callable[[Any, int], Outcome]:
    """Return the objective that a fit of this model minimises.

    Parameters
    ----------
    network : PoissonNetwork
        With the penalty of the fit.
    X : SparseRows
        The documents.
    noise : Noise
    n_draws : int
        Draws from q for each document.
    temperature : Temperature
        Planned for this fit.
    """

    def bound(rows: torch.Tensor, t: float) -> Bound:
        log_rates = network.log_rates[rows]
        counts = Counts(*X.padded(rows))
        found = estimate(network, log_rates, counts, n_draws, noise, temperature=t)
        statistic = partial(network.statistic, log_rates=log_rates)
        return Bound(found.surrogate.mean(), found.elbo.mean(), statistic)

    return penalised(bound, temperature, network.penalty)
