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

only, with :math:`z_{t-1}` held constant.  All terms but those of log f (log q, log r and
:math:`(1 - \alpha) \log f_0`) have a weight beta, which may rise over a fit.  It acts as the
temperature of log f: a fit that begins with beta below 1 starts cold.  Each function below
returns one estimate per draw, to be averaged and *maximised*.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from annealvi.deep.gaussians import standard_log_density
from annealvi.deep.noise import Noise
from annealvi.deep.paths import LayeredPosterior, Trajectory

#: log f: takes a Tensor of shape (..., d) and returns one of shape (...).
LogDensity = Callable[[Tensor], Tensor]


def elbo(log_joint: Tensor, log_q: Tensor, *, temperature: float = 1.0) -> Tensor:
    r"""Return the evidence lower bound :math:`\log p - T \log q` of reparametrised draws.

    Parameters
    ----------
    log_joint, log_q : Tensors of one shape
        log p(x, z) and log q(z | x), differentiable through z.
    temperature : float, default=1.0
        T, the weight of the entropy.  Above 1 the fit explores.

    Returns
    -------
    Tensor of the same shape
    """
    return torch.sub(log_joint, log_q, alpha=temperature)


def leave_one_out(log_joint: Tensor, log_q: Tensor, *, temperature: float = 1.0) -> Tensor:
    r"""Return a surrogate with the gradient of the ELBO, for draws without a gradient.

    .. math::
       \frac1S \sum_i \Big[\big(f_i - \tfrac{1}{S-1} \sum_{j \ne i} f_j\big) \log q(z_i)
       + \log p(x, z_i)\Big], \quad f_i = \log p(x, z_i) - T \log q(z_i),

    with no gradient through f.  The mean of f over the other draws is a control variate that
    leaves the gradient unbiased (Mnih, Rezende 2016, *Variational inference for Monte Carlo
    objectives*).  The value of the surrogate has no meaning.

    Parameters
    ----------
    log_joint, log_q : Tensors of shape (S, ...)
        log p(x, z) and log q(z | x) of S >= 2 independent draws from q.
    temperature : float, default=1.0
        T.

    Returns
    -------
    Tensor of shape (...)

    Raises
    ------
    ValueError
        If there are fewer than two draws.
    """
    n_draws = len(log_joint)
    if n_draws < 2:
        raise ValueError(f"leave_one_out needs at least two draws. Got {n_draws} instead.")
    f = elbo(log_joint, log_q, temperature=temperature).detach()
    # f_i less the mean of the others is S / (S - 1) times f_i less the mean of all
    advantage = (f - f.mean(dim=0)) * (n_draws / (n_draws - 1))
    return (advantage * log_q + log_joint).mean(dim=0)


def importance_weighted(log_weight: Tensor) -> Tensor:
    r"""Return the bound :math:`\log \frac1K \sum_k w_k \le \log p(x)` (in expectation).

    Burda, Grosse, Salakhutdinov (2016), *Importance weighted autoencoders*.

    Parameters
    ----------
    log_weight : Tensor of shape (K, ...)
        log p(x, z_k) - log q(z_k | x); for a chain log f(z_T) minus
        :meth:`annealvi.deep.paths.LayeredPosterior.log_weight`.

    Returns
    -------
    Tensor of shape (...)
    """
    return torch.logsumexp(log_weight, dim=0) - math.log(len(log_weight))


def hvi_elbo(
    chain: LayeredPosterior, path: Trajectory, log_density: LogDensity, *, beta: float = 1
) -> Tensor:
    r"""Return the ELBO of a hierarchical posterior, a lower bound of log Z.

    .. math::
       \log f(z_T) + \beta \Big[\sum_t (\log r_t - \log q_t) - \log q_0(z_0)\Big].

    Parameters
    ----------
    chain : LayeredPosterior
    path : Trajectory
        Draws along it, not detached.
    log_density : callable
        log f.
    beta : float, default=1

    Returns
    -------
    Tensor of shape (R, N)
    """
    return elbo(log_density(path.z[-1]), chain.log_weight(path), temperature=beta)


