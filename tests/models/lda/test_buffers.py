"""The buffers of training steps: who has them, and when they are released."""

import os

import numpy as np

from annealvi.model import Batch, Tempering
from annealvi.models.lda import LDA
from annealvi.models.lda.workspace import Buffers
from tests.models.lda.streams import stream

SHAPE = (9, 8, np.float64)


def test_large_buffers_are_released_between_steps(monkeypatch):
    X = stream(4)
    model = LDA(5, X.shape[1], alpha=0.1, eta=0.1)
    model.initialize(np.random.RandomState(0))
    model.local_step(Batch(X, slice(0, 4)), Tempering())
    model.buffers.release_large()
    assert model.buffers.training is not None
    monkeypatch.setattr("annealvi.models.lda.workspace.LARGE_BYTES", 1)
    model.buffers.release_large()
    assert model.buffers.training is None
    model.local_step(Batch(X, slice(0, 4)), Tempering())


def test_they_are_made_once_and_for_another_number_of_threads_only_the_workspace():
    buffers = Buffers()
    weights, work, statistics = first = buffers.ready(*SHAPE, 1)
    assert buffers.ready(*SHAPE, 1) is first
    more = buffers.ready(*SHAPE, 3)
    assert more.weights is weights and more.statistics is statistics
    assert (work.n_threads, more.work.n_threads) == (1, 3)


def test_a_fit_within_a_fit():
    buffers = Buffers()
    with buffers.used(keep=True):
        made = buffers.ready(*SHAPE, 1)
        with buffers.used(keep=True):
            assert buffers.training is made
        assert buffers.in_use
    assert buffers.training is made and not buffers.in_use


def test_a_forked_child_has_no_use_for_those_of_a_step_that_was_not_its_own(monkeypatch):
    buffers = Buffers()
    parent = os.getpid()
    with buffers.used(keep=True):
        made = buffers.ready(*SHAPE, 1)
        monkeypatch.setattr(os, "getpid", lambda: parent + 1)  # as in a child forked here
        assert not buffers.in_use
        with buffers.used(keep=True):
            assert buffers.training is None
            own = buffers.ready(*SHAPE, 1)
        assert buffers.training is own is not made and not buffers.in_use


def test_a_fork_between_two_fits_leaves_them(monkeypatch):
    buffers = Buffers()
    with buffers.used(keep=True):
        made = buffers.ready(*SHAPE, 1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with buffers.used(keep=True):
        assert buffers.training is made
