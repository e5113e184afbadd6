"""What lets several threads use one estimator: locks that survive a fork, and light copies.

docs/threads.md has the policy.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, TypeVar

T = TypeVar("T")

#: A lock of `threading`: its own `with` statement cannot be interrupted between taking the lock
#: and the block that gives it back.
Lock = Any

_brief: dict[int, weakref.ref] = {}
_writers: dict[int, tuple[weakref.ref, Lock]] = {}


def brief_lock() -> Lock:
    """Return a reentrant lock that is held for a step at most.

    A fork waits for it, so that what it protects is whole in the child.
    """
    lock = threading.RLock()
    key = id(lock)
    _brief[key] = weakref.ref(lock, lambda _: _brief.pop(key, None))
    return lock


def writing(owner: Any) -> Lock:
    """Return the reentrant lock of whoever changes an object; others wait, maybe for hours.

    It is not an attribute of the object, so that no copy and no pickle has it.  A forked child
    finds it open if another thread held it, because that thread is not there.

    Parameters
    ----------
    owner : object
    """
    key = id(owner)
    found = _writers.get(key)
    if found is None:
        reference = weakref.ref(owner, lambda _: _writers.pop(key, None))
        found = _writers.setdefault(key, (reference, threading.RLock()))
    return found[1]


class _Fork:
    """Takes all brief locks before a fork, and gives them back on both sides."""

    def __init__(self) -> None:
        self._taken = threading.local()

    def before(self) -> None:
        living = [reference() for reference in list(_brief.values())]
        self._taken.locks = [lock for lock in living if lock is not None]
        for lock in self._taken.locks:
            lock.acquire()

    def after(self) -> None:
        for lock in self._taken.__dict__.pop("locks", []):
            lock.release()

    def after_in_child(self) -> None:
        self.after()
        for _, lock in list(_writers.values()):
            if not lock._is_owned():
                lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    _fork = _Fork()
    os.register_at_fork(
        before=_fork.before,
        after_in_parent=_fork.after,
        after_in_child=_fork.after_in_child,
    )


def shallow(original: T) -> T:
    """Return a copy that shares all attributes, whatever pickling would leave out.

    Parameters
    ----------
    original : object
    """
    copied = object.__new__(type(original))
    vars(copied).update(vars(original))
    return copied
