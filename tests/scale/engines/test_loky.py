"""The engine on processes of this machine."""

import os

import pytest

from annealvi.scale.engines.base import WorkersLostError
from annealvi.scale.engines.loky import LokyEngine
from tests.scale.engines import jobs


@pytest.fixture(scope="module")
def engine():
    with LokyEngine(2, 1) as found:
        yield found


def test_results_of_results(engine):
    ten = engine.put(10)
    some = [engine.submit(jobs.add, ten, i, slot=i) for i in range(3)]
    assert engine.gather([engine.submit(jobs.total, some), engine.submit(jobs.add, *some)]) == [
        33,
        33,
    ]
    assert os.getpid() not in engine.gather([engine.submit(jobs.process) for _ in range(3)])
    assert not engine.is_lost(ten)
    assert (engine.n_workers, engine.threads()) == (2, 1)


def test_a_result_is_made_once_in_a_process(engine, tmp_path):
    log = tmp_path / "log"
    part = engine.submit(jobs.count, str(log))
    for _ in range(3):
        engine.gather([engine.submit(jobs.add, part)])
    processes = log.read_text().split()
    assert len(processes) == len(set(processes))


def test_files_of_values_that_nobody_needs_are_removed():
    with LokyEngine(1) as engine:
        value = engine.put("some text")
        folder = os.path.dirname(value.arguments[0])
        assert len(os.listdir(folder)) == 1
        assert engine.gather([engine.submit(len, value)]) == [9]
        del value
        assert not os.listdir(folder)
    assert not os.path.exists(folder)


def test_errors_of_a_function(engine):
    with pytest.raises(FileNotFoundError, match="no such thing"):
        engine.gather([engine.submit(jobs.fail, "no such thing")])
    assert engine.gather([engine.submit(jobs.add, 1, 2)]) == [3]


def test_a_worker_that_dies(engine, tmp_path):
    part = engine.submit(jobs.add, 40, 2)
    step = [engine.submit(jobs.die_once, str(tmp_path / "marker"))]
    with pytest.raises(WorkersLostError):
        engine.gather(step)
    assert engine.gather([*step, part]) == ["alive", 42]
