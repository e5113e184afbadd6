"""Topics of cells in forms that other programs read: tables and AnnData objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import special
from annealvi._optional import import_optional
from annealvi.corpus.cells import unique
from annealvi.exceptions import BadParameter
from annealvi.topics.described import Described
from annealvi.topics.words import N_WORDS

#: A smaller probability of a word in a topic is treated as this number.
_LEAST = 1e-12


def assigned(summary: Described) -> tuple[NDArray, NDArray[np.float64]]:
    """Return the label of each document's cluster (None without words), and the topic's share."""
    known = summary.lengths > 0
    labels = np.array([*summary.labels, None], dtype=object)
    certainty = np.take_along_axis(summary.shares, summary.clusters[:, np.newaxis], axis=1)[:, 0]
    return labels[np.where(known, summary.clusters, -1)], np.where(known, certainty, np.nan)


def document_table(summary: Described) -> Any:
    """Make a table with a row for each document; see `TopicSummary.document_table`."""
    pandas = import_optional("pandas", "TopicSummary.document_table")
    topic, certainty = assigned(summary)
    index = summary.index if summary.index is not None else pandas.RangeIndex(len(topic))
    columns = {"topic": topic, "certainty": certainty}
    shares = pandas.DataFrame(summary.shares, index=index, columns=[*summary.labels])
    return pandas.concat([pandas.DataFrame(columns, index=index), shares], axis=1)


def word_table(summary: Described) -> Any:
    """Make a table with a row for each word; see `TopicSummary.word_table`."""
    pandas = import_optional("pandas", "TopicSummary.word_table")
    index = pandas.Index(summary.feature_names, name="word")
    return pandas.DataFrame(summary.topics.T, index=index, columns=[*summary.labels])


def scores(topics: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute how typical each word is of each topic; see `TopicSummary.members`."""
    logs = special.log(np.maximum(topics, _LEAST))
    return topics * (logs - logs.mean(axis=0))


def otsu(values: NDArray[np.float64]) -> float:
    """Compute Otsu's threshold, which divides values into the two groups that differ most."""
    ordered = np.sort(values)
    n, total = np.arange(1, len(ordered)), np.cumsum(ordered)
    below, above = total[:-1] / n, (total[-1] - total[:-1]) / (len(ordered) - n)
    between = n * (len(ordered) - n) * (above - below) ** 2
    return float(ordered[np.argmax(between)]) if len(n) else -np.inf


def members(summary: Described, k: int, n: int | None) -> Any:
    """Find the words that belong to a topic; see `TopicSummary.members`."""
    pandas = import_optional("pandas", "TopicSummary.members")
    own = scores(summary.topics)[k]
    order = np.argsort(-own, kind="stable")
    order = order[own[order] > otsu(own)] if n is None else order[:n]
    columns = {"word": summary.feature_names[order], "probability": summary.topics[k, order]}
    return pandas.DataFrame({**columns, "score": own[order]})


def to_anndata(summary: Any, adata: Any) -> Any:
    """Write the results into an AnnData; see `TopicSummary.to_anndata`."""
    pandas = import_optional("pandas", "TopicSummary.to_anndata")
    if adata is None:
        anndata = import_optional("anndata", "TopicSummary.to_anndata without an AnnData")
        index = range(len(summary.shares)) if summary.index is None else summary.index
        names = [*map(str, index)], [*map(str, summary.feature_names)]
        obs, var = (pandas.DataFrame(index=own) for own in names)
        adata = anndata.AnnData(summary.counts, obs=obs, var=var)
    if adata.n_obs != len(summary.shares):
        wanted = f"an AnnData of the {len(summary.shares)} cells that were described"
        raise BadParameter("adata", wanted, f"{adata.n_obs} cells")
    columns = {word: column for column, word in enumerate(summary.feature_names)}
    there = np.array([columns.get(name, -1) for name in unique(adata.var_names)], dtype=np.intp)
    labels, (topic, certainty) = [*summary.labels], assigned(summary)
    adata.obsm["X_topics"] = np.array(summary.shares)
    own = scores(summary.topics)
    inside = own > np.array([otsu(row) for row in own])[:, np.newaxis]
    for name, values in (("topics", summary.topics), ("in_topics", inside)):
        adata.varm[name] = np.where(there >= 0, values[:, there], 0).T.astype(values.dtype)
    adata.obs["topic"] = pandas.Categorical(topic, categories=labels)
    adata.obs["topic_certainty"] = certainty
    adata.uns["topics"] = {
        "labels": np.array(labels),
        "words": np.array([" ".join(summary.words(k, N_WORDS)) for k in range(len(labels))]),
        "coherence": summary.coherence.copy(),
        "certainty": summary.certainty.copy(),
        "checksum": summary.checksum,
    }
    return adata
