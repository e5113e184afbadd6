r"""The networks of a variational autoencoder.

.. math::
   p(z) = N(0, I), \quad p(x \mid z) = \mathrm{Bern}(\mathrm{decoder}(z)), \quad
   q_0(z \mid x) = N(\mu(h), \mathrm{diag}\,\sigma(h)^2), \quad h = \mathrm{encoder}(x)

(Kingma, Welling 2014, *Auto-encoding variational Bayes*; Rezende, Mohamed, Wierstra 2014).
With T > 0 a chain of gated transitions continues from q_0, see :mod:`annealvi.deep.hvi`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional

from annealvi.deep.gaussians import (
    LEAST_SIGMA,
    gaussian_draws,
    gaussian_log_density,
    standard_log_density,
)
from annealvi.deep.hvi import Chain
from annealvi.deep.models.layers import STACKS, start_orthogonal
from annealvi.deep.noise import Noise
from annealvi.deep.objectives import avo
from annealvi.deep.penalties import RunningPenalty
from annealvi.deep.statistics import Statistic

#: Standard deviation, and mean argument of the gates, of an amortised chain at its start: it is
#: near the identity.  With a standard deviation of .5 it does not learn.
CHAIN_SIGMA, CHAIN_GATE = 0.05, -4.0


class GaussianHead(nn.Module):
    """q_0, whose means and standard deviations are linear in the output of the encoder.

    Parameters
    ----------
    n_in, dim : int
        Units of the encoder's last layer, and of z.
    """

    def __init__(self, n_in: int, dim: int) -> None:
        super().__init__()
        self.mean = nn.Linear(n_in, dim)
        self.spread = nn.Linear(n_in, dim)

    def moments(self, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of z_0.

        Parameters
        ----------
        context : Tensor of shape (..., n_in)
        """
        assert context is not None  # the encoder always gives one
        return self.mean(context), functional.softplus(self.spread(context)) + LEAST_SIGMA

    def forward(self, epsilon: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Draw z_0, see :class:`annealvi.deep.gaussians.Base`."""
        return gaussian_draws(epsilon, *self.moments(context))

    def log_density(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        """Return log q_0(z_0), see :class:`annealvi.deep.gaussians.Base`."""
        return gaussian_log_density(z, *self.moments(context))


class Parts(NamedTuple):
    r"""The parts of the ELBO of each datum, whose sum it is.

    Attributes
    ----------
    likelihood, prior : Tensors of shape (n_samples,)
        :math:`\log p(x \mid z)` and :math:`\log p(z)`.
    entropy : Tensor of shape (n_samples,)
        :math:`-\log q(z \mid x)`, which is multiplied by the temperature.
    """

    likelihood: Tensor
    prior: Tensor
    entropy: Tensor

    @property
    def energy(self) -> Tensor:
        r""":math:`\log p(x, z)`."""
        return self.likelihood + self.prior


class AutoencoderNetwork(nn.Module):
    """Encoder, posterior and decoder.

    Parameters
    ----------
    n_features, n_components : int
        Number of pixels of x, and of units of z.
    hidden : sequence of int
        Units of the encoder's layers; the decoder has the same in reverse order.
    n_transitions : int, default=0
        T, the number of transitions.
    transition_hidden : int, default=64
        Units of the hidden layer of each transition.
    units : {"relu", "gated"}, default="relu"
        Units of encoder and decoder.  The transitions have gated hidden units with ``"gated"``,
        and else ELU.
    penalty : RunningPenalty, optional
        A part of the network, so that it is saved with it.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        hidden: Sequence[int],
        *,
        n_transitions: int = 0,
        transition_hidden: int = 64,
        units: str = "relu",
        penalty: RunningPenalty | None = None,
    ) -> None:
        super().__init__()
        self.n_components = n_components
        stack = STACKS[units]
        self.encoder = stack(n_features, hidden)
        self.head = GaussianHead(hidden[-1], n_components)
        for layer in self.encoder.layers:
            start_orthogonal(layer.weight, stack.maps)  # type: ignore[arg-type]
        for head in (self.head.mean, self.head.spread):
            start_orthogonal(head.weight)
        for linear in (*self.encoder.layers, self.head.mean, self.head.spread):
            nn.init.zeros_(linear.bias)  # type: ignore[arg-type]
        self.decoder = stack(n_components, hidden[::-1])
        self.pixels = nn.Linear(hidden[0], n_features)
        self.chain = None
        if n_transitions:
            self.chain = Chain(
                n_components,
                n_transitions,
                hidden=transition_hidden,
                sigma=CHAIN_SIGMA,
                gate_bias=CHAIN_GATE,
                activation="gated" if units == "gated" else "elu",
                context=hidden[-1],
                base=self.head,
            )
        self.penalty: RunningPenalty | None = penalty

    def encoder_weights(self) -> list[Tensor]:
        """Return the weights of all layers from x to q_0, each of shape (outputs, inputs)."""
        layers = (*self.encoder.layers, self.head.mean, self.head.spread)
        return [layer.weight for layer in layers]  # type: ignore[misc]

    def posterior(self, context: Tensor) -> Normal:
        """Return q_0(z | x).

        Parameters
        ----------
        context : Tensor of shape (n_samples, n_units)
            The output of the encoder.
        """
        return Normal(*self.head.moments(context), validate_args=False)

    def centre(self, x: Tensor) -> Tensor:
        """Return the mean of q_0(z | x), carried on through the means of the transitions.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
        """
        context = self.encoder(x)
        mean, _ = self.head.moments(context)
        if self.chain is not None:
            for t in range(self.chain.n_transitions):
                mean = self.chain.forwards.moments(mean[None], t, context)[0][0]
        return mean

    def logits(self, z: Tensor) -> Tensor:
        """Return the log-odds of the pixels.

        Parameters
        ----------
        z : Tensor of shape (..., n_components)
        """
        return self.pixels(self.decoder(z))

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""Return log p(x | z), of the shape of z without its last axis.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
        z : Tensor of shape (..., n_samples, n_components)
        """
        logits = self.logits(z)
        if logits.shape == x.shape:  # the fused kernel does not broadcast
            loss = functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
            return -loss.sum(dim=-1)
        return (x * logits - functional.softplus(logits)).sum(dim=-1)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x, z), of the shape of z without its last axis.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
        z : Tensor of shape (..., n_samples, n_components)
        """
        return self.log_likelihood(x, z) + standard_log_density(z)

    def bound(self, x: Tensor, q: Normal, noise: Noise) -> Parts:
        r"""Return the parts of the ELBO without a chain: one draw for log p(x | z), the rest exact.

        .. math::
           E[\log p(z)] = -\tfrac12 \sum (\mu^2 + \sigma^2 + \log 2\pi), \quad
           H = \tfrac12 \sum (\log \sigma^2 + 1 + \log 2\pi).

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
        q : Normal
            The :meth:`posterior` of x.
        noise : Noise
        """
        z = torch.addcmul(q.mean, q.stddev, noise.normal(*q.mean.shape))
        log_prior = standard_log_density(q.mean) - 0.5 * q.variance.sum(dim=-1)
        return Parts(self.log_likelihood(x, z), log_prior, q.entropy().sum(dim=-1))

    def chain_bound(
        self,
        x: Tensor,
        context: Tensor,
        noise: Noise,
        *,
        temperature: float,
        calibration: float,
        beta: float = 1.0,
    ) -> tuple[Tensor, Tensor]:
        r"""Return the objective of one step of a chain, and the ELBO.

        With probability a, the calibration, the objective is the sum of the annealed
        objectives; otherwise it is the ELBO.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
        context : Tensor of shape (n_samples, n_units)
            The output of the encoder.
        noise : Noise
        temperature : float
            T, the weight of the entropy of q.
        calibration : float
            a in [0, 1].
        beta : float, default=1.0
            Weight of all terms but log p(x | z), which multiplies T too.

        Returns
        -------
        tempered, elbo : Tensors, scalar
            Averaged over the data.
        """
        chain = self.chain
        assert chain is not None
        epsilon = chain.draw_noise(len(x), noise)
        annealed = calibration > 0 and noise.coin(calibration)
        path = chain(epsilon, context=context, detach=annealed)
        log_weight = chain.log_weight(path)
        z = path.z[1:] if annealed else path.z[-1]
        target = log_joint = self.log_joint(x, z)
        if beta != 1:
            target = log_joint + (beta - 1.0) * standard_log_density(z)
        if annealed:
            log_joint = log_joint[-1]
            bound = avo(path, lambda _: target, beta=beta * temperature)
        else:
            bound = target - beta * temperature * log_weight
        return bound.mean(), (log_joint - log_weight).mean()

    def statistic(self, statistic: Statistic, context: Tensor) -> Tensor:
        """Return a statistic of q_0 for a proximity penalty.

        Parameters
        ----------
        statistic : Statistic
        context : Tensor of shape (n_samples, n_units)
            The output of the encoder.
        """
        if statistic.of_weights:
            return statistic((), self.encoder_weights())
        prior = Normal(context.new_zeros(()), context.new_ones(()))
        return statistic([(self.posterior(context), prior)])

    def log_weights(self, x: Tensor, n_draws: int, noise: Noise) -> tuple[Tensor, Tensor]:
        r"""Return draws of z, and their :math:`\log p(x, z) - \log q(z \mid x)`.

        With a chain the weights are
        :math:`\log p(x, z_T) + \log r(z_{<T} \mid z_T) - \log q(z_{\le T})`.  The mean of their
        exponential is p(x) too.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
        n_draws : int
        noise : Noise

        Returns
        -------
        z : Tensor of shape (n_draws, n_samples, n_components)
        log_weight : Tensor of shape (n_draws, n_samples)
        """
        context = self.encoder(x)
        if self.chain is None:
            epsilon = noise.normal(n_draws, len(x), self.n_components)
            z, log_q = self.head(epsilon, context)
            return z, self.log_joint(x, z) - log_q
        epsilon = self.chain.draw_noise(n_draws * len(x), noise)
        path = self.chain(epsilon, context=context.repeat(n_draws, 1))
        z = path.z[-1, 0].unflatten(0, (n_draws, len(x)))
        log_q = self.chain.log_weight(path)[0].unflatten(0, (n_draws, len(x)))
        return z, self.log_joint(x, z) - log_q
