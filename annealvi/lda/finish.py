"""The finishing passes of a fit, which converge its topics at T = 1."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from annealvi.files import Node
from annealvi.lda.state import LDAState

#: The topics have converged if a pass moves less than the first share of their words, and are far
#: from it if the last pass moves more than the second.
CONVERGED, FAR = 1e-3, 2e-2
#: Number of words whose topics are compared at a time.
ROWS = 1024


class Finish:
    """Measures how far each finishing pass moves the topics."""

    def __init__(self, state: LDAState, n_before: int, n_passes: int) -> None:
        self._state, self._n_before, self._n_passes = state, n_before, n_passes
        self._topics: NDArray | None = None
        self.change: float | None = None

    def after_pass(self, index: int) -> bool:
        """Record the change of the topics; return whether they have converged."""
        if not self._n_passes or index + 1 < self._n_before:
            return False
        topics, monitor = self._state.model.topics, self._state.monitor
        topics.catch_up()
        now = topics.lam[:, : topics.n_topics]
        if self._topics is None or index < self._n_before:
            self._topics = now.copy()
            return False
        self.change = moved_share(self._topics, now)
        np.copyto(self._topics, now)
        monitor.record(topic_change=self.change)
        return self.change < CONVERGED

    def state_dict(self) -> dict[str, Any]:
        """Return what the next passes depend on, as a tree; see :mod:`annealvi.files`."""
        return {"topics": self._topics, "change": self.change}

    def load_state_dict(self, node: Node) -> None:
        """Take over what :meth:`state_dict` returned."""
        topics = self._state.model.topics
        shape = topics.n_features, topics.n_topics
        self._topics = self.change = None
        if not node.is_none("topics"):
            self._topics = node.array("topics", shape, topics.dtype, positive=True).copy()
        if not node.is_none("change"):
            self.change = node.number("change", 0.0)

    def warn(self, stacklevel: int) -> None:
        """Warn if the topics are far from converged."""
        if self.change is not None and self.change > FAR:
            warnings.warn(
                f"The topics had not converged after finish_iter={self._n_passes} passes: the last "
                f"one moved {self.change:.1%} of their words. Increase finish_iter.",
                ConvergenceWarning,
                stacklevel=stacklevel + 1,
            )


def moved_share(before: NDArray, after: NDArray) -> float:
    """Half the sum of |after - before| over the larger of their sums: between 0 and 1."""
    moved, totals = 0.0, np.zeros(2)
    for start in range(0, len(after), ROWS):
        rows = slice(start, start + ROWS)
        moved += float(np.abs(after[rows] - before[rows]).sum(dtype=np.float64))
        totals += [topics[rows].sum(dtype=np.float64) for topics in (before, after)]
    return moved / (2 * float(totals.max()))
