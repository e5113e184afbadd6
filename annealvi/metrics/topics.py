"""How good topics are to read, how different, and whether other seeds find them again."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_array, gen_batches
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.validation import _get_feature_names, check_is_fitted, check_non_negative

from annealvi._validation import canonical_csr
from annealvi.metrics.top_words import top_columns

#: Bytes of topics that are copied at a time.
_BLOCK_BYTES = 1 << 24


@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "measure": [StrOptions({"npmi", "umass"})],
        "n_words": [Interval(Integral, 2, None, closed="left")],
        "epsilon": [Interval(Real, 0, 1, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def topic_coherence(
    topics: Any, X: Any, *, measure: str = "npmi", n_words: int = 10, epsilon: float = 1e-12
) -> NDArray[np.float64]:
    r"""How often the top words of each topic occur in the same documents.

    Let :math:`w_1, \ldots, w_n` be the top words of a topic, most probable first,
    :math:`p_i` the share of the documents of X that :math:`w_i` occurs in, and
    :math:`p_{ij}` the share that both :math:`w_i` and :math:`w_j` occur in.  A topic's
    coherence is the mean over its :math:`n (n - 1) / 2` pairs of

    .. math::
        \text{npmi:} \quad \log \frac{p_{ij} + \epsilon}{p_i p_j}
            \Big/ -\log (p_{ij} + \epsilon),
        \qquad
        \text{umass:} \quad \log \frac{p_{ij} + \epsilon}{p_j}, \; j < i.

    NPMI lies between -1 and 1; 0 is independence.  UMass is at most 0.  Higher is better
    for both.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, of any scale, or an estimator with ``components_``.
        Words of equal weight count in the order of their columns.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The reference corpus: non-negative counts, of which only the presence of words
        matters.  Documents without words count too.
    measure : {"npmi", "umass"}, default="npmi"
    n_words : int, default=10
        Top words a topic: from 2 to n_features.
    epsilon : float, default=1e-12
        What is added to the share of documents of each pair.

    Returns
    -------
    ndarray of shape (n_topics,), float64
        Take the mean for one number.

    Raises
    ------
    NotFittedError
        If `topics` is an estimator that is not fitted.
    TypeError
        If `topics` is an estimator without ``components_``.
    ValueError
        If topics or X hold negative numbers, NaN or infinity, differ in their features,
        if a topic's weights are all 0, or if there are fewer features than `n_words`.

    Notes
    -----
    The numbers are those of gensim's ``CoherenceModel``: ``"u_mass"``, and ``"c_npmi"`` with
    a window longer than every document.  So a pair that is never seen together gets
    :math:`-1 + \log(p_i p_j) / \log \epsilon`, above the limit of -1, and the more so the
    rarer its words: with ``epsilon=0`` it gets -1 under NPMI and -inf under UMass.  Where
    documents are short a mean over topics can change by more than .1, so compare only what
    was computed with one `epsilon`.
    ``epsilon=1 / n_samples`` under UMass is the paper's :math:`D(w_i, w_j) + 1`; the paper
    adds up over pairs instead of taking the mean.

    Words that X does not hold say nothing for a topic: where the equation has no value, the
    pair counts as bad as can be, -1 under NPMI and :math:`\log \epsilon` under UMass.
    A pair of words that are both in every document is independent: 0.  (gensim gives inf
    or 0 for the former, and -1, a rounding error, for the latter.)

    References
    ----------
    NPMI: G. Bouma, "Normalized (pointwise) mutual information in collocation extraction",
    GSCL 2009; J. H. Lau, D. Newman, T. Baldwin, "Machine reading tea leaves", EACL 2014.
    UMass: D. Mimno et al., "Optimizing semantic coherence in topic models", EMNLP 2011.
    :math:`\epsilon`: M. Roeder, A. Both, A. Hinneburg, "Exploring the space of topic
    coherence measures", WSDM 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.metrics import topic_coherence
    >>> X = np.array([[1, 2, 0, 0], [3, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]])
    >>> topics = np.array([[5, 4, 1, 1], [5, 1, 4, 1]])
    >>> topic_coherence(topics, X, n_words=2, epsilon=0)
    array([ 1., -1.])
    """
    owner = "topic_coherence"
    weights = _weights(topics, "topics", owner)
    _check_names(topics, X, "topics", "X")
    X = check_array(X, accept_sparse="csr", input_name="X")
    check_non_negative(X, f"{owner} as X")
    _check_features(weights, X, "topics", "X")
    top = _top(weights, n_words)
    X = canonical_csr(X) if sparse.issparse(X) else sparse.csr_matrix(X)
    together = _documents_of_pairs(top, X) / X.shape[0]
    # the word that comes first is w_j, the one that conditions
    j, i = np.triu_indices(top.shape[1], k=1)
    p, p_ij = np.einsum("knn->kn", together), together[:, i, j]
    rate = _npmi if measure == "npmi" else _umass
    return rate(p[:, i], p[:, j], p_ij, epsilon).mean(axis=1)


def _npmi(p_i: NDArray, p_j: NDArray, p_ij: NDArray, epsilon: float) -> NDArray[np.float64]:
    joint = p_ij + epsilon
    bad = (joint == 0) | (p_i == 0) | (p_j == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(joint / (p_i * p_j)) / -np.log(joint)
    return np.where(bad, -1.0, np.where(joint >= 1, 0.0, value))


def _umass(p_i: NDArray, p_j: NDArray, p_ij: NDArray, epsilon: float) -> NDArray[np.float64]:
    # p_j = 0: as if never seen with a word that is in every document
    with np.errstate(divide="ignore"):
        return np.log((p_ij + epsilon) / np.where(p_j == 0, 1.0, p_j))


def _documents_of_pairs(top: NDArray[np.intp], X: Any) -> NDArray[np.float64]:
    """In how many documents two top words of a topic occur, of shape (n_topics, n, n).

    Topic by topic, because the product of all their words would be a matrix of up to
    (n_topics n)^2 numbers, of which hardly any are asked for; and a bit a document, because
    top words are common ones: two words are counted by an "and" of N / 8 bytes.
    """
    n_topics, n = top.shape
    words, place = np.unique(top, return_inverse=True)
    used = sparse.csr_matrix(X[:, words])  # a copy
    used.eliminate_zeros()
    used = used.tocsc()
    documents = np.split(used.indices, used.indptr[1:-1])
    row = np.zeros(-(-X.shape[0] // 64) * 64, dtype=bool)
    bits = np.zeros((n, len(row) // 64), dtype=np.uint64)
    pairs = np.empty((n_topics, n, n))
    for k, chosen in enumerate(place.reshape(n_topics, n)):
        for i, word in enumerate(chosen):
            row[:] = False
            row[documents[word]] = True
            bits[i] = np.packbits(row).view(np.uint64)
        for i in range(n):
            pairs[k, i, i:] = pairs[k, i:, i] = _n_set(bits[i] & bits[i:])
    return pairs


def _n_set(bits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many bits of each row are set."""
    if hasattr(np, "bitwise_count"):  # NumPy 2
        return np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return np.unpackbits(bits.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)


