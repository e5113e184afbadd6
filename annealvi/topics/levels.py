"""Topics and subtopics: groups of similar topics at several levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from annealvi._optional import import_optional
from annealvi.metrics.topics import RELEVANCE
from annealvi.models.lda.merging import groups_of
from annealvi.topics.described import Described
from annealvi.topics.vectorizer import different_ints
from annealvi.topics.words import N_WORDS, labels_of, most_relevant


def levels(summary: Described, n_topics: Any) -> Any:
    """Group the topics at several levels; see `TopicSummary.levels`."""
    pandas = import_optional("pandas", "TopicSummary.levels")
    K = len(summary.topics)
    counts = summary.topics * summary.topic_shares[:, np.newaxis]
    columns: dict[str, Any] = {}
    order = []
    for n in sorted(different_ints(n_topics, "n_topics", "numbers of topics", 1, K)):
        groups = groups_of(counts, n)
        merged = np.array([counts[own].sum(axis=0) for own in groups])
        merged /= merged.sum(axis=1, keepdims=True)
        tops = [most_relevant(topic, summary.word_shares, N_WORDS, RELEVANCE) for topic in merged]
        alone = {g: summary.labels[own[0]] for g, own in enumerate(groups) if len(own) == 1}
        names = labels_of([summary.feature_names[top].tolist() for top in tops], alone)
        group_numbers = np.empty(K, np.intp)
        for number, own in enumerate(groups):
            group_numbers[own] = number
        columns[f"topic_{n}"] = group_numbers
        columns[f"label_{n}"] = np.array(names, dtype=object)[group_numbers]
        order.append(group_numbers)
    table = pandas.DataFrame(
        {**columns, "share": summary.topic_shares, "label": list(summary.labels)},
        index=pandas.RangeIndex(K, name="topic"),
    )
    return table.iloc[np.lexsort((-summary.topic_shares, *order[::-1]))]
