"""Locks that allow several threads to use an estimator; see docs/look_up/threads.md.

With :func:`writing`, one thread at a time fits or changes an estimator, possibly for hours.  With
:func:`reading`, any number of threads read an estimator.  With :func:`changing`, one thread stores
the result of a step or assigns to an attribute while no other thread reads.  Locks are not stored
as attributes of the estimators, so copies and pickles do not include them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class _Lock:
    """A lock that is either shared by readers or held by one writer; each thread gets its turn.

    A thread that holds the lock may take it again.  A reader must not wait for a second reader: if
    a writer waits between them, the second waits for the writer, and all three are deadlocked.
    """

    def __init__(self) -> None:
        """Make a lock that no thread holds."""
        self.turn = RLock()  # the separate lock of `writing`
        self._changed = threading.Condition()  # guards all fields below; notified of changes
        self._n_taken = Counter[int]()  # how many times each reading thread has the lock
        self._writer: int | None = None  # the thread that holds the lock alone
        self._writer_depth = 0  # how many times the writer has taken the lock
        self._n_waiting_readers = 0
        self._n_admitted_readers = 0  # waiting readers that come before the next writer
        self._n_waiting_writers = 0

    def read(self) -> None:
        """Take the lock to read; wait if the calling thread does not hold it yet."""
        me = threading.get_ident()
        with self._changed:
            # a thread that holds the lock must not wait for itself
            if me not in self._n_taken and me != self._writer:
                self._wait_to_read()
            self._n_taken[me] += 1

    def read_no_more(self) -> None:
        """Return the lock that `read` took."""
        me = threading.get_ident()
        with self._changed:
            self._n_taken[me] -= 1
            if not self._n_taken[me]:
                del self._n_taken[me]
                self._changed.notify_all()  # a writer may wait for this reader

    def _wait_to_read(self) -> None:
        """Wait until no thread holds the lock alone; at most one writer comes before a reader."""
        self._n_waiting_readers += 1
        try:
            # a waiting writer comes first, unless readers were admitted when the last one left
            while self._writer is not None or (
                self._n_waiting_writers and not self._n_admitted_readers
            ):
                self._changed.wait()
        finally:
            self._n_waiting_readers -= 1
            self._n_admitted_readers = max(0, self._n_admitted_readers - 1)
            self._changed.notify_all()  # a writer may wait for the last admitted reader

    def take(self) -> None:
        """Take the lock alone; wait if the calling thread does not hold it alone yet."""
        me = threading.get_ident()
        with self._changed:
            if self._writer != me:
                self._wait_to_be_alone(me)
            self._writer = me
            self._writer_depth += 1

    def let_go(self) -> None:
        """Return the lock that `take` took."""
        with self._changed:
            self._writer_depth -= 1
            if not self._writer_depth:
                self._writer = None
                # all readers that wait now come before the next writer
                self._n_admitted_readers = self._n_waiting_readers
                self._changed.notify_all()  # wakes readers and writers, who check their turn

    def _wait_to_be_alone(self, me: int) -> None:
        """Wait until no other thread holds the lock, and admitted readers have had their turn."""
        self._n_waiting_writers += 1
        try:
            while (
                self._writer is not None
                or self._n_admitted_readers
                or self._n_taken.keys() - {me}  # other threads read
            ):
                self._changed.wait()
        finally:
            self._n_waiting_writers -= 1
            # if `wait` raised an error, readers may have waited only for this writer
            self._changed.notify_all()


class _Side:
    """A context manager that can be used many times."""

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        """Store the functions that take and return the lock."""
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> None:
        self._enter()

    def __exit__(self, *error: object) -> None:
        self._leave()


#: The lock of each object by its id, with a reference that tells whether the id was used again.
_locks: dict[int, tuple[Callable[[], Any], _Lock]] = {}
#: An entry for ids that are not in _locks, whose reference never returns an object.
_NO_LOCK = (lambda: None, _Lock())
#: Held while a lock is looked up in _locks, or added.
_adding = RLock()


def _lock_of(owner: Any) -> _Lock:
    """Return the lock of an object, which is made at the first use."""
    with _adding:
        reference, lock = _locks.get(id(owner), _NO_LOCK)
        if reference() is not owner:  # no lock, or that of an earlier object with the same id
            lock = _Lock()
            # when the object is deleted, its entry is removed
            _locks[id(owner)] = weakref.ref(owner, partial(_locks.pop, id(owner))), lock
    return lock


def writing(owner: Any) -> Any:
    """Return the reentrant lock for threads that change an object, possibly for hours."""
    return _lock_of(owner).turn


def reading(owner: Any) -> Any:
    """Return a context in which no other thread changes an object."""
    lock = _lock_of(owner)
    return _Side(lock.read, lock.read_no_more)


def changing(owner: Any) -> Any:
    """Return a context, for short use, in which no other thread reads or changes an object."""
    lock = _lock_of(owner)
    return _Side(lock.take, lock.let_go)


def _in_child() -> None:
    """Create all locks again: the threads that held them do not exist in a forked process."""
    global _adding
    _adding = RLock()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def shallow(original: T) -> T:
    """Return a copy that shares all attributes, even those that pickling would leave out."""
    copied = object.__new__(type(original))  # without __init__ and __getstate__
    vars(copied).update(vars(original))
    return copied
