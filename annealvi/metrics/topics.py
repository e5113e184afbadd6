"""Measures of topics: coherence, diversity, stability, and recovery of known topics."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _get_feature_names, check_is_fitted

from annealvi._kernels import gemm, special
from annealvi.checks import COUNT, SHARE, Interval, as_array, check_count, checked, validated
from annealvi.exceptions import BadParameter
from annealvi.matrices import check_csr, check_matrix
from annealvi.models.lda.merging import largest_in

#: The default `relevance` in rankings of words, from 0 (lift) to 1 (probability);
#: docs/record/relevance.md explains how it was chosen.
RELEVANCE = 0.7
#: The default `epsilon` of coherence.
EPSILON = 1e-12


def top_columns(topics: NDArray, n: int, relevance: float = 1.0) -> NDArray[np.intp]:
    """Return the column indices of the n largest numbers of each row, the largest first.

    The numbers are first divided by (the sum of their column)^(1 - `relevance`).  Equal numbers are
    ranked by column number.
    """
    n = min(n, topics.shape[1])
    rows: Iterable[NDArray] = topics
    if relevance != 1:
        common = (1 - relevance) * special.log(topics.sum(axis=0, dtype=float))
        common[~np.isfinite(common)] = 0.0  # of words that no topic contains
        # the relevance, except for a constant of the row
        rows = (special.log(row.astype(float)) - common for row in topics)
    return np.array([largest_in(row, n) for row in rows])


def top_words(
    topics: NDArray, n: int, feature_names: ArrayLike | None, estimator: Any, relevance: float = 1.0
) -> list[list[Any]]:
    """Return the words of :func:`top_columns`, for the `top_words` method of an estimator.

    Without `feature_names`, the words are those of the estimator, or column numbers.
    """
    n = check_count(n, "n")
    if not isinstance(relevance, Real) or not 0 <= relevance <= 1:
        raise BadParameter("relevance", "a float in the range [0.0, 1.0]", relevance)
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", range(topics.shape[1]))
    names = word_names(feature_names, topics.shape[1])
    return names[top_columns(topics, n, float(relevance))].tolist()


def word_names(names: ArrayLike, n_features: int) -> NDArray:
    """Check that there is one name for each word, and return the names as an array."""
    array = as_array(names)
    if array.shape != (n_features,):
        raise BadParameter(
            "feature_names",
            must_be=f"a sequence with one name for each of the {n_features} features",
            got=array,
        )
    return array


def check_topic_model(model: Any, name: str, *attributes: str) -> None:
    """Check that a topic model is fitted and has all `attributes`."""
    if hasattr(model, "fit") and not hasattr(model, "components_"):
        check_is_fitted(model)  # raises NotFittedError, a clearer error than the one below
    if not all(hasattr(model, attribute) for attribute in attributes):
        raise BadParameter(
            name,
            must_be="a topic model with "
            + " and ".join(f"`{attribute}`" for attribute in attributes),
            got=model,
        )


def topic_weights(topics: Any, name: str = "topics") -> NDArray:
    """Check the topics of an array or of a fitted estimator, and return them as an array.

    All weights must be finite and non-negative, and the sum of each row must be positive.
    """
    if not hasattr(topics, "__array__"):  # a DataFrame could have a column named "fit"
        if hasattr(topics, "fit"):
            check_topic_model(topics, name, "components_")
        topics = getattr(topics, "components_", topics)
    # lists of words, or dicts of words and weights, have no numbers as first element
    element = topics.to_numpy() if hasattr(topics, "to_numpy") else topics
    sequences = list | tuple | np.ndarray
    # an array without dimensions, whose shape is (), has no length
    while isinstance(element, sequences) and getattr(element, "shape", True) and len(element):
        element = element[0]
    if isinstance(element, str | Mapping):
        raise BadParameter(
            name,
            must_be="a fitted estimator, or an array with a weight for each topic and word",
            got=element,
            hint="Lists of words cannot be used.",
        )
    weights = check_matrix(topics, accept_sparse=False, name=name)
    if weights.min() < 0:
        raise BadParameter(name, "an array of non-negative numbers", weights.min())
    with np.errstate(over="ignore"):  # the next lines raise an error for infinite sums
        sums = weights.sum(axis=1, dtype=float)
    for topic in np.flatnonzero(~((sums > 0) & np.isfinite(sums))):
        raise BadParameter(
            f"{name}[{topic}]",
            must_be="weights with a positive and finite sum",
            got=sums[topic],
        )
    return weights


def check_names(a: Any, b: Any, name_a: str, name_b: str) -> None:
    """Raise ValueError if `a` and `b` have feature names that differ.

    Both are fitted models, DataFrames or arrays, called `name_a` and `name_b` in the message.
    """
    # None for an array without names
    feature_names = [
        x.feature_names_in_ if hasattr(x, "feature_names_in_") else _get_feature_names(x)
        for x in (a, b)
    ]
    both_known = all(columns is not None for columns in feature_names)
    if both_known and not np.array_equal(*feature_names):
        raise ValueError(f"The feature names of {name_a!r} and {name_b!r} should match.")


def _check_widths(a: Any, b: Any, name_a: str, name_b: str) -> None:
    """Raise ValueError if two matrices have different numbers of features."""
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"{name_a!r} and {name_b!r} must have the same number of features. "
            f"Got {a.shape[1]} and {b.shape[1]}."
        )


#: The number of bytes of topics that are copied at a time.
_BLOCK_BYTES = 1 << 24


@validated(
    X=["array-like", "sparse matrix"],
    measure=[StrOptions({"npmi", "umass"})],
    n_words=[Interval(Integral, 2, None, closed="left")],
    epsilon=[Interval(Real, 0, 1, closed="left")],
    relevance=SHARE,
)
def topic_coherence(
    topics: Any,
    X: Any,
    *,
    measure: str = "npmi",
    n_words: int = 10,
    epsilon: float = EPSILON,
    relevance: float = 1.0,
) -> NDArray[np.float64]:
    r"""Measure how often the top words of each topic occur in the same documents.

    Let :math:`w_1, \ldots, w_n` be the top words of a topic, best first.  Let
    :math:`p_i` be the share of documents of X that contain :math:`w_i`, and :math:`p_{ij}`
    the share that contain both :math:`w_i` and :math:`w_j`.  The coherence of a topic is the
    mean over its :math:`n (n - 1) / 2` pairs of

    .. math::
        \text{npmi:} \quad \log \frac{p_{ij} + \epsilon}{p_i p_j}
            \Big/ -\log (p_{ij} + \epsilon),
        \qquad
        \text{umass:} \quad \log \frac{p_{ij} + \epsilon}{p_j}, \; j < i.

    NPMI is between -1 and 1, and 0 for independent words.  UMass is at most 0.  For both measures,
    higher is better.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, on any scale, or an estimator with ``components_``.
        Words of equal weight are ranked by column number.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The reference corpus, as non-negative counts.  Only whether a count is zero matters.
        Documents without words are included.
    measure : {"npmi", "umass"}, default="npmi"
    n_words : int, default=10
        Number of top words of each topic, from 2 to n_features.
    epsilon : float, default=1e-12
        Number added to the share :math:`p_{ij}` of documents that contain both words of a pair.
    relevance : float, default=1.0
        As in :meth:`annealvi.TemperedLDA.top_words`.  With 1, words are ranked by probability.
        With a smaller number, words that are rare in other topics rank higher, so :math:`w_j` in
        UMass may be rarer than :math:`w_i`.

    Returns
    -------
    ndarray of shape (n_topics,), float64
        The coherence of each topic.  The mean over topics is often reported.

    Raises
    ------
    NotFittedError
        If `topics` is an estimator that is not fitted.
    TypeError
        If `topics` is an estimator without ``components_``.
    ValueError
        If topics or X contain negative numbers, NaN or infinity, if their features differ in number
        or name, if a topic's weights are all 0, or if there are fewer features than `n_words`.

    Notes
    -----
    gensim's ``CoherenceModel`` gives the same values with ``"u_mass"``, or with ``"c_npmi"`` and a
    window that is longer than every document.  The NPMI of a pair that never occurs together is
    :math:`-1 + \log(p_i p_j) / \log \epsilon`, which is highest for rare words.  With ``epsilon=0``
    the NPMI of such a pair is -1, and its UMass is -inf.  If documents are short, `epsilon` can
    change the mean over topics by more than 0.1, so compare only values that were computed with the
    same `epsilon`.  With ``epsilon=1 / n_samples`` UMass adds 1 to the number of documents with
    both words, as in Mimno et al. (2011), who sum instead of averaging.

    NPMI is undefined if a word does not occur in X, and UMass if :math:`w_j` does not.  The worst
    value is used instead: -1 for NPMI and :math:`\log \epsilon` for UMass.  If both words occur in
    every document, NPMI is 0, as for independent words.  In both cases gensim differs.

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
    weights = topic_weights(topics)
    counts = check_csr(X)
    check_names(topics, X, "topics", "X")
    _check_widths(weights, counts, "topics", "X")
    if counts.data.min(initial=0) < 0:
        raise BadParameter("X", "non-negative", counts.data.min())
    return coherence_of(_top(weights, n_words, relevance), counts, measure, float(epsilon))


