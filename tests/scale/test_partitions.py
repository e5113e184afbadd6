"""Partitions are checked and cut where they are."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi import corpus
from annealvi.scale.corpus import Piece, facts_of, load, take
from tests.asserts import refused
from tests.marks import cases


@pytest.fixture
def X():
    found = sparse.random(20, 15, 0.3, "csr", random_state=0)
    found.data = np.ceil(9 * found.data)
    return found


def test_paths_are_opened(tmp_path, X):
    corpus.write(tmp_path / "part", [X])
    for path in (tmp_path / "part", str(tmp_path / "part")):
        loaded = load(path, "partition 0 of X")
        assert_array_equal(loaded.toarray(), X.toarray())
        assert loaded.dtype == np.float32


@cases(
    "source, error, message",
    (np.ones((2, 3)), TypeError, r"partition 3 of X must be a sparse matrix, or the.*ndarr"),
    (sparse.csr_matrix((0, 3)), ValueError, r"partition 3 of X must have at least one doc"),
    (sparse.csr_matrix([[-1.0, 2.0]]), ValueError, r"Negative values in data.*partition 3"),
    (sparse.csr_matrix([[np.nan, 2.0]]), ValueError, r"contains NaN"),
)
def test_bad_partitions(source, error, message):
    refused(message, load, source, "partition 3 of X", error=error)


def test_facts(X):
    facts = facts_of(X)
    assert (facts.n_documents, facts.n_features, facts.dtype) == (*X.shape, X.dtype)
    assert facts.n_words == X.sum() and facts.least == X.data.min()
    assert_array_equal(np.unpackbits(facts.used, count=15), np.asarray(X.sum(axis=0) > 0).ravel())
    assert facts_of(X.astype(np.float32)).digest != facts.digest
    other = X.copy()
    other.data[-1] += 1
    assert facts_of(other).digest != facts.digest
    assert facts_of(sparse.csr_matrix(X, copy=True)).digest == facts.digest
    empty = facts_of(sparse.csr_matrix((2, 3)))
    assert (empty.n_words, empty.least) == (0, np.inf)


def test_a_shard_is_a_view_where_it_can_be(X):
    shard = take(X.dtype, [Piece(0, 5, 9)], X)
    assert_array_equal(shard.toarray(), X[5:9].toarray())
    assert np.shares_memory(shard.data, X.data) and np.shares_memory(shard.indices, X.indices)
    shard = take(np.dtype(np.float32), [Piece(0, 5, 9)], X)
    assert shard.dtype == np.float32 and np.shares_memory(shard.indices, X.indices)
    assert_array_equal(shard.toarray(), X[5:9].toarray().astype(np.float32))
    both = take(X.dtype, [Piece(0, 18, 20), Piece(1, 0, 2)], X, X[::-1])
    assert_array_equal(both.toarray(), X[[18, 19, 19, 18]].toarray())
