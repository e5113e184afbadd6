r"""Objectives of deep fits: two estimators of the ELBO, and annealed objectives of chains.

Annealed variational objectives (Huang, Tan, Lacoste, Courville 2018, *Improving
explorability in variational inference with annealed variational objectives*) give each
transition of a chain its own target on the way from the base to the posterior,

.. math::
   \log \tilde f_t = \alpha_t \log f + (1 - \alpha_t) \log f_0, \quad \alpha_t = t / T,

where f is the target up to a constant and :math:`f_0 = N(0, I)`.  If :math:`f_0` is the prior,
then :math:`\tilde f_t = p(z)\,p(x \mid z)^{\alpha_t}`.  Transition t follows the gradient of

.. math::
   J_t = E[\alpha_t \log f(z_t) + (1 - \alpha_t) \log f_0(z_t)
   + \log r_t(z_{t-1} \mid z_t) - \log q_t(z_t \mid z_{t-1})]

only, with :math:`z_{t-1}` held constant.  If f is a model with parameters, p(x, z), these follow
J_T alone: the states before :math:`z_T` are meant to be broad, and a model of them would be too.  A
weight beta, which may rise over a fit, multiplies log r and log q (appendix D of the paper) and,
where :math:`f_0` is a prior, the prior (its Eq. 2).  It acts as the temperature of log f: a fit
whose beta begins below 1 is cold at first.  Each function below returns one estimate per draw, to
be averaged and *maximised*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from annealvi.deep.hvi import LayeredPosterior, Trajectory, standard_log_density
from annealvi.deep.training import Noise

#: log f: takes a Tensor of shape (..., d) and returns one of shape (...).
LogDensity = Callable[[Tensor], Tensor]


def elbo(log_joint: Tensor, log_q: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return the evidence lower bound log p - T log q of reparametrised draws."""
    return torch.sub(log_joint, log_q, alpha=temperature)


def leave_one_out(log_joint: Tensor, log_q: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return a surrogate with the gradient of the ELBO, for S >= 2 draws without a gradient."""
    # 1/S sum_i (f_i - mean of the other f) log q(z_i) + log p(x, z_i), f = log p - T log q, without
    # gradient through f: the mean of the others is a control variate that leaves the gradient
    # unbiased (Mnih, Rezende 2016, Variational inference for Monte Carlo objectives)
    n_draws = len(log_joint)
    f = elbo(log_joint, log_q, temperature=temperature).detach()
    # f_i less the mean of the others is S / (S - 1) times f_i less the mean of all
    advantage = (f - f.mean(dim=0)) * (n_draws / (n_draws - 1))
    return (advantage * log_q + log_joint).mean(dim=0)


def importance_weighted(log_weight: Tensor) -> Tensor:
    """Return log 1/K sum_k w_k, in expectation at most log p(x) (Burda et al. 2016, IWAE)."""
    return torch.logsumexp(log_weight, dim=0) - math.log(len(log_weight))


def hvi_elbo(
    chain: LayeredPosterior, path: Trajectory, log_density: LogDensity, *, beta: float = 1
) -> Tensor:
    """Return log f(z_T) + beta (sum_t (log r_t - log q_t) - log q_0(z_0)), at most log Z."""
    return elbo(log_density(path.z[-1]), chain.log_weight(path), temperature=beta)


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Hold the parameters of a model constant in what is computed inside."""
    learned = [p for p in model.parameters() if p.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def log_densities(
    path: Trajectory, log_density: LogDensity, model: nn.Module | None, follows: bool = True
) -> Tensor:
    """Return log f of z_1, ..., z_T, (T, R, N); a model in it follows z_T, or none of them."""
    if model is None:
        return log_density(path.z[1:])
    with frozen(model):
        early = log_density(path.z[1:-1] if follows else path.z[1:])
    return torch.cat([early, log_density(path.z[-1:])]) if follows else early


def avo_terms(
    path: Trajectory, log_f: Tensor, *, beta: float = 1.0, prior_weight: float = 1.0
) -> Tensor:
    """Return J_1, ..., J_T, (T, R, N), of draws detached between transitions."""
    n_transitions = len(path.log_forward)
    z = path.z[1:]
    alpha = torch.arange(1, n_transitions + 1, dtype=z.dtype, device=z.device) / n_transitions
    alpha = alpha[:, None, None]
    target = alpha * log_f + prior_weight * (1.0 - alpha) * standard_log_density(z)
    return torch.add(target, path.log_reverse - path.log_forward, alpha=beta)


def avo(path: Trajectory, log_f: Tensor, *, beta: float = 1.0, prior_weight: float = 1.0) -> Tensor:
    """Return the sum of the annealed objectives, of shape (R, N), from log f of z_1, ..., z_T."""
    terms = avo_terms(path, log_f, beta=beta, prior_weight=prior_weight)
    # a base with parameters adds J_0 = E[log f_0(z_0) - log q_0(z_0)], its objective at alpha = 0
    start = prior_weight * standard_log_density(path.z[0]) - beta * path.log_base
    return terms.sum(dim=0) + start


def loss_calibrated(
    chain: LayeredPosterior,
    epsilon: Tensor,
    log_density: LogDensity,
    *,
    calibration: float,
    beta: float = 1.0,
    context: Tensor | None = None,
    model: nn.Module | None = None,  # what log_density learns, if anything
) -> tuple[Tensor, Trajectory]:
    """Return a sum_t J_t + (1 - a) ELBO, of the same draws, and these (loss-calibrated AVO)."""
    # an amortised fit passes 1 with probability a, and else 0: the same in expectation, in half the
    # time, as a part with weight 0 is not computed
    a, total = calibration, torch.zeros_like(epsilon[0, ..., 0])
    if a > 0:
        path = chain(epsilon, context=context, detach=True)
        log_f = log_densities(path, log_density, model)
        total = total + a * avo(path, log_f, beta=beta)
    if a < 1:
        path = chain(epsilon, context=context)
        total = total + (1.0 - a) * hvi_elbo(chain, path, log_density, beta=beta)
    return total, path


@torch.no_grad()
def log_evidence_bounds(
    chain: LayeredPosterior,
    log_density: LogDensity,
    noise: Noise,
    n_draws: int = 1000,
    n_reverse: int = 2000,
) -> tuple[Tensor, Tensor]:
    """Return bounds of log Z - KL(q, p) of a chain that is not amortised, of shape (R, N)."""
    # E[log f(z_T) - log q~(z_T)] and E[log f(z_T) - log q^(z_T)], where q^ is estimated with K
    # draws of the reverse chain and q~ counts the path to z_T among them.  The upper bound minus
    # log Z is the -KL of Huang et al. (2018), with K = 2,000.  Those of a flow are the same.
    path = chain(chain.draw_noise(n_draws, noise))
    log_f = log_density(path.z[-1])
    below, above = chain.log_marginal_bounds(path, n_reverse, noise)
    return log_f - above, log_f - below
