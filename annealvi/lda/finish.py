"""The finishing passes of a fit, which converge its topics at T = 1."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from annealvi.lda.state import LDAState

#: The topics have converged if a pass moves less than this share of their words.
CONVERGED = 1e-3
#: Number of words whose topics are compared at a time.
ROWS = 1024


class Finish:
    """Measures how far each finishing pass moves the topics.

    Parameters
    ----------
    state : LDAState
        The fit.
    n_before, n_passes : int
        Number of passes before the finishing ones, and largest number of these.

    Attributes
    ----------
    change : float or None
        The share of the topics' words that the last pass has moved; None if it is not known.
    """

    def __init__(self, state: LDAState, n_before: int, n_passes: int) -> None:
        self._state, self._n_before, self._n_passes = state, n_before, n_passes
        self._topics: NDArray | None = None
        self.change: float | None = None

    def after_pass(self, index: int) -> bool:
        """Record the change of the topics; return whether they have converged.

        Parameters
        ----------
        index : int
            Number of the pass, from 0.
        """
        if not self._n_passes or index + 1 < self._n_before:
            return False
        topics, monitor = self._state.model.topics, self._state.monitor
        topics.catch_up()
        before, self._topics = self._topics, topics.lam[:, : topics.n_topics].copy()
        if index < self._n_before or before is None:
            return False
        self.change = moved_share(before, self._topics)
        monitor.record(topic_change=self.change)
        return self.change < CONVERGED

    def warn(self, stacklevel: int) -> None:
        """Warn if the topics have not converged.

        Parameters
        ----------
        stacklevel : int
            Stack level of the caller of `fit`, counted from here.
        """
        if self.change is not None and self.change >= CONVERGED:
            warnings.warn(
                f"The topics had not converged after finish_iter={self._n_passes} passes: the "
                f"last pass moved {self.change:.2%} of their words, more than {CONVERGED:.1%}. "
                "Increase finish_iter.",
                ConvergenceWarning,
                stacklevel=stacklevel + 1,
            )


def moved_share(before: NDArray, after: NDArray) -> float:
    """Half the sum of |after - before| over the sum of `after`.

    Parameters
    ----------
    before, after : ndarray of shape (V, K)
        The words of topics.
    """
    moved = total = 0.0
    for start in range(0, len(after), ROWS):
        rows = slice(start, start + ROWS)
        moved += float(np.abs(after[rows] - before[rows]).sum(dtype=np.float64))
        total += float(after[rows].sum(dtype=np.float64))
    return moved / (2 * total)
