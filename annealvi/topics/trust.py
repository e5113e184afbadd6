"""How reliable topics are: whether new fits find them, and whether they are clear to a reader."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.metrics.pairwise import cosine_similarity

from annealvi._kernels import gemm, special
from annealvi._optional import import_optional
from annealvi.checks import TINY
from annealvi.matrices import summed
from annealvi.metrics.topics import RELEVANCE, coherence_of, documents_of_pairs, top_columns
from annealvi.topics.described import Topics
from annealvi.topics.languages import language_of
from annealvi.topics.words import N_WORDS, exclusivity_of

#: The logistic regression of whether new fits find a topic on the `evidence` of the fit: the
#: coefficient of each kind of evidence, and its mean over topics that new fits found.  Both come
#: from six open corpora, by `python -m bench.studies.trust` (docs/record/trust.md).
INTERCEPT = -8.36
COEFFICIENTS = {"support": 11.5, "size": 2.10, "exclusivity": 4.96}
USUAL = {"support": 0.81, "size": 0.0, "exclusivity": 0.32}
#: A topic is weak if a new fit finds it with a lower probability.
LEAST_PROBABILITY = 0.5
#: What is said of topics without a probability.
UNKNOWN = (
    "The probability that a new fit finds a topic is unknown, because the topics do not come from "
    "merged runs. Refits show which topics other fits find."
)
#: How each kind of evidence is named in a reason, if it lowers the log-odds by at least LOWERS.
REASONS = {
    "support": "unlike the topics of the runs",
    "size": "small",
    "exclusivity": "other topics contain its words",
}
LOWERS = 1.0
#: A topic of another fit is considered the same topic if the cosine is at least this number.
LEAST_SIMILARITY = 0.7
#: With fewer words for each topic, the ten most relevant words of topics may be the same.
LEAST_WORDS = 10
#: Whether a topic is unclear is decided by its most relevant words, as readers see them.  The
#: thresholds were chosen with 200 topics of ten corpora, which were read before (docs/record/
#: trust.md).  A topic is incoherent if its coherence has covered less than this share of the way
#: from that of ten words drawn by their frequency to that of the median topic.
LEAST_COHERENCE = 0.6
#: The number of sets of words that are drawn.
N_DRAWN = 100
#: Words are general below this share of the median exclusivity of topics.
LEAST_EXCLUSIVITY = 0.65
#: The words of standard texts and of tables have a larger overlap.
LARGEST_OVERLAP = 0.3
#: Two topics have nearly the same words if their distance is less than this share of the median
#: distance of topics.  Two halves of one planted topic have distances of 0.32 to 0.42, where others
#: have 0.9.  In fits of 20 topics to five corpora, the nearest topics have shares above 0.68.
LEAST_DISTANCE = 0.5
#: With fewer documents per topic, topics are uncertain.
N_DOCUMENTS = 20


class Together(NamedTuple):
    """How often the most relevant words of topics occur in the same documents."""

    #: NPMI of each topic (:func:`annealvi.metrics.topic_coherence`).
    coherence: NDArray
    #: The median NPMI of sets of words drawn by their frequency, or NaN.
    chance: float
    #: Of the documents with one of two words, those with both; the mean over pairs of words.
    overlap: NDArray

    @classmethod
    def of(cls, topics: NDArray, counts: csr_matrix) -> Self:
        """Measure topics with weights of shape (K, V) in documents with counts of these words."""
        n_words = min(N_WORDS, topics.shape[1])
        unknown = np.full(len(topics), np.nan)
        if n_words < 2:  # there are no pairs of words
            return cls(unknown, np.nan, unknown)
        frequency = summed(counts, axis=0, dtype=np.float64)
        chance = np.nan
        if np.count_nonzero(frequency) >= n_words:
            rng = np.random.default_rng(0)
            shares = frequency / frequency.sum()
            drawn = [
                rng.choice(len(shares), n_words, replace=False, p=shares) for _ in range(N_DRAWN)
            ]
            chance = float(np.median(coherence_of(np.sort(drawn), counts)))
        top = top_columns(topics, n_words, RELEVANCE)
        first, second = np.triu_indices(n_words, k=1)
        overlap = []
        for documents in documents_of_pairs(top, counts):
            # numbers of documents with both words of a pair, and with each word
            both = documents[first, second]
            each = np.diag(documents)
            either = each[first] + each[second] - both
            overlap.append((both / np.maximum(either, 1)).mean())
        return cls(coherence_of(top, counts), chance, np.array(overlap))


def hellinger(topics: NDArray) -> NDArray:
    r"""Compute :math:`\sqrt{1 - \sum_w \sqrt{p(w \mid k) p(w \mid l)}}` for all pairs of topics."""
    roots = np.sqrt(topics)
    # rounding errors may leave [0, 1], differ between (k, l) and (l, k), or exceed 0 for k = l
    distances = np.sqrt(np.clip(1.0 - gemm.product(roots, roots.T), 0.0, 1.0))
    distances = np.maximum(distances, distances.T)
    np.fill_diagonal(distances, 0.0)
    return distances


def nearest(distances: NDArray) -> tuple[NDArray, NDArray]:
    """Return the distance from each topic to the nearest other topic (or NaN), and its number."""
    others = np.where(np.eye(len(distances), dtype=bool), np.inf, distances)  # not the topic itself
    smallest = others.min(axis=1)
    # a single topic has no neighbour
    return np.where(np.isfinite(smallest), smallest, np.nan), others.argmin(axis=1)


def pairs(first: NDArray, second: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Match topics of two fits one to one; return their numbers in both fits and the cosines."""
    cosines = cosine_similarity(first, second)
    # the assignment with the largest total; if one fit has more topics, some have no match
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    return rows, columns, cosines[rows, columns]


