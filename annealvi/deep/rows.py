"""Data as a deep fit holds them: rows of a dense tensor or of a CSR matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor


class SparseRows:
    """A CSR matrix on a device, of which batches are taken.

    A whole batch is dense, or its words and counts padded to the longest row: where few of
    many thousand columns are used the second is much less.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, n_features)
        Canonical.
    device : torch.device
    """

    def __init__(self, X: Any, device: torch.device) -> None:
        self.n_features = X.shape[1]
        self._start = torch.as_tensor(X.indptr.astype(np.int64), device=device)
        self._column = torch.as_tensor(X.indices.astype(np.int64), device=device)
        self._value = torch.as_tensor(X.data.astype(np.float32), device=device)

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Rows, dense."""
        columns, values = self.padded(rows)
        dense = values.new_zeros(len(rows), self.n_features)
        return dense.scatter_add_(1, columns, values)  # what pads a row adds nothing

    def padded(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Columns and values of rows, side by side.

        Parameters
        ----------
        rows : Tensor of shape (B,), int64

        Returns
        -------
        columns, values : Tensors of shape (B, L), int64 and float32
            L entries of the longest row, at least 1; shorter ones end in column 0 with
            value 0.
        """
        start, end = self._start[rows], self._start[rows + 1]
        longest = max(1, int((end - start).max()))
        place = start[:, None] + torch.arange(longest, device=start.device)
        there = place < end[:, None]
        if not len(self._value):
            return torch.zeros_like(place), torch.zeros(place.shape, device=start.device)
        place = torch.where(there, place, torch.zeros_like(place))
        return self._column[place] * there, self._value[place] * there


def as_rows(X: Any, device: torch.device) -> Tensor | SparseRows:
    """Data on a device: both kinds have a length and give rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    device : torch.device
    """
    if sparse.issparse(X):
        return SparseRows(X, device)
    X = np.require(X, np.float32, "W")  # PyTorch has no tensors that cannot be written
    return torch.as_tensor(X, device=device)
