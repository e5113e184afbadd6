"""What was found: the topics of a fitted model, for people to read."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._optional import import_optional
from annealvi.metrics import (
    document_completion,
    topic_coherence,
    topic_diversity,
    topic_stability,
)
from annealvi.topics import shares as means
from annealvi.topics import words as ranking
from annealvi.topics.source import Source, of_each, read
from annealvi.topics.words import RELEVANCE, Labels


class TopicSummary:
    """The topics of a fitted model: see :func:`describe`."""

    def __init__(self, source: Source, titles: list[str] | None, quality: dict[str, float]) -> None:
        self.model = source.model
        self.counts = source.counts
        self.topics = source.topics
        self.shares = source.shares
        self.feature_names = source.feature_names
        self.texts = source.texts
        self.titles = titles
        self.lengths = np.asarray(self.counts.sum(axis=1, dtype=np.float64)).ravel()
        tokens = self.lengths @ self.shares
        self.topic_shares = tokens / tokens.sum()
        self.word_shares = ranking.shares_of_words(self.topics, self.topic_shares)
        self._labels = Labels(ranking.labels_of([self.words(k) for k in range(len(self.topics))]))
        self._quality = quality

    @property
    def labels(self) -> Labels:
        return self._labels

    @labels.setter
    def labels(self, labels: Any) -> None:
        self._labels.change(labels)

    def number(self, topic: Any) -> int:
        return self._labels.number(topic) if hasattr(self, "_labels") else int(topic)

    def words(self, topic: Any, n: int = 10, relevance: float = RELEVANCE) -> list[str]:
        columns = self._columns(topic, n, relevance)
        return self.feature_names[columns].tolist()

    def _columns(self, topic: Any, n: int, relevance: float) -> NDArray[np.intp]:
        k = self.number(topic)
        return ranking.most_relevant(self.topics[k], self.word_shares, n, relevance)

    def weights(self, topic: Any, n: int = 10, relevance: float = RELEVANCE) -> Any:
        pandas = _pandas("weights")
        k, columns = self.number(topic), self._columns(topic, n, relevance)
        probability = self.topics[k][columns]
        ranks = ranking.relevance_of(self.topics[k], self.word_shares, relevance)
        return pandas.DataFrame(
            {
                "word": self.feature_names[columns],
                "probability": probability,
                "lift": probability / self.word_shares[columns],
                "relevance": ranks[columns],
            }
        )

    @property
    def table(self) -> Any:
        pandas = _pandas("table")
        n_topics = len(self.topics)
        return pandas.DataFrame(
            {
                "share": self.topic_shares,
                "label": list(self._labels),
                "words": [", ".join(self.words(k)) for k in range(n_topics)],
                "coherence": self.coherence,
                "exclusivity": ranking.exclusivity_of(self.topics),
                "certainty": means.certainty_of(self.shares, self.lengths),
            },
            index=pandas.RangeIndex(n_topics, name="topic"),
        )

    @cached_property
    def coherence(self) -> NDArray[np.float64]:
        return topic_coherence(self.topics, self.counts)

    def documents(self, topic: Any, n: int = 5) -> Any:
        k = self.number(topic)
        share = np.where(self.lengths > 0, self.shares[:, k], -1.0)
        order = np.lexsort((-self.lengths, -share))[:n]
        return self._some_documents(order, {"share": self.shares[order, k]}, "documents")

    def _some_documents(self, order: NDArray, columns: dict[str, Any], purpose: str) -> Any:
        pandas = _pandas(purpose)
        columns["tokens"] = self.lengths[order]
        for name, values in (("title", self.titles), ("text", self.texts)):
            if values is not None:
                columns[name] = [values[d] for d in order]
        return pandas.DataFrame(columns, index=pandas.Index(order, name="document"))

    def by(self, groups: Any) -> Any:
        raise NotImplementedError

    def over(self, times: Any, freq: str = "YE") -> Any:
        raise NotImplementedError

    @property
    def quality(self) -> dict[str, float]:
        return {
            "coherence": float(self.coherence.mean()),
            "diversity": topic_diversity(self.topics),
            **self._quality,
        }

    @property
    def history(self) -> dict[str, NDArray] | None:
        return getattr(self.model, "history_", None)

    def to_html(self, path: str | os.PathLike, **options: Any) -> None:
        from annealvi.plot.report import write_report

        write_report(self, path, **options)


def describe(
    model: Any,
    documents: Any,
    feature_names: Any = None,
    *,
    texts: Any = None,
    titles: Any = None,
    held_out: Any = None,
    other: Any = None,
    random_state: Any = 0,
) -> TopicSummary:
    source = read(model, documents, feature_names, texts)
    if titles is not None:
        titles = of_each(titles, source.counts.shape[0], "titles", "document")
    quality = {}
    if held_out is not None:
        quality["held_out"] = document_completion(source.model, held_out, random_state=random_state)
    if other is not None:
        quality["stability"] = topic_stability(source.topics, other)
    return TopicSummary(source, titles, quality)


def _pandas(purpose: str) -> Any:
    return import_optional("pandas", "text", f"TopicSummary.{purpose}")
