r"""Hierarchical posteriors: a chain of gated stochastic transitions and its reverse.

.. math::
   q(z_0, \dots, z_T) = q_0(z_0) \prod_{t=1}^T q_t(z_t \mid z_{t-1}), \qquad
   r(z_0, \dots, z_{T-1} \mid z_T) = \prod_{t=1}^T r_t(z_{t-1} \mid z_t).

The posterior is the marginal of :math:`z_T`, which has no density in closed form; the
reverse chain r gives a bound of it (Ranganath, Tran, Blei 2016, *Hierarchical variational
models*; the gates are those of Huang et al. 2018).  Each transition, forward or reverse, is
a Gaussian.  A gate g decides how far its mean moves away from the previous state:

.. math::
   h = \mathrm{act}(W_h z + b_h), \quad
   \mu = g(h) \odot m(h) + (1 - g(h)) \odot z, \quad
   \sigma = \mathrm{softplus}(s(h)),

with linear m and s and a sigmoid g.

Shapes: T transitions; R independent runs side by side, which share no numbers; N draws, or N data
in an amortised chain; d dimensions.  Because small operations are slow in PyTorch, all runs are
computed together, and so are all transitions where none depends on another.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from annealvi.deep.gaussians import (
    LEAST_SIGMA,
    AmortisedGaussian,
    Base,
    StandardNormal,
    gaussian_log_density,
    inverse_softplus,
    standard_log_density,
)
from annealvi.deep.noise import Noise
from annealvi.deep.paths import LayeredPosterior, Trajectory

#: :meth:`Chain.log_marginal` handles reverse draws in blocks of about this many numbers.
BLOCK = 2**16


class Transitions(nn.Module):
    r"""T gated Gaussian transitions in R runs, each with its own parameters.

    Parameters
    ----------
    dim, n_transitions : int
        d and T.
    n_runs : int, default=1
        R.
    hidden : int, default=64
        Width of h.
    sigma : float, default=1.0
        :math:`\sigma` at the start, for all z.
    gate_bias : float, default=-1.0
        Mean argument of the gate's sigmoid at the start.  Lower values make the transitions
        smaller.
    weight_scale : float, default=1.0
        Scale of the hidden biases, and of the weights out of the hidden layers, at the start.
    activation : {"relu", "elu", "gated"}, default="relu"
        Activation of the hidden layers.  ``"gated"`` multiplies linear units by sigmoid ones of
        their own, :math:`h = (W z + b) \odot \mathrm{sigmoid}(V z + c)`.
    context : int, default=0
        Number of features of each datum in an amortised chain; 0 means that the chain is not
        amortised.  With a context the linear maps are weight-normalised, with scales and shifts
        linear in the context (Krueger et al. 2017, *Bayesian hypernetworks*):
        :math:`(a + A c) \odot \bar W z + B c + b`, where the columns of :math:`\bar W` have
        length one.  With ``"gated"`` each context is first brought to mean 0 and variance 1:
        gated features have no bound, and a large one would throw the scales off.
    """

    def __init__(
        self,
        dim: int,
        n_transitions: int,
        *,
        n_runs: int = 1,
        hidden: int = 64,
        sigma: float = 1.0,
        gate_bias: float = -1.0,
        weight_scale: float = 1.0,
        activation: str = "relu",
        context: int = 0,
    ) -> None:
        super().__init__()
        self.dim, self.activation = dim, activation
        many = (n_transitions, n_runs)
        wide = 2 * hidden if activation == "gated" else hidden  # outputs of the hidden maps

        def weights(n_in: int, n_out: int) -> Tensor:
            return torch.randn(*many, n_in, n_out) / math.sqrt(n_in)

        self.hidden_weight = nn.Parameter(weights(dim, wide))
        self.hidden_bias = nn.Parameter(weight_scale * torch.randn(*many, 1, wide))
        # one map for means, gates and sigmas; at the start sigma does not depend on z
        spread = slice(2 * dim, None)
        out, bias = weight_scale * weights(hidden, 3 * dim), torch.zeros(*many, 1, 3 * dim)
        bias[..., dim : 2 * dim] = gate_bias
        bias[..., spread] = inverse_softplus(sigma - LEAST_SIGMA)
        scale = torch.full_like(bias, weight_scale)
        self.conditioned = context > 0
        if self.conditioned:  # weights are normalised, so their scale starts at 0 instead
            scale[..., spread] = 0.0
        else:
            out[..., spread] = 0.0
        self.out_weight, self.out_bias = nn.Parameter(out), nn.Parameter(bias)
        if self.conditioned:
            self.hidden_scale = nn.Parameter(torch.ones(*many, 1, wide))
            self.out_scale = nn.Parameter(scale)
            self.hidden_conditioner = nn.Parameter(0.1 * weights(context, 2 * wide))
            self.out_conditioner = nn.Parameter(0.1 * weights(context, 6 * dim))

    def moments(
        self, z: Tensor, t: int | None = None, context: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of the next states.

        Parameters
        ----------
        z : Tensor of shape (R, N, d), or (T, R, N, d) for all transitions at once
            The states before the transition.
        t : int, optional
            Index of the transition, from 0; by default all of them.
        context : Tensor of shape (R, N, c) or (N, c), optional
            Features of each datum, in an amortised chain.

        Returns
        -------
        mean, sigma : Tensors of the shape of z
        """
        h = self._affine(z, "hidden", t, context)
        if self.activation == "gated":
            h = functional.glu(h, dim=-1)
        else:
            act = functional.relu if self.activation == "relu" else functional.elu
            h = act(h, inplace=True)
        m, gate, s = self._affine(h, "out", t, context).split(self.dim, dim=-1)
        return torch.lerp(z, m, gate.sigmoid()), functional.softplus(s) + LEAST_SIGMA

    def _affine(self, x: Tensor, name: str, t: int | None, context: Tensor | None) -> Tensor:
        """Apply the linear map of this name, of one transition or of all."""

        def of(kind: str) -> Tensor:
            parameter = getattr(self, f"{name}_{kind}")
            return (parameter if t is None else parameter[t]).flatten(0, -3)

        rows = x.flatten(0, -3)
        if self.conditioned:
            if context is None:
                raise ValueError("The transitions of an amortised chain need a context.")
            if self.activation == "gated":
                context = functional.layer_norm(context, context.shape[-1:])
            given = context.expand(*x.shape[:-1], context.shape[-1]).flatten(0, -3)
            scale, shift = torch.bmm(given, of("conditioner")).chunk(2, dim=-1)
            direction = functional.normalize(of("weight"), dim=-2)
            y = torch.bmm(rows, direction) * (of("scale") + scale) + (of("bias") + shift)
        else:
            y = torch.baddbmm(of("bias"), rows, of("weight"))
        return y.unflatten(0, x.shape[:-2])