@validate_params(
    {"n_words": [Interval(Integral, 1, None, closed="left")]},
    prefer_skip_nested_validation=True,
)
def topic_diversity(topics: Any, *, n_words: int = 25) -> float:
    """Share of distinct words among the top words of all topics.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, of any scale, or an estimator with ``components_``.
        Words of equal weight count in the order of their columns.
    n_words : int, default=25
        Top words a topic: from 1 to n_features.

    Returns
    -------
    float
        1 where no two topics share a top word, 1 / n_topics where all have the same.  It
        cannot exceed n_features / (n_topics n_words).

    Raises
    ------
    NotFittedError
        If `topics` is an estimator that is not fitted.
    TypeError
        If `topics` is an estimator without ``components_``.
    ValueError
        If topics hold negative numbers, NaN or infinity, if a topic's weights are all 0, or
        if there are fewer features than `n_words`.

    References
    ----------
    A. B. Dieng, F. J. R. Ruiz, D. M. Blei, "Topic modeling in embedding spaces", TACL 2020.

    Examples
    --------
    >>> from annealvi.metrics import topic_diversity
    >>> topic_diversity([[3, 2, 1, 0], [0, 1, 2, 3], [2, 3, 1, 0]], n_words=2)
    0.6666666666666666
    """
    top = _top(_weights(topics, "topics", "topic_diversity"), n_words)
    return len(np.unique(top)) / top.size


