"""One document: the shares of its topics, and the topics of its words."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from annealvi.exceptions import BadParameter
from annealvi.topics.described import Described


@dataclass(frozen=True, eq=False)
class TopicDocument:
    """A document with its topics, returned by `TopicSummary.document`.

    In a notebook, the document is shown with its words in the colours of their topics.

    Attributes
    ----------
    number : int
        The position of the document.
    title, text : str or None
    shares : ndarray of shape (K,)
        The shares of the topics in the document, p(k | d).
    labels : list of str
        The labels of the topics.
    words : ndarray of shape (n_words,) of str
        The different words of the document that are in the vocabulary of the model.
    counts : ndarray of shape (n_words,)
        How often each word occurs in the document.
    responsibilities : ndarray of shape (n_words, K)
        The probability that a word comes from each topic,
        :math:`\\phi_{dwk} \\propto \\theta_{dk} \\, p(w \\mid k)`.  Rows sum to 1.
    """

    number: int
    title: str | None
    text: str | None
    shares: NDArray[np.float64]
    labels: list[str]
    words: NDArray
    counts: NDArray[np.float64]
    responsibilities: NDArray[np.float64]

    def __repr__(self) -> str:
        largest = int(self.shares.argmax())
        return (
            f"<TopicDocument {self.number} with {self.counts.sum():.0f} words, "
            f"{self.shares[largest]:.0%} of {self.labels[largest]!r}>"
        )

    def _repr_html_(self) -> str:
        from annealvi.plot.notebook import document_html

        return document_html(self)


def document(summary: Described, number: int) -> TopicDocument:
    """Return a document with its topics; see `TopicSummary.document`."""
    n_documents = len(summary.shares)
    is_int = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_int or not 0 <= number < n_documents:
        raise BadParameter("document", f"an int from 0 to {n_documents - 1}", number)
    number = int(number)
    row = summary.counts[[number]]
    columns = row.indices[row.data > 0]
    return TopicDocument(
        number,
        None if summary.titles is None else summary.titles[number],
        None if summary.texts is None else summary.texts[number],
        summary.shares[number],
        list(summary.labels),
        summary.feature_names[columns],
        row.data[row.data > 0],
        responsibilities(summary.shares[[number] * len(columns)], summary.topics[:, columns].T),
    )


def responsibilities(
    shares: NDArray[np.float64], probabilities: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute the probability of each topic for words, whose rows are p(k | d) and p(w | k)."""
    joint = shares * probabilities
    # a word that no topic of the document contains gets the shares of the document
    joint = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, shares)
    return joint / joint.sum(axis=1, keepdims=True)
