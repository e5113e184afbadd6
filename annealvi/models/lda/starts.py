r"""Starting points of the topics: random, or from documents that k-means++ chooses.

**The critical temperature, above which all topics of LDA are the same.**

Let every topic be the corpus's own distribution of words, and let every document use all
topics equally, gamma = alpha + b N / K.  A small change delta_kv of log beta_kv, with sum 0
over k, changes E log theta_dk by

.. math::
   \delta\theta_{dk} = \frac{a}{1 - a} \sum_v \frac{n_{dv}}{N_d} \delta_{kv}, \qquad
   a = \frac{b^2 N}{K} \psi'\Big(\alpha + \frac{b N}{K}\Big),

if documents converge (a < 1).  The next topics then change by

.. math::
   \delta'_{kv} = b \Big(\delta_{kv} + \sum_d \frac{n_{dv}}{n_v} \delta\theta_{dk}\Big).

Take the singular vectors of n_dv / sqrt(N_d n_v), which are those of correspondence analysis.
Along a vector with singular value sigma a change grows if b (1 + a sigma^2 / (1 - a)) > 1.  The
critical temperature is one over the largest b at which no change grows.  In the posterior form
b alpha + 1 - b replaces alpha.  (The first singular value is 1, and its vector changes all
words alike.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import bisect
from scipy.special import polygamma
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.random import sample_without_replacement

from annealvi._kernels import lda_seeds, special
from annealvi.model import Form
from annealvi.threads import writing

#: Documents for each topic, and the weight of their counts, if topics start from documents.
SEED_DOCUMENTS, SEED_WEIGHT = 5, 5.0
#: Seeds are chosen from at least LEAST_SAMPLE documents, or SAMPLE_PER_TOPIC for each topic if
#: that is more.
LEAST_SAMPLE, SAMPLE_PER_TOPIC = 2000, 10
#: From so many documents a sample is drawn without an array of all their numbers.
MANY = 1 << 20
#: Random topics are drawn in about so many parts, each of which takes memory in double precision.
TOPIC_PARTS = 16
#: A document this close to a seed (1 - cosine) counts as the same document.
SAME = 1e-9


def random_topics(rng: RandomState, out: NDArray) -> None:
    """lambda ~ Gamma(100, 0.01), as scikit-learn draws it."""
    n_topics, n_features = out.shape
    at_once = max(1, n_topics // TOPIC_PARTS)
    for start in range(0, n_topics, at_once):
        some = out[start : start + at_once]
        some[:] = gamma_draws(rng, (len(some), n_features))


def topics_of_documents(X: Any, eta: NDArray, rng: RandomState, out: NDArray) -> None:
    """lambda_k = eta_k + 5 x the counts of 5 random documents."""
    n_samples = X.shape[0]
    size = min(SEED_DOCUMENTS, n_samples)
    groups = [_sample(n_samples, size, rng) for _ in range(len(out))]
    out[:] = eta
    _add_counts(X, np.array(groups), np.broadcast_to(eta, out.shape), out)


def topics_of_spread_documents(X: Any, rng: RandomState, out: NDArray) -> None:
    """lambda_k = 1 + 5 x the counts of 5 similar documents, far from the other topics'.

    If there are too few different documents, the topics left over are drawn as
    :func:`random_topics` draws them.
    """
    groups = spread_documents(X, len(out), SEED_DOCUMENTS, rng)
    out[: len(groups)] = 1.0
    random_topics(rng, out[len(groups) :])
    _add_counts(X, groups, np.broadcast_to(1.0, out.shape), out)


def spread_documents(X: Any, n_topics: int, n_each: int, rng: RandomState) -> NDArray[np.int64]:
    r"""Choose groups of similar documents that are far from one another.

    Documents are unit vectors of log(1 + n_v) log(D / D_v), where D_v of the D documents
    contain word v.  A group is a centre and the documents with the largest cosines to it.
    Centres are drawn with probability proportional to the squared distance to the nearest
    earlier centre (k-means++, Arthur and Vassilvitskii 2007).
    """
    size = min(X.shape[0], max(LEAST_SAMPLE, SAMPLE_PER_TOPIC * n_topics))
    sample = np.arange(size)
    if size < X.shape[0]:
        sample = np.sort(_sample(X.shape[0], size, rng))
    vectors = _unit_vectors(X[sample])
    words, values, first = vectors.indices.astype(np.int64), vectors.data, vectors.indptr
    # a centre reads only the entries of its own words
    of_word = sparse.csr_matrix(vectors.T)
    by_word = of_word.data, of_word.indices.astype(np.int64), of_word.indptr.astype(np.int64)
    # 1 - cosine, half the squared distance, to the nearest centre; documents without any word
    # that distinguishes them cannot become centres
    distance = (np.diff(first) > 0).astype(np.float64)
    cosine, nearest = np.empty(size), np.empty(min(n_each, size), dtype=np.int64)
    groups: list[NDArray[np.int64]] = []
    while len(groups) < n_topics:
        reach = np.cumsum(distance)
        if not reach[-1] > 0:
            break
        centre = int(np.searchsorted(reach, rng.random_sample() * reach[-1], side="right"))
        if centre == size:  # by a rounding error
            centre = int(np.flatnonzero(distance)[-1])
        own = slice(first[centre], first[centre + 1])
        lda_seeds.join_centre(values[own], words[own], *by_word, SAME, distance, cosine, nearest)
        groups.append(np.sort(sample[nearest]))
    return np.array(groups, dtype=np.int64).reshape(len(groups), len(nearest))


def _sample(n_samples: int, size: int, rng: RandomState) -> NDArray[np.int64]:
    """The numbers of `size` different documents, in any order."""
    if n_samples < MANY:
        return rng.choice(n_samples, size, replace=False)
    return sample_without_replacement(n_samples, size, random_state=rng).astype(np.int64)


def _add_counts(X: Any, groups: NDArray[np.int64], start: NDArray, out: NDArray) -> None:
    """Write `start` plus the counts of one group of documents to each of the first rows of `out`.

    Only where there are counts.
    """
    rows, places = np.unique(groups, return_inverse=True)  # SciPy may convert all that it is given
    ends = np.arange(len(groups) + 1) * groups.shape[1]
    weights = np.full(groups.size, SEED_WEIGHT)
    chosen = sparse.csr_matrix((weights, places.ravel(), ends), (len(groups), len(rows)))
    counts = (chosen @ X[rows]).tocoo()
    out[counts.row, counts.col] = start[counts.row, counts.col] + counts.data


def _unit_vectors(X: Any) -> sparse.csr_matrix:
    """log(1 + n) idf of documents, scaled to norm 1, always in double precision."""
    vectors = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    vectors.eliminate_zeros()
    n_documents = np.bincount(vectors.indices, minlength=X.shape[1])
    idf = special.log(X.shape[0] / np.maximum(n_documents, 1))
    vectors.data = special.log1p(vectors.data) * idf[vectors.indices]
    vectors.eliminate_zeros()
    return normalize(vectors, copy=False)


def gamma_draws(rng: RandomState, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Gamma(100, 0.01), as scikit-learn draws the start of topics and of documents."""
    return rng.gamma(100.0, 0.01, shape)


