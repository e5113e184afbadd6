"""The site lists every public name and every page."""

import re
from pathlib import Path

import pytest

from tests.fuzz.public import DEEP, MODULES, public_names

DOCS = Path(__file__).resolve().parents[2] / "docs"
OTHERS = ("annealvi.inference", "annealvi.model")
#: No page of their own: a version, and dicts of names that the functions' docstrings list.
WITHOUT = {"__version__", "KINDS", "DISTANCES", "STATISTICS"}


def listed(name):
    """The lines of toctrees and of autosummary tables of a page, without titles and folders."""
    text = (DOCS / name).read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^ *(?:[\w ]+<)?([\w./]+)>?$", text)
    return {line.split(".")[-1] for line in lines}


def without_page(modules):
    names = {name for module in modules for name in public_names(module)}
    return names - listed("api.rst") - WITHOUT


def test_every_public_name_has_a_page_in_the_reference():
    assert not without_page((*MODULES, *OTHERS))


@pytest.mark.deep
def test_every_public_name_of_the_deep_models_has_a_page():
    assert not without_page(DEEP)


def test_every_page_is_in_a_table_of_contents():
    tables = ("index.md", "user_guide.md", "measurements.md", "project.md")
    linked = set().union(*map(listed, tables)) | {"index"}
    pages = {path.stem for pattern in ("*.md", "*.rst") for path in DOCS.glob(pattern)}
    assert not pages - linked - {"sg_execution_times"}
