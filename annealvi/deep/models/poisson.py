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

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributions import Poisson, kl_divergence
from torch.nn.functional import embedding, softplus

from annealvi.deep.noise import Noise
from annealvi.deep.penalties import RunningPenalty
from annealvi.deep.statistics import Statistic

#: Rates are cut off here before a draw, as float32 cannot represent all larger counts.
LARGEST_RATE = 2.0**24


class Counts(NamedTuple):
    """A batch of B documents.

    Attributes
    ----------
    columns, values : Tensors of shape (B, L), int64 and float32
        Words and their counts, padded with word 0 of count 0.
    exposure : Tensor of shape (B,) or None
        The share of each document that was seen, which multiplies its rates, because thinned
        Poisson counts are Poisson.  None means whole documents.
    """

    columns: Tensor
    values: Tensor
    exposure: Tensor | None = None


class PoissonNetwork(nn.Module):
    """Topics, the local rates of the training data, and the penalty of q.

    Parameters
    ----------
    mean : Tensor of shape (V,)
        Mean count of each word, positive.
    n_components, n_samples : int
        K, D.
    prior_rate : float
        lambda_0, which the local rates start from.
    background : float
        The rate of a word without topics, as a share of `mean`.
    penalty : RunningPenalty, optional
    """

    def __init__(
        self,
        mean: Tensor,
        n_components: int,
        n_samples: int,
        *,
        prior_rate: float,
        background: float,
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
        """Return log p(x | z), of shape (B, S).

        Parameters
        ----------
        z : Tensor of shape (B, S, K)
        counts : Counts
        topics : Tensor of shape (V, K)
        """
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
        """Return a proximity statistic of each component, averaged over documents.

        Parameters
        ----------
        statistic : Statistic
        log_rates : Tensor of shape (B, K)
        """
        q = Poisson(log_rates.exp(), validate_args=False)
        return statistic([(q, self._prior(log_rates))])

    def kl(self, log_rates: Tensor) -> Tensor:
        """Return KL(q || p) of each document, of shape (B,).

        Parameters
        ----------
        log_rates : Tensor of shape (B, K)
        """
        q = Poisson(log_rates.exp(), validate_args=False)
        return kl_divergence(q, self._prior(log_rates)).sum(dim=-1)

    def _prior(self, like: Tensor) -> Poisson:
        return Poisson(like.new_tensor(self.prior_rate), validate_args=False)


class Estimate(NamedTuple):
    """The objective of a batch, estimated from draws from q.

    Attributes
    ----------
    surrogate : Tensor of shape (B,)
        Its gradient is an unbiased estimate of that of the tempered ELBO.
    elbo : Tensor of shape (B,)
        The ELBO at T = 1, with the exact KL divergence and without gradient.
    """

    surrogate: Tensor
    elbo: Tensor


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
    r"""Return a surrogate of :math:`E_q[\log p(x, z) - T \log q(z)]` by score functions.

    The score of the log of a rate is :math:`h = z - \lambda`.  For component k only the terms
    that depend on :math:`z_k` are kept,
    :math:`f_k = \log p(x \mid z) + \log p(z_k) - T \log q(z_k)`.  The control variate is the
    multiple of the score that gives the least variance,
    :math:`a_k = E[f_k h_k^2] / E[h_k^2]` (Ranganath, Gerrish, Blei 2014, *Black box variational
    inference*, with :math:`E h = 0`).  For each draw it is estimated from the other draws, so
    that the gradient is unbiased:

    .. math::
       \frac1S \sum_i \sum_k (f_{ki} - a_{k, -i}) h_{ki}.

    Parameters
    ----------
    network : PoissonNetwork
    log_rates : Tensor of shape (B, K)
        Logarithms of the rates of q.
    counts : Counts
    n_draws : int
        S >= 2.
    noise : Noise
    temperature : float, default=1.0
        T.
    topics : Tensor of shape (V, K), optional
        ``network.topics()``, if it was computed already.
    """
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
    """Return for each draw the sum over all others, along axis 1.

    It is not computed as the sum of all minus the draw.  Where a rate is small, one draw of z = 1
    weighs so much more than the others that this difference would lose them to rounding.
    """
    nothing = torch.zeros_like(x[:, :1])
    before = torch.cat([nothing, x[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([nothing, x[:, 1:].flip(1).cumsum(dim=1)], dim=1).flip(1)
    return before + after
