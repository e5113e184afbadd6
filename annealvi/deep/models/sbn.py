r"""The sigmoid belief network: layers of bits, each a logistic regression on the one above.

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
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli
from torch.nn.functional import binary_cross_entropy_with_logits

from annealvi.deep.noise import Noise, check_room
from annealvi.deep.penalties import RunningPenalty
from annealvi.deep.statistics import Statistic


class Ascent(NamedTuple):
    """S draws from q for each datum of a batch of B.

    Attributes
    ----------
    bits : list of Tensor of shape (S, B, H_l)
        z_l, the layer nearest the data first.
    q_logits, p_logits : lists of Tensor of shape (S, B, H_l)
        Of q(z_l | z_{l-1}) and of p(z_l | z_{l+1}).
    log_q, log_joint : Tensor of shape (S, B)
        log q(z | x) and log p(x, z).
    """

    bits: list[Tensor]
    q_logits: list[Tensor]
    p_logits: list[Tensor]
    log_q: Tensor
    log_joint: Tensor


class BeliefNetwork(nn.Module):
    """The networks of p and q, and the penalty of q.

    Parameters
    ----------
    center : Tensor of shape (D,)
        The mean of the data, which q subtracts from its input.
    hidden : sequence of int
        H_1, ..., H_L, the layer nearest the data first.
    initial_weight : float or None, default=None
        Value of all weights of p at the start; None draws them as in Glorot and Bengio (2010).
    initial_prior : float, default=0.5
        Probability that a bit of the top layer is 1, at the start.
    penalty : RunningPenalty, optional
    """

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
        """Return the logits of q(z_1 | x), of shape (B, H_1).

        Parameters
        ----------
        x : Tensor of shape (B, D)
        """
        return self.encoder[0](x - self.center)

    def forward(self, x: Tensor, n_draws: int, noise: Noise) -> Ascent:
        """Draw from q, and return the draws with their log probabilities.

        Parameters
        ----------
        x : Tensor of shape (B, D), of 0 and 1
        n_draws : int
        noise : Noise
        """
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
        """Return log p(x, z), of shape (...).

        Parameters
        ----------
        x : Tensor of shape (..., D)
        bits : sequence of Tensor of shape (..., H_l)
        """
        return self._log_joint(x, bits, self.p_logits(bits))

    @staticmethod
    def _log_joint(x: Tensor, bits: Sequence[Tensor], p_logits: Sequence[Tensor]) -> Tensor:
        first = log_bernoulli(p_logits[0], x.expand_as(p_logits[0]))
        rest = zip(p_logits[1:], bits, strict=True)
        return first + sum((log_bernoulli(*pair) for pair in rest), first.new_zeros(()))

    def statistic(self, statistic: Statistic, ascent: Ascent) -> Tensor:
        """Return a proximity statistic of all layers of q, one after the other.

        The prior of a layer, which comes from p, is held fixed.

        Parameters
        ----------
        statistic : Statistic
        ascent : Ascent
        """
        layers = (
            (
                Bernoulli(logits=q, validate_args=False),  # a fit that diverges says so itself
                Bernoulli(logits=p.detach(), validate_args=False),
            )
            for q, p in zip(ascent.q_logits, ascent.p_logits, strict=True)
        )
        return statistic(layers, (layer.get_parameter("weight") for layer in self.encoder))

    def sample(self, n_samples: int, noise: Noise) -> tuple[Tensor, list[Tensor]]:
        """Draw from p, from the top layer down.

        Parameters
        ----------
        n_samples : int
        noise : Noise

        Returns
        -------
        x : Tensor of shape (n_samples, D)
        bits : list of Tensor of shape (n_samples, H_l)
            The layer nearest the data first.
        """
        check_room((n_samples, len(self.prior)))
        layers = [noise.bernoulli(self.prior.sigmoid().expand(n_samples, -1))]
        for layer in reversed(self.decoder):
            layers.insert(0, noise.bernoulli(layer(layers[0]).sigmoid()))
        return layers[0], layers[1:]


def log_bernoulli(logits: Tensor, bits: Tensor) -> Tensor:
    """Return log Bern(bits), summed over the last axis.

    Parameters
    ----------
    logits, bits : Tensors of one shape
    """
    return -binary_cross_entropy_with_logits(logits, bits, reduction="none").sum(dim=-1)
