"""A corpus in shards: sums over them, documents of them, and what cannot be one."""

from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi import corpus
from annealvi.scale import corpus as corpora
from annealvi.scale.corpus import Partitions, ShardedCorpus, gather
from annealvi.scale.elsewhere import Counted, Elsewhere
from annealvi.scale.engines import SerialEngine, WorkersLostError
from tests.asserts import refused

LENGTHS = (23, 14, 31)


@pytest.fixture
def X():
    found = sparse.random(sum(LENGTHS), 40, 0.2, "csr", random_state=0)
    found.data = np.ceil(9 * found.data)
    return found


@pytest.fixture
def paths(X, tmp_path):
    ends = np.concatenate([[0], np.cumsum(LENGTHS)])
    found = []
    for i in range(3):
        found.append(str(tmp_path / str(i)))
        corpus.write(found[-1], [X[ends[i] : ends[i + 1]]], dtype="float64")
    return found


@pytest.fixture
def sharded(paths):
    return ShardedCorpus(Partitions(SerialEngine(), paths), np.dtype(np.float32), 5, 2)


def test_facts(X, paths, sharded):
    partitions = Partitions(SerialEngine(), paths)
    assert isinstance(partitions, Counted) and not isinstance(partitions, Elsewhere)
    for found in (partitions, sharded):
        assert isinstance(found, Counted) and found.shape == X.shape
        assert found.n_words == X.sum() and found.least == X.data.min()
        assert found.n_used == np.count_nonzero(np.asarray(X.sum(axis=0)))
    assert isinstance(sharded, Elsewhere)
    assert partitions.dtype == np.float64 and sharded.dtype == np.float32
    assert sharded.digest == partitions.digest
    assert Partitions(SerialEngine(), paths[::-1]).digest != partitions.digest
    assert sharded.sum(dtype=np.float64) == X.sum()


def test_documents_by_their_numbers(X, sharded):
    ordered = X[sharded.order.documents].toarray()
    rng = np.random.RandomState(0)
    picked = np.array([0, 5, 6, 67]), rng.permutation(68)[:20], np.array([], dtype=int)
    for rows in (slice(None), slice(None, None, 7), slice(3, 9), slice(4, 4), *picked):
        found = sharded[rows]
        assert found.format == "csr" and found.dtype == np.float32
        assert_array_equal(found.toarray(), ordered[rows])


class Model:
    """A model that says what it is asked to do."""

    working = staticmethod(nullcontext)


class Lengths:
    """The documents of each shard, put together in a way that shows the order."""

    def __call__(self, model, X, rows, number):
        assert model == 1  # threads
        return ((number, rows.stop - rows.start, float(X.sum())),)

    def merged(self, one, other):
        return one + other


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
    found = sharded.total(Lengths(), Model(), rows)
    assert [number for number, *_ in found] == list(range(len(found)))
    ordered = X[sharded.order.documents].astype(np.float32)
    starts = range(rows.start, rows.stop, 5)
    expected = [ordered[start : min(start + 5, rows.stop)] for start in starts]
    assert [part[1:] for part in found] == [(one.shape[0], float(one.sum())) for one in expected]


@pytest.mark.parametrize("n_losses", [0, 2])
def test_several_parts_and_losses_change_nothing(paths, sharded, n_losses, monkeypatch):
    monkeypatch.setattr(corpora, "LONGEST_PAUSE", 0.0)
    engine = Groups(n_losses)
    own = ShardedCorpus(Partitions(engine, paths), np.dtype(np.float32), 5, 2)
    engine.left = n_losses
    rows = slice(0, 68)
    assert own.total(Lengths(), Model(), rows) == sharded.total(Lengths(), Model(), rows)


def test_workers_that_die_again_and_again(monkeypatch):
    monkeypatch.setattr(corpora, "LONGEST_PAUSE", 0.0)
    with pytest.raises(RuntimeError, match=r"Workers died in 20 attempts at the same step"):
        gather(Groups(100), lambda: [1])


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
    assert engine.made == made + 1 + len(own.order.shards) + 1
    assert own._shards[3] is not engine.lost


def test_partitions_that_do_not_go_together(X, paths, tmp_path):
    refused("'X' parameter must be at least one partition", Partitions, SerialEngine(), [])
    corpus.write(tmp_path / "wide", [sparse.csr_matrix(np.ones((2, 41)))])
    with pytest.raises(ValueError, match=r"Partition 0 has 40, and partition 3 has 41"):
        Partitions(SerialEngine(), [*paths, tmp_path / "wide"])
