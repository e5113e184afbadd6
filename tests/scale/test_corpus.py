"""A corpus in shards: its partitions, their order, sums over them, and what cannot be one."""

from contextlib import nullcontext
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi import corpus
from annealvi.scale import corpus as corpora
from annealvi.scale.corpus import (
    Partitions,
    Piece,
    ShardedCorpus,
    gather,
    load,
    numbers_of,
    properties_of,
    take,
)
from annealvi.scale.elsewhere import Elsewhere
from annealvi.scale.engines import SerialEngine, WorkersLostError
from bench import chaos
from tests.asserts import refused
from tests.marks import cases

LENGTHS = (23, 14, 31)


@pytest.fixture
def X():
    found = sparse.random(sum(LENGTHS), 40, 0.2, "csr", random_state=0)
    found.data = np.ceil(9 * found.data)
    return found


@pytest.fixture
def paths(X, tmp_path):
    ends = np.concatenate([[0], np.cumsum(LENGTHS)])
    for i in range(3):
        corpus.write_corpus(tmp_path / str(i), [X[ends[i] : ends[i + 1]]], dtype="float64")
    return [str(tmp_path / str(i)) for i in range(3)]


@pytest.fixture
def sharded(paths):
    return ShardedCorpus(Partitions(SerialEngine(), paths), np.dtype(np.float32), 5, 2)


def test_facts(X, paths, sharded):
    partitions = Partitions(SerialEngine(), paths)
    for found in (partitions, sharded):
        assert isinstance(found, Elsewhere) and found.shape == X.shape
        assert found.n_words == X.sum() and found.least == X.data.min()
        assert found.n_used == np.count_nonzero(np.asarray(X.sum(axis=0)))
    assert partitions.dtype == np.float64 and sharded.dtype == np.float32
    assert sharded.digest == partitions.digest
    assert Partitions(SerialEngine(), paths[::-1]).digest != partitions.digest
    assert sharded.sum(dtype=np.float64) == X.sum()


def test_documents_by_their_numbers(X, sharded):
    ordered = X[numbers_of(sharded.pieces, LENGTHS)].toarray()
    rng = np.random.RandomState(0)
    picked = np.array([0, 5, 6, 67]), rng.permutation(68)[:20], np.array([], dtype=int)
    for rows in (slice(None), slice(None, None, 7), slice(3, 9), slice(4, 4), *picked):
        found = sharded[rows]
        assert found.format == "csr" and found.dtype == np.float32
        assert_array_equal(found.toarray(), ordered[rows])


def lengths(engine, model, X, rows, number):
    """The documents of a shard, put together in a way that shows the order."""
    assert engine == 1  # threads, of the context that lends an engine
    assert model == "a model"
    return ((number, rows.stop - rows.start, float(X.sum())),)


def total(corpus, rows):
    return corpus.total(lengths, add, "a model", rows, nullcontext)


class Groups(SerialEngine):
    """Cuts a step into several parts, and loses some of them."""

    n_workers = 3

    def __init__(self, n_losses):
        super().__init__()
        self.left = n_losses

    def gather(self, handles):
        if self.left:
            self.left -= 1
            raise WorkersLostError
        return super().gather(handles)


@pytest.mark.parametrize("rows", [slice(0, 68), slice(10, 20), slice(60, 68)])
def test_sums_are_those_of_all_shards_in_their_order(X, sharded, rows):
    found = total(sharded, rows)
    assert [number for number, *_ in found] == list(range(len(found)))
    ordered = X[numbers_of(sharded.pieces, LENGTHS)].astype(np.float32)
    starts = range(rows.start, rows.stop, 5)
    expected = [ordered[start : min(start + 5, rows.stop)] for start in starts]
    assert [part[1:] for part in found] == [(one.shape[0], float(one.sum())) for one in expected]


@pytest.mark.parametrize("n_losses", [0, 2])
def test_several_parts_and_losses_change_nothing(paths, sharded, n_losses, monkeypatch):
    monkeypatch.setattr(corpora, "LONGEST_PAUSE", 0.0)
    engine = Groups(n_losses)
    own = ShardedCorpus(Partitions(engine, paths), np.dtype(np.float32), 5, 2)
    engine.left = n_losses
    assert total(own, slice(0, 68)) == total(sharded, slice(0, 68))


def test_workers_that_die_again_and_again(monkeypatch):
    monkeypatch.setattr(corpora, "LONGEST_PAUSE", 0.0)
    message = "Workers died in 20 attempts at the same step"
    refused(message, gather, Groups(100), lambda: [1], error=RuntimeError)


def test_results_that_went_with_their_worker_are_made_again(paths):
    class Forgetful(SerialEngine):
        lost = 0

        def submit(self, function, *arguments, slot=None):
            self.made = getattr(self, "made", 0) + 1
            return super().submit(function, *arguments)

        def is_lost(self, handle):
            return handle is self.lost

    engine = Forgetful()
    own = ShardedCorpus(Partitions(engine, paths), np.dtype(np.float32), 5, 2)
    before = own[:].toarray()
    made = engine.made
    engine.lost = own._shards[3]
    own[:5]
    assert engine.made == made + 1  # nobody said that there are losses
    engine.n_losses += 1
    assert_array_equal(own[:].toarray(), before)
    assert engine.made == made + 1 + len(own.pieces) + 1
    assert own._shards[3] is not engine.lost


