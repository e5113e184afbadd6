"""The demo as a newcomer runs it."""

import sys

import pytest


@pytest.mark.slow
def test_demo(call):
    pytest.importorskip("plotly")
    done = call("demo")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("topic  share"))
    assert "2004 to 2019" in lines[head] and "mostly in" in lines[head]
    topics = lines[head + 1 : head + 31]
    assert all(line.split()[1].endswith("%") and "." in line.split()[3] for line in topics)
    assert any(" robots " in line and "cs.RO" in line for line in topics)
    page = (done.place / "annealvi_demo.html").read_text(encoding="utf-8")
    assert "cs.RO" in page and 'id="time"' in page
    assert "Report: annealvi_demo.html" in done.out


def test_another_file(refused):
    pytest.importorskip("plotly")
    assert "must be a file in a folder that exists" in refused("demo", "--output", "no/x.html")


def test_without_plotly(monkeypatch, refused):
    pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "plotly", None)
    error = refused("demo")
    assert "annealvi demo needs plotly and pandas." in error
    assert error.endswith("pip install plotly pandas")
