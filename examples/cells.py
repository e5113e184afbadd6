"""Topics of blood cells
=====================

Fits topics to blood cells and draws their shares.  The data are 700 cells by 765 genes of a healthy
donor (Zheng et al. 2017), which scanpy contains as ``pbmc68k_reduced``.

The left panel shows each cell at its UMAP position from that file, in the colour of its largest
topic.  The smaller the share of this topic, the paler is the cell.  The right panel shows the share
of each topic in each type of cell.

::

    python examples/cells.py [--topics 8] [--output cells.png]

The file contains logarithms of counts that were scaled to 10,000 in each cell.  The script inverts
the logarithm and the scaling, and rounds to integer counts.  It needs scanpy.
"""

# sphinx_gallery_thumbnail_path = "pictures/cells.png"
from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _shared import at_least_one, markdown, save

from annealvi import TopicModel
from annealvi.topics import describe


def load() -> Any:
    """The cells, with counts in X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from scanpy.datasets import pbmc68k_reduced

        cells = pbmc68k_reduced()
    adata = cells.raw.to_adata()
    X = adata.X.tocsr().astype(np.float64)
    X.data = np.expm1(X.data) * np.repeat(adata.obs["n_counts"] / 10_000, np.diff(X.indptr))
    print(f"largest distance from a whole number: {np.abs(X.data - np.round(X.data)).max():.2f}")
    X.data = np.round(X.data)
    adata.X = X
    return adata


def draw(adata: Any, summary: Any, types: Any) -> Any:
    """The cells, and their types."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    colours = plt.get_cmap("tab10")(summary.document_topics % 10)
    colours[:, 3] = adata.obs["topic_share"]
    left.scatter(*adata.obsm["X_umap"].T, c=colours, s=12, linewidths=0)
    left.set(xticks=[], yticks=[], title="topic of each cell, paler the less it has of it")
    for k, label in enumerate(summary.labels):
        left.scatter([], [], color=plt.get_cmap("tab10")(k % 10), label=f"{k}: {label}")
    left.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3)
    image = right.imshow(types, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    right.set_yticks(range(len(types)), types.index)
    right.set_xticks(range(types.shape[1]))
    right.set(xlabel="topic", title="share of each topic in types of cells")
    figure.colorbar(image)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=8)
    parser.add_argument("--output", default="cells.png")
    chosen = parser.parse_args(arguments)
    at_least_one(parser, chosen, ["topics"])
    adata = load()
    model = TopicModel(chosen.topics, random_state=0).fit_counts(adata)
    summary = describe(model, adata)
    summary.to_anndata(adata)
    types = summary.by_group(adata.obs["bulk_labels"])
    n_cells = types.pop("n_documents")
    rows = [
        [name, str(n_cells[name]), f"{row.max():.2f}", str(row.idxmax())]
        for name, row in types.iterrows()
    ]
    print(markdown(["cells", "number", "largest share", "of the topic"], rows))
    save(draw(adata, summary, types), chosen.output)


if __name__ == "__main__":
    main()
