r"""Sigmoid belief networks: layers of bits, each a logistic regression on the one above.

.. math::
   z_L \sim \mathrm{Bern}(\sigma(b)), \quad
   z_l \mid z_{l+1} \sim \mathrm{Bern}(\sigma(W_l z_{l+1} + b_l)), \quad
   x \mid z_1 \sim \mathrm{Bern}(\sigma(W_0 z_1 + b_0))

(Neal 1992, *Connectionist learning of belief networks*).  q mirrors p in the other direction: it
draws :math:`z_1` given x minus the mean of the data, then :math:`z_2` given :math:`z_1`, and so on
(Mnih, Gregor 2014, *Neural variational inference and learning in belief networks*).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.distributions import Bernoulli
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Adam

from annealvi.checks import Interval, checked
from annealvi.deep.estimator import (
    EPSILON,
    TRAINING_CONSTRAINTS,
    Bound,
    BoundOf,
    Callback,
    DataEstimator,
    StatisticName,
    Widths,
    numbers,
    positive,
)
from annealvi.deep.noise import Noise, check_room
from annealvi.deep.objectives import importance_weighted, leave_one_out
from annealvi.deep.penalties import ProximityLike, RunningPenalty
from annealvi.deep.statistics import STATISTICS, Statistic
from annealvi.deep.training import as_rows
from annealvi.files.schema import Integer, Optional, Schema
from annealvi.matrices import check_matrix
from annealvi.temperature import Temperature

#: Number of draws that are evaluated at a time.
MOST_DRAWS = 5000


class Ascent(NamedTuple):
    """S draws from q for each datum of a batch of B, the layer nearest the data first."""

    bits: list[Tensor]  # z_l, of shape (S, B, H_l)
    q_logits: list[Tensor]  # of q(z_l | z_{l-1})
    p_logits: list[Tensor]  # of p(z_l | z_{l+1})
    log_q: Tensor  # log q(z | x), of shape (S, B)
    log_joint: Tensor  # log p(x, z)


class BeliefNetwork(nn.Module):
    """The networks of p and q, and the penalty of q."""

    def __init__(
        self,
        center: Tensor,
        hidden: Sequence[int],
        *,
        initial_weight: float | None = None,
        initial_prior: float = 0.5,
        penalty: RunningPenalty | None = None,
    ) -> None:
        super().__init__()
        sizes = [len(center), *hidden]
        self.encoder = nn.ModuleList(nn.Linear(below, above) for below, above in pairwise(sizes))
        self.decoder = nn.ModuleList(nn.Linear(above, below) for below, above in pairwise(sizes))
        logit = math.log(initial_prior) - math.log1p(-initial_prior)
        self.prior = nn.Parameter(torch.full((sizes[-1],), logit))
        self.penalty = penalty
        self.center: Tensor
        self.register_buffer("center", center)
        for layer in [*self.encoder, *self.decoder]:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        if initial_weight is not None:
            for layer in self.decoder:
                nn.init.constant_(layer.get_parameter("weight"), initial_weight)

    def first_logits(self, x: Tensor) -> Tensor:
        """Return the logits of q(z_1 | x), of shape (B, H_1)."""
        return self.encoder[0](x - self.center)

    def forward(self, x: Tensor, n_draws: int, noise: Noise) -> Ascent:
        """Draw from q, and return the draws with their log probabilities."""
        logits = self.first_logits(x).expand(n_draws, -1, -1)
        bits, q_logits = [noise.bernoulli(logits.sigmoid())], [logits]
        for layer in list(self.encoder)[1:]:
            q_logits.append(layer(bits[-1]))
            bits.append(noise.bernoulli(q_logits[-1].sigmoid()))
        p_logits = self.p_logits(bits)
        return Ascent(
            bits,
            q_logits,
            p_logits[1:],
            sum(
                (log_bernoulli(*pair) for pair in zip(q_logits, bits, strict=True)), x.new_zeros(())
            ),
            self._log_joint(x, bits, p_logits),
        )

    def p_logits(self, bits: Sequence[Tensor]) -> list[Tensor]:
        """Return the logits under p of x and of the bits of each layer, given the layer above."""
        below = [layer(above) for layer, above in zip(self.decoder, bits, strict=True)]
        return [*below, self.prior.expand_as(bits[-1])]

    def log_joint(self, x: Tensor, bits: Sequence[Tensor]) -> Tensor:
        """Return log p(x, z), of shape (...)."""
        return self._log_joint(x, bits, self.p_logits(bits))

    @staticmethod
    def _log_joint(x: Tensor, bits: Sequence[Tensor], p_logits: Sequence[Tensor]) -> Tensor:
        first = log_bernoulli(p_logits[0], x.expand_as(p_logits[0]))
        rest = zip(p_logits[1:], bits, strict=True)
        return first + sum((log_bernoulli(*pair) for pair in rest), first.new_zeros(()))

    def statistic(self, statistic: Statistic, ascent: Ascent) -> Tensor:
        """Return a proximity statistic of all layers of q, one after the other."""
        layers = (
            (
                Bernoulli(logits=q, validate_args=False),  # a fit that diverges says so itself
                Bernoulli(logits=p.detach(), validate_args=False),
            )
            for q, p in zip(ascent.q_logits, ascent.p_logits, strict=True)
        )
        return statistic(layers, (layer.get_parameter("weight") for layer in self.encoder))

    def sample(self, n_samples: int, noise: Noise) -> tuple[Tensor, list[Tensor]]:
        """Draw from p, from the top layer down."""
        check_room((n_samples, len(self.prior)))
        layers = [noise.bernoulli(self.prior.sigmoid().expand(n_samples, -1))]
        for layer in reversed(self.decoder):
            layers.insert(0, noise.bernoulli(layer(layers[0]).sigmoid()))
        return layers[0], layers[1:]


def log_bernoulli(logits: Tensor, bits: Tensor) -> Tensor:
    """Return log Bern(bits), summed over the last axis."""
    return -binary_cross_entropy_with_logits(logits, bits, reduction="none").sum(dim=-1)


class SigmoidBeliefNetwork(DataEstimator):
    r"""Sigmoid belief network of any depth, fitted by amortised variational inference.

    It has layers of bits, each a logistic regression on the layer above:

    .. math::
       z_L \sim \mathrm{Bern}(\sigma(b)), \quad
       z_l \mid z_{l+1} \sim \mathrm{Bern}(\sigma(W_l z_{l+1} + b_l)), \quad
       x \mid z_1 \sim \mathrm{Bern}(\sigma(W_0 z_1 + b_0)).

    q is a network of the same kind in the other direction, from x minus the mean of the data, and
    is fitted together with p.  Draws of bits have no gradient.  The gradient of
    :math:`E_q[\log p(x, z) - T \log q(z \mid x)]` is therefore estimated from several draws, with
    the other draws as a baseline for each (:func:`annealvi.deep.objectives.leave_one_out`).

    Parameters
    ----------
    hidden : sequence of int, default=(200,)
        Number of bits of each layer, the layer nearest the data first.

    n_draws : int, default=5
        S >= 2, the draws from q for each datum in a step.  More make gradients less noisy and
        steps slower.

    proximity : None, str, callable or ProximityPenalty, default=None
        Penalty on moving q away from its recent past: ``"entropy"``, ``"kl"``, ``"mean"``,
        ``"variance"``, ``"mean_variance"``, ``"orthogonal"``, a statistic of your own, or a
        :class:`annealvi.deep.ProximityPenalty` to choose the magnitude too.  Statistics of a
        unit are averaged over the minibatch and the draws; the prior of ``"kl"`` is the
        distribution given the layer above.

    temperature : float, "annealed" or Temperature, default=1
        T of each step: a number >= 1, ``"annealed"``, or an object of :mod:`annealvi.temperature`
        that follows a plan.  T multiplies the entropy of q, whatever the `form` of the object.
        Values above 1 keep q broad, so that the fit explores; 1 is plain variational inference.
        The deterministic annealing of Altosaar et al. (2018),
        :math:`T = \max(1, k_0 \gamma^{t / n})`, is
        ``Annealed(k0, length=log(k0) / -log(gamma), shape="exponential")``.

    initial_weight : float or None, default=None
        Value of all weights of p at the start.  None draws them as in Glorot and Bengio (2010).
        The bad start in the code of Altosaar et al. (2018) is -100 together with
        ``initial_prior=0.001``: p then expects black whatever q draws.

    initial_prior : float, default=0.5
        Probability that a bit of the top layer is 1 at the start, in (0, 1).

    learning_rate : float, default=1e-3
        Step size of Adam, whose epsilon is 1e-6.  Lower it if the fit diverges.

    batch_size : int, default=20
        Data per step.

    max_iter : int, default=20000
        Number of steps.

    device : str, default="cpu"
        Where to fit: ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.

    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, of the order of the data and of all draws, also those of
        `score`, `score_samples` and `sample`.

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
    components_ : ndarray of shape (hidden[0], n_features)
        Weights from each bit of the layer nearest the data to x.

    intercept_ : ndarray of shape (n_features,)
        Logits of x if all these bits are 0.

    network_ : torch.nn.Module
        :class:`annealvi.deep.sbn.BeliefNetwork`, with p, q and the penalty.

    n_iter_ : int
        Number of steps made.

    temperature_path_ : ndarray of shape (n_iter,)
        Temperature of each step.

    history_ : dict of str to ndarray
        About a thousand records of ``pass``, ``step``, ``temperature``, ``seconds`` and
        ``elbo`` (per datum at T = 1, averaged over the steps since the last record).

    n_features_in_ : int
        Number of features D.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has string column names.

    References
    ----------
    Neal (1992), *Connectionist learning of belief networks*.
    Mnih, Gregor (2014), *Neural variational inference and learning in belief networks*, ICML.
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.deep import SigmoidBeliefNetwork
    >>> X = np.random.RandomState(0).random_sample((50, 8)) < 0.3
    >>> sbn = SigmoidBeliefNetwork((4, 2), max_iter=10, random_state=0).fit(X)
    >>> sbn.transform(X).shape
    (50, 4)
    """

    STATISTICS = STATISTICS
    ARCHITECTURE = Schema(
        n_features=Integer(1),
        hidden=Widths(),
        proximity=Optional(StatisticName(*STATISTICS)),
    )
    _parameter_constraints: ClassVar[dict] = {
        "hidden": "no_validation",  # Widths has the message
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "proximity": "no_validation",  # as_penalty has the message
        "temperature": "no_validation",  # _plan has it
        "initial_weight": [None, Interval(Real, None, None, closed="neither")],
        "initial_prior": [Interval(Real, 0, 1, closed="neither")],
        **TRAINING_CONSTRAINTS,
    }

    def __init__(
        self,
        hidden: Sequence[int] = (200,),
        *,
        n_draws: int = 5,
        proximity: ProximityLike = None,
        temperature: float | str | Temperature = 1,
        initial_weight: float | None = None,
        initial_prior: float = 0.5,
        learning_rate: float = 1e-3,
        batch_size: int = 20,
        max_iter: int = 20_000,
        device: Any = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callback | Sequence[Callback] | None = None,
    ) -> None:
        self.hidden = hidden
        self.n_draws = n_draws
        self.proximity = proximity
        self.temperature = temperature
        self.initial_weight = initial_weight
        self.initial_prior = initial_prior
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
        """Learn the network from binary data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Of 0 and 1.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            A file written by :meth:`save_state`: the fit continues from there up to `max_iter`.

        Returns
        -------
        self : SigmoidBeliefNetwork

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
    ) -> BeliefNetwork:
        center = torch.empty(architecture["n_features"])
        if X is not None:
            total = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()  # exact
            center = torch.as_tensor((total / X.shape[0]).astype(np.float32))
        return BeliefNetwork(
            center,
            architecture["hidden"],
            initial_weight=self.initial_weight,
            initial_prior=float(self.initial_prior),
            penalty=penalty,
        )

    def _optimiser(self, parameters: Iterator[nn.Parameter]) -> Adam:
        return Adam(parameters, lr=self.learning_rate, eps=EPSILON, fused=True)

    def _bound(self, network: BeliefNetwork, X: Any, noise: Noise) -> BoundOf:
        n_draws = int(self.n_draws)

        def bound(rows: Tensor, t: float, step: int) -> Bound:
            draws = network(X[rows], n_draws, noise)
            surrogate = leave_one_out(draws.log_joint, draws.log_q, temperature=t)
            elbo = (draws.log_joint - draws.log_q).detach().mean()
            return Bound(surrogate.mean(), elbo, partial(network.statistic, ascent=draws))

        return bound

    # -------------------------------------------------------------- afterwards

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the means under q of the bits nearest the data.

        Those of deeper layers are not returned, because they depend on draws.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, hidden[0]), float32
        """
        check_is_fitted(self)
        batches = self._batches(self._check_X(X), 1)
        with torch.no_grad():
            means = [self.network_.first_logits(x).sigmoid() for x in batches]
        return numbers(torch.cat(means))

    def score(self, X: Any, y: Any = None, *, n_draws: int = 5) -> float:
        """Return the mean ELBO per datum at T = 1, estimated from draws.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        n_draws : int, default=5
            Draws from q for each datum.

        Returns
        -------
        float
            In nats.
        """
        return float(np.mean(self._log_weights(X, n_draws, lambda log_w: log_w.mean(dim=0))))

    def score_samples(self, X: Any, *, n_draws: int = 100) -> NDArray[np.float64]:
        r"""Return the log-likelihood of each datum, estimated by importance weighting.

        The estimate :math:`\log \frac1K \sum_k p(x, z_k) / q(z_k \mid x)` uses K draws from q.
        In expectation it is a lower bound that rises to log p(x) with K (Burda, Grosse,
        Salakhutdinov 2016).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_draws : int, default=100
            K, the number of draws from q for each datum.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.
        """
        return self._log_weights(X, n_draws, importance_weighted)

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draw data from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), of 0 and 1
        Z : ndarray of shape (n_samples, hidden[0]), of 0 and 1
            The bits nearest the data.
        """
        noise = self._draws()
        with torch.no_grad():
            x, bits = self.network_.sample(positive(n_samples, "n_samples"), noise)
        return numbers(x), numbers(bits[0])

    @property
    def components_(self) -> NDArray[np.float32]:
        """Weights from each bit of the layer nearest the data to x."""
        return numbers(self.network_.decoder[0].weight.T)

    @property
    def intercept_(self) -> NDArray[np.float32]:
        """Logits of x if all these bits are 0."""
        return numbers(self.network_.decoder[0].bias)

    # ----------------------------------------------------------------- details

    def _log_weights(
        self, X: Any, n_draws: int, reduce: Callable[[Tensor], Tensor]
    ) -> NDArray[np.float64]:
        """Reduce log p(x, z) - log q(z | x) over the draws of each datum."""
        noise, n_draws = self._draws(), positive(n_draws, "n_draws")
        results = []
        with torch.no_grad():
            for x in self._batches(self._check_X(X), n_draws):
                draws = self.network_(x, n_draws, noise)
                results.append(reduce(draws.log_joint - draws.log_q))
        return numbers(torch.cat(results)).astype(np.float64)

    def _batches(self, X: Any, n_draws: int) -> Iterator[Tensor]:
        device = self._training.noise.device
        data = as_rows(X, device)
        size = max(1, MOST_DRAWS // n_draws)
        for first in range(0, len(data), size):
            yield data[torch.arange(first, min(first + size, len(data)), device=device)]

    def _check_X(self, X: Any, reset: bool = False) -> Any:
        """Return X as a dense or CSR matrix of 0 and 1, float32."""
        return self._check_bits(check_matrix(X, estimator=self, reset=reset, dtype=np.float32))

    def _check_bits(self, X: Any) -> Any:
        values = X.data if sparse.issparse(X) else X
        wrong = values[(values != 0) & (values != 1)]
        if wrong.size:
            raise ValueError(
                f"{type(self).__name__} needs binary data: X must hold 0 and 1 only. "
                f"Got {wrong.flat[0]}."
            )
        return X

    @property
    def _n_features_out(self) -> int:
        return self.network_.encoder[0].out_features
