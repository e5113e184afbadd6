"""Held-out likelihood by document completion, after a fit or during it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import Interval, RealNotInt, validate_params
from sklearn.utils.validation import check_non_negative

from annealvi._kernels import lda as kernels
from annealvi._kernels.layout import padded_rows
from annealvi._sparse import check_csr, sound_csr
from annealvi.inference import Monitor

#: Bytes of E[theta] that are padded at a time.
_BLOCK_BYTES = 1 << 24
#: Most tokens of a corpus that can be split; it is done one by one.
MOST_TOKENS = 1e9


@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "observed": [Interval(RealNotInt, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def split_tokens(
    X: Any, *, observed: float = 0.5, random_state: Any = None
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Split each document's tokens at random into an observed and a hidden part.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Word counts: non-negative integers, of any dtype.
    observed : float, default=0.5
        Share of each document's tokens in the observed part, rounded up.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    observed, hidden : csr_matrix of shape (n_samples, n_features)
        The two parts.  Their sum is X.

    Raises
    ------
    ValueError
        If X contains negative numbers, numbers that are not integers, or more than 1e9
        tokens.
    """
    X = check_csr(X)
    check_non_negative(X, "split_tokens")
    if np.any(X.data != np.floor(X.data)):
        raise ValueError(
            "Tokens can be split only where X holds integer counts. "
            f"Got {X.data[X.data != np.floor(X.data)][0]}."
        )
    n_tokens = X.data.sum(dtype=np.float64)
    if n_tokens > MOST_TOKENS:
        raise ValueError(
            f"Tokens are split one by one: X may hold at most {MOST_TOKENS:.0e} of them. "
            f"Got {n_tokens:.3g}."
        )
    rng = check_random_state(random_state)
    counts = X.data.astype(np.int64)
    # for each token, the entry it belongs to
    entry = np.repeat(np.arange(len(counts)), counts)
    document = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[entry]
    order = np.lexsort((rng.random_sample(len(entry)), document))
    length = np.bincount(document, minlength=X.shape[0])
    rank = np.arange(len(entry)) - np.repeat(np.cumsum(length) - length, length)
    is_observed = rank < np.ceil(observed * length)[document[order]]
    seen = np.bincount(entry[order[is_observed]], minlength=len(counts))
    parts = []
    for data in (seen, counts - seen):
        part = sparse.csr_matrix((data.astype(X.dtype), X.indices, X.indptr), shape=X.shape)
        part = part.copy()
        part.eliminate_zeros()
        parts.append(part)
    return parts[0], parts[1]


def document_completion(
    estimator: Any,
    X: Any,
    *,
    observed: float = 0.5,
    random_state: Any = 0,
    per_document: bool = False,
    temperature: float | str | None = None,
) -> float | NDArray[np.float64]:
    r"""Compute the held-out log-likelihood per word by document completion.

    Half of each document's tokens are observed and give E[theta] through
    ``estimator.transform``.  The other half is hidden and scored by
    :math:`\log \sum_k E[\theta_{dk}] E[\beta_{kv}]`.  Unlike perplexity this is not a bound,
    so different methods and libraries can be compared.

    Parameters
    ----------
    estimator : fitted topic model
        It must have ``transform``, whose rows sum to 1, and ``components_`` of shape
        (n_components, n_features), each row proportional to E[beta].  Examples are
        :class:`annealvi.TemperedLDA` and scikit-learn's ``LatentDirichletAllocation``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Word counts of documents that were not fitted; integers.
    observed : float, default=0.5
        Share of each document's tokens that are observed.
    random_state : int, RandomState instance or None, default=0
        Seed of the split.
    per_document : bool, default=False
        Whether to return the log-likelihood per word of each document instead of the mean
        over all hidden words.  It is NaN for documents without hidden words.
    temperature : float or "learned", default=None
        The `temperature` of :meth:`annealvi.TemperedLDA.transform`.  None means its default,
        T = 1.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In nats per word; higher is better.

    Raises
    ------
    ValueError
        If X cannot be split (see :func:`split_tokens`), if its number of features is not
        that of the fit, or if no document has two or more words.
    """
    seen, hidden = split_tokens(X, observed=observed, random_state=random_state)
    if hasattr(X, "iloc"):  # a DataFrame: transform checks its column names
        seen = type(X)(seen.toarray(), index=X.index, columns=X.columns)
    options = {} if temperature is None else {"temperature": temperature}
    theta, components = estimator.transform(seen, **options), estimator.components_
    if not per_document:
        if hidden.nnz == 0:
            raise ValueError(
                "X has no document with a word to hide: document completion needs documents of "
                "at least two words."
            )
        return log_likelihood_per_word(hidden, theta, components)
    log_likelihood = _log_likelihood(hidden, theta, components)
    rows = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr))
    totals = np.bincount(rows, weights=log_likelihood, minlength=hidden.shape[0])
    lengths = np.asarray(hidden.sum(axis=1), dtype=np.float64).ravel()
    with np.errstate(invalid="ignore"):
        return np.where(lengths > 0, totals / lengths, np.nan)


