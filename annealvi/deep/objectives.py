r"""Objectives of deep models: two estimators of the ELBO, and annealed objectives of chains.

Annealed variational objectives (Huang, Tan, Lacoste, Courville 2018, *Improving
explorability in variational inference with annealed variational objectives*) give each
transition of a chain its own target, between the base and the posterior:

.. math::
   \log \tilde f_t = \alpha_t \log f + (1 - \alpha_t) \log f_0, \quad \alpha_t = t / T,

where f is the target of the chain up to a constant, and :math:`f_0 = N(0, I)`.  If :math:`f_0` is
the prior, then :math:`\tilde f_t = p(z)\,p(x \mid z)^{\alpha_t}`.  Transition t maximises only

.. math::
   J_t = E[\alpha_t \log f(z_t) + (1 - \alpha_t) \log f_0(z_t)
   + \log r_t(z_{t-1} \mid z_t) - \log q_t(z_t \mid z_{t-1})]

with :math:`z_{t-1}` held constant.  If f is a model p(x, z) with parameters, only the gradient of
J_T updates them.  States before :math:`z_T` are broad on purpose, so a model fitted to them would
be too broad.  A weight beta, which may rise during a fit, multiplies log r and log q (appendix D of
the paper).  If :math:`f_0` is a prior, beta also multiplies the prior (Eq. 2 of the paper).  Beta
acts as a temperature, which is low at first if beta begins below 1.  The functions below return one
estimate for each draw.  A fit *maximises* their average.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Module

from annealvi.deep.hvi import LayeredPosterior, Trajectory, standard_log_density
from annealvi.deep.training import Noise

#: The function log f, which takes a Tensor of shape (..., d) and returns one of shape (...).
LogDensity = Callable[[Tensor], Tensor]


def elbo(log_joint: Tensor, log_q: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return the tempered ELBO log p - T log q of reparametrised draws."""
    return torch.sub(log_joint, log_q, alpha=temperature)


def leave_one_out(log_joint: Tensor, log_q: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return a number whose gradient estimates that of the ELBO, from S >= 2 detached draws."""
    # it is 1/S sum_i (f_i - mean of the other f) log q(z_i) + log p(x, z_i) with f = log p - T log
    # q, without gradient through f; the mean of the other f is a control variate, with which the
    # gradient is unbiased (Mnih, Rezende 2016, Variational inference for Monte Carlo objectives)
    n_draws = len(log_joint)
    f = elbo(log_joint, log_q, temperature=temperature).detach()
    # f_i minus the mean of the other f is S / (S - 1) times f_i minus the mean of all f
    advantage = (f - f.mean(dim=0)) * (n_draws / (n_draws - 1))
    return (advantage * log_q + log_joint).mean(dim=0)


def importance_weighted(log_weight: Tensor) -> Tensor:
    """Return log 1/K sum_k w_k, whose expectation is at most log p(x) (Burda et al. 2016)."""
    return torch.logsumexp(log_weight, dim=0) - math.log(len(log_weight))


def hvi_elbo(
    chain: LayeredPosterior, path: Trajectory, log_density: LogDensity, *, beta: float = 1
) -> Tensor:
    """Return log f(z_T) + beta (sum_t (log r_t - log q_t) - log q_0(z_0)) of each draw."""
    return elbo(log_density(path.z[-1]), chain.log_weight(path), temperature=beta)


@contextmanager
def frozen(model: Module) -> Iterator[None]:
    """Return a context in which the parameters of a model get no gradient."""
    # only these are set back afterwards
    learned = [p for p in model.parameters() if p.requires_grad]
    model.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def log_densities(
    path: Trajectory, log_density: LogDensity, model: Module | None, follows: bool = True
) -> Tensor:
    """Return log f of z_1, ..., z_T, (T, R, N), with gradients for the states.

    `model` is the network in log_density that is trained (None: none).  It gets a gradient only
    from z_T, and only if `follows`.
    """
    if model is None:
        return log_density(path.z[1:])
    with frozen(model):
        early = log_density(path.z[1:-1] if follows else path.z[1:])
    return torch.cat([early, log_density(path.z[-1:])]) if follows else early


def avo_terms(
    path: Trajectory, log_f: Tensor, *, beta: float = 1.0, prior_weight: float = 1.0
) -> Tensor:
    """Return J_1, ..., J_T, of shape (T, R, N), for draws that were detached at each transition."""
    n_transitions = len(path.log_forward)
    z = path.z[1:]
    t = torch.arange(1, n_transitions + 1, dtype=z.dtype, device=z.device)
    alpha = t[:, None, None] / n_transitions  # axes for runs and draws
    target = alpha * log_f + prior_weight * (1.0 - alpha) * standard_log_density(z)
    return torch.add(target, path.log_reverse - path.log_forward, alpha=beta)


def avo(path: Trajectory, log_f: Tensor, *, beta: float = 1.0, prior_weight: float = 1.0) -> Tensor:
    """Return the sum of the annealed objectives, of shape (R, N); log_f is at z_1, ..., z_T."""
    terms = avo_terms(path, log_f, beta=beta, prior_weight=prior_weight)
    # J_0 = E[log f_0(z_0) - log q_0(z_0)], at alpha = 0, is the objective of a base with parameters
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
    model: Module | None = None,  # the network in log_density that is trained, if any
) -> tuple[Tensor, Trajectory]:
    """Return loss-calibrated AVO, a sum_t J_t + (1 - a) ELBO, with the draws that it used."""
    # `calibration` is a; an amortised fit passes a weight of 1 with probability a, otherwise 0:
    # the expectation is the same, and it takes half the time, because a term with weight 0 is not
    # computed
    objective = torch.zeros_like(epsilon[0, ..., 0])  # of shape (R, N)
    if calibration > 0:
        path = chain(epsilon, context=context, detach=True)
        log_f = log_densities(path, log_density, model)
        objective = objective + calibration * avo(path, log_f, beta=beta)
    if calibration < 1:
        path = chain(epsilon, context=context)
        bound = hvi_elbo(chain, path, log_density, beta=beta)
        objective = objective + (1.0 - calibration) * bound
    return objective, path


@torch.no_grad()
def log_evidence_bounds(
    chain: LayeredPosterior,
    log_density: LogDensity,
    noise: Noise,
    n_draws: int = 1000,
    n_reverse: int = 2000,
) -> tuple[Tensor, Tensor]:
    """Return bounds of log Z - KL(q, p) for a chain that is not amortised, of shape (R, N)."""
    # the bounds are E[log f(z_T) - log q~(z_T)] and E[log f(z_T) - log q^(z_T)].  q^ is estimated
    # from K draws of the reverse chain; q~ also includes the states that z_T was drawn from.  The
    # upper bound minus log Z is the -KL of Huang et al. (2018), with K = 2,000.  In a flow both
    # bounds are equal.
    path = chain(chain.draw_noise(n_draws, noise))
    log_f = log_density(path.z[-1])
    below, above = chain.log_marginal_bounds(path, n_reverse, noise)  # of log q(z_T)
    return log_f - above, log_f - below
