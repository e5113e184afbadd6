r"""log C(T) of latent Dirichlet allocation over its prior.

For D documents of given lengths n_d, at b = 1/T,

.. math::
   C = E_\beta \prod_d E_\theta [S(\theta, \beta)^{n_d}], \qquad
   S = \sum_k \theta_k^b \sum_v \beta_{kv}^b \;\text{(explicit)}, \quad
   S = \sum_v \Big( \sum_k \theta_k \beta_{kv} \Big)^b \;\text{(collapsed)}.

The explicit form tempers p(w, z | theta, beta), as the updates of tempered LDA do.  The
collapsed form tempers p(w | theta, beta); it is Eq. 18 of Mandt et al. (2016).
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, logsumexp
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints

from annealvi._kernels import gemm
from annealvi._kernels.layout import padded_length, padded_rows
from annealvi.checks import Interval, as_array, check_inverses, check_priors
from annealvi.matrices import check_matrix
from annealvi.models.dirichlet import centre, log_gamma_variates
from annealvi.models.lda_prior import exact
from annealvi.partition.estimate import Draws, PowerGrid, log_mean_exp

#: How many numbers are drawn at a time, so that they stay in the cache.
DRAW_BLOCK = 1 << 15
#: How many numbers of topics one matrix product takes.
PRODUCT_BLOCK = 1 << 18
#: Limits for each beta, if documents form more than one group: on the numbers of theta that
#: are drawn, times V in the collapsed form; on the sums of powers computed from them; and on
#: the powers of S for the lengths of documents.
GROUPS_BLOCK, SUMS_BLOCK, LENGTHS_BLOCK = 500_000, 4_000_000, 20_000_000
#: Word probabilities below this may have underflowed.
LEAST_WORD = 1e-280

#: Most words; doubles can represent every whole number up to this.
MOST_WORDS = 2**53

LogPartitionForm = Literal["explicit", "collapsed"]


class LDAPrior:
    """The prior of latent Dirichlet allocation, for :func:`annealvi.partition.log_partition`.

    Parameters
    ----------
    n_components, n_features : int
        K and V.
    document_lengths : array-like of shape (n_documents,)
        Number of words in each document; whole numbers, whose sum is at most 2^53.
    doc_topic_prior : float or array-like of shape (K,), default=None
        alpha; None means 1 / K.
    topic_word_prior : float or array-like of shape (V,) or (K, V), default=None
        eta; None means 1 / K.
    form : {"explicit", "collapsed"}, default="explicit"
        ``"explicit"`` tempers words together with their assignments to topics, as the updates
        of tempered LDA do.  ``"collapsed"`` first sums over the assignments.

    Attributes
    ----------
    n_documents : int
    n_words : int
        The sum of the lengths.

    Examples
    --------
    >>> import numpy as np
    >>> prior = LDAPrior(3, 50, [10, 20, 10], doc_topic_prior=0.1, topic_word_prior=0.1)
    >>> prior.n_words
    40
    >>> prior.log_mean_word([0.5, 0.25]).round(3)
    array([1.466, 2.607])
    """

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
        sizes = dict(n_components=n_components, n_features=n_features)
        constraints: dict[str, Any] = {
            name: [Interval(Integral, 1, None, closed="left")] for name in sizes
        }
        constraints["form"] = [StrOptions({"explicit", "collapsed"})]
        validate_parameter_constraints(constraints, {**sizes, "form": form}, "LDAPrior")
        K, V = int(n_components), int(n_features)
        double = np.dtype(np.float64)
        self.n_components, self.n_features = K, V
        self.doc_topic_prior, self.topic_word_prior = check_priors(
            doc_topic_prior, topic_word_prior, (K, V), double, default=1 / K
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
        """Make the prior for documents with the lengths of those in a matrix of counts.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Whole numbers.
        n_components, doc_topic_prior, topic_word_prior, form
            As in the class.
        """
        X = check_matrix(X)
        lengths = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        return cls(
            n_components,
            X.shape[1],
            lengths,
            doc_topic_prior=doc_topic_prior,
            topic_word_prior=topic_word_prior,
            form=form,
        )

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C depends on, except the lengths of single documents."""
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

    def log_mean_word(self, inverse: ArrayLike) -> NDArray[np.float64]:
        r"""Compute log E S of the explicit form at each b, in closed form.

        The moments of the Dirichlet distribution give E theta_k^b = B(A, b) / B(alpha_k, b)
        with A = sum_k alpha_k, and likewise for beta.  Minus the derivative at b = 1 is -L per
        word, where L is the mean energy of documents that the prior generates: H(1) =
        psi(K alpha + 1) - psi(alpha + 1) + psi(V eta + 1) - psi(eta + 1).

        Parameters
        ----------
        inverse : array-like of shape (M,)
            Positive.

        Returns
        -------
        ndarray of shape (M,)
        """
        if self.form != "explicit":
            raise ValueError(
                "log E S has a closed form for form='explicit'. Got form='collapsed' instead."
            )
        b = check_inverses(inverse, "inverse")
        alpha, rows = self._alpha(), self._eta_rows()
        log_sums = np.stack([_log_sum_of_moments(row, self.n_features, b) for row in rows])
        log_theta = betaln(alpha.sum(), b) - betaln(alpha[:, None], b)
        return logsumexp(log_theta + log_sums, axis=0)

    # ---------------------------------------- the methods of annealvi.partition

    def log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute log C exactly, for tiny problems: see :mod:`annealvi.models.lda_prior.exact`.

        Raises
        ------
        OutOfReach
            If it would cost too much, or if quadrature is not accurate enough.
        """
        problem = exact.Problem(
            np.asarray(inverse, dtype=np.float64),
            self._alpha(),
            np.broadcast_to(self._eta_rows(), (self.n_components, self._eta_rows().shape[1])),
            self.n_features,
            self.document_lengths,
            self._copies,
        )
        return exact.METHODS[self.form](problem)

    def draw_log_partition(self, inverse: NDArray[np.float64], draws: Draws) -> NDArray[np.float64]:
        """Compute log prod_d mean_theta S^{n_d} for each draw of beta (Mandt et al. 2016, Eq. 18).

        New theta are drawn for each beta and for each of G groups of documents.  If the budget
        allows, each group is a single document; C is then unbiased.  Otherwise documents share
        draws, and a product of means over the same draws is not the mean of the product.  C is
        then overestimated by a relative D (D / G - 1) / (2 n_theta) times the relative
        variance of S^n over theta, as long as that is small.
        """
        grid = PowerGrid(inverse)
        lengths, shares = self._groups(grid, draws.n_theta)
        G = shares.shape[1]

        def one(rng: np.random.Generator) -> NDArray[np.float64]:
            logs = self._log_words(grid, rng, draws.n_theta * G).reshape(G, draws.n_theta, -1)
            most = logs.max(axis=1)
            logs -= most[:, None]
            total = np.zeros(len(inverse))
            for length, copies in zip(lengths, shares, strict=True):
                own = np.flatnonzero(copies)
                means = np.mean(np.exp(length * logs[own]), axis=1)
                total += copies[own] @ (np.log(means) + length * most[own])
            return total

        return draws.map(one)

    def _groups(
        self, grid: PowerGrid, n_theta: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Lengths of documents with words, and their number of each length in each group."""
        lengths = self.document_lengths[self.document_lengths > 0]
        ends = np.cumsum(self._copies[self.document_lengths > 0])
        D = int(ends[-1])
        drawn = self.n_components * (1 if self.form == "explicit" else self.n_features)
        G = min(D, GROUPS_BLOCK // (n_theta * drawn), SUMS_BLOCK // (n_theta * grid.n_points))
        if min(D, G * len(lengths)) * n_theta * len(grid.inverses) > LENGTHS_BLOCK:
            G = min(G, LENGTHS_BLOCK // (n_theta * len(grid.inverses) * len(lengths)))
        G = max(1, G)
        # documents are sorted by length, and document i is in group i modulo G
        before = -(-(np.append(0, ends)[:, None] - np.arange(G)) // G)
        return lengths, np.diff(before, axis=0).astype(np.float64)

    def jensen_log_partition(
        self, inverse: NDArray[np.float64], draws: Draws
    ) -> NDArray[np.float64]:
        """Estimate N E log S and N log E S.

        In the explicit form log E S has a closed form.  E log S is then computed as that
        value less the difference of the two among the draws, because the difference varies
        less than E log S and cannot have the wrong sign.
        """
        grid = PowerGrid(inverse)

        def one(rng: np.random.Generator) -> NDArray[np.float64]:
            logs = self._log_words(grid, rng, draws.n_theta)
            return np.stack([logs.mean(axis=0), log_mean_exp(logs)])

        moments = draws.map(one)
        mean_log, log_mean = moments[:, 0].mean(axis=0), log_mean_exp(moments[:, 1])
        if self.form == "explicit":
            exact = self.log_mean_word(inverse)
            exact -= inverse * exact[0]  # removes a rounding error, which N would multiply
            mean_log, log_mean = exact - (log_mean - mean_log), exact
        return self.n_words * np.stack([np.minimum(mean_log, log_mean), log_mean])

    def map_log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute N log S at the prior's mode if that is inside the simplex, else at its mean."""
        log_theta = np.log(centre(self._alpha()))
        rows = self._eta_rows()
        log_beta = np.log(np.stack([centre(row, self.n_features) for row in rows]))
        grid = PowerGrid(inverse)
        if self.form == "explicit":
            log_sums = grid.row_sums(padded_rows(log_beta, np.float64, -np.inf))
            log_sums = grid.log_at_inverses(log_sums) + self._missing_words(log_beta)
            log_words = logsumexp(np.multiply.outer(log_theta, inverse) + log_sums, axis=0)
        else:
            words = logsumexp(log_theta[:, None] + log_beta, axis=0)
            log_words = grid.log_at_inverses(
                grid.row_sums(padded_rows(words[None], np.float64, -np.inf))
            )[0] + self._missing_words(log_beta)
        return self.n_words * (log_words - inverse * log_words[0])

    # -------------------------------------------------------------- details

    def _alpha(self) -> NDArray[np.float64]:
        return np.broadcast_to(self.doc_topic_prior, (self.n_components,))

    def _eta_rows(self) -> NDArray[np.float64]:
        """eta with shape (1 or K, 1 or V): values shared by topics or words are not repeated."""
        return np.atleast_2d(self.topic_word_prior)

    def _missing_words(self, log_beta: NDArray[np.float64]) -> float:
        """The logarithm of the number of words that each column stands for."""
        return math.log(self.n_features / log_beta.shape[1])

    def _log_words(
        self, grid: PowerGrid, rng: np.random.Generator, n_theta: int
    ) -> NDArray[np.float64]:
        """log S at each b, of shape (n_theta, M), for one beta and some theta.

        If theta and beta are normalised, the sum at b = 1 is 1 up to rounding.  If not, it is
        the product of their normalisers.  Dividing by its power b corrects for both.
        """
        shape = n_theta, self.n_components
        log_theta = log_gamma_variates(rng, self._alpha(), shape)
        log_theta -= log_theta.max(axis=1, keepdims=True)
        if self.form == "explicit":
            padded = padded_rows(log_theta, np.float64, -np.inf)
            sums = grid.row_sums(padded, self._topic_sums(grid, rng))
        else:
            sums = self._word_sums(grid, rng, log_theta)
        logs = grid.log_at_inverses(sums)
        return logs - grid.inverses * logs[:, :1]

    def _topic_blocks(self, size: int) -> list[tuple[int, int]]:
        """First and last topic of blocks of about `size` numbers."""
        step = max(1, size // self.n_features)
        K = self.n_components
        return [(first, min(first + step, K)) for first in range(0, K, step)]

    def _draw_topics(self, rng: np.random.Generator, first: int, last: int) -> NDArray[np.float64]:
        """Draw log beta of some topics, up to a constant for each; the largest is 0."""
        rows = self._eta_rows()
        eta = rows[first:last] if len(rows) > 1 else rows
        logs = log_gamma_variates(rng, eta, (last - first, self.n_features))
        logs -= logs.max(axis=1, keepdims=True)
        return logs

    def _topic_sums(self, grid: PowerGrid, rng: np.random.Generator) -> NDArray[np.float64]:
        """sum_v beta_kv^b at the grid's points, of shape (n_points, K padded)."""
        out = np.zeros((grid.n_points, padded_length(self.n_components, np.float64)))
        for first, last in self._topic_blocks(DRAW_BLOCK):
            logs = padded_rows(self._draw_topics(rng, first, last), np.float64, -np.inf)
            sums = grid.row_sums(logs)
            log_total = grid.log_at_inverses(sums)[:, 0]
            out[:, first:last] = sums.T * np.exp(-np.multiply.outer(grid.points, log_total))
        return out

    def _word_sums(
        self, grid: PowerGrid, rng: np.random.Generator, log_theta: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """sum_v (sum_k theta_k beta_kv)^b at the grid's points, up to the power of a constant."""
        V, width = self.n_features, padded_length(self.n_features, np.float64)
        words = np.zeros((len(log_theta), width))
        # if b is so small that underflown probabilities would matter, keep logarithms
        audible = LEAST_WORD ** grid.inverses.min() * V > 1e-14
        kept = []
        blocks = self._topic_blocks(PRODUCT_BLOCK)
        beta, totals = np.zeros((blocks[0][1], width)), np.empty((blocks[0][1], 1))
        for start, end in blocks:
            step = max(1, DRAW_BLOCK // V)
            for first in range(start, end, step):
                last = min(first + step, end)
                rows = slice(first - start, last - start)
                logs = self._draw_topics(rng, first, last)
                np.exp(logs, out=beta[rows, :V])
                totals[rows] = beta[rows].sum(axis=1, keepdims=True)
                if audible:
                    kept.append(logs - np.log(totals[rows]))
            size = end - start
            shares = np.exp(log_theta[:, start:end]) / totals[:size, 0]
            gemm.add_product(shares, beta[:size], words)
        if not audible:
            return grid.row_sums(words, plain=True)
        with np.errstate(divide="ignore"):
            log_words = np.log(words)
        low, at = np.nonzero(words[:, :V] < LEAST_WORD)
        log_topics = np.concatenate(kept)
        step = max(1, PRODUCT_BLOCK // self.n_components)
        for first in range(0, len(low), step):
            d, v = low[first : first + step], at[first : first + step]
            log_words[d, v] = logsumexp(log_theta[d] + log_topics[:, v].T, axis=1)
        return grid.row_sums(log_words)


def _distinct_lengths(lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct lengths of documents, and the number of documents of each length."""
    array = as_array(lengths)
    if array.dtype.kind not in "fiu" or array.ndim != 1 or array.size == 0:
        raise ValueError(
            "The 'document_lengths' parameter of LDAPrior must be a one-dimensional array of "
            f"numbers. Got shape {array.shape} and dtype {array.dtype} instead."
        )
    array = array.astype(np.float64) if array.dtype.kind == "f" else array  # float16 ends at 65504
    wrong = array[~((array >= 0) & (array <= MOST_WORDS) & (array == np.floor(array)))]
    if wrong.size:
        raise ValueError(
            "The 'document_lengths' parameter of LDAPrior must be whole numbers in "
            f"[0, {MOST_WORDS}]. Got {wrong[0]} instead."
        )
    if not np.any(array):
        raise ValueError(
            "The 'document_lengths' parameter of LDAPrior must be of at least one word in all. "
            f"Got {array.size} documents of length 0 instead."
        )
    distinct, copies = np.unique(array.astype(np.int64), return_counts=True)
    total = sum(int(n) * int(c) for n, c in zip(distinct, copies, strict=True))
    if total > MOST_WORDS:
        raise ValueError(
            "The 'document_lengths' parameter of LDAPrior must be of at most "
            f"{MOST_WORDS} words in all. Got {total} instead."
        )
    return distinct, copies.astype(np.int64)


def _log_sum_of_moments(
    prior: NDArray[np.float64], size: int, b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """log sum_i E x_i^b for x ~ Dir(prior), with `prior` repeated to `size` numbers."""
    values, counts = np.unique(prior, return_counts=True)
    shared = size / len(prior)
    logs = np.log(shared * counts)[:, None] - betaln(values[:, None], b)
    return betaln(shared * prior.sum(), b) + logsumexp(logs, axis=0)
