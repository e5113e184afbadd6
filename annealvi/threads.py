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
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class _Lock:
    """A lock that is either shared by readers or held by one writer; each thread gets its turn.

    A thread that holds the lock may take it again.  A reader must not wait for a second reader: if
    a writer waits between them, the second waits for the writer, and all three are deadlocked.
    """

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self._changed = threading.Condition()
        self._readers: dict[int, int] = {}  # how many times each thread has taken it to read
        self._owner: int | None = None  # the thread that holds it alone
        self._depth = 0  # how many times the owner has taken the lock
        self._waiting = 0  # how many readers wait
        self._admitted = 0  # how many readers come before the next owner
        self._hopeful = 0  # how many threads wait to be the owner

    def shared(self) -> _Side:
        return _Side(self._read, self._read_no_more)

    def alone(self) -> _Side:
        return _Side(self._take, self._let_go)

    def _read(self) -> None:
        me = threading.get_ident()
        with self._changed:
            if me not in self._readers and me != self._owner:
                self._wait_to_read()
            self._readers[me] = self._readers.get(me, 0) + 1

    def _read_no_more(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._readers[me] -= 1
            if not self._readers[me]:
                del self._readers[me]
                self._changed.notify_all()

    def _wait_to_read(self) -> None:
        """Wait until no thread holds the lock alone; at most one owner comes before a reader."""
        self._waiting += 1
        try:
            while self._owner is not None or (self._hopeful and not self._admitted):
                self._changed.wait()
        finally:
            self._waiting -= 1
            self._admitted = max(0, self._admitted - 1)
            self._changed.notify_all()

    def _take(self) -> None:
        me = threading.get_ident()
        with self._changed:
            if self._owner != me:
                self._wait_to_be_alone(me)
            self._owner = me
            self._depth += 1

    def _let_go(self) -> None:
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self._owner = None
                self._admitted = self._waiting
                self._changed.notify_all()

    def _wait_to_be_alone(self, me: int) -> None:
        self._hopeful += 1
        try:
            while self._owner is not None or self._admitted or self._readers.keys() - {me}:
                self._changed.wait()
        finally:
            self._hopeful -= 1
            self._changed.notify_all()


class _Side:
    """A context manager that can be used many times."""

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> None:
        self._enter()

    def __exit__(self, *error: object) -> None:
        self._leave()


#: The lock of each object by its id, with a reference that tells whether the id was used again.
_locks: dict[int, tuple[Callable[[], Any], _Lock]] = {}
_NO_LOCK = (lambda: None, _Lock())
_adding = threading.RLock()


def _lock_of(owner: Any) -> _Lock:
    reference, lock = _locks.get(id(owner), _NO_LOCK)
    if reference() is not owner:
        with _adding:
            reference, lock = _locks.get(id(owner), _NO_LOCK)
            if reference() is not owner:
                lock = _Lock()
                _locks[id(owner)] = weakref.ref(owner, partial(_locks.pop, id(owner))), lock
    return lock


def writing(owner: Any) -> Any:
    """Return the reentrant lock for threads that change an object, possibly for hours."""
    return _lock_of(owner).turn


def reading(owner: Any) -> Any:
    """Return a context in which no other thread changes an object."""
    return _lock_of(owner).shared()


def changing(owner: Any) -> Any:
    """Return a context, for short use, in which no other thread reads or changes an object."""
    return _lock_of(owner).alone()


def _in_child() -> None:
    """Create all locks again: the threads that held them do not exist in a forked process."""
    global _adding
    _adding = threading.RLock()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def shallow(original: T) -> T:
    """Return a copy that shares all attributes, even those that pickling would leave out."""
    copied = object.__new__(type(original))
    vars(copied).update(vars(original))
    return copied
