"""The one look at a matrix of counts, against what makes it other than plain."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from annealvi.matrices import are_plain_counts
from tests.marks import cases


def are_plain(data, indices, indptr, n_features):
    X = sparse.csr_matrix((4, n_features))
    X.data, X.indices, X.indptr = data, indices, indptr
    return are_plain_counts(X, SimpleNamespace(n_features_in_=n_features))


def arrays(dtype=np.float64, index=np.int32):
    X = sparse.csr_matrix([[1.0, 0, 2], [0, 0, 0], [0, 3, 4], [5, 0, 0]])
    return X.data.astype(dtype), X.indices.astype(index), X.indptr.astype(index)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_counts_in_sorted_rows_are_plain(dtype, index):
    assert are_plain(*arrays(dtype, index), 3) is True
    nothing = np.zeros(5, dtype=index)
    assert are_plain(np.empty(0, dtype), nothing[:0], nothing, 3)


@cases(
    "which, place, value",
    *((0, i, value) for i in (0, 4) for value in (-1.0, np.nan, np.inf, -np.inf)),
    *((1, 0, value) for value in (-1, 2, 3)),  # the second of the row is 2
    (1, 3, 3),
    (1, 3, 1),  # twice
    (1, 4, -1),
    (1, 4, 3),
    (2, 0, 1),
    (2, 0, -1),
    (2, 1, 3),  # and then falls
    (2, 1, 99),
    (2, 2, -5),
    (2, 4, 4),
    (2, 4, 6),
)
def test_anything_else_is_not(which, place, value):
    damaged = arrays()
    damaged[which][place] = value
    assert are_plain(*damaged, 3) is False


def test_arrays_of_different_lengths():
    for which in range(3):
        short = [*arrays()]
        short[which] = short[which][:-1]
        assert not are_plain(*short, 3)
    assert not are_plain(*arrays()[:2], arrays()[2][:0], 3)
    assert not are_plain(*arrays(), 2)
