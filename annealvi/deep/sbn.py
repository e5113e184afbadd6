"""Sigmoid belief networks: each layer of bits is a logistic regression on the layer above."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Bernoulli
from torch.nn import Linear, Module, ModuleList, Parameter
from torch.nn.functional import binary_cross_entropy_with_logits

from annealvi.checks import Interval
from annealvi.deep.estimator import AmortisedEstimator, Bound, Widths
from annealvi.deep.objectives import leave_one_out
from annealvi.deep.penalties import STATISTICS, Statistic
from annealvi.deep.training import Noise, Outcome, column_means, numbers


class BitDraws(NamedTuple):
    """S draws from q for each of B data.  In lists the layer nearest the data comes first."""

    bits: list[Tensor]  # z_l, of shape (S, B, H_l)
    q_logits: list[Tensor]  # logits of q(z_l | z_{l-1})
    p_logits: list[Tensor]  # logits of p(z_l | z_{l+1})
    log_q: Tensor  # log q(z | x), of shape (S, B)
    log_joint: Tensor  # log p(x, z)


class BeliefNetwork(Module):
    """The networks of p and q."""

    def __init__(
        self,
        center: Tensor,
        hidden: Sequence[int],
        initial_weight: float | None = None,
        initial_prior: float = 0.5,
    ) -> None:
        """Make networks for layers of `hidden` bits; `center` is the mean of the data.

        `initial_weight` (None: random) and `initial_prior` are the weights of p and the
        probability of bits of the top layer at the start.
        """
        super().__init__()
        sizes = [len(center), *hidden]  # from the data upwards
        self.encoder = ModuleList(Linear(below, above) for below, above in pairwise(sizes))
        self.decoder = ModuleList(Linear(above, below) for below, above in pairwise(sizes))
        logit = math.log(initial_prior) - math.log1p(-initial_prior)
        self.prior = Parameter(torch.full((sizes[-1],), logit))
        self.n_components = hidden[0]
        self.center: Tensor
        self.register_buffer("center", center)
        for layer in [*self.encoder, *self.decoder]:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        if initial_weight is not None:
            for layer in self.decoder:
                nn.init.constant_(layer.get_parameter("weight"), initial_weight)

    def forward(self, x: Tensor, n_draws: int, noise: Noise) -> BitDraws:
        """Draw from q, and return the draws with their log probabilities."""
        bits: list[Tensor] = []
        q_logits: list[Tensor] = []
        for logits in self.ascend(x, bits):  # it reads the bits that the loop appends
            q_logits.append(logits.expand(n_draws, -1, -1))
            bits.append(noise.bernoulli(q_logits[-1].sigmoid()))
        p_logits = self.p_logits(bits)
        return BitDraws(
            bits=bits,
            q_logits=q_logits,
            p_logits=p_logits[1:],  # without those of x
            log_q=log_bernoulli(bits, q_logits),
            log_joint=self.log_joint(x, bits, p_logits),
        )

    def ascend(self, x: Tensor, bits: Sequence[Tensor]) -> Iterator[Tensor]:
        """Yield the logits under q of the bits of each layer, given x or the layer below.

        The bits of a layer must be in `bits` only when the next layer's logits are computed.
        """
        for i, layer in enumerate(self.encoder):
            yield layer(bits[i - 1] if i else x - self.center)

    def p_logits(self, bits: Sequence[Tensor]) -> list[Tensor]:
        """Return the logits under p of x and of the bits of each layer, given the layer above."""
        below = [layer(above) for layer, above in zip(self.decoder, bits, strict=True)]
        return [*below, self.prior.expand_as(bits[-1])]

    def log_joint(self, x: Tensor, bits: Sequence[Tensor], p_logits: Sequence[Tensor]) -> Tensor:
        """Return log p(x, z), of shape (...)."""
        # log_bernoulli sums over a list of layers
        log_x = log_bernoulli([x.expand_as(p_logits[0])], p_logits[:1])
        return log_x + log_bernoulli(bits, p_logits[1:])

    def log_weights(self, x: Tensor, n_draws: int, noise: Noise) -> tuple[Tensor, Tensor]:
        """Return draws of z_1, and log p(x, z) - log q(z | x) of each draw."""
        draws = self(x, n_draws, noise)
        return draws.bits[0], draws.log_joint - draws.log_q

    def centre(self, x: Tensor) -> Tensor:
        """Return the mean of q(z_1 | x), of shape (B, H_1)."""
        return self.encoder[0](x - self.center).sigmoid()

    def statistic(self, statistic: Statistic, draws: BitDraws) -> Tensor:
        """Return a proximity statistic of all layers of q, in one row."""
        layers = (
            (
                Bernoulli(logits=q, validate_args=False),  # a fit that diverges raises later
                Bernoulli(logits=p.detach(), validate_args=False),
            )
            for q, p in zip(draws.q_logits, draws.p_logits, strict=True)
        )
        return statistic(layers, (layer.get_parameter("weight") for layer in self.encoder))

    def sample(self, n_samples: int, noise: Noise) -> tuple[Tensor, Tensor]:
        """Draw x and z_1 from p, beginning with the top layer."""
        below = noise.bernoulli(self.prior.sigmoid().expand(n_samples, -1))
        for layer in reversed(self.decoder):
            above = below
            below = noise.bernoulli(layer(above).sigmoid())
        return below, above


def log_bernoulli(bits: Sequence[Tensor], logits: Sequence[Tensor]) -> Tensor:
    """Return log Bern(bits) of all layers, summed over units and layers."""
    layers = [
        -binary_cross_entropy_with_logits(logit, bit, reduction="none").sum(dim=-1)
        for bit, logit in zip(bits, logits, strict=True)
    ]
    return sum(layers[1:], layers[0])


@dataclass(eq=False, repr=False)
class SigmoidBeliefNetwork(AmortisedEstimator):
    r"""Sigmoid belief network of any depth, fitted by amortised variational inference.

    The network has layers of bits.  Each layer is a logistic regression on the layer above:

    .. math::
       z_L \sim \mathrm{Bern}(\sigma(b)), \quad
       z_l \mid z_{l+1} \sim \mathrm{Bern}(\sigma(W_l z_{l+1} + b_l)), \quad
       x \mid z_1 \sim \mathrm{Bern}(\sigma(W_0 z_1 + b_0)).

    (Neal 1992).  The posterior q is such a network from x (minus the mean of the data) up to z_L.
    q and p are fitted together (Mnih, Gregor 2014).  Draws of bits have no gradient.  The gradient
    of :math:`E_q[\log p(x, z) - T \log q(z \mid x)]` is therefore estimated from several draws.  To
    reduce noise, the mean of log p - T log q over the other draws is subtracted from its value for
    each draw (:func:`annealvi.deep.objectives.leave_one_out`).

    Parameters
    ----------
    hidden : sequence of int, default=(200,)
        Number of bits of each layer; the layer nearest the data comes first.  `transform` returns
        the means of the first layer only, because the means of deeper layers depend on draws.
    n_draws : int, default=5
        The number S >= 2 of draws from q for each datum in a step.  More draws make gradients less
        noisy and steps slower.
    proximity : None, str, callable or ProximityPenalty, default=None
        A penalty on fast changes of q.  Pass the name of the statistic of q whose changes are
        penalised (``"entropy"``, ``"kl"``, ``"mean"``, ``"variance"``, ``"mean_variance"`` or
        ``"orthogonal"``), your own statistic, or a :class:`annealvi.deep.ProximityPenalty`, which
        also sets the magnitude of the penalty.  The statistic is computed for each bit, and
        averaged over the minibatch and the draws.  ``"kl"`` is the divergence KL(q || p) of each
        bit, where p is conditional on the layer above.
    temperature : float, "annealed" or Temperature, default=1
        The temperature T of each step: a number >= 1, ``"annealed"``, or an object of
        :mod:`annealvi.temperature` that does not learn T.  T multiplies the entropy of q; the
        object's `form` has no effect.  T > 1 keeps q broad; T = 1 is plain variational inference.
        Altosaar et al. (2018) use :math:`T = \max(1, k_0 \gamma^{t / n})` in step t of n; for these
        T, pass ``Annealed(k0, length=log(k0) / -log(gamma), shape="exponential")``.
    initial_weight : float or None, default=None
        The value of all weights of p at the start.  With None they are drawn at random, as in
        Glorot and Bengio (2010).  To test a bad start, Altosaar et al. (2018) use weights of -100
        and ``initial_prior=0.001``, with which p expects x = 0 for nearly any draw from q.
    initial_prior : float, default=0.5
        The probability that a bit of the top layer is 1 at the start, in (0, 1).
    learning_rate : float, default=1e-3
        The step size of Adam, whose epsilon is 1e-6.  Use a smaller step size if the fit diverges.
    batch_size : int, default=20
        Number of data in each step.
    max_iter : int, default=20000
        Number of steps.
    device : str, default="cpu"
        The device on which to fit: ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.
    random_state : int, RandomState instance or None, default=None
        The random seed of the initial weights, of the order of the data and of all draws,
        including those in `score`, `score_samples` and `sample`.
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
    components_ : ndarray of shape (hidden[0], n_features)
        The weights from each bit of the layer nearest the data to each element of x.
    intercept_ : ndarray of shape (n_features,)
        The logits of x if all bits of the layer nearest the data are 0.
    network_ : torch.nn.Module
        The network with p and q, a :class:`annealvi.deep.sbn.BeliefNetwork`.
    n_iter_ : int
        Number of steps made.
    temperature_path_ : ndarray of shape (n_iter,)
        The temperature of each step.
    history_ : dict of str to ndarray
        About a thousand records of ``pass``, ``step``, ``temperature``, ``seconds`` and ``elbo``.
        ``elbo`` is the ELBO per datum at T = 1, averaged over the steps since the last record.
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
    BLOCK = 5000
    ARCHITECTURE: ClassVar[dict] = {"hidden": Widths()}
    _parameter_constraints: ClassVar[dict] = {
        **AmortisedEstimator._parameter_constraints,
        "hidden": "no_validation",  # Widths checks it
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "initial_weight": [None, Interval(Real, None, None, closed="neither")],
        "initial_prior": [Interval(Real, 0, 1, closed="neither")],
    }

    hidden: Sequence[int] = (200,)
    _: KW_ONLY
    n_draws: int = 5
    initial_weight: float | None = None
    initial_prior: float = 0.5
    batch_size: int = 20
    max_iter: int = 20_000

    def _network(self, architecture: Mapping[str, Any], X: Any = None) -> BeliefNetwork:
        """Return a network for data X; without X its weights come from a file."""
        # arbitrary numbers, if the file has others
        center = torch.empty(architecture["n_features"]) if X is None else column_means(X)
        return BeliefNetwork(
            center, architecture["hidden"], self.initial_weight, float(self.initial_prior)
        )

    def _bound(self, network: BeliefNetwork, X: Any, noise: Noise) -> Bound:
        """Return the function that computes the bound of a minibatch of X."""
        n_draws = int(self.n_draws)

        def bound(rows: Tensor, t: float, step: int) -> Outcome:
            """Return the outcome of a step at temperature t; `rows` are row numbers of X."""
            x = X[rows]
            draws = network(x, n_draws, noise)
            surrogate = leave_one_out(draws.log_joint, draws.log_q, temperature=t)
            elbo = (draws.log_joint - draws.log_q).detach().mean()

            def statistic(f: Statistic, averaged: BeliefNetwork | None = None) -> Tensor:
                """Return f of q, or of the q of a network with averaged parameters."""
                if averaged is None:
                    return network.statistic(f, draws)
                # the logits of the averaged network at the same draws
                ascended = zip(averaged.ascend(x, draws.bits), draws.bits, strict=True)
                q_logits = [logits.expand_as(bits) for logits, bits in ascended]
                return averaged.statistic(f, draws._replace(q_logits=q_logits))

            return Outcome(-surrogate.mean(), elbo, t, statistic)

        return bound

    def score(self, X: Any, y: Any = None, *, n_draws: int = 5) -> float:
        """Return the mean ELBO per datum at T = 1, estimated from draws.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        n_draws : int, default=5
            Number of draws from q for each datum.

        Returns
        -------
        float
            The mean ELBO, in nats.
        """
        return float(np.mean(self._average(X, n_draws, lambda log_w: log_w.mean(dim=0))))

    @property
    def components_(self) -> NDArray[np.float32]:
        """The weights from each bit of the layer nearest the data to each element of x."""
        return numbers(self.network_.decoder[0].weight.T)

    @property
    def intercept_(self) -> NDArray[np.float32]:
        """The logits of x if all bits of the layer nearest the data are 0."""
        return numbers(self.network_.decoder[0].bias)

    def _check_values(self, values: NDArray[np.float32]) -> None:
        """Raise a ValueError if a value of X is not 0 or 1."""
        wrong = values[(values != 0) & (values != 1)]
        if wrong.size:
            raise ValueError(
                f"X may contain only 0 and 1 for {type(self).__name__}. Got {wrong.flat[0]}."
            )
