"""Topics that are read from a file, with the checks that make them safe to use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annealvi.files import Node
from annealvi.models.lda.weights import Rows

#: Number of words whose rows are checked at a time.
TOPIC_ROWS = 512
#: Sums that are kept from step to step may differ by rounding errors from those of the rows.
CLOSE = 1e-2


def read_rows(
    node: Node, shape: tuple[int, int], dtype: np.dtype, least: float
) -> tuple[NDArray, NDArray[np.float64], float]:
    """Read the values, `decay` and `now` of :class:`Rows`."""
    rows = node.array("rows", shape, dtype, finite=False)
    now, decay = node.number("now", least, 1.0), np.ones(shape[0])
    if now == 1:
        if not node.is_none("decay"):
            raise node.error("decay", "None", node.plain("decay"))
        return rows, decay, now
    decay = node.array("decay", shape[:1], np.float64)
    if np.any(decay < now) or np.any(decay > 1):
        raise node.error("decay", f"in the range [{now}, 1]", decay)
    return rows, decay, now


def checked_sums(node: Node, rows: Rows, n_topics: int) -> NDArray[np.float64] | None:
    """Check rows that were read, and return their sums over words if the file has them."""
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
    if node.is_none("sums"):
        return None
    sums = node.array("sums", (n_topics,), np.float64, positive=True)
    if not np.allclose(sums, total, rtol=CLOSE):
        raise node.error("sums", "the sums of 'rows' over words", sums)
    return sums


def read_shown_dtype(node: Node, dtype: np.dtype) -> np.dtype:
    """The dtype in which topics are shown to the user, by default their own."""
    if "shown" not in node:  # files before there was another
        return dtype
    return np.dtype(node.string("shown", ("float32", "float64")))
