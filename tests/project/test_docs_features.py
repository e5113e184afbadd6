"""docs/features.md names calls that are there: annealvi's, and those of the libraries installed."""

import contextlib
import importlib
import inspect
import io
import re
from pathlib import Path

import pytest

from annealvi.cli import main
from bench.studies import repeats
from tests.marks import slow_values

PAGE = Path(__file__).resolve().parents[2] / "docs" / "features.md"
#: Where the names of each column are looked up.
MODULES = {
    "annealvi": [
        "",
        ".topics",
        ".metrics",
        ".plot",
        ".corpus",
        ".checkpoint",
        ".progress",
        ".dask",
    ],
    "BERTopic": ["", ".representation", ".vectorizers"],
    "gensim": [".models", ".corpora", ".utils", ".parsing.preprocessing"],
    "tomotopy": ["", ".utils", ".label", ".coherence", ".viewer"],
    "scikit-learn": [
        *(".decomposition", ".feature_extraction.text", ".mixture", ".model_selection"),
        ".pipeline",
    ],
    "pyLDAvis": [""],
}
PACKAGES = {"BERTopic": "bertopic", "scikit-learn": "sklearn"}
#: Names that are no calls: a value, a package, and a class that needs PyTorch.
OTHERS = {"random_state", "annealvi.deep", "PoissonDEF"}
NESTED = re.compile(r"^[a-z]+__\w+$")


def tables():
    """The rows of the page's tables, split into cells."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def marks():
    """What each library has, by tasks and libraries."""
    return {
        task: dict(zip(MODULES, cells, strict=True))
        for task, *cells in tables()
        if len(cells) == len(MODULES) and task
    }


def entries():
    """How it is done, by tasks and libraries."""
    found = {}
    for task, *cells in tables():
        if len(cells) == 1 and task != "task":
            lines = [re.fullmatch(r"\*\*(.+?)\*\* (.+)", line) for line in cells[0].split("<br>")]
            found[task] = {line[1]: line[2] for line in lines}
    return found


def calls(library):
    cells = [entry[library] for entry in entries().values() if library in entry]
    return [call for cell in cells for call in re.findall(r"`([^`]+)`", cell) if call not in OTHERS]


def find(modules, name):
    first, *rest = name.split(".")
    for module in modules:
        with contextlib.suppress(AttributeError):
            found = getattr(module, first)
            break
    else:
        raise LookupError(name)
    for attribute in rest:
        if not hasattr(found, attribute):
            # attributes that fit sets are there in the docstring alone
            if not (attribute.endswith("_") and attribute in (found.__doc__ or "")):
                raise LookupError(name)
            return None
        found = getattr(found, attribute)
    return found


def look_up(modules, call):
    """Raise a LookupError unless the call and each parameter named in it are there."""
    match = re.fullmatch(r"([\w.]+)(?:\((\w+=(?:, \w+=)*)\))?", call)
    if not match:
        raise LookupError(call)
    found = find(modules, match[1])
    wanted = set(re.findall(r"\w+", match[2] or ""))
    if wanted and not wanted <= set(inspect.signature(found).parameters):
        raise LookupError(call)


def modules_of(library):
    package = PACKAGES.get(library, library)
    pytest.importorskip(package)
    return [importlib.import_module(package + name) for name in MODULES[library]]


@pytest.mark.filterwarnings("ignore")  # those of the other libraries
@pytest.mark.parametrize(
    "library",
    ["annealvi", "scikit-learn", *slow_values("BERTopic", "gensim", "tomotopy", "pyLDAvis")],
)
def test_every_call_is_there(library):
    modules = modules_of(library)
    found = calls(library)
    assert len(found) >= 7
    for call in found:
        if NESTED.match(call):
            modules[0].TopicModel().set_params(**{call: 1})
        elif call.startswith("annealvi "):
            with pytest.raises(SystemExit, match="0"), contextlib.redirect_stdout(io.StringIO()):
                main([*call.split()[1:], "--help"])
        else:
            look_up(modules, call)


@pytest.mark.deep
def test_the_deep_models():
    assert find([importlib.import_module("annealvi.deep")], "PoissonDEF").fit


def test_each_mark_has_its_call():
    """Exactly the libraries without a dash are told how, but for what they do not achieve."""
    found = entries()
    assert list(marks()) == list(found)
    for task, row in marks().items():
        assert set(row.values()) <= set("●★◐–"), task
        assert row["annealvi"] != "★", task
        told = {library for library, cell in found[task].items() if not cell.startswith("no: ")}
        assert told == {library for library, mark in row.items() if mark != "–"}, task
        if row["annealvi"] == "–":
            assert "●" not in row.values(), task


@pytest.mark.parametrize(
    "call", ["TopicModels", "TopicModel.fits", "TopicModel(seed=)", "TopicModel.bound_", "a b"]
)
def test_what_is_not_there_is_noticed(call):
    with pytest.raises(LookupError):
        look_up(modules_of("annealvi"), call)


def test_our_fits_repeat_as_the_page_says():
    row = repeats.row("annealvi", repeats.ours)
    assert f"| {' | '.join(row)} |" in PAGE.read_text(encoding="utf-8").splitlines()
