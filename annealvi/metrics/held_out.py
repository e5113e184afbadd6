"""Held-out likelihood by document completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import RealNotInt, validate_parameter_constraints

from annealvi._kernels import lda as kernels
from annealvi._kernels import special
from annealvi._kernels.layout import padded_length, padded_rows
from annealvi.checks import Interval, as_array, check_flag, check_prior, checked, validated
from annealvi.exceptions import BadParameter
from annealvi.matrices import check_csr, check_whole, summed
from annealvi.metrics.topics import check_names, check_topic_model, topic_weights
from annealvi.models.lda import LDA, CPUEngine, LocalOptions
from annealvi.models.lda.collapsed import METHODS, MOST_SWEEPS, TOLERANCE, Method, infer_collapsed
from annealvi.models.lda.priors import usual_prior


def proportions(
    components: NDArray, X: csr_matrix, method: Method, doc_topic_prior: ArrayLike | None
) -> NDArray[np.float64]:
    """Infer E[theta] of documents from given topics, at T = 1 and in double precision."""
    n_topics, n_features = components.shape
    dtype = np.dtype(np.float64)
    alpha: Any = usual_prior(n_topics)  # the default prior of theta
    if doc_topic_prior is not None:
        alpha = check_prior(doc_topic_prior, "doc_topic_prior", ((n_topics,),), dtype)
    beta = np.array(topic_weights(components, "components_"), dtype=dtype)
    beta /= beta.sum(axis=1, keepdims=True)
    np.maximum(beta, np.finfo(dtype).tiny, out=beta)  # positive: the model computes logarithms
    options = LocalOptions(MOST_SWEEPS, TOLERANCE, by_topic=False)
    # with estimate="map" the model uses beta itself as E[beta]; eta has no effect on theta
    model = LDA(n_topics, n_features, alpha=alpha, eta=1.0, options=options, estimate="map")
    model.assign(beta)
    engine = CPUEngine()
    words = X.astype(dtype)
    if method == "cvb0":
        gamma = infer_collapsed(engine, model, words)
    else:
        gamma = engine.infer(model, words)
    return gamma / gamma.sum(axis=1, keepdims=True)


#: The number of bytes of E[theta] that are padded at a time.
_BLOCK_BYTES = 1 << 24
#: If E[beta] has more bytes, it is computed only for the words of some documents at a time.
_TOPIC_BYTES = 1 << 26
#: The number of words whose lambda is summed at a time.
_SUMMED = 4096
#: The number of tokens that are split at a time, token by token.  Longer documents are split entry
#: by entry, so that time and memory depend only on the number of entries.
_SPLIT_AT_ONCE = 1 << 16
#: The number of entries of a CSR matrix whose documents are completed at a time.
_ENTRIES_AT_ONCE = 1 << 22
#: Maximum number of tokens of a document; larger numbers could not be counted exactly.
MOST_TOKENS = 1e15


#: Constraints on the parameters of a split.
SPLIT = {
    "observed": [Interval(RealNotInt, 0, 1, closed="neither")],
    "random_state": ["random_state"],
}


@validated(X=["array-like", "sparse matrix"], **SPLIT)
def split_tokens(
    X: Any, *, observed: float = 0.5, random_state: Any = None
) -> tuple[csr_matrix, csr_matrix]:
    """Split the tokens of each document at random into an observed and a hidden part.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Word counts, which must be non-negative integers, in any dtype.
    observed : float, default=0.5
        Share of each document's tokens in the observed part, whose size is rounded up.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    observed, hidden : csr_matrix of shape (n_samples, n_features)
        The two parts, whose sum is X.

    Raises
    ------
    ValueError
        If X contains negative numbers, numbers that are not integers, or a document of more
        than 1e15 tokens.
    """
    X = check_whole(X, "split_tokens")
    document = rows_of_entries(X)
    length = np.bincount(document, weights=X.data, minlength=X.shape[0])
    if length.max(initial=0) > MOST_TOKENS:
        raise BadParameter(
            "X",
            must_be=f"documents of at most {MOST_TOKENS:.0e} tokens",
            got=float(length.max()),
        )
    rng = check_random_state(random_state)
    counts = X.data.astype(np.int64)
    length = length.astype(np.int64)
    n_observed = np.ceil(observed * length).astype(np.int64)
    seen = np.empty_like(counts)
    for rows in _spans(length, _SPLIT_AT_ONCE):  # a few documents at a time
        entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
        entry_counts = counts[entries]
        if length[rows.start] > _SPLIT_AT_ONCE:  # a single document, with many tokens
            seen[entries] = _draw_entries(entry_counts, n_observed[rows.start], rng)
            continue
        # the entry and the document of each token; the tokens of each document are then shuffled
        entry = np.repeat(np.arange(len(entry_counts), dtype=np.int64), entry_counts)
        token_documents = document[entries][entry]
        # lexsort sorts by the last key first
        order = np.lexsort((rng.random_sample(len(entry)), token_documents))
        first_token = np.cumsum(length[rows]) - length[rows]  # of each document
        rank = np.arange(len(entry), dtype=np.int64) - np.repeat(first_token, length[rows])
        is_observed = rank < n_observed[token_documents[order]]
        seen[entries] = np.bincount(entry[order[is_observed]], minlength=len(entry_counts))
    observed_counts, hidden_counts = (
        csr_matrix((data.astype(X.dtype), X.indices, X.indptr), X.shape, copy=True)
        for data in (seen, counts - seen)
    )
    observed_counts.eliminate_zeros()
    hidden_counts.eliminate_zeros()
    return observed_counts, hidden_counts


def rows_of_entries(X: csr_matrix) -> NDArray[np.int64]:
    """Return the row of each entry of a CSR matrix."""
    return np.repeat(np.arange(X.shape[0], dtype=np.int64), np.diff(X.indptr))


def _spans(sizes: NDArray, limit: int) -> Iterator[slice]:
    """Split a sequence into slices whose `sizes` sum to at most `limit`, or of one element."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    start = 0
    while start < len(sizes):
        # the last end that is within the limit, but at least one element
        n_within = int(np.searchsorted(ends, ends[start] + limit, side="right"))
        stop = max(start + 1, n_within - 1)
        yield slice(start, stop)
        start = stop


