"""The data of a deep fit: rows of a dense tensor or of a CSR matrix, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor


class SparseRows:
    """A CSR matrix on a device, from which minibatches are taken.

    A minibatch is returned either dense, or as the columns and values of its entries, padded to
    the longest row.  The second form is much smaller where rows use few of many thousand
    columns.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, n_features)
        In canonical format: indices sorted and without duplicates.
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
        """Return rows as a dense tensor."""
        columns, values = self.padded(rows)
        dense = values.new_zeros(len(rows), self.n_features)
        return dense.scatter_add_(1, columns, values)  # padding adds 0

    def padded(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the columns and the values of some rows.

        Parameters
        ----------
        rows : Tensor of shape (B,), int64

        Returns
        -------
        columns, values : Tensors of shape (B, L), int64 and float32
            L is the number of entries of the longest row, at least 1.  Shorter rows are padded
            with column 0 and value 0.
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
    """Move data to a device; both kinds have a length and return rows by index.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    device : torch.device
    """
    if sparse.issparse(X):
        return SparseRows(X, device)
    X = np.require(X, np.float32, "W")  # PyTorch needs arrays that can be written to
    return torch.as_tensor(X, device=device)
