"""Topics of cells in forms that other programs read: tables and AnnData objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import special
from annealvi._optional import import_optional
from annealvi.corpus.cells import unique
from annealvi.exceptions import BadParameter
from annealvi.topics.described import DescribedDocuments, Topics, assigned_shares

#: A smaller probability of a word in a topic is treated as this number.
_LEAST = 1e-12


def assigned(topics: Topics, documents: DescribedDocuments, pandas: Any) -> dict[str, Any]:
    """Return each document's topic, its label and share; all are missing without words."""
    has_words = documents.lengths > 0
    numbers = documents.document_topics
    labels = np.array([*topics.labels, None], dtype=object)  # the last, -1, is a missing label
    return {
        # integers that can be missing, which NumPy's integers cannot
        "topic": pandas.arrays.IntegerArray(numbers, mask=~has_words),
        "label": labels[np.where(has_words, numbers, -1)],
        "share": np.where(has_words, assigned_shares(documents), np.nan),
    }


def document_table(topics: Topics, documents: DescribedDocuments) -> Any:
    """Make a table with a row for each document; see `TopicSummary.document_table`."""
    pandas = import_optional("pandas", "TopicSummary.document_table")
    # without an index, the rows are numbered
    table = pandas.DataFrame(assigned(topics, documents, pandas), documents.index)
    shares = pandas.DataFrame(documents.shares, documents.index, topics.labels)
    return pandas.concat([table, shares], axis=1)


def word_table(topics: Topics) -> Any:
    """Make a table with a row for each word; see `TopicSummary.word_table`."""
    pandas = import_optional("pandas", "TopicSummary.word_table")
    index = pandas.Index(topics.words, name="word")
    return pandas.DataFrame(topics.components.T, index=index, columns=topics.labels)


def scores(topics: NDArray) -> NDArray:
    """Compute how typical each word is of each topic; see `TopicSummary.members`."""
    logs = special.log(np.maximum(topics, _LEAST))
    return topics * (logs - logs.mean(axis=0))


def otsu(values: NDArray) -> float:
    """Compute Otsu's threshold, which divides values into the two groups that differ most."""
    ordered = np.sort(values)
    sums = np.cumsum(ordered)
    n_below = np.arange(1, len(ordered), dtype=np.int64)
    n_above = len(ordered) - n_below
    # the mean of the values above each possible threshold, minus the mean of those below
    difference = (sums[-1] - sums[:-1]) / n_above - sums[:-1] / n_below
    between = n_below * n_above * difference**2  # proportional to the variance between groups
    # a single value has no threshold, and exceeds -inf
    return ordered[np.argmax(between)] if len(n_below) else -np.inf


def members(topics: Topics, k: int, n: int | None) -> Any:
    """Find the words that belong to a topic; see `TopicSummary.members`."""
    pandas = import_optional("pandas", "TopicSummary.members")
    score = scores(topics.components)[k]
    if n is None:  # all words above the threshold
        n = int(np.count_nonzero(score > otsu(score)))
    order = np.argsort(-score, kind="stable")[:n]
    columns = {
        "word": topics.words[order],
        "probability": topics.components[k, order],
        "score": score[order],
    }
    return pandas.DataFrame(columns)


def to_anndata(
    topics: Topics, documents: DescribedDocuments, measures: dict[str, Any], adata: Any
) -> Any:
    """Write the results into an AnnData; see `TopicSummary.to_anndata`."""
    pandas = import_optional("pandas", "TopicSummary.to_anndata")
    n_cells = len(documents.shares)
    if adata is None:
        anndata = import_optional("anndata", "TopicSummary.to_anndata without an AnnData")
        index = range(n_cells) if documents.index is None else documents.index
        adata = anndata.AnnData(
            documents.counts,
            obs=pandas.DataFrame(index=list(map(str, index))),
            var=pandas.DataFrame(index=topics.words),
        )
    if not hasattr(adata, "n_obs"):
        raise BadParameter("adata", "an AnnData or None", type(adata))
    if adata.n_obs != n_cells:
        raise BadParameter(
            "adata",
            f"an AnnData of the {n_cells} cells that were described",
            f"{adata.n_obs} cells",
        )
    column_of = {word: column for column, word in enumerate(topics.words)}
    # the column of each gene of `adata` in the model, or -1 if the model does not have the gene
    columns = np.array([column_of.get(name, -1) for name in unique(adata.var_names)], dtype=np.intp)
    score = scores(topics.components)
    is_member = np.array([row > otsu(row) for row in score])
    adata.obsm["X_topics"] = np.array(documents.shares)
    for name, values in (("topics", topics.components), ("in_topics", is_member)):
        # a row for each gene of `adata`, 0 (or False) for genes that the model does not have
        adata.varm[name] = np.where(columns >= 0, values[:, columns], 0).T.astype(values.dtype)
    labels = topics.labels
    columns_of_cells = assigned(topics, documents, pandas)
    adata.obs["topic"] = columns_of_cells["topic"]
    adata.obs["topic_label"] = pandas.Categorical(columns_of_cells["label"], categories=labels)
    adata.obs["topic_share"] = columns_of_cells["share"]
    adata.uns["topics"] = {
        "labels": np.array(labels),
        "words": np.array([" ".join(topics.top(k)) for k in range(len(labels))]),
        **measures,
    }
    return adata
