"""The commands of the Makefile: those that the texts name exist, and CI runs each test once."""

import itertools
import re
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

from tests.oldest import lower_bounds

CHECKOUT = Path(__file__).resolve().parents[2]
MAKEFILE = (CHECKOUT / "Makefile").read_text(encoding="utf-8")


def commands_named():
    """Each command that a text names, with the text."""
    texts = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *CHECKOUT.glob("docs/*.md")]
    for path in texts:
        for target in re.findall(r"(?:^|`)make ([\w-]+)", path.read_text("utf-8"), re.MULTILINE):
            yield target, path.name


@pytest.mark.parametrize("target", sorted({target for target, _ in commands_named()}))
def test_commands_that_the_texts_name_exist(target):
    texts = {name for named, name in commands_named() if named == target}
    assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE), texts


def recipe(target):
    return re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)[1]


def test_ci_runs_each_test_once():
    """The selections of its commands leave out no combination of markers and share none."""
    commands = re.findall(r"^make (\S+)$", (CHECKOUT / ".ci/run").read_text(), re.MULTILINE)
    assert commands.pop() == "docs"  # the site, which runs no test
    selections = [re.search(r"-m ('.+'|\w+)", recipe(target))[1].strip("'") for target in commands]
    assert len(selections) == 3
    for deep, slow in itertools.product([False, True], repeat=2):
        chosen = [eval(selection, {"deep": deep, "slow": slow}) for selection in selections]
        assert sum(chosen) == 1, (deep, slow, selections)
    assert "$(MAKE) test-debug" in recipe("test-all")


# ------------------------------------------------------------- the oldest versions


def pyproject_of(*dependencies):
    return {
        "build-system": {"requires": ["setuptools>=77"]},
        "project": {"dependencies": list(dependencies), "optional-dependencies": {"plot": []}},
    }


def test_each_requirement_has_one_lower_bound():
    bounds = lower_bounds(tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8")))
    assert {"numpy", "scipy", "scikit-learn", "Cython", "torch", "pytest"} <= set(bounds)
    assert all(Version(version).release for version in bounds.values())


def test_lower_bounds():
    pyproject = pyproject_of("numpy>=1.24,<3", "a-b[c]>=2.0.1; python_version > '3'")
    assert lower_bounds(pyproject) == {"setuptools": "77", "numpy": "1.24", "a-b": "2.0.1"}


@pytest.mark.parametrize(
    ("dependencies", "message"),
    [
        (["numpy"], "numpy in pyproject.toml must have one lower bound"),
        (["numpy==2"], "numpy==2 in pyproject.toml must have one lower bound"),
        (["numpy>=1", "numpy>=2"], "numpy has several lower bounds"),
    ],
)
def test_a_requirement_without_one_lower_bound(dependencies, message):
    with pytest.raises(ValueError, match=message):
        lower_bounds(pyproject_of(*dependencies))
