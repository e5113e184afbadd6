"""The fuzzer: what it finds, and a small budget of its cases in each run."""

import inspect
import math
import signal
from itertools import islice

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from annealvi import TemperedLDA
from tests.asserts import refused
from tests.fuzz.__main__ import main
from tests.fuzz.judge import Failure, Trial, UserError
from tests.fuzz.run import CHILD, run_case, schedule, search
from tests.fuzz.targets import KEPT, MADE, OFTEN, all_targets, operate, run_function, usual
from tests.marks import cases
from tests.reference import thing


def unsound():
    X = sparse.csr_matrix(np.eye(3))
    X.indptr = np.array([0, 250, 2, 3], dtype=np.uint8)
    return X


@cases(
    "function, kind",
    (lambda: math.nan, "silent NaN"),
    (lambda: {"a": [np.array([1.0, np.inf])]}, "silent infinity"),
    (lambda: sparse.csr_matrix([[np.nan]]), "silent NaN"),
    (lambda: np.ones(3)[5], "error class"),
    (lambda: None.shape, "error class"),
    (lambda: np.linalg.cholesky(-np.eye(2)), "error class"),
    (lambda: "a" + 1, "unclear error"),
    (lambda: np.ones(2) + np.ones(3), "unclear error"),
)
def test_what_is_a_failure(function, kind):
    one = Trial(None, lambda line: None)
    refused(kind, one.call, "function", function, error=Failure)
    refused("unsound input accepted", one.call, "function", lambda X: 1, unsound(), error=Failure)


def of_the_callback():
    raise UserError("the caller's")


@cases(
    "function, outcome",
    (lambda: np.arange(3.0), "answer"),
    (lambda: TemperedLDA(n_components=0).fit(np.ones((2, 3))), "ValueError"),
    (lambda: TemperedLDA().fit(unsound()), "ValueError"),
    (lambda: TemperedLDA().transform(np.ones((2, 3))), "NotFittedError"),
    (lambda: np.empty(1 << 60, dtype=np.uint8), "MemoryError"),
    (of_the_callback, "the callback's error"),
)
def test_what_is_in_order(function, outcome):
    one = Trial(None, lambda line: None)
    one.call("function", function)
    assert dict(one.outcomes) == {outcome: 1}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_new_public_method_is_called(monkeypatch):
    seen = []
    monkeypatch.setattr(TemperedLDA, "made_up", lambda self, n: seen.append(n), raising=False)
    for number in range(3):
        draws = lambda t: [operate(t, TemperedLDA()) for _ in range(20)]  # noqa: E731
        assert not run_case(draws, (0, "test", number), lambda line: None)["failures"]
    assert len(seen) > 3


def test_every_argument_of_a_function_has_a_strategy():
    """By a constraint, an annotation or its name; otherwise only odd values are drawn."""
    unknown = set()
    for name, target in all_targets().items():
        if target.func is run_function:
            function = thing(**target.keywords)
            for one in inspect.signature(function).parameters.values():
                drawn = one.name in KEPT | MADE or one.kind is one.VAR_KEYWORD
                if not drawn and usual(one.name, one, function, name.split(".")[-1]).is_empty:
                    unknown.add(f"{name}({one.name})")
    assert not unknown


def too_small(t):
    x = t.draw(st.integers(0, 10**6))
    t.call("root", lambda x: math.nan if x > 1000 else 0.0, x)


@pytest.mark.slow
def test_a_case_draws_the_same_again_and_is_shrunk():
    logs = [[], [], []]
    for log, number in zip(logs, (3, 3, 4), strict=True):
        run_case(too_small, (1, "test", number), log.append)
    assert logs[0] == logs[1] != logs[2]
    cases = (run_case(too_small, (0, "a", n), str, shrink=True) for n in range(5))
    assert "root(1001)" in [failure["log"] for case in cases for failure in case["failures"]]


@pytest.mark.slow
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
    report = search(islice(schedule(all_targets(), OFTEN), 400), seed=1, limit=120)
    assert not report.findings, "\n".join(map(str, report.findings))
    silent = {name for name, counts in report.outcomes.items() if not counts["answer"]}
    assert not silent - {"corpus.to_gensim", "load"}, "only errors: the arguments are no good"


@pytest.mark.slow
@pytest.mark.deep
def test_a_budget_of_the_deep_models():
    cases = ((name, number) for number in range(2) for name in all_targets(deep=True))
    report = search(cases, seed=0, limit=120, deep=True)
    assert not report.findings, "\n".join(map(str, report.findings))


LOST = """
import os, signal, time
from tests.fuzz.run import work

def crash(trial):
    trial.call("before", lambda: 1)
    os.kill(os.getpid(), signal.SIGSEGV)

def hang(trial):
    time.sleep(60)

def succeed(trial):
    trial.call("function", lambda: 1)

def fail(trial):
    trial.call("function", lambda: float("nan"))

work({f.__name__: f for f in (crash, hang, succeed, fail)})
"""


@pytest.mark.slow
def test_crashes_and_hangs_are_noticed(monkeypatch, capsys):
    monkeypatch.setattr("tests.fuzz.run.CHILD", LOST)
    assert CHILD != LOST
    cases = [("crash", 0), ("hang", 0), ("succeed", 0), ("fail", 0), ("succeed", 1)]
    report = search(iter(cases), seed=5, limit=0.5)
    assert report.outcomes["succeed"]["answer"] == report.outcomes["succeed"]["cases"] == 2
    kinds = {finding.case: (finding.kind, finding.text) for finding in report.findings}
    assert kinds["5:crash:0"] == ("crash", signal.Signals.SIGSEGV.name)
    assert kinds["5:hang:0"][0] == "hang" and kinds["5:fail:0"][0] == "silent NaN"
    assert "before()" in next(f for f in report.findings if f.kind == "crash").log
    assert main(["--case", "2:succeed:0"]) == 0 and main(["--case", "2:fail:0"]) == 1
    assert "silent NaN in case 2:fail:0" in capsys.readouterr().out
