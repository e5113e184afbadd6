"""The words of topics: rankings of words, and labels that consist of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from annealvi._kernels import special
from annealvi.checks import TINY, is_int_in
from annealvi.exceptions import BadParameter
from annealvi.metrics.topics import top_columns
from annealvi.topics.naming import read_answer
from annealvi.topics.vectorizer import of_each

Floats = NDArray
#: The number of top words of a topic, also for its exclusivity.
N_WORDS = 10
#: The number of words of a label.
LABEL_WORDS = 3
#: Columns of tables with a column for each label, and names of their indices; labels must differ
#: from them.
COLUMNS = (
    "certainty",
    "document",
    "group",
    "label",
    "n_documents",
    "period",
    "share",
    "topic",
    "word",
)
#: Two words are similar if at least the first number of letters at their beginnings are equal, and
#: the rest of each word has at most the second number of letters.
_STEM = 4
_ENDING = 3
#: Minimum share of a topic, so that p(w) is positive if any topic contains the word.
_LEAST_SHARE = 1e-12


def shares_of_words(topics: Floats, topic_shares: Floats) -> Floats:
    r"""Compute :math:`p(w) = \sum_k p(k) p(w \mid k)`.

    If p(w) were the frequency of the word in the documents, it could be 0, and the lift p(w | k) /
    p(w) of a word that occurs only once or twice would be very large.
    """
    weights = np.maximum(topic_shares, _LEAST_SHARE)
    shares = np.einsum("k,kv->v", weights / weights.sum(), topics)
    return np.maximum(shares, TINY)  # positive, because it is a divisor


def relevance_of(topic: Floats, word_shares: Floats, relevance: float) -> Floats:
    r"""Compute the relevance of each word to a topic.

    .. math::
        \lambda \log p(w \mid k) + (1 - \lambda) \log \frac{p(w \mid k)}{p(w)}
    """
    # the formula with log p(w | k) taken out, which is -inf for words that the topic lacks
    return special.log(topic) - (1 - relevance) * special.log(word_shares)


def most_relevant(topic: Floats, word_shares: Floats, n: int, relevance: float) -> NDArray[np.intp]:
    """Return the columns of the n most relevant words of a topic, best first."""
    relevances = relevance_of(topic, word_shares, relevance)
    (columns,) = top_columns(relevances[None], n)  # as the only row of a matrix
    return columns[topic[columns] > 0]  # without words that the topic does not contain


def frex_of(topics: Floats, k: int, weight: float) -> Floats:
    r"""Compute FREX of each word of a topic: the harmonic mean of two ranks, from 0 to 1.

    .. math::
        \Big[ \frac{\omega}{F_k(p(w \mid k))} + \frac{1 - \omega}{F_k(e_{wk})} \Big]^{-1},
        \qquad e_{wk} = \frac{p(w \mid k)}{\sum_j p(w \mid j)},

    where F is the share of the words whose value is not larger.
    """
    exclusivity = topics[k] / np.maximum(topics.sum(axis=0), TINY)
    # F of both: ranks divided by the number of words
    frequency_rank, exclusivity_rank = (
        rankdata(values) / len(values) for values in (topics[k], exclusivity)
    )
    return 1 / (weight / frequency_rank + (1 - weight) / exclusivity_rank)


def exclusivity_of(topics: Floats, n: int = N_WORDS, relevance: float = 1.0) -> Floats:
    r"""Compute how rare the most probable words of each topic are in other topics.

    The exclusivity is the mean of :math:`p(w \mid k) / \sum_j p(w \mid j)` over the topic's n most
    probable words: 1 if no other topic contains these words, and 1 / K if these words are equally
    probable in all topics.  With a `relevance` below 1, it is that of the most relevant words.
    """
    top = top_columns(topics, n, relevance)
    shares = np.take_along_axis(topics, top, axis=1)
    # the sum over topics may be 0
    sums = np.maximum(topics.sum(axis=0)[top], TINY)
    return (shares / sums).mean(axis=1)


def label_words(words: Sequence[str]) -> list[str]:
    """Remove words that differ from an earlier word only in their ending, such as plurals."""
    kept: list[str] = []
    for word in words:
        if not any(_are_alike(word, earlier) for earlier in kept):
            kept.append(word)
    return kept


def _are_alike(a: str, b: str) -> bool:
    """Whether two words differ only in a short ending."""
    # the least number of equal letters at their beginnings
    n = max(_STEM, max(len(a), len(b)) - _ENDING)
    return a[:n] == b[:n]


def labels_of(words: Sequence[Sequence[str]], fixed: Mapping[int, str]) -> list[str]:
    """Make a label for each topic from its most relevant words; all labels differ.

    `words` contains the most relevant words of each topic.  Topics that have a label in `fixed`
    keep this label.
    """
    labels: list[str] = []
    for topic, words_of_topic in enumerate(words):
        if topic in fixed:
            labels.append(fixed[topic])
            continue
        kept = label_words(words_of_topic)
        # candidates: three words, more words until it differs from other labels, then a number
        names = [", ".join(kept[:n]) for n in range(LABEL_WORDS, max(len(kept), LABEL_WORDS) + 1)]
        numbered = (f"{names[0]} ({number})" for number in count(2))
        taken = {*labels, *fixed.values(), *COLUMNS}
        labels.append(next(name for name in chain(names, numbered) if name not in taken))
    return labels


def check_labels(labels: Mapping[Any, Any], parameter: str = "labels") -> None:
    """Check that labels are str, not empty, and different from each other and from columns."""
    seen: list[str] = []
    for topic, label in labels.items():
        if not isinstance(label, str) or not label.strip() or label in seen or label in COLUMNS:
            raise BadParameter(
                f"{parameter}[{topic!r}]",
                f"a non-empty str that differs from all other labels and is not in {COLUMNS}",
                label,
            )
        seen.append(label)


class Labels(Sequence[str]):
    """The labels of topics: one str for each topic, all of them different.

    Each change is passed to the function `keep`, which sets the labels in the model.
    """

    def __init__(
        self, labels: Sequence[str], keep: Callable[[dict[int, str]], None] | None = None
    ) -> None:
        """Store the label of each topic; `keep`, if any, sets changes in the model."""
        self._labels = list(labels)
        self._set_in_model = keep

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make a copy or a pickle."""
        return Labels, (self._labels,)  # changes of a copy do not change the model

    def __len__(self) -> int:
        """The number of topics."""
        return len(self._labels)

    def __getitem__(self, topic: Any) -> Any:
        """Return the label of a topic, or a list of labels for a slice."""
        return self._labels[topic]

    def __setitem__(self, topic: int, label: str) -> None:
        """Set the label of a topic, also in the model."""
        self.change({topic: label})

    def __eq__(self, labels: object) -> bool:
        """Whether the labels equal other labels or a list."""
        return self._labels == (list(labels) if isinstance(labels, Labels) else labels)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the labels as a list."""
        return repr(self._labels)

    def number(self, topic: Any) -> int:
        """Return the number of a topic from its number or its label."""
        if isinstance(topic, str) and topic in self._labels:
            return self._labels.index(topic)
        last = len(self) - 1
        if not is_int_in(topic, 0, last):
            raise BadParameter("topic", f"an int from 0 to {last} or the label of a topic", topic)
        return int(topic)

    def numbers(self, topics: Any) -> list[int]:
        """Return the numbers of one or several topics from their numbers or labels."""
        listed = [topics] if isinstance(topics, Integral | str) else topics
        # an array without axes has no length
        is_list = isinstance(listed, Sequence | np.ndarray) and getattr(listed, "ndim", 1) > 0
        if not is_list or not len(listed):
            raise BadParameter("topics", "a list of numbers or labels of topics", topics)
        return [self.number(topic) for topic in listed]

    def show(self, labels: Sequence[str]) -> None:
        """Replace the labels without changing the model."""
        self._labels[:] = labels

    def change(self, labels: Any) -> None:
        """Set all labels by a sequence, or some by a dict; an error leaves all unchanged."""
        if isinstance(labels, str):
            labels = read_answer(labels)
        if not isinstance(labels, Mapping):
            # one label for each topic
            labels = dict(enumerate(of_each(labels, len(self), "labels", "topic")))
        changes = {self.number(topic): label for topic, label in labels.items()}
        all_labels = dict(enumerate(self._labels)) | changes
        check_labels(all_labels)
        if self._set_in_model is not None:
            # str, because a label may be of a subclass such as NumPy's
            self._set_in_model({topic: str(label) for topic, label in changes.items()})
        self._labels[:] = map(str, all_labels.values())  # in the same list, which others may hold