def avo_terms(
    path: Trajectory,
    log_density: LogDensity,
    *,
    beta: float = 1.0,
    log_base_target: LogDensity = standard_log_density,
) -> Tensor:
    r"""Return the annealed objectives J_1, ..., J_T.

    Parameters
    ----------
    path : Trajectory
        Draws along a chain, *detached* between transitions.
    log_density : callable
        log f.
    beta : float, default=1.0
    log_base_target : callable, default=standard_log_density
        :math:`\log f_0`.

    Returns
    -------
    Tensor of shape (T, R, N)

    Raises
    ------
    ValueError
        If the chain has no transitions.
    """
    n_transitions = len(path.log_forward)
    if n_transitions == 0:
        raise ValueError("Annealed objectives need a chain of at least one transition.")
    z = path.z[1:]
    alpha = torch.arange(1, n_transitions + 1, dtype=z.dtype, device=z.device) / n_transitions
    alpha = alpha[:, None, None]
    others = path.log_reverse - path.log_forward + (1.0 - alpha) * log_base_target(z)
    return torch.add(alpha * log_density(z), others, alpha=beta)


def avo(
    path: Trajectory,
    log_density: LogDensity,
    *,
    beta: float = 1.0,
    log_base_target: LogDensity = standard_log_density,
) -> Tensor:
    r"""Return the sum of the annealed objectives, :math:`\sum_t J_t`.

    A base with parameters adds :math:`J_0 = E[\log f_0(z_0) - \log q_0(z_0)]`, its own
    objective at :math:`\alpha = 0`.

    Parameters
    ----------
    path, log_density, beta, log_base_target
        See :func:`avo_terms`.

    Returns
    -------
    Tensor of shape (R, N)
    """
    terms = avo_terms(path, log_density, beta=beta, log_base_target=log_base_target)
    return terms.sum(dim=0) + beta * (log_base_target(path.z[0]) - path.log_base)


def loss_calibrated(
    chain: LayeredPosterior,
    epsilon: Tensor,
    log_density: LogDensity,
    *,
    calibration: float,
    beta: float = 1.0,
    context: Tensor | None = None,
    log_base_target: LogDensity = standard_log_density,
) -> tuple[Tensor, Trajectory]:
    r"""Return a mixture of annealed objectives and ELBO, :math:`a \sum_t J_t + (1 - a) L`.

    Both use the same draws (loss-calibrated AVO).  A part with weight 0 is not computed.

    Parameters
    ----------
    chain : LayeredPosterior
    epsilon : Tensor of shape (T + 1, R, N, d)
        Standard normal numbers, see :meth:`annealvi.deep.paths.LayeredPosterior.draw_noise`.
    log_density : callable
        log f.
    calibration : float
        a in [0, 1].  An amortised fit can instead pass 1 with probability a, and else 0, which
        is the same in expectation and takes half the time.
    beta : float, default=1.0
    context : Tensor of shape (R, N, c) or (N, c), optional
    log_base_target : callable, default=standard_log_density
        :math:`\log f_0`.

    Returns
    -------
    objective : Tensor of shape (R, N)
    path : Trajectory
        The draws.
    """
    a, total = calibration, torch.zeros_like(epsilon[0, ..., 0])
    if a > 0:
        path = chain(epsilon, context=context, detach=True)
        total = total + a * avo(path, log_density, beta=beta, log_base_target=log_base_target)
    if a < 1:
        path = chain(epsilon, context=context)
        total = total + (1.0 - a) * hvi_elbo(chain, path, log_density, beta=beta)
    return total, path


@torch.no_grad()
def log_evidence_bounds(
    chain: LayeredPosterior,
    log_density: LogDensity,
    noise: Noise,
    *,
    n_draws: int = 1000,
    n_reverse: int = 2000,
) -> tuple[Tensor, Tensor]:
    r"""Return bounds of :math:`\log Z - KL(q \| p)` of a chain that is not amortised.

    .. math::
       E[\log f(z_T) - \log \tilde q(z_T)] \le \log Z - KL(q \| p)
       \le E[\log f(z_T) - \log \hat q(z_T)],

    where :math:`\log \hat q` is estimated with K draws of the reverse chain and
    :math:`\log \tilde q` counts the path that led to z_T among them, see
    :meth:`annealvi.deep.hvi.Chain.log_marginal`.  The upper bound minus log Z is the -KL of
    Huang et al. (2018), who take K = 2,000.  A flow has a density in closed form: then both
    bounds are the same.

    Parameters
    ----------
    chain : LayeredPosterior
    log_density : callable
        log f.
    noise : Noise
    n_draws, n_reverse : int, default=1000 and 2000
        N draws of each run, and K draws of the reverse chain for each of them.

    Returns
    -------
    below, above : Tensors of shape (R, N)
        Their means over N are the bounds.
    """
    path = chain(chain.draw_noise(n_draws, noise))
    log_f = log_density(path.z[-1])
    below, above = chain.log_marginal_bounds(path, n_reverse, noise)
    return log_f - above, log_f - below
