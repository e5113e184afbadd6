"""The topics as the user sees them: an array that may be written to."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annealvi._kernels.layout import padded_rows
from annealvi.checks import check_written
from annealvi.models.lda.weights import fingerprint


class Shown:
    """The array of topics that the user has got, and whether anything was written to it.

    It is the model's own lambda if that has the dtype that is shown.  Otherwise it is a copy in
    the other dtype, made when somebody asks for it.
    """

    def __init__(self, n_topics: int, dtype: DTypeLike) -> None:
        self.n_topics = n_topics
        self.dtype = np.dtype(dtype)
        self.rows: NDArray | None = None
        self._sums = np.empty(0)

    def fresh(self) -> Shown:
        """The same for other topics, of which the user has no array yet."""
        return Shown(self.n_topics, self.dtype)

    @property
    def components(self) -> NDArray:
        """The array as a (K, V) view."""
        assert self.rows is not None
        return self.rows[:, : self.n_topics].T

    def show(self, lam: NDArray, n_threads: int) -> None:
        """Take an array to show; one of another dtype is copied.

        If the dtype cannot hold the numbers, the copy has that of lambda.
        """
        if lam.dtype != self.dtype:
            own = lam[:, : self.n_topics]
            lam = padded_rows(own, self.dtype if _holds(self.dtype, own) else lam.dtype)
        self.rows = lam
        self._sums = fingerprint(lam, self.n_topics, n_threads)

    def written(self, n_threads: int) -> bool:
        """Whether the user has written to the array since it was last looked at."""
        if self.rows is None:
            return False
        return not np.array_equal(fingerprint(self.rows, self.n_topics, n_threads), self._sums)

    def taken_over(self, lam: NDArray) -> NDArray:
        """What the user has written, as an array that may take the place of lambda.

        The numbers that were not written to stay as they are, to the last bit.
        """
        assert self.rows is not None
        check_written(self.components, "components_", lam.dtype)
        if self.rows.dtype == lam.dtype:
            return self.rows
        own, written = lam[:, : self.n_topics], self.rows[:, : self.n_topics]
        taken = padded_rows(own, lam.dtype)
        changed = written != own.astype(written.dtype)
        np.copyto(taken[:, : self.n_topics], written, where=changed, casting="same_kind")
        return taken

    def agree(self, lam: NDArray, n_threads: int) -> None:
        """Note that the array was taken over; it shows what was written as lambda holds it."""
        assert self.rows is not None
        if lam is not self.rows:
            self.components[:] = lam[:, : self.n_topics].T
        self._sums = fingerprint(self.rows, self.n_topics, n_threads)


def _holds(dtype: np.dtype, lam: NDArray) -> bool:
    """Whether a dtype has numbers as large and as small as those of lambda."""
    limits = np.finfo(dtype)
    least, most = np.float64(lam.min()), np.float64(lam.max())
    return bool(least >= np.float64(limits.tiny) and most <= np.float64(limits.max))
