"""The order of documents in a fit of partitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from annealvi.scale.corpus import Piece, minibatch_order


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(1, 12), st.integers(1, 5))
def test_every_document_once_in_shards_of_the_same_size(lengths, shard_size, per_batch):
    order = minibatch_order(lengths, shard_size, per_batch)
    np.testing.assert_array_equal(np.sort(order.documents), np.arange(sum(lengths)))
    sizes = [sum(piece.stop - piece.start for piece in shard) for shard in order.shards]
    assert all(size == shard_size for size in sizes[:-1])
    assert 0 < sizes[-1] <= shard_size
    begins = np.concatenate([[0], np.cumsum(lengths)])
    pieces = [piece for shard in order.shards for piece in shard]
    rows = [np.arange(p.start, p.stop) + begins[p.partition] for p in pieces]
    np.testing.assert_array_equal(np.concatenate(rows), order.documents)
    # tails come last
    n_full = sum(length // shard_size for length in lengths)
    assert all(len(shard) == 1 for shard in order.shards[:n_full])


def test_no_documents_have_no_order():
    order = minibatch_order([0, 0], 2, 2)
    assert order.shards == [] and order.documents.dtype == np.int64 and not len(order.documents)


def test_a_minibatch_has_shards_of_many_partitions():
    order = minibatch_order([40] * 6, 10, 3)
    batches = [order.shards[i : i + 3] for i in range(0, 24, 3)]
    found = [[shard[0].partition for shard in batch] for batch in batches]
    # in groups that are spread over all, each partition always at the same place
    assert found == [[0, 2, 4]] * 4 + [[1, 3, 5]] * 4


def test_what_is_left_is_put_together():
    order = minibatch_order([13, 14, 6], 10, 2)
    third = [Piece(0, 10, 13), Piece(1, 10, 14), Piece(2, 0, 3)]
    assert order.shards[2:] == [third, [Piece(2, 3, 6)]]
