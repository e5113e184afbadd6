"""Structure of sparse matrices: damage is found, and what is sound is read as it is."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi.matrices import check_csr, check_matrix, sound_csr, summed
from tests import damaged
from tests.asserts import refused
from tests.damaged import X

UNSOUND, ODD = dict(damaged.unsound()), dict(damaged.odd())


@pytest.mark.parametrize("name", UNSOUND)
def test_damage_is_found(name):
    refused(r"sparse matrix Z|Expected 2D input", check_matrix, UNSOUND[name], name="Z")


@pytest.mark.parametrize("name", ODD)
def test_what_is_sound_is_read(name):
    found = check_matrix(ODD[name], dtype=np.float64)
    assert type(found) is sparse.csr_matrix and found.dtype == np.float64
    assert found.indices.dtype == found.indptr.dtype and found.indices.dtype in (np.int32, np.int64)
    for array in (found.data, found.indices, found.indptr):
        assert array.flags.c_contiguous and array.flags.aligned
        assert array.dtype.isnative
    found.check_format()
    for flag in ("_has_canonical_format", "_has_sorted_indices"):  # which SciPy would believe
        vars(found).pop(flag, None)
    assert found.has_canonical_format
    assert_array_equal(found.toarray(), X.toarray())


def test_columns_of_float32_are_summed_in_float64():
    counts = np.r_[np.float32(2**24), np.ones(1000, np.float32)]
    assert summed(sparse.csr_matrix(counts[:, None]), axis=0, dtype=np.float64) == 2**24 + 1000


def test_a_sound_matrix_is_not_copied():
    for Z in (X, sparse.csr_array(X)):
        found = check_matrix(Z)
        for array in ("data", "indices", "indptr"):
            assert np.shares_memory(getattr(found, array), getattr(Z, array))
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert np.shares_memory(check_matrix(wide).indices, wide.indices)


def test_dense_matrices_and_sums_that_overflow():
    assert check_csr(X.toarray()).nnz == X.nnz
    assert isinstance(check_matrix(X.toarray().tolist()), np.ndarray)
    huge = sparse.csr_matrix((np.full(2, 3e38, np.float32), [1, 1], [0, 2]), shape=(1, 2))
    refused("X contains infinity", check_matrix, huge)
    bytes_ = sparse.coo_matrix((np.full(2, 100, np.int8), ([0, 0], [1, 1])), shape=(1, 2))
    assert check_matrix(bytes_).toarray().tolist() == [[0, 200]]


def read_triples(shape, data, row, col):
    """The dense matrix, or None if the arrays are not sound."""
    if row.dtype.kind != "i" or col.dtype.kind != "i" or not len(data) == len(row) == len(col):
        return None
    dense = np.zeros(shape)
    for i, j, value in zip(row.tolist(), col.tolist(), data, strict=True):
        if not (0 <= i < shape[0] and 0 <= j < shape[1]):
            return None
        dense[i, j] += value
    return dense


def read_compressed(shape, data, indices, indptr):
    """The dense matrix of rows, or None if the arrays are not sound."""
    ends = indptr.tolist()
    rising = all(a <= b for a, b in pairwise(ends))
    if indptr.dtype.kind != "i" or len(ends) != shape[0] + 1 or ends[0] or not rising:
        return None
    if ends[-1] > len(data) or len(indices) != len(data):
        return None
    rows = np.repeat(np.arange(shape[0]), np.diff(ends))
    return read_triples(shape, data[: ends[-1]], rows, indices[: ends[-1]])


def integers(draw, values):
    """An array of these values, one of them changed in half of all cases, in some dtype."""
    values = list(values)
    if draw(st.booleans()):
        change = draw(st.sampled_from(["put", "drop", "add"]))
        value = draw(st.integers(-2, 6) | st.sampled_from([127, -128, 2**31 - 1, -(2**31)]))
        if change == "add" or not values:
            values.append(value)
        elif change == "drop":
            values.pop()
        else:
            values[draw(st.integers(0, len(values) - 1))] = value
    kinds = [np.int64] * 4 + [np.int32, np.int32, np.int8, np.uint8, np.uint32, np.float64]
    return np.array(values, np.int64).astype(draw(st.sampled_from(kinds)))


def check(Z, expected):
    if expected is None:
        refused("sparse matrix X", sound_csr, Z)
    else:
        assert_array_equal(sound_csr(Z).toarray(), expected)


@given(data=st.data())
def test_rows_and_columns_against_loops(data):
    draw = data.draw
    shape = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    lengths = draw(st.lists(st.integers(0, 3), min_size=shape[0], max_size=shape[0]))
    n_entries = sum(lengths) if shape[1] else 0
    ends = np.cumsum([0, *lengths]) if shape[1] else np.zeros(shape[0] + 1, int)
    columns = st.integers(0, max(shape[1] - 1, 0))
    indptr = integers(draw, ends)
    indices = integers(draw, draw(st.lists(columns, min_size=n_entries, max_size=n_entries)))
    values = np.arange(1.0, 1 + max(0, n_entries + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))))
    rows = read_compressed(shape, values, indices, indptr)
    columns = None if rows is None else rows.T
    for kind, expected in ((sparse.csr_matrix, rows), (sparse.csc_matrix, columns)):
        Z = kind(shape if expected is rows else shape[::-1])
        Z.data, Z.indices, Z.indptr = values, indices, indptr
        check(Z, expected)


@given(data=st.data())
def test_triples_against_loops(data):
    draw = data.draw
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    n = draw(st.integers(0, 5))
    row, col = (
        integers(draw, draw(st.lists(st.integers(0, limit - 1), min_size=n, max_size=n)))
        for limit in shape
    )
    values = np.arange(1.0, 1 + n)
    expected = read_triples(shape, values, row, col)
    Z = sparse.coo_matrix(shape)
    Z.data = values
    if hasattr(Z, "coords"):
        Z.coords = (row, col)
    else:
        Z.row, Z.col = row, col
    check(Z, expected)