def match(topics: NDArray, second: NDArray) -> NDArray:
    """Return the cosine of each topic to its match in a second fit, or 0 if it has no match."""
    similarity = np.zeros(len(topics))
    rows, _, cosines = pairs(topics, second)
    similarity[rows] = cosines
    return similarity


def evidence_of(components: NDArray, sizes: NDArray, support: NDArray) -> dict[str, NDArray]:
    """Return the evidence of a fit on whether new fits find its topics.

    Size is the logarithm of the share of a topic, divided by the mean share.  Exclusivity is the
    share of the occurrences of the topic's words that belong to the topic.
    """
    return {
        "support": support,
        "size": special.log(np.maximum(sizes * len(sizes), TINY)),
        "exclusivity": exclusivity_of(components * sizes[:, None]),
    }


def probability_of(evidence: dict[str, NDArray]) -> NDArray:
    """Return the probability that a new fit finds each topic."""
    return expit(INTERCEPT + sum(COEFFICIENTS[name] * evidence[name] for name in COEFFICIENTS))


def similarity_of(topics: Topics, refits: Any = None) -> NDArray:
    """Return the median cosine of each topic to its matches in other fits; NaN without fits."""
    similarity = topics.similarity if refits is None else refits.similarity
    if len(similarity):
        return np.median(similarity, axis=0)
    return np.full(len(topics.components), np.nan)


def why_weak(topics: Topics, refits: Any = None) -> list[str]:
    """State in words why new fits may not find a topic; an empty string if they do.

    Refits decide.  Without refits, the probability decides if it is known, and otherwise other
    fits.
    """
    similarity = similarity_of(topics, refits)
    texts = [""] * len(similarity)
    if refits is None and topics.evidence is not None:
        probability = probability_of(topics.evidence)
        for k in np.flatnonzero(probability < LEAST_PROBABILITY).tolist():
            texts[k] = (
                f"a new fit finds it with probability {probability[k]:.2f} "
                f"({_lowered(topics.evidence, k)})"
            )
        return texts
    for k in np.flatnonzero(similarity < LEAST_SIMILARITY).tolist():  # none is NaN
        texts[k] = f"other fits found no similar topic (cosine {similarity[k]:.2f})"
        if refits is not None:
            share = refits.found_again[k]
            n_refits = len(refits.similarity)
            texts[k] = f"found by {round(share * n_refits) or 'none'} of {n_refits} refits"
            if share >= 0.5:  # exactly half: the median is between two of them
                texts[k] += f" (similarity {similarity[k]:.3f})"
    return texts