def coherence_of(
    top: NDArray[np.intp], X: csr_matrix, measure: str = "npmi", epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """Return the coherence of each topic in documents X, from the columns of its top words."""
    together = documents_of_pairs(top, X) / X.shape[0]
    # the word w_j, on which UMass conditions, comes before w_i
    j, i = np.triu_indices(top.shape[1], k=1)
    p = np.einsum("knn->kn", together)  # the diagonal: shares of documents with a word
    p_ij = together[:, i, j]
    coherence_of_pairs = _npmi if measure == "npmi" else _umass
    return coherence_of_pairs(p[:, i], p[:, j], p_ij, epsilon).mean(axis=1)


def _npmi(p_i: NDArray, p_j: NDArray, p_ij: NDArray, epsilon: float) -> NDArray[np.float64]:
    """Return NPMI of pairs of words, from shares of documents with either word and with both."""
    joint = p_ij + epsilon
    never = (joint == 0) | (p_i == 0) | (p_j == 0)  # a word or a pair that never occurs
    with np.errstate(divide="ignore", invalid="ignore"):  # these values are not used below
        value = special.log(joint / (p_i * p_j)) / -special.log(joint)
    # 0 / 0 for words that occur in every document counts as 0
    return np.where(never, -1.0, np.where(joint >= 1, 0.0, value))


def _umass(p_i: NDArray, p_j: NDArray, p_ij: NDArray, epsilon: float) -> NDArray[np.float64]:
    """Return UMass of pairs of words, from shares of documents with word j and with both."""
    # a pair with p_j = 0 has the same value as a pair that never occurs together with p_j = 1
    return special.log((p_ij + epsilon) / np.where(p_j == 0, 1.0, p_j))


def documents_of_pairs(top: NDArray[np.intp], X: Any) -> NDArray[np.float64]:
    """For each pair of a topic's top words, count the documents that contain both words.

    Topics are processed one by one, because only pairs of words of the same topic are needed.  For
    each word, one bit per document marks whether the document contains the word; for frequent
    words, such as top words, this takes less memory than a list of documents.  A bitwise "and" of
    two words marks the documents that contain both.
    """
    n_topics, n = top.shape
    words, word_numbers = np.unique(top, return_inverse=True)
    used = X[:, words].tocsc()  # a copy, so that X is not changed
    used.eliminate_zeros()
    documents = np.split(used.indices, used.indptr[1:-1])  # the documents of each word
    # whether each document contains a word; the length is rounded up to 64 bits
    contains = np.zeros(-(-X.shape[0] // 64) * 64, dtype=bool)
    bits = np.zeros((n, len(contains) // 64), dtype=np.uint64)
    pairs = np.empty((n_topics, n, n))
    for k, words_of_topic in enumerate(word_numbers.reshape(n_topics, n)):
        for i, word in enumerate(words_of_topic):
            contains[:] = False
            contains[documents[word]] = True
            bits[i] = np.packbits(contains).view(np.uint64)
        for i in range(n):
            counts = _n_set(bits[i] & bits[i:])  # of word i and each word from i on
            pairs[k, i, i:] = counts
            pairs[k, i:, i] = counts
    return pairs


def _n_set(bits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of bits that are 1 in each row."""
    if hasattr(np, "bitwise_count"):  # NumPy 2
        return np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return np.unpackbits(bits.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)


@validated(n_words=COUNT, relevance=SHARE)
def topic_diversity(topics: Any, *, n_words: int = 25, relevance: float = 1.0) -> float:
    """Compute the share of distinct words among the top words of all topics.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, on any scale, or an estimator with ``components_``.
        Words of equal weight are ranked by column number.
    n_words : int, default=25
        Number of top words of each topic, from 1 to n_features.
    relevance : float, default=1.0
        As in :meth:`annealvi.TemperedLDA.top_words`.  With 1, words are ranked by probability.

    Returns
    -------
    float
        The diversity, which is 1 if no two topics share a top word, and 1 / n_topics if all topics
        have the same top words.  The diversity cannot exceed n_features / (n_topics n_words).

    Raises
    ------
    NotFittedError
        If `topics` is an estimator that is not fitted.
    TypeError
        If `topics` is an estimator without ``components_``.
    ValueError
        If topics contain negative numbers, NaN or infinity, if a topic's weights are all 0,
        or if there are fewer features than `n_words`.

    References
    ----------
    A. B. Dieng, F. J. R. Ruiz, D. M. Blei, "Topic modeling in embedding spaces", TACL 2020.

    Examples
    --------
    >>> from annealvi.metrics import topic_diversity
    >>> topic_diversity([[3, 2, 1, 0], [0, 1, 2, 3], [2, 3, 1, 0]], n_words=2)
    0.6666666666666666
    """
    top = _top(topic_weights(topics), n_words, relevance)
    return len(np.unique(top)) / top.size


@validated(matching=[StrOptions({"best", "one_to_one"})])
def topic_stability(topics: Any, other_topics: Any, *, matching: str = "best") -> float:
    r"""Compute the mean cosine between each topic of a fit and its match in another fit.

    With :math:`c_{kl}` the cosine of topic k of the first fit and topic l of the second, and with K
    and L topics in the two fits, the stability is

    .. math::
        \frac12 \Big( \frac1K \sum_k \max_l c_{kl} + \frac1L \sum_l \max_k c_{kl} \Big).

    This is the mean cosine of the best matches in both directions.  Several topics of the first fit
    can match the same topic of the second, but then other topics of the second have no good match.

    Parameters
    ----------
    topics, other_topics : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, on any scale, or estimators with ``components_``.
        The numbers of topics may differ.
    matching : {"best", "one_to_one"}, default="best"
        ``"best"`` uses the equation above.  ``"one_to_one"`` matches topics in pairs, by the
        assignment with the largest total cosine, and divides the total by the larger number
        of topics.  The cosine of a topic without a match counts as 0.

    Returns
    -------
    float
        A number between 0 and 1, which is the same if the two fits are exchanged.  The stability is
        1 if both fits have the same topics.

    Raises
    ------
    NotFittedError
        If one of the two is an estimator that is not fitted.
    TypeError
        If one of the two is an estimator without ``components_``.
    ValueError
        If topics contain negative numbers, NaN or infinity, if their features differ in number or
        name, or if the weights of a topic are all 0.

    Notes
    -----
    Topics that no document uses are equal in both fits, so they match perfectly and increase the
    stability.  If there are such topics, :func:`topic_diversity` is low.

    Examples
    --------
    >>> from annealvi.metrics import topic_stability
    >>> topic_stability([[1, 0, 0], [0, 2, 0]], [[0, 3, 0], [4, 0, 0]])
    1.0
    >>> topic_stability([[1, 0, 0], [0, 2, 0]], [[1, 0, 0], [0, 0, 1]])
    0.5
    """
    first = topic_weights(topics)
    second = topic_weights(other_topics, "other_topics")
    check_names(topics, other_topics, "topics", "other_topics")
    _check_widths(first, second, "topics", "other_topics")
    cosine = _cosines(first, second)
    if matching == "one_to_one":
        # linear_sum_assignment returns rows and columns
        return float(cosine[linear_sum_assignment(cosine, maximize=True)].sum() / max(cosine.shape))
    return float(cosine.max(axis=1).mean() + cosine.max(axis=0).mean()) / 2


@checked
def topic_checksum(topics: Any) -> str:
    """Compute a checksum, with which two people can check whether their topics are the same.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, or an estimator with ``components_``.

    Returns
    -------
    str
        The first 16 hexadecimal digits of the SHA-256 of the weights, as little-endian float64.
        Any change of a weight, or of the order of the topics, changes the checksum.

    Raises
    ------
    NotFittedError
        If `topics` is an estimator that is not fitted.
    TypeError
        If `topics` is an estimator without ``components_``.
    ValueError
        If topics contain negative numbers, NaN or infinity, or if a topic's weights are all 0.

    Examples
    --------
    >>> from annealvi.metrics import topic_checksum
    >>> topic_checksum([[5, 1, 0], [0, 0, 2]])
    '9ee23a94d85ae7f3'
    """
    weights = np.ascontiguousarray(topic_weights(topics), dtype="<f8")
    return hashlib.sha256(weights.tobytes()).hexdigest()[:16]


@validated(threshold=SHARE)
def duplicate_topics(topics: Any, *, threshold: float = 0.9) -> list[list[int]]:
    """Find topics that are nearly equal.

    If a fit has too many topics for the corpus, some topics are near copies of others, and topics
    that no document uses are all equal.  Fit again with fewer topics, or merge the duplicates.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features) or fitted estimator
        Non-negative weights of words, on any scale, or an estimator with ``components_``.
    threshold : float, default=0.9
        Two topics are in the same group if their cosine is at least this number, or if they are
        linked by a chain of topics, each with such a cosine to the next.

    Returns
    -------
    list of list of int
        Groups of at least two topics, each in increasing order, which can be passed as `groups` to
        :func:`annealvi.topics.merge_topics`.  The list is empty if no topic has a duplicate.

    Raises
    ------
    NotFittedError
        If `topics` is an estimator that is not fitted.
    TypeError
        If `topics` is an estimator without ``components_``.
    ValueError
        If topics contain negative numbers, NaN or infinity, or if a topic's weights are all 0.

    Examples
    --------
    >>> from annealvi.metrics import duplicate_topics
    >>> duplicate_topics([[5, 1, 0], [0, 0, 2], [9, 2, 0]])
    [[0, 2]]
    """
    weights = topic_weights(topics)
    threshold = min(threshold, 1.0 - 1e-12)  # a tolerance for rounding errors of cosines
    # topics are linked if they are similar; a label is the number of a group
    _, labels = connected_components(_cosines(weights, weights) >= threshold, directed=False)
    groups = [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
    return [group for group in groups if len(group) > 1]


def _cosines(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Compute the cosines of rows of `a` and `b` in double precision, by blocks of columns."""
    product = np.zeros((len(a), len(b)))
    squares = [np.zeros(len(rows)) for rows in (a, b)]
    # rows are divided by their largest element so that squares do not overflow
    peaks = [rows.max(axis=1, keepdims=True).astype(float) for rows in (a, b)]
    # as many columns as fit into a block of memory, with 8 bytes for a number
    n_columns = max(1, _BLOCK_BYTES // (8 * (len(a) + len(b))))
    for columns in gen_batches(a.shape[1], n_columns):
        blocks = [rows[:, columns] / peak for rows, peak in zip((a, b), peaks, strict=True)]
        product += gemm.product(blocks[0], blocks[1].T)
        for square, block in zip(squares, blocks, strict=True):
            square += np.sum(block**2, axis=1)  # in place, in the list `squares`
    return np.minimum(product / np.sqrt(np.outer(*squares)), 1.0)  # a rounding error may exceed 1


def _top(weights: NDArray, n_words: int, relevance: float) -> NDArray[np.intp]:
    """Return the columns of the top words of each topic; raise if there are too few words."""
    if n_words > weights.shape[1]:
        raise BadParameter(
            "n_words",
            must_be=f"at most the number of features, {weights.shape[1]}",
            got=n_words,
        )
    return top_columns(weights, int(n_words), float(relevance))


@validated(threshold=[Interval(Real, -1, 1, closed="both")])
def component_recovery(
    truth: ArrayLike, components: ArrayLike, *, threshold: float = 0.95
) -> tuple[int, NDArray[np.float64]]:
    """Count the true components that a fit found, matching components one to one by cosine.

    Parameters
    ----------
    truth : array-like of shape (n_true, n_features)
        The true components.
    components : array-like of shape (n_components, n_features)
        The components of a fit.
    threshold : float, default=0.95
        A true component counts as found if its cosine with its match exceeds this number.

    Returns
    -------
    n_found : int
        Number of true components that were found.
    cosines : ndarray of shape (n_true,)
        Cosine of each true component with its match, or 0 if it has no match.
    """
    true = check_matrix(truth, dtype=np.float64, accept_sparse=False, name="truth")
    fitted = check_matrix(components, dtype=np.float64, accept_sparse=False, name="components")
    _check_widths(true, fitted, "truth", "components")
    # products of rows of length 1
    cosine = gemm.product(normalize(true), normalize(fitted).T)
    rows, columns = linear_sum_assignment(cosine, maximize=True)
    cosines = np.zeros(len(true))  # 0 for a true component without a match
    cosines[rows] = cosine[rows, columns]
    return int(np.sum(cosines > threshold)), cosines
