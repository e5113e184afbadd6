"""The fuzzer: what it finds, and a small budget of its cases in each run."""

import inspect
import math
import signal
from importlib import import_module
from itertools import islice

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from annealvi import TemperedLDA
from tests.fuzz.__main__ import main
from tests.fuzz.judge import Failure, Trial, UserError, is_unsound
from tests.fuzz.run import CHILD, Target, run_case, schedule, search
from tests.fuzz.strategies import PATHS
from tests.fuzz.targets import (
    BY_NAME,
    ELSEWHERE,
    KEPT,
    MADE,
    all_targets,
    operate,
    run_function,
)


def trial(draw=None):
    return Trial(draw, lambda line: None)


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
        trial().call("function", function)


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
    one = trial()
    one.call("function", function)
    assert dict(one.outcomes) == {outcome: 1}


def test_an_answer_to_unsound_input_is_a_failure():
    X = sparse.csr_matrix(np.eye(3))
    assert not is_unsound(X)
    X.indices[1] = 7
    assert is_unsound(X)
    with pytest.raises(Failure, match="unsound input accepted"):
        trial().call("function", lambda X: 1, X)
    X = sparse.csr_matrix(np.eye(3))
    X.indptr = np.array([0, 250, 2, 3], dtype=np.uint8)
    assert is_unsound(X)


@pytest.mark.filterwarnings("ignore")
def test_a_new_public_method_is_called(monkeypatch):
    """Without more ado: names and arguments are read from the package."""
    seen = []
    monkeypatch.setattr(TemperedLDA, "made_up", lambda self, n: seen.append(n), raising=False)
    draws = Target(lambda t: [operate(t, TemperedLDA()) for _ in range(20)])
    for number in range(3):
        assert not run_case(draws, (0, "test", number), lambda line: None)["failures"]
    assert len(seen) > 3


def test_every_argument_of_a_function_has_a_strategy():
    """What is in no table is only drawn from odd values."""
    unknown = set()
    for name, (run, _) in all_targets().items():
        if run.func is run_function:
            function = getattr(import_module(run.keywords["module"]), run.keywords["name"])
            parameters = inspect.signature(function).parameters.values()
            unknown |= {f"{name}({one.name})" for one in parameters if not has_strategy(one)}
    assert not unknown


def has_strategy(parameter):
    known = set(BY_NAME).union(*ELSEWHERE.values()) | KEPT | PATHS | MADE
    return parameter.name in known or parameter.kind is parameter.VAR_KEYWORD


def draw_a_few(t):
    for _ in range(5):
        t.call("draw", lambda x: None, t.draw(st.floats() | st.text()))


def test_a_case_draws_the_same_again():
    logs = [[], [], []]
    for log, number in zip(logs, (3, 3, 4), strict=True):
        run_case(Target(draw_a_few), (1, "test", number), log.append)
    assert logs[0] == logs[1] != logs[2]


def too_small(t):
    x = t.draw(st.integers(0, 10**6))
    t.call("root", lambda x: math.nan if x > 1000 else 0.0, x)


def test_a_case_is_shrunk():
    cases = (run_case(Target(too_small), (0, "a", n), str, shrink=True) for n in range(5))
    logs = [failure["log"] for case in cases for failure in case["failures"]]
    assert "root(1001)" in logs


def test_a_budget_of_cases(capsys):
    """With a fixed seed; `make fuzz` searches with others.  Each target answers now and then."""
    cases = str(len(all_targets()))
    status = main(["--seed", "0", "--cases", cases, "--examples", "3", "--limit", "120"])
    output = capsys.readouterr().out
    assert status == 0, output
    assert output.startswith("seed 0\n")
    assert all(f"\n{name} " in output for name in all_targets())


@pytest.mark.slow
def test_a_larger_budget_of_cases():
    targets = all_targets()
    report = search(islice(schedule(targets), 800), seed=1, limit=120)
    assert not report.findings, "\n".join(map(str, report.findings))
    silent = {name for name, counts in report.outcomes.items() if not counts["answer"]}
    assert not silent - {"corpus.to_gensim", "load"}, "only errors: the arguments are no good"


@pytest.mark.slow
@pytest.mark.deep
def test_a_budget_of_the_deep_models():
    targets = all_targets(deep=True)
    cases = ((name, number) for number in range(2) for name in targets)
    report = search(cases, seed=0, limit=120, deep=True)
    assert not report.findings, "\n".join(map(str, report.findings))


LOST = """
import os, signal, time
from tests.fuzz.run import Target, work

def crash(trial):
    trial.call("before", lambda: 1)
    os.kill(os.getpid(), signal.SIGSEGV)

def hang(trial):
    time.sleep(60)

def succeed(trial):
    trial.call("function", lambda: 1)

def fail(trial):
    trial.call("function", lambda: float("nan"))

work({f.__name__: Target(f) for f in (crash, hang, succeed, fail)})
"""


def test_crashes_and_hangs_are_noticed(monkeypatch):
    """And the search goes on after them."""
    monkeypatch.setattr("tests.fuzz.run.CHILD", LOST)
    assert CHILD != LOST
    cases = [("crash", 0), ("hang", 0), ("succeed", 0), ("fail", 0), ("succeed", 1)]
    report = search(iter(cases), seed=5, limit=0.5)
    assert report.outcomes["succeed"]["answer"] == report.cases["succeed"] == 2
    kinds = {finding.case: (finding.kind, finding.text) for finding in report.findings}
    assert kinds["5:crash:0"] == ("crash", signal.Signals.SIGSEGV.name)
    assert kinds["5:hang:0"][0] == "hang"
    assert kinds["5:fail:0"][0] == "silent NaN"
    assert "before()" in next(f for f in report.findings if f.kind == "crash").log


def test_one_case_again(capsys, monkeypatch):
    monkeypatch.setattr("tests.fuzz.run.CHILD", LOST)
    assert main(["--case", "2:succeed:0"]) == 0
    assert main(["--case", "2:fail:0"]) == 1
    assert "silent NaN in case 2:fail:0" in capsys.readouterr().out
