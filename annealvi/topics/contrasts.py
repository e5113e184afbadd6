"""Which words groups of documents use differently within a topic: a method of TopicSummary."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils._param_validation import validate_params

from annealvi._optional import import_optional
from annealvi.checks import Interval, checked
from annealvi.exceptions import BadParameter
from annealvi.metrics.held_out import word_probabilities
from annealvi.topics.shares import read_groups
from annealvi.topics.words import N_WORDS

#: Half the width of a 95% interval, in standard errors.
WIDTH = 1.959963984540054
#: Fewest expected words of a group that stand for it: intervals of rarer ones are too narrow.
LEAST_COUNT = 5
#: Divisors that may be 0: sums of nothing, and the share of other words in a topic of one word.
_TINY, _LEAST_OTHERS = np.finfo(np.float64).tiny, 1e-9


class _Sums(NamedTuple):
    """Sums over documents: of words of a topic, c_dw in a document of m_d such words."""

    counts: NDArray[np.float64]  # c
    squares: NDArray[np.float64]  # c²
    products: NDArray[np.float64]  # c m
    length: float  # m
    length_squares: float  # m²

    @classmethod
    def of(cls, X: sparse.csr_matrix) -> _Sums:
        lengths = np.asarray(X.sum(axis=1)).ravel()
        counts, squares = (np.asarray(each.sum(axis=0)).ravel() for each in (X, X.multiply(X)))
        return cls(counts, squares, X.T @ lengths, lengths.sum(), lengths @ lengths)

    def without(self, other: _Sums) -> _Sums:
        """The sums over the other documents."""
        pairs: Any = zip(self, other, strict=True)
        return _Sums(*(np.maximum(a - b, 0.0) for a, b in pairs))

    def log_odds(self, words: NDArray, prior: NDArray) -> tuple[NDArray, NDArray]:
        """The log-odds of words, each with a prior count, and their variance."""
        y, total = self.counts[words], self.length + prior.sum()
        counts = y + prior
        others = np.maximum(total - counts, _LEAST_OTHERS * total)
        p = y / max(self.length, _TINY)
        residuals = self.squares[words] - 2 * p * self.products[words] + p**2 * self.length_squares
        variance = (np.maximum(residuals, 0.0) + prior) * (total / (counts * others)) ** 2
        return np.log(counts / others), variance


def expected_counts(summary: Any, k: int) -> sparse.csr_matrix:
    """The expected number of times that topic k has brought each word into each document."""
    X, topics = summary.counts, summary.topics
    p = word_probabilities(X, summary.shares, topics.T.__getitem__, np.ones(len(topics)))
    own = np.repeat(summary.shares[:, k], np.diff(X.indptr)) * topics[k, X.indices]
    counts = X.data * own / np.maximum(p, _TINY)
    return sparse.csr_matrix((counts, X.indices, X.indptr), shape=X.shape)


@validate_params(
    {
        "n": [Interval(Integral, 1, None, closed="left"), None],
        "prior": [Interval(Real, 1e-6, 1e12, closed="both")],
    },
    prefer_skip_nested_validation=True,
)
@checked
def words_by(
    self: Any, topic: int | str, groups: ArrayLike, n: int | None = N_WORDS, prior: float = 500.0
) -> Any:
    r"""Find the words that groups of documents use differently when they speak of a topic.

    A group is compared with all other groups together.  A word of document d belongs to topic k
    with probability :math:`\phi_{dwk} \propto \theta_{dk} \, p(w \mid k)`, so the topic has
    :math:`y_w = \sum_d n_{dw} \phi_{dwk}` words w in a group.  Words are ranked by z, the
    difference of their log-odds over its standard error (Monroe, Colaresi and Quinn 2008):

    .. math::
        \delta_w = \log \frac{y_w + \alpha_w}{n + \alpha_0 - y_w - \alpha_w}
            - \log \frac{y'_w + \alpha_w}{n' + \alpha_0 - y'_w - \alpha_w},

    where :math:`y'` is of the other groups, n is the sum of y over words, and the prior
    :math:`\alpha_w` is :math:`\alpha_0` times the word's share of the topic in all groups.  It
    pulls rare words towards no difference.

    Parameters
    ----------
    topic : int or str
        Its number or its label.
    groups : array-like of shape (D,)
        The group of each document, as in `by`.  Documents whose group is None or NaN are left out,
        so two groups of many are compared by setting the others to None.
    n : int, default=10
        Number of words of each group: those that it uses more than others do, if it has at least
        five of them.  None means all words of the topic, also rare ones.
    prior : float, default=500
        :math:`\alpha_0`, in words, from 1e-6 to 1e12.

    Returns
    -------
    pandas.DataFrame
        Rows by group, and in a group by ``z``, largest first: ``group``, ``word``, ``log_odds``
        (the difference), its ``std_error``, ``z``, the 95% interval from ``low`` to ``high``,
        ``count`` y, and the word's share of the topic's words in the group, ``share``, and in
        the ``others``.

    Raises
    ------
    ValueError
        If there are not as many groups as documents, or fewer than two groups.

    Notes
    -----
    The variance of the paper, :math:`1 / (y_w + \alpha_w) + 1 / (y'_w + \alpha_w)`, takes words for
    independent.  They are not: a document that has a word once has it again, and where groups are
    drawn at random up to 12% of such intervals exclude 0 (docs/summary.md).  Here documents are
    independent, and so are the words of the prior.  Each of the two log-odds has the variance

    .. math::
        \Big[ \alpha_w + \sum_d (c_{dw} - p_w m_d)^2 \Big]
            \Big[ \frac{n + \alpha_0}{(y_w + \alpha_w) (n + \alpha_0 - y_w - \alpha_w)} \Big]^2

    with :math:`c_{dw} = n_{dw} \phi_{dwk}`, :math:`m_d = \sum_w c_{dw}` and :math:`p_w = y_w / n`.
    If words are independent it is nearly that of the paper.  Topics are taken as given.  Intervals
    of a group of a few documents are too narrow.

    References
    ----------
    B. L. Monroe, M. P. Colaresi, K. M. Quinn, "Fightin' words", Political Analysis 16, 2008.

    Examples
    --------
    >>> from annealvi import TopicModel
    >>> from annealvi.topics import describe
    >>> texts = ["red stars and planets", "blue stars and planets"] * 20 + ["bread, butter"] * 20
    >>> model = TopicModel(n_topics=2, random_state=0).fit(texts)
    >>> words = describe(model, texts).words_by(0, ["a", "b"] * 20 + ["c"] * 20, n=1)
    >>> sorted(words)[:3]
    ['count', 'group', 'high']
    """
    pandas = import_optional("pandas", "TopicSummary.words_by")
    k, keys = self.labels.number(topic), read_groups(self, groups, pandas)
    X = expected_counts(self, k)
    rows = {
        name: places.to_numpy()
        for name, places in pandas.Series(range(len(keys))).groupby(keys, observed=True)
    }
    if len(rows) < 2:
        raise BadParameter("groups", "at least two groups", list(rows))
    everything = _Sums.of(X[np.concatenate(list(rows.values()))])
    there = np.flatnonzero(everything.counts)
    words = self.feature_names[there]
    prior_counts = prior * everything.counts / max(everything.length, _TINY)
    frames, named = [], []
    for name, own_rows in rows.items():
        own = _Sums.of(X[own_rows])
        rest = everything.without(own)
        (first, variance), (second, other) = (
            part.log_odds(there, prior_counts[there]) for part in (own, rest)
        )
        difference, std_error = first - second, np.sqrt(variance + other)
        best = np.argsort(-difference / std_error, kind="stable")
        if n is not None:
            more = (difference > 0) & (own.counts[there] >= LEAST_COUNT)
            best = best[more[best]][:n]
        columns = {
            "word": words[best],
            "log_odds": difference[best],
            "std_error": std_error[best],
            "z": (difference / std_error)[best],
            "low": (difference - WIDTH * std_error)[best],
            "high": (difference + WIDTH * std_error)[best],
            "count": own.counts[there[best]],
            "share": own.counts[there[best]] / max(own.length, _TINY),
            "others": rest.counts[there[best]] / max(rest.length, _TINY),
        }
        frames.append(pandas.DataFrame(columns))
        named += [name] * len(best)
    table = pandas.concat(frames, ignore_index=True)
    table.insert(0, "group", named)
    return table