def test_partitions_that_do_not_go_together(X, paths, tmp_path):
    refused("'X' parameter must be at least one partition", Partitions, SerialEngine(), [])
    corpus.write_corpus(tmp_path / "wide", [sparse.csr_matrix(np.ones((2, 41)))])
    message = r"Partition 0 has 40, and partition 3 has 41"
    refused(message, Partitions, SerialEngine(), [*paths, tmp_path / "wide"])


@cases(
    "source, error, message",
    (np.ones((2, 3)), TypeError, r"partition 3 of X must be a sparse matrix, or the.*ndarr"),
    (sparse.csr_matrix((0, 3)), ValueError, r"partition 3 of X must have at least one doc"),
    (sparse.csr_matrix([[-1.0, 2.0]]), ValueError, r"Negative values in data.*partition 3"),
    (sparse.csr_matrix([[np.nan, 2.0]]), ValueError, r"contains NaN"),
)
def test_bad_partitions(source, error, message):
    refused(message, load, source, "partition 3 of X", error=error)


def test_facts_of_a_partition(X):
    facts = properties_of(X)
    assert (facts.n_documents, facts.n_features, facts.dtype) == (*X.shape, X.dtype)
    assert facts.n_words == X.sum() and facts.least == X.data.min()
    assert_array_equal(np.unpackbits(facts.used, count=40), np.asarray(X.sum(axis=0) > 0).ravel())
    assert properties_of(X.astype(np.float32)).digest != facts.digest
    other = X.copy()
    other.data[-1] += 1
    assert properties_of(other).digest != facts.digest
    assert properties_of(sparse.csr_matrix(X, copy=True)).digest == facts.digest
    empty = properties_of(sparse.csr_matrix((2, 3)))
    assert (empty.n_words, empty.least) == (0, np.inf)


def test_a_shard_is_a_view_where_it_can_be(X):
    shard = take(X.dtype, [Piece(0, 5, 9)], X)
    assert_array_equal(shard.toarray(), X[5:9].toarray())
    assert np.shares_memory(shard.data, X.data) and np.shares_memory(shard.indices, X.indices)
    shard = take(np.dtype(np.float32), [Piece(0, 5, 9)], X)
    assert shard.dtype == np.float32 and np.shares_memory(shard.indices, X.indices)
    assert_array_equal(shard.toarray(), X[5:9].toarray().astype(np.float32))
    both = take(X.dtype, [Piece(0, 18, 20), Piece(1, 0, 2)], X, X[::-1])
    assert_array_equal(both.toarray(), X[[18, 19, -1, -2]].toarray())


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(1, 12), st.integers(1, 5))
def test_every_document_once_in_shards_of_the_same_size(lengths, shard_size, per_batch):
    shards = corpora.minibatch_order(lengths, shard_size, per_batch)
    documents = numbers_of(shards, lengths)
    assert_array_equal(np.sort(documents), np.arange(sum(lengths)))
    sizes = [sum(piece.stop - piece.start for piece in shard) for shard in shards]
    assert all(size == shard_size for size in sizes[:-1])
    assert 0 < sizes[-1] <= shard_size
    begins = np.concatenate([[0], np.cumsum(lengths)])
    pieces = [piece for shard in shards for piece in shard]
    rows = [np.arange(p.start, p.stop) + begins[p.partition] for p in pieces]
    assert_array_equal(np.concatenate(rows), documents)
    # tails come last
    n_full = sum(length // shard_size for length in lengths)
    assert all(len(shard) == 1 for shard in shards[:n_full])


def test_no_documents_have_no_order():
    shards = corpora.minibatch_order([0, 0], 2, 2)
    documents = numbers_of(shards, [0, 0])
    assert shards == [] and documents.dtype == np.int64 and not len(documents)


def test_a_minibatch_has_shards_of_many_partitions():
    shards = corpora.minibatch_order([40] * 6, 10, 3)
    batches = [shards[i : i + 3] for i in range(0, 24, 3)]
    found = [[shard[0].partition for shard in batch] for batch in batches]
    # in groups that are spread over all, each partition always at the same place
    assert found == [[0, 2, 4]] * 4 + [[1, 3, 5]] * 4


def test_what_is_left_is_put_together():
    shards = corpora.minibatch_order([13, 14, 6], 10, 2)
    third = [Piece(0, 10, 13), Piece(1, 10, 14), Piece(2, 0, 3)]
    assert shards[2:] == [third, [Piece(2, 3, 6)]]


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 3])
def test_any_number_of_workers(n_workers, tmp_path):
    found = chaos.fit("learned", tmp_path, str(tmp_path / "checkpoint"), n_workers, death={})
    assert found == chaos.expected("learned")


@pytest.mark.slow
@pytest.mark.parametrize("event", chaos.EVENTS)
def test_whatever_dies(event, tmp_path):
    """`bench/chaos.py` does so at random moments."""
    chaos.partitions(tmp_path)
    plan = chaos.Plan("annealed", event, step=20, seconds=0.02, n_workers=(2, 3))
    assert chaos.run(plan, tmp_path, tmp_path / "checkpoint", 300.0) == chaos.expected("annealed")
