"""The locks of writers and of steps; that forked children find them open: test_fork.py."""

import gc
import threading
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi import TemperedLDA
from annealvi.threads import Lender, brief_lock, is_lent, shallow, writing
from tests.side_by_side import at_once


def is_free(lock):
    def try_it():
        taken = lock.acquire(blocking=False)
        if taken:
            lock.release()
        return taken

    return at_once(try_it)[0]


def test_an_object_has_one_lock_for_its_writers():
    one, other = TemperedLDA(), TemperedLDA()
    locks = at_once(*[lambda: writing(one)] * 8)
    assert all(lock is locks[0] for lock in locks)
    assert writing(other) is not locks[0]
    assert set(vars(one)) == set(one.get_params())
    with writing(one), writing(one):
        assert not is_free(locks[0])
        assert is_free(writing(other))
    assert is_free(locks[0])


def test_locks_go_with_their_objects():
    objects = [TemperedLDA() for _ in range(100)]
    locks = [weakref.ref(writing(each)) for each in objects]
    del objects[1:]
    gc.collect()
    assert locks[0]() is writing(objects[0])
    assert not [lock for lock in locks[1:] if lock() is not None]


def test_the_lock_of_an_object_in_a_circle_goes_with_it():
    estimator = TemperedLDA()
    estimator.callback = [estimator]
    lock = weakref.ref(writing(estimator))
    del estimator
    gc.collect()
    assert lock() is None


def test_a_brief_lock_is_reentrant_and_forgotten_when_it_is_gone():
    lock = brief_lock()
    with lock, lock:
        assert not is_free(lock)
    assert is_free(lock)
    gone = weakref.ref(lock)
    del lock
    assert gone() is None


def test_a_shallow_copy_has_what_pickling_leaves_out():
    class Holder:
        def __init__(self):
            self.lock = threading.Lock()

        def __getstate__(self):
            return {}

    holder = Holder()
    assert shallow(holder).lock is holder.lock
    assert type(shallow(holder)) is Holder


def test_what_is_lent_is_out_as_long_as_anyone_has_a_view():
    array, lender = np.arange(12.0).reshape(3, 4), Lender()
    lent = lender.lend(array[:, :3])
    again = Lender().lend(lent)
    assert is_lent(lent) and is_lent(again) and not is_lent(array) and not is_lent(lent[1:])
    assert_array_equal(lent, array[:, :3])
    assert np.shares_memory(again, array)
    with pytest.raises(ValueError, match="read-only"):
        lent[0] = 1
    view = again.T[1:]
    del lent, again
    assert lender.has_lent
    del view
    assert not lender.has_lent
