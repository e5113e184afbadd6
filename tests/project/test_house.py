"""What CONTRIBUTING says of the house, as far as the source can tell."""

import ast
import re
import tomllib

import pytest
from packaging.requirements import Requirement

from annealvi import __version__
from bench import CHECKOUT
from bench.structure import PACKAGE, circles, imports, modules, private_uses, upward_imports

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


#: Functions whose last bits depend on the processor, through BLAS, LAPACK or NumPy's own choice.
BY_PROCESSOR = {"exp", "log", "log1p", "expm1", "power", "geomspace", "tanh", "sinh", "cosh"}
BY_PROCESSOR |= {"dot", "matmul", "tensordot", "argpartition", "linalg", "logsumexp", "softmax"}
BY_PROCESSOR |= {"KMeans", "kmeans_plusplus", "einsum", "psi", "gammaln", "betaln", "entr"}
FITS = ("lda", "mixtures", "models", "inference", "temperature", "partition", "scale")
#: A relative change that is only compared with its bound.
NOT_IN_RESULTS = {"models/lda_prior/prior.py: expm1"}


def test_fits_use_nothing_that_chooses_its_bits_by_processor():
    """Instead they use `special` and `gemm` of the kernels; test_other_machines.py has the bits."""
    used = set()
    for path in (CHECKOUT / PACKAGE).rglob("*.py"):
        name = path.relative_to(CHECKOUT / PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("np", "numpy"):
                found = {node.attr}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("s"):
                found = {alias.name for alias in node.names}
            else:
                continue
            if name.startswith(FITS):
                used |= {f"{name}: {function}" for function in found & BY_PROCESSOR}
    assert used == NOT_IN_RESULTS


INSTALL = CHECKOUT / "docs" / "learn" / "install.md"
#: For those who work on annealvi.
OF_DEVELOPERS = {"test", "bench", "docs"}
#: Files of the package that people read parts of.
KINDS = {".py", ".pyx", ".html", ".js", ".rst"}


def test_ranges_of_indices_say_their_dtype():
    """NumPy 1 makes them of 32 bits on Windows, but kernels take 64; pictures use no kernel."""
    silent = [
        f"{path}:{node.lineno}"
        for name, path in modules(CHECKOUT).items()
        if not name.startswith("annealvi.plot")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "np.arange"
        and not any(keyword.arg == "dtype" for keyword in node.keywords)
    ]
    assert not silent


def test_nothing_is_said_to_come_from_an_index_before_the_first_release():
    """Errors name libraries, and pages the extra and the page on installing."""
    of_package = [path for path in (CHECKOUT / PACKAGE).rglob("*") if path.suffix in KINDS]
    texts = [*of_package, *CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")]
    texts += [CHECKOUT / "docs" / "api.rst", *(CHECKOUT / "examples").glob("*.py")]
    assert [path for path in texts if f"{PACKAGE}[" in path.read_text("utf-8")] == [INSTALL]
    before, _, after = INSTALL.read_text("utf-8").partition("## At the first release")
    assert f"{PACKAGE}[" not in before and after.count(f"{PACKAGE}[") == 1


def test_the_page_of_installing_lists_the_extras():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {
        extra: [re.split("[<>=]", str(Requirement(text)))[0] for text in texts]
        for extra, texts in project["optional-dependencies"].items()
        if extra not in OF_DEVELOPERS
    }
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", INSTALL.read_text("utf-8"), re.MULTILINE)
    assert {extra: libraries.split(", ") for extra, libraries in rows} == extras
    assert len(rows) == len(extras)


@pytest.mark.parametrize("file", ["README.md", "CITATION.cff", "recipe/recipe.yaml"])
def test_the_version_is_the_same_everywhere(file):
    text = (CHECKOUT / file).read_text(encoding="utf-8")
    versions = re.findall(r"^ *version(?:: | = \{)([^}$]\S+?)\}?,?$", text, flags=re.MULTILINE)
    assert versions == [__version__]
