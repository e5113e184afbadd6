"""The buffers of training steps: who has them, and when they are released."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from annealvi.models.lda.block import Workspace
from annealvi.models.lda.topics import Statistics, TopicWeights

#: Buffers of training are released while the fit is evaluated, if they take more bytes than this.
LARGE_BYTES = 1 << 25


class Training(NamedTuple):
    """What training steps write to."""

    weights: TopicWeights
    work: Workspace
    statistics: Statistics


class Buffers:
    """The buffers of a model's training steps, kept from the first step until they are released.

    They belong to the one thread that makes these steps.  Copies and pickles of a model have
    empty ones.  What they hold never changes a result: each step computes all that it reads.
    Kept, they spare a stream of small portions the time in which the system hands out memory,
    page by page.
    """

    def __init__(self) -> None:
        self.training: Training | None = None
        self._shape: tuple[int, int, np.dtype] | None = None
        self._process: int | None = None  # the one in which steps are being made
        self._repeated = False

    def ready(self, n_features: int, width: int, dtype: DTypeLike, n_threads: int) -> Training:
        """The buffers for a step, made if there are none for this number of threads."""
        shape = n_features, width, np.dtype(dtype)
        if self.training is None or self._shape != shape:
            self._shape = shape
            weights = TopicWeights(*shape, bounded=True)
            self.training = Training(weights, Workspace(*shape, n_threads), Statistics(*shape))
        elif self.training.work.n_threads != n_threads:
            self.training = self.training._replace(work=Workspace(*shape, n_threads))
        self.training.work.indices.repeated = self._repeated
        return self.training

    @property
    def in_use(self) -> bool:
        """Whether a fit is under way, in this process."""
        return self._process == os.getpid()

    @contextmanager
    def used(self, *, keep: bool = False, repeated: bool = False) -> Iterator[None]:
        """Return the context of a fit, which releases the buffers at its end."""
        before, self._repeated = self._repeated, repeated
        outer = self._process if self.in_use else None  # of a callback that fits once more
        if outer is None and self._process is not None:
            self.release()  # in a forked child, of a step of the parent's that was not its own
        kept = False
        try:
            self._process = os.getpid()
            yield
            kept = keep
        finally:
            self._process, self._repeated = outer, before
            if not kept:
                self.release()
            elif self.training is not None:  # the next call may bring other documents in this X
                self.training.work.indices.forget()

    def release(self) -> None:
        """Give the memory back.  The next step makes new ones."""
        self.training = None

    def release_large(self) -> None:
        """Give the memory back between two steps if it is much."""
        if self.training is not None and self.training.statistics.nbytes > LARGE_BYTES:
            self.release()

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        return Buffers, ()


#: Buffers of this process' tasks that no task uses now, the last used at the end.
_free: deque[Buffers] = deque()


@contextmanager
def lent_buffers() -> Iterator[Buffers]:
    """Return the context of tasks for another process: buffers, kept for later tasks.

    One call after the other gets the same ones.
    """
    try:
        buffers = _free.pop()
    except IndexError:
        buffers = Buffers()
    try:
        with buffers.used(keep=True):
            if buffers.training is not None:
                buffers.training.weights.outdate()  # they may be of other topics
            yield buffers
    finally:
        _free.append(buffers)
