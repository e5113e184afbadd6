"""Sums of powers at many exponents, from which log C(T) is computed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from annealvi._kernels import partition as kernels
from annealvi._kernels.layout import separate_rows

#: Rows that :meth:`PowerGrid.column_sums` sums before it adds them to others.
SUMMED_ROWS: int = kernels.SUMMED_ROWS
#: The number n of points that a value is interpolated from, and two bounds on the distance h
#: of the points: h is at most b divided by the second number and at most 1 divided by the
#: third.  The error at b of interpolating p^b from n points is below (h log(1/p) / 2)^n p^b.
#: If h = b/17 is not small enough for this, p^b is small; but all p may be small, and for that
#: case the third number bounds h.  Rougher grids do not pay: (8, 8, 32) has half the points and
#: saved 2 to 3% of a fit that learns its temperature, but log C(T) of 70,000 words was off by
#: .08, and the posterior of the temperature with it.
_ORDER, _DENSITY, _MOST = 24, 17, 51
#: The cost of a panel of even points apart from the points, in points: its exponentials.
_PANEL_COST = 10
#: Most points in a panel.  Each point follows from the one before by a multiplication, which
#: adds a rounding error.
_MOST_STEPS = 256


class PowerGrid:
    """Sums of powers at any inverse temperatures b_1, ..., b_M.

    On an even grid each power follows from the one before by a multiplication.  Any other
    grid is covered by panels of even points, and sums are interpolated from those, about as
    accurately as double precision allows.  For b at most about 1 and numbers p in [0, 1] the
    relative error of p^b, and of sums of such powers, is below 1e-12 if p >= 1e-8, and below
    1e-8 if p = 1e-20.  Smaller p must not carry weight; in a sum with larger ones they do not.

    Parameters
    ----------
    inverses : array-like of shape (M,)
        Positive.

    Attributes
    ----------
    inverses : ndarray of shape (M,)
    points : ndarray of shape (n_points,)
        Inverse temperatures at which sums are computed before they are interpolated.
    n_points : int
    """

    def __init__(self, inverses: ArrayLike) -> None:
        b = np.array(inverses, dtype=np.float64)
        self.inverses = b
        step = (b[-1] - b[0]) / max(1, len(b) - 1)
        even = b[0] + step * np.arange(len(b))
        self._interpolation: sparse.csr_matrix | None = None
        if step != 0 and np.allclose(b, even, rtol=1e-13, atol=0):
            self._follow(float(b.min()), abs(step), len(b), descending=step < 0)
        else:
            self._cover(b)
        self.points = np.add.outer(self._starts, np.zeros(self._size))
        self.points = (self.points + np.outer(self._steps, np.arange(self._size))).ravel()
        self.n_points = len(self.points)

    def _follow(self, low: float, step: float, size: int, descending: bool) -> None:
        """Make panels of an even grid's own points, short enough to limit rounding errors."""
        n_panels = -(-size // _MOST_STEPS)
        self._size = -(-size // n_panels)
        self._starts = low + step * self._size * np.arange(n_panels)
        self._steps = np.full(n_panels, step)
        if descending or n_panels > 1:
            order = np.arange(size)[:: -1 if descending else 1]
            shape = size, n_panels * self._size
            entries = np.ones(size), (np.arange(size), order)
            self._interpolation = sparse.csr_matrix(entries, shape=shape)

    def _cover(self, b: NDArray[np.float64]) -> None:
        """Make panels of even points, and the matrix that interpolates from them.

        Each panel starts at a multiple of its step, which saves the kernel an exponential.
        """
        low, high = float(b.min()), float(b.max())
        margin = _ORDER // 2

        def panels(size: int) -> tuple[int, list[float], list[int]]:
            """For panels of `size` steps: their cost, their starts, and these in own steps."""
            floors: list[float] = []
            places: list[int] = []
            end = low
            while not floors or end < high:
                floors.append(end)
                places.append(max(_DENSITY, math.ceil(_MOST * end)))
                end += size * end / places[-1]
            return len(floors) * (size + _ORDER + _PANEL_COST), floors, places

        size = min(range(1, _MOST_STEPS - _ORDER), key=lambda size: panels(size)[0])
        _, floors, whole = panels(size)
        n_panels, self._size = len(floors), size + _ORDER
        places = np.array(whole, dtype=np.float64)  # they may be too large for int64
        self._steps = np.array(floors) / places
        self._starts = (places - margin + 1) * self._steps
        panel = np.clip(np.searchsorted(floors, b, side="right") - 1, 0, n_panels - 1)
        place = (b - self._starts[panel]) / self._steps[panel]
        first = np.clip(np.floor(place).astype(int) - margin + 1, 0, size)
        nodes = np.arange(_ORDER)
        rows, columns, entries = [], [], []
        for m in range(len(b)):
            at = place[m] - first[m]
            # Lagrange polynomials of the points nearest to b_m
            others = np.where(np.eye(_ORDER, dtype=bool), 1.0, nodes[:, None] - nodes)
            distances = np.where(np.eye(_ORDER, dtype=bool), 1.0, at - nodes)
            rows.append(np.full(_ORDER, m))
            columns.append(panel[m] * self._size + first[m] + nodes)
            entries.append(np.prod(distances / others, axis=1))
        shape = len(b), n_panels * self._size
        where = np.concatenate(rows), np.concatenate(columns)
        self._interpolation = sparse.csr_matrix((np.concatenate(entries), where), shape=shape)

    def row_sums(
        self,
        logs: NDArray[np.float64],
        weights: NDArray | None = None,
        *,
        plain: bool = False,
        n_threads: int = 1,
    ) -> NDArray[np.float64]:
        """sum_i w_ji exp(b_j l_ri) at the points, of shape (R, n_points).

        Parameters
        ----------
        logs : ndarray of shape (R, n padded)
            From :func:`annealvi._kernels.layout.padded_rows`, filled with -infinity.
        weights : ndarray of shape (n_points, n padded), optional
        plain : bool, default=False
            Whether `logs` are the numbers exp(l) themselves, filled with 0.
        n_threads : int, default=1
        """
        out = np.empty((len(logs), self.n_points))
        kernels.row_power_sums(
            logs,
            plain,
            self._starts,
            self._steps,
            np.empty((0, 0)) if weights is None else weights,
            n_threads,
            separate_rows(n_threads, kernels.scratch_size(self._size)),
            separate_rows(n_threads, logs.shape[1] if plain else 0),
            out,
        )
        return out

    def column_sums(
        self,
        logs: NDArray[np.float64],
        out: NDArray[np.float64] | None = None,
        *,
        n_threads: int = 1,
    ) -> NDArray[np.float64]:
        """sum_v exp(b_j l_vk) at the points, of shape (n_points, n padded).

        Parameters
        ----------
        logs : ndarray of shape (V, n padded)
        out : ndarray of shape (n_points, n padded), optional
            Added to.  The sums of the rows in several pieces are those in one piece to the last
            bit, if all but the last piece have a multiple of SUMMED_ROWS rows.
        n_threads : int, default=1
        """
        if out is None:
            out = np.zeros((self.n_points, logs.shape[1]))
        blocks = kernels.n_vocabulary_blocks(len(logs))
        kernels.column_power_sums(
            logs,
            self._starts,
            self._steps,
            n_threads,
            separate_rows(n_threads, kernels.scratch_size(self._size)),
            np.empty((blocks, *out.shape)),
            out,
        )
        return out

    def at_inverses(self, at_points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Interpolate from the points to b_1, ..., b_M, along the last axis.

        Parameters
        ----------
        at_points : ndarray of shape (..., n_points)
            Sums of powers, or logarithms of them.
        """
        if self._interpolation is None:
            return at_points
        return (self._interpolation @ at_points.T).T

    def log_at_inverses(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithms, at b_1, ..., b_M, of sums at the points along their last axis."""
        return np.log(np.maximum(self.at_inverses(sums), np.finfo(np.float64).tiny))
