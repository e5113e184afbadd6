"""What lets several threads use one estimator: locks that survive a fork, light copies, loans.

docs/threads.md has the policy.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

#: Seconds that a fork waits for a lock, in case a user's class asks for two of them.
PATIENCE = 60
#: A lock of `threading`: its own `with` statement cannot be interrupted between taking the lock
#: and the block that gives it back.
Lock = Any

#: As in :class:`Lender`, no Python code runs when a lock or the owner of one is gone.
_brief: set[weakref.ref] = set()
_writers: dict[int, tuple[weakref.ref, Lock]] = {}


def brief_lock() -> Lock:
    """Return a reentrant lock that is held for a step at most.

    A fork waits for it, so that what it protects is whole in the child.  Who holds one may not
    ask for another.
    """
    lock = threading.RLock()
    _brief.add(weakref.ref(lock, _brief.discard))
    return lock


_adding = brief_lock()


def writing(owner: Any) -> Lock:
    """Return the reentrant lock of whoever changes an object; others wait, maybe for hours.

    It is not an attribute of the object, so that no copy and no pickle has it.  A forked child
    finds it open if another thread held it, because that thread is not there.

    Parameters
    ----------
    owner : object
    """
    found = _writers.get(id(owner))
    if found is None or found[0]() is not owner:
        with _adding:
            found = _writers.get(id(owner))
            if found is None or found[0]() is not owner:
                reference = weakref.ref(owner, partial(_writers.pop, id(owner)))
                _writers[id(owner)] = found = reference, threading.RLock()
    return found[1]


class _Fork:
    """Takes all brief locks before a fork, and gives them back on both sides."""

    def __init__(self) -> None:
        self._own = threading.local()

    def before(self) -> None:
        taken: dict[int, Lock] = {}
        self._own.taken = taken
        while True:  # while this thread waits for one lock, others may make more
            found = [reference() for reference in list(_brief)]
            new = {id(lock): lock for lock in found if lock is not None and id(lock) not in taken}
            if not new:
                return
            taken.update(new)  # first, so that an interrupt finds them
            for lock in new.values():
                lock.acquire(timeout=PATIENCE)

    def after(self) -> None:
        for lock in vars(self._own).pop("taken", {}).values():
            with suppress(RuntimeError):  # it was not taken: PATIENCE, or an interrupt
                lock.release()

    def after_in_child(self) -> None:
        self.after()
        for key, (reference, lock) in _writers.copy().items():
            if lock.acquire(blocking=False):  # free, or held by the thread that forked
                lock.release()
            else:
                _writers[key] = reference, threading.RLock()


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


class Lender:
    """Lends an array, and knows whether anyone still has it, or a view of it, however made."""

    def __init__(self) -> None:
        self._loans: set[weakref.ref] = set()

    def lend(self, array: NDArray) -> NDArray:
        """Return a read-only view.

        Parameters
        ----------
        array : ndarray
        """
        loan = _Loan(array)
        # no Python code when it is gone, where an interrupt would be lost
        self._loans.add(weakref.ref(loan, self._loans.discard))
        return np.asarray(loan)

    @property
    def has_lent(self) -> bool:
        """Whether something that was lent is still in use."""
        return bool(self._loans)


class _Loan:
    """What all views of a lent array have as their base."""

    def __init__(self, array: NDArray) -> None:
        self.__array_interface__ = array.__array_interface__ | {
            "data": (array.ctypes.data, True)  # read-only
        }
        self._array = array


def is_lent(array: NDArray) -> bool:
    """Whether an array is what :meth:`Lender.lend` returned.

    Parameters
    ----------
    array : ndarray
    """
    return isinstance(array.base, _Loan)
