"""Topics and subtopics: groups of similar topics at several levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from annealvi._optional import import_optional
from annealvi.models.lda.merging import groups_of
from annealvi.topics.described import Topics
from annealvi.topics.vectorizer import different_ints


def levels(topics: Topics, n_topics: Any) -> Any:
    """Group the topics at several levels; see `TopicSummary.levels`."""
    pandas = import_optional("pandas", "TopicSummary.levels")
    K = len(topics.sizes)
    counts = topics.components * topics.sizes[:, None]  # shares of all words
    table = pandas.DataFrame(index=pandas.RangeIndex(K, name="topic"))
    for n in sorted(different_ints(n_topics, "n_topics", "numbers of topics", 1, K)):
        groups = groups_of(counts, n)
        # the number of the group of each topic
        number_of = {k: number for number, group in enumerate(groups) for k in group}
        words = np.array([counts[group].sum(axis=0) for group in groups])
        # the groups as topics, only to make their labels
        merged = replace(
            topics,
            components=words / words.sum(axis=1, keepdims=True),
            sizes=words.sum(axis=1),
            # a group of a single topic has the label of the topic
            named={g: topics.labels[group[0]] for g, group in enumerate(groups) if len(group) == 1},
            evidence=None,
        )
        numbers = table.index.map(number_of)
        table[f"topic_{n}"] = numbers
        table[f"label_{n}"] = [merged.labels[number] for number in numbers]
    # topics of the same group next to each other, the largest first
    order = [name for name in table if name.startswith("topic_")]
    table["share"] = topics.sizes
    table["label"] = topics.labels
    return table.sort_values([*order, "share"], ascending=[True] * len(order) + [False])
