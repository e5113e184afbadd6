"""Checkpoint: when it writes, and what signals do to a fit that it watches."""

import copy
import os
import pickle
import random
import signal
from types import SimpleNamespace

import pytest
from sklearn.base import clone

from annealvi import TemperedLDA, callbacks
from annealvi.callbacks import Checkpoint
from bench.studies import kills
from tests.asserts import refused
from tests.callbacks import stop_at
from tests.lda.resumed import bits, corpus, make
from tests.marks import cases
from tests.side_by_side import at_once


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


def counting(steps):
    return lambda estimator, monitor: steps.append(monitor.step)


class Writes(TemperedLDA):
    n_written = 0

    def save_state(self, path):
        self.n_written += 1
        super().save_state(path)


@pytest.mark.usefixtures("no_finish")
def test_it_writes_at_most_that_often_and_at_the_end(path, monkeypatch):
    clock = iter(range(0, 10_000, 10))  # it is read once for a step, and twice if it writes
    monkeypatch.setattr(callbacks, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    for seconds, expected in ((1e6, 1), (0, 21), (45, 5)):
        steps, lda = [], Writes(4, batch_size=16, max_iter=4, n_init=1, random_state=0)
        lda.set_params(callback=[Checkpoint(path, seconds), counting(steps)]).fit(corpus())
        assert (lda.n_written, len(steps)) == (expected, 20)


def test_it_is_called_after_the_others(path):
    """So that it keeps what they recorded at the same step."""
    X = corpus()

    def record(estimator, monitor):
        monitor.record(mine=monitor.step)
        if monitor.step == 5:
            raise KeyboardInterrupt

    lda = make(callback=[Checkpoint(path, seconds=0), record])
    with pytest.raises(KeyboardInterrupt):
        lda.fit(X)
    assert list(make().fit(X, resume=path).history_["mine"][:4]) == [1, 2, 3, 4]


def test_a_path_that_cannot_be_written(tmp_path):
    refused("PathLike", Checkpoint, 3, error=TypeError)
    steps = []
    lda = make(callback=[counting(steps), Checkpoint(tmp_path / "none" / "a")])
    refused(
        r"There is no folder '.*none'",
        lda.fit,
        corpus(),
        error=FileNotFoundError,
    )
    assert not steps  # it is said before the fit


def test_copies(path):
    one = Checkpoint(path, seconds=5)
    lda = make(callback=[one])
    assert Checkpoint(os.fsencode(path)).path == one.path
    for other in [copy.deepcopy(one), pickle.loads(pickle.dumps(one)), clone(lda).callback[0]]:
        assert (other.path, other.seconds) == (os.fspath(path), 5)
    assert repr(one) == f"Checkpoint({os.fspath(path)!r}, seconds=5)"
    seen = []
    lda.callback.insert(0, lambda estimator, monitor: seen.append(pickle.dumps(one)))
    lda.fit(corpus())
    assert seen[0] == seen[-1]


def interrupting(number, *steps):
    def callback(estimator, monitor):
        for _ in range(steps.count(monitor.step)):
            signal.raise_signal(number)

    return callback


@pytest.mark.usefixtures("no_finish")
@pytest.mark.parametrize("step", [7, 20], ids=["amid", "the last"])
def test_an_interrupt_waits_for_the_step_and_is_kept(path, step):
    X = corpus()
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    lda = make(callback=[interrupting(signal.SIGINT, step), Checkpoint(path, seconds=1e6)])
    with pytest.raises(KeyboardInterrupt):
        lda.fit(X)
    assert lda.n_batch_iter_ == step + 1
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    steps = []
    resumed = make(callback=counting(steps)).fit(X, resume=path)
    assert len(steps) == 20 - step and bits(resumed, X) == bits(make().fit(X), X)


@pytest.mark.usefixtures("no_finish")
def test_a_handler_of_the_program(path):
    """It is called after the checkpoint; if it raises nothing the fit goes on."""
    seen = []
    handler = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(path.exists()))
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        stops = interrupting(signal.SIGTERM, 3, 9), interrupting(signal.SIGINT, 3)
        lda = make(callback=[*stops, Checkpoint(path, seconds=1e6)]).fit(corpus())
    finally:
        signal.signal(signal.SIGTERM, handler)
        signal.signal(signal.SIGINT, ignored)
    assert seen == [True, True] and lda.n_batch_iter_ == 21


def test_an_error_while_a_signal_waits(path):
    """The signal is not lost."""
    fail = stop_at(7, RuntimeError("mine"))
    lda = make(callback=[interrupting(signal.SIGINT, 7), fail, Checkpoint(path, seconds=1e6)])
    with pytest.raises(KeyboardInterrupt) as caught:
        lda.fit(corpus())
    assert str(caught.value.__context__) == "mine"


def test_in_another_thread(path):
    """Where Python sets no handlers."""
    lda = make(callback=Checkpoint(path, seconds=0))
    at_once(lambda: lda.fit(corpus()))
    assert path.exists()


@pytest.mark.slow
@cases("number", signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow))
def test_a_process_that_is_told_to_stop(number, path, capfd):
    with kills.start("LDA", path, seconds=1e6) as process:
        for _ in range(30):
            process.stdout.readline()
        process.send_signal(number)
    assert process.returncode == -number
    assert ("KeyboardInterrupt" in capfd.readouterr().err) == (number == signal.SIGINT)
    assert kills.fit("LDA", path) == kills.fit("LDA")


@pytest.mark.slow
@pytest.mark.parametrize("kind", kills.KINDS)
def test_processes_that_are_killed(kind):
    assert kills.study(kind, 3, random.Random(0))[1] == 3


@pytest.mark.parametrize("n_signals", [1, 2])
def test_two_checkpoints_and_one_interrupt(tmp_path, n_signals):
    """Each has noted the other's handler, or the program's; that one is there at the end."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    interrupt = interrupting(signal.SIGINT, *[3] * n_signals)
    callbacks = [interrupt, *(Checkpoint(tmp_path / name, seconds=1e6) for name in "ab")]
    with pytest.raises(KeyboardInterrupt):
        make(callback=callbacks).fit(corpus())
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.usefixtures("no_finish")
def test_one_checkpoint_in_two_fits(path):
    checkpoint, seen = Checkpoint(path, seconds=0), []

    def fit_another(estimator, monitor):
        if monitor.step == 2:
            refused("already used by another fit", make(callback=checkpoint).fit, corpus())
            seen.append(monitor.step)

    X = corpus()
    lda = make(callback=[fit_another, checkpoint]).fit(X)
    assert seen == [2] and bits(lda, X) == bits(make().fit(X), X)
