r"""The normaliser C(T) of the tempered likelihood of LDA, averaged over the prior of LDA.

For D documents with lengths n_d, at b = 1/T,

.. math::
   C = E_\beta \prod_d E_\theta [S(\theta, \beta)^{n_d}], \qquad
   S = \sum_k \theta_k^b \sum_v \beta_{kv}^b \;\text{(explicit)}, \quad
   S = \sum_v \Big( \sum_k \theta_k \beta_{kv} \Big)^b \;\text{(collapsed)}.

The explicit form tempers p(w, z | theta, beta), as the updates of tempered LDA do.  The
collapsed form, Eq. 18 of Mandt et al. (2016), tempers p(w | theta, beta).

**Exact values for tiny problems.**

In the explicit form, the expectations of products of powers of theta and beta are ratios of Gamma
functions.  Let n_dk be the number of words of document d that are assigned to topic k.  Assignments
with the same n_dk contribute equally to C, so C is a sum over these numbers:

.. math::
   C = \sum_{(n_{dk})} \prod_d \Big[ \frac{n_d!}{\prod_k n_{dk}!}
       E \prod_k \theta_{dk}^{b n_{dk}} \Big] \prod_k E \Big[ \sum_v \beta_{kv}^b \Big]^{n_k},
   \qquad n_k = \sum_d n_{dk}.

A table with a positive partial sum for each (n_1, ..., n_K) is updated document by document.

In the collapsed form C is not a finite sum, and is integrated numerically.  In stick-breaking
coordinates the prior is a product of Beta distributions.  In each coordinate x the integrand is
analytic between 0 and 1, but behaves like x^b near 0 and like (1 - x)^b near 1.  Therefore the
error of Gauss-Jacobi quadrature would fall only as a power of the number of nodes.  A double
exponential rule, x = 1 / (1 + exp(-s)) with s = 2 sinh 0.7 u and even steps in u, has an error that
falls exponentially (Takahasi and Mori 1974).

All arrays of this module but those of counts are in double precision.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints

from annealvi._kernels import gemm, special
from annealvi._kernels import partition as kernels
from annealvi._kernels.layout import padded_rows
from annealvi.checks import COUNT, as_array, check_inverses, check_priors, checked
from annealvi.exceptions import BadParameter
from annealvi.matrices import check_matrix, summed
from annealvi.models.dirichlet import centre, log_rising
from annealvi.partition.estimate import Draws, PowerGrid, log_mean_exp
from annealvi.partition.result import OutOfReach, check_log_c_at_1

#: The largest numbers of terms that are summed, and of powers that are computed.
MOST_TERMS = 2e7
MOST_POWERS = 2.5e8
#: Step sizes of the quadrature.  It ends when the relative change from one step size to the next is
#: below CHANGE.  The remaining error is at least 5 times smaller than this change.
STEPS = (0.8, 0.6, 0.48, 0.4, 0.34, 0.29)
CHANGE = 8e-9
#: Prior probability that may be left out, divided by the largest value of the integrand.
LEFT_OUT = 1e-11
LEAST_LEFT_OUT = 1e-19
#: Most nodes of a simplex; and how many powers are computed together, so that they stay in cache.
MOST_NODES = 1 << 20
CHUNK = 1 << 16


class Problem(NamedTuple):
    """The model and the temperatures for which C(T) is computed."""

    inverse: NDArray
    alpha: NDArray
    eta: NDArray
    n_features: int
    #: Distinct lengths of documents, and the number of documents of each length.
    lengths: NDArray[np.int64]
    copies: NDArray[np.int64]


# ---------------------------------------------------------------- explicit form


@np.errstate(over="ignore", invalid="ignore")  # priors near the largest float may overflow
def explicit(problem: Problem) -> NDArray:
    """Compute log C of the explicit form, from a table of sums (see the module)."""
    b = problem.inverse
    K = len(problem.alpha)
    N = int(problem.lengths @ problem.copies)
    n_free = K - 1  # the numbers n_1, ..., n_(K-1); n_K is the rest
    n_distinct_topics = 1 if np.all(problem.eta == problem.eta[0]) else K
    # logarithms are used because these numbers may be too large for doubles
    log_splits = _log_choose(problem.lengths + K - 1.0, K - 1.0)
    log_n_splits = special.log_sum_exp(log_splits + special.log(problem.copies))
    # at most exp(600), which a double can represent
    n_splits = math.exp(min(n_free * math.log(N + 1) + log_n_splits, 600.0))
    n_terms = len(b) * (n_splits + n_distinct_topics * problem.eta.shape[1] * float(N) ** 2)
    if n_terms > MOST_TERMS:
        raise OutOfReach(
            f"method='exact' would add {n_terms:.2g} terms for {K} topics, {problem.n_features} "
            f"features, {N} words and {len(b)} temperatures, and at most {MOST_TERMS:.0e} are "
            "allowed. Use method='monte-carlo'."
        )
    log_topic_moments = [
        _log_topic_moments(problem, row, N) for row in problem.eta[:n_distinct_topics]
    ] * (K // n_distinct_topics)
    # log_sums[n_1, ..., n_(K-1)] is the partial sum over the documents so far
    shape = (N + 1,) * n_free
    log_sums = np.full(shape + b.shape, -np.inf)
    log_sums[(0,) * n_free] = 0.0
    A = problem.alpha.sum()
    for length, copies in zip(problem.lengths, problem.copies, strict=True):
        splits_of_length = np.array(list(_splits(int(length), K)))
        log_splits_b = _log_moments(splits_of_length, problem.alpha, b)
        log_splits_b += special.lgamma(length + 1) - log_rising(A, b * length)
        for _ in range(copies):
            updated_sums = np.full_like(log_sums, -np.inf)
            for split, log_split in zip(splits_of_length[:, :-1], log_splits_b, strict=True):
                # the words of this document move each sum to larger n_k
                target = updated_sums[tuple(slice(n, None) for n in split)]
                np.logaddexp(
                    target, log_sums[tuple(slice(N + 1 - n) for n in split)] + log_split, out=target
                )
            log_sums = updated_sums
    topic_counts = np.indices(shape).reshape(n_free, math.prod(shape))
    last_topic_counts = N - topic_counts.sum(axis=0)
    is_possible = last_topic_counts >= 0
    terms = (
        log_sums.reshape(-1, len(b))[is_possible]
        + log_topic_moments[-1][last_topic_counts[is_possible]]
    )
    for counts_of_topic, log_moments_of_topic in zip(
        topic_counts[:, is_possible], log_topic_moments[:-1], strict=True
    ):
        terms += log_moments_of_topic[counts_of_topic]
    values = np.logaddexp.reduce(terms, axis=0)
    check_log_c_at_1(values, b, N)
    return values


def _log_choose(n: NDArray, k: float) -> NDArray:
    """The logarithm of the binomial coefficient n over k."""
    return special.lgamma(n + 1) - special.lgamma(k + 1) - special.lgamma(n - k + 1)


def _splits(n: int, n_topics: int):
    """Yield all ways to write n as an ordered sum of `n_topics` numbers >= 0."""
    for bars in itertools.combinations(range(n + n_topics - 1), n_topics - 1):
        edges = (-1, *bars, n + n_topics - 1)
        yield [right - left - 1 for left, right in itertools.pairwise(edges)]


def _log_moments(counts: NDArray[np.int64], prior: NDArray, b: NDArray) -> NDArray:
    """Compute log prod_i Gamma(a_i + b n_i) / (Gamma(a_i) n_i!) for each row of counts n."""
    raised = log_rising(prior[:, None], b * counts[..., None])
    return np.sum(raised - special.lgamma(counts + 1)[..., None], axis=1)


def _log_topic_moments(problem: Problem, eta: NDArray, n_words: int) -> NDArray:
    """Compute log E[(sum_v beta_v^b)^n] for n = 0, ..., n_words, from a product of power series.

    With eta_0 the sum of eta, the moment is n! Gamma(eta_0) / Gamma(eta_0 + b n) times coefficient
    n of the product over words v of the series sum_m x^m Gamma(eta_v + b m) / (Gamma(eta_v) m!).
    """
    b = problem.inverse
    n = np.arange(n_words + 1, dtype=np.int64)
    series = [_log_moments(n[:, None], np.atleast_1d(value), b) for value in eta]
    if len(eta) == 1:  # all words have the same eta, and so the same series
        product = _log_power(series[0], problem.n_features)
        total = eta[0] * problem.n_features
    else:
        product = series[0]
        total = eta.sum()
        for factor in series[1:]:
            product = _log_product(product, factor)
    log_factor = special.lgamma(n + 1)[:, None] - log_rising(total, b * n[:, None])
    return product + log_factor


def _log_product(left: NDArray, right: NDArray) -> NDArray:
    """Compute the logarithms of the coefficients of a product of two power series."""
    log_coefficients = np.full_like(left, -np.inf)
    for n, coefficient in enumerate(left):
        np.logaddexp(
            log_coefficients[n:],
            coefficient + right[: len(log_coefficients) - n],
            out=log_coefficients[n:],
        )
    return log_coefficients


def _log_power(series: NDArray, power: int) -> NDArray:
    """The logarithms of the coefficients of a power of a series, by repeated squaring."""
    log_result = None
    while power:
        if power & 1:
            log_result = series if log_result is None else _log_product(log_result, series)
        power >>= 1
        if power:
            series = _log_product(series, series)
    assert log_result is not None
    return log_result


# --------------------------------------------------------------- collapsed form


def collapsed(problem: Problem) -> NDArray:
    """Compute log C of the collapsed form."""
    V = problem.n_features
    N = int(problem.lengths @ problem.copies)
    eta = np.broadcast_to(problem.eta, (len(problem.alpha), V))
    # S^N can be as large as V^((1 - b) N), and C >= 1 may be much smaller
    log_most = N * (1 - problem.inverse.min()) * math.log(V)
    left_out_probability = LEFT_OUT * math.exp(-min(log_most, 700.0))
    previous_values = None
    change = math.inf
    # if too little may be left out, no step is tried, and the error below is raised
    for step in STEPS if left_out_probability >= LEAST_LEFT_OUT else ():
        theta = _simplex(problem.alpha, step, left_out_probability)
        topics = _topics(eta, step, left_out_probability)
        if theta is None or topics is None:
            break
        n_nodes = float(len(theta.weights)) * len(topics.weights)
        if n_nodes * V * len(problem.inverse) > MOST_POWERS:
            break
        values = _integral(problem, theta, topics)
        if previous_values is not None:
            change = float(np.max(np.abs(np.expm1(values - previous_values))))
            if change < CHANGE:
                return values
        previous_values = values
    raise OutOfReach(
        f"method='exact' is too inaccurate for {len(problem.alpha)} topics, {V} features and {N} "
        f"words: its relative error is about {change:.2g}, and at most {CHANGE:.0e} is allowed. "
        "Use method='monte-carlo'."
    )


class Quadrature(NamedTuple):
    """The nodes of a quadrature rule, and their weights, which sum to 1."""

    nodes: NDArray
    weights: NDArray


def _integral(problem: Problem, theta: Quadrature, topics: Quadrature) -> NDArray:
    """The logarithm of the integral over topics, of the product of integrals of documents."""
    topic_shares = theta.nodes
    # so many nodes at a time that the powers stay in the cache
    chunk_size = max(1, CHUNK // (len(topic_shares) * problem.n_features))
    integrals = np.zeros(len(problem.inverse))
    for chunk in gen_batches(len(topics.weights), chunk_size):
        nodes = topics.nodes[chunk]
        word_probabilities = gemm.product(
            np.broadcast_to(topic_shares, (len(nodes), *topic_shares.shape)), nodes
        )
        logs = special.log(word_probabilities)
        for m, b in enumerate(problem.inverse):
            # S for each node of the topics and of theta; at b = 1 probabilities sum to 1
            power_sums = (
                np.sum(special.exp(b * logs), axis=2) if b != 1 else np.ones(logs.shape[:2])
            )
            # all documents of a length have the same integral over theta
            document_product = np.ones(len(power_sums))
            for length, copies in zip(problem.lengths, problem.copies, strict=True):
                powers = special.power(power_sums, int(length))
                document_product *= special.power(
                    np.sum(powers * theta.weights, axis=1), int(copies)
                )
            integrals[m] += np.sum(topics.weights[chunk] * document_product)
    return special.log(integrals)


def _beta_rule(a: float, c: float, step: float) -> tuple[NDArray, NDArray, NDArray]:
    """Nodes for Beta(a, c): log x, log(1 - x), and weights that sum to 1."""
    n_steps = math.ceil(11 / step)
    u = step * np.arange(-n_steps, n_steps + 1, dtype=np.int64)
    exp_u = special.exp(0.7 * u)
    exp_minus_u = special.exp(-0.7 * u)
    s = exp_u - exp_minus_u
    log_x = -np.logaddexp(0, -s)
    log_y = -np.logaddexp(0, s)
    log_weight = a * log_x + c * log_y + special.log(exp_u + exp_minus_u)
    weight = special.exp(log_weight - log_weight.max())
    is_positive = weight > 0
    return log_x[is_positive], log_y[is_positive], weight[is_positive] / weight.sum()


def _pruned(nodes: NDArray, weights: NDArray, left_out: float) -> Quadrature:
    """Leave out the nodes with the smallest weights, whose sum is at most `left_out`."""
    order = np.argsort(weights, kind="stable")
    n_left_out = int(np.searchsorted(np.cumsum(weights[order]), left_out))
    kept_nodes = np.sort(order[n_left_out:])
    return Quadrature(nodes[kept_nodes], weights[kept_nodes] / weights[kept_nodes].sum())


def _simplex(prior: NDArray, step: float, left_out: float) -> Quadrature | None:
    """Nodes for a Dirichlet distribution, of shape (nodes, n), and their weights."""
    logs = np.zeros((1, 1))  # of the pieces, and in the last column of what remains of the stick
    weights = np.ones(1)
    # stick breaking: a piece x of what remains of the stick, and 1 - x is left for the next pieces
    for i in range(len(prior) - 1):
        log_x, log_y, piece_weights = _beta_rule(prior[i], prior[i + 1 :].sum(), step)
        if len(weights) * len(piece_weights) > MOST_NODES:
            return None
        log_pieces = np.repeat(logs[:, :-1], len(log_x), axis=0)
        log_piece, log_remaining = (
            np.add.outer(logs[:, -1], log_share).reshape(-1, 1) for log_share in (log_x, log_y)
        )
        logs = np.hstack([log_pieces, log_piece, log_remaining])
        logs, weights = _pruned(logs, np.outer(weights, piece_weights).ravel(), left_out)
    return Quadrature(special.exp(logs), weights)


def _topics(eta: NDArray, step: float, left_out: float) -> Quadrature | None:
    """Nodes for all topics together, of shape (nodes, K, V), and their weights."""
    nodes = np.zeros((1, 0, eta.shape[1]))
    weights = np.ones(1)
    for row in eta:  # each topic multiplies the number of nodes
        simplex = _simplex(row, step, left_out)
        if simplex is None or len(weights) * len(simplex.weights) > 4 * MOST_NODES:
            return None
        topic = np.tile(simplex.nodes, (len(weights), 1))[:, None]
        nodes = np.concatenate([np.repeat(nodes, len(simplex.weights), axis=0), topic], axis=1)
        nodes, weights = _pruned(nodes, np.outer(weights, simplex.weights).ravel(), left_out)
    return Quadrature(nodes, weights)


METHODS = {"explicit": explicit, "collapsed": collapsed}


#: Limits for each draw of beta, if documents form more than one group.  GROUPS_BLOCK limits the
#: numbers that are drawn for theta (times V in the collapsed form), SUMS_BLOCK the sums of powers
#: of these numbers, and LENGTHS_BLOCK the powers of S for the lengths of documents.
GROUPS_BLOCK = 500_000
SUMS_BLOCK = 4_000_000
LENGTHS_BLOCK = 20_000_000

#: Most words.  Doubles can represent every whole number up to this.
MOST_WORDS = 2**53

LogPartitionForm = Literal["explicit", "collapsed"]


class LDAPrior:
    """The prior of latent Dirichlet allocation, for :func:`annealvi.partition.log_partition`.

    Parameters
    ----------
    n_components, n_features : int
        The number K of topics and the number V of words in the vocabulary.
    document_lengths : array-like of shape (n_documents,)
        Number of words in each document, as integers whose sum is at most 2^53.
    doc_topic_prior : float or array-like of shape (K,), default=None
        The prior alpha of the topics in a document.  None means 1 / K.
    topic_word_prior : float or array-like of shape (V,) or (K, V), default=None
        The prior eta of the words in a topic.  None means 1 / K.
    form : {"explicit", "collapsed"}, default="explicit"
        ``"explicit"`` tempers words together with their assignments to topics, as the updates of
        tempered LDA do.  ``"collapsed"`` tempers words alone, with assignments summed out.

    Attributes
    ----------
    n_documents : int
    n_words : int
        The sum of the document lengths.

    Examples
    --------
    >>> import numpy as np
    >>> prior = LDAPrior(3, 50, [10, 20, 10], doc_topic_prior=0.1, topic_word_prior=0.1)
    >>> prior.n_words
    40
    """

    @checked
    def __init__(
        self,
        n_components: int,
        n_features: int,
        document_lengths: ArrayLike,
        *,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: ArrayLike | None = None,
        form: LogPartitionForm = "explicit",
    ) -> None:
        """Check the parameters; count how many documents have each length."""
        forms = [StrOptions({"explicit", "collapsed"})]
        validate_parameter_constraints(
            {"n_components": COUNT, "n_features": COUNT, "form": forms},
            {"n_components": n_components, "n_features": n_features, "form": form},
            "LDAPrior",
        )
        self.n_components = int(n_components)
        self.n_features = int(n_features)
        symmetric = 1 / self.n_components
        self.doc_topic_prior, self.topic_word_prior = check_priors(
            symmetric if doc_topic_prior is None else doc_topic_prior,
            symmetric if topic_word_prior is None else topic_word_prior,
            shape=(self.n_components, self.n_features),
            dtype=np.dtype(np.float64),
        )
        self.form = form
        self.document_lengths, self._copies = _distinct_lengths(document_lengths)
        self.n_documents = int(self._copies.sum())
        self.n_words = int(self.document_lengths @ self._copies)

    @classmethod
    def from_counts(
        cls,
        X: Any,
        n_components: int,
        *,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: ArrayLike | None = None,
        form: LogPartitionForm = "explicit",
    ) -> LDAPrior:
        """Make the prior for the documents of a matrix of counts.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Counts of words, as integers.
        n_components, doc_topic_prior, topic_word_prior, form
            The same as in the class.
        """
        X = check_matrix(X)
        document_lengths = summed(X, axis=1, dtype=np.float64)
        return cls(
            n_components,
            X.shape[1],
            document_lengths,
            doc_topic_prior=doc_topic_prior,
            topic_word_prior=topic_word_prior,
            form=form,
        )

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C depends on, without the lengths of single documents."""
        return {
            "n_documents": self.n_documents,
            "n_words": self.n_words,
            "n_components": self.n_components,
            "n_features": self.n_features,
            "doc_topic_prior": self.doc_topic_prior,
            "topic_word_prior": self.topic_word_prior,
            "form": self.form,
        }

    # --------------------------------------------------------------- a word

    @checked
    def log_mean_word(self, inverse: ArrayLike) -> NDArray:
        r"""Compute log E S for the explicit form, where S sums p(w, z | theta, beta)^b over w, z.

        The moments of the Dirichlet distribution are E theta_k^b = B(A, b) / B(alpha_k, b) with A =
        sum_k alpha_k, and similarly for beta.  Minus the derivative of log E S at b = 1 is H(1) =
        psi(K alpha + 1) - psi(alpha + 1) + psi(V eta + 1) - psi(eta + 1).  H(1) is the mean of -log
        p(w, z | theta, beta) for a word w of documents drawn from the prior.

        Parameters
        ----------
        inverse : array-like of shape (M,)
            Inverse temperatures b, which must be positive.

        Returns
        -------
        ndarray of shape (M,)
        """
        if self.form != "explicit":
            raise ValueError(
                "log_mean_word needs an LDAPrior with form='explicit'. Got form='collapsed'."
            )
        b = check_inverses(inverse, "inverse")
        alpha = self._alpha()
        eta_rows = self._eta_rows()
        log_sums = np.stack([_log_sum_of_moments(row, self.n_features, b) for row in eta_rows])
        log_theta = _log_beta(alpha.sum(), b) - _log_beta(alpha[:, None], b)
        return special.log_sum_exp(log_theta + log_sums, axis=0)

    # ---------------------------------------- the methods of annealvi.partition

    def log_partition(self, inverse: NDArray) -> NDArray:
        """Compute log C exactly, for tiny problems; see :mod:`annealvi.models.lda_prior.prior`.

        Raises
        ------
        OutOfReach
            If this would take too long, or if quadrature is not accurate enough.
        """
        b = np.asarray(inverse, dtype=float)
        eta_rows = self._eta_rows()
        eta = np.broadcast_to(eta_rows, (self.n_components, eta_rows.shape[1]))
        problem = Problem(
            inverse=b,
            alpha=self._alpha(),
            eta=eta,
            n_features=self.n_features,
            lengths=self.document_lengths,
            copies=self._copies,
        )
        return METHODS[self.form](problem)

    def draw_log_partition(self, inverse: NDArray, draws: Draws) -> NDArray:
        """Compute log prod_d mean_theta S^{n_d} for each draw of beta (Mandt et al. 2016, Eq. 18).

        New theta are drawn for each beta and for each of G groups of documents.  If there are few
        documents, each group is a single document, and the estimate of C is unbiased.  Otherwise
        all documents of a group use the same theta, so the errors of their means over theta are
        positively correlated, and C is too large on average.  If its relative bias is small, it is
        about D (D / G - 1) / (2 n_theta) times the relative variance of S^n over theta.
        """
        grid = PowerGrid(inverse)
        # shares[l, g] is the number of documents of length lengths[l] in group g
        lengths, shares = self._groups(grid, draws.n_theta)
        estimates, _ = self._draw(grid, draws, lengths, shares)
        return estimates

    def _groups(self, grid: PowerGrid, n_theta: int) -> tuple[NDArray[np.int64], NDArray]:
        """The lengths of documents that are not empty, and each group's number of each length."""
        lengths = self.document_lengths[self.document_lengths > 0]
        n_documents_up_to_length = np.cumsum(self._copies[self.document_lengths > 0])
        n_documents = int(n_documents_up_to_length[-1])
        n_drawn_numbers = self.n_components * (1 if self.form == "explicit" else self.n_features)
        n_groups = min(
            n_documents,
            GROUPS_BLOCK // (n_theta * n_drawn_numbers),
            SUMS_BLOCK // (n_theta * grid.n_points),
        )
        n_powers = n_theta * len(grid.inverses)  # of each length
        if min(n_documents, n_groups * len(lengths)) * n_powers > LENGTHS_BLOCK:
            n_groups = min(n_groups, LENGTHS_BLOCK // (n_powers * len(lengths)))
        n_groups = max(1, n_groups)
        # documents are sorted by length, and document i is in group i modulo n_groups; n_before is
        # the number of documents of each group that are at most as long (ceiling division)
        n_before = -(
            -(np.append(0, n_documents_up_to_length)[:, None] - np.arange(n_groups, dtype=np.int64))
            // n_groups
        )
        return lengths, np.diff(n_before, axis=0).astype(float)

    def jensen_log_partition(self, inverse: NDArray, draws: Draws) -> NDArray:
        """Estimate N E log S and N log E S.

        In the explicit form log E[S] is known exactly.  E[log S] is computed as log E[S] minus the
        gap between the two, and only the gap is estimated from the draws.  The gap varies less than
        E[log S], and cannot have the wrong sign.
        """
        # with one document of one word, the estimate of C is E S over theta, for each draw of beta
        log_means, mean_logs = self._draw(
            PowerGrid(inverse),
            draws,
            lengths=np.ones(1, dtype=np.int64),
            shares=np.ones((1, 1)),
        )
        mean_log = mean_logs.mean(axis=0)
        log_mean = log_mean_exp(log_means)
        if self.form == "explicit":
            exact_log_mean = self.log_mean_word(inverse)
            # at b = 1 (the first inverse) it must be 0; this removes a rounding error, which would
            # be multiplied by N
            exact_log_mean -= inverse * exact_log_mean[0]
            mean_log = exact_log_mean - (log_mean - mean_log)
            log_mean = exact_log_mean
        return self.n_words * np.stack([np.minimum(mean_log, log_mean), log_mean])

    def map_log_partition(self, inverse: NDArray) -> NDArray:
        """Compute N log S at the prior's mode if it is inside the simplex, else at its mean."""
        log_theta = special.log(centre(self._alpha()))
        eta_rows = self._eta_rows()
        log_beta = special.log(np.stack([centre(row, self.n_features) for row in eta_rows]))
        if self.form == "collapsed":  # the mixture of the topics is like a single topic
            log_beta = special.log_sum_exp(log_theta[:, None] + log_beta, axis=0)[None]
            log_theta = np.zeros(1)
        grid = PowerGrid(inverse)
        log_sums = grid.log_at_inverses(grid.row_sums(padded_rows(log_beta, np.float64, -np.inf)))
        # if all words have the same beta, a single column represents them
        log_sums += math.log(self.n_features / log_beta.shape[1])
        log_terms = np.multiply.outer(log_theta, inverse) + log_sums
        log_words = special.log_sum_exp(log_terms, axis=0)
        # at b = 1 (the first inverse) log S must be 0; the correction removes a rounding error
        return self.n_words * (log_words - inverse * log_words[0])

    # -------------------------------------------------------------- details

    def _alpha(self) -> NDArray:
        """alpha of each topic, of shape (K,)."""
        return np.broadcast_to(self.doc_topic_prior, (self.n_components,))

    def _eta_rows(self) -> NDArray:
        """eta with shape (1 or K, 1 or V); values that topics or words share are not repeated."""
        return np.ascontiguousarray(np.atleast_2d(self.topic_word_prior))

    def _draw(
        self, grid: PowerGrid, draws: Draws, lengths: NDArray[np.int64], shares: NDArray
    ) -> tuple[NDArray, NDArray]:
        """For each draw, the logarithm of the estimate of C and the mean log S, of shape (n, M)."""
        kernel = kernels.DrawsOfLDA(
            alpha=np.ascontiguousarray(self._alpha()),
            eta=self._eta_rows(),
            n_features=self.n_features,
            lengths=lengths.astype(float),
            shares=shares,
            n_theta=draws.n_theta,
            grid=grid.for_draws(),
            collapsed=self.form == "collapsed",
            n_threads=min(draws.n_threads, draws.n_samples),
        )
        # each draw has its own generator, so that results do not depend on threads and blocks
        seeds = draws.seed.spawn(draws.n_samples)
        states = np.array([seed.generate_state(32, np.uint64) for seed in seeds])
        estimates = np.empty((draws.n_samples, len(grid.inverses)))
        mean_logs = np.empty_like(estimates)
        for rows in draws.blocks():
            # writes `out` and `means`
            kernel.draw(
                states=states[rows].reshape(-1, 4, 8),
                out=estimates[rows],
                means=mean_logs[rows],
            )
        return estimates, mean_logs


def _distinct_lengths(lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct lengths of documents, and the number of documents of each length."""
    lengths = as_array(lengths)
    name = "document_lengths"
    if lengths.dtype.kind not in "fiu" or lengths.ndim != 1 or lengths.size == 0:
        raise BadParameter(name, "a one-dimensional array of numbers", lengths)
    if lengths.dtype.kind == "f":  # float16 is too small
        lengths = lengths.astype(float)
    wrong_lengths = lengths[
        ~((lengths >= 0) & (lengths <= MOST_WORDS) & (lengths == np.floor(lengths)))
    ]
    if wrong_lengths.size:
        raise BadParameter(name, f"integers in [0, {MOST_WORDS}]", wrong_lengths[0])
    if not np.any(lengths):
        raise ValueError(
            "The 'document_lengths' parameter of LDAPrior must contain at least one positive "
            f"length. Got only zeros for {lengths.size} documents instead."
        )
    distinct, copies = np.unique(lengths.astype(np.int64), return_counts=True)
    total = sum(
        int(length) * int(n_documents) for length, n_documents in zip(distinct, copies, strict=True)
    )
    if total > MOST_WORDS:
        raise BadParameter(name, f"integers whose sum is at most {MOST_WORDS}", total)
    return distinct, copies


def _log_beta(a: Any, b: NDArray) -> NDArray:
    """Compute log B(a, b); the last digits of SciPy's function differ between versions."""
    return special.lgamma(b) - log_rising(a, b)


def _log_sum_of_moments(prior: NDArray, size: int, b: NDArray) -> NDArray:
    """Compute log sum_i E x_i^b for x ~ Dir(prior), with `prior` repeated to `size` numbers."""
    values, counts = np.unique(prior, return_counts=True)
    n_repeats = size / len(prior)
    log_moments = special.log(n_repeats * counts)[:, None] - _log_beta(values[:, None], b)
    return _log_beta(n_repeats * prior.sum(), b) + special.log_sum_exp(log_moments, axis=0)
