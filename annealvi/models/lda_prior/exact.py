r"""Exact log C(T) of tiny latent Dirichlet allocation problems.

Explicit form: the expectations over theta and beta of products of powers are ratios of Gamma
functions.  C depends on assignments only through the number of words n_dk of each topic in
each document:

.. math::
   C = \sum_{(n_{dk})} \prod_d \Big[ \frac{n_d!}{\prod_k n_{dk}!}
       E \prod_k \theta_{dk}^{b n_{dk}} \Big] \prod_k E \Big[ \sum_v \beta_{kv}^b \Big]^{n_k},
   \qquad n_k = \sum_d n_{dk}.

Documents are added one by one to a table over (n_1, ..., n_K).  All terms are positive.

Collapsed form: no such sum exists, and C is integrated numerically.  In stick-breaking
coordinates the prior is a product of Beta distributions.  The integrand is analytic between
their end points, and behaves like x^b at the end points.  Because of these, the error of
Gauss-Jacobi quadrature would only fall as a power of the number of nodes.  The error of a
double exponential rule, x = 1 / (1 + exp(-s)) with s = 2 sinh 0.7 u and even steps in u,
falls exponentially (Takahasi and Mori 1974).
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from annealvi.models.dirichlet import log_rising
from annealvi.partition.result import OutOfReach, check_log_c_at_1

#: Most terms that are summed, and most powers that are computed.
MOST_TERMS, MOST_POWERS = 2e7, 2.5e8
#: Step sizes of the quadrature, and the relative change from one to the next at which it ends.
#: The remaining error is smaller than this change by a factor of at least 5.
STEPS, CHANGE = (0.8, 0.6, 0.48, 0.4, 0.34, 0.29), 8e-9
#: Prior mass that may be left out, divided by the largest value of the integrand.
LEFT_OUT, LEAST_LEFT_OUT = 1e-11, 1e-19
#: Most nodes of a simplex, and powers that are computed at a time, so that they stay in cache.
MOST_NODES, CHUNK = 1 << 20, 1 << 16


class Problem(NamedTuple):
    """The problem for which C(T) is computed."""

    inverse: NDArray[np.float64]
    alpha: NDArray[np.float64]
    eta: NDArray[np.float64]
    n_features: int
    #: Distinct lengths of documents, and the number of documents of each length.
    lengths: NDArray[np.int64]
    copies: NDArray[np.int64]


# ---------------------------------------------------------------- explicit form


@np.errstate(over="ignore", invalid="ignore")  # of priors at the end of the range
def explicit(problem: Problem) -> NDArray[np.float64]:
    """Compute log C of the explicit form."""
    b, K = problem.inverse, len(problem.alpha)
    N = int(problem.lengths @ problem.copies)
    rows = 1 if np.all(problem.eta == problem.eta[0]) else K
    # logarithms, because these numbers may be too large for doubles
    log_splits = _log_choose(problem.lengths + K - 1.0, K - 1.0)
    log_table = (K - 1) * math.log(N + 1) + logsumexp(log_splits, b=problem.copies)
    n_terms = len(b) * (
        math.exp(min(log_table, 600.0)) + rows * problem.eta.shape[1] * float(N) ** 2
    )
    if n_terms > MOST_TERMS:
        raise OutOfReach(
            f"The exact log C of an LDA with {K} topics, {problem.n_features} features and {N} "
            f"words, at {len(b)} temperatures, sums {n_terms:.2g} terms; at most {MOST_TERMS:.0e} "
            "are summed. Use method='monte-carlo'."
        )
    words = [_log_topic_moments(problem, row, N) for row in problem.eta[:rows]] * (K // rows)
    sums = np.full((N + 1,) * (K - 1) + b.shape, -np.inf)
    sums[(0,) * (K - 1)] = 0.0
    A = problem.alpha.sum()
    for length, copies in zip(problem.lengths, problem.copies, strict=True):
        parts = np.array(list(_splits(int(length), K)))
        log_parts = _log_moments(parts, problem.alpha, b)
        log_parts += gammaln(length + 1) - log_rising(A, b * length)
        for _ in range(copies):
            longer = np.full_like(sums, -np.inf)
            for part, log_part in zip(parts[:, :-1], log_parts, strict=True):
                to = longer[tuple(slice(n, None) for n in part)]
                np.logaddexp(to, sums[tuple(slice(N + 1 - n) for n in part)] + log_part, out=to)
            sums = longer
    counts = np.indices((N + 1,) * (K - 1)).reshape(K - 1, (N + 1) ** (K - 1))
    last = N - counts.sum(axis=0)
    possible = last >= 0
    terms = sums.reshape(-1, len(b))[possible] + words[-1][last[possible]]
    for count, word in zip(counts[:, possible], words[:-1], strict=True):
        terms += word[count]
    values = np.logaddexp.reduce(terms, axis=0)
    check_log_c_at_1(values, b, N)
    return values


def _log_choose(n: NDArray, k: float) -> NDArray[np.float64]:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _splits(n: int, parts: int):
    """All ways to write n as an ordered sum of `parts` numbers >= 0."""
    for bars in itertools.combinations(range(n + parts - 1), parts - 1):
        edges = (-1, *bars, n + parts - 1)
        yield [right - left - 1 for left, right in itertools.pairwise(edges)]


def _log_moments(
    counts: NDArray[np.int64], prior: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """log prod_i Gamma(a_i + b n_i) / (Gamma(a_i) n_i!) for rows of counts."""
    raised = log_rising(prior[:, None], b * counts[..., None])
    return np.sum(raised - gammaln(counts + 1)[..., None], axis=1)


def _log_topic_moments(
    problem: Problem, eta: NDArray[np.float64], most: int
) -> NDArray[np.float64]:
    """log E[(sum_v beta_v^b)^n] for n = 0, ..., most: n! times coefficients of a product."""
    b, n = problem.inverse, np.arange(most + 1)
    series = [_log_moments(n[:, None], np.atleast_1d(value), b) for value in eta]
    if len(eta) == 1:
        product = _log_power(series[0], problem.n_features)
        total = eta[0] * problem.n_features
    else:
        product, total = series[0], eta.sum()
        for other in series[1:]:
            product = _log_product(product, other)
    outside = gammaln(n + 1)[:, None] - log_rising(total, b * n[:, None])
    return product + outside


def _log_product(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of the coefficients of a product of power series."""
    out = np.full_like(left, -np.inf)
    for n, coefficient in enumerate(left):
        np.logaddexp(out[n:], coefficient + right[: len(out) - n], out=out[n:])
    return out


