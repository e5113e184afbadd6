"""Comparison of two models: topics that match, split, were merged, vanished or are new."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import cosine_similarity

from annealvi._optional import import_optional
from annealvi.checks import checked
from annealvi.exceptions import BadParameter
from annealvi.topics.source import Source
from annealvi.topics.trust import LEAST_SIMILARITY, pairs

#: What can happen to topics, in the order of the table.
KINDS = ["matched", "split", "merged", "vanished", "new"]


@checked
def compare_topics(model: Any, other: Any) -> Any:
    r"""Compare the topics of two models, which need not have the same words or number of topics.

    Use this function to find out what a second fit, more documents or another number of topics
    changed, or to compare models of two corpora.

    Parameters
    ----------
    model, other : fitted topic models
        Any models that :func:`annealvi.topics.describe` accepts.

    Returns
    -------
    pandas.DataFrame
        A row for each finding, sorted by ``kind`` and then by ``cosine``, largest first:

        - ``matched``: a topic of each model, with a cosine of at least 0.7;
        - ``split``: a topic of `model` that is more similar to several topics of `other` together
          than to any one of them;
        - ``merged``: several topics of `model` that are together more similar to one topic of
          `other` than any one of them;
        - ``vanished``: a topic of `model` without such a counterpart in `other`;
        - ``new``: a topic of `other` without such a counterpart in `model`.

        ``topics`` and ``others`` list the numbers of the topics in the two models, ``label`` and
        ``other_label`` their labels, and ``cosine`` is the cosine of the word probabilities.  For
        topics that vanished or are new it is the cosine to the most similar topic, which is not
        listed.  ``attrs["stability"]`` of the table is the mean cosine of all topics matched one to
        one, and ``attrs["n_words"]`` the number of words that both models contain.

    Raises
    ------
    TypeError
        If `model` or `other` is not a topic model.
    ValueError
        If the models have no word in common.

    Notes
    -----
    Probabilities are compared for the words that both models contain.  Topics are matched one to
    one, to maximise the sum of the cosines.  To find splits, each topic of `other` is assigned to
    the most similar topic of `model`.  The assigned topics are added to a mixture, weighted by
    their sizes and in the order of their cosines, until the cosine of the mixture is largest.  The
    topic is split if this mixture has at least two topics and a cosine of at least 0.7.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.topics import compare_topics, merge_topics
    >>> X = make_topic_corpus(200, 50, 4, random_state=0).data
    >>> lda = TemperedLDA(4, random_state=0).fit(X)
    >>> compare_topics(lda, merge_topics(lda, [[1, 2]]))[["kind", "topics", "others"]]
          kind  topics others
    0  matched     [0]    [0]
    1  matched     [3]    [2]
    2   merged  [1, 2]    [1]
    """
    pandas = import_optional("pandas", "compare_topics")
    first = Source(model).topics
    second = Source(other, name="other").topics
    # the columns of the words that both models contain
    _, columns, other_columns = np.intersect1d(first.words, second.words, return_indices=True)
    if not len(columns):
        raise BadParameter(
            "other", "a model that has words in common with 'model'", "models that have none"
        )
    topics = first.components[:, columns]
    others = second.components[:, other_columns]
    cosines = cosine_similarity(topics, others)
    splits = _splits(topics, others, second.sizes, cosines)
    merges = _splits(others, topics, first.sizes, cosines.T)  # a merge is a split seen from `other`
    findings = [("split", [k], several, cosine) for k, several, cosine in splits]
    findings += [("merged", several, [k], cosine) for k, several, cosine in merges]
    # the topics of both models that are in a finding already
    assigned = {k for _, numbers, _, _ in findings for k in numbers}
    other_assigned = {m for _, _, numbers, _ in findings for m in numbers}
    rows, matches, matched_cosines = pairs(topics, others)
    for k, m, cosine in zip(rows.tolist(), matches.tolist(), matched_cosines, strict=True):
        if cosine >= LEAST_SIMILARITY and k not in assigned and m not in other_assigned:
            findings.append(("matched", [k], [m], cosine))
            assigned.add(k)
            other_assigned.add(m)
    findings += [
        ("vanished", [k], [], cosines[k].max()) for k in range(len(topics)) if k not in assigned
    ]
    findings += [
        ("new", [], [m], cosines[:, m].max()) for m in range(len(others)) if m not in other_assigned
    ]
    table = pandas.DataFrame(findings, columns=["kind", "topics", "others", "cosine"])
    table["kind"] = pandas.Categorical(table["kind"], KINDS)  # sorted in this order
    for name, column, labels in (
        ("label", "topics", first.labels),
        ("other_label", "others", second.labels),
    ):
        table[name] = ["; ".join(labels[k] for k in numbers) for numbers in table[column]]
    table = table.sort_values(["kind", "cosine"], ascending=[True, False], ignore_index=True)
    table.attrs["stability"] = float(matched_cosines.sum() / max(cosines.shape))
    table.attrs["n_words"] = len(columns)
    return table


def _splits(
    topics: NDArray, others: NDArray, sizes: NDArray, cosines: NDArray
) -> list[tuple[int, list[int], float]]:
    """Return the topics that are split, the topics that they are split into, and the cosines.

    `sizes` are those of the `others`, and `cosines` has a row for each of the `topics`.
    """
    nearest = cosines.argmax(axis=0)  # the topic to which each other topic is assigned
    splits = []
    for k, topic in enumerate(topics):
        near = np.flatnonzero(nearest == k)
        if len(near) < 2:
            continue
        near = near[np.argsort(-cosines[k, near], kind="stable")]
        # of the nearest topic, of the two nearest, and so on
        mixtures = np.cumsum(others[near] * sizes[near, None], axis=0)
        mixture_cosines = cosine_similarity(mixtures, [topic]).ravel()
        last = mixture_cosines.argmax()  # the number of the last topic in the best mixture
        if last and mixture_cosines[last] >= LEAST_SIMILARITY:
            splits.append((k, sorted(near[: last + 1].tolist()), mixture_cosines[last]))
    return splits
