"""What CONTRIBUTING says of the house, as far as the source can tell, and what tells it."""

import textwrap

import pytest

from bench import CHECKOUT
from bench.structure import (
    circles,
    figures,
    fit_figures,
    imports,
    modules,
    private_uses,
    ratio,
    upward_imports,
)

GRAPH = imports(CHECKOUT)


def test_nothing_imports_upwards():
    assert not upward_imports(GRAPH)


def test_no_circle_of_imports_not_for_types_either():
    assert not circles(GRAPH)


def test_nothing_uses_the_private_attributes_of_another_object():
    assert not [use for use in private_uses(CHECKOUT) if ": torch." not in use]


@pytest.mark.parametrize("name", [m for m in sorted(modules(CHECKOUT)) if "_kernels" in m])
def test_kernels_know_nothing_of_the_house(name):
    assert all(target.startswith("annealvi._kernels") for target in GRAPH[name])


#: A checkout of four modules, with one of each fault.
FILES = {
    "annealvi/__init__.py": "",
    "annealvi/models/lda.py": '''
        """A page.

        Of two lines.
        """
        from annealvi.lda import fit  # upwards, and a circle

        def step(tempering, *, owner):
            return tempering._value
        ''',
    "annealvi/lda/fit.py": """
        from annealvi.models import lda
        from annealvi.temperature import base

        class Fit:
            def state_dict(self):
                return {}

            def hot(self, owner):
                return isinstance(self.temperature, base.Fixed | int)
        """,
    "annealvi/temperature/base.py": """
        class Fixed:
            pass
        """,
    "tests/test_a.py": "a = 1\n",
    "bench/b.py": "b = 1\n\n",
    "docs/page.md": "two words",
}
FOUND = {
    "lines of code of the package": 12,
    "lines of docstrings": 4,
    "files": 4,
    "lda + models/lda + inference: code": 7,
    "lda + models/lda + inference: files": 1,
    "code of persistence": 2,
    "classes at work in a fit before its kernel": "not built",
    "frames from fit to the kernel": "not built",
    "files from fit to the kernel": "not built",
    "isinstance of temperatures outside temperature/": 1,
    "functions that take owner": 2,
    "functions that take tempering": 1,
    "circles of imports": 1,
    "upward imports": 1,
    "private uses across files": 1,
    "lines of tests": 1,
    "lines of bench": 2,
    "words of docs/*.md": 2,
}


def test_figures_of_a_checkout(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    assert figures(tmp_path) == FOUND
    assert private_uses(tmp_path) == ["annealvi/models/lda.py:8: tempering._value"]
    assert ratio(4, 3) == "0.75" and ratio("not built", 3) == ratio(0, 0) == "–"


@pytest.mark.slow
def test_a_fit_reaches_its_kernel():
    classes, frames, files = fit_figures(CHECKOUT)
    assert 1 < classes < 60 and 2 < files <= frames < 30
