"""docs/promises.md: each promise names tests or commands, and those exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "promises.md"


def rows():
    """The promise and what holds it, of each row of the tables."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("|") and cells[0] != "promise" and not line.startswith("|---"):
            yield cells


@cache
def functions_of(path):
    """Names of the test functions in a file."""
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def missing(holder):
    """Why a test or command cannot hold a promise, or None."""
    if match := re.fullmatch(r"`make ([\w-]+)`", holder):
        targets = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
        if not re.search(rf"^{match[1]}:", targets, flags=re.MULTILINE):
            return f"the Makefile has no {match[1]}"
    elif match := re.fullmatch(r"`(tests/[\w/]+\.py)::(\w+)`", holder):
        if not (CHECKOUT / match[1]).is_file():
            return f"there is no file {match[1]}"
        if match[2] not in functions_of(match[1]):
            return f"{match[1]} has no {match[2]}"
    else:
        return f"{holder} is neither a test nor a command"
    return None


def test_each_promise_is_held_by_tests_that_exist():
    promises = list(rows())
    assert len(promises) > 20
    assert all(len(cells) == 2 for cells in promises)
    faults = [
        (promise, fault)
        for promise, holders in promises
        for holder in holders.split(", ")
        if (fault := missing(holder)) is not None
    ]
    assert not faults


@pytest.mark.parametrize(
    ("holder", "fault"),
    [
        ("`tests/project/test_promises.py::test_a_fault_is_found`", None),
        ("`make test`", None),
        ("`tests/project/test_promises.py::test_no`", "has no test_no"),
        ("`tests/project/test_promises.py::missing`", "has no missing"),
        ("`tests/project/test_no.py::test_no`", "no file"),
        ("`make nothing`", "no nothing"),
        ("hope", "neither"),
    ],
)
def test_a_fault_is_found(holder, fault):
    assert missing(holder) is None if fault is None else fault in missing(holder)