def _draw_entries(counts: NDArray[np.int64], n_tokens: int, rng: RandomState) -> NDArray[np.int64]:
    """Draw `n_tokens` tokens of a document, and return the number of drawn tokens of each entry."""
    seen = np.empty_like(counts)
    left = counts.sum()
    for number, count in enumerate(counts.tolist()):
        # `left` tokens belong to later entries, and `n_tokens` remain to be drawn; the number of
        # them that come from this entry is hypergeometric
        left -= count
        seen[number] = rng.hypergeometric(count, left, n_tokens) if n_tokens and count else 0
        n_tokens -= seen[number]
    return seen


@checked
def document_completion(
    model: Any,
    X: Any,
    *,
    observed: float = 0.5,
    random_state: Any = 0,
    per_document: bool = False,
    temperature: float | str | None = None,
    method: Method | None = None,
    doc_topic_prior: ArrayLike | None = None,
) -> float | NDArray[np.float64]:
    r"""Compute the held-out log-likelihood per word by document completion.

    Half of the tokens of each document are observed: from these tokens ``model.transform``
    infers E[theta].  The other tokens are hidden, and their score is :math:`\log \sum_k
    E[\theta_{dk}] E[\beta_{kv}]`.  Unlike perplexity, this score is not a variational bound, so it
    can be used to compare different methods and libraries.

    The method by which E[theta] is inferred can change the score as much as the topics do.  To
    compare the topics of two fits, use the same inference for both.  ``method="cvb0"`` uses only
    the topics of a model, with the same prior for every model (docs/record/inference.md).

    Parameters
    ----------
    model : fitted topic model
        A model with ``components_`` of shape (n_components, n_features), whose rows are
        proportional to E[beta].  Unless `method` is set, the model must also have ``transform``,
        whose rows sum to 1.  Examples are :class:`annealvi.TemperedLDA` and scikit-learn's
        ``LatentDirichletAllocation``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Word counts of held-out documents.  The counts must be integers.
    observed : float, default=0.5
        Share of each document's tokens that are observed.
    random_state : int, RandomState instance or None, default=0
        Random seed of the split.  It does not depend on the model, so by default all models are
        scored on the same hidden words.
    per_document : bool, default=False
        Whether to return the log-likelihood per word of each document instead of the mean
        over all hidden words.  The value of a document without hidden words is NaN.
    temperature : float or "learned", default=None
        The `temperature` of :meth:`annealvi.TemperedLDA.transform`.  None means its default, T = 1.
        This parameter must be None if `method` is set.
    method : {"variational", "cvb0"}, default=None
        How E[theta] is inferred.  None means ``model.transform`` with its defaults.  With the
        other methods, annealvi infers E[theta] from `components_` at T = 1, and iterates until
        fewer than 1% of a document's words change their topic.  ``"variational"`` is mean-field
        inference, and ``"cvb0"`` collapsed inference (see :meth:`annealvi.TemperedLDA.transform`).
    doc_topic_prior : float or array-like of shape (n_components,), default=None
        The Dirichlet prior of theta if `method` is set; the prior of the model is not used.
        None means min(max(0.1, 1 / n_components), 3 / n_components).  This parameter must be None
        if `method` is None.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        The log-likelihood in nats per word; higher is better.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a topic model.
    ValueError
        If X cannot be split (see :func:`split_tokens`), if X and the topics have different numbers
        of features, if no document has two or more words, or if `temperature`, `method` and
        `doc_topic_prior` cannot be combined.
    """
    check_flag(per_document, "per_document")
    if method is not None and not (isinstance(method, str) and method in METHODS):
        raise BadParameter("method", f"one of {list(METHODS)} or None", method)
    # each of these two parameters is for one of the two kinds of inference
    unused_name = "doc_topic_prior" if method is None else "temperature"
    unused_value = doc_topic_prior if method is None else temperature
    if unused_value is not None:
        raise BadParameter(unused_name, f"None with method={method!r}", unused_value)
    needed = ("transform", "components_") if method is None else ("components_",)
    check_topic_model(model, "model", *needed)
    validate_parameter_constraints(
        SPLIT, {"observed": observed, "random_state": random_state}, "document_completion"
    )
    if temperature is not None and "temperature" not in signature(model.transform).parameters:
        raise BadParameter(
            "temperature",
            must_be=f"None for {type(model).__name__}, whose transform has no temperature",
            got=temperature,
        )
    options = {} if temperature is None else {"temperature": temperature}
    rng = check_random_state(random_state)
    scores: list[Any] = []  # of each document, or the sum of each block
    n_words = 0.0
    for block in _blocks(X):
        seen, hidden = split_tokens(block, observed=observed, random_state=rng)
        components = as_array(model.components_)
        if (
            components.dtype.kind not in "fiu"
            or not components.size
            or components.shape[1:] != seen.shape[1:]
        ):
            raise BadParameter(
                "components_",
                must_be=f"an array of numbers of shape (n_components, {seen.shape[1]})",
                got=components,
            )
        if method is None:
            words: Any = seen
            if hasattr(block, "iloc"):  # a DataFrame: transform checks its column names
                words = type(block)(seen.toarray(), index=block.index, columns=block.columns)
            theta = transformed(model, words, (seen.shape[0], len(components)), **options)
        else:
            # transform, which is not called, would check the names
            check_names(model, block, "model", "X")
            theta = proportions(components, seen, method, doc_topic_prior)
        sums = _sums_of_array(components)
        # indexing the transposed topics by words returns the rows of these words
        log_likelihood = _log_likelihood(hidden, theta, components.T.__getitem__, sums)
        n_words += hidden.data.sum(dtype=float)
        scores.append(per_word(hidden, log_likelihood) if per_document else log_likelihood.sum())
    if per_document:
        return np.concatenate(scores)
    return mean_per_word(sum(scores), n_words)


