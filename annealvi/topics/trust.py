"""The reliability of topics: the reasons why a topic is weak, as numbers and in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

from annealvi._kernels import gemm
from annealvi._optional import import_optional
from annealvi.topics.described import Described, Judged

#: A topic is weak if a smaller share of runs found it.  A new fit finds a topic of smaller support
#: in 24% to 60% of cases, and one of larger support in 59% to 100% (docs/record/runs.md).
LEAST_SUPPORT = 1 / 3
#: A topic of another fit is considered the same topic if the cosine is at least this number.
LEAST_STABILITY = 0.7
#: A topic of lower coherence is weak.  In 99 of 100 draws, ten words drawn by their frequency from
#: blog posts have a lower NPMI; words drawn from shorter documents have a lower NPMI still.
LEAST_COHERENCE = 0.08
#: With fewer words for each topic, the ten most probable words of topics may be the same.
LEAST_WORDS = 10
#: A topic is weak if another topic is nearer.  Two halves of one planted topic have distances of
#: 0.32 to 0.42.  In fits of 10 to 100 topics of abstracts and posts, all distances exceeded 0.37.
LEAST_DISTINCTNESS = 0.35


def hellinger(topics: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute :math:`\sqrt{1 - \sum_w \sqrt{p(w \mid k) p(w \mid l)}}` for all pairs of topics."""
    roots = np.sqrt(topics)
    distances = np.sqrt(np.clip(1.0 - gemm.product(roots, roots.T), 0.0, 1.0))
    distances = np.maximum(distances, distances.T)
    np.fill_diagonal(distances, 0.0)
    return distances


def nearest(topics: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the distance from each topic to the nearest other topic (or NaN), and its number."""
    distances = hellinger(topics)
    np.fill_diagonal(distances, np.inf)
    least = distances.min(axis=1)
    return np.where(np.isfinite(least), least, np.nan), distances.argmin(axis=1)


def pairs(topics: NDArray, other: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Match topics of two fits one to one; return their numbers in both fits and the cosines."""
    cosines = cosine_similarity(topics, other)
    rows, columns = linear_sum_assignment(-cosines)
    return rows, columns, cosines[rows, columns]


def match(topics: NDArray, other: NDArray) -> NDArray[np.float64]:
    """Return the cosine of each topic to its match in another fit, or 0 if it has no match."""
    found = np.zeros(len(topics))
    rows, _, cosines = pairs(topics, other)
    found[rows] = cosines
    return found


def stability_of(found: Judged) -> NDArray[np.float64]:
    """Return the median cosine of each topic to its matches in other fits; NaN without fits."""
    similarity = found.similarity if found.refits is None else found.refits.similarity
    return np.median(similarity, axis=0) if len(similarity) else np.full(len(found.topics), np.nan)


def support_of(found: Judged) -> tuple[str, int | None, NDArray | None]:
    """Return "refits" or "runs", the number of these fits, and the share that found each topic."""
    if found.refits is not None:
        return "refits", len(found.refits.similarity), found.refits.support
    settings = found.facts.get("settings")
    return "runs", int(settings["n_init"]) if settings else None, found.support


def reasons(found: Judged) -> list[str]:
    """State in words why each topic is weak; an empty string for a topic that is not."""
    topics, labels, coherence = found.topics, found.labels, found.coherence
    (what, n, support), stability = support_of(found), stability_of(found)
    distances, others = nearest(topics)
    few_words = topics.shape[1] < LEAST_WORDS * len(topics)
    said: list[list[str]] = [[] for _ in topics]
    for k, own in enumerate(said):
        unstable, of_refits = stability[k] < LEAST_STABILITY, what == "refits"
        if support is not None and (
            unstable
            if of_refits  # runs are short, so other fits are better evidence
            else support[k] < LEAST_SUPPORT and not stability[k] >= LEAST_STABILITY
        ):
            of = f"{support[k]:.0%} of the {what}"
            if n is not None:
                of = f"{round(support[k] * n) or 'none'} of {n} {what}"
            exactly_half = of_refits and bool(
                support[k] >= 0.5
            )  # the median is between two of them
            own.append(f"found by {of}" + f" (stability {stability[k]:.3f})" * exactly_half)
        if unstable and not of_refits:
            own.append(f"other fits found no similar topic (cosine {stability[k]:.2f})")
        if coherence[k] < LEAST_COHERENCE and not few_words:
            own.append("its words occur together hardly more often than by chance")
        if distances[k] < LEAST_DISTINCTNESS:
            own.append(f"nearly the same words as topic {others[k]} ({labels[others[k]]})")
    return ["; ".join(own) for own in said]


def trust(summary: Described) -> Any:
    """Make a table of the reliability of topics; see `TopicSummary.trust`."""
    pandas = import_optional("pandas", "TopicSummary.trust")
    K, (*_, support), said = len(summary.topics), support_of(summary), reasons(summary)
    columns = {
        "label": list(summary.labels),
        "support": np.full(K, np.nan) if support is None else support,
        "stability": stability_of(summary),
        "coherence": summary.coherence,
        "distinctness": nearest(summary.topics)[0],
        "weak": [bool(reason) for reason in said],
        "reason": said,
    }
    return pandas.DataFrame(columns, index=pandas.RangeIndex(K, name="topic"))