#: The largest number of documents used; the least number of documents and of words required;
#: and the least number of documents required of a stream.
MOST, LEAST, LEAST_DOCUMENTS = 4000, 4, 100
#: Used as the critical temperature if too few documents were seen.
DEFAULT_CRITICAL = 3.3
#: Index of the singular value that is used: the third, because a few documents with words of
#: their own can determine the second.
RANK = 2
#: The largest critical temperature that is returned.
MAX_CRITICAL = 100.0


class CorpusOfFit:
    """The documents of a fit, or the first ones of a stream.  The runs of a fit share them."""

    def __init__(
        self, X: Any, n_documents: float | None = None, n_words: float | None = None
    ) -> None:
        self.X, self.n_documents, self.n_words = X, n_documents, n_words
        self._critical: dict[tuple[int, float, Form], float] = {}

    def critical_temperature(self, n_topics: int, alpha: float, form: Form) -> float:
        """A constant if too few documents were seen."""
        if self.X.shape[0] < min(LEAST_DOCUMENTS, self.n_documents or 0):
            return DEFAULT_CRITICAL
        asked = n_topics, alpha, form
        with writing(self):
            if asked not in self._critical:
                self._critical[asked] = critical_temperature(self.X, *asked)
            return self._critical[asked]


def critical_temperature(X: Any, n_topics: int, alpha: float, form: Form = "likelihood") -> float:
    """Compute the temperature below which topics of these documents differ, at least 1."""
    X = X[:: max(1, -(-X.shape[0] // MOST))]
    lengths = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    X = sparse.csr_matrix(X[lengths > 0], dtype=np.float64)
    lengths = lengths[lengths > 0]
    totals = np.asarray(X.sum(axis=0)).ravel()
    if not np.isfinite(totals.sum()):
        return 1.0
    if n_topics == 1 or len(lengths) < LEAST or np.count_nonzero(totals) < LEAST:
        return 1.0
    scaled = sparse.diags_array(lengths**-0.5) @ X[:, totals > 0]
    scaled = scaled @ sparse.diags_array(totals[totals > 0] ** -0.5)
    # LAPACK's last digits depend on the processor
    sigma = float(f"{randomized_svd(scaled, RANK + 1, n_iter=4, random_state=0)[1][RANK]:.6g}")
    share = float(lengths.mean()) / n_topics

    def growth(b: float) -> float:
        prior = alpha if form == "likelihood" else b * alpha + 1.0 - b
        a = b * b * share * float(polygamma(1, prior + b * share))
        return np.inf if a >= 1 else b * (1.0 + a / (1.0 - a) * sigma**2)

    if growth(1.0 / MAX_CRITICAL) >= 1:
        return MAX_CRITICAL
    # growth is at least b, so at the latest topics separate at T = 1
    inverse = bisect(lambda b: min(growth(b), 2.0) - 1.0, 1.0 / MAX_CRITICAL, 1.0, xtol=1e-4)
    return round(1.0 / float(inverse), 2)
