r"""Starting points of the topics: at random, or from documents that k-means++ chooses.

**The critical temperature, above which all topics of LDA become equal.**

Let every topic be the distribution of words in the corpus, and let every document use all
topics equally, so that gamma = alpha + b N / K.  A small change delta_kv of log beta_kv, whose sum
over k is 0, changes E log theta_dk by

.. math::
   \delta\theta_{dk} = \frac{a}{1 - a} \sum_v \frac{n_{dv}}{N_d} \delta_{kv}, \qquad
   a = \frac{b^2 N}{K} \psi'\Big(\alpha + \frac{b N}{K}\Big),

if documents converge (a < 1).  The next topics then change by

.. math::
   \delta'_{kv} = b \Big(\delta_{kv} + \sum_d \frac{n_{dv}}{n_v} \delta\theta_{dk}\Big).

Consider the singular vectors of n_dv / sqrt(N_d n_v), as in correspondence analysis.  A change
along a vector with singular value sigma grows from step to step if b (1 + a sigma^2 / (1 - a)) > 1.
The critical temperature is 1 divided by the largest b at which no change grows.  With
``form="posterior"``, alpha becomes b alpha + 1 - b.  The first singular value, 1, is ignored,
because its vector changes all words by the same factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import bisect
from scipy.sparse import csr_matrix
from scipy.special import polygamma
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.random import sample_without_replacement

from annealvi._kernels import lda_seeds, special
from annealvi.matrices import summed
from annealvi.model import Form
from annealvi.threads import writing

#: If topics start from documents: the number of documents for each topic, and the factor by which
#: their counts are multiplied.
SEED_DOCUMENTS = 5
SEED_WEIGHT = 5.0
#: These documents are chosen from a sample of LEAST_SAMPLE documents, or SAMPLE_PER_TOPIC for each
#: topic if that is more.
LEAST_SAMPLE = 2000
SAMPLE_PER_TOPIC = 10
#: With at least this many documents, a sample is drawn without an array of all their numbers.
MANY = 1 << 20
#: Random topics are drawn in about this many parts, because a part needs double precision.
TOPIC_PARTS = 16
#: If 1 - cosine between a document and a centre is at most this, the two count as equal.
SAME = 1e-9


def random_topics(rng: RandomState, out: NDArray) -> None:
    """Draw lambda ~ Gamma(100, 0.01) into `out`, with the same random numbers as scikit-learn."""
    n_topics, n_features = out.shape
    at_once = max(1, n_topics // TOPIC_PARTS)
    for start in range(0, n_topics, at_once):
        block = out[start : start + at_once]  # a view
        block[:] = gamma_draws(rng, (len(block), n_features))


def topics_of_documents(X: Any, eta: NDArray, rng: RandomState, out: NDArray) -> None:
    """Set lambda_k, the rows of `out`, to eta_k plus 5 times the counts of 5 random documents."""
    n_samples = X.shape[0]
    size = min(SEED_DOCUMENTS, n_samples)
    groups = [_sample(n_samples, size, rng) for _ in range(len(out))]
    out[:] = eta
    _add_counts(X, np.array(groups), np.broadcast_to(eta, out.shape), out)


def topics_of_spread_documents(X: Any, rng: RandomState, out: NDArray) -> None:
    """Set lambda_k, the rows of `out`, to 1 plus 5 times the counts of 5 similar documents.

    The documents of different topics are far from each other.  If there are too few different
    documents, the remaining topics are drawn by :func:`random_topics`.
    """
    groups = spread_documents(X, len(out), SEED_DOCUMENTS, rng)
    out[: len(groups)] = 1.0
    random_topics(rng, out=out[len(groups) :])  # if any rows remain
    _add_counts(X, groups, np.broadcast_to(1.0, out.shape), out)


def spread_documents(X: Any, n_topics: int, n_each: int, rng: RandomState) -> NDArray[np.int64]:
    r"""Choose groups of similar documents that are far from one another.

    Documents are represented by unit vectors of log(1 + n_v) log(D / D_v), where D_v of the D
    documents contain word v.  A group consists of a centre, which is a document, and the documents
    with the largest cosines to it.  Centres are drawn with probability proportional to the squared
    distance to the nearest earlier centre (k-means++, Arthur and Vassilvitskii 2007).
    """
    size = min(X.shape[0], max(LEAST_SAMPLE, SAMPLE_PER_TOPIC * n_topics))
    sample = np.arange(size, dtype=np.int64)
    if size < X.shape[0]:
        sample = np.sort(_sample(X.shape[0], size, rng))
    vectors = _unit_vectors(X[sample])
    words = vectors.indices.astype(np.int64)
    values = vectors.data
    first = vectors.indptr
    # transposed, so that only the entries of the centre's words are read
    of_word = csr_matrix(vectors.T)
    rows_of_word = of_word.indices.astype(np.int64)
    first_of_word = of_word.indptr.astype(np.int64)
    # the distance to the nearest centre is 1 - cosine, half the squared distance; documents
    # without a word that other documents lack cannot become centres
    distance = (np.diff(first) > 0).astype(float)
    cosine = np.empty(size)
    nearest = np.empty(min(n_each, size), dtype=np.int64)
    groups: list[NDArray[np.int64]] = []
    while len(groups) < n_topics:
        reach = np.cumsum(distance)
        if not reach[-1] > 0:  # each document equals a centre
            break
        # a random document, with probability proportional to its distance
        centre = int(np.searchsorted(reach, rng.random_sample() * reach[-1], side="right"))
        if centre == size:  # because of a rounding error
            centre = int(np.flatnonzero(distance)[-1])
        entries = slice(first[centre], first[centre + 1])
        # updates `distance`, and writes the cosines to the centre and the nearest documents
        lda_seeds.join_centre(
            values[entries],
            words[entries],
            of_word.data,
            rows_of_word,
            first_of_word,
            SAME,
            distance,
            cosine,
            nearest,
        )
        groups.append(np.sort(sample[nearest]))
    return np.array(groups, dtype=np.int64).reshape(len(groups), len(nearest))


def _sample(n_samples: int, size: int, rng: RandomState) -> NDArray[np.int64]:
    """Draw the numbers of `size` different documents, in any order."""
    if n_samples < MANY:  # `choice` makes an array of all numbers
        return rng.choice(n_samples, size, replace=False)
    return sample_without_replacement(n_samples, size, random_state=rng).astype(np.int64)


def _add_counts(X: Any, groups: NDArray[np.int64], start: NDArray, out: NDArray) -> None:
    """Write `start` plus the counts of the k-th group of documents to row k of `out`.

    `out` must contain `start` already, because only elements with counts are written.
    """
    rows, places = np.unique(groups, return_inverse=True)  # only these rows of X are converted
    ends = np.arange(len(groups) + 1, dtype=np.int64) * groups.shape[1]
    weights = np.full(groups.size, SEED_WEIGHT)
    # a matrix whose product with the counts sums the documents of each group
    chosen = csr_matrix((weights, places.ravel(), ends), (len(groups), len(rows)))
    counts = (chosen @ X[rows]).tocoo()
    out[counts.row, counts.col] = start[counts.row, counts.col] + counts.data


def _unit_vectors(X: Any) -> csr_matrix:
    """The vectors log(1 + n) idf of documents, scaled to norm 1, in double precision."""
    vectors = csr_matrix(X, dtype=np.float64, copy=True)
    vectors.eliminate_zeros()
    n_documents = np.bincount(vectors.indices, minlength=X.shape[1])
    # the logarithm is 0 for words in all documents, whose entries are then removed
    idf = special.log(X.shape[0] / np.maximum(n_documents, 1))
    vectors.data = special.log1p(vectors.data) * idf[vectors.indices]
    vectors.eliminate_zeros()
    return normalize(vectors, copy=False)


def gamma_draws(rng: RandomState, shape: tuple[int, ...]) -> NDArray:
    """Gamma(100, 0.01), as scikit-learn draws the start of topics and of documents."""
    return rng.gamma(shape=100.0, scale=0.01, size=shape)


#: The critical temperature is computed from at most MOST documents.  At least LEAST documents and
#: words are required, and in a stream at least LEAST_DOCUMENTS.
MOST = 4000
LEAST = 4
LEAST_DOCUMENTS = 100
#: This is used as the critical temperature if there were too few documents.
DEFAULT_CRITICAL = 3.3
#: Index of the singular value that is used.  It is the third one, because a few documents with
#: unusual words can determine the second.
RANK = 2
#: The largest critical temperature that is returned.
MAX_CRITICAL = 100.0


class CorpusOfFit:
    """The documents of a fit, or the first documents of a stream, which all runs share."""

    def __init__(
        self, X: Any, n_documents: float | None = None, n_words: float | None = None
    ) -> None:
        """Set the documents X, and the numbers of documents and words of the whole corpus."""
        self.X = X
        self.n_documents = n_documents
        self.n_words = n_words
        self._critical: dict[tuple[int, float, Form], float] = {}

    def critical_temperature(self, n_topics: int, alpha: float, form: Form) -> float:
        """The critical temperature of the documents, or a constant if there are too few."""
        # a whole corpus can be smaller, but the first documents of a stream must be enough
        if self.X.shape[0] < min(LEAST_DOCUMENTS, self.n_documents or 0):
            return DEFAULT_CRITICAL
        key = n_topics, alpha, form
        with writing(self):  # so that only one thread computes it
            if key not in self._critical:
                self._critical[key] = critical_temperature(self.X, n_topics, alpha, form)
            return self._critical[key]


def critical_temperature(X: Any, n_topics: int, alpha: float, form: Form = "likelihood") -> float:
    """Compute the temperature (at least 1) below which topics of these documents differ."""
    X = X[:: max(1, -(-X.shape[0] // MOST))]  # at most MOST documents
    lengths = summed(X, axis=1, dtype=np.float64)
    X = csr_matrix(X[lengths > 0], dtype=np.float64)
    lengths = lengths[lengths > 0]
    totals = summed(X, axis=0)
    overflow = not np.isfinite(totals.sum())
    if overflow or n_topics == 1 or len(lengths) < LEAST or np.count_nonzero(totals) < LEAST:
        return 1.0
    # n_dv / sqrt(N_d n_v), whose singular values are needed
    scaled = sparse.diags_array(lengths**-0.5) @ X[:, totals > 0]
    scaled = scaled @ sparse.diags_array(totals[totals > 0] ** -0.5)
    # rounded, because LAPACK's last digits depend on the processor
    sigma = float(f"{randomized_svd(scaled, RANK + 1, n_iter=4, random_state=0)[1][RANK]:.6g}")
    share = float(lengths.mean()) / n_topics  # N / K

    def growth(b: float) -> float:
        """The factor by which a change of topics grows in a step; see the docstring on top."""
        prior = alpha if form == "likelihood" else b * alpha + 1.0 - b
        a = b * b * share * float(polygamma(1, prior + b * share))
        return np.inf if a >= 1 else b * (1.0 + a / (1.0 - a) * sigma**2)

    if growth(1.0 / MAX_CRITICAL) >= 1:
        return MAX_CRITICAL
    # growth is at least b, so topics separate at T = 1 if not before
    # growth may be infinite, which bisect does not accept
    inverse = bisect(lambda b: min(growth(b), 2.0) - 1.0, 1.0 / MAX_CRITICAL, 1.0, xtol=1e-4)
    return round(1.0 / float(inverse), 2)  # as exactly as it is useful