def _lowered(evidence: dict[str, NDArray], k: int) -> str:
    """Name what lowers the probability of topic k."""
    lowered = {
        name: COEFFICIENTS[name] * (USUAL[name] - evidence[name][k]) for name in COEFFICIENTS
    }
    threshold = min(LOWERS, max(lowered.values()))  # which at least one of them reaches
    return ", ".join(REASONS[name] for name, loss in lowered.items() if loss >= threshold)


def why_unclear(topics: Topics, together: Together | None = None) -> list[str]:
    """State in words why a reader may not find a topic clear; an empty string if it is clear.

    `together` is None if there are no documents.
    """
    n_topics, n_words = topics.components.shape
    distances = hellinger(topics.components)
    smallest, neighbours = nearest(distances)
    others = distances[np.triu_indices(n_topics, k=1)]
    least_distance = LEAST_DISTANCE * np.median(others) if len(others) else 0.0
    exclusivity = exclusivity_of(topics.components, relevance=RELEVANCE)
    is_general = exclusivity < LEAST_EXCLUSIVITY * np.median(exclusivity)
    if together is None:  # comparisons with NaN are False
        unknown = np.full(n_topics, np.nan)
        together = Together(unknown, np.nan, unknown)
    is_standard = together.overlap > LARGEST_OVERLAP
    usual = np.median(together.coherence) - together.chance
    is_incoherent = together.coherence < together.chance + LEAST_COHERENCE * usual
    texts = []
    for k in range(n_topics):
        of_topic = []
        if n_words >= LEAST_WORDS * n_topics:
            language = language_of(topics.top(k))
            if language:
                of_topic.append(f"stop words of {language.capitalize()}")
            elif is_general[k]:
                of_topic.append("many topics contain its words")
            if is_standard[k]:
                of_topic.append("its words occur in the same documents, like standard texts")
            if is_incoherent[k]:
                of_topic.append("its words rarely occur together")
        if smallest[k] < least_distance:
            label = topics.labels[neighbours[k]]
            of_topic.append(f"nearly the same words as topic {neighbours[k]} ({label})")
        texts.append("; ".join(of_topic))
    return texts


def reasons(topics: Topics, together: Together | None = None) -> list[str]:
    """State why each topic is weak or unclear; an empty string for a topic that is neither."""
    return _joined(why_weak(topics), why_unclear(topics, together))


def _joined(weak: list[str], unclear: list[str]) -> list[str]:
    """Join the reasons of both marks for each topic."""
    marks = {"weak": weak, "unclear": unclear}
    return [
        "; ".join(f"{mark}: {texts[k]}" for mark, texts in marks.items() if texts[k])
        for k in range(len(weak))
    ]


def few_documents(n_documents: int, n_topics: int) -> str:
    """State that there are few documents for the number of topics; an empty string if not."""
    if n_documents >= N_DOCUMENTS * n_topics:
        return ""
    return (
        f"{n_documents:,} documents for {n_topics:,} topics are fewer than {N_DOCUMENTS} documents "
        "per topic."
    )


def trust(topics: Topics, together: Together, refits: Any, n_documents: int) -> Any:
    """Make a table of the reliability of topics; see `TopicSummary.trust`."""
    pandas = import_optional("pandas", "TopicSummary.trust")
    components = topics.components
    unknown = np.full(len(components), np.nan)
    weak = why_weak(topics, refits)
    unclear = why_unclear(topics, together)
    columns = {
        "label": topics.labels,
        "probability": unknown if topics.evidence is None else probability_of(topics.evidence),
        "found_again": unknown if refits is None else refits.found_again,
        "similarity": similarity_of(topics, refits),
        "weak": list(map(bool, weak)),
        "coherence": together.coherence,
        "exclusivity": exclusivity_of(components, relevance=RELEVANCE),
        "overlap": together.overlap,
        "distinctness": nearest(hellinger(components))[0],  # the distances
        "unclear": list(map(bool, unclear)),
        "reason": _joined(weak, unclear),
    }
    table = pandas.DataFrame(columns).rename_axis("topic")
    note = UNKNOWN if topics.evidence is None and refits is None else ""
    few = few_documents(n_documents, len(components))
    table.attrs["note"] = f"{note} {few}".strip()
    return table
