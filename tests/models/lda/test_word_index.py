"""The order of a block's words, kept from pass to pass."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi.models.lda import workspace
from annealvi.models.lda.workspace import WordIndices


def corpus(seed=0, n_samples=30):
    return sparse.random(n_samples, 12, 0.3, "csr", random_state=seed)


def check(index, X, rows):
    """The entries of each word, in the order of the documents."""
    some = X[rows]
    words = np.flatnonzero(some.getnnz(axis=0))
    assert_array_equal(index.words, words)
    for i, word in enumerate(words):
        own = slice(index.first[i], index.first[i + 1])
        assert_array_equal(index.document[own], np.flatnonzero(some[:, [word]].toarray()))
        assert_array_equal(some.indices[index.position[own]], np.full(own.stop - own.start, word))


def test_blocks_of_all_sizes():
    X, indices = corpus(), WordIndices(12)
    for _ in range(3):  # seen, kept, and read again
        for rows in (slice(0, 30), slice(3, 4), slice(10, 25), slice(5, 5)):
            check(indices.of_block(X, rows), X, rows)


def test_a_block_is_kept_from_its_second_pass_on():
    X, indices, rows = corpus(), WordIndices(12), slice(0, 20)
    first = indices.of_block(X, rows)
    second = indices.of_block(X, rows)
    assert second.document is not first.document
    assert indices.of_block(X, rows) is second
    indices.of_block(X, slice(20, 30))  # does not write to it
    check(second, X, rows)


def test_a_block_of_repeated_passes_is_kept_at_once():
    X, indices, rows = corpus(), WordIndices(12), slice(0, 20)
    indices.repeated = True
    first = indices.of_block(X, rows)
    check(indices.of_block(X, slice(20, 30)), X, slice(20, 30))
    assert indices.of_block(X, rows) is first
    check(first, X, rows)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_two_threads_begin_with_the_longest_documents(n_threads):
    X, rows = corpus(), slice(4, 25)
    index = WordIndices(12, n_threads).of_block(X, rows)
    lengths = np.diff(X.indptr)[rows]
    in_order = np.arange(21) if n_threads == 1 else np.argsort(-lengths, kind="stable")
    assert_array_equal(index.order, in_order)
    assert index.longest == lengths.max()
    nothing = WordIndices(12, n_threads).of_block(X, slice(3, 3))
    assert (len(nothing.order), nothing.longest) == (0, 0)


def test_other_documents_have_another_index():
    indices, rows = WordIndices(12), slice(0, 20)
    X, Y = corpus(), corpus(1)
    for some in (X, X, X, Y, Y, Y, X):
        check(indices.of_block(some, rows), some, rows)


def test_a_stream_keeps_nothing():
    indices = WordIndices(12)
    for seed in range(5):
        indices.of_block(corpus(seed), slice(0, 30))
    assert all(index is None for _, index in indices._kept.values())


@pytest.mark.parametrize("most", [0, 2_000])
def test_no_more_is_kept_than_may_be(monkeypatch, most):
    monkeypatch.setattr(workspace, "MOST_BYTES", most)
    X, indices = corpus(), WordIndices(12)
    for _ in range(3):
        for start in range(0, 30, 5):
            rows = slice(start, start + 5)
            check(indices.of_block(X, rows), X, rows)
    kept = [index for _, index in indices._kept.values() if index is not None]
    assert sum(array.nbytes for index in kept for array in index[:-1]) <= most
    assert bool(kept) == bool(most)


@pytest.mark.parametrize("changed", ["indices", "indptr", "all"])
def test_documents_that_change_in_place_have_another_index(changed):
    X, indices, rows = corpus(), WordIndices(12), slice(0, 30)
    for _ in range(3):
        kept = indices.of_block(X, rows)
    assert indices.of_block(X, rows) is kept
    if changed == "indices":
        X.indices[:] = 11 - X.indices
        X.sort_indices()
    elif changed == "indptr":  # the words of a document go to the next one, the last gets none
        X.indptr[3:-1] = X.indptr[4:]
        X.has_canonical_format = X.has_sorted_indices = False
        X.sum_duplicates()
    else:
        other = corpus(1)
        X.data, X.indices, X.indptr = other.data, other.indices, other.indptr
    for _ in range(3):
        check(indices.of_block(X, rows), X, rows)
    assert indices.of_block(X, rows) is not kept


def test_passes_over_other_blocks_keep_only_theirs():
    X, indices = corpus(), WordIndices(12)
    for size in (5, 10):
        for _ in range(3):
            for start in range(0, 30, size):
                indices.of_block(X, slice(start, start + size))
    assert sorted(indices._kept) == [(0, 10), (10, 20), (20, 30)]