def log_likelihood_per_word(
    hidden: sparse.csr_matrix, theta: NDArray, components: NDArray
) -> float:
    r"""Compute the mean of :math:`\log \sum_k E[\theta_{dk}] E[\beta_{kv}]` over all words.

    Parameters
    ----------
    hidden : csr_matrix of shape (n_samples, n_features)
        Word counts, not all of them zero.
    theta : ndarray of shape (n_samples, n_components)
        E[theta].
    components : ndarray of shape (n_components, n_features)
        Each row is proportional to E[beta].

    Returns
    -------
    float
        In nats.
    """
    total = _log_likelihood(hidden, theta, components).sum()
    return float(total / hidden.data.sum(dtype=np.float64))


def _log_likelihood(
    X: sparse.csr_matrix, theta: NDArray, components: NDArray
) -> NDArray[np.float64]:
    """The log-likelihood of each entry of X, summed over its words."""
    theta, components = np.asarray(theta, np.float64), np.asarray(components, np.float64)
    return np.log(_word_probabilities(X, theta, components)) * X.data


def _word_probabilities(
    X: sparse.csr_matrix, theta: NDArray[np.float64], components: NDArray[np.float64]
) -> NDArray[np.float64]:
    """sum_k E[theta_dk] E[beta_kv] of each entry of X."""
    beta = padded_rows((components / components.sum(axis=1, keepdims=True)).T, np.float64)
    probabilities = np.empty(X.nnz)
    longest = int(np.diff(X.indptr).max(initial=0)) + kernels.SWEEP_BLOCK
    pointers, room = np.empty(longest, np.int64), np.empty(longest + kernels.SCRATCH_SLACK)
    for rows in gen_batches(X.shape[0], max(1, _BLOCK_BYTES // beta[:1].nbytes)):
        entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
        kernels.word_probabilities(
            X.indices,
            X.indptr,
            rows.start,
            rows.stop,
            padded_rows(theta[rows], np.float64),
            beta,
            pointers,
            room,
            probabilities[entries],
        )
    return probabilities


class HeldOut:
    """A callback that records the held-out likelihood during a fit.

    The learning curve is ``history_["heldout"]`` of the estimator, over ``history_["pass"]``
    or ``history_["seconds"]``.  The seconds do not include the evaluations.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Word counts of documents that are not fitted.  They are read, not copied, at each
        evaluation.
    every : float, default=1.0
        Number of passes from one evaluation to the next.
    observed, random_state
        See :func:`document_completion`.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> from annealvi.metrics import HeldOut
    >>> X = load_arxiv_abstracts().data
    >>> lda = TemperedLDA(5, learning_method="online", max_iter=2, random_state=0,
    ...                   callback=HeldOut(X[2700:]))
    >>> lda.fit(X[:2700]).history_["heldout"].shape
    (2,)
    """

    def __init__(
        self, X: Any, *, every: float = 1.0, observed: float = 0.5, random_state: Any = 0
    ) -> None:
        if not every > 0:
            raise ValueError(f"'every' must be a float in the range (0, inf). Got {every!r}.")
        if sparse.issparse(X):
            sound_csr(X)  # not after a pass of the fit
        self.X = X
        self.every = every
        self.observed = observed
        self.random_state = random_state

    def __call__(self, estimator: Any, monitor: Monitor) -> None:
        before = monitor.passes - monitor.last_advance
        # with a small tolerance, because passes are sums of fractions
        if int((monitor.passes + 1e-9) / self.every) > int((before + 1e-9) / self.every):
            score = document_completion(
                estimator, self.X, observed=self.observed, random_state=self.random_state
            )
            monitor.record(heldout=float(score))