@validate_params(
    {"matching": [StrOptions({"best", "one_to_one"})]}, prefer_skip_nested_validation=True
)
def topic_stability(a: Any, b: Any, *, matching: str = "best") -> float:
    r"""Mean cosine of the topics of one fit and their matches in another.

    With :math:`c_{kl}` the cosine of topic k of `a` and topic l of `b`, it is

    .. math::
        \frac12 \Big( \frac1{K_a} \sum_k \max_l c_{kl}
            + \frac1{K_b} \sum_l \max_k c_{kl} \Big),

    the mean best match, taken in both directions: `a` may have several topics that match
    one of `b`, but then others of `b` go without a good match.

    Parameters
    ----------
    a, b : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, of any scale, or estimators with ``components_``.
        The numbers of topics may differ.
    matching : {"best", "one_to_one"}, default="best"
        ``"one_to_one"`` matches topics in pairs, by the assignment of largest total cosine,
        and divides by the larger number of topics: those left over count 0.

    Returns
    -------
    float
        Between 0 and 1, the same for (b, a); 1 where all topics recur.

    Raises
    ------
    NotFittedError
        If one is an estimator that is not fitted.
    TypeError
        If one is an estimator without ``components_``.
    ValueError
        If they hold negative numbers, NaN or infinity, differ in their features, or if a
        topic's weights are all 0.

    Notes
    -----
    Topics that no document uses are all alike, flat or the corpus's mean, and so are matched
    perfectly: read it beside :func:`topic_diversity`.

    Examples
    --------
    >>> from annealvi.metrics import topic_stability
    >>> topic_stability([[1, 0, 0], [0, 2, 0]], [[0, 3, 0], [4, 0, 0]])
    1.0
    >>> topic_stability([[1, 0, 0], [0, 2, 0]], [[1, 0, 0], [0, 0, 1]])
    0.5
    """
    first, second = (
        _weights(topics, name, "topic_stability") for name, topics in (("a", a), ("b", b))
    )
    _check_names(a, b, "a", "b")
    _check_features(first, second, "a", "b")
    cosine = _cosines(first, second)
    if matching == "one_to_one":
        return float(cosine[linear_sum_assignment(-cosine)].sum() / max(cosine.shape))
    return float(cosine.max(axis=1).mean() + cosine.max(axis=0).mean()) / 2


def _cosines(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Of each row of one and each row of the other, in double, block by block of columns."""
    product = np.zeros((len(a), len(b)))
    squares = [np.zeros(len(rows)) for rows in (a, b)]
    # rows are divided by their peaks lest squares overflow
    peaks = [rows.max(axis=1, keepdims=True).astype(np.float64) for rows in (a, b)]
    n_columns = max(1, _BLOCK_BYTES // (8 * (len(a) + len(b))))
    for columns in gen_batches(a.shape[1], n_columns):
        blocks = [rows[:, columns] / peak for rows, peak in zip((a, b), peaks, strict=True)]
        product += blocks[0] @ blocks[1].T
        for square, block in zip(squares, blocks, strict=True):
            square += np.einsum("kv,kv->k", block, block)
    return np.minimum(product / np.sqrt(np.outer(*squares)), 1.0)  # a rounding error may exceed 1


def _weights(topics: Any, name: str, owner: str) -> NDArray:
    """Topics of an array or a fitted estimator: finite and non-negative, no row all zero."""
    is_array = hasattr(topics, "__array__")  # a DataFrame may have a word "fit"
    weights = topics if is_array else getattr(topics, "components_", topics)
    if weights is topics and not is_array and hasattr(topics, "fit"):
        check_is_fitted(topics)
        raise TypeError(
            f"The {name!r} parameter of {owner} must be an array-like or an estimator with "
            f"components_. Got {topics!r}, which has none."
        )
    weights = check_array(weights, dtype=[np.float64, np.float32], input_name=name)
    check_non_negative(weights, f"{owner} as {name}")
    empty = np.flatnonzero(weights.max(axis=1) == 0)
    if len(empty):
        raise ValueError(
            f"Each topic of {name!r} must have a word of positive weight. Got only zeros in "
            f"{len(empty)} of {len(weights)}, the first of them topic {empty[0]}."
        )
    return weights


def _check_names(a: Any, b: Any, a_name: str, b_name: str) -> None:
    """Feature names, where both have them, are the same."""
    first, second = (
        x.feature_names_in_ if hasattr(x, "feature_names_in_") else _get_feature_names(x)
        for x in (a, b)
    )
    if first is not None and second is not None and not np.array_equal(first, second):
        raise ValueError(f"The feature names of {a_name!r} and {b_name!r} should match.")


def _check_features(a: Any, b: Any, a_name: str, b_name: str) -> None:
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"{a_name!r} and {b_name!r} must have the same number of features. "
            f"Got {a.shape[1]} and {b.shape[1]}."
        )


def _top(weights: NDArray, n_words: int) -> NDArray[np.intp]:
    if n_words > weights.shape[1]:
        raise ValueError(
            f"'n_words' must be at most the number of features. Got {n_words} words of "
            f"{weights.shape[1]} features."
        )
    return top_columns(weights, n_words)
