"""What bench/speed/default_rivals.py and one_fit.py compute from what they measure."""

import numpy as np
import pytest

from annealvi.datasets import make_topic_corpus
from bench.speed import default_rivals, one_fit
from bench.speed.default_rivals import Rival, Row


def rows():
    slow, fast = Row("kos", 20), Row("kos", 100)
    slow.seconds = {"base": [3.0, 1.0, 2.0], "head": [3.0, 2.0, 1.0]}  # ratios 1, .5, 2
    fast.seconds = {"base": [4.0, 4.0, 4.0], "head": [1.0, 1.0, 1.0]}
    for row in (slow, fast):
        row.megabytes = {"base": [30.0], "head": [12.5]}
        row.held_out = {"base": -7.0, "head": -6.5}
    fast.rivals = {"a": Rival(8.0, -6.4, 3.0), "b": Rival(2.0, -6.8, None)}
    return [slow, fast]


def test_the_tables():
    text = default_rivals.report(rows())
    assert "| kos, 20 | 2.00 | 2.00 | 1.00 | 30.0 | 12.5 | -7.0000 | -6.5000 |" in text
    assert "| kos, 100 | 4.00 | 1.00 | 4.00 |" in text
    assert "2.00 times as fast (geometric mean) and takes 0.625 of base's seconds" in text
    assert "Least: kos, 20, 1.00." in text
    assert "| kos, 100 | a | 8.0 | 8.0 | -6.4000 | -6.5000 | 3.0 | 3.0 |" in text
    assert "| kos, 100 | b | 2.0 | 2.0 | -6.8000 | -6.5000 | not reached | – |" in text


def test_a_rival_is_scored_until_it_is_as_good():
    scores = iter([-8.0, -7.0, -6.0])
    assert default_rivals.first([1.0, 2.0, 3.0], scores, -7.0) == 2
    assert next(scores) == -6
    assert default_rivals.first([1.0, 2.0], [-8.0, -7.5], -7.0) is None


def test_a_rival_that_is_not_installed_is_skipped(monkeypatch, capsys):
    class Missing:
        def adapter(self):
            raise ImportError("No module named 'tomotopy'")

    monkeypatch.setitem(default_rivals.LIBRARIES, "tomotopy", Missing())
    assert default_rivals.usable(["scikit-learn", "tomotopy"]) == ["scikit-learn"]
    assert capsys.readouterr().err == "tomotopy is skipped: No module named 'tomotopy'\n"


def test_looks_are_off_the_clock(tmp_path, monkeypatch):
    now = 10.0
    monkeypatch.setattr(one_fit.time, "process_time", lambda: now)
    clock = one_fit.Clock(tmp_path)

    def topics():
        nonlocal now
        now += 100
        return np.ones((1, 1))

    for _ in range(2):
        now += 1
        clock.look(topics)
    assert clock.seconds == [1, 2] and clock.spent() == 2


@pytest.mark.parametrize(("library", "n_looks"), [("annealvi", 1), ("scikit-learn", 10)])
def test_each_pass_is_looked_at(library, n_looks, tmp_path, monkeypatch):
    X = make_topic_corpus(120, 50, 3, document_length=20, random_state=0).data
    monkeypatch.setattr(one_fit, "forget_peak", lambda: None)  # for pytest's own process
    monkeypatch.setattr(one_fit, "resident", lambda field: 0.0)
    found = one_fit.measure(library, X.astype(np.float64), 3, 0, tmp_path)
    assert found["megabytes"] is None and len(found["looks"]) == n_looks
    assert found["looks"] == sorted(found["looks"]) and found["looks"][-1] <= found["seconds"]
    for look in range(n_looks):
        topics = np.load(tmp_path / f"{look}.npy")
        assert topics.shape == (3, 50)
        np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-5)
