"""Rows of sparse data: batches, dense and padded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from annealvi.deep.training import SparseRows, as_rows


@pytest.fixture
def X():
    X = np.random.RandomState(0).poisson(0.4, (9, 7)).astype(np.float32)
    X[4] = 0
    return X


def test_batches_are_rows(X):
    rows = torch.tensor([8, 4, 0, 3])
    for data in (as_rows(X, torch.device("cpu")), SparseRows(sparse.csr_matrix(X), "cpu")):
        assert len(data) == 9
        np.testing.assert_array_equal(data[rows], X[rows])


def test_padding_adds_nothing(X):
    columns, values = SparseRows(sparse.csr_matrix(X), "cpu").padded(torch.tensor([4, 1]))
    longest = np.count_nonzero(X[1])
    assert columns.shape == values.shape == (2, longest)
    assert not values[0].any() and not columns[0].any()
    np.testing.assert_array_equal(values[1], X[1][X[1] > 0])
    np.testing.assert_array_equal(columns[1], np.flatnonzero(X[1]))


def test_nothing_at_all():
    empty = SparseRows(sparse.csr_matrix((3, 5)), "cpu")
    assert torch.equal(empty[torch.tensor([0, 2])], torch.zeros(2, 5))
    assert not empty.padded(torch.tensor([1]))[1].any()
