"""The names on the map of the code exist in the files that it gives for them."""

import re

import pytest

from bench import CHECKOUT
from bench.structure import PACKAGE, defined

MAP = (CHECKOUT / "docs/maintainers/map.md").read_text("utf-8")
FILE = r"([\w./]+\.(?:py|pyx|h))"
#: Names in `file` or (`file`), such as `a`, `b` and `c`, and the lines of the tree of calls.
PAIRS = re.findall(rf"((?:`[\w.]+`(?:,\s| and\s))*`[\w.]+`)\s(?:in\s|of\s|\()`{FILE}`", MAP)
PAIRS += re.findall(rf"[├└] ([\w., ]+?) +{FILE} ", MAP)


@pytest.mark.parametrize(("names", "file"), sorted(set(PAIRS)))
def test_names_exist_in_their_file(names, file):
    """A file is named from the checkout, from the package, or by its last part."""
    names_on_map = set(re.findall(r"\w+", names)) - {"and"}
    paths = [CHECKOUT / file, *(CHECKOUT / PACKAGE).rglob(file)]
    known = [
        defined(path) if path.suffix == ".py" else set(re.findall(r"\w+", path.read_text("utf-8")))
        for path in paths
        if path.is_file()
    ]
    assert any(names_on_map <= names_of_file for names_of_file in known)


def test_the_map_has_pairs():
    assert len(PAIRS) > 60
