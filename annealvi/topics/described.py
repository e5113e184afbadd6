"""Plain values: the topics of a fitted model, and the documents that they describe."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from annealvi.metrics.held_out import word_probabilities
from annealvi.metrics.topics import RELEVANCE
from annealvi.topics.forms import families_of, fold
from annealvi.topics.words import N_WORDS, Labels, labels_of, most_relevant, shares_of_words


@dataclass(eq=False)
class Topics:
    """The topics of a fitted model; a source and a summary have one each."""

    #: Probabilities of words in topics, p(w | k), of shape (K, V).
    components: NDArray
    #: Share of each topic in all words.
    sizes: NDArray
    #: The words, of shape (V,).
    words: NDArray
    #: Labels that the user has set, and names of seed words.
    named: dict[int, str]
    #: Evidence of the fit on whether new fits find the topics, if known: an array for each kind.
    evidence: dict[str, NDArray] | None
    #: Cosines of the topics to their matches in other fits, of shape (n, K).
    similarity: NDArray
    #: Known facts about how the model was fitted.
    facts: dict[str, Any]
    #: The random_state of the model, or 0 if it is not an int.
    random_state: int
    #: A function that sets labels in the model.
    keep_labels: InitVar[Any] = None

    def __post_init__(self, keep_labels: Any) -> None:
        """Compute p(w) and the labels; `keep_labels` is called when the user sets a label."""
        self.word_shares = shares_of_words(self.components, self.sizes)
        #: The number of each word's family: forms of a word, which are shown as one word.
        self.families = families_of(self.words)
        #: p(w) of each word's family, of shape (V,).
        self.family_shares = np.bincount(self.families, self.word_shares)[self.families]
        # labels consist of top words, unless they are named
        top_words = [self.top(k) for k in range(len(self.sizes))]
        self.labels = Labels(labels_of(top_words, self.named), keep_labels)

    def folded(self, k: int) -> NDArray:
        """Return p(w | k), where the most probable form of a word has those of all its forms."""
        return fold(self.components[k], self.families)

    def columns(self, k: int, n: int, relevance: float = RELEVANCE) -> NDArray[np.intp]:
        """Return the columns of the n most relevant words of a topic, best first."""
        return most_relevant(self.folded(k), self.family_shares, n, relevance)

    def top(self, k: int, n: int = N_WORDS, relevance: float = RELEVANCE) -> list[str]:
        """Return the n most relevant words of a topic, best first."""
        return self.words[self.columns(k, n, relevance)].tolist()


@dataclass(eq=False)
class DescribedDocuments:
    """Documents, and the shares of topics in them; TopicSummary documents the attributes."""

    counts: csr_matrix
    shares: NDArray
    document_topics: NDArray
    lengths: NDArray
    concentration: NDArray
    index: Any
    refits: Any


def probabilities_in(documents: DescribedDocuments, components: NDArray) -> NDArray:
    """Return p(w | d) of each entry of the counts; `components` are the topics' p(w | k)."""
    return word_probabilities(
        documents.counts,
        documents.shares,
        # indexing the transposed topics by words returns their rows
        topics=components.T.__getitem__,
        sums=np.ones(len(components)),  # each topic sums to 1
    )


def assigned_shares(documents: DescribedDocuments) -> NDArray:
    """Return the share of each document's topic in the document."""
    topics = documents.document_topics[:, None]
    return np.take_along_axis(documents.shares, topics, axis=1)[:, 0]


def sizes_in(documents: DescribedDocuments) -> NDArray:
    """Return the share of each topic in all words of the documents."""
    words = np.einsum("d,dk->k", documents.lengths, documents.shares)
    return words / words.sum()
