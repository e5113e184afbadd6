"""What is not there is named: compiled kernels, a module of SciPy, PyTorch, other libraries."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

import annealvi
from annealvi import plot
from annealvi._optional import import_optional
from annealvi.corpus import to_gensim
from annealvi.plot.interactive import plot_topic_map
from annealvi.plot.report import write_report
from annealvi.topics import describe
from annealvi.topics.languages import stop_words_of
from annealvi.topics.vectorizer import TopicVectorizer, with_stop_words
from bench import CHECKOUT
from tests.asserts import refused
from tests.marks import cases
from tests.topics.models import COUNTS, WORDS, Given, fitted

PACKAGE = Path(annealvi.__file__).parent
WITHOUT_TORCH = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
"""


def traceback_of(code, folder=PACKAGE.parent):
    """What Python prints if it starts beside a package and fails, or an empty string."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def error_of(code, folder=PACKAGE.parent):
    return traceback_of(code, folder).rpartition("\n")[2]


@pytest.fixture
def unbuilt(tmp_path):
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.npz")
    shutil.copytree(PACKAGE, tmp_path / "annealvi", ignore=compiled)
    return tmp_path


def test_nothing_is_built(unbuilt):
    printed = traceback_of("import annealvi", unbuilt)
    error = printed.splitlines()[-1]
    kernels = unbuilt / "annealvi" / "_kernels"
    assert error.startswith(
        f"ImportError: The compiled kernels of annealvi are missing in {kernels}: "
        f"there is no annealvi._kernels._dispatch for Python {sys.version.split()[0]}."
    )
    assert "`pip install -e .`" in error and "circular" not in error
    assert printed.count("Traceback") == 1  # no other error comes before it


def test_another_module_is_missing(unbuilt):
    """The kernels are there, so the error is not about them."""
    (unbuilt / "annealvi" / "__init__.py").write_text("")  # without scikit-learn: faster
    for file in (PACKAGE / "_kernels").glob("*.so"):
        shutil.copy(file, unbuilt / "annealvi" / "_kernels")
    missing = "numpy.linalg"
    error = error_of(f"sys.modules[{missing!r}] = None; import annealvi._kernels", unbuilt)
    assert error.startswith("ModuleNotFoundError") and missing in error


@pytest.mark.slow
def test_nothing_but_the_deep_models_imports_pytorch():
    code = (
        "import pkgutil, importlib, annealvi\n"
        "for found in pkgutil.walk_packages(annealvi.__path__, 'annealvi.'):\n"
        "    if not found.name.startswith(('annealvi.deep', 'annealvi.__main__')):\n"
        "        importlib.import_module(found.name)"
    )
    assert error_of(WITHOUT_TORCH + code) == ""


@pytest.mark.slow
def test_the_error_of_the_deep_models_names_pytorch():
    words = "ImportError: annealvi.deep needs torch. Install with: pip install torch"
    assert error_of(WITHOUT_TORCH + "import annealvi.deep") == words


def optional_modules():
    """The modules in each call of import_optional, which are all arguments but the second."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_optional":
                parts = [part for arg in node.args[:1] + node.args[2:] for part in ast.walk(arg)]
                constants = [part.value for part in parts if isinstance(part, ast.Constant)]
                yield [value for value in constants if isinstance(value, str)]


def test_errors_name_packages_of_the_extras(monkeypatch):
    """All of a purpose at once, in a command that a shell takes as it is printed."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    texts = [text for some in project["optional-dependencies"].values() for text in some]
    known = {(package.name, *package.extras) for package in map(Requirement, texts)}
    calls = list(optional_modules())
    assert ["distributed", "dask"] in calls and all(calls)
    for modules in calls:
        monkeypatch.setitem(sys.modules, modules[0], None)
        with pytest.raises(ImportError, match=r"^It needs ") as error:
            import_optional(modules[0], "It", *modules[1:])
        words = shlex.split(re.search(r" Install with: pip install (.+)$", str(error.value))[1])
        named = {(package.name, *package.extras) for package in map(Requirement, words)}
        assert named <= known and len(named) == len(modules)


SUMMARY, VECTORIZER = describe(Given(), COUNTS, WORDS), TopicVectorizer()
needs = r"needs {0}\..* pip install {0}$".format


@cases(
    "module, call, words",
    ("pandas", lambda: SUMMARY.table, needs("pandas")),
    ("pandas", SUMMARY.map, needs("pandas")),
    ("matplotlib.pyplot", lambda: plot.plot_temperature(fitted()[0]), needs("matplotlib")),
    ("matplotlib.pyplot", lambda: plot.plot_components(np.eye(4), (2, 2)), needs("matplotlib")),
    ("plotly.graph_objects", lambda: plot_topic_map(SUMMARY), needs("plotly")),
    ("plotly.offline", lambda: write_report(SUMMARY, "x.html"), "needs plotly and.*plotly pandas$"),
    ("gensim.corpora", lambda: to_gensim(COUNTS, WORDS), "^to_gensim " + needs("gensim")),
    (
        "stop_words",
        lambda: with_stop_words(VECTORIZER, "romanian"),
        "='romanian' needs.*stop-words$",
    ),
)
def test_what_needs_a_library(module, call, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    stop_words_of.cache_clear()  # other tests may have read the list
    monkeypatch.setitem(sys.modules, module, None)
    refused(words, call, error=ImportError)
    assert not list(tmp_path.iterdir()) and SUMMARY.words(0, 1) == ["orbit"]