def mean_per_word(total: float, n_words: float) -> float:
    """Return a log-likelihood per hidden word; raise ValueError if there is no hidden word."""
    if not n_words:
        raise ValueError(
            "X must contain documents of at least two words, because some words of each document "
            "are hidden. Got only shorter documents."
        )
    return float(total / n_words)


def _blocks(X: Any) -> Iterator[Any]:
    """Yield X, or blocks of its documents if it is a large CSR matrix."""
    entries = getattr(X, "data", ()) if issparse(X) and X.format == "csr" else ()
    if np.size(entries) <= _ENTRIES_AT_ONCE:
        yield X
        return
    X = check_csr(X)  # the structure must be checked before slicing
    for rows in _spans(np.diff(X.indptr), _ENTRIES_AT_ONCE):
        yield X[rows]


def per_word(hidden: csr_matrix, log_likelihood: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean log-likelihood of the words of each document; NaN without words."""
    totals = np.bincount(rows_of_entries(hidden), log_likelihood, minlength=hidden.shape[0])
    lengths = summed(hidden, axis=1, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # 0 / 0 of documents without words
        return np.where(lengths > 0, totals / lengths, np.nan)


def transformed(model: Any, X: Any, shape: tuple[int, int], **options: Any) -> NDArray:
    """Return the result of the `transform` of a topic model, of the expected `shape`, checked."""
    try:
        theta = as_array(model.transform(X, **options))
    except (TypeError, ValueError) as error:
        # only a TopicModel, which expects texts, complains about a parameter of this name
        if getattr(error, "name", None) != "documents":
            raise
        raise BadParameter(
            "model",
            must_be="a model of word counts",
            got=model,
            hint="For a TopicModel, pass its attribute `lda_`.",
        ) from error
    if theta.shape != shape or theta.dtype.kind not in "fiu":
        raise BadParameter(
            "transform",
            must_be=f"a method that returns an array of shape {shape}, one number for each "
            "document and topic",
            got=theta,
        )
    for number in theta[~np.isfinite(theta)]:
        raise BadParameter(
            "transform",
            must_be="a method that returns finite numbers, one number for each document and topic",
            got=number,
        )
    return theta


#: A function that returns lambda, or another multiple of E[beta], of some words: (n_words, K).
TopicRows = Callable[[NDArray[np.int64]], NDArray]


def log_likelihood_per_word(
    hidden: csr_matrix, theta: NDArray, topics: TopicRows, sums: NDArray[np.float64]
) -> float:
    r"""Compute the mean of :math:`\log \sum_k E[\theta_{dk}] E[\beta_{kv}]` over all words.

    `hidden` contains the counts of the words, and `sums` the sum of each topic over words.
    """
    total = _log_likelihood(hidden, theta, topics, sums).sum()
    return float(total / hidden.data.sum(dtype=float))


def sums_of(topics: TopicRows, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Sum topics over words, a few words at a time and always in the same order."""
    n_topics, n_features = shape
    # NumPy sums a single column pairwise, several columns row by row: both are kept, so that the
    # sums have the bits of an array that is summed at once
    if n_topics == 1:
        return np.asarray(topics(np.arange(n_features, dtype=np.int64)), float).sum(axis=0)
    rows = np.zeros((_SUMMED + 1, n_topics))  # the first row is the sum so far
    for start in range(0, n_features, _SUMMED):
        words = np.arange(start, min(start + _SUMMED, n_features), dtype=np.int64)
        rows[1 : len(words) + 1] = topics(words)
        rows[0] = rows[: len(words) + 1].sum(axis=0)  # the sum so far, plus these words
    return rows[0]


def _sums_of_array(components: NDArray) -> NDArray[np.float64]:
    """Sum an array over words in double precision, in the order in which NumPy sums doubles."""
    if abs(components.strides[0]) < abs(components.strides[1]):  # words are rows in memory
        return sums_of(topics=components.T.__getitem__, shape=components.shape)
    return np.array([np.asarray(topic, float).sum() for topic in components])


def _log_likelihood(
    X: csr_matrix, theta: NDArray, topics: TopicRows, sums: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log-likelihood of each entry of X, summed over its words.

    `topics` returns the topics of words, and `sums` contains the sum of each topic over words.
    """
    # the loop raises for the first topic with such a sum
    for total in sums[~((sums > 0) & np.isfinite(sums))]:
        raise BadParameter("components_", "topics with positive and finite sums", total)
    return special.log(word_probabilities(X, theta, topics, sums)) * X.data


def word_probabilities(
    X: csr_matrix, theta: NDArray, topics: TopicRows, sums: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return sum_k E[theta_dk] E[beta_kv] for each entry of X.

    `topics` returns the topics of words, and `sums` contains the sum of each topic over words.
    """

    def beta_of(words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return E[beta] with a row for each word, padded to the width that kernels need."""
        beta = padded_rows(topics(words), np.float64)
        beta[:, : len(sums)] /= sums
        return beta

    n_bytes = padded_length(len(sums), np.float64) * 8  # bytes of a row
    at_once = X.shape[1] * n_bytes <= _TOPIC_BYTES
    # if the topics of all words need too much memory, they are computed below for some words
    beta = beta_of(np.arange(X.shape[1] if at_once else 0, dtype=np.int64))
    probabilities = np.empty(X.nnz)
    longest = int(np.diff(X.indptr).max(initial=0)) + kernels.SWEEP_BLOCK
    # memory that the kernel needs for the longest document
    pointers = np.empty(longest, np.int64)
    norms = np.empty(longest + kernels.SCRATCH_SLACK)
    batches = gen_batches(X.shape[0], max(1, _BLOCK_BYTES // n_bytes))
    if not at_once:
        batches = _spans(np.diff(X.indptr), max(1, _TOPIC_BYTES // n_bytes))
    for rows in batches:
        entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
        indices = X.indices[entries]
        if not at_once:
            # the indices become numbers of rows of beta
            words, indices = np.unique(indices, return_inverse=True)
            beta = beta_of(words)
        # the ends of documents among the entries of this batch
        ends = (X.indptr[rows.start : rows.stop + 1] - entries.start).astype(indices.dtype)
        kernels.word_probabilities(
            indices=indices,
            indptr=ends,
            start=0,
            stop=rows.stop - rows.start,
            theta=padded_rows(theta[rows], np.float64),
            beta=beta,
            rows=pointers,
            norm=norms,
            out=probabilities[entries],  # a view, so the results are written into the array
        )
    return probabilities
