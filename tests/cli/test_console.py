"""What is said while a command works."""

import io
import re

import numpy as np
import pytest
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.cli.console import Console, FitProgress, duration, size_of


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_of_progress_is_replaced(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    console = Console()
    console.progress("reading")
    console.progress("counting words")
    console.say("done")
    console.progress("more")
    console.clear()
    shown = terminal.getvalue()
    assert shown == (f"reading\r{' ' * 7}\rcounting words\r{' ' * 14}\rdone\nmore\r{' ' * 4}\r")


def test_a_file_gets_lines(capsys):
    console = Console()
    console.progress("reading")
    console.say("done")
    assert capsys.readouterr().err == "reading\ndone\n"
    quiet = Console(quiet=True)
    quiet.progress("reading")
    quiet.say("done")
    assert capsys.readouterr().err == ""


def test_progress_of_a_fit(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    X = sparse.csr_matrix(np.random.RandomState(0).poisson(1.0, (30, 8)).astype(float))
    console = Console()
    console.interval = 0.0
    progress = FitProgress(console, X, "fitting")
    lda = TemperedLDA(2, max_iter=4, random_state=0, total_samples=30.0, callback=progress).fit(X)
    lines = re.findall(
        r"fitting: pass (\d) of 4(?:, \d+ s left)?, bound (-\d\.\d{3}) nats a word",
        terminal.getvalue(),
    )
    assert [int(number) for number, _ in lines] == [2, 3, 4]
    # all documents are in the sample
    assert float(lines[-1][1]) == pytest.approx(-np.log(lda.bound_), abs=0.2)
    plain = TemperedLDA(2, max_iter=4, random_state=0, total_samples=30.0).fit(X)
    np.testing.assert_array_equal(lda.components_, plain.components_)


def test_numbers_for_people():
    assert [duration(s) for s in (0.2, 12.4, 200, 4000)] == ["1 s", "12 s", "3 min", "1 h 07 min"]
    assert [size_of(n) for n in (3, 5000, 4_100_000)] == ["1 kB", "5 kB", "4.1 MB"]
