"""The engine on Dask's scheduler, with real worker processes."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from annealvi import _version
from annealvi.scale import engines
from annealvi.scale.corpus import gather
from annealvi.scale.engines import DaskEngine
from tests.asserts import refused
from tests.scale.engines import jobs

pytestmark = pytest.mark.slow


@pytest.fixture
def engine(workers):
    return DaskEngine(workers)


def test_results_of_results(engine):
    ten = engine.put(np.array(10))
    some = [engine.submit(jobs.add, ten, i, slot=i) for i in range(3)]
    total = [engine.submit(sum, some, slot=1), engine.submit(jobs.add, *some)]
    assert engine.gather(total) == [33, 33]
    assert (engine.n_workers, engine.threads(), engine.n_losses) == (2, 1, 0)


def test_slots_are_workers(engine):
    pids = engine.gather([engine.submit(jobs.process, slot=i) for i in (0, 1, 2, 3)])
    assert pids[:2] == pids[2:] and len(set(pids)) == 2 and os.getpid() not in pids


def test_delayed_values_are_computed_there(engine):
    from dask import delayed

    handle = engine.submit(jobs.add, delayed(jobs.process)(), slot=1)
    (pid,) = engine.gather([handle])
    assert [pid] == engine.gather([engine.submit(jobs.process, slot=1)])


def test_errors_of_a_function(engine):
    with pytest.raises(FileNotFoundError, match="no such thing"):
        engine.gather([engine.submit(jobs.fail, "no such thing"), engine.submit(jobs.add, 1)])
    with pytest.raises(FileNotFoundError, match="no such thing"):
        engine.gather([engine.submit(jobs.add, engine.submit(jobs.fail, "no such thing"))])
    assert engine.gather([engine.submit(jobs.add, 1, 2)]) == [3]


def test_an_interrupt_cancels_the_step(engine, monkeypatch):
    monkeypatch.setattr(engines, "INTERVAL", 0.1)
    handles = [engine.submit(jobs.sleep, 2.0)]

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_check_losses", interrupt)
    with pytest.raises(KeyboardInterrupt):
        engine.gather(handles)
    assert handles[0].status == "cancelled"


@pytest.mark.parametrize("n_killed", [1, 2])
def test_workers_that_die(clients, n_killed):
    with clients(2) as client:
        engine = DaskEngine(client)
        parts = [engine.submit(jobs.add, i, slot=i) for i in range(2)]
        pids = list(client.run(os.getpid).values())
        engine.gather(parts)
        seconds = iter([1.0] + 20 * [0.1])

        def submit():
            n_workers, pause = engine.n_workers, next(seconds)
            assert n_workers
            for i, part in enumerate(parts):
                if engine.is_lost(part):
                    parts[i] = engine.submit(jobs.add, i, slot=i)
            value = engine.put(5)
            step = [engine.submit(jobs.sleep, pause, part, slot=i) for i, part in enumerate(parts)]
            return [*step, engine.submit(jobs.add, value, *step)]

        for pid in pids[:n_killed]:
            threading.Timer(0.3, os.kill, [pid, signal.SIGKILL]).start()
        assert gather(engine, submit) == [0, 1, 6]
        assert set(client.run(os.getpid).values()) != set(pids)


def test_no_workers_for_too_long(clients):
    with clients(1) as client:
        engine = DaskEngine(client, patience=0.5)
        client.cluster.scale(0)
        deadline = time.monotonic() + 30
        while client.nthreads() and time.monotonic() < deadline:
            time.sleep(0.1)
        with pytest.raises(RuntimeError, match=r"no workers for .* seconds. Start some"):
            engine.gather([engine.submit(jobs.add, 1)])
    refused(r"'client' parameter must be a client that is connected", DaskEngine, client)


def test_no_client(monkeypatch):
    refused(r"'client' parameter is None, and Dask has no current", DaskEngine)
    for wrong in (3, "tcp://127.0.0.1:8786"):
        refused(r"'client' parameter must be a synchronous", DaskEngine, wrong, error=TypeError)


def test_workers_of_another_version(workers, monkeypatch):
    monkeypatch.setattr(engines, "__version__", "9.9")
    message = rf"annealvi 9\.9, .* The worker .* has annealvi {_version.__version__}"
    with pytest.raises(RuntimeError, match=message):
        DaskEngine(workers)


def test_workers_without_annealvi(workers, monkeypatch):
    monkeypatch.setattr(engines, "_version", jobs.Broken())
    with pytest.raises(ImportError, match=r"The worker .* cannot import annealvi. Install"):
        DaskEngine(workers)
