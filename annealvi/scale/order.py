"""The order in which a fit takes the documents of several partitions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annealvi.scale.partitions import Piece


class Order(NamedTuple):
    """The shards of a corpus, in the order of a fit."""

    #: The pieces of each shard.
    shards: list[list[Piece]]
    #: The numbers of their documents in the partitions, one after another.
    documents: NDArray[np.int64]


def minibatch_order(lengths: Sequence[int], shard_size: int, shards_per_batch: int) -> Order:
    """Order the shards of partitions so that a minibatch has some of many partitions.

    Shards of `shard_size` documents of one partition come first.  Partitions are taken in groups
    of `shards_per_batch`, which are spread over all; a minibatch has one shard of each of the
    group.  If there are fewer partitions, each is cut into parts, which are treated as partitions.
    What is left of each partition comes last, put together to shards of the same size, but for the
    very last.  The order follows from these numbers alone.
    """
    n_parts = -(-shards_per_batch // len(lengths))
    rows: list[list[Piece]] = []  # the full shards of each part of a partition
    tails: list[Piece] = []
    for partition, length in enumerate(lengths):
        n_full = length // shard_size
        ends = [n_full * i // n_parts for i in range(n_parts + 1)]
        for first, last in pairwise(ends):
            starts = range(first * shard_size, last * shard_size, shard_size)
            rows.append([Piece(partition, start, start + shard_size) for start in starts])
        if n_full * shard_size < length:
            tails.append(Piece(partition, n_full * shard_size, length))
    shards: list[list[Piece]] = []
    n_groups = -(-len(rows) // shards_per_batch)
    for first in range(n_groups):
        group = rows[first::n_groups]  # neighbours have the same worker, so others are taken
        for turn in range(max(map(len, group))):
            shards += [[own[turn]] for own in group if turn < len(own)]
    shards += _cut(tails, shard_size)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    pieces = [piece for shard in shards for piece in shard]
    documents = [np.arange(piece.start, piece.stop) + begins[piece.partition] for piece in pieces]
    return Order(shards, np.concatenate([np.empty(0, dtype=np.int64), *documents]))


def _cut(pieces: Sequence[Piece], size: int) -> list[list[Piece]]:
    """Cut pieces, one after another, into shards of `size` documents."""
    shards: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        start = piece.start
        while start < piece.stop:
            if not room:
                shards.append([])
                room = size
            stop = min(piece.stop, start + room)
            shards[-1].append(piece._replace(start=start, stop=stop))
            room -= stop - start
            start = stop
    return shards
