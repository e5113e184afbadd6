r"""Merging of topics.  Each step merges the two topics whose merging loses the least information.

Let p_a and p_b be the numbers of tokens in topics a and b.  Merging them loses

.. math::
   p_a \mathrm{KL}(\beta_a \| \beta_{ab}) + p_b \mathrm{KL}(\beta_b \| \beta_{ab}), \quad
   \beta_{ab} = \frac{p_a \beta_a + p_b \beta_b}{p_a + p_b}

of the mutual information of topics and words (Slonim and Tishby 1999, *Agglomerative Information
Bottleneck*).  Let n_kv be the count of word v in topic k, and f(x) = x log x.  The loss is

    sum_v [f(n_av) + f(n_bv) - f(n_av + n_bv)] - [f(p_a) + f(p_b) - f(p_a + p_b)].
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from annealvi._kernels.special import entr
from annealvi.checks import TINY

#: Each topic is compared only with NEIGHBOURS other topics, those whose WORDS most frequent words
#: are the most similar to its own.
WORDS = 30
NEIGHBOURS = 4
#: Topics of a fit and of its runs are compared by their N_LARGEST most frequent words.
N_LARGEST = 50
#: Which topics are merged depends on words whose counts in a topic are above LEAST_COUNT, or above
#: the share LEAST_SHARE of the topic if that is less.
LEAST_COUNT = 0.1
LEAST_SHARE = 2.5e-4


class Topic(NamedTuple):
    """A topic: its words, their counts, and the sum of the counts."""

    words: NDArray[np.intp]
    counts: NDArray
    size: float

    @classmethod
    def of(cls, row: NDArray, threshold: float = 0.0) -> Self:
        """Make a topic of a row of counts; counts up to `threshold` are left out."""
        words = np.flatnonzero(row > threshold)
        counts = row[words].astype(float)
        return cls(words, counts, float(counts.sum()))


def groups_of(
    rows: Sequence[NDArray], n: int, n_neighbours: int | None = None, threshold: float = 0.0
) -> list[list[int]]:
    """Merge topics until n groups are left, and return a sorted list of sorted lists of topics.

    `rows` contains the counts of words in each topic, K arrays of shape (V,).  Only counts above
    `threshold` are used.  With `n_neighbours`, a topic is compared only with that number of topics,
    those with the most similar top words.  The time is then proportional to K instead of K^2.
    """
    topics = {k: Topic.of(row, threshold) for k, row in enumerate(rows)}
    groups = {k: [k] for k in topics}
    near = _neighbours(topics, len(rows[0]), n_neighbours or len(rows))
    # one topic as a full row, in which the words of other topics are looked up
    counts = np.zeros(len(rows[0]))

    def losses(a: int, others: Iterable[int]) -> list[tuple[float, int, int]]:
        """The losses of merging topic `a` with each of `others`, as tuples (loss, topic, topic).

        The topics are in ascending order, so that equal losses are sorted by topic.
        """
        one = topics[a]
        others = list(others)
        several = [topics[b] for b in others]
        lengths = np.array([len(topic_b.words) for topic_b in several], dtype=np.intp)
        lost = np.zeros(len(others))
        nonempty = lengths > 0
        if nonempty.any():  # all together, because there are many small topics
            counts[one.words] = one.counts
            words = np.concatenate([topic_b.words for topic_b in several])
            column = counts[words]
            shared = np.flatnonzero(column)  # words that only one topic has lose nothing
            # their counts in topic a, and in the other topics
            n_a = column[shared]
            n_b = np.concatenate([topic_b.counts for topic_b in several])[shared]
            # f(n_a) + f(n_b) - f(n_a + n_b), where entr is -f
            of_word = np.zeros(len(words))
            of_word[shared] = -entr(n_a) - entr(n_b) + entr(n_a + n_b)
            # sums over the words of each topic; reduceat cannot sum over no words
            lost[nonempty] = np.add.reduceat(of_word, (np.cumsum(lengths) - lengths)[nonempty])
            # for the next call
            counts[one.words] = 0.0
        p = one.size
        q = np.array([topic_b.size for topic_b in several])
        lost += entr(p) + entr(q) - entr(p + q)
        return [(loss, min(a, b), max(a, b)) for loss, b in zip(lost.tolist(), others, strict=True)]

    waiting = [loss for a in topics for loss in losses(a, [b for b in near[a] if a < b])]
    heapq.heapify(waiting)
    while len(groups) > n:
        if waiting:
            _, a, b = heapq.heappop(waiting)
            if a not in groups or b not in groups:  # merged in an earlier step
                continue
        else:  # the remaining topics have no frequent words in common
            a, b = sorted(groups, key=lambda k: (topics[k].size, k))[:2]  # the two smallest
        merged = len(near)  # the number of the new topic, as merged topics are kept in `near`
        groups[merged] = sorted(groups.pop(a) + groups.pop(b))
        for topic in (topics.pop(a), topics.pop(b)):
            counts[topic.words] += topic.counts
        topics[merged] = Topic.of(counts)
        # the full row is zero again for the next topic
        counts[topics[merged].words] = 0.0
        near[merged] = {k for k in near[a] | near[b] if k in groups}
        for k in near[merged]:
            near[k].add(merged)
        for loss in losses(merged, near[merged]):
            heapq.heappush(waiting, loss)
    return sorted(groups.values())


def _neighbours(topics: dict[int, Topic], V: int, n: int) -> dict[int, set[int]]:
    """The n neighbours of each topic, with which it is compared; `V` is the number of words.

    The relation is symmetric, so a topic can have more than n neighbours.
    """
    if n >= len(topics) - 1:
        return {k: set(topics) - {k} for k in topics}
    largest = []
    for words, counts, size in topics.values():
        rows_of_block = np.sort(largest_in(counts, WORDS)) if len(words) > WORDS else slice(None)
        # roots of shares, whose products sum to a similarity from 0 to 1
        largest.append((words[rows_of_block], np.sqrt(counts[rows_of_block] / size)))
    ends = np.cumsum([0, *(len(words) for words, _ in largest)])
    words, values = (np.concatenate(blocks) for blocks in zip(*largest, strict=True))
    roots = csr_matrix((values, words, ends), shape=(len(topics), V))
    alike = (roots @ roots.T).tocsr()  # the similarities of all topics with common words
    near: dict[int, set[int]] = {k: set() for k in topics}
    for k in topics:
        block = slice(alike.indptr[k], alike.indptr[k + 1])
        # the most similar first
        others = alike.indices[block][np.argsort(-alike.data[block], kind="stable")]
        for neighbour in others[others != k][:n].tolist():
            near[k].add(neighbour)
            near[neighbour].add(k)
    for k in near:
        if not near[k]:  # a topic without neighbours, for example without words, has all topics
            near[k] = set(near) - {k}
            for neighbour in near[k]:
                near[neighbour].add(k)
    return near


def largest_in(row: NDArray, n: int) -> NDArray[np.intp]:
    """Return the indices of the n largest numbers, largest first; equal numbers keep their order.

    (NumPy's argpartition chooses among equal numbers differently on different processors.)
    """
    # all that are at least the n-th largest number, which can be more than n
    places = np.flatnonzero(row >= np.partition(row, len(row) - n)[len(row) - n])
    # only these are sorted, because rows are long and n is small
    return places[np.argsort(-row[places], kind="stable")[:n]]


def merged_topics(runs: Sequence[NDArray], n_topics: int) -> NDArray:
    """Merge the topics of several fits, whose counts have shape (K, V), into `n_topics` topics.

    The counts of merged topics are added, and divided by the number of fits.
    """
    rows = [row for counts in runs for row in counts]
    # the mean number of tokens of a topic
    size = sum(float(row.sum(dtype=float)) for row in rows) / len(rows)
    smallest = min(LEAST_COUNT, LEAST_SHARE * size)
    groups = groups_of(rows, n_topics, NEIGHBOURS, smallest)
    return np.array([sum(rows[k] for k in group) / len(runs) for group in groups])


class Largest(NamedTuple):
    """The most frequent words of topics, in ascending order, with weights scaled to length 1."""

    words: NDArray[np.int64]
    weights: NDArray

    @classmethod
    def of(cls, counts: NDArray) -> Self:
        """The most frequent words of topics with counts of shape (K, V)."""
        n = min(N_LARGEST, counts.shape[1])
        # row by row, because the array may be large
        words = np.sort([largest_in(row, n) for row in counts])
        weights = np.take_along_axis(counts, words, axis=1).astype(float)
        # scaled by the largest weight first, so that squares neither overflow nor underflow
        largest = np.maximum(weights.max(axis=1, keepdims=True), TINY)
        lengths = largest * np.sqrt(((weights / largest) ** 2).sum(axis=1, keepdims=True))
        return cls(words.astype(np.int64), weights / np.maximum(lengths, TINY))

    def rows(self, n_features: int) -> csr_matrix:
        """The weights as a sparse matrix of shape (K, `n_features`)."""
        K, n = self.words.shape
        ends = np.arange(0, K * n + 1, n, dtype=np.int64)  # each row has n entries
        rows = self.weights.ravel(), self.words.ravel(), ends
        return csr_matrix(rows, shape=(K, n_features))


def support(counts: NDArray, runs: Sequence[Largest]) -> NDArray:
    """The mean cosine of each topic to the most similar topic of each run; counts are (K, V)."""
    largest = Largest.of(counts).rows(counts.shape[1])
    cosines_of_runs = [
        (largest @ run.rows(counts.shape[1]).T).max(axis=1).toarray() for run in runs
    ]
    return np.minimum(np.mean(cosines_of_runs, axis=0).ravel(), 1.0)  # without rounding errors
