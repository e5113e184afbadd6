"""The fuzzer: what it covers, what it finds, and a small budget of its cases in each run."""

import math
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from annealvi import TemperedLDA
from tests.fuzz.__main__ import main
from tests.fuzz.judge import Failure, UserError
from tests.fuzz.public import DEEP, covered, surface
from tests.fuzz.run import search
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS, deep_targets
from tests.fuzz.trial import Trial, is_unsound
from tests.fuzz.worker import run_case


def test_every_public_name_has_a_target():
    assert not surface() - covered(TARGETS.values())


@pytest.mark.deep
def test_every_public_name_of_the_deep_models_has_a_target():
    assert not surface(DEEP) - covered(deep_targets().values())


def test_a_new_public_method_needs_a_target(monkeypatch):
    monkeypatch.setattr(TemperedLDA, "made_up", lambda self: None, raising=False)
    assert surface() - covered(TARGETS.values()) == {"TemperedLDA.made_up"}


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda: math.nan, "silent NaN"),
        (lambda: {"a": [np.array([1.0, np.inf])]}, "silent infinity"),
        (lambda: sparse.csr_matrix([[np.nan]]), "silent NaN"),
        (lambda: np.ones(3)[5], "error class"),
        (lambda: None.shape, "error class"),
        (lambda: np.linalg.cholesky(-np.eye(2)), "error class"),
        (lambda: "a" + 1, "unclear error"),
        (lambda: np.ones(2) + np.ones(3), "unclear error"),
    ],
)
def test_what_is_a_failure(function, kind):
    with pytest.raises(Failure, match=kind):
        Trial(0, "test", 0).call("function", function)


def wrong_parameter():
    TemperedLDA(n_components=0).fit(np.ones((2, 3)))


def too_large():
    np.empty(1 << 60, dtype=np.uint8)


def of_the_callback():
    raise UserError("the caller's")


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        (lambda: np.arange(3.0), "answer"),
        (wrong_parameter, "ValueError"),
        (lambda: TemperedLDA().transform(np.ones((2, 3))), "NotFittedError"),
        (too_large, "MemoryError"),
        (of_the_callback, "the callback's error"),
    ],
)
def test_what_is_in_order(function, outcome):
    trial = Trial(0, "test", 0)
    trial.call("function", function)
    assert dict(trial.outcomes) == {outcome: 1}


def test_an_answer_to_unsound_input_is_a_failure():
    X = sparse.csr_matrix(np.eye(3))
    assert not is_unsound(X)
    X.indices[1] = 7
    assert is_unsound(X)
    with pytest.raises(Failure, match="unsound input accepted"):
        Trial(0, "test", 0).call("function", lambda X: 1, X)
    X = sparse.csr_matrix(np.eye(3))
    X.indptr = np.array([0, 250, 2, 3], dtype=np.uint8)
    assert is_unsound(X)


def draw(trial):
    for _ in range(5):
        trial.call("draw", lambda x: None, trial.random.random())


def test_a_case_draws_the_same_again():
    logs = [[], [], []]
    for log, number in zip(logs, (3, 3, 4), strict=True):
        run_case(Target("test", draw, frozenset()), 1, number, log.append)
    assert logs[0] == logs[1] != logs[2]


def test_a_budget_of_cases(capsys):
    """With a fixed seed; `make fuzz` searches with others."""
    status = main(["--seed", "0", "--cases", "150", "--limit", "120"])
    output = capsys.readouterr().out
    assert status == 0, output
    assert output.startswith("seed 0\n") and "150 cases in" in output
    assert all(f"\n{name} " in output for name in TARGETS)


@pytest.mark.slow
def test_a_larger_budget_of_cases():
    report = search(TARGETS, seed=1, cases=6000, limit=120)
    assert not report.findings, "\n".join(map(str, report.findings))


@pytest.mark.slow
@pytest.mark.deep
def test_a_budget_of_the_deep_models():
    report = search(deep_targets(), seed=0, cases=60, limit=120, deep=True)
    assert not report.findings, "\n".join(map(str, report.findings))


LOST = """
import os, signal, time
from tests.fuzz.target import Target
from tests.fuzz.worker import main

def crash(trial):
    trial.call("before", lambda: 1)
    os.kill(os.getpid(), signal.SIGSEGV)

def hang(trial):
    time.sleep(60)

def succeed(trial):
    trial.call("function", lambda: 1)

main({f.__name__: Target(f.__name__, f, frozenset()) for f in (crash, hang, succeed)})
"""


def test_crashes_and_hangs_are_noticed(monkeypatch):
    """And the search goes on after them."""
    begin = subprocess.Popen

    def popen(command, **options):
        return begin([sys.executable, "-c", LOST, *command[3:]], **options)

    monkeypatch.setattr("tests.fuzz.run.subprocess.Popen", popen)
    names = ("crash", "hang", "succeed")
    targets = {name: Target(name, draw, frozenset()) for name in names}
    report = search(targets, seed=5, cases=4, limit=0.5)
    assert report.outcomes["succeed"]["answer"] == report.cases["succeed"] > 0
    kinds = {finding.case: (finding.kind, finding.text) for finding in report.findings}
    assert kinds["5:crash:0"] == ("crash", signal.Signals.SIGSEGV.name)
    assert kinds["5:hang:0"][0] == "hang"
    assert "before()" in next(f for f in report.findings if f.kind == "crash").log


def test_one_case_again(capsys):
    assert main(["--case", "2:Adam:0"]) == 0
    assert capsys.readouterr().out.startswith("Adam(0.")


def test_a_failure_is_an_error_of_the_command(capsys, monkeypatch):
    monkeypatch.setattr("annealvi.proximity.Adam.__call__", lambda self, gradient: gradient / 0)
    with np.errstate(all="ignore"):
        assert main(["--case", "2:Adam:0"]) == 1
    assert "silent" in capsys.readouterr().out
