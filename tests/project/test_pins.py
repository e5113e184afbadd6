"""What builds a release is pinned: actions by commit, packages by hash."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path):
    uses = re.findall(r"uses: *(.*)", path.read_text(encoding="utf-8"))
    assert uses
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in uses), uses


def test_one_commit_for_each_action():
    pins = {
        pin
        for path in WORKFLOWS
        for pin in re.findall(r"uses: *(\S+) #", path.read_text(encoding="utf-8"))
    }
    assert len(pins) == len({pin.partition("@")[0] for pin in pins})


def test_packages_are_pinned_by_hash():
    text = (CHECKOUT / "release" / "requirements.txt").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip()]
    assert any(line.startswith("cibuildwheel==") for line in lines)
    pinned = re.compile(r"[\w.-]+==[\w.]+( +--hash=sha256:[0-9a-f]{64})+ *")
    assert all(pinned.fullmatch(line) for line in lines), lines
