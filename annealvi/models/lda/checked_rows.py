"""Checks of topics that were read from a file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annealvi.files import Node
from annealvi.models.lda.weights import Rows

#: Number of words whose rows are checked at a time.
TOPIC_ROWS = 512


def checked_totals(rows: Rows, n_topics: int, node: Node) -> NDArray[np.float64]:
    """Check rows that were read from a file; return about their present sums over words.

    Parameters
    ----------
    rows : Rows
    n_topics : int
        K.
    node : Node
        The part of the file that they come from, for an error.
    """
    least, total = np.finfo(rows.values.dtype).tiny, np.zeros(n_topics)
    for start in range(0, len(rows.values), TOPIC_ROWS):
        some = slice(start, start + TOPIC_ROWS)
        values, padding = rows.values[some, :n_topics], rows.values[some, n_topics:]
        if not np.all(np.isfinite(values)) or np.any(values < least) or np.any(padding):
            raise node.error("rows", "positive and finite, and 0 in the padding", rows.values)
        prior = rows.eta[some].astype(np.float64)
        share = rows.now / rows.decay[some, None]
        with np.errstate(over="ignore"):
            total += np.sum(prior + share * (values - prior), axis=0)
    if not np.all(np.isfinite(total)):
        raise node.error("rows", "finite in their sums", rows.values)
    return total
