"""The progress of a fit in a file."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.files import read, write
from annealvi.inference import Monitor


def monitor_with_records():
    monitor = Monitor()
    for step in range(5):
        monitor.advance(0.3, 1 + 1 / (1 + step))
        if step != 2:
            monitor.record(elbo=-3.0 / (1 + step))
        if step > 2:
            monitor.record(mine=np.float32(step), none=None, elbo=np.nan)
    return monitor


def go_on(monitor):
    monitor.record(late=1)  # at a step that has a record
    monitor.advance(0.1, 1.0)
    monitor.record(elbo=1.0)


@pytest.mark.parametrize("make", [Monitor, monitor_with_records])
def test_a_monitor_comes_back(make, tmp_path):
    monitor, again = make(), Monitor()
    write(tmp_path / "a", "test", {"monitor": monitor.state_dict()})
    again.load_state_dict(read(tmp_path / "a", "test")["tree"]["monitor"])
    for _ in range(2):
        assert list(again.history) == list(monitor.history)
        for name, values in monitor.history.items():
            assert_array_equal(again.history[name], values, strict=True)
        for name in ("step", "passes", "last_advance", "temperature", "temperature_path"):
            assert getattr(again, name) == getattr(monitor, name)
        assert again.seconds == monitor.seconds
        go_on(monitor)
        go_on(again)


@pytest.mark.parametrize("value", ["high", [1.0, 2.0], np.ones(2)])
def test_records_that_are_no_numbers(value):
    monitor = Monitor()
    monitor.record(mine=value)
    with pytest.raises(TypeError, match="records of a fit cannot be written to a file: "):
        monitor.state_dict()


FEW = monitor_with_records().state_dict()["history"]


@pytest.mark.parametrize(
    "changes",
    [
        *(dict(step=-1), dict(passes=np.inf), dict(seconds="1"), dict(history=3)),
        dict(temperature_path=np.array([1.0, 1.0, 1.0, 1.0, np.nan])),
        *(dict(history={}), dict(history={name: FEW[name] for name in FEW if name != "pass"})),
        *(dict(history=FEW | {"elbo": wrong}) for wrong in (np.ones(3), np.ones((4, 1)), 1.0)),
        *(dict(history=FEW | {"step": np.full(4, wrong)}) for wrong in (np.inf, np.nan)),
    ],
)
def test_forged_monitors(changes):
    tree = monitor_with_records().state_dict()
    Monitor().load_state_dict(tree)
    with pytest.raises(ValueError, match="file is damaged: '"):
        Monitor().load_state_dict(tree | changes)
