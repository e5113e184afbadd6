"""Which topics to trust: what speaks against a topic, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

from annealvi._kernels import gemm
from annealvi._optional import import_optional

#: Topics that fewer starts have found come back in a new fit in .24 to .60 of the cases, those
#: that more have found in .59 to 1 (docs/starts.md).
LEAST_SUPPORT = 1 / 3
#: The cosine from which a topic of another fit counts as the same one.
LEAST_STABILITY = 0.7
#: Ten words drawn by their frequency from posts of blogs have a lower NPMI in 99 of 100 draws;
#: shorter documents give less.
LEAST_COHERENCE = 0.08
#: With fewer words for each topic, its ten most probable words may be those of other topics.
LEAST_WORDS = 10
#: Halves of a planted topic are .32 to .42 apart; in fits of 10 to 100 topics of abstracts and of
#: posts no two topics were nearer than .37.
LEAST_DISTINCTNESS = 0.35


def hellinger(topics: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute :math:`\sqrt{1 - \sum_w \sqrt{p(w \mid k) p(w \mid l)}}` of all pairs of topics."""
    roots = np.sqrt(topics)
    distances = np.sqrt(np.clip(1.0 - gemm.product(roots, roots.T), 0.0, 1.0))
    distances = np.maximum(distances, distances.T)
    np.fill_diagonal(distances, 0.0)
    return distances


def nearest(topics: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Find the nearest other topic of each topic, and how far it is; NaN of a single topic."""
    distances = hellinger(topics)
    np.fill_diagonal(distances, np.inf)
    least = distances.min(axis=1)
    return np.where(np.isfinite(least), least, np.nan), distances.argmin(axis=1)


def pairs(topics: NDArray, other: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Match topics of two fits, one to one: their numbers in both, and their cosines."""
    cosines = cosine_similarity(topics, other)
    rows, columns = linear_sum_assignment(-cosines)
    return rows, columns, cosines[rows, columns]


def match(topics: NDArray, other: NDArray) -> NDArray[np.float64]:
    """The cosine of each topic to its match in another fit; 0 if it has none."""
    found = np.zeros(len(topics))
    rows, _, cosines = pairs(topics, other)
    found[rows] = cosines
    return found


def median(similarity: NDArray | None, n_topics: int) -> NDArray[np.float64]:
    """The median over fits of the cosines to matches, of shape (n, K); NaN without fits."""
    if similarity is None or not len(similarity):
        return np.full(n_topics, np.nan)
    return np.median(similarity, axis=0)


def reasons(
    topics: NDArray[np.float64],
    labels: Sequence[str],
    support: NDArray | None,
    found_by: tuple[str, int | None],
    stability: NDArray,
    coherence: NDArray,
) -> list[str]:
    """Say in words why each topic is weak; nothing of a topic that is not.

    `found_by` tells of what `support` is a share, and of how many: ``("starts", 8)``.
    """
    distances, others = nearest(topics)
    few_words = topics.shape[1] < LEAST_WORDS * len(topics)
    what, n = found_by
    said: list[list[str]] = [[] for _ in topics]
    for k, own in enumerate(said):
        unstable, of_refits = stability[k] < LEAST_STABILITY, what == "refits"
        if support is not None and (
            unstable
            if of_refits  # starts are short, and other fits know better
            else support[k] < LEAST_SUPPORT and not stability[k] >= LEAST_STABILITY
        ):
            of = f"{support[k]:.0%} of the {what}"
            if n is not None:
                of = f"{round(support[k] * n) or 'none'} of {n} {what}"
            own.append(f"found by {of}")
        if unstable and not of_refits:
            own.append(f"other fits have no topic like it (cosine {stability[k]:.2f})")
        if coherence[k] < LEAST_COHERENCE and not few_words:
            own.append("its words occur together hardly more than by chance")
        if distances[k] < LEAST_DISTINCTNESS:
            own.append(f"nearly the same words as topic {others[k]} ({labels[others[k]]})")
    return ["; ".join(own) for own in said]


def n_starts(settings: Any) -> int | None:
    """How many starts a fit had, by its `settings_`, if it has any."""
    return None if not settings else int(settings["n_init"])


def trust(self: Any) -> Any:
    """How far to trust each topic, and what speaks against it.

    A fit gives topics for any texts, and repeats them to the last bit; neither says that a topic is
    there.  A topic is marked as weak if one of four numbers is below a limit: few starts have
    found it, other fits have nothing like it, its words do not go together, or another topic has
    the same words.  Read the documents of a weak topic before you report it.

    Returns
    -------
    pandas.DataFrame
        A row for each topic, with

        - ``label``;
        - ``support``: the share of `refits` that have found it, or else of the fit's starts
          (`topic_support_` of the model); NaN if neither is known.  That of starts is weak below
          1/3, unless stability is known and is not;
        - ``stability``: the median cosine of the topic to its match in `refits`, or else in the
          other fits that are known: those behind ``TopicModel("auto")`` and the `other` of
          :func:`describe`.  Topics are matched one to one.  NaN without.  Weak below 0.7;
        - ``coherence``: how often its most probable words occur in the same documents, NPMI.
          Weak below 0.08, which ten words drawn at random by their frequency seldom reach, if the
          model has at least ten words for each topic;
        - ``distinctness``: Hellinger distance to the nearest other topic, from 0, the same words,
          to 1, no common word.  Weak below 0.35.  Unlike ``exclusivity`` it does not fall because
          there are many topics, and it tells which topic is alike;
        - ``weak``, a bool, and ``reason``: in words, empty if it is not weak.
    """
    pandas = import_optional("pandas", "TopicSummary.trust")
    K, refits = len(self.topics), self.refits
    support, found_by = self.support, ("starts", n_starts(self.facts.get("settings")))
    if refits is not None:
        support, found_by = refits.support, ("refits", len(refits.similarity))
    stability = median(self.similarity if refits is None else refits.similarity, K)
    said = reasons(self.topics, self.labels, support, found_by, stability, self.coherence)
    columns = {
        "label": list(self.labels),
        "support": np.full(K, np.nan) if support is None else support,
        "stability": stability,
        "coherence": self.coherence,
        "distinctness": nearest(self.topics)[0],
        "weak": [bool(reason) for reason in said],
        "reason": said,
    }
    return pandas.DataFrame(columns, index=pandas.RangeIndex(K, name="topic"))