def _log_power(series: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    out = None
    while power:
        if power & 1:
            out = series if out is None else _log_product(out, series)
        power >>= 1
        if power:
            series = _log_product(series, series)
    assert out is not None
    return out


# --------------------------------------------------------------- collapsed form


def collapsed(problem: Problem) -> NDArray[np.float64]:
    """Compute log C of the collapsed form."""
    V, N = problem.n_features, int(problem.lengths @ problem.copies)
    eta = np.broadcast_to(problem.eta, (len(problem.alpha), V))
    # S^N <= V^((1 - b) N), while C >= 1 may be much smaller
    log_most = N * (1 - problem.inverse.min()) * math.log(V)
    left_out = LEFT_OUT * math.exp(-min(log_most, 700.0))
    before, change = None, math.inf
    for step in STEPS if left_out >= LEAST_LEFT_OUT else ():
        theta = _simplex(problem.alpha, step, left_out)
        topics = _topics(eta, step, left_out)
        if theta is None or topics is None:
            break
        if len(theta[1]) * float(len(topics[1])) * V * len(problem.inverse) > MOST_POWERS:
            break
        values = _integral(problem, theta, topics)
        if before is not None:
            change = float(np.max(np.abs(np.expm1(values - before))))
            if change < CHANGE:
                return values
        before = values
    raise OutOfReach(
        f"The exact log C of a collapsed LDA with {len(problem.alpha)} topics, {V} features and "
        f"{N} words is a quadrature that comes to a relative change of {change:.2g} within "
        f"{MOST_POWERS:.0e} powers; {CHANGE:.0e} is wanted. Use method='monte-carlo'."
    )


Nodes = tuple[NDArray[np.float64], NDArray[np.float64]]


def _integral(problem: Problem, theta: Nodes, topics: Nodes) -> NDArray[np.float64]:
    """log of the sum, over nodes of the topics, of weight times the documents' integrals."""
    shares, weights = theta
    chunk = max(1, CHUNK // (len(weights) * problem.n_features))
    total = np.zeros(len(problem.inverse))
    for first in range(0, len(topics[1]), chunk):
        part = slice(first, first + chunk)
        with np.errstate(divide="ignore"):
            logs = np.log(shares @ topics[0][part])
        for m, b in enumerate(problem.inverse):
            sums = np.sum(np.exp(b * logs), axis=2) if b != 1 else np.ones(logs.shape[:2])
            documents = np.ones(len(sums))
            for length, copies in zip(problem.lengths, problem.copies, strict=True):
                documents *= (sums ** int(length) @ weights) ** int(copies)
            total[m] += topics[1][part] @ documents
    return np.log(total)


def _beta_rule(a: float, c: float, step: float) -> tuple[NDArray, NDArray, NDArray]:
    """Nodes of Beta(a, c): log x, log(1 - x), and weights that sum to 1."""
    u = step * np.arange(-math.ceil(11 / step), math.ceil(11 / step) + 1)
    s = 2 * np.sinh(0.7 * u)
    log_x, log_y = -np.logaddexp(0, -s), -np.logaddexp(0, s)
    log_weight = a * log_x + c * log_y + np.log(np.cosh(0.7 * u))
    weight = np.exp(log_weight - log_weight.max())
    keep = weight > 0
    return log_x[keep], log_y[keep], weight[keep] / weight.sum()


def _pruned(nodes: NDArray[np.float64], weights: NDArray[np.float64], left_out: float) -> Nodes:
    """Leave out the nodes of least weight."""
    order = np.argsort(weights)
    first = int(np.searchsorted(np.cumsum(weights[order]), left_out))
    keep = np.sort(order[first:])
    return nodes[keep], weights[keep] / weights[keep].sum()


def _simplex(prior: NDArray[np.float64], step: float, left_out: float) -> Nodes | None:
    """Nodes of a Dirichlet distribution, of shape (nodes, n), and their weights."""
    logs, rest, weights = np.zeros((1, 0)), np.zeros(1), np.ones(1)
    for i in range(len(prior) - 1):
        log_x, log_y, weight = _beta_rule(prior[i], prior[i + 1 :].sum(), step)
        if len(weights) * len(weight) > MOST_NODES:
            return None
        stick = np.add.outer(rest, log_x).reshape(-1, 1)
        logs = np.hstack([np.repeat(logs, len(log_x), axis=0), stick])
        rest = np.add.outer(rest, log_y).ravel()
        nodes, weights = _pruned(
            np.hstack([logs, rest[:, None]]), np.outer(weights, weight).ravel(), left_out
        )
        logs, rest = nodes[:, :-1], nodes[:, -1]
    return np.exp(np.hstack([logs, rest[:, None]])), weights


def _topics(eta: NDArray[np.float64], step: float, left_out: float) -> Nodes | None:
    """Nodes of all topics together, of shape (nodes, K, V), and their weights."""
    nodes, weights = np.zeros((1, 0, eta.shape[1])), np.ones(1)
    for row in eta:
        simplex = _simplex(row, step, left_out)
        if simplex is None or len(weights) * len(simplex[1]) > 4 * MOST_NODES:
            return None
        own = np.tile(simplex[0], (len(weights), 1))[:, None]
        nodes = np.concatenate([np.repeat(nodes, len(simplex[1]), axis=0), own], axis=1)
        nodes, weights = _pruned(nodes, np.outer(weights, simplex[1]).ravel(), left_out)
    return nodes, weights


METHODS = {"explicit": explicit, "collapsed": collapsed}
