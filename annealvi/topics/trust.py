"""The reliability of topics: the reasons why a topic is weak, as numbers and in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

from annealvi._kernels import gemm
from annealvi._optional import import_optional
from annealvi.topics.described import Topics

#: A topic is weak if a smaller share of runs found it.  A new fit finds a topic of smaller support
#: in 24% to 60% of cases, and one of larger support in 59% to 100% (docs/record/runs.md).
LEAST_SUPPORT = 1 / 3
#: A topic of another fit is considered the same topic if the cosine is at least this number.
LEAST_SIMILARITY = 0.7
#: A topic of lower coherence is weak.  In 99 of 100 draws, ten words drawn by their frequency from
#: blog posts have a lower NPMI; words drawn from shorter documents have a lower NPMI still.
LEAST_COHERENCE = 0.08
#: With fewer words for each topic, the ten most probable words of topics may be the same.
LEAST_WORDS = 10
#: A topic is weak if another topic is nearer.  Two halves of one planted topic have distances of
#: 0.32 to 0.42.  In fits of 10 to 100 topics of abstracts and posts, all distances exceeded 0.37.
LEAST_DISTINCTNESS = 0.35
#: With fewer documents per topic, topics are uncertain.
N_DOCUMENTS = 20


def hellinger(topics: NDArray) -> NDArray:
    r"""Compute :math:`\sqrt{1 - \sum_w \sqrt{p(w \mid k) p(w \mid l)}}` for all pairs of topics."""
    roots = np.sqrt(topics)
    # rounding errors may leave [0, 1], differ between (k, l) and (l, k), or exceed 0 for k = l
    distances = np.sqrt(np.clip(1.0 - gemm.product(roots, roots.T), 0.0, 1.0))
    distances = np.maximum(distances, distances.T)
    np.fill_diagonal(distances, 0.0)
    return distances


def nearest(topics: NDArray) -> tuple[NDArray, NDArray]:
    """Return the distance from each topic to the nearest other topic (or NaN), and its number."""
    distances = hellinger(topics)
    np.fill_diagonal(distances, np.inf)  # a topic is not its own neighbour
    smallest = distances.min(axis=1)
    # a single topic has no neighbour
    return np.where(np.isfinite(smallest), smallest, np.nan), distances.argmin(axis=1)


def pairs(first: NDArray, second: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Match topics of two fits one to one; return their numbers in both fits and the cosines."""
    cosines = cosine_similarity(first, second)
    # the assignment with the largest total; if one fit has more topics, some have no match
    rows, columns = linear_sum_assignment(-cosines)
    return rows, columns, cosines[rows, columns]


def match(topics: NDArray, second: NDArray) -> NDArray:
    """Return the cosine of each topic to its match in a second fit, or 0 if it has no match."""
    similarity = np.zeros(len(topics))
    rows, _, cosines = pairs(topics, second)
    similarity[rows] = cosines
    return similarity


def similarity_of(topics: Topics, refits: Any = None) -> NDArray:
    """Return the median cosine of each topic to its matches in other fits; NaN without fits."""
    similarity = topics.similarity if refits is None else refits.similarity
    if len(similarity):
        return np.median(similarity, axis=0)
    return np.full(len(topics.components), np.nan)


def reasons(topics: Topics, coherence: NDArray | None = None, refits: Any = None) -> list[str]:
    """State in words why each topic is weak; an empty string for a topic that is not.

    `coherence` contains a number for each topic, or is None if unknown.
    """
    n_topics, n_words = topics.components.shape
    similarity = similarity_of(topics, refits)
    distances, neighbours = nearest(topics.components)
    reasons_of_topics = []
    for k in range(n_topics):
        of_topic = []
        if refits is not None:
            if similarity[k] < LEAST_SIMILARITY:
                text = _found_by(refits.found_again[k], len(refits.similarity), "refits")
                if refits.found_again[k] >= 0.5:  # exactly half: the median is between two of them
                    text += f" (similarity {similarity[k]:.3f})"
                of_topic.append(text)
        else:
            # runs of a fit are short, so other fits are better evidence; NaN without other fits is
            # neither similar nor weak
            is_in_other_fits = similarity[k] >= LEAST_SIMILARITY
            if (
                topics.support is not None
                and topics.support[k] < LEAST_SUPPORT
                and not is_in_other_fits
            ):
                n_runs = topics.facts.get("settings", {}).get("n_init")
                of_topic.append(_found_by(topics.support[k], n_runs, "runs"))
            if similarity[k] < LEAST_SIMILARITY:
                of_topic.append(f"other fits found no similar topic (cosine {similarity[k]:.2f})")
        is_incoherent = coherence is not None and coherence[k] < LEAST_COHERENCE
        if is_incoherent and n_words >= LEAST_WORDS * n_topics:
            of_topic.append("its words occur together hardly more often than by chance")
        if distances[k] < LEAST_DISTINCTNESS:
            label = topics.labels[neighbours[k]]
            of_topic.append(f"nearly the same words as topic {neighbours[k]} ({label})")
        reasons_of_topics.append("; ".join(of_topic))
    return reasons_of_topics


def _found_by(share: float, n_fits: int | None, kind: str) -> str:
    """Say how many of `n_fits` fits (None: an unknown number) of a kind found a topic."""
    if n_fits is None:
        return f"found by {share:.0%} of the {kind}"
    return f"found by {round(share * n_fits) or 'none'} of {n_fits} {kind}"


def few_documents(n_documents: int, n_topics: int) -> str:
    """State that there are few documents for the number of topics; an empty string if not."""
    if n_documents >= N_DOCUMENTS * n_topics:
        return ""
    return (
        f"{n_documents:,} documents for {n_topics:,} topics are fewer than {N_DOCUMENTS} documents "
        "per topic"
    )


def trust(topics: Topics, coherence: NDArray, refits: Any, n_documents: int) -> Any:
    """Make a table of the reliability of topics; see `TopicSummary.trust`."""
    pandas = import_optional("pandas", "TopicSummary.trust")
    unknown = np.full(len(coherence), np.nan)
    vocabulary = topics.facts.get("vocabulary")
    if vocabulary is not None:  # the documents of the fit, of which some may be described
        n_documents = vocabulary.n_documents
    few = few_documents(n_documents, len(coherence))
    # the reasons of each topic, and this one, which all topics have in common; both may be empty
    weaknesses = [
        "; ".join(filter(None, [reason, few])) for reason in reasons(topics, coherence, refits)
    ]
    columns = {
        "label": list(topics.labels),
        "support": unknown if topics.support is None else topics.support,
        "found_again": unknown if refits is None else refits.found_again,
        "similarity": similarity_of(topics, refits),
        "coherence": coherence,
        "distinctness": nearest(topics.components)[0],  # the distances
        "weak": [bool(reason) for reason in weaknesses],
        "reason": weaknesses,
    }
    return pandas.DataFrame(columns, index=pandas.RangeIndex(len(coherence), name="topic"))
