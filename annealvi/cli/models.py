"""A model as the commands see it, from a fit or from a file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi.cli.inputs import Corpus
from annealvi.lda import TemperedLDA
from annealvi.storage import load
from annealvi.topics import TopicModel
from annealvi.topics.words import (
    N_WORDS,
    RELEVANCE,
    Labels,
    labels_of,
    most_relevant,
    shares_of_words,
)


class Topics:
    """The topics of a fitted model, with words and labels."""

    def __init__(self, model: TopicModel | TemperedLDA, origin: str) -> None:
        self.model, self.origin = model, origin
        self.takes_texts = isinstance(model, TopicModel)
        self.lda = model.lda_ if isinstance(model, TopicModel) else model
        components = np.asarray(self.lda.components_, dtype=np.float64)
        if isinstance(model, TopicModel):
            names = model.feature_names_
        else:
            names = getattr(model, "feature_names_in_", np.arange(components.shape[1]))
        self.words = np.asarray(names).astype(str)
        sums = components.sum(axis=1)
        self.topics = components / sums[:, np.newaxis]
        self.shares = sums / sums.sum()
        self._word_shares = shares_of_words(self.topics, self.shares)
        self.seeded = {topic: name for name, topic in getattr(model, "seed_topics_", {}).items()}
        labels = Labels(labels_of([self.top(k) for k in range(len(sums))]))
        labels.change(self.seeded)
        self.labels = list(labels)

    def top(self, k: int, n: int = N_WORDS) -> list[str]:
        """The n most relevant words of a topic."""
        return self.words[self.columns(k, n)].tolist()

    def columns(self, k: int, n: int) -> NDArray[np.intp]:
        """The columns of the n most relevant words of a topic."""
        return most_relevant(self.topics[k], self._word_shares, n, RELEVANCE)

    def counts(self, corpus: Corpus) -> sparse.csr_matrix:
        """Counts of the model's words in documents; ValueError if they cannot be known."""
        if corpus.texts is not None:
            if not isinstance(self.model, TopicModel):
                raise ValueError(
                    f"{self.origin} was fitted to counts without words, so it cannot read the "
                    f"texts of {corpus.origin}: give it counts with the same columns."
                )
            return self.model.counts(corpus.texts)
        X = corpus.counts
        if corpus.words is not None and self.takes_texts:
            columns = {word: column for column, word in enumerate(corpus.words)}
            there = [(columns[word], k) for k, word in enumerate(self.words) if word in columns]
            if not there:
                raise ValueError(f"{corpus.origin} has none of the words of {self.origin}.")
            theirs, ours = zip(*there, strict=True)
            pick = sparse.csr_matrix(
                (np.ones(len(ours)), (theirs, ours)), shape=(X.shape[1], len(self.words))
            )
            return sparse.csr_matrix(X @ pick)
        if X.shape[1] != len(self.words):
            raise ValueError(
                f"{corpus.origin} has counts of {X.shape[1]:,} words, and {self.origin} has "
                f"{len(self.words):,}: they must be the same words."
            )
        return X


def read_topics(path: str) -> Topics:
    """Read a model that ``annealvi fit`` or :func:`annealvi.save` wrote."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} must be a file of a model, and is a folder.")
    model: Any = load(path)
    if not isinstance(model, TopicModel | TemperedLDA):
        raise ValueError(f"{path!r} holds no topic model: it holds a {type(model).__name__}.")
    return Topics(model, repr(path))


def sparkline(values: Any) -> str:
    """Numbers as a row of small bars, the largest full; a blank where there is none."""
    bars = "▁▂▃▄▅▆▇█"
    numbers = np.asarray(values, dtype=np.float64)
    most = np.nanmax(numbers, initial=0.0)
    if not most > 0:
        return " " * len(numbers)
    steps = np.minimum((numbers / most * len(bars)), len(bars) - 1)
    return "".join(" " if np.isnan(step) else bars[int(step)] for step in steps)