class Chain(LayeredPosterior):
    """A hierarchical posterior of T transitions, in R independent runs.

    Parameters
    ----------
    dim, n_transitions : int
        d and T; with T = 0 the chain is its base.
    n_runs, hidden, sigma, gate_bias, weight_scale, activation, context
        See :class:`Transitions`.  For amortised chains use ``activation="elu"`` or ``"gated"``,
        ``sigma=0.05`` and ``gate_bias=-4``, with which they start near the identity.  With a
        sigma of .5 they do not learn, and open gates begin hundreds of nats behind.
    base : Base, optional
        q_0; by default :class:`AmortisedGaussian` where there is a context, else
        :class:`StandardNormal`.
    """

    def __init__(
        self,
        dim: int,
        n_transitions: int,
        *,
        n_runs: int = 1,
        hidden: int = 64,
        sigma: float = 1.0,
        gate_bias: float = -1.0,
        weight_scale: float = 1.0,
        activation: str = "relu",
        context: int = 0,
        base: Base | None = None,
    ) -> None:
        if base is None:
            base = AmortisedGaussian(dim, context, n_runs=n_runs) if context else StandardNormal()
        super().__init__(dim, n_transitions, n_runs, base)
        self.forwards, self.reverses = (
            Transitions(
                dim,
                n_transitions,
                n_runs=n_runs,
                hidden=hidden,
                sigma=sigma,
                gate_bias=gate_bias,
                weight_scale=weight_scale,
                activation=activation,
                context=context,
            )
            for _ in range(2)
        )

    def move(
        self, z: Tensor, epsilon: Tensor, t: int | None, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Draw the next states, and return their standard deviations too."""
        mean, sigma = self.forwards.moments(z, t, context)
        return torch.addcmul(mean, sigma, epsilon[1:] if t is None else epsilon[t + 1]), sigma

    def log_transitions(
        self,
        before: Tensor,
        after: Tensor,
        parts: Tensor,
        epsilon: Tensor,
        context: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return log q_t(z_t | z_{t-1}) and log r_t(z_{t-1} | z_t)."""
        log_forward = standard_log_density(epsilon[1:]) - parts.log().sum(dim=-1)
        reverse = self.reverses.moments(after, context=context)
        return log_forward, gaussian_log_density(before, *reverse)

    @torch.no_grad()
    def log_marginal(
        self,
        z: Tensor,
        n_draws: int,
        noise: Noise,
        *,
        context: Tensor | None = None,
    ) -> Tensor:
        r"""Estimate log q(z_T) by importance sampling with the reverse chain.

        .. math::
           \log \hat q(z_T) = \log \frac1K \sum_{k=1}^K \frac{q(z_{<T}^k, z_T)}
           {r(z_{<T}^k \mid z_T)}, \quad z_{<T}^k \sim r.

        In expectation it is a lower bound (Burda, Grosse, Salakhutdinov 2016) that becomes tight
        as K grows.  If z_T was drawn from the chain itself, counting the path that led to it
        among the draws gives an *upper* bound (Sobolev, Vetrov 2019, *Importance weighted
        hierarchical variational inference*), see
        :func:`annealvi.deep.objectives.log_evidence_bounds`.

        Parameters
        ----------
        z : Tensor of shape (R, N, d)
            z_T.
        n_draws : int
            K.
        noise : Noise
        context : Tensor of shape (R, N, c) or (N, c), optional

        Returns
        -------
        Tensor of shape (R, N)
        """
        n_rows = z.shape[1]
        total = z.new_full(z.shape[:2], -math.inf)
        block = max(1, BLOCK // max(1, z.numel()))
        for start in range(0, n_draws, block):
            n = min(block, n_draws - start)
            state = z.repeat_interleave(n, dim=1)
            given = None if context is None else context.repeat_interleave(n, dim=-2)
            weight = torch.zeros_like(state[..., 0])
            for t in reversed(range(self.n_transitions)):
                mean, sigma = self.reverses.moments(state, t, given)
                epsilon = noise.normal(*state.shape)
                before = torch.addcmul(mean, sigma, epsilon)
                weight -= standard_log_density(epsilon) - sigma.log().sum(dim=-1)
                weight += gaussian_log_density(state, *self.forwards.moments(before, t, given))
                state = before
            weight += self.base.log_density(state, given)
            total = torch.logaddexp(total, weight.unflatten(1, (n_rows, n)).logsumexp(dim=-1))
        return total - math.log(n_draws)

    def log_marginal_bounds(
        self, path: Trajectory, n_draws: int, noise: Noise
    ) -> tuple[Tensor, Tensor]:
        r"""Return two estimates of log q(z_T): a lower and an upper bound in expectation.

        The upper one counts the path itself among the draws of the reverse chain.

        Parameters
        ----------
        path : Trajectory
            Draws of a chain that is not amortised.
        n_draws : int
            K, draws of the reverse chain for each of them.
        noise : Noise

        Returns
        -------
        below, above : Tensors of shape (R, N)
        """
        hat = self.log_marginal(path.z[-1], n_draws, noise)
        # the same reverse draws and one more, the path itself: log (K e^hat + w) / (K + 1)
        with_path = torch.logaddexp(hat + math.log(n_draws), self.log_weight(path))
        return hat, with_path - math.log1p(n_draws)
