"""The lock of an estimator: writers take turns, readers share it, changes have it alone."""

import gc
import os
import threading
import time
import weakref

import pytest

from annealvi import TemperedLDA
from annealvi.threads import changing, reading, writing
from tests.side_by_side import PATIENCE, at_once


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
        assert not is_free(locks[0]) and is_free(writing(other))
    assert is_free(locks[0])


def test_locks_go_with_their_objects():
    objects = [TemperedLDA() for _ in range(100)]
    locks = [weakref.ref(writing(each)) for each in objects]
    del objects[1:]
    gc.collect()
    assert locks[0]() is writing(objects[0])
    assert not [lock for lock in locks[1:] if lock() is not None]


def test_readers_share_an_object_and_a_change_has_it_alone():
    owner, events, together = TemperedLDA(), [], threading.Barrier(2, timeout=PATIENCE)
    both = threading.Event()

    def read():
        with reading(owner), reading(owner):
            together.wait()  # both read at the same time
            both.set()
            time.sleep(0.01)
            events.append("read")

    def change():
        # a reader may not wait for another one, who would come after a change that waits
        assert both.wait(PATIENCE)
        with changing(owner), changing(owner), reading(owner):
            events.append("begin")
            time.sleep(0.01)
            events.append("end")

    at_once(read, read, change, change)
    assert sorted(events) == ["begin"] * 2 + ["end"] * 2 + ["read"] * 2
    for i, event in enumerate(events):
        assert event != "begin" or events[i + 1] == "end"


def test_neither_readers_nor_changes_wait_forever():
    owner, done = TemperedLDA(), threading.Event()

    def until_done(side):
        while not done.is_set():
            with side(owner):
                time.sleep(0.0005)

    def some(side):
        for _ in range(20):
            with side(owner):
                pass

    def others():
        at_once(lambda: some(reading), lambda: some(changing))
        done.set()

    at_once(*[lambda: until_done(reading)] * 2, lambda: until_done(changing), others)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_finds_all_locks_open():
    owner, taken, done = TemperedLDA(), threading.Event(), threading.Event()

    def hold():
        with writing(owner), changing(owner):
            taken.set()
            assert done.wait(PATIENCE)

    def fork():
        assert taken.wait(PATIENCE)
        child = os.fork()
        if not child:
            with writing(owner), changing(owner), reading(owner):
                os._exit(0)
        done.set()
        assert os.waitpid(child, 0)[1] == 0

    at_once(hold, fork)
