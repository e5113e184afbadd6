"""What the report holds, as JSON: words, documents, courses and figures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi.plot import interactive, pictures

#: Where the slider of relevance can stand.
STEPS = np.arange(21) / 20
#: The topics whose course is drawn together, and the neighbours of a topic that are named.
N_COURSES, N_NEAR = 8, 5
#: Other topics of a document are named if they have this share of it, at most so many.
LEAST_SHARE, N_OTHERS = 0.05, 3
#: Characters of a text or a title that the report keeps.
TEXT_LENGTH, TITLE_LENGTH = 2000, 300

#: Names of measures of quality and how to read them.
QUALITY = {
    "held_out": (
        "Held-out log-likelihood per word",
        "How well the topics predict words of documents that the fit has not seen. "
        "Closer to 0 is better.",
    ),
    "coherence": (
        "Coherence (NPMI)",
        "Whether the top words of a topic occur in the same documents: 1 if always together, "
        "0 if by chance. The mean over topics.",
    ),
    "diversity": (
        "Diversity",
        "Share of the topics' top words that differ. 1 means that no two topics share one.",
    ),
    "stability": (
        "Stability",
        "How alike the topics of a second fit are. 1 means that all topics recur.",
    ),
}


def records(
    summary: Any,
    n_words: int,
    n_documents: int,
    relevance: float,
    times: Any,
    freq: Any,
    groups: Any,
) -> dict[str, Any]:
    """Everything in the report but its figures and its title."""
    words = candidates(summary, n_words)
    map_ = summary.map()
    used = np.unique(np.concatenate(words))
    found = documents(summary, n_documents)
    held = sorted({number for numbers in found for number in numbers})
    distances = np.asarray(summary.similar().distances)
    topics = []
    for k, label in enumerate(summary.labels):
        near = [int(j) for j in np.argsort(distances[k], kind="stable") if j != k]
        topics.append(
            {
                "label": clean(label, 200),
                "share": _rounded(summary.topic_shares[k]),
                "words": np.searchsorted(used, words[k]).tolist(),
                "logs": _rounded(np.log(summary.topics[k][words[k]])),
                "documents": found[k],
                "near": near[:N_NEAR],
            }
        )
    courses = (
        pictures.over_time(summary, times, freq, range_of(summary)) if times is not None else None
    )
    of_groups = (
        pictures.by_group(summary, groups, range_of(summary)) if groups is not None else None
    )
    return {
        "relevance": float(relevance),
        "nWords": int(n_words),
        "vocabulary": [clean(word, 60) for word in summary.feature_names[used]],
        "logs": _rounded(np.log(summary.word_shares[used])),
        "topics": topics,
        "map": {"x": _rounded(map_["x"]), "y": _rounded(map_["y"])},
        "documents": {number: document(summary, number) for number in held},
        "courses": courses and course_records(courses, [str(time) for time in courses.labels]),
        "groups": of_groups
        and course_records(of_groups, [clean(label, 80) for label in of_groups.labels]),
    }


def range_of(summary: Any) -> list[int]:
    """The numbers of all topics."""
    return list(range(len(summary.topics)))


def candidates(summary: Any, n_words: int) -> list[NDArray[np.intp]]:
    """The columns of the words that each topic shows, wherever the slider stands."""
    overall = np.log(summary.word_shares)
    found = []
    for topic in np.asarray(summary.topics, dtype=np.float64):
        there = np.flatnonzero(topic > 0)
        logs, weights = np.log(topic[there]), overall[there]
        top = {0}
        for step in STEPS:
            order = np.argsort((1 - step) * weights - logs, kind="stable")
            top.update(order[:n_words].tolist())
        found.append(there[sorted(top)])
    return found


def documents(summary: Any, n: int) -> list[list[int]]:
    """The numbers of the documents that are most about each topic; of equal ones the first.

    Documents are equal if the report would show the same title and the same text of them.
    """
    return [_distinct(summary, k, n) if n else [] for k in range(len(summary.topics))]


def _distinct(summary: Any, k: int, n: int) -> list[int]:
    looked_at = n
    while True:
        numbers = [int(d) for d in summary.documents(k, looked_at).index]
        found: dict[Any, int] = {}
        for number in numbers:
            found.setdefault(_shown(summary, number), number)
        if len(found) >= n or len(numbers) < looked_at:
            return list(found.values())[:n]
        looked_at *= 4


def _shown(summary: Any, number: int) -> Any:
    """What tells a document from others: its title and text, or its number without these."""
    if summary.titles is None and summary.texts is None:
        return number
    title = None if summary.titles is None else summary.titles[number]
    return title, None if summary.texts is None else summary.texts[number]


def document(summary: Any, number: int) -> dict[str, Any]:
    """One document: title, text, and the topics with a good share of it."""
    shares = summary.shares[number]
    order = np.argsort(-shares, kind="stable")[: N_OTHERS + 1]
    found: dict[str, Any] = {
        "topics": [[int(k), _rounded(shares[k])] for k in order if shares[k] >= LEAST_SHARE]
    }
    if summary.titles is not None:
        found["title"] = clean(summary.titles[number], TITLE_LENGTH)
    if summary.texts is not None:
        found["text"] = clean(summary.texts[number], TEXT_LENGTH)
    return found


def course_records(drawn: pictures.Courses, labels: list[str]) -> dict[str, Any]:
    """Shares of all topics in periods or groups; None where there is no document."""
    return {
        "labels": labels,
        "nDocuments": drawn.n_documents.tolist(),
        "shares": [_rounded(shares) for shares in drawn.values.T],
    }


def figures(
    summary: Any, times: Any, freq: Any, groups: Any, other: Any
) -> dict[str, dict[str, Any]]:
    """The figures that plotly draws, by the names of their sections."""
    drawn = {"map": interactive.plot_topic_map(summary)}
    if times is not None:
        drawn["time"] = interactive.plot_topics_over_time(
            summary, times, freq=freq, topics=pictures.by_size(summary)[:N_COURSES]
        )
    if groups is not None:
        drawn["groups"] = interactive.plot_topics_by_group(summary, groups)
    if other is not None:
        drawn["stability"] = interactive.plot_stability(summary, other)
    if summary.history:
        drawn["fit"] = interactive.plot_fit(summary)
    found = {}
    for name, figure in drawn.items():
        figure.layout.template = figure.layout.margin = None  # the page has its own
        found[name] = json.loads(figure.to_json())
    return found


def quality(summary: Any) -> list[tuple[str, float, str]]:
    """Name, value and meaning of each measure."""
    return [
        (*_measure(key)[:1], float(value), _measure(key)[1])
        for key, value in summary.quality.items()
    ]


def _measure(key: str) -> tuple[str, str]:
    return QUALITY.get(key, (key.replace("_", " "), ""))


def clean(text: Any, length: int) -> str:
    """A text that can be written as UTF-8, cut to a length."""
    text = str(text)
    cut = text if len(text) <= length else text[: length - 1] + "…"
    return cut.encode("utf-8", "replace").decode("utf-8")


def _rounded(values: Any) -> Any:
    """Numbers to five digits behind the point; None for what is no number."""
    if np.ndim(values):
        return [_rounded(value) for value in values]
    return round(float(values), 5) if np.isfinite(values) else None
